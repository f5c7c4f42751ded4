// Questions about single configurations, for many sequences of any kind of lattice: the best ones, random ones, entropies,
// scores. A configuration is one path for each level (chains and segments have one level).
//
// A Batch says of its sequences
//   size(), levels()
//   with_graph<table>(i, work, use)   fills the table of sequence i and calls use(graph); where that is false, because
//                                    doubles have not the digits, again with a graph of exact numbers. False: no
//                                    configuration is possible
//   score(i, configuration)          its score, -inf: forbidden
//   furthest(i)                      how many positions some configuration can cover
//   Random, randoms(i)               the type of random numbers, and how many a draw of the sequences before i takes
// and overloads of best_configuration, best_configurations, random_configuration and find_entropy take its graphs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "lattice.hpp"

namespace scansion {

using Configuration = std::vector<Path>;  // by level

// Configurations of many sequences, packed.
struct Configurations {
  std::vector<int64_t> steps;         // (n, 3) start, stop, label
  std::vector<int64_t> paths = {0};   // (configurations * levels + 1,) where each path begins among the steps
  std::vector<int64_t> firsts = {0};  // (B + 1,) where each sequence begins among the configurations
  std::vector<double> scores;         // (configurations,)
};

// ask(i, work, found) appends the configurations of sequence i; ranked: they are put into the order of their scores, which
// a search adds up in another order than score() does.
template <class Batch, class Ask>
Configurations gather_configurations(const Batch& batch, int64_t threads, bool ranked, const Ask& ask) {
  using Scored = std::pair<double, Configuration>;
  std::vector<std::vector<Scored>> found(static_cast<size_t>(batch.size()));
  std::vector<Workspace> work(static_cast<size_t>(std::max<int64_t>(1, threads)));
  parallel_for(batch.size(), threads, [&](int64_t i, int64_t worker) {
    std::vector<Configuration> configurations;
    ask(i, work[worker], configurations);
    for (Configuration& one : configurations) {
      const double score = batch.score(i, one);
      found[i].emplace_back(score, std::move(one));
    }
    if (ranked)
      std::stable_sort(found[i].begin(), found[i].end(),
                       [](const Scored& a, const Scored& b) { return a.first > b.first; });
  });
  Configurations out;
  for (std::vector<Scored>& sequence : found) {
    for (const auto& [score, configuration] : sequence) {
      for (const Path& path : configuration) {
        for (const Step& step : path) out.steps.insert(out.steps.end(), {step.start, step.stop, step.label});
        out.paths.push_back(static_cast<int64_t>(out.steps.size() / 3));
      }
      out.scores.push_back(score);
    }
    out.firsts.push_back(static_cast<int64_t>(out.scores.size()));
    std::vector<Scored>().swap(sequence);
  }
  return out;
}

// The overloads for chains and segments. False: nothing was found.
template <class Graph>
bool best_configuration(Graph& graph, Configuration& out) {
  out.assign(1, Path());
  return best_path(graph, out[0]);
}
template <class Graph>
bool best_configurations(Graph& graph, int64_t k, std::vector<Configuration>& out) {
  std::vector<Path> paths;
  const bool found = best_paths(graph, k, paths);
  out.clear();
  for (Path& path : paths) out.push_back({std::move(path)});
  return found;
}
template <class Graph>
bool random_configuration(Graph& graph, const double* uniform, Configuration& out) {
  out.assign(1, Path());
  return sample_path(graph, uniform, out[0]);
}
template <class Graph>
bool find_entropy(Graph& graph, double& out) {
  out = entropy(graph);
  return true;
}

template <class Batch>
Configurations best(const Batch& batch, int64_t threads) {
  return gather_configurations(batch, threads, false, [&](int64_t i, Workspace& work, std::vector<Configuration>& out) {
    Configuration one;
    if (batch.template with_graph<Table::kBest>(i, work, [&](auto& graph) { return best_configuration(graph, one); }))
      out.push_back(std::move(one));
  });
}

// The k best of each sequence, best first.
template <class Batch>
Configurations kbest(const Batch& batch, int64_t k, int64_t threads) {
  return gather_configurations(batch, threads, true, [&](int64_t i, Workspace& work, std::vector<Configuration>& out) {
    if (!batch.template with_graph<Table::kBests>(i, work,
                                                  [&](auto& graph) { return best_configurations(graph, k, out); }))
      out.clear();
  });
}

// random: n draws of each sequence, one sequence after another
template <class Batch>
Configurations sample(const Batch& batch, int64_t n, const typename Batch::Random* random, int64_t threads) {
  return gather_configurations(batch, threads, false, [&](int64_t i, Workspace& work, std::vector<Configuration>& out) {
    const typename Batch::Random* here = random + n * batch.randoms(i);
    const int64_t each = batch.randoms(i + 1) - batch.randoms(i);
    const bool found = batch.template with_graph<Table::kDraws>(i, work, [&](auto& graph) {
      out.assign(static_cast<size_t>(n), Configuration());
      for (int64_t k = 0; k < n; ++k)
        if (!random_configuration(graph, here + k * each, out[k])) return false;
      return true;
    });
    if (!found) out.clear();
  });
}

template <class Batch>
void entropies(const Batch& batch, double* out, int64_t threads) {
  std::vector<Workspace> work(static_cast<size_t>(std::max<int64_t>(1, threads)));
  parallel_for(batch.size(), threads, [&](int64_t i, int64_t worker) {
    batch.template with_graph<Table::kSums>(i, work[worker], [&](auto& graph) { return find_entropy(graph, out[i]); });
  });
}

// Scores of given configurations, packed as above; owners: the sequence of each.
template <class Batch>
void scores(const Batch& batch, const int64_t* steps, const int64_t* paths, const int64_t* owners, int64_t count,
            double* out) {
  const int64_t D = batch.levels();
  Configuration configuration(static_cast<size_t>(D));
  for (int64_t c = 0; c < count; ++c) {
    for (int64_t g = 0; g < D; ++g) {
      configuration[g].clear();
      for (int64_t k = paths[c * D + g]; k < paths[c * D + g + 1]; ++k)
        configuration[g].push_back({steps[3 * k], steps[3 * k + 1], static_cast<int32_t>(steps[3 * k + 2])});
    }
    out[c] = batch.score(owners[c], configuration);
  }
}

}  // namespace scansion
