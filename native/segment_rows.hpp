// The tables of one segment lattice and the rows of scores that its sweeps walk: segments [u, u+d) by extent class.
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
  const Vec none = splat(kMinusInfinity), top = splat(kInfinity);
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
  w.row_scale = reinterpret_cast<Scale*>(c.take(2 * M));
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

  // no score so large that one which fell far behind could come back; other rows are sums of scores that are no larger
  // than they, or of smaller ones
  const auto most = [](const double* part, int64_t size) { return part ? array_max(part, size) : kMinusInfinity; };
  w.tame = most(s.start, (s.start_stride ? T : 1) * s.columns) <= kTame && most(s.end, T * s.columns) <= kTame &&
           most(s.by_length, M * s.columns) <= kTame && most(s.inside, T * s.columns) * static_cast<double>(M) <= kFar;

  double worst = 0.0;
  for (int64_t r = 0; r < w.start_rows; ++r) {
    double* row = w.start_w + r * w.Qp;
    if (n.start_classes)
      gather_classes(s.starts + r * P, 1, P, n.start_pattern, n.start_parent, n.start_classes, w.Qp, kMinusInfinity,
                     row);
    else
      for (int64_t q = 0; q < w.Qp; ++q) row[q] = kMinusInfinity;
    row[w.Q - 1] = n.bare_arcs ? 0.0 : kMinusInfinity;
    const double top = row_max(row, w.Qp);
    w.start_top[r] = top > kMinusInfinity ? top : 0.0;
    w.start_low[r] = row_lowest_finite(row, w.Qp) - w.start_top[r];
    if (n.start_classes && !(std::abs(w.start_top[r]) <= kTame && w.start_low[r] >= -kTame))
      w.tame = w.tame && w.start_top[r] >= -kFar && array_max(s.starts + r * P, P) <= kTame;
    for (int64_t q = 0; q < w.Q - (n.bare_arcs ? 0 : 1); ++q) worst = top - row[q] > worst ? top - row[q] : worst;
  }
  // a state that lost its weight differs from the heaviest one for at most `longest` segments
  w.mixing = !n.restricted && n.label_extents && n.end_classes == 0 && worst * static_cast<double>(n.longest) <= 460.0;
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
        row[c] = kMinusInfinity;
      else
        any = true;
    }
  }
  for (int64_t c = C; c < Cp; ++c) row[c] = kMinusInfinity;
  return any;
}

// The same key by key, with the patterns that end in EOS: for the segments that end the sequence.
inline void final_row(const SegmentView& s, const TopologyView& n, const SegmentWork& w, int64_t u, int64_t d,
                      const double* classes, double* tail, double* row) {
  const int64_t P = s.columns;
  for (int64_t e = 0; e < n.end_classes; ++e) {
    const int64_t z = n.end_pattern[e];
    if (z < 0) {
      tail[e] = kMinusInfinity;
      continue;
    }
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
  for (int64_t k = 0; k < w.K; ++k) row[k] = classes[n.key_extent[k]] + (n.key_end[k] >= 0 ? tail[n.key_end[k]] : 0.0);
  for (int64_t k = w.K; k < w.Kp; ++k) row[k] = kMinusInfinity;
}

// g + b - z for scales of up to 1e9, to full precision
inline double log_ratio(const Scale& g, const Scale& b, const Scale& z) {
  Scale s = g;
  add(s, b.hi);
  add(s, -z.hi);
  return s.hi + (s.lo + (b.lo - z.lo));
}

// The heaviest row that meets a position: the products of all others are scaled to it. Its scale is a sum of scales, with
// nothing rounded that 1e5 positions could add up.
struct Heaviest {
  Scale scale;  // that of the neighbouring position, until a row is met
  double top = kMinusInfinity;
  explicit Heaviest(const Scale& neighbour) : scale(neighbour), reference(neighbour) {}

  // weights of some scale times a row of some maximum; returns the scale of both
  Scale meet(const Scale& weights, double row_top) {
    Scale both = weights;
    add(both, row_top);
    const double e = difference(both, reference);
    if (!(difference(weights, reference) <= kFar && e <= kFar)) tame = false;
    if (e > top) top = e, scale = both;
    return both;
  }
  // doubles have the digits
  bool fits() const { return tame && (top == kMinusInfinity || top >= -kFar); }

 private:
  bool tame = true;
  Scale reference;
};

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
    w.row_top[d - 1] = any ? row_max(r, width) : kMinusInfinity;
    if (want_low || s.full) w.row_low[d - 1] = any ? row_lowest_finite(r, width) : kInfinity;
    if (any && s.full) check_scores(u, d, w.row_top[d - 1], w.row_low[d - 1]);
  }

  // A row between bounds is a sum of scores between them: each class has its suffixes beside it. Else the largest score of
  // the whole segment says it, whatever its pattern.
  void check_scores(int64_t u, int64_t d, double top, double low) const {
    if (!(top <= kTame && low >= -kTame) && !(most_of(u, d) <= kTame)) w.tame = false;
  }
  SCANSION_RARE double most_of(int64_t u, int64_t d) const {
    return array_max(s.full + (u * s.full_stride + d - 1) * s.columns, s.columns);
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
      w.cache_top[u * s.max_length + d - 1] = any ? 0.0 : kMinusInfinity;
    }
    for (int64_t d = 1; d <= longest; ++d) {
      const int64_t at = u * s.max_length + d - 1;
      if (w.cache_top[at] < 0.0) continue;
      double* r = row(u, d);
      w.cache_top[at] = row_max(r, w.Cp);
      w.cache_low[at] = row_lowest_finite(r, w.Cp);
      check_scores(u, d, w.cache_top[at], w.cache_low[at]);
      if (w.cache_top[at] > kMinusInfinity) row_exp_fast(r, w.Cp, w.cache_top[at]);
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

}  // namespace scansion::SCANSION_ISA
