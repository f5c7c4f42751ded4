// First-order chains of many sequences: rows of all sequences one after another, cut at offsets.
#pragma once

#include <atomic>
#include <vector>

#include "batch.hpp"
#include "kernels.hpp"

namespace scansion {

// Where the answers of all sequences go; null: not asked for.
struct ChainBatchAnswer {
  double* log_partition = nullptr;  // (B,)
  double* labels = nullptr;         // (N, L) posteriors
  double* counts = nullptr;         // (L, L) expected transitions of all sequences, for transitions that they share
  double* transitions = nullptr;    // (sum of T - 1, L, L) posteriors
};

class ChainBatch {
 public:
  using Random = double;

  int64_t sequences = 0, labels = 0;
  const int64_t* offsets = nullptr;    // (B + 1,)
  const double* unary = nullptr;       // (N, L)
  const double* transition = nullptr;  // (L, L) shared by all, or (sum of T - 1, L, L)
  bool varying = false;                // the latter
  const double* start = nullptr;       // (L,) or null: zero
  const double* end = nullptr;         // (L,) or null
  const uint8_t* allowed = nullptr;    // (N, L) or null: all labels

  // once after the fields above are set
  void prepare() {
    first_pair_.assign(1, 0);
    for (int64_t i = 0; i < sequences; ++i) first_pair_.push_back(first_pair_.back() + std::max<int64_t>(0, length(i) - 1));
  }

  int64_t size() const { return sequences; }
  static constexpr int64_t levels() { return 1; }
  int64_t length(int64_t i) const { return offsets[i + 1] - offsets[i]; }
  int64_t randoms(int64_t i) const { return offsets[i] + i; }  // one for each position and one for the last label

  ChainView view(int64_t i) const {
    ChainView v;
    v.length = length(i);
    v.labels = labels;
    v.unary = unary + offsets[i] * labels;
    v.transition = transition + (varying ? first_pair_[i] * labels * labels : 0);
    v.transition_stride = varying ? labels * labels : 0;
    v.start = start;
    v.end = end;
    v.allowed = allowed ? allowed + offsets[i] * labels : nullptr;
    return v;
  }

  template <bool best, class Use>
  void with_graph(int64_t i, Workspace& work, const Use& use) const {
    const ChainView v = view(i);
    double* row = work.take(v.length * labels + labels);
    double* table = row + labels;
    if (v.length > 0 && !(kernels().chain_table(v, best, row, table) > kMinusInfinity)) return;
    ChainGraph graph(kernels(), v, table, row);
    use(graph);
  }

  double score(int64_t i, const Configuration& configuration) const {
    const ChainView v = view(i);
    const Path& path = configuration[0];
    ScoreSum sum;
    for (int64_t t = 0; t < v.length; ++t) {
      const int64_t y = path[t].label;
      if (v.allowed) sum.forbid(!v.allowed[t * labels + y]);
      sum.add(v.unary[t * labels + y]);
      if (t > 0) sum.add(v.transition[(t - 1) * v.transition_stride + path[t - 1].label * labels + y]);
    }
    if (v.length > 0 && v.start) sum.add(v.start[path.front().label]);
    if (v.length > 0 && v.end) sum.add(v.end[path.back().label]);
    return sum.value();
  }

  int64_t furthest(int64_t i) const {
    const ChainView whole = view(i);
    std::vector<double> row(static_cast<size_t>(labels)), table(static_cast<size_t>(whole.length * labels));
    int64_t low = 0, high = whole.length;  // a prefix of `low` positions is possible
    while (low < high) {
      const int64_t middle = (low + high + 1) / 2;
      ChainView view = whole;
      view.length = middle;
      if (middle < whole.length) view.end = nullptr;
      if (kernels().chain_table(view, true, row.data(), table.data()) > kMinusInfinity)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }

  // Best labels of all rows (N,); -1 throughout a sequence for which nothing is possible.
  void best_labels(int64_t* out, int64_t threads) const {
    std::vector<Workspace> work(static_cast<size_t>(std::max<int64_t>(1, threads)));
    parallel_for(size(), threads, [&](int64_t i, int64_t worker) {
      const ChainView v = view(i);
      double* row = work[worker].take(v.length * (labels + 1) + labels);
      double* table = row + labels;
      auto* best = reinterpret_cast<int32_t*>(table + v.length * labels);
      if (kernels().chain_table(v, true, row, table) > kMinusInfinity) {
        best_chain_labels(v, table, best);
        std::copy_n(best, v.length, out + offsets[i]);
      } else {
        std::fill_n(out + offsets[i], v.length, int64_t{-1});
      }
    });
  }

  // Fills what is asked for; returns how many sequences needed the log-space kernel.
  int64_t posteriors(const ChainBatchAnswer& answer, int64_t threads) const {
    const int64_t L = labels, stride = padded4(L), square = L * stride;
    const bool backward = answer.labels || answer.counts || answer.transitions;
    std::vector<double> shared_block(varying ? 0 : static_cast<size_t>(2 * square));
    TransitionWeights shared;
    if (!varying) {  // exponentials that all positions share
      shared.weight = shared_block.data();
      shared.transposed = shared_block.data() + square;
      kernels().exponentiate_transition(transition, L, shared);
    }
    // expected counts: linear-space outer products and log-space probabilities, per chunk, added up in order
    const Chunks chunks(size());
    const bool sum_counts = answer.counts && !varying;
    std::vector<double> outer(sum_counts ? static_cast<size_t>(chunks.chunks * square) : 0, 0.0);
    std::vector<double> direct(sum_counts ? static_cast<size_t>(chunks.chunks * L * L) : 0, 0.0);
    std::vector<Workspace> work(static_cast<size_t>(std::max<int64_t>(1, threads)));
    std::atomic<int64_t> escaped{0};
    parallel_for(chunks.chunks, threads, [&](int64_t chunk, int64_t worker) {
      for (int64_t i = chunks.begin(chunk); i < chunks.end(chunk); ++i) {
        const ChainView v = view(i);
        ChainAnswer one;
        if (answer.labels) one.labels = answer.labels + offsets[i] * L;
        if (answer.transitions) one.transitions = answer.transitions + first_pair_[i] * L * L;
        if (sum_counts) {
          one.outer = outer.data() + chunk * square;
          one.counts = direct.data() + chunk * L * L;
        }
        double* block = work[worker].take(kernels().chain_workspace(v.length, L));
        if (!kernels().chain_posteriors(v, varying ? nullptr : &shared, block, backward, one)) ++escaped;
        answer.log_partition[i] = one.log_partition;
      }
    });
    for (int64_t chunk = 0; sum_counts && chunk < chunks.chunks; ++chunk)
      for (int64_t i = 0; i < L; ++i)
        for (int64_t j = 0; j < L; ++j)
          answer.counts[i * L + j] += outer[chunk * square + i * stride + j] * shared.weight[i * stride + j] +
                                      direct[(chunk * L + i) * L + j];
    return escaped;
  }

 private:
  std::vector<int64_t> first_pair_;  // (B + 1,) where each sequence's T - 1 transitions begin
};

}  // namespace scansion
