// The runs of nested.hpp in log space, for any sum: log-sum-exp (where scaling gives up; samples), max (the best
// configuration) and log-sum-exp with entropies; in doubles or in exact numbers. And posteriors out of a run.
#pragma once

#include <type_traits>

#include "nested_model.hpp"

namespace scansion {

// ---- sums of terms ----
//
// sum_rows adds up the rows of a table (rows, columns), column by column; the table is overwritten.

// values that are logarithms
template <class N>
struct Logarithms {
  using Number = N;
  using Value = N;
  static Value of(const Number& score) { return score; }
  static const Number& score(const Value& v) { return v; }
  static Value times(const Value& a, const Value& b) { return a + b; }
  static void shift(Value& v, double by) { v += Number(by); }
};

template <class N>
struct LogSum : Logarithms<N> {
  using Number = N;
  using Value = N;
  static Value sum(const Value* x, size_t n) {
    Number top(kMinusInfinity);
    for (size_t i = 0; i < n; ++i) top = top < x[i] ? x[i] : top;
    if (!possible(top)) return top;
    double total = 0.0;
    for (size_t i = 0; i < n; ++i) total += std::exp(gap(x[i], top));
    return top + Number(std::log(total));
  }
  // the columns' greatest terms into out, and into weight each term's beside the greatest
  static void weigh(const Number* x, int64_t rows, int64_t columns, double* weight, Number* out) {
    std::fill(out, out + columns, Number(kMinusInfinity));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t c = 0; c < columns; ++c) out[c] = out[c] < x[i * columns + c] ? x[i * columns + c] : out[c];
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t c = 0; c < columns; ++c)
        weight[i * columns + c] = possible(out[c]) ? gap(x[i * columns + c], out[c]) : kMinusInfinity;
    kernels().exp_array(weight, rows * columns, weight);
  }
  static void sum_rows(const Value* x, int64_t rows, int64_t columns, Value* out, std::vector<double>& weight) {
    if (rows == 1) {
      std::copy(x, x + columns, out);
      return;
    }
    weight.resize(static_cast<size_t>(rows * columns));
    weigh(x, rows, columns, weight.data(), out);
    for (int64_t i = 1; i < rows; ++i)
      for (int64_t c = 0; c < columns; ++c) weight[c] += weight[i * columns + c];
    for (int64_t c = 0; c < columns && rows > 0; ++c)
      if (possible(out[c])) out[c] += Number(std::log(weight[c]));
  }
};

template <class N>
struct Highest : Logarithms<N> {
  using Number = N;
  using Value = N;
  static Value sum(const Value* x, size_t n) {
    Number top(kMinusInfinity);
    for (size_t i = 0; i < n; ++i) top = top < x[i] ? x[i] : top;
    return top;
  }
  static void sum_rows(const Value* x, int64_t rows, int64_t columns, Value* out, std::vector<double>&) {
    std::fill(out, out + columns, Number(kMinusInfinity));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t c = 0; c < columns; ++c) out[c] = out[c] < x[i * columns + c] ? x[i * columns + c] : out[c];
  }
};

// Weight and entropy of a set of ways to go on: H = sum_i c_i (H_i - log c_i), c_i = w_i / sum w.
template <class N>
struct LogSumEntropy {
  using Number = N;
  struct Value {
    Number log_weight = Number(kMinusInfinity);
    double entropy = 0.0;
  };
  static Value of(const Number& score) { return {score, 0.0}; }
  static const Number& score(const Value& v) { return v.log_weight; }
  static Value times(const Value& a, const Value& b) { return {a.log_weight + b.log_weight, a.entropy + b.entropy}; }
  static void shift(Value& v, double by) { v.log_weight += Number(by); }
  static Value sum(const Value* x, size_t n) {
    Number top(kMinusInfinity);
    for (size_t i = 0; i < n; ++i) top = top < x[i].log_weight ? x[i].log_weight : top;
    if (!possible(top)) return {};
    double total = 0.0, h = 0.0;
    for (size_t i = 0; i < n; ++i) total += std::exp(gap(x[i].log_weight, top));
    const double log_total = std::log(total);
    for (size_t i = 0; i < n; ++i) {
      const double log_c = gap(x[i].log_weight, top) - log_total, c = std::exp(log_c);
      if (c > 0.0) h += c * (x[i].entropy - log_c);
    }
    return {top + Number(log_total), h};
  }
  static void sum_rows(const Value* x, int64_t rows, int64_t columns, Value* out, std::vector<double>& weight) {
    std::vector<Number> score(static_cast<size_t>(rows * columns)), top(static_cast<size_t>(columns));
    weight.resize(score.size());
    for (size_t i = 0; i < score.size(); ++i) score[i] = x[i].log_weight;
    LogSum<Number>::weigh(score.data(), rows, columns, weight.data(), top.data());
    for (int64_t c = 0; c < columns; ++c) {
      double total = 0.0, mean = 0.0;
      for (int64_t i = 0; i < rows; ++i) {
        const double w = weight[i * columns + c];
        const Value& v = x[i * columns + c];
        total += w;
        mean += w > 0.0 ? w * (v.entropy - gap(v.log_weight, top[c])) : 0.0;
      }
      out[c] = Value();
      if (possible(top[c])) out[c] = {top[c] + Number(std::log(total)), mean / total + std::log(total)};
    }
  }
};

// ---- runs ----

// One run: rows n = 0..N of stacks, each relative to its base.
template <class Ring>
struct NestedRows {
  using Value = typename Ring::Value;
  int64_t start = 0, longest = 0, parent = 0;
  std::vector<Value> before, after, ends;       // (N + 1, width) twice, (N + 1,); ends has the base of after
  std::vector<double> before_base, after_base;  // (N + 1,)
  // ends with their bases, (N + 1,)
  const Value* whole_ends() {
    whole.resize(ends.size());
    for (size_t n = 0; n < ends.size(); ++n)
      whole[n] = Ring::times(ends[n], Ring::of(typename Ring::Number(after_base[n])));
    return whole.data();
  }
  // that of the whole sequence under a parent of the root's level, with the root's own scores
  Exact total(const NestedView& view) const {
    return view.root(parent) + Exact(Ring::score(ends[longest])) + Exact(after_base[longest]);
  }
  std::vector<Value> whole;
};

// The levels of one sequence as a run needs them: persistence sums of timed levels, with all below them.
template <class Ring>
struct NestedTables {
  using Number = typename Ring::Number;
  std::vector<NestedCells> cells;                        // by level, timed ones
  std::vector<std::vector<typename Ring::Value>> value;  // (cells, S): weight of a segment with all inside it
  std::vector<std::vector<Number>> within;  // by block, those with free levels: (T, child_stride), scores of a stack's
                                            // free levels at a position
  bool tame = true;                         // the numbers hold all digits

  // level g's values are no larger than what they will be added to
  void watch(int64_t g) {
    if constexpr (std::is_same_v<typename Ring::Value, double>)
      tame = tame && kernels().most(value[g].data(), static_cast<int64_t>(value[g].size())) <= kFar;
    else if constexpr (std::is_same_v<Number, double>)
      for (const auto& v : value[g]) tame = tame && !(Ring::score(v) > kFar);
  }
};

template <class Number>
void free_within(const NestedTopology& model, const NestedView& view, const NestedBlock& block,
                 std::vector<Number>& out) {
  out.clear();
  if (block.depth() == 1) return;
  out.assign(static_cast<size_t>(view.length * block.child_stride), Number(0.0));
  std::vector<Number> layer, above;
  for (int64_t t = 0; t < view.length; ++t)
    for (const NestedStacks& s : block.stacks) {
      above.assign(1, Number(0.0));
      for (int64_t f = 1; f <= block.depth(); ++f) {
        layer.resize(s.state[f].size());
        const bool free = model.free(block.top + f);
        for (size_t c = 0; c < layer.size(); ++c)
          layer[c] = above[s.above[f][c]] + Number(free ? view.levels[block.top + f].within(t, s.state[f][c]) : 0.0);
        layer.swap(above);
      }
      std::copy(above.begin(), above.end(), out.begin() + t * block.child_stride + s.offset);
    }
}

// Whether doubles can add the scores: none is so large that one which fell far behind could come back. Of the levels, and
// of the cliques between them.
inline double most_of(const double* x, int64_t n) { return x ? kernels().most(x, n) : kMinusInfinity; }
// of rows (rows, size) that lie stride apart, or of the one row that all share (stride 0)
inline double most_of(const double* x, int64_t rows, int64_t stride, int64_t size) {
  if (!stride) rows = std::min<int64_t>(rows, 1);
  if (stride == size) return most_of(x, rows * size);
  double most = kMinusInfinity;
  for (int64_t r = 0; r < rows; ++r) most = std::max(most, most_of(x ? x + r * stride : x, size));
  return most;
}

inline bool levels_are_tame(const NestedTopology& model, const NestedView& view,
                            const std::vector<NestedCells>& cells) {
  const int64_t T = view.length;
  for (const NestedBlock& block : model.blocks())
    for (int64_t g = block.top + 1; g <= block.bottom; ++g) {
      const NestedLevel& v = view.levels[g];
      const int64_t S = v.states;
      const double longest = static_cast<double>(cells[block.bottom].longest);
      if (!(most_of(v.start, T, v.start_stride, S) <= kTame && most_of(v.length, v.longest * S) <= kTame &&
            most_of(v.stop, T, v.stop_stride, S) <= kTame && most_of(v.spans, T * v.spans_stride * S) <= kTame &&
            most_of(v.inside, T, v.inside_stride, S) * longest <= kFar))
        return false;
    }
  return true;  // the root's own scores are added in exact numbers
}

inline bool cliques_are_tame(const NestedTopology& model, const NestedView& view) {
  const auto tame = [](const NestedClique& c, int64_t rows, int64_t size) {
    return most_of(c.scores, rows, c.stride, size) <= kTame;
  };
  const int64_t T = view.length;
  for (int64_t g = 1; g < model.levels(); ++g) {
    const int64_t S = model.size(g), P = model.size(g - 1);
    if (!tame(view.transit[g], T - 1, P * S * S) || !tame(view.init[g], T, P * S) || !tame(view.end[g], T, P * S))
      return false;
  }
  return true;
}

template <class Ring>
class NestedLogRun {
 public:
  using Value = typename Ring::Value;
  using Number = typename Ring::Number;
  NestedLogRun(const NestedTopology& model, const NestedView& view, const NestedBlock& block,
               const NestedTables<Ring>& tables)
      : model_(model),
        view_(view),
        block_(block),
        tables_(tables),
        free_(tables.within[&block - model.blocks().data()]) {}

  bool lost() const { return lost_; }  // digits: what came out since is of no use

  void forward(int64_t start, int64_t longest, int64_t parent, NestedRows<Ring>& rows) {
    const NestedStacks& s = block_.stacks[parent];
    const int64_t L = block_.depth(), W = s.width;
    rows.start = start;
    rows.longest = longest;
    rows.parent = parent;
    rows.before.assign(static_cast<size_t>((longest + 1) * W), nothing());
    rows.after.assign(static_cast<size_t>((longest + 1) * W), nothing());
    rows.ends.assign(static_cast<size_t>(longest + 1), nothing());
    rows.before_base.assign(static_cast<size_t>(longest + 1), 0.0);
    rows.after_base.assign(static_cast<size_t>(longest + 1), 0.0);
    alive_.assign(static_cast<size_t>(longest + 1), 0);
    for (int64_t n = 0; n <= longest; ++n) {
      const int64_t j = start + n;
      if (n > 0) {
        if (!view_.may_end(j, block_.bottom) || !children(rows, n)) continue;
        up(rows, n);
        if (view_.may_end(j, block_.top)) rows.ends[n] = up_[0][0];
        if (block_.top == 0 && n == longest) watch_end(Ring::score(rows.ends[n]));
      }
      if (n == longest) break;
      down(rows, n);
      for (int64_t c = 0; c < W; ++c) {
        rows.before[n * W + c] = down_[L][c];
        if (possible(Ring::score(down_[L][c]))) alive_[n] = 1;
      }
      rows.before_base[n] = rows.after_base[n] + settle(rows.before.data() + n * W, W);
    }
  }

  // after(n); false: nothing ends here
  bool children(NestedRows<Ring>& rows, int64_t n) {
    const NestedStacks& s = block_.stacks[rows.parent];
    const NestedCells& cells = tables_.cells[block_.bottom];
    const std::vector<Value>& value = tables_.value[block_.bottom];
    const int64_t W = s.width, S = model_.size(block_.bottom), j = rows.start + n;
    const std::vector<int32_t>& state = s.state[block_.depth()];
    within_.assign(static_cast<size_t>(W), Number(0.0));
    ways_.clear();
    double base = kMinusInfinity;
    for (int64_t m = 1; m <= std::min(n, cells.longest); ++m)
      if (alive_[n - m]) base = std::max(base, rows.before_base[n - m]);
    for (int64_t m = 1; m <= std::min(n, cells.longest); ++m) {
      const int64_t t = j - m;
      add_within(s, t);
      if (!alive_[n - m] || m > cells.extent(t)) continue;
      const Value* child = value.data() + (cells.first[t] + m - 1) * S;
      const Value* before = rows.before.data() + (n - m) * W;
      const size_t at = ways_.size();
      ways_.resize(at + W);
      const Number by(rows.before_base[n - m] - base);
      for (int64_t c = 0; c < W; ++c)
        ways_[at + c] = Ring::times(Ring::times(before[c], child[state[c]]), Ring::of(within_[c] + by));
    }
    if (ways_.empty()) return false;
    Value* out = rows.after.data() + n * W;
    Ring::sum_rows(ways_.data(), static_cast<int64_t>(ways_.size()) / W, W, out, weight_);
    rows.after_base[n] = base + settle(out, W);
    for (int64_t c = 0; c < W; ++c)
      if (possible(Ring::score(out[c]))) return true;
    return false;
  }

  // within_ grows by the free levels' scores at t
  void add_within(const NestedStacks& s, int64_t t) {
    if (free_.empty()) return;
    const Number* row = free_.data() + t * block_.child_stride + s.offset;
    for (int64_t c = 0; c < s.width; ++c) within_[c] += row[c];
  }

  // levels that end after a child ended at n, from the bottom up
  void up(const NestedRows<Ring>& rows, int64_t n) {
    const NestedStacks& s = block_.stacks[rows.parent];
    const int64_t L = block_.depth(), W = s.width, j = rows.start + n;
    up_.resize(L + 1);
    up_[L].assign(rows.after.begin() + n * W, rows.after.begin() + (n + 1) * W);
    for (int64_t f = L - 1; f >= 0; --f) {
      const int64_t g = block_.top + f;
      const double* end = view_.end[g + 1].at(j - 1);
      up_[f].resize(s.state[f].size());
      for (size_t a = 0; a < s.state[f].size(); ++a) {
        terms_.clear();
        for (int64_t c = s.first[f + 1][a]; c < s.first[f + 1][a + 1]; ++c)
          terms_.push_back(times(up_[f + 1][c], end[s.state[f][a] * model_.size(g + 1) + s.state[f + 1][c]]));
        const Value sum = Ring::sum(terms_.data(), terms_.size());
        up_[f][a] = f > 0 ? times(sum, view_.levels[g].at_stop(j - 1, s.state[f][a])) : sum;
      }
    }
  }

  // levels that begin at n, from the top down; up must be that of n for n > 0
  void down(const NestedRows<Ring>& rows, int64_t n) {
    const NestedStacks& s = block_.stacks[rows.parent];
    const int64_t L = block_.depth(), j = rows.start + n;
    down_.resize(L + 1);
    down_[0].assign(1, Ring::of(Number(n == 0 ? 0.0 : kMinusInfinity)));
    for (int64_t f = 1; f <= L; ++f) {
      const int64_t g = block_.top + f, S = model_.size(g);
      const double* init = view_.init[g].at(j);
      const bool moves = n > 0 && view_.may_move(j, g);
      const double* transit = moves ? view_.transit[g].at(j - 1) : nullptr;
      down_[f].resize(s.state[f].size());
      for (size_t a = 0; a < s.state[f - 1].size(); ++a) {
        const int64_t p = s.state[f - 1][a], first = s.first[f][a], size = s.first[f][a + 1] - first;
        const int32_t* state = s.state[f].data() + first;
        const bool begins = possible(Ring::score(down_[f - 1][a]));
        const bool dense = size > 0 && state[size - 1] - state[0] == size - 1;  // states side by side
        Value* out = down_[f].data() + first;
        const int64_t count = (begins ? 1 : 0) + (moves ? size : 0);
        terms_.resize(static_cast<size_t>(count * size));
        Value* row = terms_.data();
        if (begins) {
          for (int64_t c = 0; c < size; ++c) row[c] = times(down_[f - 1][a], init[p * S + state[c]]);
          row += size;
        }
        for (int64_t k = 0; moves && k < size; ++k, row += size) {
          const double* scores = transit + (p * S + state[k]) * S;
          const Value left = up_[f][first + k];
          if (dense)
            for (int64_t c = 0; c < size; ++c) row[c] = times(left, scores[state[0] + c]);
          else
            for (int64_t c = 0; c < size; ++c) row[c] = times(left, scores[state[c]]);
        }
        Ring::sum_rows(terms_.data(), count, size, out, weight_);
        if (f == L) continue;
        for (int64_t c = 0; c < size; ++c) out[c] = times(out[c], view_.levels[g].at_start(j, state[c]));
      }
    }
  }

 protected:
  static Value nothing() { return Ring::of(Number(kMinusInfinity)); }
  static Value times(const Value& v, double score) { return Ring::times(v, Ring::of(Number(score))); }

  // Brings a row near zero; returns by how much: what rows are relative to, their base, is a whole number, so that bases
  // add up without loss however long the sequence is. Exact numbers need no base.
  double settle(Value* row, int64_t n) {
    if constexpr (std::is_same_v<Number, double>) {
      double top = kMinusInfinity;
      for (int64_t c = 0; c < n; ++c) top = std::max(top, Ring::score(row[c]));
      const double base = possible(top) ? std::nearbyint(top) : 0.0;
      if (!(std::abs(base) <= kFar)) lost_ = true;
      for (int64_t c = 0; c < n; ++c) {
        Ring::shift(row[c], -base);
        const double x = Ring::score(row[c]);
        if (possible(x) && !(x >= -kFar)) lost_ = true;
      }
      return base;
    }
    return 0.0;
  }

  void watch_end(const Number& x) {
    if constexpr (std::is_same_v<Number, double>)
      if (possible(x) && !(std::abs(x) <= kFar)) lost_ = true;
  }

  const NestedTopology& model_;
  const NestedView& view_;
  const NestedBlock& block_;
  const NestedTables<Ring>& tables_;
  const std::vector<Number>& free_;
  std::vector<std::vector<Value>> up_, down_;
  std::vector<Value> ways_, terms_;
  std::vector<Number> within_;
  std::vector<double> weight_;
  std::vector<uint8_t> alive_;
  bool lost_ = false;
};

// ---- posteriors ----

// Where the expectations of a block go, by layer (NestedRun).
struct NestedSink {
  double* segments = nullptr;
  std::vector<double*> starts, stops;
  std::vector<NestedExpect> transit, init, end;
};

// Expectations out of a run: what is known of its end flows back to its start, as probabilities. Each sum of the run is
// shared out among its terms, R(term) = exp(term - sum), and each share is the expectation of the score in that term:
//   up_f(s) among E(s, u) up_{f+1}(s u),  down_f(s u) among A(s, v, u) up_f(s v) and I(s, u) down_{f-1}(s),
//   after(j, s) among W(t, j, s) before(t, s).
template <class Number>
class NestedOutside : public NestedLogRun<LogSum<Number>> {
  using Base = NestedLogRun<LogSum<Number>>;
  using Base::alive_, Base::block_, Base::down_, Base::free_, Base::model_, Base::tables_, Base::up_, Base::view_;
  using Base::within_;

 public:
  using Base::Base;

  // After forward. posterior(n): that of the parent ending at n.
  template <class Posterior>
  void backward(const NestedRows<LogSum<Number>>& rows, const Posterior& posterior, const NestedSink& sink) {
    const NestedStacks& s = block_.stacks[rows.parent];
    const int64_t L = block_.depth(), W = s.width, N = rows.longest;
    std::vector<double> before(static_cast<size_t>((N + 1) * W), 0.0);
    up_p_.resize(L + 1);
    down_p_.resize(L + 1);
    for (int64_t n = N; n >= 0; --n) {
      const double* begun = before.data() + n * W;
      const bool goes_on = std::any_of(begun, begun + W, [](double p) { return p > 0.0; });
      const double ended = n > 0 ? posterior(n) : 0.0;
      if (!goes_on && !(ended > 0.0)) continue;
      for (int64_t f = 0; f <= L; ++f) {
        up_p_[f].assign(s.state[f].size(), 0.0);
        down_p_[f].assign(s.state[f].size(), 0.0);
      }
      if (n > 0) Base::up(rows, n);
      if (goes_on) {
        Base::down(rows, n);
        std::copy(begun, begun + W, down_p_[L].begin());
        share_down(s, rows.start + n, n > 0, sink);
      }
      if (n == 0) continue;
      up_p_[0][0] = ended;
      share_up(s, rows.start + n, sink);
      share_children(rows, n, before, sink);
    }
  }

 private:
  // the levels that began at t, from the bottom up
  void share_down(const NestedStacks& s, int64_t t, bool moves, const NestedSink& sink) {
    const int64_t L = block_.depth();
    for (int64_t f = L; f >= 1; --f) {
      const int64_t g = block_.top + f, S = model_.size(g), P = model_.size(g - 1);
      const double* init = view_.init[g].at(t);
      const double* transit = moves && view_.may_move(t, g) ? view_.transit[g].at(t - 1) : nullptr;
      for (size_t c = 0; c < s.state[f].size(); ++c) {
        const double p = down_p_[f][c];
        if (!(p > 0.0)) continue;
        const int64_t a = s.above[f][c], parent = s.state[f - 1][a], u = s.state[f][c];
        const int64_t first = s.first[f][a], size = s.first[f][a + 1] - first, k = c - first;
        if (f < L && sink.starts[f]) sink.starts[f][t * S + u] += p;
        terms_.clear();
        terms_.push_back(down_[f - 1][a] + Number(init[parent * S + u]));
        for (int64_t h = 0; transit && h < size; ++h)
          terms_.push_back(up_[f][first + h] + Number(transit[(parent * S + s.state[f][first + h]) * S + u]));
        share(p);
        down_p_[f - 1][a] += shares_[0];
        if (sink.init[f].counts) sink.init[f].counts[s.pair[f][a] + k] += shares_[0];
        if (sink.init[f].by_time) sink.init[f].by_time[(t * P + parent) * S + u] += shares_[0];
        for (int64_t h = 0; transit && h < size; ++h) {
          const double q = shares_[h + 1];
          const int64_t v = s.state[f][first + h];
          up_p_[f][first + h] += q;
          if (sink.transit[f].counts) sink.transit[f].counts[s.square[f][a] + h * padded4(size) + k] += q;
          if (sink.transit[f].by_time) sink.transit[f].by_time[(((t - 1) * P + parent) * S + v) * S + u] += q;
        }
      }
    }
  }

  // the levels that ended at j, from the top down
  void share_up(const NestedStacks& s, int64_t j, const NestedSink& sink) {
    const int64_t L = block_.depth();
    for (int64_t f = 0; f < L; ++f) {
      const int64_t g = block_.top + f + 1, S = model_.size(g), P = model_.size(g - 1);
      const double* end = view_.end[g].at(j - 1);
      for (size_t a = 0; a < s.state[f].size(); ++a) {
        const double p = up_p_[f][a];
        if (!(p > 0.0)) continue;
        const int64_t parent = s.state[f][a], first = s.first[f + 1][a], size = s.first[f + 1][a + 1] - first;
        if (f > 0 && sink.stops[f]) sink.stops[f][(j - 1) * P + parent] += p;
        terms_.clear();
        for (int64_t k = 0; k < size; ++k)
          terms_.push_back(up_[f + 1][first + k] + Number(end[parent * S + s.state[f + 1][first + k]]));
        share(p);
        for (int64_t k = 0; k < size; ++k) {
          const int64_t u = s.state[f + 1][first + k];
          up_p_[f + 1][first + k] += shares_[k];
          if (sink.end[f + 1].counts) sink.end[f + 1].counts[s.pair[f + 1][a] + k] += shares_[k];
          if (sink.end[f + 1].by_time) sink.end[f + 1].by_time[((j - 1) * P + parent) * S + u] += shares_[k];
        }
      }
    }
  }

  // the children that ended at n
  void share_children(const NestedRows<LogSum<Number>>& rows, int64_t n, std::vector<double>& before,
                      const NestedSink& sink) {
    const NestedStacks& s = block_.stacks[rows.parent];
    const NestedCells& cells = tables_.cells[block_.bottom];
    const std::vector<Number>& value = tables_.value[block_.bottom];
    const int64_t L = block_.depth(), W = s.width, S = model_.size(block_.bottom), j = rows.start + n;
    for (int64_t c = 0; c < W; ++c) {
      const double p = up_p_[L][c];
      if (!(p > 0.0)) continue;
      const int64_t state = s.state[L][c];
      Number within(0.0);
      terms_.clear();
      lengths_.clear();
      for (int64_t m = 1; m <= std::min(n, cells.longest); ++m) {
        const int64_t t = j - m;
        if (!free_.empty()) within += free_[t * block_.child_stride + s.offset + c];
        if (!alive_[n - m] || m > cells.extent(t)) continue;
        const Number by(rows.before_base[n - m] - rows.after_base[n]);
        terms_.push_back(rows.before[(n - m) * W + c] + value[(cells.first[t] + m - 1) * S + state] + (within + by));
        lengths_.push_back(m);
      }
      share(p);
      for (size_t i = 0; i < lengths_.size(); ++i) {
        const int64_t m = lengths_[i];
        before[(n - m) * W + c] += shares_[i];
        sink.segments[(cells.first[j - m] + m - 1) * S + state] += shares_[i];
      }
    }
  }

  // p into shares_, by the weights of terms_
  void share(double p) {
    shares_.assign(terms_.size(), 0.0);
    Number top(kMinusInfinity);
    for (const Number& x : terms_) top = top < x ? x : top;
    if (!possible(top)) return;
    double sum = 0.0;
    for (size_t i = 0; i < terms_.size(); ++i) sum += shares_[i] = std::exp(gap(terms_[i], top));
    for (double& x : shares_) x *= p / sum;
  }

  std::vector<std::vector<double>> up_p_, down_p_;  // by layer, probabilities
  std::vector<Number> terms_;
  std::vector<double> shares_;
  std::vector<int64_t> lengths_;
};

}  // namespace scansion
