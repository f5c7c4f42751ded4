// Questions about trajectories for the batches of chain.cpp and segment.cpp: one template, as PathQuestions.
#pragma once

#include "bind/lattices.hpp"
#include "trajectory_search.hpp"
#include "lexicon.hpp"

namespace scansion {

template <class Batch>
struct CompressedQuestions {
  // Trajectories of many sequences as (labels, first label of each); a sequence may have several.
  static std::tuple<Int64Array, Int64Array> pack(const std::vector<Trajectory>& trajectories) {
    std::vector<int64_t> labels, firsts = {0};
    for (const Trajectory& trajectory : trajectories) {
      labels.insert(labels.end(), trajectory.begin(), trajectory.end());
      firsts.push_back(static_cast<int64_t>(labels.size()));
    }
    const size_t n = labels.size(), m = firsts.size();
    return {to_numpy(std::move(labels), {n}), to_numpy(std::move(firsts), {m})};
  }

  template <class Use>
  static void sweep(const Batch& batch, int64_t i, bool merge, Workspace& work, const Use& use) {
    batch.template with_graph<Table::kSums>(i, work, [&](auto& graph) {
      ArcSweep<std::decay_t<decltype(graph)>> arcs(graph, merge);
      use(arcs);
      return true;
    });
  }

  // of the first sequence: out (n + 1,) = P(length c)
  static void lengths(const Batch& batch, bool merge, const DoublesOut& out) {
    nb::gil_scoped_release release;
    Workspace work;
    sweep(batch, 0, merge, work,
          [&](auto& arcs) { trajectory_lengths(arcs, static_cast<int64_t>(out.size()) - 1, out.data()); });
  }

  // of the first sequence: out (c, L) = P(s_i = j, length c)
  static void marginals(const Batch& batch, bool merge, const DoublesOut& out) {
    nb::gil_scoped_release release;
    Workspace work;
    sweep(batch, 0, merge, work, [&](auto& arcs) {
      trajectory_marginals(arcs, static_cast<int64_t>(out.shape(0)), static_cast<int64_t>(out.shape(1)), out.data());
    });
  }

  // of the first sequence: out (n + 1,) = P(length c, and place i has a label that allowed (places, L) has for it)
  static void passing(const Batch& batch, bool merge, const Bytes& allowed, const DoublesOut& out) {
    nb::gil_scoped_release release;
    Workspace work;
    sweep(batch, 0, merge, work, [&](auto& arcs) {
      passing_lengths(arcs, static_cast<int64_t>(out.size()) - 1, allowed.data(),
                      static_cast<int64_t>(allowed.shape(0)), static_cast<int64_t>(allowed.shape(1)), out.data());
    });
  }

  // out (B, n) = log P of the n trajectories whose labels are cut at offsets (n + 1,), for every sequence
  static void lexicon(const Batch& batch, bool merge, const Int64s& symbols, const Int64s& offsets, int64_t labels,
                      const DoublesOut& out, int64_t threads) {
    nb::gil_scoped_release release;
    const int64_t n = static_cast<int64_t>(offsets.size()) - 1;
    const Lexicon words(symbols.data(), offsets.data(), n, labels);
    std::vector<Workspace> work(std::max<int64_t>(1, threads));
    parallel_for(batch.size(), threads, [&](int64_t i, int64_t worker) {
      if (batch.length(i) == 0) return;
      batch.template with_graph<Table::kSums>(i, work[worker], [&](auto& graph) {
        score_lexicon(graph, merge, labels, words, out.data() + i * n);
        return true;
      });
    });
  }

  static int64_t most_of(const Batch& batch, int64_t i, int64_t most) { return std::min(most, batch.length(i)); }

  // a labelling of the places of every sequence (see label_places), and the first sequence without one (-1: all have one)
  static std::tuple<Int64Array, Int64Array, int64_t> labelling(const Batch& batch, bool merge, int64_t most,
                                                               int64_t labels, bool raw, int64_t threads) {
    std::vector<Trajectory> out(batch.size());
    std::vector<uint8_t> found(batch.size(), 0);
    {
      nb::gil_scoped_release release;
      std::vector<Workspace> work(std::max<int64_t>(1, threads));
      parallel_for(batch.size(), threads, [&](int64_t i, int64_t worker) {
        sweep(batch, i, merge, work[worker],
              [&](auto& arcs) { found[i] = label_places(arcs, most_of(batch, i, most), labels, raw, out[i]); });
      });
    }
    const auto missing = std::find(found.begin(), found.end(), 0);
    auto packed = pack(out);
    return {std::get<0>(packed), std::get<1>(packed), missing == found.end() ? -1 : missing - found.begin()};
  }

  // The k best of every sequence: labels, first label of each trajectory, first trajectory of each sequence,
  // probabilities; by sequence the bound, whether it is proven, prefixes taken up.
  static std::tuple<Int64Array, Int64Array, Int64Array, DoubleArray, DoubleArray, Int64Array, Int64Array> best(
      const Batch& batch, bool merge, int64_t k, int64_t budget, int64_t most, int64_t labels, int64_t threads) {
    std::vector<BestTrajectories> out(batch.size());
    {
      nb::gil_scoped_release release;
      std::vector<Workspace> work(std::max<int64_t>(1, threads));
      parallel_for(batch.size(), threads, [&](int64_t i, int64_t worker) {
        Trajectory candidate;
        Path best;
        if (batch.template with_graph<Table::kBest>(i, work[worker],
                                                    [&](auto& graph) { return best_path(graph, best); }))
          candidate = trajectory_of(best, merge);
        sweep(batch, i, merge, work[worker], [&](auto& arcs) {
          TrajectorySearch search(arcs, labels, most_of(batch, i, most));
          out[i] = search.run(k, budget, candidate);
        });
      });
    }
    std::vector<Trajectory> trajectories;
    std::vector<int64_t> firsts = {0}, proven, expanded;
    std::vector<double> probabilities, bounds;
    for (const BestTrajectories& one : out) {
      trajectories.insert(trajectories.end(), one.trajectories.begin(), one.trajectories.end());
      probabilities.insert(probabilities.end(), one.probabilities.begin(), one.probabilities.end());
      firsts.push_back(static_cast<int64_t>(trajectories.size()));
      bounds.push_back(one.bound);
      proven.push_back(one.proven);
      expanded.push_back(one.expanded);
    }
    auto packed = pack(trajectories);
    const size_t n = trajectories.size(), b = out.size(), m = firsts.size();
    return {std::get<0>(packed),
            std::get<1>(packed),
            to_numpy(std::move(firsts), {m}),
            to_numpy(std::move(probabilities), {n}),
            to_numpy(std::move(bounds), {b}),
            to_numpy(std::move(proven), {b}),
            to_numpy(std::move(expanded), {b})};
  }

  template <class Class>
  static void bind(Class& cls) {
    cls.def("compressed_lengths", &lengths, nb::arg("merge"), nb::arg("out"))
        .def("compressed_marginals", &marginals, nb::arg("merge"), nb::arg("out"))
        .def("compressed_labelling", &labelling, nb::arg("merge"), nb::arg("most"), nb::arg("labels"), nb::arg("raw"),
             nb::arg("threads"))
        .def("compressed_passing", &passing, nb::arg("merge"), nb::arg("allowed"), nb::arg("out"))
        .def("compressed_lexicon", &lexicon, nb::arg("merge"), nb::arg("symbols"), nb::arg("offsets"),
             nb::arg("labels"), nb::arg("out"), nb::arg("threads"))
        .def("compressed_best", &best, nb::arg("merge"), nb::arg("k"), nb::arg("budget"), nb::arg("most"),
             nb::arg("labels"), nb::arg("threads"));
  }
};

}  // namespace scansion
