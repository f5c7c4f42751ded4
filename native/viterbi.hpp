// Best scores on a segment lattice (paper 001, section 2.4), with ties broken by one rule for every order:
// reading configurations from the end, the smaller label wins, then the shorter segment.
//
// States hide part of the past. The best configuration alone is found by walking back through all best ones at once
// (best_path in paths.hpp). Where several are wanted, or looking at all ways in would take long, the rule needs memory:
// rank(v, p) orders, among the states at v, the best configurations that lead there, read from the end. It follows from
// the last segment's label, its length, and the rank of the state where that segment started.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "kernels.hpp"
#include "numeric.hpp"
#include "viterbi_additive.hpp"

namespace scansion {

// The ranks of a table of best scores, position by position.
class Ranks {
 public:
  Ranks(const TopologyView& net, int64_t length)
      : net_(net), S_(net.states), K_(net.keys), size_((length + 1) * net.states) {
    ranks_.resize(static_cast<size_t>(3 * size_));
    source_.resize(static_cast<size_t>((length + 1) * K_));
    key_length_.resize(static_cast<size_t>(K_));
    state_.resize(static_cast<size_t>(net.nodes));
  }
  // (3, T + 1, S): ranks, and of each best configuration the length of its last segment and the state before that
  const int32_t* data() const { return ranks_.data(); }

  // (K,) the length of the segment that has the best score of each key, to be written before choose()
  int32_t* lengths() { return key_length_.data(); }

  // the best of the keys of state p, scores h (K,), that end at v; -1: none is possible
  int64_t choose(int64_t v, int64_t p, const double* h) {
    int64_t best = -1;
    for (int64_t k = net_.state_keys[p]; k < net_.state_keys[p + 1]; ++k) {
      if (!(h[k] > kMinusInfinity)) continue;
      bool better = best < 0 || h[k] > h[best];
      if (!better && h[k] == h[best])
        better = key_length_[k] != key_length_[best] ? key_length_[k] < key_length_[best]
                                                     : source_rank(v, k) < source_rank(v, best);
      if (better) best = k;
    }
    if (best < 0) return -1;
    ranks_[size_ + v * S_ + p] = key_length_[best];
    ranks_[2 * size_ + v * S_ + p] = source_[(v - key_length_[best]) * K_ + best];
    order_.push_back(static_cast<int32_t>(p));
    return best;
  }

  // after choose() for all states at v
  void settle(int64_t v) {
    const auto label = [&](int32_t p) { return net_.key_label[net_.state_keys[p]]; };
    const int32_t *length = ranks_.data() + size_ + v * S_, *source = length + size_;
    std::sort(order_.begin(), order_.end(), [&](int32_t p, int32_t q) {
      if (label(p) != label(q)) return label(p) < label(q);
      if (length[p] != length[q]) return length[p] < length[q];
      const int64_t u = v - length[p];
      return ranks_[u * S_ + source[p]] < ranks_[u * S_ + source[q]];
    });
    for (size_t i = 0; i < order_.size(); ++i) ranks_[v * S_ + order_[i]] = static_cast<int32_t>(i);
    order_.clear();
  }

  // the best sources of all keys at v: a (S,) scores of states, start (Q,) those of arcs, g (K,)
  void begin(int64_t v, const double* a, const double* start, double* g) {
    const int32_t* rank = ranks_.data() + v * S_;
    const auto better = [&](double x, int32_t p, double y, int32_t q) {
      return x > y || (x == y && x > kMinusInfinity && rank[p] < rank[q]);
    };
    for (int32_t p = 0; p < S_; ++p) state_[p] = p;
    for (int64_t i = padded4(S_); i < net_.nodes; ++i) {
      const int32_t p = state_[net_.node_parts[2 * i]], q = state_[net_.node_parts[2 * i + 1]];
      state_[i] = better(a[q], q, a[p], p) ? q : p;
    }
    for (int64_t k = 0; k < K_; ++k) {
      double best = kMinusInfinity;
      int32_t from = 0;
      for (int64_t i = net_.key_arcs[k]; i < net_.key_arcs[k + 1]; ++i) {
        const int32_t p = state_[net_.arc_source[i]];
        const double x = a[p] + start[net_.arc_start[i]];
        if (better(x, p, best, from)) best = x, from = p;
      }
      g[k] = best;
      source_[v * K_ + k] = from;
    }
  }

 private:
  int32_t source_rank(int64_t v, int64_t k) const {
    const int64_t u = v - key_length_[k];
    return ranks_[u * S_ + source_[u * K_ + k]];
  }

  const TopologyView& net_;
  const int64_t S_, K_, size_;
  std::vector<int32_t> ranks_;
  std::vector<int32_t> source_;      // (T + 1, K) best state that a key leaves
  std::vector<int32_t> key_length_;  // (K,)
  std::vector<int32_t> state_;       // (nodes,) best state of each
  std::vector<int32_t> order_;
};

// Fills work.a (relative to work.a_scale), work.alive and, unless null, ranks.
inline Filled fill_best_scores(const Kernels& kernels, const SegmentView& view, const TopologyView& net, double* block,
                               SegmentWork& work, Ranks* ranks) {
  kernels.segment_prepare(view, net, block, work);
  const int64_t T = view.length, S = net.states, K = net.keys;
  std::fill_n(work.a, work.Sp, kMinusInfinity);
  work.a[net.initial] = 0.0;
  work.a_scale[0] = Scale();
  work.alive[0] = 1;
  std::optional<AdditiveBest> additive;
  if (ranks && AdditiveBest::serves(view, net)) additive.emplace(kernels, view, net, work);
  bool fine = true;
  for (int64_t v = 0; v <= T; ++v) {
    double* a = work.a + v * work.Sp;
    if (v > 0) {
      const Scale& reference = work.a_scale[v - 1];
      double* h = work.h;
      if (additive) additive->step(v);
      const bool known = additive && additive->ends(v, reference, h, ranks->lengths());
      if (!known) std::fill_n(h, work.Kp, kMinusInfinity);
      const bool keyed = !known && kernels.segment_end_rows(view, net, work, v);
      for (int64_t d = 1; !known && d <= view.max_length && d <= v; ++d) {
        if (!(work.row_top[d - 1] > kMinusInfinity)) continue;
        const int64_t u = v - d;
        const double offset = difference(work.a_scale[u], reference);
        if (!(offset <= kFar)) work.tame = false;
        const double* row = work.rows + (d - 1) * work.row_stride;
        const double* g = work.g + u * work.Kp;
        if (!keyed && !net.identity_keys) {
          for (int64_t k = 0; k < K; ++k) work.x[k] = row[net.key_extent[k]];
          row = work.x;
        }
        if (ranks) {
          for (int64_t k = 0; k < K; ++k) {
            const double x = g[k] + (row[k] + offset);
            if (x > h[k]) h[k] = x, ranks->lengths()[k] = static_cast<int32_t>(d);
          }
        } else {
          kernels.max_plus(g, row, offset, K, h);
        }
      }
      if (!work.tame) return Filled::kLost;
      double top = kMinusInfinity;
      for (int64_t p = 0; p < S; ++p) {
        if (ranks) {
          const int64_t best = ranks->choose(v, p, h);
          a[p] = best < 0 ? kMinusInfinity : h[best];
        } else {
          a[p] = kMinusInfinity;
          for (int64_t k = net.state_keys[p]; k < net.state_keys[p + 1]; ++k) a[p] = std::max(a[p], h[k]);
        }
        top = std::max(top, a[p]);
      }
      std::fill(a + S, a + work.Sp, kMinusInfinity);
      work.a_scale[v] = reference;
      work.alive[v] = top > kMinusInfinity;
      if (!work.alive[v]) continue;
      if (!(std::abs(top) <= kFar)) return Filled::kLost;
      for (int64_t p = 0; p < S; ++p) {
        a[p] -= top;
        fine = fine && (a[p] >= -kFar || !(a[p] > kMinusInfinity));
      }
      add(work.a_scale[v], top);
      if (ranks) ranks->settle(v);
    }
    if (v == T) break;
    const double* start = work.start_w + (work.start_rows == 1 ? 0 : v) * work.Qp;
    double* g = work.g + v * work.Kp;
    if (ranks) {
      ranks->begin(v, a, start, g);
      if (additive) additive->start(v, g, work.a_scale[v]);
      continue;
    }
    double* node = work.state;
    std::copy_n(a, work.Sp, node);
    for (int64_t i = work.Sp; i < work.N; ++i)
      node[i] = std::max(node[net.node_parts[2 * i]], node[net.node_parts[2 * i + 1]]);
    for (int64_t k = 0; k < K; ++k) {
      double best = kMinusInfinity;
      for (int64_t i = net.key_arcs[k]; i < net.key_arcs[k + 1]; ++i)
        best = std::max(best, node[net.arc_source[i]] + start[net.arc_start[i]]);
      g[k] = best;
    }
  }
  if (!work.alive[T]) return Filled::kNothing;
  return fine ? Filled::kFine : Filled::kDoubtful;
}

}  // namespace scansion
