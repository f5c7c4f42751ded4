// Exact inference on segment lattices of any order (a chain of any order is the case M = 1), paper 001.
//
// On the pattern automaton, with states p, arcs (p, y), Psi the log score of an arc on segment [u, v):
//   a[v][p'] = sum_{d <= M} sum_{(p, y): next(p, y) = p'} exp(Psi(v-d, v, p.y)) a[v-d][p],   a[0][initial] = 1
//   b[u][p]  = sum_{d <= M} sum_y exp(Psi(u, u+d, p.y)) b[u+d][next(p, y)],                  b[T] = 1
//   P(u, v, arc) = a[u][p] exp(Psi(u, v, p.y)) b[v][next(p, y)] / Z
// Departs from the paper in two ways. The backward pass runs on the forward states (see docs/notation.md). And arcs
// with the same target and the same dependence on the extent (u, v) are summed once per start u into a key:
//   g[u][k] = sum_{arcs of k} a[u][p] exp(start part),   a[v][p'] = sum_d sum_{k -> p'} g[v-d][k] exp(W_k(v-d, v))
// so that the loop over lengths touches K keys, not S x L arcs.
//
// O(T (arcs + M K)) time; O(T (S + K)) memory beside the scores.
//
// Scaling and its guard are those of chain.hpp: rows are shifted by their maximum, positions by a power of
// two, log scales are kept as exact pairs; "mixing" here means that all label patterns longer than one depend
// on the start alone and are of bounded range, so that no lost state could matter. Rows are sums of several scores here:
// those that doubles cannot add (w.tame) are for exact.hpp.
#pragma once

#include "segment_sink.hpp"

namespace scansion::SCANSION_ISA {

// sums over the sources of each key; out (Kp,)
inline void key_sums(const TopologyView& n, const SegmentWork& w, const double* state, const double* weight,
                     double* out) {
  for (int64_t k = 0; k < w.K; ++k) {
    double x = 0.0;
    for (int64_t i = n.key_arcs[k]; i < n.key_arcs[k + 1]; ++i) x += state[n.arc_source[i]] * weight[n.arc_start[i]];
    out[k] = x;
  }
  for (int64_t k = w.K; k < w.Kp; ++k) out[k] = 0.0;
}

inline void state_sums(const TopologyView& n, const SegmentWork& w, const double* key, double* out) {
  for (int64_t p = 0; p < w.S; ++p) {
    double x = 0.0;
    for (int64_t k = n.state_keys[p]; k < n.state_keys[p + 1]; ++k) x += key[k];
    out[p] = x;
  }
  for (int64_t p = w.S; p < w.Sp; ++p) out[p] = 0.0;
}

// the other way: what keys bring to the states that they leave; out (Sp,)
inline void source_sums(const TopologyView& n, const SegmentWork& w, const double* key, const double* weight,
                        double* out) {
  row_zero(out, w.Sp);
  for (int64_t k = 0; k < w.K; ++k)
    for (int64_t i = n.key_arcs[k]; i < n.key_arcs[k + 1]; ++i) out[n.arc_source[i]] += weight[n.arc_start[i]] * key[k];
}

inline void exponentiate_starts(SegmentWork& w) {
  for (int64_t r = 0; r < w.start_rows; ++r) RowSweep::row_exp_fast(w.start_w + r * w.Qp, w.Qp, w.start_top[r]);
}

// Something finite may have vanished from x, all factors having been <= 1: does any weight depend on it?
inline bool too_small(const double* x, int64_t n, int64_t except) {
  for (int64_t j = 0; j < n; ++j)
    if (x[j] < kTiny && j != except) return true;
  return false;
}

// w.state are the sums of w.h at u: false if it, or something finite in it, may have vanished.
inline bool sources_kept(const SegmentWork& w, int64_t u, bool watch, bool lossless) {
  if (!(row_sum(w.state, w.Sp) > kTiny)) return false;
  if (!watch) return true;
  lossless = lossless && row_smallest(w.h, w.Kp) * exp_scalar(start_low(w, u)) > kNoUnderflow;
  return lossless || !too_small(w.state, w.S, -1);
}

// From w.state to the keys that lead there: b (Kp,), rescaled; w.b_scale[u] grows by that and by the start's.
inline void step_back(const TopologyView& n, SegmentWork& w, int64_t u, double* b) {
  const int x = exponent_of(row_sum(w.state, w.Sp));
  row_scale(w.state, w.Sp, two_to(-x));
  add(w.b_scale[u], start_top(w, u));
  add(w.b_scale[u], x * kLn2);
  for (int64_t k = 0; k < w.K; ++k) b[k] = w.state[n.key_target[k]];
  for (int64_t k = w.K; k < w.Kp; ++k) b[k] = 0.0;
}

// Forward, linear space; w.start_w holds exponentials. False: use the log-space sweep.
inline bool segment_forward(const SegmentView& s, const TopologyView& n, SegmentWork& w, Scale& log_z) {
  const int64_t T = s.length, M = s.max_length;
  const RowSweep sweep{s, n, w};
  const bool watch = !w.mixing;
  row_zero(w.a, w.Sp);
  w.a[n.initial] = 1.0;
  w.a_scale[0] = Scale();
  w.alive[0] = 1;
  for (int64_t v = 0;; ++v) {
    double* a = w.a + v * w.Sp;
    if (v > 0) {
      const int64_t longest = M < v ? M : v;
      Heaviest heaviest(w.a_scale[v - 1]);
      if (w.cache && w.alive[v - 1]) sweep.fill_cache(v - 1);
      row_zero(w.inside_c, w.Cp);
      for (int64_t d = 1; d <= longest; ++d) {
        const int64_t u = v - d;
        if (w.inside_x) row_add(w.inside_c, w.inside_x + u * w.Cp, w.Cp);
        w.row_top[d - 1] = kMinusInfinity;
        if (!w.alive[u]) continue;
        sweep.compute(u, d, w.inside_c, watch);
        if (w.row_top[d - 1] > kMinusInfinity) w.row_scale[d - 1] = heaviest.meet(w.g_scale[u], w.row_top[d - 1]);
      }
      if (!(w.tame && heaviest.fits())) return w.tame = false;
      w.a_scale[v] = heaviest.scale;
      w.alive[v] = heaviest.top > kMinusInfinity;
      if (!w.alive[v]) {
        row_zero(a, w.Sp);
        if (v == T) return false;
        continue;
      }
      row_zero(w.h, w.Kp);
      bool lossless = true;
      for (int64_t d = 1; d <= longest; ++d) {
        const int64_t u = v - d;
        if (!(w.row_top[d - 1] > kMinusInfinity)) continue;
        const double e = difference(w.row_scale[d - 1], heaviest.scale);
        if (watch && w.row_low[d - 1] - w.row_top[d - 1] + e + w.g_low[u] < kLogNoUnderflow) lossless = false;
        if (e < kExpFloor) continue;
        const Vec f = splat(std::exp(e));
        const double* x = sweep.weights(u, d);
        const double* g = w.g + u * w.Kp;
        for (int64_t k = 0; k < w.Kp; k += kLanes) store(w.h + k, muladd(load(g + k) * f, load(x + k), load(w.h + k)));
      }
      state_sums(n, w, w.h, a);
      const double sum = row_sum(a, w.Sp);
      if (!(sum > kTiny)) return false;
      if (!lossless && too_small(a, w.S, n.initial)) return false;
      const int x = exponent_of(sum);
      row_scale(a, w.Sp, two_to(-x));
      add(w.a_scale[v], x * kLn2);
    }
    if (v == T) break;
    double* g = w.g + v * w.Kp;
    key_sums(n, w, a, start_row(w, v), g);
    const double sum = row_sum(g, w.Kp);
    if (!(sum > kTiny)) return false;
    if (watch && !(row_smallest(a, w.Sp) * exp_scalar(start_low(w, v)) > kNoUnderflow) && too_small(g, w.K, -1))
      return false;
    const int x = exponent_of(sum);
    row_scale(g, w.Kp, two_to(-x));
    w.g_low[v] = watch ? std::log(row_smallest(g, w.Kp)) : 0.0;
    w.g_scale[v] = w.a_scale[v];
    add(w.g_scale[v], start_top(w, v));
    add(w.g_scale[v], x * kLn2);
  }
  log_z = w.a_scale[T];
  add(log_z, std::log(row_sum(w.a + T * w.Sp, w.Sp)));
  return true;
}

// posteriors of the arcs that leave u, by start class: a[u][p] exp(start part) H[u][key] * factor
inline void start_posteriors(const TopologyView& n, const SegmentWork& w, const double* a, const double* weight,
                             const double* h, double factor, double* out) {
  row_zero(out, w.Qp);
  for (int64_t k = 0; k < w.K; ++k) {
    const double x = h[k] * factor;
    if (x == 0.0) continue;
    for (int64_t i = n.key_arcs[k]; i < n.key_arcs[k + 1]; ++i)
      out[n.arc_start[i]] += a[n.arc_source[i]] * weight[n.arc_start[i]] * x;
  }
}

// Backward and posteriors, linear space, after segment_forward. False: use the log-space sweep.
inline bool segment_backward(const SegmentView& s, const TopologyView& n, SegmentWork& w, const Scale& log_z,
                             const SegmentSink& sink) {
  const int64_t T = s.length, M = s.max_length;
  const RowSweep sweep{s, n, w};
  const bool watch = !w.mixing;
  sink.open();
  for (int64_t k = 0; k < w.Kp; ++k) w.b[T * w.Kp + k] = k < w.K ? 1.0 : 0.0;
  w.b_scale[T] = Scale();
  double b_low = 0.0;  // log of the smallest positive b met so far
  for (int64_t u = T - 1; u >= 0; --u) {
    const int64_t longest = M < T - u ? M : T - u;
    Heaviest heaviest(w.b_scale[u + 1]);
    if (w.alive[u]) {
      row_zero(w.inside_c, w.Cp);
      for (int64_t d = 1; d <= longest; ++d) {
        const int64_t v = u + d;
        if (w.inside_x) row_add(w.inside_c, w.inside_x + (v - 1) * w.Cp, w.Cp);
        w.row_top[d - 1] = kMinusInfinity;
        if (!w.alive[v]) continue;
        sweep.compute(u, d, w.inside_c, watch);
        if (w.row_top[d - 1] > kMinusInfinity) w.row_scale[d - 1] = heaviest.meet(w.b_scale[v], w.row_top[d - 1]);
      }
      if (!(w.tame && heaviest.fits())) return w.tame = false;
    }
    w.b_scale[u] = heaviest.scale;
    w.alive[u] = heaviest.top > kMinusInfinity;
    if (!w.alive[u]) continue;

    const double log_factor = log_ratio(w.g_scale[u], heaviest.scale, log_z);
    if (log_factor > 600.0) return false;
    const Vec factor = splat(exp_scalar(log_factor));
    const double* g = w.g + u * w.Kp;
    row_zero(w.h, w.Kp);
    bool lossless = true;
    for (int64_t d = 1; d <= longest; ++d) {
      const int64_t v = u + d;
      if (!(w.row_top[d - 1] > kMinusInfinity)) continue;
      const double e = difference(w.row_scale[d - 1], heaviest.scale);
      if (watch && w.row_low[d - 1] - w.row_top[d - 1] + e + b_low < kLogNoUnderflow) lossless = false;
      if (e < kExpFloor) continue;
      const Vec f = splat(std::exp(e));
      const double* x = sweep.weights(u, d);
      const double* b = w.b + v * w.Kp;
      for (int64_t k = 0; k < w.Kp; k += kLanes) {
        const Vec y = load(x + k) * load(b + k) * f;
        store(w.h + k, load(w.h + k) + y);
        store(w.q + k, load(g + k) * y * factor);
      }
      sink.segment(u, d, w.q);
    }
    const double* weight = start_row(w, u);
    source_sums(n, w, w.h, weight, w.state);
    if (!sources_kept(w, u, watch, lossless)) return false;
    if (n.start_classes && sink.answer.starts) {
      // g was rescaled after its sums were taken: g_scale - a_scale holds by how much
      const double back = log_ratio(w.a_scale[u], heaviest.scale, log_z) + start_top(w, u);
      if (back > 600.0) return false;
      start_posteriors(n, w, w.a + u * w.Sp, weight, w.h, exp_scalar(back), w.start_q);
      sink.starts(u, w.start_q);
    }
    step_back(n, w, u, w.b + u * w.Kp);
    if (watch) {
      const double low = std::log(row_smallest(w.state, w.Sp));
      b_low = low < b_low ? low : b_low;
    }
  }
  sink.close();
  return true;
}

}  // namespace scansion::SCANSION_ISA
