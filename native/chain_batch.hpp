// First-order chains of many sequences: rows of all sequences one after another, cut at offsets.
#pragma once

#include <atomic>
#include <vector>

#include "batch.hpp"

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

  template <Table table, class Use>
  bool with_graph(int64_t i, Workspace& work, const Use& use) const {
    return on_chain(view(i), work, table, use);
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
    const ChainView v = view(i);
    const int64_t L = labels;
    std::vector<double> row(static_cast<size_t>(L));
    std::vector<uint8_t> before, here;
    for (int64_t t = 0; t < v.length; ++t) {
      kernels().chain_row(v, t, row.data());
      const double* w = v.transition + (t - 1) * v.transition_stride;
      here.assign(static_cast<size_t>(L), t == 0);
      for (int64_t j = 0; j < L; ++j) {
        for (int64_t k = 0; t > 0 && k < L; ++k) here[j] = here[j] || (before[k] && possible(w[k * L + j]));
        here[j] = here[j] && possible(row[j]);
      }
      if (std::find(here.begin(), here.end(), 1) == here.end()) return t;
      before.swap(here);
    }
    return v.length;
  }

  // Best labels of all rows (N,); -1 throughout a sequence for which nothing is possible.
  void best_labels(int64_t* out, int64_t threads) const {
    std::vector<Workspace> work(static_cast<size_t>(std::max<int64_t>(1, threads)));
    std::vector<std::vector<int32_t>> found(work.size());
    parallel_for(size(), threads, [&](int64_t i, int64_t worker) {
      const ChainView v = view(i);
      std::vector<int32_t>& best = found[worker];
      best.resize(static_cast<size_t>(v.length));
      if (!scansion::best_labels(v, work[worker], best.data())) std::fill(best.begin(), best.end(), -1);
      std::copy(best.begin(), best.end(), out + offsets[i]);
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
        if (!chain_posteriors(v, varying ? nullptr : &shared, work[worker], backward, one)) ++escaped;
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
