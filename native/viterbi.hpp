// Best scores on a segment lattice (paper 001, section 2.4), with ties broken by one rule for every order:
// reading configurations from the end, the smaller label wins, then the shorter segment.
//
// States hide part of the past, so the rule needs memory: rank(v, p) orders, among the states at v, the best
// configurations that lead there, read from the end. It follows from the last segment's label, its length, and the
// rank of the state where that segment started.
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

// Fills work.a (relative to work.a_scale), work.alive and ranks (3, T+1, S): ranks, and of each best configuration the length
// of its last segment and the state before that.
inline Filled fill_best_scores(const Kernels& kernels, const SegmentView& view, const TopologyView& net, double* block,
                               SegmentWork& work, std::vector<int32_t>& ranks) {
  kernels.segment_prepare(view, net, block, work);
  const int64_t T = view.length, S = net.states, K = net.keys;
  ranks.assign(static_cast<size_t>(3 * (T + 1) * S), 0);
  std::vector<int32_t> source(static_cast<size_t>((T + 1) * K)), length(K), order;
  std::fill_n(work.a, work.Sp, kMinusInfinity);
  work.a[net.initial] = 0.0;
  work.a_scale[0] = Scale();
  work.alive[0] = 1;
  std::optional<AdditiveBest> additive;
  if (AdditiveBest::serves(view, net)) additive.emplace(kernels, view, net, work);
  bool fine = true;
  for (int64_t v = 0; v <= T; ++v) {
    double* a = work.a + v * work.Sp;
    if (v > 0) {
      const Scale& reference = work.a_scale[v - 1];
      double* h = work.h;
      if (additive) additive->step(v);
      const bool known = additive && additive->ends(v, reference, h, length.data());
      if (!known) std::fill_n(h, K, kMinusInfinity);
      const bool keyed = !known && kernels.segment_end_rows(view, net, work, v);
      for (int64_t d = 1; !known && d <= view.max_length && d <= v; ++d) {
        if (!(work.row_top[d - 1] > kMinusInfinity)) continue;
        const int64_t u = v - d;
        const double offset = difference(work.a_scale[u], reference);
        if (!(offset <= kFar)) work.tame = false;
        const double* row = work.rows + (d - 1) * work.row_stride;
        const double* g = work.g + u * work.Kp;
        const auto take = [&](int64_t k, double score) {
          const double x = g[k] + (score + offset);
          if (x > h[k]) {
            h[k] = x;
            length[k] = static_cast<int32_t>(d);
          }
        };
        if (keyed || net.identity_keys)
          for (int64_t k = 0; k < K; ++k) take(k, row[k]);
        else
          for (int64_t k = 0; k < K; ++k) take(k, row[net.key_extent[k]]);
      }
      if (!work.tame) return Filled::kLost;
      order.clear();
      double top = kMinusInfinity;
      int32_t *state_length = ranks.data() + (T + 1 + v) * S, *state_source = state_length + (T + 1) * S;
      for (int64_t p = 0; p < S; ++p) {
        int64_t best = -1;
        for (int64_t k = net.state_keys[p]; k < net.state_keys[p + 1]; ++k) {
          if (!(h[k] > kMinusInfinity)) continue;
          bool better = best < 0 || h[k] > h[best];
          if (!better && h[k] == h[best]) {
            better = length[k] < length[best];
            if (length[k] == length[best]) {
              const int64_t u = v - length[k];
              better = ranks[u * S + source[u * K + k]] < ranks[u * S + source[u * K + best]];
            }
          }
          if (better) best = k;
        }
        a[p] = best < 0 ? kMinusInfinity : h[best];
        if (best < 0) continue;
        state_length[p] = length[best];
        state_source[p] = source[(v - length[best]) * K + best];
        order.push_back(static_cast<int32_t>(p));
        top = std::max(top, a[p]);
      }
      std::fill(a + S, a + work.Sp, kMinusInfinity);
      work.a_scale[v] = reference;
      work.alive[v] = top > kMinusInfinity;
      if (!work.alive[v]) continue;
      if (!(std::abs(top) <= kFar)) return Filled::kLost;
      for (const int32_t p : order) fine = fine && a[p] - top >= -kFar;
      for (int64_t p = 0; p < S; ++p) a[p] -= top;
      add(work.a_scale[v], top);
      const auto label = [&](int32_t p) { return net.key_label[net.state_keys[p]]; };
      std::sort(order.begin(), order.end(), [&](int32_t p, int32_t q) {
        if (label(p) != label(q)) return label(p) < label(q);
        if (state_length[p] != state_length[q]) return state_length[p] < state_length[q];
        const int64_t u = v - state_length[p];
        return ranks[u * S + state_source[p]] < ranks[u * S + state_source[q]];
      });
      for (size_t i = 0; i < order.size(); ++i) ranks[v * S + order[i]] = static_cast<int32_t>(i);
    }
    if (v == T) break;
    const double* start = work.start_w + (work.start_rows == 1 ? 0 : v) * work.Qp;
    double* g = work.g + v * work.Kp;
    for (int64_t k = 0; k < K; ++k) {
      double best = kMinusInfinity;
      int32_t from = 0;
      for (int64_t i = net.key_arcs[k]; i < net.key_arcs[k + 1]; ++i) {
        const int32_t p = net.arc_source[i];
        const double x = a[p] + start[net.arc_start[i]];
        if (x > best || (x == best && x > kMinusInfinity && ranks[v * S + p] < ranks[v * S + from])) {
          best = x;
          from = p;
        }
      }
      g[k] = best;
      source[v * K + k] = from;
    }
    if (additive) additive->start(v, g, work.a_scale[v]);
  }
  if (!work.alive[T]) return Filled::kNothing;
  return fine ? Filled::kFine : Filled::kDoubtful;
}

}  // namespace scansion
