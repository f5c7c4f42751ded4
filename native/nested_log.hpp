// The runs of nested.hpp in log space, for any sum: log-sum-exp (where scaling gives up; samples), max (the best
// configuration) and log-sum-exp with entropies. And the outside run, log-sum-exp only.
#pragma once

#include "nested_model.hpp"

namespace scansion {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

// Rows are kept near zero: what they are relative to, their base, is a whole number, so that bases add up without loss
// however long the sequence is.
inline double base_of(double top) { return top > kNothing ? std::nearbyint(top) : 0.0; }

// Sums of terms. sum_rows adds up the rows of a table (rows, columns), column by column; the table is overwritten.
struct LogSum {
  using Value = double;
  static Value of(double score) { return score; }
  static double score(Value v) { return v; }
  static Value times(Value a, Value b) { return a + b; }
  static void shift(Value& v, double by) { v += by; }
  static Value sum(const Value* x, size_t n) {
    double top = kNothing, total = 0.0;
    for (size_t i = 0; i < n; ++i) top = x[i] > top ? x[i] : top;
    if (!(top > kNothing)) return kNothing;
    for (size_t i = 0; i < n; ++i) total += std::exp(x[i] - top);
    return top + std::log(total);
  }
  // the columns' greatest terms into out, and in place of each term its weight beside the greatest
  static void weigh(double* x, int64_t rows, int64_t columns, double* out) {
    std::fill(out, out + columns, kNothing);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t c = 0; c < columns; ++c) out[c] = x[i * columns + c] > out[c] ? x[i * columns + c] : out[c];
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t c = 0; c < columns; ++c) x[i * columns + c] -= out[c] > kNothing ? out[c] : 0.0;
    kernels().exp_array(x, rows * columns, x);
  }
  static void sum_rows(Value* x, int64_t rows, int64_t columns, Value* out) {
    if (rows == 1) {
      std::copy(x, x + columns, out);
      return;
    }
    weigh(x, rows, columns, out);
    for (int64_t i = 1; i < rows; ++i)
      for (int64_t c = 0; c < columns; ++c) x[c] += x[i * columns + c];
    for (int64_t c = 0; c < columns && rows > 0; ++c)
      if (out[c] > kNothing) out[c] += std::log(x[c]);
  }
};

struct Highest {
  using Value = double;
  static Value of(double score) { return score; }
  static double score(Value v) { return v; }
  static Value times(Value a, Value b) { return a + b; }
  static void shift(Value& v, double by) { v += by; }
  static Value sum(const Value* x, size_t n) {
    double top = kNothing;
    for (size_t i = 0; i < n; ++i) top = x[i] > top ? x[i] : top;
    return top;
  }
  static void sum_rows(Value* x, int64_t rows, int64_t columns, Value* out) {
    std::fill(out, out + columns, kNothing);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t c = 0; c < columns; ++c) out[c] = x[i * columns + c] > out[c] ? x[i * columns + c] : out[c];
  }
};

// Weight and entropy of a set of ways to go on: H = sum_i c_i (H_i - log c_i), c_i = w_i / sum w.
struct LogSumEntropy {
  struct Value {
    double log_weight = kNothing, entropy = 0.0;
  };
  static Value of(double score) { return {score, 0.0}; }
  static double score(const Value& v) { return v.log_weight; }
  static Value times(const Value& a, const Value& b) { return {a.log_weight + b.log_weight, a.entropy + b.entropy}; }
  static void shift(Value& v, double by) { v.log_weight += by; }
  static Value sum(const Value* x, size_t n) {
    double top = kNothing, total = 0.0, h = 0.0;
    for (size_t i = 0; i < n; ++i) top = x[i].log_weight > top ? x[i].log_weight : top;
    if (!(top > kNothing)) return {};
    for (size_t i = 0; i < n; ++i) total += std::exp(x[i].log_weight - top);
    const double log_total = std::log(total);
    for (size_t i = 0; i < n; ++i) {
      const double log_c = x[i].log_weight - top - log_total, c = std::exp(log_c);
      if (c > 0.0) h += c * (x[i].entropy - log_c);
    }
    return {top + log_total, h};
  }
  static void sum_rows(Value* x, int64_t rows, int64_t columns, Value* out) {
    std::vector<double> weight(static_cast<size_t>(rows * columns)), top(static_cast<size_t>(columns));
    for (int64_t i = 0; i < rows * columns; ++i) weight[i] = x[i].log_weight;
    LogSum::weigh(weight.data(), rows, columns, top.data());
    for (int64_t c = 0; c < columns; ++c) out[c] = {0.0, 0.0};
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t c = 0; c < columns; ++c) {
        const double w = weight[i * columns + c];
        const Value& v = x[i * columns + c];
        out[c].log_weight += w;
        out[c].entropy += w > 0.0 ? w * (v.entropy + (top[c] - v.log_weight)) : 0.0;
      }
    for (int64_t c = 0; c < columns; ++c) {
      const double total = out[c].log_weight, log_total = std::log(total);
      if (top[c] > kNothing)
        out[c] = {top[c] + log_total, out[c].entropy / total + log_total};
      else
        out[c] = {};
    }
  }
};

// Brings a row near zero; returns by how much.
template <class Ring>
double settle_row(typename Ring::Value* row, int64_t n) {
  double top = kNothing;
  for (int64_t c = 0; c < n; ++c) top = std::max(top, Ring::score(row[c]));
  const double base = base_of(top);
  for (int64_t c = 0; c < n; ++c) Ring::shift(row[c], -base);
  return base;
}

// One run: rows n = 0..N of stacks, each relative to its base.
template <class Ring>
struct NestedRows {
  using Value = typename Ring::Value;
  int64_t start = 0, longest = 0, parent = 0;
  std::vector<Value> before, after, ends;          // (N + 1, width) twice, (N + 1,); ends has the base of after
  std::vector<double> before_base, after_base;     // (N + 1,)
  Value end(int64_t n) const {
    Value v = ends[n];
    Ring::shift(v, after_base[n]);
    return v;
  }
  // ends with their bases, (N + 1,)
  const Value* whole_ends() {
    whole.resize(ends.size());
    for (size_t n = 0; n < ends.size(); ++n) whole[n] = end(static_cast<int64_t>(n));
    return whole.data();
  }
  std::vector<Value> whole;
};

// The levels of one sequence as a run needs them: persistence sums of timed levels, with all below them.
template <class Ring>
struct NestedTables {
  using Value = typename Ring::Value;
  std::vector<NestedCells> cells;          // by level, timed ones
  std::vector<std::vector<Value>> value;   // (cells, S): weight of a segment with all inside it
  std::vector<std::vector<double>> within;  // by block, those with free levels: (T, child_stride), scores of a stack's
                                            // free levels at a position
};

inline void free_within(const NestedModel& model, const NestedView& view, const NestedBlock& block,
                        std::vector<double>& out) {
  out.clear();
  if (block.depth() == 1) return;
  out.assign(static_cast<size_t>(view.length * block.child_stride), 0.0);
  std::vector<double> layer, above;
  for (int64_t t = 0; t < view.length; ++t)
    for (const NestedStacks& s : block.stacks) {
      above.assign(1, 0.0);
      for (int64_t f = 1; f <= block.depth(); ++f) {
        layer.resize(s.state[f].size());
        const bool free = model.free(block.top + f);
        for (size_t c = 0; c < layer.size(); ++c)
          layer[c] = above[s.above[f][c]] + (free ? view.levels[block.top + f].within(t, s.state[f][c]) : 0.0);
        layer.swap(above);
      }
      std::copy(above.begin(), above.end(), out.begin() + t * block.child_stride + s.offset);
    }
}

template <class Ring>
class NestedLogRun {
 public:
  using Value = typename Ring::Value;
  NestedLogRun(const NestedModel& model, const NestedView& view, const NestedBlock& block, const NestedTables<Ring>& tables)
      : model_(model),
        view_(view),
        block_(block),
        tables_(tables),
        free_(tables.within[&block - model.blocks().data()]) {}

  void forward(int64_t start, int64_t longest, int64_t parent, NestedRows<Ring>& rows) {
    const NestedStacks& s = block_.stacks[parent];
    const int64_t L = block_.depth(), W = s.width;
    rows.start = start;
    rows.longest = longest;
    rows.parent = parent;
    rows.before.assign(static_cast<size_t>((longest + 1) * W), Value(Ring::of(kNothing)));
    rows.after.assign(static_cast<size_t>((longest + 1) * W), Value(Ring::of(kNothing)));
    rows.ends.assign(static_cast<size_t>(longest + 1), Value(Ring::of(kNothing)));
    rows.before_base.assign(static_cast<size_t>(longest + 1), 0.0);
    rows.after_base.assign(static_cast<size_t>(longest + 1), 0.0);
    up_.resize(L + 1);
    down_.resize(L + 1);
    alive_.assign(static_cast<size_t>(longest + 1), 0);
    for (int64_t n = 0; n <= longest; ++n) {
      const int64_t j = start + n;
      if (n > 0) {
        if (!view_.may_end(j, block_.bottom) || !children(rows, n)) continue;
        up(rows, n);
        if (view_.may_end(j, block_.top)) rows.ends[n] = up_[0][0];
      }
      if (n == longest) break;
      down(rows, n);
      for (int64_t c = 0; c < W; ++c) {
        rows.before[n * W + c] = down_[L][c];
        if (Ring::score(down_[L][c]) > kNothing) alive_[n] = 1;
      }
      rows.before_base[n] = rows.after_base[n] + settle_row<Ring>(rows.before.data() + n * W, W);
    }
  }

  // after(n); false: nothing ends here
  bool children(NestedRows<Ring>& rows, int64_t n) {
    const NestedStacks& s = block_.stacks[rows.parent];
    const NestedCells& cells = tables_.cells[block_.bottom];
    const std::vector<Value>& value = tables_.value[block_.bottom];
    const int64_t W = s.width, S = model_.size(block_.bottom), j = rows.start + n;
    const std::vector<int32_t>& state = s.state[block_.depth()];
    within_.assign(static_cast<size_t>(W), 0.0);
    ways_.clear();
    double base = kNothing;
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
      const double by = rows.before_base[n - m] - base;
      for (int64_t c = 0; c < W; ++c)
        ways_[at + c] = Ring::times(Ring::times(before[c], child[state[c]]), Ring::of(within_[c] + by));
    }
    if (ways_.empty()) return false;
    Value* out = rows.after.data() + n * W;
    Ring::sum_rows(ways_.data(), static_cast<int64_t>(ways_.size()) / W, W, out);
    rows.after_base[n] = base + settle_row<Ring>(out, W);
    for (int64_t c = 0; c < W; ++c)
      if (Ring::score(out[c]) > kNothing) return true;
    return false;
  }

  // within_ grows by the free levels' scores at t
  void add_within(const NestedStacks& s, int64_t t) {
    if (free_.empty()) return;
    const double* row = free_.data() + t * block_.child_stride + s.offset;
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
          terms_.push_back(Ring::times(up_[f + 1][c], Ring::of(end[s.state[f][a] * model_.size(g + 1) + s.state[f + 1][c]])));
        const Value sum = Ring::sum(terms_.data(), terms_.size());
        up_[f][a] = f > 0 ? Ring::times(sum, Ring::of(view_.levels[g].at_stop(j - 1, s.state[f][a]))) : sum;
      }
    }
  }

  // levels that begin at n, from the top down; up must be that of n for n > 0
  void down(const NestedRows<Ring>& rows, int64_t n) {
    const NestedStacks& s = block_.stacks[rows.parent];
    const int64_t L = block_.depth(), j = rows.start + n;
    down_.resize(L + 1);
    down_[0].assign(1, Value(Ring::of(n == 0 ? 0.0 : kNothing)));
    for (int64_t f = 1; f <= L; ++f) {
      const int64_t g = block_.top + f, S = model_.size(g);
      const double* init = view_.init[g].at(j);
      const bool moves = n > 0 && view_.may_move(j, g);
      const double* transit = moves ? view_.transit[g].at(j - 1) : nullptr;
      down_[f].resize(s.state[f].size());
      for (size_t a = 0; a < s.state[f - 1].size(); ++a) {
        const int64_t p = s.state[f - 1][a], first = s.first[f][a], size = s.first[f][a + 1] - first;
        const int32_t* state = s.state[f].data() + first;
        const bool begins = Ring::score(down_[f - 1][a]) > kNothing;
        const bool dense = size > 0 && state[size - 1] - state[0] == size - 1;  // states side by side
        Value* out = down_[f].data() + first;
        const int64_t count = (begins ? 1 : 0) + (moves ? size : 0);
        terms_.resize(static_cast<size_t>(count * size));
        Value* row = terms_.data();
        if (begins) {
          for (int64_t c = 0; c < size; ++c) row[c] = Ring::times(down_[f - 1][a], Ring::of(init[p * S + state[c]]));
          row += size;
        }
        for (int64_t k = 0; moves && k < size; ++k, row += size) {
          const double* scores = transit + (p * S + state[k]) * S;
          const Value left = up_[f][first + k];
          if (dense)
            for (int64_t c = 0; c < size; ++c) row[c] = Ring::times(left, Ring::of(scores[state[0] + c]));
          else
            for (int64_t c = 0; c < size; ++c) row[c] = Ring::times(left, Ring::of(scores[state[c]]));
        }
        Ring::sum_rows(terms_.data(), count, size, out);
        if (f == L) continue;
        for (int64_t c = 0; c < size; ++c) out[c] = Ring::times(out[c], Ring::of(view_.levels[g].at_start(j, state[c])));
      }
    }
  }

 protected:
  const NestedModel& model_;
  const NestedView& view_;
  const NestedBlock& block_;
  const NestedTables<Ring>& tables_;
  const std::vector<double>& free_;
  std::vector<std::vector<Value>> up_, down_;
  std::vector<Value> ways_, terms_;
  std::vector<double> within_;
  std::vector<uint8_t> alive_;
};

// Where the expectations of a block go, by layer (NestedRun).
struct NestedSink {
  double* segments = nullptr;
  std::vector<double*> starts, stops;
  std::vector<NestedExpect> transit, init, end;
};

class NestedLogOutside : public NestedLogRun<LogSum> {
 public:
  using NestedLogRun<LogSum>::NestedLogRun;

  // After forward: every expectation. posterior(n): that of the parent ending at n.
  template <class Posterior>
  void backward(const NestedRows<LogSum>& rows, const Posterior& posterior, const NestedSink& sink) {
    const NestedStacks& s = block_.stacks[rows.parent];
    const NestedCells& cells = tables_.cells[block_.bottom];
    const std::vector<double>& value = tables_.value[block_.bottom];
    const int64_t L = block_.depth(), W = s.width, N = rows.longest, S = model_.size(block_.bottom);
    const std::vector<int32_t>& state = s.state[L];
    std::vector<double> rest(static_cast<size_t>((N + 1) * W), kNothing), ahead(static_cast<size_t>(W));
    std::vector<double> rest_base(static_cast<size_t>(N + 1), kNothing);  // kNothing: nothing there
    std::vector<std::vector<double>> x(L + 1), bd(L + 1), bu(L + 1);
    for (int64_t n = N; n >= 0; --n) {
      const int64_t t = rows.start + n;
      // what follows where a child begins at n, and the posterior of each such child
      std::fill(ahead.begin(), ahead.end(), kNothing);
      bool goes_on = false;
      double base = kNothing;  // of everything that follows
      if (n < N && alive_[n]) {
        ways_.clear();
        within_.assign(static_cast<size_t>(W), 0.0);
        const int64_t most = std::min(N - n, cells.extent(t));
        for (int64_t m = 1; m <= most; ++m) base = std::max(base, rest_base[n + m]);
        for (int64_t m = 1; m <= most; ++m) {
          if (!(rest_base[n + m] > kNothing)) {
            add_within(s, t + m - 1);
            continue;
          }
          const double by = rest_base[n + m] - base, scale = rows.before_base[n] + base;
          const double* child = value.data() + (cells.first[t] + m - 1) * S;
          double* out = sink.segments + (cells.first[t] + m - 1) * S;
          add_within(s, t + m - 1);
          for (int64_t c = 0; c < W; ++c) {
            const double y = child[state[c]] + within_[c] + rest[(n + m) * W + c] + by;
            ways_.push_back(y);
            const double q = y + rows.before[n * W + c] + scale;
            if (q > kNothing) out[state[c]] += std::exp(q);
          }
        }
        if (!ways_.empty()) LogSum::sum_rows(ways_.data(), static_cast<int64_t>(ways_.size()) / W, W, ahead.data());
        for (int64_t c = 0; c < W; ++c) goes_on = goes_on || ahead[c] > kNothing;
      }
      bool arrives = n > 0;
      if (n > 0) {
        bool any = false;
        for (int64_t c = 0; c < W; ++c) any = any || rows.after[n * W + c] > kNothing;
        if (!any) continue;
        up(rows, n);
      }
      if (!goes_on && !arrives) continue;
      if (goes_on) down(rows, n);
      const double q = n > 0 ? posterior(n) : 0.0;
      double outside = kNothing;
      if (q > 0.0) {
        outside = std::log(q) - rows.ends[n];
        const double own = -rows.after_base[n], before = base;
        base = goes_on ? std::max(base, own) : own;
        outside += own - base;
        if (goes_on)
          for (double& y : ahead) y += before - base;
      }
      if (!goes_on && !(outside > kNothing)) continue;
      // adjoints
      bd[L] = ahead;
      for (int64_t f = L; f >= 1; --f) {
        const int64_t g = block_.top + f;
        x[f] = bd[f];
        if (f < L)
          for (size_t c = 0; c < x[f].size(); ++c) x[f][c] += goes_on ? view_.levels[g].at_start(t, s.state[f][c]) : 0.0;
        bd[f - 1].assign(s.state[f - 1].size(), kNothing);
        if (!goes_on) continue;
        const double* init = view_.init[g].at(t);
        for (size_t a = 0; a < s.state[f - 1].size(); ++a) {
          terms_.clear();
          for (int64_t c = s.first[f][a]; c < s.first[f][a + 1]; ++c)
            terms_.push_back(x[f][c] + init[s.state[f - 1][a] * model_.size(g) + s.state[f][c]]);
          bd[f - 1][a] = LogSum::sum(terms_.data(), terms_.size());
        }
      }
      if (arrives) {
        bu[0].assign(1, outside);
        for (int64_t f = 1; f <= L; ++f) {
          const int64_t g = block_.top + f, Sg = model_.size(g);
          const bool moves = goes_on && view_.may_move(t, g);
          const double* transit = moves ? view_.transit[g].at(t - 1) : nullptr;
          const double* end = view_.end[g].at(t - 1);
          bu[f].resize(s.state[f].size());
          for (size_t c = 0; c < s.state[f].size(); ++c) {
            const int64_t a = s.above[f][c], p = s.state[f - 1][a], v = s.state[f][c];
            terms_.clear();
            const double last = f > 1 ? view_.levels[g - 1].at_stop(t - 1, p) : 0.0;
            terms_.push_back(bu[f - 1][a] + end[p * Sg + v] + last);
            if (moves)
              for (int64_t k = s.first[f][a]; k < s.first[f][a + 1]; ++k)
                terms_.push_back(transit[(p * Sg + v) * Sg + s.state[f][k]] + x[f][k]);
            bu[f][c] = LogSum::sum(terms_.data(), terms_.size());
          }
        }
        std::copy(bu[L].begin(), bu[L].end(), rest.begin() + n * W);
        bool any = false;
        for (double y : bu[L]) any = any || y > kNothing;
        if (any) rest_base[n] = base + settle_row<LogSum>(rest.data() + n * W, W);
      }
      scale_ = (n > 0 ? rows.after_base[n] : 0.0) + base;
      expect(rows, n, goes_on, x, bd, bu, sink);
    }
  }

 private:
  void add(double& out, double log_value) const {
    if (log_value > kNothing) out += std::exp(log_value + scale_);
  }

  void expect(const NestedRows<LogSum>& rows, int64_t n, bool goes_on, const std::vector<std::vector<double>>& x,
              const std::vector<std::vector<double>>& bd, const std::vector<std::vector<double>>& bu,
              const NestedSink& sink) {
    const NestedStacks& s = block_.stacks[rows.parent];
    const int64_t L = block_.depth(), t = rows.start + n;
    for (int64_t f = 1; f <= L; ++f) {
      const int64_t g = block_.top + f, S = model_.size(g), P = model_.size(g - 1);
      const bool moves = n > 0 && goes_on && view_.may_move(t, g);
      for (size_t c = 0; c < s.state[f].size(); ++c) {
        const int64_t a = s.above[f][c], p = s.state[f - 1][a], u = s.state[f][c], k = c - s.first[f][a];
        if (n > 0) {
          const double last = f > 1 ? view_.levels[g - 1].at_stop(t - 1, p) : 0.0;
          const double y = up_[f][c] + view_.end[g].at(t - 1)[p * S + u] + last + bu[f - 1][a];
          if (sink.end[f].counts) add(sink.end[f].counts[s.pair[f][a] + k], y);
          if (sink.end[f].by_time) add(sink.end[f].by_time[((t - 1) * P + p) * S + u], y);
          if (f < L && sink.stops[f]) add(sink.stops[f][(t - 1) * S + u], up_[f][c] + bu[f][c]);
        }
        if (goes_on) {
          const double y = down_[f - 1][a] + view_.init[g].at(t)[p * S + u] + x[f][c];
          if (sink.init[f].counts) add(sink.init[f].counts[s.pair[f][a] + k], y);
          if (sink.init[f].by_time) add(sink.init[f].by_time[(t * P + p) * S + u], y);
          if (f < L && sink.starts[f]) add(sink.starts[f][t * S + u], down_[f][c] + bd[f][c]);
        }
        if (!moves || !(sink.transit[f].counts || sink.transit[f].by_time)) continue;
        const double* transit = view_.transit[g].at(t - 1) + (p * S + u) * S;
        const int64_t first = s.first[f][a], size = s.first[f][a + 1] - first, width = (size + 3) / 4 * 4;
        for (int64_t h = 0; h < size; ++h) {
          const int64_t v = s.state[f][first + h];
          const double y = up_[f][c] + transit[v] + x[f][first + h];
          if (sink.transit[f].counts) add(sink.transit[f].counts[s.square[f][a] + k * width + h], y);
          if (sink.transit[f].by_time) add(sink.transit[f].by_time[(((t - 1) * P + p) * S + u) * S + v], y);
        }
      }
    }
  }

  double scale_ = 0.0;  // what the rows of one position are relative to
};

}  // namespace scansion
