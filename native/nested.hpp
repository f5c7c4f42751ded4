// Asymmetric inside-outside of nested lattices in scaled linear space, one run at a time (nested_views.hpp).
//
// With W(t, j, s) the weight of a child [t, j) in stack s, all its free levels included (papers 000 and 003):
//   after(j, s)  = sum_t before(t, s) W(t, j, s)
//   up_L = after(j),  up_f(s) = last_f sum_u up_{f+1}(s u) E(s, u),   D(j) = up_0
//   down_f(s u)  = first_f ( sum_v up_f(s v) A(s, v, u) + down_{f-1}(s) I(s, u) ),   before(j) = down_L
// at j = i the parent begins: down_0 = 1 and nothing comes from the left. The event at j happens at one level f: all
// below it end, f makes a transition, all below begin. Summing out level by level costs |layer f| S_f per level, never
// |stacks|^2. Without free levels (L = 1) this is the recursion of docs/notation.md, section 2. Backwards:
//   ahead(t, s)  = sum_j W(t, j, s) rest(j, s)
//   bd_L = ahead(j),  x_f = first_f bd_f,  bd_{f-1}(s) = sum_u I(s, u) x_f(s u)
//   bu_0 = outside(j),  bu_f(s v) = sum_u A(s, v, u) x_f(s u) + last_{f-1} bu_{f-1}(s) E(s, v),   rest(j) = bu_L
//
// Scaling: every row has its own power of two, so that scales are integers and their differences exact. What a product
// may lose is watched as in chain.hpp: a lower bound of all products that enter a row tells whether one vanished; if
// so, every weight of the row must be far above what vanished, else the run is done again in log space.
//
// A run of N positions costs O(N (reach * stacks + sum_f |layer f| S_f)) and keeps 4 N rows of stacks.
#pragma once

#include "chain.hpp"
#include "nested_views.hpp"

namespace scansion::SCANSION_ISA {

constexpr int64_t kNoLoss = -960;  // log2: products above this have not vanished

struct NestedFactor {
  const double* weight;
  int64_t exponent, low;
};

inline NestedFactor factor_at(const NestedTable& table, int64_t t) {
  if (!table.weight) return {nullptr, 0, 0};
  const int64_t row = t * table.step;
  return {table.weight + row * table.size, table.exponent[row], table.low[row]};
}

// Brings a row of n weights, padded with zeros, near 1. 1: done; 0: every weight is zero; -1: something that matters may
// have vanished.
inline int settle(double* row, int64_t n, bool lossless, int64_t& k, int64_t& low) {
  Vec tops = splat(0.0), leasts = splat(kInfinity);
  for (int64_t i = 0; i < n; i += kLanes) {
    const Vec x = load(row + i);
    tops = max(tops, x);
    leasts = min(leasts, select_greater(x, splat(0.0), x, splat(kInfinity)));
  }
  const double top = horizontal_max(tops), least = horizontal_min(leasts);
  if (!(top > kTiny)) {
    if (top > 0.0 || !lossless) return -1;
    k = kDeadRow;
    return 0;
  }
  if (!lossless)
    for (int64_t i = 0; i < n; ++i)
      if (row[i] < kTiny) return -1;
  const int e = exponent_of(top);
  const Vec f = splat(two_to(-e));
  for (int64_t i = 0; i < n; i += kLanes) store(row + i, load(row + i) * f);
  k += e;
  low = exponent_of(least) - 1 - e;
  return 1;
}

inline double shift(int64_t e) { return e < -1000 ? 0.0 : two_to(static_cast<int>(e)); }

inline bool may_end(const NestedRun& r, int64_t j, int64_t level) { return j == r.length || r.low[j - 1] <= level; }
inline bool may_move(const NestedRun& r, int64_t j, int64_t f) {
  return r.low[j - 1] <= r.level + f && r.level + f <= r.high[j - 1];
}

// Ending levels from the bottom up after a child ended at n; bound: log2 of the smallest product.
inline void nested_up(const NestedRun& r, int64_t n, int64_t* bound) {
  const int64_t j = r.start + n, L = r.depth;
  r.up[L] = r.after + n * r.stride;
  r.up_k[L] = r.after_k[n];
  bound[L] = r.after_low[n];
  for (int64_t f = L - 1; f >= 0; --f) {
    const NestedLayer& below = r.layers[f + 1];
    const NestedFactor e = factor_at(r.end[f + 1], j - 1);
    const NestedFactor last = f > 0 ? factor_at(r.last[f], j - 1) : NestedFactor{nullptr, 0, 0};
    for (int64_t a = 0; a < r.layers[f].size; ++a) {
      const double* w = e.weight + below.pair[a] - below.first[a];
      double sum = 0.0;
      for (int64_t c = below.first[a]; c < below.first[a + 1]; ++c) sum += r.up[f + 1][c] * w[c];
      if (last.weight) sum *= last.weight[r.layers[f].state[a]];
      r.up[f][a] = sum;
    }
    r.up_k[f] = r.up_k[f + 1] + e.exponent + last.exponent;
    bound[f] = bound[f + 1] + e.low + last.low;
  }
}

// Beginning levels from the top down at n (0: with the parent), down to some layer. up is valid for n > 0. Returns the
// bound.
inline int64_t nested_down(const NestedRun& r, int64_t n, const int64_t* up_bound, int64_t layers) {
  const int64_t j = r.start + n, L = r.depth;
  int64_t bound = 0;
  r.down[0][0] = 1.0;
  r.down_k[0] = n == 0 ? 0 : kDeadRow;
  for (int64_t f = 1; f <= layers; ++f) {
    const NestedLayer& layer = r.layers[f];
    const NestedFactor first = f < L ? factor_at(r.first[f], j) : NestedFactor{nullptr, 0, 0};
    const NestedFactor init = factor_at(r.init[f], j);
    const bool moves = n > 0 && may_move(r, j, f), begins = r.down_k[f - 1] != kDeadRow;
    double* out = r.down[f];
    if (!moves && !begins) {
      r.down_k[f] = kDeadRow;
      continue;
    }
    int64_t move_k = kDeadRow, begin_k = kDeadRow, next_bound = 0;
    if (moves) {
      const NestedFactor a = factor_at(r.transit[f], j - 1);
      for (int64_t g = 0; g < r.layers[f - 1].size; ++g) {
        const int64_t c = layer.first[g], size = layer.first[g + 1] - c;
        matvec(a.weight + layer.square[g], size, padded(size), r.up[f] + c, out + c);
      }
      move_k = r.up_k[f] + a.exponent;
      next_bound = up_bound[f] + a.low;
    }
    if (begins) begin_k = r.down_k[f - 1] + init.exponent;
    const int64_t top = move_k > begin_k ? move_k : begin_k;
    if (moves) next_bound += move_k - top;
    if (begins) {
      const int64_t b = bound + init.low + begin_k - top;
      next_bound = moves && next_bound < b ? next_bound : b;
      const double keep = moves ? shift(move_k - top) : 0.0, factor = shift(begin_k - top);
      for (int64_t g = 0; g < r.layers[f - 1].size; ++g) {
        const double y = r.down[f - 1][g] * factor;
        const double* w = init.weight + layer.pair[g] - layer.first[g];
        if (moves)
          for (int64_t c = layer.first[g]; c < layer.first[g + 1]; ++c) out[c] = out[c] * keep + y * w[c];
        else
          for (int64_t c = layer.first[g]; c < layer.first[g + 1]; ++c) out[c] = y * w[c];
      }
    }
    if (first.weight)
      for (int64_t c = 0; c < layer.size; ++c) out[c] *= first.weight[layer.state[c]];
    r.down_k[f] = top + first.exponent;
    bound = next_bound + first.low;
    if (bound < kNoLoss && f < L) bound = kNoLoss - 100000;  // stays lossy
  }
  return bound;
}

// before(n) out of r.down; false: give up
inline bool nested_begin(const NestedRun& r, int64_t n, const int64_t* up_bound) {
  const int64_t bound = nested_down(r, n, up_bound, r.depth), L = r.depth;
  r.before_k[n] = r.down_k[L];
  if (r.down_k[L] == kDeadRow) return true;
  double* row = r.before + n * r.stride;
  for (int64_t s = 0; s < r.layers[L].size; ++s) row[s] = r.down[L][s];
  for (int64_t s = r.layers[L].size; s < r.stride; ++s) row[s] = 0.0;
  return settle(row, r.layers[L].size, bound > kNoLoss, r.before_k[n], r.before_low[n]) >= 0;
}

template <int NV>
inline void sum_terms_block(const NestedTerm* terms, int64_t count, int64_t top, int64_t s, double* out) {
  Vec sum[NV];
  for (int k = 0; k < NV; ++k) sum[k] = splat(0.0);
  for (int64_t i = 0; i < count; ++i) {
    const Vec f = splat(two_to(static_cast<int>(terms[i].exponent - top)));
    for (int k = 0; k < NV; ++k)
      sum[k] = muladd(load(terms[i].row + s + k * kLanes) * f, load(terms[i].child + s + k * kLanes), sum[k]);
  }
  for (int k = 0; k < NV; ++k) store(out + s + k * kLanes, sum[k]);
}

// The terms of one sum, in the run's scratch.
struct NestedSum {
  const NestedRun& r;
  int64_t count = 0, top = kDeadRow, least = INT64_MAX;  // largest exponent, least one of a product
  int64_t bottom = INT64_MAX;                            // least exponent
  int64_t deepest = INT64_MAX;                           // least exponent of a child

  // row * 2^before times the child at this cell
  void add(const double* row, int64_t before, int64_t low, int64_t cell) {
    const int64_t child = r.child_exponent[cell], exponent = before + child;
    low += r.child_low[cell];
    deepest = child < deepest ? child : deepest;
    r.terms[count++] = {row, r.child + cell * r.stride, exponent};
    top = exponent > top ? exponent : top;
    bottom = exponent < bottom ? exponent : bottom;
    least = exponent + low < least ? exponent + low : least;
  }
  // out (stride,) = the sum; k: its exponent, low: as in settle. False: give up.
  bool finish(double* out, int64_t& k, int64_t& low) {
    k = top;
    if (count == 0) return true;
    if (bottom - top < -1000) {  // some terms vanish
      int64_t kept = 0;
      for (int64_t i = 0; i < count; ++i)
        if (r.terms[i].exponent - top >= -1000) r.terms[kept++] = r.terms[i];
      count = kept;
    }
    for (int64_t i = 0; deepest < kDeepest && i < count; ++i)
      if (r.child_exponent[(r.terms[i].child - r.child) / r.stride] < kDeepest) return false;
    int64_t s = 0;
    for (; s + 4 * kLanes <= r.stride; s += 4 * kLanes) sum_terms_block<4>(r.terms, count, top, s, out);
    for (; s + 2 * kLanes <= r.stride; s += 2 * kLanes) sum_terms_block<2>(r.terms, count, top, s, out);
    for (; s < r.stride; s += kLanes) sum_terms_block<1>(r.terms, count, top, s, out);
    return settle(out, r.layers[r.depth].size, least - top >= kNoLoss, k, low) >= 0;
  }
};

// after(n): all children that end at n; false: give up
inline bool nested_children(const NestedRun& r, int64_t n) {
  const int64_t j = r.start + n, furthest = n < r.reach ? n : r.reach;
  NestedSum sum{r};
  for (int64_t m = 1; m <= furthest; ++m) {
    const int64_t t = j - m, cell = r.cells[t] + m - 1, before = r.before_k[n - m];
    if (before == kDeadRow || cell >= r.cells[t + 1]) continue;
    if (r.child_exponent[cell] != kDeadRow)
      sum.add(r.before + (n - m) * r.stride, before, r.before_low[n - m], cell);
  }
  return sum.finish(r.after + n * r.stride, r.after_k[n], r.after_low[n]);
}

// Fills before, after and ends. False: use log space.
inline bool nested_forward(const NestedRun& r) {
  const int64_t L = r.depth;
  int64_t bounds[64];
  for (int64_t n = 0; n <= r.longest; ++n) {
    const int64_t j = r.start + n;
    r.ends[n] = 0.0;
    r.ends_k[n] = 0;
    r.before_k[n] = r.after_k[n] = kDeadRow;
    if (n > 0) {
      if (!may_end(r, j, r.level + L)) continue;
      if (!nested_children(r, n)) return false;
      if (r.after_k[n] == kDeadRow) continue;
      nested_up(r, n, bounds);
      if (may_end(r, j, r.level)) {
        const double mass = r.up[0][0];
        if (!(mass > kTiny) && (mass > 0.0 || bounds[0] <= kNoLoss)) return false;
        r.ends[n] = mass;
        r.ends_k[n] = r.up_k[0];
      }
    }
    if (n < r.longest && !nested_begin(r, n, bounds)) return false;
  }
  return true;
}

// x and bd out of ahead(n), from the bottom up to layer 1; returns the bounds of x by layer
inline void nested_ahead_up(const NestedRun& r, int64_t n, int64_t* bound) {
  const int64_t j = r.start + n, L = r.depth;
  r.bd[L] = r.ahead + n * r.stride;
  r.bd_k[L] = r.ahead_k[n];
  int64_t low = r.ahead_low[n];
  for (int64_t f = L; f >= 1; --f) {
    const NestedLayer& layer = r.layers[f];
    if (r.bd_k[f] == kDeadRow) {  // nothing follows, j may be the end
      r.x_k[f] = r.bd_k[f - 1] = kDeadRow;
      continue;
    }
    const NestedFactor first = f < L ? factor_at(r.first[f], j) : NestedFactor{nullptr, 0, 0};
    if (first.weight)
      for (int64_t c = 0; c < layer.size; ++c) r.x[f][c] = r.bd[f][c] * first.weight[layer.state[c]];
    else
      for (int64_t c = 0; c < layer.size; ++c) r.x[f][c] = r.bd[f][c];
    r.x_k[f] = r.bd_k[f] + first.exponent;
    bound[f] = low + first.low;
    if (f == 1) break;
    const NestedFactor init = factor_at(r.init[f], j);
    for (int64_t g = 0; g < r.layers[f - 1].size; ++g) {
      const double* w = init.weight + layer.pair[g] - layer.first[g];
      double sum = 0.0;
      for (int64_t c = layer.first[g]; c < layer.first[g + 1]; ++c) sum += w[c] * r.x[f][c];
      r.bd[f - 1][g] = sum;
    }
    r.bd_k[f - 1] = r.x_k[f] + init.exponent;
    low = bound[f] + init.low;
  }
}

// bu out of x and outside(n), n > 0, down to some layer; returns its bound
inline int64_t nested_rest_down(const NestedRun& r, int64_t n, const int64_t* x_bound, int64_t layers) {
  const int64_t j = r.start + n, L = r.depth;
  int64_t bound = 0;
  r.bu_k[0] = kDeadRow;
  if (r.outside[n] > 0.0) {
    int k;
    r.bu[0][0] = std::frexp(r.outside[n], &k);
    r.bu_k[0] = k + r.outside_k[n];
  }
  for (int64_t f = 1; f <= layers; ++f) {
    const NestedLayer& layer = r.layers[f];
    const bool moves = j < r.length && n < r.longest && r.x_k[f] != kDeadRow && may_move(r, j, f);
    const bool closes = r.bu_k[f - 1] != kDeadRow;
    double* out = r.bu[f];
    if (!moves && !closes) {
      r.bu_k[f] = kDeadRow;
      continue;
    }
    int64_t move_k = kDeadRow, close_k = kDeadRow, next_bound = 0;
    if (moves) {
      const NestedTable& table = r.transit[f];
      const NestedFactor a = factor_at(table, j - 1);
      const double* transposed = table.transposed + (a.weight - table.weight);
      for (int64_t g = 0; g < r.layers[f - 1].size; ++g) {
        const int64_t c = layer.first[g], size = layer.first[g + 1] - c;
        matvec(transposed + layer.square[g], size, padded(size), r.x[f] + c, out + c);
      }
      move_k = r.x_k[f] + a.exponent;
      next_bound = x_bound[f] + a.low;
    }
    const NestedFactor end = factor_at(r.end[f], j - 1);
    const NestedFactor last = f > 1 ? factor_at(r.last[f - 1], j - 1) : NestedFactor{nullptr, 0, 0};
    if (closes) close_k = r.bu_k[f - 1] + end.exponent + last.exponent;
    const int64_t top = move_k > close_k ? move_k : close_k;
    if (moves) next_bound += move_k - top;
    if (closes) {
      const int64_t b = bound + end.low + last.low + close_k - top;
      next_bound = moves && next_bound < b ? next_bound : b;
      const double keep = moves ? shift(move_k - top) : 0.0, factor = shift(close_k - top);
      for (int64_t g = 0; g < r.layers[f - 1].size; ++g) {
        double y = r.bu[f - 1][g] * factor;
        if (last.weight) y *= last.weight[r.layers[f - 1].state[g]];
        const double* w = end.weight + layer.pair[g] - layer.first[g];
        if (moves)
          for (int64_t c = layer.first[g]; c < layer.first[g + 1]; ++c) out[c] = out[c] * keep + y * w[c];
        else
          for (int64_t c = layer.first[g]; c < layer.first[g + 1]; ++c) out[c] = y * w[c];
      }
    }
    r.bu_k[f] = top;
    bound = next_bound;
    if (bound < kNoLoss && f < L) bound = kNoLoss - 100000;  // stays lossy
  }
  return bound;
}

// ahead(n): all children that begin at n; false: give up
inline bool nested_ahead(const NestedRun& r, int64_t n) {
  const int64_t t = r.start + n;
  int64_t furthest = r.cells[t + 1] - r.cells[t];
  if (furthest > r.longest - n) furthest = r.longest - n;
  NestedSum sum{r};
  for (int64_t m = 1; m <= furthest; ++m) {
    const int64_t cell = r.cells[t] + m - 1, rest = r.rest_k[n + m];
    if (r.child_exponent[cell] != kDeadRow && rest != kDeadRow)
      sum.add(r.rest + (n + m) * r.stride, rest, r.rest_low[n + m], cell);
  }
  return sum.finish(r.ahead + n * r.stride, r.ahead_k[n], r.ahead_low[n]);
}

// out[i] = u * v[i] * w[i] * 2^k (v null: one), every product at most about one however large k is
inline void products(double u, const double* v, const double* w, int64_t k, int64_t n, double* out) {
  if (k < -1060 || k > 3000 || u == 0.0) {
    for (int64_t i = 0; i < n; ++i) out[i] = 0.0;
  } else if (k <= 900) {
    const double c = k < -1000 ? u * 0x1p-1000 * two_to(static_cast<int>(k + 1000)) : u * two_to(static_cast<int>(k));
    if (v)
      for (int64_t i = 0; i < n; ++i) out[i] = c * v[i] * w[i];
    else
      for (int64_t i = 0; i < n; ++i) out[i] = c * w[i];
  } else {
    const int a = static_cast<int>(k / 3), b = v ? a : 0, c = static_cast<int>(k) - a - b;
    for (int64_t i = 0; i < n; ++i) {
      const double y = std::ldexp(w[i], c);
      out[i] = w[i] == 0.0 || (v && v[i] == 0.0) ? 0.0 : std::ldexp(u, a) * (v ? std::ldexp(v[i], b) : 1.0) * y;
    }
  }
}

inline void expect_pairs(const NestedRun& r, const NestedExpect& e, int64_t t, int64_t f, int64_t g, const double* row) {
  const NestedLayer& layer = r.layers[f];
  const int64_t c = layer.first[g], size = layer.first[g + 1] - c;
  if (e.counts)
    for (int64_t i = 0; i < size; ++i) e.counts[layer.pair[g] + i] += row[i];
  if (e.by_time) {
    const int64_t p = r.layers[f - 1].state[g];
    double* out = e.by_time + (t * r.states[f - 1] + p) * r.states[f];
    for (int64_t i = 0; i < size; ++i) out[layer.state[c + i]] += row[i];
  }
}

// The expectations of events at n; up, down, x, bu and bd are those of n.
inline void nested_expect_events(const NestedRun& r, int64_t n, bool goes_on) {
  const int64_t j = r.start + n, L = r.depth;
  double* row = r.row;
  for (int64_t f = 1; f <= L; ++f) {
    const NestedLayer& layer = r.layers[f];
    const NestedFactor last = f > 1 && n > 0 ? factor_at(r.last[f - 1], j - 1) : NestedFactor{nullptr, 0, 0};
    const bool moves = n > 0 && goes_on && r.x_k[f] != kDeadRow && may_move(r, j, f);
    const bool closes = n > 0 && r.bu_k[f - 1] != kDeadRow;
    const bool begins = goes_on && r.down_k[f - 1] != kDeadRow && r.x_k[f] != kDeadRow;
    for (int64_t g = 0; g < r.layers[f - 1].size; ++g) {
      const int64_t c = layer.first[g], size = layer.first[g + 1] - c;
      const NestedExpect& t_e = r.transit_e[f];
      if (moves && (t_e.counts || t_e.by_time)) {
        const NestedFactor a = factor_at(r.transit[f], j - 1);
        const int64_t k = r.up_k[f] + a.exponent + r.x_k[f], width = padded(size);
        for (int64_t i = 0; i < size; ++i) {
          const double* weight = a.weight + layer.square[g] + i * width;
          double* out = t_e.counts ? t_e.counts + layer.square[g] + i * width : nullptr;
          if (out && !t_e.by_time && k > -1000 && k <= 900) {
            const Vec u = splat(r.up[f][c + i] * two_to(static_cast<int>(k)));
            for (int64_t h = 0; h < width; h += kLanes)  // what lies beyond the children has no weight
              store(out + h, muladd(u * load(weight + h), load(r.x[f] + c + h), load(out + h)));
            continue;
          }
          products(r.up[f][c + i], weight, r.x[f] + c, k, size, row);
          if (out)
            for (int64_t h = 0; h < size; ++h) out[h] += row[h];
          if (t_e.by_time) {
            const int64_t S = r.states[f];
            double* out = t_e.by_time + (((j - 1) * r.states[f - 1] + r.layers[f - 1].state[g]) * S + layer.state[c + i]) * S;
            for (int64_t h = 0; h < size; ++h) out[layer.state[c + h]] += row[h];
          }
        }
      }
      if (closes && (r.end_e[f].counts || r.end_e[f].by_time)) {
        const NestedFactor e = factor_at(r.end[f], j - 1);
        double y = r.bu[f - 1][g];
        if (last.weight) y *= last.weight[r.layers[f - 1].state[g]];
        products(y, e.weight + layer.pair[g], r.up[f] + c, r.up_k[f] + e.exponent + last.exponent + r.bu_k[f - 1], size,
                 row);
        expect_pairs(r, r.end_e[f], j - 1, f, g, row);
      }
      if (begins && (r.init_e[f].counts || r.init_e[f].by_time)) {
        const NestedFactor i = factor_at(r.init[f], j);
        products(r.down[f - 1][g], i.weight + layer.pair[g], r.x[f] + c, r.down_k[f - 1] + i.exponent + r.x_k[f], size,
                 row);
        expect_pairs(r, r.init_e[f], j, f, g, row);
      }
    }
    if (f == L) break;
    if (n > 0 && r.stops[f] && r.bu_k[f] != kDeadRow) {
      double* out = r.stops[f] + (j - 1) * r.states[f];
      for (int64_t c = 0; c < layer.size; ++c) {
        products(r.up[f][c], nullptr, r.bu[f] + c, r.up_k[f] + r.bu_k[f], 1, row);
        out[layer.state[c]] += row[0];
      }
    }
    if (goes_on && r.starts[f] && r.bd_k[f] != kDeadRow && r.down_k[f] != kDeadRow) {
      double* out = r.starts[f] + j * r.states[f];
      for (int64_t c = 0; c < layer.size; ++c) {
        products(r.down[f][c], nullptr, r.bd[f] + c, r.down_k[f] + r.bd_k[f], 1, row);
        out[layer.state[c]] += row[0];
      }
    }
  }
}

// After nested_forward: rest and ahead, then every expectation. False: use log space; nothing was added then.
inline bool nested_backward(const NestedRun& r) {
  const int64_t L = r.depth, N = r.longest, W = r.stride, width = r.layers[L].size;
  int64_t bounds[64];
  for (int64_t n = N; n >= 0; --n) {
    r.ahead_k[n] = r.rest_k[n] = kDeadRow;
    if (n < N && r.before_k[n] != kDeadRow && !nested_ahead(r, n)) return false;
    if (n == 0 || r.after_k[n] == kDeadRow) continue;
    nested_ahead_up(r, n, bounds);
    const int64_t bound = nested_rest_down(r, n, bounds, L);
    r.rest_k[n] = r.bu_k[L];
    if (r.bu_k[L] == kDeadRow) continue;
    double* row = r.rest + n * W;
    for (int64_t s = 0; s < width; ++s) row[s] = r.bu[L][s];
    for (int64_t s = width; s < W; ++s) row[s] = 0.0;
    if (settle(row, width, bound > kNoLoss, r.rest_k[n], r.rest_low[n]) < 0) return false;
  }
  const NestedLayer& leaf = r.layers[L];
  for (int64_t n = 0; n <= N; ++n) {
    const int64_t t = r.start + n;
    const bool goes_on = n < N && r.before_k[n] != kDeadRow && r.ahead_k[n] != kDeadRow;
    const bool arrives = n > 0 && r.after_k[n] != kDeadRow && r.rest_k[n] != kDeadRow;
    if (n > 0 && !arrives) continue;
    if (n > 0) nested_up(r, n, bounds);
    if (goes_on) {
      nested_down(r, n, bounds, L - 1);
      nested_ahead_up(r, n, bounds);
    } else {
      for (int64_t f = 0; f <= L; ++f) r.down_k[f] = r.x_k[f] = r.bd_k[f] = kDeadRow;
    }
    if (n > 0) {
      if (!goes_on)
        for (int64_t f = 0; f <= L; ++f) bounds[f] = 0;
      nested_rest_down(r, n, bounds, L - 1);
    }
    nested_expect_events(r, n, goes_on);
    if (!goes_on) continue;
    int64_t furthest = r.cells[t + 1] - r.cells[t];
    if (furthest > N - n) furthest = N - n;
    for (int64_t m = 1; m <= furthest; ++m) {
      const int64_t cell = r.cells[t] + m - 1, ck = r.child_exponent[cell];
      if (ck == kDeadRow || r.rest_k[n + m] == kDeadRow) continue;
      const int64_t k = r.before_k[n] + ck + r.rest_k[n + m];
      if (k < -1060 || k > 3000) continue;
      const double* b = r.before + n * W;
      const double* w = r.child + cell * W;
      const double* e = r.rest + (n + m) * W;
      double* out = r.segments + cell * r.states[L];
      if (k <= 900) {
        // at most 1 / w, which is far from overflow where the row of children is not done in log space
        const Vec f = splat(k < -1000 ? 0x1p-1000 * two_to(static_cast<int>(k + 1000)) : two_to(static_cast<int>(k)));
        double* sum = r.stacks + cell * W;
        for (int64_t s = 0; s < W; s += kLanes) store(sum + s, muladd(load(b + s) * f, load(e + s), load(sum + s)));
      } else {
        const int a = static_cast<int>(k / 3), c = static_cast<int>(k) - 2 * a;
        for (int64_t s = 0; s < width; ++s)
          if (b[s] > 0.0 && w[s] > 0.0 && e[s] > 0.0)
            out[leaf.state[s]] += std::ldexp(b[s], a) * std::ldexp(w[s], a) * std::ldexp(e[s], c);
      }
    }
  }
  return true;
}

}  // namespace scansion::SCANSION_ISA
