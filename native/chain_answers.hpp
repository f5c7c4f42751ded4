// Several configurations of first-order chains, and entropies, at the price of a few passes over their positions: what
// batch.hpp answers for lattices of all kinds, answered from arrays of labels. Sequences that linear space does not serve,
// and transitions that vary, go the general way.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "chain_batch.hpp"
#include "numeric.hpp"

namespace scansion {

// Labels of configurations, sequence by sequence.
struct ChainLabels {
  std::vector<int32_t> labels;        // of all configurations, one after another
  std::vector<int64_t> firsts = {0};  // (B + 1,) where each sequence begins among the configurations
  std::vector<double> scores;         // (configurations,)
};

// Questions to a batch.
class ChainAnswers {
 public:
  explicit ChainAnswers(const ChainBatch& batch) : batch_(batch) {}

  ChainLabels kbest(int64_t k, int64_t threads) const {
    std::vector<Workspace> work(static_cast<size_t>(std::max<int64_t>(1, threads)));
    return gather(threads, [&](int64_t i, int64_t worker, Found& found) {
      std::vector<Configuration> best;
      if (!batch_.template with_graph<Table::kBest>(i, work[worker],
                                                    [&](auto& graph) { return best_configurations(graph, k, best); }))
        return;
      for (const Configuration& one : best) found.add(labels_of(one[0]), batch_.score(i, one));
      found.rank(batch_.length(i));
    });
  }

  // random: n draws of each sequence, one sequence after another; numbers as of sample() in batch.hpp
  ChainLabels sample(int64_t n, const double* random, int64_t threads) const {
    const Exponentials shared(batch_);
    std::vector<Workspace> work(static_cast<size_t>(std::max<int64_t>(1, threads)));
    return gather(threads, [&](int64_t i, int64_t worker, Found& found) {
      const ChainView v = batch_.view(i);
      const int64_t T = v.length, L = v.labels, stride = padded4(L);
      const double* here = random + n * batch_.randoms(i);
      ChainAnswer answer;
      double* alpha = work[worker].take(kernels().chain_workspace(T, L) + L);
      double* sums = alpha + kernels().chain_workspace(T, L);
      const bool linear =
          !batch_.varying && kernels().chain_posteriors(v, &shared.weights, alpha, false, answer) == Sums::kLinear;
      std::vector<int32_t> labels(static_cast<size_t>(T));
      if (!linear) {
        std::vector<Configuration> drawn(static_cast<size_t>(n));
        const bool possible = batch_.template with_graph<Table::kDraws>(i, work[worker], [&](auto& graph) {
          for (int64_t k = 0; k < n; ++k)
            if (!random_configuration(graph, here + k * (T + 1), drawn[k])) return false;
          return true;
        });
        for (const Configuration& one : drawn)
          if (possible) found.add(labels_of(one[0]), batch_.score(i, one));
        return;
      }
      for (int64_t k = 0; k < n; ++k, here += T + 1) {
        int64_t y = -1;
        for (int64_t t = T - 1; t >= 0; --t) {
          const double* a = alpha + t * stride;
          const double* w = y < 0 ? nullptr : shared.weights.transposed + y * stride;
          double sum = 0.0;
          for (int64_t j = 0; j < L; ++j) sums[j] = sum += w ? a[j] * w[j] : a[j];
          const double left = here[T - 1 - t] * sum;
          y = std::upper_bound(sums, sums + L, left) - sums;
          while (y > 0 && (y >= L || sums[y] == sums[y - 1])) --y;  // rounding: the last that is possible
          labels[t] = static_cast<int32_t>(y);
        }
        found.add(labels, score(i, labels.data()));
      }
    });
  }

  void entropies(double* out, int64_t threads) const {
    const Exponentials shared(batch_);
    std::vector<Workspace> work(static_cast<size_t>(std::max<int64_t>(1, threads)));
    parallel_for(batch_.size(), threads, [&](int64_t i, int64_t worker) {
      const ChainView v = batch_.view(i);
      double* block = work[worker].take(kernels().chain_workspace(v.length, v.labels));
      if (!batch_.varying && kernels().chain_entropy(v, shared.weights, shared.logs, block, out[i])) return;
      batch_.template with_graph<Table::kSums>(i, work[worker],
                                               [&](auto& graph) { return find_entropy(graph, out[i]); });
    });
  }

 private:
  static std::vector<int32_t> labels_of(const Path& path) {
    std::vector<int32_t> labels;
    for (const Step& step : path) labels.push_back(step.label);
    return labels;
  }

  // of the transitions that all positions share
  struct Exponentials {
    explicit Exponentials(const ChainBatch& batch) {
      if (batch.varying) return;
      const int64_t L = batch.labels, stride = padded4(L);
      block.resize(static_cast<size_t>(3 * L * stride));
      weights.weight = block.data();
      weights.transposed = block.data() + L * stride;
      logs = block.data() + 2 * L * stride;
      kernels().exponentiate_transition(batch.transition, L, weights);
      for (int64_t i = 0; i < L; ++i)
        for (int64_t j = 0; j < L; ++j)
          if (weights.weight[i * stride + j] > 0.0) logs[i * stride + j] = batch.transition[i * L + j] - weights.shift;
    }
    std::vector<double> block;
    TransitionWeights weights;
    double* logs = nullptr;
  };

  // the configurations of one sequence
  struct Found {
    std::vector<int32_t> labels;
    std::vector<double> scores;

    void add(const std::vector<int32_t>& more, double score) {
      labels.insert(labels.end(), more.begin(), more.end());
      scores.push_back(score);
    }
    // in the order of their scores, which a search adds up in another order
    void rank(int64_t length) {
      if (std::is_sorted(scores.rbegin(), scores.rend())) return;
      std::vector<size_t> order(scores.size());
      for (size_t k = 0; k < order.size(); ++k) order[k] = k;
      std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) { return scores[a] > scores[b]; });
      Found sorted;
      for (const size_t k : order) {
        const auto first = labels.begin() + static_cast<int64_t>(k) * length;
        sorted.add({first, first + length}, scores[k]);
      }
      *this = std::move(sorted);
    }
  };

  // ask(i, worker, found) for every sequence, put together
  template <class Ask>
  ChainLabels gather(int64_t threads, const Ask& ask) const {
    std::vector<Found> found(static_cast<size_t>(batch_.size()));
    parallel_for(batch_.size(), threads, [&](int64_t i, int64_t worker) { ask(i, worker, found[i]); });
    ChainLabels out;
    for (Found& one : found) {
      out.labels.insert(out.labels.end(), one.labels.begin(), one.labels.end());
      out.scores.insert(out.scores.end(), one.scores.begin(), one.scores.end());
      out.firsts.push_back(static_cast<int64_t>(out.scores.size()));
      one = Found();
    }
    return out;
  }

  double score(int64_t i, const int32_t* labels) const {
    Path path;
    path.reserve(static_cast<size_t>(batch_.length(i)));
    for (int64_t t = 0; t < batch_.length(i); ++t) path.push_back({t, t + 1, labels[t]});
    return batch_.score(i, {std::move(path)});
  }

  const ChainBatch& batch_;
};

}  // namespace scansion
