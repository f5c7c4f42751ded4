// The sweeps of segment.hpp where scores are sums of parts and extents say nothing of the past: what semi-Markov models
// with long durations are.
//
// With prefix sums C of the inside scores, the weight of a segment splits into what its start, its end and its length know,
//   exp(W(u, v)) = exp(start[u] - C[u]) exp(C[v] + end[v-1]) exp(length[v-u]),
// so that the sum over lengths of a key is an inner product of two contiguous arrays, its starts and the exponentials of
// the lengths that its label may have:
//   a[v] = exp(C[v] + end[v-1]) sum_{d} exp(length[d]) G[v-d],    G[u] = g[u] exp(start[u] - C[u])
// One multiplication and addition per position, length and key, in vectors along the lengths; exponentials per position.
// Backward, expected lengths are such products too, and expected insides follow from those of starts and ends.
//
// C walks far on long sequences. G is therefore kept in blocks of neighbouring starts with a unit each, a new one wherever
// numbers would leave e^-300 .. e^300: a block that is too light for a sum is lost to that sum alone. A product that
// becomes too small for doubles is taken again in log space. What remains to guard are the states (segment.hpp).
//
// O(T (arcs + sum over keys of the lengths of their label)) time.
#pragma once

#include "rows.hpp"
#include "segment.hpp"

namespace scansion::SCANSION_ISA {

constexpr int64_t kAdditiveFrom = 12;  // longest segment from which on this is faster than rows by label
constexpr int64_t kBlock = 128;        // most starts in a block
constexpr double kBlockRange = 300.0;
constexpr double kTinyProduct = 1e-200;

// Whether these sweeps can answer.
inline bool additive_serves(const SegmentView& s, const TopologyView& n, const SegmentAnswer& answer) {
  return !s.full && s.max_length >= kAdditiveFrom && n.label_extents && n.end_classes == 0 && !answer.segments;
}

// Neighbouring positions whose weights share a unit: those of block i begin at first(i), in the order of the sweep.
struct Blocks {
  int64_t* firsts = nullptr;  // (mask + 1,) a ring
  Scale* units = nullptr;
  int64_t mask = 0, oldest = 0, next = 0;

  int64_t& first(int64_t i) const { return firsts[i & mask]; }
  Scale& unit(int64_t i) const { return units[i & mask]; }
};

struct AdditiveWork {
  int64_t ring = 0, stride = 0;
  double* weights = nullptr;  // (K, T + 1) G, or its mirror H
  double* ends = nullptr;     // (T + 1, Kp) forward weights by key
  double* grow = nullptr;     // (C, stride) exp(length[d] - top), at d
  double* back = nullptr;     // (C, stride) the same, at hi - d
  double* lengths = nullptr;  // (C, stride) expected lengths, at d
  int64_t *lo = nullptr, *hi = nullptr,
          *edge = nullptr;   // (C,) shortest, longest; first start (last end) of the window
  double* top = nullptr;     // (C,) largest length score
  Scale* sum = nullptr;      // (C,) of the inside scores so far
  Blocks* blocks = nullptr;  // (K,)
  double *shift = nullptr, *product = nullptr, *factor = nullptr;  // (K ring,) by block
  int64_t* range = nullptr;                                        // (K ring, 2) of positions
  int64_t* cut = nullptr;                                          // (K + 1,) blocks of a key among these
  double* small = nullptr;                                         // (Kp,)
  // start weights by source and key, where they are the same at every position and most arcs exist
  bool dense = false;
  double* by_key = nullptr;     // (K, Sp)
  double* by_source = nullptr;  // (S, Kp)
  double* arcs = nullptr;       // (K, Sp) expected arcs
};

inline int64_t carve_additive(const SegmentView& s, const TopologyView& n, const SegmentWork& w, double* base,
                              AdditiveWork& x) {
  Carver c{base};
  const auto integers = [&](int64_t size) { return reinterpret_cast<int64_t*>(c.take(size)); };
  const auto scales = [&](int64_t size) { return reinterpret_cast<Scale*>(c.take(2 * size)); };
  x.ring = 4;
  while (x.ring < s.max_length + 2) x.ring *= 2;
  x.stride = padded(s.max_length + 1) + kLanes;
  x.weights = c.take(w.K * (s.length + 1));
  x.ends = c.take((s.length + 1) * w.Kp);
  x.grow = c.take(w.C * x.stride);
  x.back = c.take(w.C * x.stride);
  x.lengths = c.take(w.C * x.stride);
  x.lo = integers(w.C);
  x.hi = integers(w.C);
  x.edge = integers(w.C);
  x.top = c.take(w.C);
  x.sum = scales(w.C);
  int64_t* firsts = integers(w.K * x.ring);
  Scale* units = scales(w.K * x.ring);
  x.blocks = reinterpret_cast<Blocks*>(c.take(w.K * static_cast<int64_t>(sizeof(Blocks) / sizeof(double))));
  x.shift = c.take(padded(w.K * x.ring) + kLanes);
  x.product = c.take(w.K * x.ring);
  x.factor = c.take(padded(w.K * x.ring) + kLanes);
  x.range = integers(2 * w.K * x.ring);
  x.cut = integers(w.K + 1);
  x.small = c.take(w.Kp);
  x.dense = w.start_rows == 1 && 2 * n.key_arcs[w.K] >= w.K * w.S;
  if (x.dense) {
    x.by_key = c.take(w.K * w.Sp);
    x.by_source = c.take(w.S * w.Kp);
    x.arcs = c.take(w.K * w.Sp);
  }
  for (int64_t k = 0; base && k < w.K; ++k) x.blocks[k] = {firsts + k * x.ring, units + k * x.ring, x.ring - 1, 0, 0};
  return c.used;
}
static_assert(sizeof(Blocks) % sizeof(double) == 0);

inline void exp_all(double* x, int64_t n, double shift) {
  const Vec m = splat(shift);
  for (int64_t j = 0; j < n; j += kLanes) store(x + j, exp(load(x + j) - m));
}

// sum_i a[i] b[i] for a few to a hundred or so of them, in an order that depends on n alone
inline double inner_product(const double* a, const double* b, int64_t n) {
  Vec p = splat(0.0), q = p, r = p, t = p;
  int64_t j = 0;
  for (; j + 4 * kLanes <= n; j += 4 * kLanes) {
    p = muladd(load(a + j), load(b + j), p);
    q = muladd(load(a + j + kLanes), load(b + j + kLanes), q);
    r = muladd(load(a + j + 2 * kLanes), load(b + j + 2 * kLanes), r);
    t = muladd(load(a + j + 3 * kLanes), load(b + j + 3 * kLanes), t);
  }
  for (; j + kLanes <= n; j += kLanes) p = muladd(load(a + j), load(b + j), p);
  double sum = horizontal_sum((p + q) + (r + t));
  for (; j < n; ++j) sum += a[j] * b[j];
  return sum;
}

class AdditiveSweep {
 public:
  AdditiveSweep(const SegmentView& view, const TopologyView& net, SegmentWork& tables, AdditiveWork& work)
      : s(view), n(net), w(tables), x(work), T(view.length) {
    for (int64_t c = 0; c < w.C; ++c) read_lengths(c);
    if (!x.dense) return;
    row_zero(x.by_key, w.K * w.Sp);
    row_zero(x.by_source, w.S * w.Kp);
    row_zero(x.arcs, w.K * w.Sp);
    each_arc([&](int64_t k, int64_t p, int64_t start) {
      x.by_key[k * w.Sp + p] += w.start_w[start];
      x.by_source[p * w.Kp + k] += w.start_w[start];
    });
  }

  // As segment_forward.
  bool forward(Scale& log_z) {
    const bool watch = !w.mixing;
    restart(0);
    row_zero(w.a, w.Sp);
    w.a[n.initial] = 1.0;
    w.a_scale[0] = Scale();
    w.alive[0] = 1;
    for (int64_t v = 0;; ++v) {
      double* a = w.a + v * w.Sp;
      if (v > 0) {
        pass(v - 1, v);
        const Scale reference = w.a_scale[v - 1];
        w.a_scale[v] = reference;
        const bool open = !(s.may_end && !s.may_end[v - 1]);
        int64_t count = 0;
        for (int64_t k = 0; k < w.K; ++k) {
          x.cut[k] = count;
          if (open) count = list(k, v, reference, count);
        }
        x.cut[w.K] = count;
        double* ends = x.ends + v * w.Kp;
        bool lossless = true;
        const double top = gather(count, ends, lossless);
        w.alive[v] = top > kMinusInfinity;
        if (!w.alive[v]) {
          row_zero(a, w.Sp);
          if (v == T) return false;
        } else {
          state_sums(n, w, ends, a);
          const double sum = row_sum(a, w.Sp);
          if (!(sum > kTiny)) return false;
          if (watch && !lossless && too_small(a, w.S, n.initial)) return false;
          const int e = exponent_of(sum);
          row_scale(a, w.Sp, two_to(-e));
          row_scale(ends, w.Kp, two_to(-e));
          add(w.a_scale[v], top);
          add(w.a_scale[v], e * kLn2);
        }
      }
      if (v == T) break;
      double* g = w.g + v * w.Kp;
      if (!w.alive[v]) {
        row_zero(g, w.Kp);
        for (int64_t k = 0; k < w.K; ++k) x.weights[k * (T + 1) + v] = 0.0;
        continue;
      }
      if (x.dense)
        mix_rows(x.by_source, w.Kp, a, w.S, g);
      else
        key_sums(n, w, a, start_row(w, v), g);
      const double sum = row_sum(g, w.Kp);
      if (!(sum > kTiny)) return false;
      if (watch && !(row_smallest(a, w.Sp) * exp_scalar(start_low(w, v)) > kNoUnderflow) && too_small(g, w.K, -1))
        return false;
      const int e = exponent_of(sum);
      row_scale(g, w.Kp, two_to(-e));
      w.g_scale[v] = w.a_scale[v];
      add(w.g_scale[v], start_top(w, v));
      add(w.g_scale[v], e * kLn2);
      keep(v, g, w.g_scale[v], [&](int64_t c) { return may_start(v, c) ? start_score(v, c) : kMinusInfinity; });
    }
    log_z = w.a_scale[T];
    add(log_z, std::log(row_sum(w.a + T * w.Sp, w.Sp)));
    return true;
  }

  // As segment_backward, after forward.
  bool backward(const Scale& log_z, const SegmentSink& sink) {
    const bool watch = !w.mixing;
    sink.open();
    restart(T);
    row_zero(x.lengths, w.C * x.stride);
    for (int64_t k = 0; k < w.Kp; ++k) w.b[T * w.Kp + k] = k < w.K ? 1.0 : 0.0;
    w.b_scale[T] = Scale();
    for (int64_t u = T;; --u) {
      double* b = w.b + u * w.Kp;
      if (u < T) {
        pass(u, u);
        const Scale reference = w.b_scale[u + 1];
        w.b_scale[u] = reference;
        int64_t count = 0;
        for (int64_t k = 0; k < w.K; ++k) {
          x.cut[k] = count;
          if (w.alive[u]) count = list_back(k, u, reference, count);
        }
        x.cut[w.K] = count;
        bool lossless = true;
        if (count > 0 && sink.answer.by_length && !count_lengths(u, log_ratio(w.g_scale[u], reference, log_z), count))
          return false;
        const double top = count > 0 ? gather(count, w.h, lossless) : kMinusInfinity;
        w.alive[u] = top > kMinusInfinity;
        if (!w.alive[u]) {
          if (u == 0) break;
          for (int64_t k = 0; k < w.K; ++k) x.weights[k * (T + 1) + u] = 0.0;
          continue;
        }
        Scale at = reference;
        add(at, top);
        const double log_factor = log_ratio(w.g_scale[u], at, log_z);
        if (log_factor > 600.0) return false;
        const double factor = exp_scalar(log_factor);
        const double* g = w.g + u * w.Kp;
        for (int64_t k = 0; k < w.K; ++k) w.start_e[u * w.Cp + n.key_extent[k]] += g[k] * w.h[k] * factor;
        const double* weight = start_row(w, u);
        if (x.dense)
          mix_rows(x.by_key, w.Sp, w.h, w.K, w.state);
        else
          source_sums(n, w, w.h, weight, w.state);
        if (!sources_kept(w, u, watch, lossless)) return false;
        if (n.start_classes && sink.answer.starts) {
          const double back = log_ratio(w.a_scale[u], at, log_z) + start_top(w, u);
          if (back > 600.0) return false;
          if (x.dense) {
            count_arcs(w.a + u * w.Sp, exp_scalar(back));
          } else {
            start_posteriors(n, w, w.a + u * w.Sp, weight, w.h, exp_scalar(back), w.start_q);
            sink.starts(u, w.start_q);
          }
        }
        if (u == 0) break;
        w.b_scale[u] = at;
        step_back(n, w, u, b);
      }
      const double log_factor = log_ratio(w.a_scale[u], w.b_scale[u], log_z);
      if (log_factor > 600.0) return false;
      const double factor = exp_scalar(log_factor);
      for (int64_t k = 0; k < w.K; ++k) w.end_e[u * w.Cp + n.key_extent[k]] += x.ends[u * w.Kp + k] * b[k] * factor;
      keep(u, b, w.b_scale[u], [&](int64_t c) { return w.end_x ? w.end_x[(u - 1) * w.Cp + c] : 0.0; });
    }
    for (int64_t c = 0; c < w.C; ++c)
      for (int64_t d = x.lo[c]; d <= x.hi[c]; ++d) w.length_e[(d - 1) * w.Cp + c] = x.lengths[c * x.stride + d];
    if (x.dense && n.start_classes && sink.answer.starts) {
      row_zero(w.start_q, w.Qp);
      each_arc([&](int64_t k, int64_t p, int64_t start) { w.start_q[start] += x.arcs[k * w.Sp + p]; });
      sink.starts(0, w.start_q);
    }
    sink.close();
    return true;
  }

 private:
  const SegmentView& s;
  const TopologyView& n;
  SegmentWork& w;
  AdditiveWork& x;
  const int64_t T;

  double start_score(int64_t u, int64_t c) const {
    return w.start_x ? w.start_x[(s.start_stride ? u : 0) * w.Cp + c] : 0.0;
  }
  double length_score(int64_t d, int64_t c) const { return w.length_x ? w.length_x[(d - 1) * w.Cp + c] : 0.0; }
  int64_t run(int64_t u, int64_t c) const { return s.runs[u * n.labels + n.extent_label[c]]; }
  bool may_start(int64_t u, int64_t c) const { return !s.runs || run(u, c) > 0; }

  template <class Use>
  void each_arc(const Use& use) const {
    for (int64_t k = 0; k < w.K; ++k)
      for (int64_t i = n.key_arcs[k]; i < n.key_arcs[k + 1]; ++i) use(k, n.arc_source[i], n.arc_start[i]);
  }

  // adds the posteriors of the arcs that leave a position: a[p] weight h[k] factor
  void count_arcs(const double* a, double factor) const {
    for (int64_t k = 0; k < w.K; ++k) {
      const Vec h = splat(w.h[k] * factor);
      const double* weight = x.by_key + k * w.Sp;
      double* out = x.arcs + k * w.Sp;
      for (int64_t p = 0; p < w.Sp; p += kLanes)
        store(out + p, muladd(h, load(a + p) * load(weight + p), load(out + p)));
    }
  }

  void read_lengths(int64_t c) {
    double *grow = x.grow + c * x.stride, *back = x.back + c * x.stride;
    x.lo[c] = 1, x.hi[c] = s.max_length, x.top[c] = kMinusInfinity;
    while (x.hi[c] > 0 && !(length_score(x.hi[c], c) > kMinusInfinity)) --x.hi[c];
    while (x.lo[c] < x.hi[c] && !(length_score(x.lo[c], c) > kMinusInfinity)) ++x.lo[c];
    row_zero(grow, x.stride);
    row_zero(back, x.stride);
    for (int64_t d = x.lo[c]; d <= x.hi[c]; ++d)
      x.top[c] = length_score(d, c) > x.top[c] ? length_score(d, c) : x.top[c];
    for (int64_t d = 1; d < x.stride; ++d)
      grow[d] = d >= x.lo[c] && d <= x.hi[c] ? length_score(d, c) - x.top[c] : kMinusInfinity;
    exp_all(grow, x.stride, 0.0);
    grow[0] = 0.0;
    for (int64_t d = x.lo[c]; d <= x.hi[c]; ++d) back[x.hi[c] - d] = grow[d];
  }

  void restart(int64_t edge) {
    for (int64_t c = 0; c < w.C; ++c) x.sum[c] = Scale(), x.edge[c] = edge;
    for (int64_t k = 0; k < w.K; ++k) x.blocks[k].oldest = x.blocks[k].next = 0;
  }

  // adds the inside of position t to the sums; a label that is not possible there cannot reach across it: its windows
  // end at `edge`
  void pass(int64_t t, int64_t edge) {
    for (int64_t c = 0; w.inside_x && c < w.C; ++c) {
      const double inside = w.inside_x[t * w.Cp + c];
      if (inside > kMinusInfinity)
        add(x.sum[c], inside);
      else
        x.edge[c] = edge;
    }
  }

  // log of a block's unit with the sums so far, relative to a scale
  double relative(const Scale& unit, int64_t c, const Scale& reference) const {
    Scale both = unit;
    add(both, x.sum[c].hi);
    both.lo += x.sum[c].lo;
    return difference(both, reference);
  }

  // Stores weights of a position, times e^score of their class, without the sums so far.
  template <class Score>
  void keep(int64_t t, const double* weight, const Scale& scale, const Score& score) {
    for (int64_t k = 0; k < w.Kp; ++k) x.small[k] = kMinusInfinity;
    for (int64_t k = 0; k < w.K; ++k) {
      const int64_t c = n.key_extent[k];
      const double more = weight[k] > kTiny ? score(c) : kMinusInfinity;
      double& to = x.weights[k * (T + 1) + t];
      to = 0.0;
      if (!(more > kMinusInfinity)) continue;
      const int e = exponent_of(weight[k]);
      to = weight[k] * two_to(-e);
      Scale unit = scale;
      add(unit, -x.sum[c].hi);
      unit.lo -= x.sum[c].lo;
      add(unit, more);
      add(unit, e * kLn2);
      Blocks& blocks = x.blocks[k];
      if (blocks.next > blocks.oldest) {
        const int64_t first = blocks.first(blocks.next - 1);
        const double z = difference(unit, blocks.unit(blocks.next - 1));
        if (std::abs(t - first) < kBlock && z < kBlockRange && z > -kBlockRange) {
          x.small[k] = z;
          continue;
        }
      }
      if (blocks.next - blocks.oldest > blocks.mask) ++blocks.oldest;  // so many starts ago is too long for a segment
      blocks.first(blocks.next) = t;
      blocks.unit(blocks.next++) = unit;
      x.small[k] = 0.0;
    }
    exp_all(x.small, w.Kp, 0.0);
    for (int64_t k = 0; k < w.K; ++k) x.weights[k * (T + 1) + t] *= x.small[k];
  }

  // one more block for a sum: its log unit, its positions, and their inner product with the lengths
  int64_t put(int64_t k, int64_t at, int64_t step, double shift, int64_t first, int64_t stop, const double* lengths,
              int64_t count) {
    const double* weights = x.weights + k * (T + 1);
    double product = inner_product(weights + first, lengths, stop - first);
    x.factor[count] = shift;
    if (!(product > kTinyProduct)) {
      product = in_log_space(k, at, step, first, stop, shift);
      if (product == 0.0) return count;
    }
    x.shift[count] = shift;
    x.product[count] = product;
    x.range[2 * count] = first;
    x.range[2 * count + 1] = stop;
    return count + 1;
  }

  // The same where products leave the range of doubles: most of its logarithm goes to the shift; 0: there is none.
  double in_log_space(int64_t k, int64_t at, int64_t step, int64_t first, int64_t stop, double& shift) const {
    const int64_t c = n.key_extent[k];
    const double* weights = x.weights + k * (T + 1);
    double top = kMinusInfinity, sum = 0.0;
    const auto each = [&](const auto& use) {
      for (int64_t t = first; t < stop; ++t)
        if (weights[t] > 0.0) use(std::log(weights[t]) + length_score(step * (t - at), c) - x.top[c]);
    };
    each([&](double e) { top = e > top ? e : top; });
    if (!(top > kMinusInfinity)) return 0.0;
    each([&](double e) { sum += std::exp(e - top); });
    shift += top;
    return sum;
  }

  // blocks that a segment of key k that ends at v may start in
  int64_t list(int64_t k, int64_t v, const Scale& reference, int64_t count) {
    const int64_t c = n.key_extent[k], lo = x.lo[c], hi = x.hi[c];
    const double end = w.end_x ? w.end_x[(v - 1) * w.Cp + c] : 0.0;
    if (s.runs)
      while (x.edge[c] < v && x.edge[c] + run(x.edge[c], c) < v) ++x.edge[c];
    const int64_t first = v - hi > x.edge[c] ? v - hi : x.edge[c], stop = v - lo + 1;
    if (!(end > kMinusInfinity) || first >= stop) return count;
    Blocks& blocks = x.blocks[k];
    while (blocks.oldest + 1 < blocks.next && blocks.first(blocks.oldest + 1) <= v - hi) ++blocks.oldest;
    for (int64_t i = blocks.oldest; i < blocks.next && blocks.first(i) < stop; ++i) {
      const int64_t from = blocks.first(i) > first ? blocks.first(i) : first;
      const int64_t after = i + 1 < blocks.next && blocks.first(i + 1) < stop ? blocks.first(i + 1) : stop;
      if (from < after)
        count = put(k, v, -1, relative(blocks.unit(i), c, reference) + (end + x.top[c]), from, after,
                    x.back + c * x.stride + (from - (v - hi)), count);
    }
    return count;
  }

  // blocks that a segment of key k that starts at u may end in; positions descend from block to block
  int64_t list_back(int64_t k, int64_t u, const Scale& reference, int64_t count) {
    const int64_t c = n.key_extent[k], lo = x.lo[c], hi = x.hi[c];
    const double start = start_score(u, c);
    int64_t last = u + hi < x.edge[c] ? u + hi : x.edge[c];
    if (s.runs && u + run(u, c) < last) last = u + run(u, c);
    const int64_t first = u + lo;
    if (!(start > kMinusInfinity) || first > last) return count;
    Blocks& blocks = x.blocks[k];
    while (blocks.oldest + 1 < blocks.next && blocks.first(blocks.oldest + 1) >= u + hi) ++blocks.oldest;
    for (int64_t i = blocks.oldest; i < blocks.next && blocks.first(i) >= first; ++i) {
      const int64_t after = (blocks.first(i) < last ? blocks.first(i) : last) + 1;
      const int64_t from = i + 1 < blocks.next && blocks.first(i + 1) + 1 > first ? blocks.first(i + 1) + 1 : first;
      if (from < after)
        count = put(k, u, 1, relative(blocks.unit(i), c, reference) + (start + x.top[c]), from, after,
                    x.grow + c * x.stride + (from - u), count);
    }
    return count;
  }

  // Adds up the listed blocks by key, relative to the heaviest, whose logarithm is returned.
  double gather(int64_t count, double* out, bool& lossless) {
    double top = kMinusInfinity, low = kInfinity;
    for (int64_t i = 0; i < count; ++i) {
      const double e = x.shift[i] + exponent_of(x.product[i]) * kLn2;
      top = e > top ? e : top;
      low = e < low ? e : low;
    }
    row_zero(out, w.Kp);
    if (count == 0) return top;
    for (int64_t i = count; i < padded(count); ++i) x.shift[i] = kMinusInfinity;
    exp_all(x.shift, padded(count), top);
    for (int64_t k = 0; k < w.K; ++k)
      for (int64_t i = x.cut[k]; i < x.cut[k + 1]; ++i) out[k] += x.shift[i] * x.product[i];
    if (low - top < kLogNoUnderflow)
      for (int64_t k = 0; k < w.K; ++k)
        if (x.cut[k] < x.cut[k + 1] && !(out[k] > kNoUnderflow)) lossless = false;
    return top;
  }

  // Expected lengths of segments that start at u; base: log of g's unit times that of the blocks, over Z.
  bool count_lengths(int64_t u, double base, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      x.factor[i] += base;
      if (x.factor[i] > 600.0) return false;
    }
    for (int64_t i = count; i < padded(count); ++i) x.factor[i] = kMinusInfinity;
    exp_all(x.factor, padded(count), 0.0);
    for (int64_t k = 0; k < w.K; ++k) {
      const double g = w.g[u * w.Kp + k];
      const int64_t c = n.key_extent[k];
      if (g == 0.0) continue;
      for (int64_t i = x.cut[k]; i < x.cut[k + 1]; ++i) {
        const int64_t first = x.range[2 * i], size = x.range[2 * i + 1] - first;
        const double f = g * x.factor[i];
        if (f == 0.0) continue;
        const double *h = x.weights + k * (T + 1) + first, *e = x.grow + c * x.stride + (first - u);
        double* out = x.lengths + c * x.stride + (first - u);
        const Vec times = splat(f);
        int64_t j = 0;
        for (; j + kLanes <= size; j += kLanes) store(out + j, muladd(times, load(h + j) * load(e + j), load(out + j)));
        for (; j < size; ++j) out[j] += f * (h[j] * e[j]);
      }
    }
    return true;
  }
};

}  // namespace scansion::SCANSION_ISA
