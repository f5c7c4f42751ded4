// Nested lattices: topology and scores. Levels are cut into blocks (nested_views.hpp); the stacks of each block, the
// parents' children side by side, and the exponentials of scores are laid out here for the kernel and for log space.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "exact.hpp"
#include "kernels.hpp"
#include "nested_views.hpp"
#include "numeric.hpp"

namespace scansion {

// Scores of one kind between a parent's level and its children's: one array, or one per row.
struct NestedClique {
  const double* scores = nullptr;
  int64_t stride = 0;  // 0: the same at every row
  const double* at(int64_t t) const { return scores + t * stride; }
};

// Persistence of one level in one sequence; null is zero.
struct NestedLevel {
  int64_t states = 0;
  int64_t longest = 0;                                           // M, no longer than the sequence
  const double* inside = nullptr;                                // (T, S)
  const double* start = nullptr;                                 // (T, S) or (S,)
  const double* stop = nullptr;                                  // likewise
  int64_t inside_stride = 0, start_stride = 0, stop_stride = 0;  // from row to row; 0: the same at every row
  const double* length = nullptr;                                // (M, S)
  const double* spans = nullptr;                                 // (T, spans_stride, S)
  int64_t spans_stride = 0;
  const uint8_t* allowed = nullptr;  // (T, S)

  // score of state s at position t, over and over within a segment
  double within(int64_t t, int64_t s) const {
    if (allowed && !allowed[t * states + s]) return kMinusInfinity;
    return inside ? inside[t * inside_stride + s] : 0.0;
  }
  double at_start(int64_t t, int64_t s) const { return start ? start[t * start_stride + s] : 0.0; }
  double at_stop(int64_t t, int64_t s) const { return stop ? stop[t * stop_stride + s] : 0.0; }
  // score of the span [t, t + n) in state s, inside: the sum of within over it
  template <class Number>
  Number span(int64_t t, int64_t n, int64_t s, const Number& inside) const {
    Number x = inside + Number(at_start(t, s)) + Number(at_stop(t + n - 1, s));
    if (length) x = x + Number(length[(n - 1) * states + s]);
    if (spans) x = x + Number(spans[(t * spans_stride + n - 1) * states + s]);
    return x;
  }
};

// One sequence.
struct NestedView {
  int64_t length = 0;
  std::vector<NestedLevel> levels;                // root first
  std::vector<NestedClique> transit, init, end;   // by the children's level, from 1
  const int64_t *low = nullptr, *high = nullptr;  // (T,) see NestedRun
  bool may_end(int64_t j, int64_t level) const { return j == length || low[j - 1] <= level; }
  bool may_move(int64_t j, int64_t level) const { return low[j - 1] <= level && level <= high[j - 1]; }
  // persistence of the root; of a sequence that is not empty
  Exact root(int64_t s) const {
    const bool sums = levels[0].inside || levels[0].allowed;
    Exact inside;
    for (int64_t t = 0; sums && t < length; ++t) inside += Exact(levels[0].within(t, s));
    return levels[0].span(0, length, s, inside);
  }
  // level g is that of single steps below a free one; zeros (S_{g-1},)
  void set_steps(int64_t g, const double* zeros) {
    levels[g].states = levels[g].longest = 1;
    transit[g] = init[g] = end[g] = {zeros, 0};
  }
};

// The children of each parent state, side by side.
struct NestedChildren {
  int64_t parents = 0, children = 0;
  std::vector<int64_t> pair;    // (parents + 1,)
  std::vector<int32_t> kid;     // (pairs,)
  std::vector<int64_t> square;  // (parents + 1,) rows padded to whole vectors
  std::vector<int32_t> rank;    // (parents, children) place among the parent's children, or -1

  // where init and end of a pair stand, and the transition from v to u; -1: not possible
  int64_t pair_of(int64_t p, int64_t u) const {
    return rank[p * children + u] < 0 ? -1 : pair[p] + rank[p * children + u];
  }
  int64_t square_of(int64_t p, int64_t v, int64_t u) const {
    const int64_t i = rank[p * children + v], j = rank[p * children + u], n = pair[p + 1] - pair[p];
    return i < 0 || j < 0 ? -1 : square[p] + i * padded4(n) + j;
  }
};

// Stacks of one block under one parent state.
struct NestedStacks {
  std::vector<std::vector<int32_t>> state, first;  // by layer
  std::vector<std::vector<int32_t>> above;         // (size,) index in the layer above
  std::vector<std::vector<int64_t>> pair, square;
  std::vector<NestedLayer> layers;
  int64_t width = 0, stride = 0;  // of the last layer, and padded
  int64_t widest = 0;
  int64_t offset = 0;  // of this parent's part in a row of children
  int64_t kin = 0;     // parents of the same kin have the same children, and share their part
};

struct NestedBlock {
  int64_t top = 0, bottom = 0;       // levels d and e
  std::vector<NestedStacks> stacks;  // by parent state
  int64_t child_stride = 0, kins = 0;
  int64_t depth() const { return bottom - top; }
};

class NestedTopology {
 public:
  // children: by level of the parents, (S_d, S_{d+1}); free: levels whose persistence is a plain sum over time steps. A
  // bottom level that is free gets one more level of single steps below it.
  NestedTopology(std::vector<int64_t> sizes, std::vector<const uint8_t*> children, std::vector<uint8_t> free)
      : sizes_(std::move(sizes)), free_(std::move(free)) {
    const std::vector<uint8_t> ones(static_cast<size_t>(sizes_.back()), 1);
    if (free_.back()) {
      sizes_.push_back(1);
      children.push_back(ones.data());
      free_.push_back(0);
    }
    children_.resize(sizes_.size());
    for (size_t g = 1; g < sizes_.size(); ++g) {
      NestedChildren& c = children_[g];
      c.parents = sizes_[g - 1];
      c.children = sizes_[g];
      c.pair = {0};
      c.square = {0};
      for (int64_t p = 0; p < c.parents; ++p) {
        for (int64_t u = 0; u < c.children; ++u) {
          const bool child = children[g - 1][p * c.children + u];
          c.rank.push_back(child ? static_cast<int32_t>(static_cast<int64_t>(c.kid.size()) - c.pair[p]) : -1);
          if (child) c.kid.push_back(static_cast<int32_t>(u));
        }
        const int64_t size = static_cast<int64_t>(c.kid.size()) - c.pair.back();
        c.pair.push_back(static_cast<int64_t>(c.kid.size()));
        c.square.push_back(c.square.back() + size * padded4(size));
      }
    }
    int64_t top = 0;
    for (int64_t g = 1; g < levels(); ++g) {
      if (free_[g]) continue;
      blocks_.push_back(block(top, g));
      top = g;
    }
  }

  int64_t levels() const { return static_cast<int64_t>(sizes_.size()); }
  int64_t size(int64_t g) const { return sizes_[g]; }
  bool free(int64_t g) const { return free_[g]; }
  const NestedChildren& children(int64_t g) const { return children_[g]; }
  const std::vector<NestedBlock>& blocks() const { return blocks_; }
  // the block whose parents are of this level, or -1
  int64_t block_below(int64_t g) const {
    for (size_t b = 0; b < blocks_.size(); ++b)
      if (blocks_[b].top == g) return static_cast<int64_t>(b);
    return -1;
  }

 private:
  NestedBlock block(int64_t top, int64_t bottom) const {
    NestedBlock out;
    out.top = top;
    out.bottom = bottom;
    for (int64_t p = 0; p < sizes_[top]; ++p) {
      NestedStacks s;
      const int64_t L = bottom - top;
      s.state.resize(L + 1);
      s.first.resize(L + 1);
      s.above.resize(L + 1);
      s.pair.resize(L + 1);
      s.square.resize(L + 1);
      s.state[0] = {static_cast<int32_t>(p)};
      for (int64_t f = 1; f <= L; ++f) {
        const NestedChildren& c = children_[top + f];
        for (size_t a = 0; a < s.state[f - 1].size(); ++a) {
          const int64_t parent = s.state[f - 1][a];
          s.first[f].push_back(static_cast<int32_t>(s.state[f].size()));
          s.pair[f].push_back(c.pair[parent]);
          s.square[f].push_back(c.square[parent]);
          for (int64_t k = c.pair[parent]; k < c.pair[parent + 1]; ++k) {
            s.state[f].push_back(c.kid[k]);
            s.above[f].push_back(static_cast<int32_t>(a));
          }
        }
        s.first[f].push_back(static_cast<int32_t>(s.state[f].size()));
      }
      s.layers.resize(L + 1);
      for (int64_t f = 0; f <= L; ++f) {
        s.layers[f] = {static_cast<int64_t>(s.state[f].size()), s.state[f].data(), s.first[f].data(), s.pair[f].data(),
                       s.square[f].data()};
        s.widest = std::max(s.widest, s.layers[f].size);
      }
      s.width = s.layers[L].size;
      s.stride = padded4(s.width);
      const auto alike = std::find_if(out.stacks.begin(), out.stacks.end(), [&](const NestedStacks& other) {
        return L == 1 && other.state[1] == s.state[1];
      });
      if (alike != out.stacks.end()) {
        s.offset = alike->offset;
        s.kin = alike->kin;
      } else {
        s.offset = out.child_stride;
        s.kin = out.kins++;
        out.child_stride += s.stride;
      }
      out.stacks.push_back(std::move(s));
    }
    return out;
  }

  std::vector<int64_t> sizes_;
  std::vector<uint8_t> free_;
  std::vector<NestedChildren> children_;
  std::vector<NestedBlock> blocks_;
};

// Exponentials of scores, a row at a time: exp(score) = weight * 2^exponent.
struct NestedWeights {
  std::vector<double> weight, transposed;
  std::vector<int64_t> exponent, low;
  bool tame = true;  // no row is too large for the numbers that it will be added to

  // rows of scores of the given size; -inf is zero
  void exponentiate(int64_t rows, int64_t size) {
    exponent.assign(static_cast<size_t>(rows), 0);
    low.assign(static_cast<size_t>(rows), 0);
    tame = true;
    for (int64_t r = 0; r < rows; ++r) exponentiate(weight.data() + r * size, size, r);
  }

  // row r, which may stand elsewhere
  void exponentiate(double* row, int64_t size, int64_t r) {
    tame = tame && kernels().most(row, size) <= kTame;
    exponentiate_row(row, size, exponent[r], low[r]);
    tame = tame && exponent[r] >= kDeepest;
  }

  // false: nothing but -inf. What lies below kDeepest is too deep for its digits; exponents end at +-kBottom.
  static bool exponentiate_row(double* row, int64_t size, int64_t& exponent, int64_t& low) {
    constexpr double ln2 = 0.693147180559945309417, bottom = static_cast<double>(kBottom);
    double top, least;
    kernels().finite_range(row, size, top, least);
    exponent = 0;
    low = 0;
    if (!(top > kMinusInfinity)) {
      std::fill(row, row + size, 0.0);
      return false;
    }
    exponent = static_cast<int64_t>(std::ceil(std::clamp(top / ln2, -bottom, bottom)));
    const double k = static_cast<double>(exponent);
    low = static_cast<int64_t>(std::floor(std::clamp(least / ln2 - k, -bottom, 0.0))) - 1;
    kernels().exp_over(row, size, k);
    return true;
  }

  NestedTable table(int64_t size, bool by_time) const {
    NestedTable t;
    t.weight = weight.data();
    t.transposed = transposed.empty() ? nullptr : transposed.data();
    t.exponent = exponent.data();
    t.low = low.data();
    t.size = size;
    t.step = by_time ? 1 : 0;
    return t;
  }
};

// init or end, children side by side
inline NestedTable pair_weights(const NestedChildren& c, const NestedClique& given, int64_t T, NestedWeights& out) {
  const int64_t size = static_cast<int64_t>(c.kid.size()), rows = given.stride ? T : 1;
  out.weight.resize(static_cast<size_t>(rows * size));
  for (int64_t t = 0; t < rows; ++t) {
    const double* scores = given.at(t);
    double* row = out.weight.data() + t * size;
    for (int64_t p = 0; p < c.parents; ++p)
      for (int64_t k = c.pair[p]; k < c.pair[p + 1]; ++k) row[k] = scores[p * c.children + c.kid[k]];
  }
  out.exponentiate(rows, size);
  return out.table(size, given.stride != 0);
}

// transitions, padded squares and their transposes
inline NestedTable square_weights(const NestedChildren& c, const NestedClique& given, int64_t T, NestedWeights& out) {
  const int64_t size = c.square.back(), rows = given.stride ? std::max<int64_t>(T - 1, 0) : 1;
  out.weight.assign(static_cast<size_t>(rows * size), 0.0);
  out.transposed.assign(static_cast<size_t>(rows * size), 0.0);
  out.exponent.resize(static_cast<size_t>(rows));
  out.low.resize(static_cast<size_t>(rows));
  out.tame = true;
  std::vector<double> plain;  // one row without what pads it
  for (int64_t t = 0; t < rows; ++t) {
    plain.clear();
    for (int64_t p = 0; p < c.parents; ++p) {
      const int64_t n = c.pair[p + 1] - c.pair[p];
      const int32_t* kid = c.kid.data() + c.pair[p];
      for (int64_t i = 0; i < n; ++i) {
        const double* scores = given.at(t) + (p * c.children + kid[i]) * c.children;
        for (int64_t j = 0; j < n; ++j) plain.push_back(scores[kid[j]]);
      }
    }
    out.exponentiate(plain.data(), static_cast<int64_t>(plain.size()), t);
    const double* from = plain.data();
    for (int64_t p = 0; p < c.parents; ++p) {
      const int64_t n = c.pair[p + 1] - c.pair[p], width = padded4(n);
      double *to = out.weight.data() + t * size + c.square[p], *flip = out.transposed.data() + t * size + c.square[p];
      for (int64_t i = 0; i < n; ++i, from += n)
        for (int64_t j = 0; j < n; ++j) to[i * width + j] = flip[j * width + i] = from[j];
    }
  }
  return out.table(size, given.stride != 0);
}

// start or stop of a free level
inline NestedTable edge_weights(const double* given, int64_t stride, int64_t states, int64_t T, NestedWeights& out) {
  if (!given) return {};
  const int64_t rows = stride ? T : 1;
  out.weight.resize(static_cast<size_t>(rows * states));
  for (int64_t t = 0; t < rows; ++t) std::copy_n(given + t * stride, states, out.weight.data() + t * states);
  out.exponentiate(rows, states);
  return out.table(states, stride != 0);
}

// The spans of a timed level that bounds and knowledge leave, by start and length.
struct NestedCells {
  std::vector<int64_t> first;  // (T + 1,)
  int64_t longest = 0;

  // fills first, and value (cells, S) with the persistence of each span, -inf where it is not possible
  template <class Number>
  void fill(const NestedView& view, int64_t g, std::vector<Number>& value) {
    const NestedLevel& level = view.levels[g];
    const int64_t T = view.length, S = level.states;
    first.assign(static_cast<size_t>(T + 1), 0);
    longest = 0;
    value.clear();
    std::vector<Number> sum;
    for (int64_t t = 0; t < T; ++t) {
      int64_t n = 0;
      if (t == 0 || view.low[t - 1] <= g) {
        sum.assign(static_cast<size_t>(S), Number(0.0));
        const int64_t most = std::min(level.longest, T - t);
        while (n < most) {
          bool alive = false;
          for (int64_t s = 0; s < S; ++s) {
            sum[s] += Number(level.within(t + n, s));
            alive = alive || possible(sum[s]);
          }
          if (!alive) break;
          ++n;
          const int64_t stop = t + n;
          if (!view.may_end(stop, g)) {
            value.insert(value.end(), static_cast<size_t>(S), Number(kMinusInfinity));
            continue;
          }
          for (int64_t s = 0; s < S; ++s) value.push_back(level.span(t, n, s, sum[s]));
          if (stop < T && view.high[stop - 1] <= g) break;
        }
      }
      first[t + 1] = first[t] + n;
      longest = std::max(longest, n);
    }
  }
  int64_t count() const { return first.back(); }
  int64_t extent(int64_t t) const { return first[t + 1] - first[t]; }
};

}  // namespace scansion
