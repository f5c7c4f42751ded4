// Exact inference on segment lattices of any order (a chain of any order is the case M = 1), paper 001.
//
// On the pattern automaton, with states p, arcs (p, y), Psi the log score of an arc on segment [u, v):
//   a[v][p'] = sum_{d <= M} sum_{(p, y): next(p, y) = p'} exp(Psi(v-d, v, p.y)) a[v-d][p],   a[0][initial] = 1
//   b[u][p]  = sum_{d <= M} sum_y exp(Psi(u, u+d, p.y)) b[u+d][next(p, y)],                  b[T] = 1
//   P(u, v, arc) = a[u][p] exp(Psi(u, v, p.y)) b[v][next(p, y)] / Z
// Departs from the paper in two ways. The backward pass runs on the forward states (see models.md). And arcs
// with the same target and the same dependence on the extent (u, v) are summed once per start u into a key:
//   g[u][k] = sum_{arcs of k} a[u][p] exp(start part),   a[v][p'] = sum_d sum_{k -> p'} g[v-d][k] exp(W_k(v-d, v))
// so that the loop over lengths touches K keys, not S x L arcs.
//
// O(T (arcs + M K)) time; O(T (S + K)) memory beside the scores.
//
// Scaling and its guard are those of chain.hpp: rows are shifted by their maximum, positions by a power of
// two, log scales are kept as exact pairs; "mixing" here means that all label patterns longer than one depend
// on the start alone and are of bounded range, so that no lost state could matter.
#pragma once

#include "chain.hpp"

namespace scansion::SCANSION_ISA {

inline void row_add(double* x, const double* y, int64_t n) {
  for (int64_t j = 0; j < n; j += kLanes) store(x + j, load(x + j) + load(y + j));
}
inline void row_zero(double* x, int64_t n) {
  for (int64_t j = 0; j < n; ++j) x[j] = 0.0;
}
inline double row_lowest_finite(const double* x, int64_t n) {
  const Vec none = splat(-kInfinity), top = splat(kInfinity);
  Vec m = top;
  for (int64_t j = 0; j < n; j += kLanes) {
    const Vec y = load(x + j);
    m = min(m, select_greater(y, none, y, top));
  }
  return horizontal_min(m);
}

struct Carver {
  double* base;
  int64_t used = 0;
  double* take(int64_t n) {
    double* p = base ? base + used : nullptr;
    used += n;
    return p;
  }
};

// Lays out the block; with base = null only counts the doubles that are needed.
inline int64_t carve_segment_work(const SegmentView& s, const TopologyView& n, double* base, SegmentWork& w) {
  const int64_t T = s.length, M = s.max_length;
  w.S = n.states, w.K = n.keys, w.C = n.extent_classes, w.Q = n.start_classes + 1;
  w.Sp = padded(w.S), w.Kp = padded(w.K), w.Cp = padded(w.C), w.Qp = padded(w.Q);
  w.start_rows = n.start_classes == 0 || s.starts_stride == 0 ? 1 : T;
  w.row_stride = w.Cp > w.Kp ? w.Cp : w.Kp;
  Carver c{base};
  if (s.start) w.start_x = c.take((s.start_stride ? T : 1) * w.Cp);
  if (s.inside) w.inside_x = c.take(T * w.Cp);
  if (s.end) w.end_x = c.take(T * w.Cp);
  if (s.by_length) w.length_x = c.take(M * w.Cp);
  w.start_w = c.take(w.start_rows * w.Qp);
  w.start_top = c.take(w.start_rows);
  w.start_low = c.take(w.start_rows);
  w.a = c.take((T + 1) * w.Sp);
  w.g = c.take((T + 1) * w.Kp);
  w.b = c.take((T + 1) * w.Kp);
  w.a_scale = reinterpret_cast<Scale*>(c.take(2 * (T + 1)));
  w.g_scale = reinterpret_cast<Scale*>(c.take(2 * (T + 1)));
  w.b_scale = reinterpret_cast<Scale*>(c.take(2 * (T + 1)));
  w.g_low = c.take(T + 1);
  w.alive = reinterpret_cast<uint8_t*>(c.take(T / 8 + 1));
  w.rows = c.take(M * w.row_stride);
  if (s.full && n.end_classes == 0) {
    w.cache = c.take(T * M * w.Cp);
    w.cache_top = c.take(T * M);
    w.cache_low = c.take(T * M);
  }
  w.row_top = c.take(M);
  w.row_low = c.take(M);
  w.h = c.take(w.Kp);
  w.x = c.take(w.row_stride);
  w.q = c.take(w.Kp);
  w.state = c.take(w.Sp);
  w.state_sum = c.take(w.Sp);
  w.sum_c = c.take(w.Cp);
  w.inside_c = c.take(w.Cp);
  w.start_q = c.take(w.Qp);
  w.tail = c.take(padded(n.end_classes));
  w.start_e = c.take((T + 1) * w.Cp);
  w.end_e = c.take((T + 1) * w.Cp);
  w.length_e = c.take(M * w.Cp);
  return c.used;
}

// part[r, pattern] -> out[r, class], each class with the scores of its suffix classes added
inline void gather_classes(const double* part, int64_t rows, int64_t patterns, const int32_t* pattern,
                           const int32_t* parent, int64_t classes, int64_t stride, double pad, double* out) {
  for (int64_t r = 0; r < rows; ++r) {
    const double* from = part + r * patterns;
    double* to = out + r * stride;
    double suffix = 0.0;  // neighbours often have one parent
    int32_t at = -1;
    for (int64_t c = 0; c < classes; ++c) {
      if (parent[c] != at) {
        at = parent[c];
        suffix = at >= 0 ? to[at] : 0.0;
      }
      to[c] = (pattern[c] >= 0 ? from[pattern[c]] : 0.0) + suffix;
    }
    for (int64_t c = classes; c < stride; ++c) to[c] = pad;
  }
}

inline void prepare_segment(const SegmentView& s, const TopologyView& n, double* block, SegmentWork& w) {
  carve_segment_work(s, n, block, w);
  const int64_t T = s.length, M = s.max_length, P = n.patterns;
  const auto extents = [&](const double* part, int64_t rows, double* out) {
    gather_classes(part, rows, s.columns, n.extent_pattern, n.extent_parent, w.C, w.Cp, 0.0, out);
  };
  if (w.start_x) extents(s.start, s.start_stride ? T : 1, w.start_x);
  if (w.inside_x) extents(s.inside, T, w.inside_x);
  if (w.end_x) extents(s.end, T, w.end_x);
  if (w.length_x) extents(s.by_length, M, w.length_x);

  double worst = 0.0;
  for (int64_t r = 0; r < w.start_rows; ++r) {
    double* row = w.start_w + r * w.Qp;
    if (n.start_classes)
      gather_classes(s.starts + r * P, 1, P, n.start_pattern, n.start_parent, n.start_classes, w.Qp, -kInfinity, row);
    else
      for (int64_t q = 0; q < w.Qp; ++q) row[q] = -kInfinity;
    row[w.Q - 1] = n.bare_arcs ? 0.0 : -kInfinity;
    const double top = row_max(row, w.Qp);
    w.start_top[r] = top > -kInfinity ? top : 0.0;
    w.start_low[r] = row_lowest_finite(row, w.Qp) - w.start_top[r];
    for (int64_t q = 0; q < w.Q - (n.bare_arcs ? 0 : 1); ++q) worst = top - row[q] > worst ? top - row[q] : worst;
  }
  // a state that lost its weight differs from the heaviest one for at most `longest` segments
  w.mixing = n.label_extents && n.end_classes == 0 && worst * static_cast<double>(n.longest) <= 460.0;
}

inline const double* start_row(const SegmentWork& w, int64_t u) {
  return w.start_w + (w.start_rows == 1 ? 0 : u) * w.Qp;
}
inline double start_top(const SegmentWork& w, int64_t u) { return w.start_top[w.start_rows == 1 ? 0 : u]; }
inline double start_low(const SegmentWork& w, int64_t u) { return w.start_low[w.start_rows == 1 ? 0 : u]; }

// Scores of the extent classes on segment [u, u+d), without the inside part's padding: row (Cp,), padded with
// -inf. inside: (Cp,) the sum of inside_x over the segment. Returns false if no label may have this segment.
inline bool extent_row(const SegmentView& s, const TopologyView& n, const SegmentWork& w, int64_t u, int64_t d,
                       const double* inside, double* row) {
  const int64_t C = w.C, Cp = w.Cp;
  const double* p1 = w.start_x ? w.start_x + (s.start_stride ? u : 0) * Cp : nullptr;
  const double* p2 = w.end_x ? w.end_x + (u + d - 1) * Cp : nullptr;
  const double* p3 = w.length_x ? w.length_x + (d - 1) * Cp : nullptr;
  if (s.full) {
    const double* from = s.full + (u * s.full_stride + d - 1) * s.columns;
    gather_classes(from, 1, s.columns, n.extent_pattern, n.extent_parent, C, Cp, 0.0, row);
  } else if (!w.inside_x) {
    row_zero(row, Cp);
  }
  if (w.inside_x && !s.full)
    for (int64_t c = 0; c < Cp; c += kLanes) store(row + c, load(inside + c));
  else if (w.inside_x)
    row_add(row, inside, Cp);
  if (p1) row_add(row, p1, Cp);
  if (p2) row_add(row, p2, Cp);
  if (p3) row_add(row, p3, Cp);
  bool any = true;
  if (s.runs) {
    any = false;
    const int32_t* run = s.runs + u * n.labels;
    for (int64_t c = 0; c < C; ++c) {
      if (d > run[n.extent_label[c]])
        row[c] = -kInfinity;
      else
        any = true;
    }
  }
  for (int64_t c = C; c < Cp; ++c) row[c] = -kInfinity;
  return any;
}

// The same key by key, with the patterns that end in EOS: for the segments that end the sequence.
inline void final_row(const SegmentView& s, const TopologyView& n, const SegmentWork& w, int64_t u, int64_t d,
                      const double* classes, double* tail, double* row) {
  const int64_t P = s.columns;
  for (int64_t e = 0; e < n.end_classes; ++e) {
    const int64_t z = n.end_pattern[e];
    double x = n.end_parent[e] >= 0 ? tail[n.end_parent[e]] : 0.0;
    if (s.starts) x += s.starts[u * s.starts_stride + z];
    if (z < P) {
      if (s.full) x += s.full[(u * s.full_stride + d - 1) * P + z];
      if (s.inside)
        for (int64_t t = u; t < u + d; ++t) x += s.inside[t * P + z];
      if (s.end) x += s.end[(u + d - 1) * P + z];
      if (s.by_length) x += s.by_length[(d - 1) * P + z];
    }
    tail[e] = x;
  }
  for (int64_t k = 0; k < w.K; ++k)
    row[k] = classes[n.key_extent[k]] + (n.key_end[k] >= 0 ? tail[n.key_end[k]] : 0.0);
  for (int64_t k = w.K; k < w.Kp; ++k) row[k] = -kInfinity;
}

// g + b - z for scales of up to 1e9, to full precision
inline double log_ratio(const Scale& g, const Scale& b, const Scale& z) {
  Scale s = g;
  add(s, b.hi);
  add(s, -z.hi);
  return s.hi + (s.lo + (b.lo - z.lo));
}

// The rows of segments [u, u+d), d = 1..M, in w.rows; row d has w.row_top[d-1] as its maximum (-inf: impossible). Rows are by extent class, or by key where the sequence ends on EOS patterns.
struct RowSweep {
  const SegmentView& s;
  const TopologyView& n;
  SegmentWork& w;

  bool by_key(int64_t v) const { return n.end_classes > 0 && v == s.length; }
  double* row(int64_t u, int64_t d) const {
    return w.cache ? w.cache + (u * s.max_length + d - 1) * w.Cp : w.rows + (d - 1) * w.row_stride;
  }

  void compute(int64_t u, int64_t d, const double* inside, bool want_low) const {
    const int64_t v = u + d;
    if (w.cache) {
      const int64_t at = u * s.max_length + d - 1;
      w.row_top[d - 1] = w.cache_top[at];
      w.row_low[d - 1] = w.cache_low[at];
      return;
    }
    double* r = row(u, d);
    int64_t width = w.Cp;
    bool any = !(s.may_end && !s.may_end[v - 1]);
    if (any) any = extent_row(s, n, w, u, d, inside, by_key(v) ? w.x : r);
    if (any && by_key(v)) {
      final_row(s, n, w, u, d, w.x, w.tail, r);
      width = w.Kp;
    }
    w.row_top[d - 1] = any ? row_max(r, width) : -kInfinity;
    if (want_low) w.row_low[d - 1] = any ? row_lowest_finite(r, width) : kInfinity;
  }

  // All rows that start at u, into the cache: memory is read in order, and each row rests between being written
  // number by number and being read in vectors.
  void fill_cache(int64_t u) const {
    const int64_t longest = s.max_length < s.length - u ? s.max_length : s.length - u;
    row_zero(w.inside_c, w.Cp);
    for (int64_t d = 1; d <= longest; ++d) {
      if (w.inside_x) row_add(w.inside_c, w.inside_x + (u + d - 1) * w.Cp, w.Cp);
      bool any = !(s.may_end && !s.may_end[u + d - 1]);
      if (any) any = extent_row(s, n, w, u, d, w.inside_c, row(u, d));
      w.cache_top[u * s.max_length + d - 1] = any ? 0.0 : -kInfinity;
    }
    for (int64_t d = 1; d <= longest; ++d) {
      const int64_t at = u * s.max_length + d - 1;
      if (w.cache_top[at] < 0.0) continue;
      double* r = row(u, d);
      w.cache_top[at] = row_max(r, w.Cp);
      w.cache_low[at] = row_lowest_finite(r, w.Cp);
      if (w.cache_top[at] > -kInfinity) row_exp_fast(r, w.Cp, w.cache_top[at]);
    }
  }

  // exp(row - top) key by key; x (Kp,) receives it unless the row serves as it is
  const double* weights(int64_t u, int64_t d) const {
    double* r = row(u, d);
    const bool keyed = by_key(u + d);
    if (!w.cache) row_exp_fast(r, keyed ? w.Kp : w.Cp, w.row_top[d - 1]);
    if (keyed || n.identity_keys) return r;
    for (int64_t k = 0; k < w.K; ++k) w.x[k] = r[n.key_extent[k]];
    for (int64_t k = w.K; k < w.Kp; ++k) w.x[k] = 0.0;
    return w.x;
  }

  static void row_exp_fast(double* x, int64_t n, double shift) {
    const Vec m = splat(shift);
    for (int64_t j = 0; j < n; j += kLanes) store(x + j, exp(load(x + j) - m));
  }
};

// sums over the sources of each key; out (Kp,)
inline void key_sums(const TopologyView& n, const SegmentWork& w, const double* state, const double* weight, double* out) {
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

inline void exponentiate_starts(SegmentWork& w) {
  for (int64_t r = 0; r < w.start_rows; ++r) RowSweep::row_exp_fast(w.start_w + r * w.Qp, w.Qp, w.start_top[r]);
}

// Something finite may have vanished from x, all factors having been <= 1: does any weight depend on it?
inline bool too_small(const double* x, int64_t n, int64_t except) {
  for (int64_t j = 0; j < n; ++j)
    if (x[j] < kTiny && j != except) return true;
  return false;
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
      double top = -kInfinity;
      if (w.cache && w.alive[v - 1]) sweep.fill_cache(v - 1);
      row_zero(w.inside_c, w.Cp);
      const Scale& reference = w.a_scale[v - 1];
      for (int64_t d = 1; d <= longest; ++d) {
        const int64_t u = v - d;
        if (w.inside_x) row_add(w.inside_c, w.inside_x + u * w.Cp, w.Cp);
        if (!w.alive[u]) {
          w.row_top[d - 1] = -kInfinity;
          continue;
        }
        sweep.compute(u, d, w.inside_c, watch);
        const double e = w.row_top[d - 1] + difference(w.g_scale[u], reference);
        top = e > top ? e : top;
      }
      w.a_scale[v] = reference;
      w.alive[v] = top > -kInfinity;
      if (!w.alive[v]) {
        row_zero(a, w.Sp);
        if (v == T) return false;
        continue;
      }
      row_zero(w.h, w.Kp);
      bool lossless = true;
      for (int64_t d = 1; d <= longest; ++d) {
        const int64_t u = v - d;
        if (!(w.row_top[d - 1] > -kInfinity)) continue;
        const double e = w.row_top[d - 1] + difference(w.g_scale[u], reference) - top;
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
      add(w.a_scale[v], top);
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

// Turns posteriors of keys on segments into the expectations that were asked for.
struct SegmentSink {
  const SegmentView& s;
  const TopologyView& n;
  SegmentWork& w;
  SegmentAnswer& answer;

  void open() const {
    row_zero(w.start_e, (s.length + 1) * w.Cp);
    row_zero(w.end_e, (s.length + 1) * w.Cp);
    row_zero(w.length_e, s.max_length * w.Cp);
  }

  // classes -> patterns: each class passes what it got on to the class of its suffix
  static void fold(double* c, const int32_t* parent, int64_t classes) {
    double sum = 0.0;  // of neighbours with one parent
    int32_t at = -1;
    for (int64_t i = classes - 1; i >= 0; --i) {
      if (at >= 0 && (parent[i] != at || i == at)) {
        c[at] += sum;
        sum = 0.0;
      }
      at = parent[i];
      sum += c[i];
      if (at < 0) sum = 0.0;
    }
  }
  void emit(double* c, double* out) const {
    fold(c, n.extent_parent, w.C);
    for (int64_t i = 0; i < w.C; ++i)
      if (n.extent_pattern[i] >= 0) out[n.extent_pattern[i]] += c[i];
  }

  // classes are sorted by label
  void add_by_label(const double* c, double* out) const {
    for (int64_t i = 0; i < w.C;) {
      const int32_t y = n.extent_label[i];
      double sum = 0.0;
      for (; i < w.C && n.extent_label[i] == y; ++i) sum += c[i];
      out[y] += sum;
    }
  }

  // q (Kp,): posteriors of the keys on segment [u, u+d)
  void segment(int64_t u, int64_t d, const double* q) const {
    const double* c = q;
    if (!n.identity_keys) {
      row_zero(w.sum_c, w.Cp);
      for (int64_t k = 0; k < w.K; ++k) w.sum_c[n.key_extent[k]] += q[k];
      c = w.sum_c;
    }
    row_add(w.start_e + u * w.Cp, c, w.Cp);
    row_add(w.end_e + (u + d) * w.Cp, c, w.Cp);
    if (answer.by_length) row_add(w.length_e + (d - 1) * w.Cp, c, w.Cp);
    const int64_t at = u * answer.stride + d - 1;
    if (answer.segments)
      add_by_label(c, answer.segments + at * n.labels);
    if (n.end_classes > 0 && u + d == s.length) tail(u, d, q);
    if (answer.full) {
      if (c != w.sum_c)
        for (int64_t i = 0; i < w.C; ++i) w.sum_c[i] = c[i];
      emit(w.sum_c, answer.full + at * s.columns);
    }
  }

  // patterns that end in EOS, on the last segment
  void tail(int64_t u, int64_t d, const double* q) const {
    row_zero(w.tail, n.end_classes);
    for (int64_t k = 0; k < w.K; ++k)
      if (n.key_end[k] >= 0) w.tail[n.key_end[k]] += q[k];
    fold(w.tail, n.end_parent, n.end_classes);
    const int64_t P = s.columns;
    for (int64_t e = 0; e < n.end_classes; ++e) {
      const int64_t z = n.end_pattern[e];
      const double p = w.tail[e];
      if (answer.starts) answer.starts[u * s.starts_stride + z] += p;
      if (z >= P) continue;
      if (answer.full) answer.full[(u * answer.stride + d - 1) * P + z] += p;
      if (answer.inside)
        for (int64_t t = u; t < u + d; ++t) answer.inside[t * P + z] += p;
      if (answer.end) answer.end[(u + d - 1) * P + z] += p;
      if (answer.by_length) answer.by_length[(d - 1) * P + z] += p;
    }
  }

  // classes (Qp,): posteriors of the start classes for segments that start at u; is used up
  void starts(int64_t u, double* classes) const {
    if (!answer.starts) return;
    fold(classes, n.start_parent, n.start_classes);
    double* out = answer.starts + u * s.starts_stride;
    for (int64_t i = 0; i < n.start_classes; ++i) out[n.start_pattern[i]] += classes[i];
  }

  // Sums over positions. A class covers t if more of its segments started up to t than ended before t.
  void close() const {
    const int64_t T = s.length, P = s.columns;
    double* cover = w.inside_c;
    row_zero(cover, w.Cp);
    for (int64_t t = 0; t < T; ++t) {
      for (int64_t c = 0; c < w.C; ++c) {
        const double x = cover[c] + (w.start_e[t * w.Cp + c] - w.end_e[t * w.Cp + c]);
        cover[c] = x > 0.0 ? x : 0.0;  // rounding must not leave a negative probability
      }
      if (answer.labels)
        add_by_label(cover, answer.labels + t * n.labels);
      if (answer.inside) copy_emit(cover, answer.inside + t * P);
      if (answer.start) copy_emit(w.start_e + t * w.Cp, answer.start + t * s.start_stride);
      if (answer.end) copy_emit(w.end_e + (t + 1) * w.Cp, answer.end + t * P);
      if (answer.boundaries) answer.boundaries[t] = row_sum(w.end_e + (t + 1) * w.Cp, w.Cp);
    }
    if (answer.by_length)
      for (int64_t d = 0; d < s.max_length; ++d) copy_emit(w.length_e + d * w.Cp, answer.by_length + d * P);
  }
  void copy_emit(const double* from, double* out) const {
    for (int64_t c = 0; c < w.C; ++c) w.sum_c[c] = from[c];
    emit(w.sum_c, out);
  }
};

// back to zero what a sweep that gave up had added
inline void clear(const SegmentView& s, const TopologyView& n, SegmentAnswer& answer) {
  const int64_t T = s.length, M = s.max_length, P = s.columns;
  if (answer.labels) row_zero(answer.labels, T * n.labels);
  if (answer.boundaries) row_zero(answer.boundaries, T);
  if (answer.segments) row_zero(answer.segments, T * answer.stride * n.labels);
  if (answer.full) row_zero(answer.full, T * answer.stride * P);
  if (answer.starts) row_zero(answer.starts, s.starts_stride ? T * n.patterns : n.patterns);
  if (answer.start) row_zero(answer.start, s.start_stride ? T * P : P);
  if (answer.inside) row_zero(answer.inside, T * P);
  if (answer.end) row_zero(answer.end, T * P);
  if (answer.by_length) row_zero(answer.by_length, M * P);
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
    const Scale reference = w.b_scale[u + 1];
    w.b_scale[u] = reference;
    const int64_t longest = M < T - u ? M : T - u;
    double top = -kInfinity;
    if (w.alive[u]) {
      row_zero(w.inside_c, w.Cp);
      for (int64_t d = 1; d <= longest; ++d) {
        const int64_t v = u + d;
        if (w.inside_x) row_add(w.inside_c, w.inside_x + (v - 1) * w.Cp, w.Cp);
        if (!w.alive[v]) {
          w.row_top[d - 1] = -kInfinity;
          continue;
        }
        sweep.compute(u, d, w.inside_c, watch);
        const double e = w.row_top[d - 1] + difference(w.b_scale[v], reference);
        top = e > top ? e : top;
      }
    }
    w.alive[u] = top > -kInfinity;
    if (!w.alive[u]) continue;

    const double log_factor = top + log_ratio(w.g_scale[u], reference, log_z);
    if (log_factor > 600.0) return false;
    const Vec factor = splat(exp_scalar(log_factor));
    const double* g = w.g + u * w.Kp;
    row_zero(w.h, w.Kp);
    bool lossless = true;
    for (int64_t d = 1; d <= longest; ++d) {
      const int64_t v = u + d;
      if (!(w.row_top[d - 1] > -kInfinity)) continue;
      const double e = w.row_top[d - 1] + difference(w.b_scale[v], reference) - top;
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
    row_zero(w.state, w.Sp);
    for (int64_t k = 0; k < w.K; ++k)
      for (int64_t i = n.key_arcs[k]; i < n.key_arcs[k + 1]; ++i)
        w.state[n.arc_source[i]] += weight[n.arc_start[i]] * w.h[k];
    const double sum = row_sum(w.state, w.Sp);
    if (!(sum > kTiny)) return false;
    if (watch) {
      if (!(row_smallest(w.h, w.Kp) * exp_scalar(start_low(w, u)) > kNoUnderflow)) lossless = false;
      if (!lossless && too_small(w.state, w.S, -1)) return false;
    }
    if (n.start_classes && sink.answer.starts) {
      // g was rescaled after its sums were taken: g_scale - a_scale holds by how much
      const double back = log_ratio(w.a_scale[u], reference, log_z) + start_top(w, u) + top;
      if (back > 600.0) return false;
      start_posteriors(n, w, w.a + u * w.Sp, weight, w.h, exp_scalar(back), w.start_q);
      sink.starts(u, w.start_q);
    }
    const int x = exponent_of(sum);
    row_scale(w.state, w.Sp, two_to(-x));
    add(w.b_scale[u], top);
    add(w.b_scale[u], start_top(w, u));
    add(w.b_scale[u], x * kLn2);
    double* b = w.b + u * w.Kp;
    for (int64_t k = 0; k < w.K; ++k) b[k] = w.state[n.key_target[k]];
    for (int64_t k = w.K; k < w.Kp; ++k) b[k] = 0.0;
    if (watch) {
      const double low = std::log(row_smallest(w.state, w.Sp));
      b_low = low < b_low ? low : b_low;
    }
  }
  sink.close();
  return true;
}

inline double class_score(const TopologyView& n, const double* row, bool keyed, int64_t k) {
  return keyed ? row[k] : row[n.key_extent[k]];
}

inline double log_add_all(const double* x, int64_t count) {
  double m = -kInfinity;
  for (int64_t i = 0; i < count; ++i) m = x[i] > m ? x[i] : m;
  if (!(m > -kInfinity)) return m;
  double s = 0.0;
  for (int64_t i = 0; i < count; ++i) s += std::exp(x[i] - m);
  return m + std::log(s);
}

// log sum over the arcs of each key of a[source] + start score; out (K,)
inline void key_log_sums(const TopologyView& n, const SegmentWork& w, const double* state, const double* score,
                         double* out) {
  for (int64_t k = 0; k < w.K; ++k) {
    double m = -kInfinity, s = 0.0;
    for (int64_t i = n.key_arcs[k]; i < n.key_arcs[k + 1]; ++i) {
      const double x = state[n.arc_source[i]] + score[n.arc_start[i]];
      m = x > m ? x : m;
    }
    if (m > -kInfinity) {
      for (int64_t i = n.key_arcs[k]; i < n.key_arcs[k + 1]; ++i)
        s += std::exp(state[n.arc_source[i]] + score[n.arc_start[i]] - m);
      m += std::log(s);
    }
    out[k] = m;
  }
}

// Forward in log space. a[v] and g[v] are logarithms relative to a_scale[v]; w.start_w holds scores. Returns log Z;
// -inf: nothing is possible.
inline double segment_log_forward(const SegmentView& s, const TopologyView& n, SegmentWork& w, Scale& log_z) {
  const int64_t T = s.length, M = s.max_length;
  const RowSweep sweep{s, n, w};
  for (int64_t p = 0; p < w.Sp; ++p) w.a[p] = p == n.initial ? 0.0 : -kInfinity;
  w.a_scale[0] = Scale();
  w.alive[0] = 1;
  for (int64_t v = 0;; ++v) {
    double* a = w.a + v * w.Sp;
    if (v > 0) {
      const Scale reference = w.a_scale[v - 1];
      const int64_t longest = M < v ? M : v;
      const bool keyed = sweep.by_key(v);
      row_zero(w.inside_c, w.Cp);
      for (int64_t k = 0; k < w.K; ++k) w.h[k] = -kInfinity;
      for (int64_t d = 1; d <= longest; ++d) {
        const int64_t u = v - d;
        if (w.inside_x) row_add(w.inside_c, w.inside_x + u * w.Cp, w.Cp);
        w.row_top[d - 1] = -kInfinity;
        if (!w.alive[u]) continue;
        sweep.compute(u, d, w.inside_c, false);
        if (!(w.row_top[d - 1] > -kInfinity)) continue;
        const double offset = difference(w.a_scale[u], reference);
        const double* g = w.g + u * w.Kp;
        for (int64_t k = 0; k < w.K; ++k) {
          const double x = g[k] + class_score(n, sweep.row(u, d), keyed, k) + offset;
          w.h[k] = x > w.h[k] ? x : w.h[k];
        }
      }
      row_zero(w.q, w.Kp);
      for (int64_t d = 1; d <= longest; ++d) {
        if (!(w.row_top[d - 1] > -kInfinity)) continue;
        const int64_t u = v - d;
        const double offset = difference(w.a_scale[u], reference);
        const double* g = w.g + u * w.Kp;
        for (int64_t k = 0; k < w.K; ++k)
          if (w.h[k] > -kInfinity)
            w.q[k] += std::exp(g[k] + class_score(n, sweep.row(u, d), keyed, k) + offset - w.h[k]);
      }
      for (int64_t k = 0; k < w.K; ++k)
        if (w.h[k] > -kInfinity) w.h[k] += std::log(w.q[k]);
      for (int64_t p = 0; p < w.S; ++p)
        a[p] = log_add_all(w.h + n.state_keys[p], n.state_keys[p + 1] - n.state_keys[p]);
      for (int64_t p = w.S; p < w.Sp; ++p) a[p] = -kInfinity;
      w.a_scale[v] = reference;
      const double m = row_center(a, w.S);
      w.alive[v] = m > -kInfinity;
      if (w.alive[v]) add(w.a_scale[v], m);
    }
    if (v == T) break;
    if (w.alive[v]) key_log_sums(n, w, a, start_row(w, v), w.g + v * w.Kp);
  }
  if (!w.alive[T]) return -kInfinity;
  log_z = w.a_scale[T];
  add(log_z, log_add_all(w.a + T * w.Sp, w.S));
  return value(log_z);
}

// Backward and posteriors in log space, after segment_log_forward.
inline void segment_log_backward(const SegmentView& s, const TopologyView& n, SegmentWork& w, const Scale& log_z,
                                 const SegmentSink& sink) {
  const int64_t T = s.length, M = s.max_length;
  const RowSweep sweep{s, n, w};
  sink.open();
  for (int64_t k = 0; k < w.K; ++k) w.b[T * w.Kp + k] = 0.0;
  w.b_scale[T] = Scale();
  for (int64_t u = T - 1; u >= 0; --u) {
    const Scale reference = w.b_scale[u + 1];
    w.b_scale[u] = reference;
    if (!w.alive[u]) continue;
    const int64_t longest = M < T - u ? M : T - u;
    const double* g = w.g + u * w.Kp;
    for (int64_t k = 0; k < w.K; ++k) w.h[k] = -kInfinity;
    row_zero(w.inside_c, w.Cp);
    for (int64_t d = 1; d <= longest; ++d) {
      const int64_t v = u + d;
      if (w.inside_x) row_add(w.inside_c, w.inside_x + (v - 1) * w.Cp, w.Cp);
      w.row_top[d - 1] = -kInfinity;
      if (!w.alive[v]) continue;
      sweep.compute(u, d, w.inside_c, false);
      if (!(w.row_top[d - 1] > -kInfinity)) continue;
      const bool keyed = sweep.by_key(v);
      const double offset = difference(w.b_scale[v], reference);
      const double* b = w.b + v * w.Kp;
      for (int64_t k = 0; k < w.K; ++k) {
        const double x = class_score(n, sweep.row(u, d), keyed, k) + b[k] + offset;
        w.h[k] = x > w.h[k] ? x : w.h[k];
      }
    }
    const double base = log_ratio(w.a_scale[u], reference, log_z);
    double* sums = w.b + u * w.Kp;  // not read before it is written below
    row_zero(sums, w.Kp);
    for (int64_t d = 1; d <= longest; ++d) {
      if (!(w.row_top[d - 1] > -kInfinity)) continue;
      const int64_t v = u + d;
      const bool keyed = sweep.by_key(v);
      const double offset = difference(w.b_scale[v], reference);
      const double* b = w.b + v * w.Kp;
      for (int64_t k = 0; k < w.Kp; ++k) w.q[k] = 0.0;
      for (int64_t k = 0; k < w.K; ++k) {
        if (!(w.h[k] > -kInfinity)) continue;
        const double x = class_score(n, sweep.row(u, d), keyed, k) + b[k] + offset;
        sums[k] += std::exp(x - w.h[k]);
        w.q[k] = std::exp(g[k] + x + base);
      }
      sink.segment(u, d, w.q);
    }
    for (int64_t k = 0; k < w.K; ++k)
      if (w.h[k] > -kInfinity) w.h[k] += std::log(sums[k]);

    const double* score = start_row(w, u);
    const double* a = w.a + u * w.Sp;
    double* top = w.state;
    for (int64_t p = 0; p < w.S; ++p) top[p] = -kInfinity;
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
    row_zero(mass, w.Sp);
    for (int64_t k = 0; k < w.K; ++k)
      for (int64_t i = n.key_arcs[k]; i < n.key_arcs[k + 1]; ++i) {
        const double t = top[n.arc_source[i]];
        if (t > -kInfinity) mass[n.arc_source[i]] += std::exp(score[n.arc_start[i]] + w.h[k] - t);
      }
    for (int64_t p = 0; p < w.S; ++p)
      if (top[p] > -kInfinity) top[p] += std::log(mass[p]);
    const double m = row_center(top, w.S);
    w.alive[u] = m > -kInfinity;
    if (!w.alive[u]) continue;
    add(w.b_scale[u], m);
    for (int64_t k = 0; k < w.K; ++k) w.b[u * w.Kp + k] = top[n.key_target[k]];
  }
  sink.close();
}

}  // namespace scansion::SCANSION_ISA
