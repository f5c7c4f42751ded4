// Best scores of four chains of any order, side by side in the lanes of a vector: what fill_best_scores (viterbi.hpp)
// finds for each of them, number by number. Chains share the topology and the scores of label patterns that do not
// depend on positions, so that an index is read once for all four.
#pragma once

#include "segment_rows.hpp"

namespace scansion::SCANSION_ISA {

inline int64_t best_lanes_workspace(const TopologyView& n) {
  return kLanes * (n.nodes + 2 * n.keys + n.extent_classes);
}

// lanes: segments of length 1, prepared; scratch of best_lanes_workspace doubles
inline void fill_best_lanes(const TopologyView& n, BestLane* lanes, double* scratch) {
  constexpr int64_t W = kLanes;
  const int64_t S = n.states, Sp = padded(S), K = n.keys, N = n.nodes, C = n.extent_classes;
  double *node = scratch, *g = node + N * W, *rows = g + K * W;  // rows: by extent class, or by key
  const Vec none = splat(kMinusInfinity);
  const double* start = start_row(*lanes[0].work, 0);
  int64_t T = 0;
  bool open[W];
  for (int64_t p = 0; p < Sp; ++p) store(node + p * W, p == n.initial ? splat(0.0) : none);
  for (int64_t i = 0; i < W; ++i) {
    SegmentWork& w = *lanes[i].work;
    T = lanes[i].view->length > T ? lanes[i].view->length : T;
    for (int64_t p = 0; p < Sp; ++p) w.a[p] = node[p * W];
    w.a_scale[0] = Scale();
    w.alive[0] = 1;
    open[i] = true;
    lanes[i].filled = Filled::kFine;
  }
  const auto close = [&](int64_t i, Filled filled) {
    open[i] = false;
    lanes[i].filled = filled;
  };
  for (int64_t v = 1; v <= T; ++v) {
    // the best source of each key
    for (int64_t i = Sp; i < N; ++i)
      store(node + i * W, max(load(node + n.node_parts[2 * i] * W), load(node + n.node_parts[2 * i + 1] * W)));
    for (int64_t k = 0; k < K; ++k) {
      Vec best = none;
      const int64_t last = n.key_arcs[k + 1];
      for (int64_t i = n.key_arcs[k]; i < last; ++i)
        best = max(best, load(node + n.arc_source[i] * W) + splat(start[n.arc_start[i]]));
      store(g + k * W, best);
    }
    // scores of position v - 1; lanes that are closed go on with zeros
    bool keyed = false, by_key[W];
    const double* row[W];
    for (int64_t i = 0; i < W; ++i) {
      row[i] = nullptr;
      if (v > lanes[i].view->length) open[i] = false;
      if (!open[i]) continue;
      by_key[i] = segment_end_rows(*lanes[i].view, n, *lanes[i].work, v);
      keyed = keyed || by_key[i];
      if (!lanes[i].work->tame)
        close(i, Filled::kLost);
      else if (!(lanes[i].work->row_top[0] > kMinusInfinity))
        close(i, Filled::kNothing);
      else
        row[i] = lanes[i].work->rows;
    }
    for (int64_t i = 0; i < W; ++i)
      for (int64_t c = 0; c < (keyed ? K : C); ++c)
        rows[c * W + i] = !row[i] ? 0.0 : row[i][keyed && !by_key[i] ? n.key_extent[c] : c];
    Vec top = none;
    for (int64_t p = 0; p < S; ++p) {
      Vec best = none;
      for (int64_t k = n.state_keys[p]; k < n.state_keys[p + 1]; ++k)
        best = max(best, load(g + k * W) + load(rows + (keyed ? k : n.key_extent[k]) * W));
      store(node + p * W, best);
      top = max(top, best);
    }
    double tops[W];
    store(tops, top);
    for (int64_t i = 0; i < W; ++i) {
      if (!open[i]) {
        tops[i] = 0.0;
        continue;
      }
      SegmentWork& w = *lanes[i].work;
      w.alive[v] = tops[i] > kMinusInfinity;
      w.a_scale[v] = w.a_scale[v - 1];
      if (!w.alive[v])
        close(i, Filled::kNothing);
      else if (!(std::abs(tops[i]) <= kFar))
        close(i, Filled::kLost);
      if (open[i])
        add(w.a_scale[v], tops[i]);
      else
        tops[i] = 0.0;
    }
    const Vec shift = load(tops), zero = splat(0.0);
    Vec low = zero;
    for (int64_t p = 0; p < S; ++p) {
      const Vec a = load(node + p * W) - shift;
      low = min(low, select_greater(a, none, a, zero));
      store(node + p * W, a);
    }
    double lows[W];
    store(lows, low);
    for (int64_t i = 0; i < W; ++i) {
      if (!open[i]) continue;
      if (lows[i] < -kFar) lanes[i].filled = Filled::kDoubtful;
      double* a = lanes[i].work->a + v * Sp;
      for (int64_t p = 0; p < Sp; ++p) a[p] = node[p * W + i];
    }
  }
}

}  // namespace scansion::SCANSION_ISA
