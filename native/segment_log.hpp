// The sweeps of segment.hpp in log space: the escape where scaled linear space would lose something.
#pragma once

#include "segment_sink.hpp"

namespace scansion::SCANSION_ISA {

inline double class_score(const TopologyView& n, const double* row, bool keyed, int64_t k) {
  return keyed ? row[k] : row[n.key_extent[k]];
}

inline double log_add_all(const double* x, int64_t count) {
  double m = kMinusInfinity;
  for (int64_t i = 0; i < count; ++i) m = x[i] > m ? x[i] : m;
  if (!(m > kMinusInfinity)) return m;
  double s = 0.0;
  for (int64_t i = 0; i < count; ++i) s += std::exp(x[i] - m);
  return m + std::log(s);
}

inline double log_add(double x, double y) {
  const double m = x > y ? x : y;
  return m > kMinusInfinity ? m + std::log1p(std::exp((x > y ? y : x) - m)) : m;
}

// node_sums and spread of segment.hpp
inline const double* node_log_sums(const TopologyView& n, const SegmentWork& w, const double* state, double* node) {
  if (w.N == w.Sp) return state;
  for (int64_t p = 0; p < w.Sp; p += kLanes) store(node + p, load(state + p));
  for (int64_t i = w.Sp; i < w.N; ++i) node[i] = log_add(node[n.node_parts[2 * i]], node[n.node_parts[2 * i + 1]]);
  return node;
}
inline void log_spread(const TopologyView& n, const SegmentWork& w, double* node) {
  for (int64_t i = w.N - 1; i >= w.Sp; --i)
    for (int64_t part = 0; part < 2; ++part) {
      double& x = node[n.node_parts[2 * i + part]];
      x = log_add(x, node[i]);
    }
}

// log sum over the arcs of each key of a[source] + start score; out (K,)
inline void key_log_sums(const TopologyView& n, const SegmentWork& w, const double* state, const double* score,
                         double* out) {
  const double* node = node_log_sums(n, w, state, w.state);
  for (int64_t k = 0; k < w.K; ++k) {
    double m = kMinusInfinity, s = 0.0;
    for (int64_t i = n.key_arcs[k]; i < n.key_arcs[k + 1]; ++i) {
      const double x = node[n.arc_source[i]] + score[n.arc_start[i]];
      m = x > m ? x : m;
    }
    if (m > kMinusInfinity) {
      for (int64_t i = n.key_arcs[k]; i < n.key_arcs[k + 1]; ++i)
        s += std::exp(node[n.arc_source[i]] + score[n.arc_start[i]] - m);
      m += std::log(s);
    }
    out[k] = m;
  }
}

// Forward in log space. a[v] and g[v] are logarithms relative to a_scale[v]; w.start_w holds scores.
inline Filled segment_log_forward(const SegmentView& s, const TopologyView& n, SegmentWork& w, Scale& log_z) {
  const int64_t T = s.length, M = s.max_length;
  const RowSweep sweep{s, n, w};
  LogRows logs;
  for (int64_t p = 0; p < w.Sp; ++p) w.a[p] = p == n.initial ? 0.0 : kMinusInfinity;
  w.a_scale[0] = Scale();
  w.alive[0] = 1;
  for (int64_t v = 0;; ++v) {
    double* a = w.a + v * w.Sp;
    if (v > 0) {
      const int64_t longest = M < v ? M : v;
      const bool keyed = sweep.by_key(v);
      Heaviest heaviest(w.a_scale[v - 1]);
      row_zero(w.inside_c, w.Cp);
      for (int64_t d = 1; d <= longest; ++d) {
        const int64_t u = v - d;
        if (w.inside_x) row_add(w.inside_c, w.inside_x + u * w.Cp, w.Cp);
        w.row_top[d - 1] = kMinusInfinity;
        if (!w.alive[u]) continue;
        sweep.compute(u, d, w.inside_c, false);
        if (w.row_top[d - 1] > kMinusInfinity) w.row_scale[d - 1] = heaviest.meet(w.a_scale[u], w.row_top[d - 1]);
      }
      if (!(w.tame && heaviest.fits())) return Filled::kLost;
      // use(key, log of what comes in) of all segments that end at v
      const auto each = [&](const auto& use) {
        for (int64_t d = 1; d <= longest; ++d) {
          if (!(w.row_top[d - 1] > kMinusInfinity)) continue;
          const double by = difference(w.row_scale[d - 1], heaviest.scale), top = w.row_top[d - 1];
          const double* g = w.g + (v - d) * w.Kp;
          const double* row = sweep.row(v - d, d);
          for (int64_t k = 0; k < w.K; ++k) use(k, g[k] + (class_score(n, row, keyed, k) - top) + by);
        }
      };
      for (int64_t k = 0; k < w.K; ++k) w.h[k] = kMinusInfinity;
      each([&](int64_t k, double x) { w.h[k] = x > w.h[k] ? x : w.h[k]; });
      row_zero(w.q, w.Kp);
      each([&](int64_t k, double x) {
        if (w.h[k] > kMinusInfinity) w.q[k] += std::exp(x - w.h[k]);
      });
      for (int64_t k = 0; k < w.K; ++k)
        if (w.h[k] > kMinusInfinity) w.h[k] += std::log(w.q[k]);
      for (int64_t p = 0; p < w.S; ++p)
        a[p] = log_add_all(w.h + n.state_keys[p], n.state_keys[p + 1] - n.state_keys[p]);
      for (int64_t p = w.S; p < w.Sp; ++p) a[p] = kMinusInfinity;
      w.a_scale[v] = heaviest.scale;
      const double shift = logs.settle(a, nullptr, w.S);
      w.alive[v] = shift > kMinusInfinity;
      if (w.alive[v]) add(w.a_scale[v], shift);
    }
    if (v == T) break;
    if (w.alive[v]) key_log_sums(n, w, a, start_row(w, v), w.g + v * w.Kp);
  }
  if (!w.alive[T]) return Filled::kNothing;
  log_z = w.a_scale[T];
  add(log_z, log_add_all(w.a + T * w.Sp, w.S));
  return logs.kept();
}

// Backward and posteriors in log space, after segment_log_forward. False: digits would be lost.
inline bool segment_log_backward(const SegmentView& s, const TopologyView& n, SegmentWork& w, const Scale& log_z,
                                 const SegmentSink& sink) {
  const int64_t T = s.length, M = s.max_length;
  const RowSweep sweep{s, n, w};
  LogRows logs;
  sink.open();
  for (int64_t k = 0; k < w.K; ++k) w.b[T * w.Kp + k] = 0.0;
  w.b_scale[T] = Scale();
  for (int64_t u = T - 1; u >= 0; --u) {
    Heaviest heaviest(w.b_scale[u + 1]);
    w.b_scale[u] = heaviest.scale;
    if (!w.alive[u]) continue;
    const int64_t longest = M < T - u ? M : T - u;
    row_zero(w.inside_c, w.Cp);
    for (int64_t d = 1; d <= longest; ++d) {
      const int64_t v = u + d;
      if (w.inside_x) row_add(w.inside_c, w.inside_x + (v - 1) * w.Cp, w.Cp);
      w.row_top[d - 1] = kMinusInfinity;
      if (!w.alive[v]) continue;
      sweep.compute(u, d, w.inside_c, false);
      if (w.row_top[d - 1] > kMinusInfinity) w.row_scale[d - 1] = heaviest.meet(w.b_scale[v], w.row_top[d - 1]);
    }
    if (!heaviest.fits()) return false;
    // use(key, log of what follows) of all segments that begin at u; ready(length) after each length
    const auto each = [&](const auto& use, const auto& ready) {
      for (int64_t d = 1; d <= longest; ++d) {
        if (!(w.row_top[d - 1] > kMinusInfinity)) continue;
        const double by = difference(w.row_scale[d - 1], heaviest.scale), top = w.row_top[d - 1];
        const bool keyed = sweep.by_key(u + d);
        const double* b = w.b + (u + d) * w.Kp;
        const double* row = sweep.row(u, d);
        for (int64_t k = 0; k < w.K; ++k) use(k, (class_score(n, row, keyed, k) - top) + b[k] + by);
        ready(d);
      }
    };
    for (int64_t k = 0; k < w.K; ++k) w.h[k] = kMinusInfinity;
    each([&](int64_t k, double x) { w.h[k] = x > w.h[k] ? x : w.h[k]; }, [](int64_t) {});
    const double base = log_ratio(w.a_scale[u], heaviest.scale, log_z);
    const double* g = w.g + u * w.Kp;
    double* sums = w.b + u * w.Kp;  // not read before it is written below
    row_zero(sums, w.Kp);
    row_zero(w.q, w.Kp);
    each(
        [&](int64_t k, double x) {
          if (w.h[k] > kMinusInfinity) sums[k] += std::exp(x - w.h[k]);
          w.q[k] = x > kMinusInfinity ? std::exp(g[k] + x + base) : 0.0;
        },
        [&](int64_t d) { sink.segment(u, d, w.q); });
    for (int64_t k = 0; k < w.K; ++k)
      if (w.h[k] > kMinusInfinity) w.h[k] += std::log(sums[k]);

    const double* score = start_row(w, u);
    const double* a = node_log_sums(n, w, w.a + u * w.Sp, w.state_sum);
    double* top = w.state;
    for (int64_t i = 0; i < w.N; ++i) top[i] = kMinusInfinity;
    row_zero(w.start_q, w.Qp);
    for (int64_t k = 0; k < w.K; ++k)
      for (int64_t i = n.key_arcs[k]; i < n.key_arcs[k + 1]; ++i) {
        const double x = score[n.arc_start[i]] + w.h[k];
        double& t = top[n.arc_source[i]];
        t = x > t ? x : t;
        if (n.start_classes) w.start_q[n.arc_start[i]] += std::exp(a[n.arc_source[i]] + x + base);
      }
    if (n.start_classes) sink.starts(u, w.start_q);
    double* mass = w.state_sum;
    row_zero(mass, w.N);
    for (int64_t k = 0; k < w.K; ++k)
      for (int64_t i = n.key_arcs[k]; i < n.key_arcs[k + 1]; ++i) {
        const double t = top[n.arc_source[i]];
        if (t > kMinusInfinity) mass[n.arc_source[i]] += std::exp(score[n.arc_start[i]] + w.h[k] - t);
      }
    for (int64_t i = 0; i < w.N; ++i)
      if (top[i] > kMinusInfinity) top[i] += std::log(mass[i]);
    log_spread(n, w, top);
    const double shift = logs.settle(top, nullptr, w.S);
    w.alive[u] = shift > kMinusInfinity;
    if (!w.alive[u]) continue;
    w.b_scale[u] = heaviest.scale;
    add(w.b_scale[u], shift);
    for (int64_t k = 0; k < w.K; ++k) w.b[u * w.Kp + k] = top[n.key_target[k]];
  }
  sink.close();
  return logs.kept() == Filled::kFine;
}

}  // namespace scansion::SCANSION_ISA
