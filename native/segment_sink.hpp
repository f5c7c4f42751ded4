// From posteriors of segments to the expectations that were asked for.
#pragma once

#include "segment_rows.hpp"

namespace scansion::SCANSION_ISA {

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
    row_zero(w.start_q, w.Qp);
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
    if (answer.segments) add_by_label(c, answer.segments + at * n.labels);
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
      if (z < 0) continue;
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
        cover[c] = x > 0.0 ? x : 0.0;  // rounding must not leave a negative probability,
        if (s.max_length == 1) cover[c] = w.start_e[t * w.Cp + c];
        if (s.runs && s.runs[t * n.labels + n.extent_label[c]] == 0) cover[c] = 0.0;  // nor any for what is ruled out
      }
      if (answer.labels) add_by_label(cover, answer.labels + t * n.labels);
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

}  // namespace scansion::SCANSION_ISA
