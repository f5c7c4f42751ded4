// Inside-outside of one nested sequence: blocks from the bottom up, then from the root down, run by run; each run in
// scaled linear space (nested.hpp), or in log space (nested_log.hpp) where that gives up. Where the digits of doubles do
// not suffice, the sequence is done in exact numbers.
//
// What passes between blocks is log D(i, j) of the timed levels going up, and posteriors of their segments going down:
// the outside weight of a segment, over Z, is its posterior over D. Memory: (cells of timed levels) x (states, twice, and
// stacks of the block above), and 4 rows of stacks per position of the longest run. Runs of the inside that fit into
// some megabytes more are not made again for the outside.
#pragma once

#include <array>
#include <memory>

#include "nested_log.hpp"

namespace scansion {

// Persistence of the timed levels, and their cells.
template <class Ring>
void nested_prepare(const NestedTopology& model, const NestedView& view, NestedTables<Ring>& tables) {
  using Number = typename Ring::Number;
  tables.cells.resize(model.levels());
  tables.value.resize(model.levels());
  std::vector<Number> persistence;
  for (const NestedBlock& block : model.blocks()) {
    tables.cells[block.bottom].fill(view, block.bottom, persistence);
    auto& value = tables.value[block.bottom];
    value.clear();
    value.reserve(persistence.size());
    for (const Number& x : persistence) value.push_back(Ring::of(x));
  }
  tables.within.resize(model.blocks().size());
  for (size_t b = 0; b < model.blocks().size(); ++b) free_within(model, view, model.blocks()[b], tables.within[b]);
  tables.tame = !std::is_same_v<Number, double> || levels_are_tame(model, view, tables.cells);
  tables.watch(model.blocks().back().bottom);
}

// Weights of all segments of the timed levels. run(block, start, longest, parent) returns the run's ends, (N + 1,).
template <class Ring, class Run>
void nested_inside(const NestedTopology& model, const NestedView& view, NestedTables<Ring>& tables, const Run& run) {
  for (int64_t b = static_cast<int64_t>(model.blocks().size()) - 1; b >= 1; --b) {
    const int64_t d = model.blocks()[b].top, S = model.size(d);
    const NestedCells& cells = tables.cells[d];
    for (int64_t p = 0; p < S; ++p) {  // what a parent's runs read is a part of the whole
      for (int64_t t = 0; t < view.length; ++t) {
        auto* value = tables.value[d].data() + cells.first[t] * S;
        int64_t longest = cells.extent(t);
        while (longest > 0 && !possible(Ring::score(value[(longest - 1) * S + p]))) --longest;
        if (longest == 0) continue;
        const auto* ends = run(b, t, longest, p);
        for (int64_t n = 1; n <= longest; ++n) value[(n - 1) * S + p] = Ring::times(value[(n - 1) * S + p], ends[n]);
      }
    }
    tables.watch(d);
  }
}

// The same with runs in log space throughout, and then the root's: use(run's rows), which may keep them, for each of its
// states that is possible. False: digits were lost.
template <class Ring, class Use>
bool nested_log_inside(const NestedTopology& model, const NestedView& view, NestedTables<Ring>& tables,
                       std::vector<NestedLogRun<Ring>>& runs, const Use& use) {
  nested_prepare(model, view, tables);
  if (std::is_same_v<typename Ring::Number, double> && !cliques_are_tame(model, view)) return false;
  runs.clear();
  for (const NestedBlock& block : model.blocks()) runs.emplace_back(model, view, block, tables);
  const auto lost = [&] {
    return !tables.tame || std::any_of(runs.begin(), runs.end(), [](const auto& run) { return run.lost(); });
  };
  if (lost()) return false;
  NestedRows<Ring> rows;
  nested_inside(model, view, tables, [&](int64_t b, int64_t t, int64_t longest, int64_t p) {
    runs[b].forward(t, longest, p, rows);
    return rows.whole_ends();
  });
  for (int64_t p = 0; p < model.size(0) && !lost(); ++p) {
    if (!view.root(p).possible()) continue;
    runs[0].forward(0, view.length, p, rows);
    use(rows);
  }
  return !lost();
}

// Sums over time of one chunk of sequences, laid out like the tables of NestedRun.
struct NestedCounts {
  std::vector<std::vector<double>> transit, init, end, start, stop, length;  // by level
};

// Where one sequence's answers go, by level; null: not asked for.
struct NestedAnswer {
  std::vector<double*> labels, boundaries, spans, start, stop, length;  // (T, S), (T,), (T, stride, S), ...
  std::vector<int64_t> spans_stride, start_stride, stop_stride;         // strides 0: summed over time
  std::vector<NestedExpect> transit, init, end;                         // by the children's level
  double log_partition = 0.0;
  bool escaped = false;
};

// Tables that do not depend on time, once for all sequences.
struct NestedFixed {
  std::vector<NestedWeights> weights[5];
  std::vector<NestedTable> table[5];  // transit, init, end by the children's level; start, stop by level
  bool tame() const {
    return std::all_of(std::begin(weights), std::end(weights), [](const std::vector<NestedWeights>& kind) {
      return std::all_of(kind.begin(), kind.end(), [](const NestedWeights& w) { return w.tame; });
    });
  }
};

inline void nested_tables(const NestedTopology& model, const NestedView& view, bool fixed, NestedFixed& out) {
  for (int k = 0; k < 5; ++k) {
    out.weights[k].resize(model.levels());
    out.table[k].resize(model.levels());
  }
  for (int64_t g = 1; g < model.levels(); ++g) {
    const NestedLevel& level = view.levels[g];
    if (!view.transit[g].stride == fixed)
      out.table[0][g] = square_weights(model.children(g), view.transit[g], view.length, out.weights[0][g]);
    if (!view.init[g].stride == fixed)
      out.table[1][g] = pair_weights(model.children(g), view.init[g], view.length, out.weights[1][g]);
    if (!view.end[g].stride == fixed)
      out.table[2][g] = pair_weights(model.children(g), view.end[g], view.length, out.weights[2][g]);
    if (model.free(g) && level.start && !level.start_stride == fixed)
      out.table[3][g] = edge_weights(level.start, level.start_stride, level.states, view.length, out.weights[3][g]);
    if (model.free(g) && level.stop && !level.stop_stride == fixed)
      out.table[4][g] = edge_weights(level.stop, level.stop_stride, level.states, view.length, out.weights[4][g]);
  }
}

// Scratch of one thread; the tables of one sequence.
class NestedInference {
 public:
  NestedInference(const NestedTopology& model, const NestedFixed& fixed) : model_(model), fixed_(fixed) {
    children_.resize(model.blocks().size());
    posterior_.resize(model.levels());
    starts_.resize(model.levels());
    stops_.resize(model.levels());
  }

  // log Z and, with backward, every answer that is asked for
  void run(const NestedView& view, bool backward, NestedAnswer& answer) {
    view_ = &view;
    escaped_ = lost_ = exact_ready_ = false;
    kept_ = {-1, -1, -1};
    keep(backward);
    answer.log_partition = 0.0;
    answer.escaped = false;
    if (view.length == 0) return;
    const int64_t T = view.length, S = model_.size(0);
    std::vector<Exact> root(static_cast<size_t>(S), Exact(kMinusInfinity));
    exact_ = !inside(root);
    if (exact_) {
      escaped_ = true;
      root.assign(root.size(), Exact(kMinusInfinity));
      nested_log_inside(model_, view, exact_tables_, exact_runs_,
                        [&](NestedRows<LogSum<Exact>>& rows) { root[rows.parent] = rows.total(view); });
      exact_ready_ = true;
    }
    const Exact log_z = LogSum<Exact>::sum(root.data(), root.size());
    answer.log_partition = log_z.value();
    answer.escaped = escaped_;
    if (!backward || !log_z.possible()) return;
    const std::vector<NestedBlock>& blocks = model_.blocks();
    open(answer);
    for (int64_t p = 0; p < S; ++p) {
      const double q = std::exp(gap(root[p], log_z));
      for (int64_t t = 0; answer.labels[0] && t < T; ++t) answer.labels[0][t * S + p] = q;
      if (!(q > 0.0)) continue;
      open_stacks(0, p);
      outside(0, 0, T, p, [&](int64_t n) { return n == T ? q : 0.0; }, answer);
      close_stacks(0, p);
    }
    if (answer.boundaries[0]) answer.boundaries[0][T - 1] = 1.0;
    for (size_t b = 1; b < blocks.size(); ++b) {
      const int64_t d = blocks[b].top, Sd = model_.size(d);
      for (int64_t p = 0; p < Sd; ++p) {
        open_stacks(b, p);
        for (int64_t t = 0; t < T; ++t) {
          const double* q = posterior_[d].data() + cells(d).first[t] * Sd;
          int64_t longest = cells(d).extent(t);
          while (longest > 0 && !(q[(longest - 1) * Sd + p] > 0.0)) --longest;
          if (longest == 0) continue;
          outside(b, t, longest, p, [&](int64_t n) { return q[(n - 1) * Sd + p]; }, answer);
        }
        close_stacks(b, p);
      }
    }
    close(answer);
    answer.escaped = escaped_;
  }

  // positions of the sequence that some configuration can cover
  int64_t furthest(const NestedView& view) {
    NestedTables<Highest<Exact>> tables;
    std::vector<NestedLogRun<Highest<Exact>>> runs;
    int64_t best = 0;
    nested_log_inside(model_, view, tables, runs, [&](NestedRows<Highest<Exact>>& rows) {
      const int64_t W = model_.blocks()[0].stacks[rows.parent].width;
      for (int64_t i = 0; i < static_cast<int64_t>(rows.after.size()); ++i)
        if (possible(rows.after[i])) best = std::max(best, i / W);
    });
    return best;
  }

 private:
  // Rows of children of one block: their weights with all free levels, one kin of parent states after another.
  struct Children {
    bool ready = false;
    std::vector<double> weight;          // by kin (cells, stride)
    std::vector<int64_t> exponent, low;  // by kin (cells,)
  };

  const NestedCells& cells(int64_t g) const { return (exact_ ? exact_tables_.cells : tables_.cells)[g]; }

  // Inside, in doubles, and the weight of everything under each state of the root. False: digits would be lost.
  bool inside(std::vector<Exact>& root) {
    const NestedView& view = *view_;
    nested_tables(model_, view, false, own_);
    nested_prepare(model_, view, tables_);
    if (!tables_.tame || !fixed_.tame() || !own_.tame()) return false;
    for (auto& c : children_) c.ready = false;
    nested_inside(model_, view, tables_, [&](int64_t b, int64_t t, int64_t longest, int64_t p) {
      if (!lost_) return inside_ends(b, t, longest, p);
      log_ends_.assign(static_cast<size_t>(longest + 1), kMinusInfinity);
      return static_cast<const double*>(log_ends_.data());
    });
    for (int64_t p = 0; p < model_.size(0) && tables_.tame && !lost_; ++p) {
      const Exact own = view.root(p);
      if (!own.possible()) continue;
      if (forward(0, 0, view.length, p))
        root[p] = own + Exact(std::log(run_.ends[view.length])) + powers_of_two(run_.ends_k[view.length]);
      else
        root[p] = log_rows_.total(view);
    }
    return tables_.tame && !lost_;
  }

  // log 2^k
  static Exact powers_of_two(int64_t k) {
    constexpr double ln2 = 0.693147180559945309417, rest = 2.3190468138462996e-17;
    const double n = static_cast<double>(k), most = n * ln2;
    return Exact(most) + Exact(std::fma(n, ln2, -most) + n * rest);
  }

  const NestedTable& table(int kind, int64_t g) const {
    const NestedTable& own = own_.table[kind][g];
    return own.weight ? own : fixed_.table[kind][g];
  }

  void fill_children(int64_t b) {
    const NestedBlock& block = model_.blocks()[b];
    Children& out = children_[b];
    if (out.ready) return;
    out.ready = true;
    const NestedCells& cells = tables_.cells[block.bottom];
    const std::vector<double>& value = tables_.value[block.bottom];
    const int64_t S = model_.size(block.bottom), L = block.depth();
    out.weight.resize(static_cast<size_t>(cells.count() * block.child_stride));
    out.exponent.resize(static_cast<size_t>(cells.count() * block.kins));
    out.low.resize(static_cast<size_t>(cells.count() * block.kins));
    const double* free = tables_.within[b].data();
    std::vector<double> within;
    for (int64_t t = 0; t < view_->length; ++t) {
      if (cells.extent(t) == 0) continue;
      within.assign(static_cast<size_t>(block.child_stride), 0.0);
      for (int64_t m = 1; m <= cells.extent(t); ++m) {
        const int64_t cell = cells.first[t] + m - 1;
        const double* child = value.data() + cell * S;
        int64_t kin = 0;
        for (const NestedStacks& s : block.stacks) {
          if (s.kin < kin) continue;
          ++kin;
          const int32_t* state = s.layers[L].state;
          double* row = out.weight.data() + cells.count() * s.offset + cell * s.stride;
          for (int64_t c = 0; c < s.width; ++c) {
            double x = child[state[c]];
            if (L > 1) x += within[s.offset + c] += free[(t + m - 1) * block.child_stride + s.offset + c];
            row[c] = x;
          }
          int64_t &k = out.exponent[s.kin * cells.count() + cell], &low = out.low[s.kin * cells.count() + cell];
          if (!NestedWeights::exponentiate_row(row, s.width, k, low)) k = kDeadRow;
          std::fill(row + s.width, row + s.stride, 0.0);
        }
      }
    }
  }

  void set_up(int64_t b, int64_t start, int64_t longest, int64_t parent) {
    const NestedBlock& block = model_.blocks()[b];
    const NestedStacks& s = block.stacks[parent];
    const int64_t L = block.depth(), rows = longest + 1;
    fill_children(b);
    NestedRun& r = run_;
    r.length = view_->length;
    r.start = start;
    r.longest = longest;
    r.level = block.top;
    r.depth = L;
    r.parent = parent;
    r.stride = s.stride;
    r.layers = s.layers.data();
    states_.resize(L + 1);
    for (auto& list : layer_tables_) list.resize(L + 1);
    for (int64_t f = 0; f <= L; ++f) {
      const int64_t g = block.top + f;
      states_[f] = model_.size(g);
      for (int kind = 0; kind < 3 && f > 0; ++kind) layer_tables_[kind][f] = table(kind, g);
      const bool free = f > 0 && f < L;
      layer_tables_[3][f] = free ? table(3, g) : NestedTable();
      layer_tables_[4][f] = free ? table(4, g) : NestedTable();
    }
    r.states = states_.data();
    r.transit = layer_tables_[0].data();
    r.init = layer_tables_[1].data();
    r.end = layer_tables_[2].data();
    r.first = layer_tables_[3].data();
    r.last = layer_tables_[4].data();
    r.low = view_->low;
    r.high = view_->high;
    r.cells = tables_.cells[block.bottom].first.data();
    r.reach = tables_.cells[block.bottom].longest;
    const int64_t cells = tables_.cells[block.bottom].count();
    r.child = children_[b].weight.data() + cells * s.offset;
    r.child_exponent = children_[b].exponent.data() + cells * s.kin;
    r.child_low = children_[b].low.data() + cells * s.kin;
    double** const rows_of[] = {&r.before, &r.after, &r.rest, &r.ahead};
    int64_t** const exponents_of[] = {&r.before_k, &r.after_k, &r.rest_k, &r.ahead_k};
    int64_t** const lows_of[] = {&r.before_low, &r.after_low, &r.rest_low, &r.ahead_low};
    for (int k = 0; k < 4; ++k) {
      grow(rows_[k], rows * s.stride);
      grow(exponents_[k], rows);
      grow(lows_[k], rows);
      *rows_of[k] = rows_[k].data();
      *exponents_of[k] = exponents_[k].data();
      *lows_of[k] = lows_[k].data();
    }
    for (auto* list : {&ends_, &log_ends_, &outside_}) grow(*list, rows);
    for (auto* list : {&ends_k_, &outside_k_}) grow(*list, rows);
    r.ends = ends_.data();
    r.outside = outside_.data();
    r.ends_k = ends_k_.data();
    r.outside_k = outside_k_.data();
    // scratch: padded rows, with room for a whole vector beyond the last group
    const int64_t wide = padded4(s.widest + 4);
    double*** const layers_of[] = {&r.up, &r.down, &r.x, &r.bu, &r.bd};
    int64_t** const layer_exponents_of[] = {&r.up_k, &r.down_k, &r.x_k, &r.bu_k, &r.bd_k};
    for (int k = 0; k < 5; ++k) {
      grow(layer_rows_[k], (L + 1) * wide);
      layer_pointers_[k].resize(L + 1);
      grow(layer_exponents_[k], L + 1);
      for (int64_t f = 0; f <= L; ++f) layer_pointers_[k][f] = layer_rows_[k].data() + f * wide;
      *layers_of[k] = layer_pointers_[k].data();
      *layer_exponents_of[k] = layer_exponents_[k].data();
    }
    grow(row_, wide);
    r.row = row_.data();
    grow(terms_, r.reach);
    r.terms = terms_.data();
  }

  template <class T>
  static void grow(std::vector<T>& v, int64_t size) {
    if (static_cast<int64_t>(v.size()) < size) v.resize(static_cast<size_t>(size));
  }

  NestedOutside<double> log_run(int64_t b) const {
    return NestedOutside<double>(model_, *view_, model_.blocks()[b], tables_);
  }

  // A run of the inside that is there when the outside needs it: rows 0..N of before and after, and its ends.
  struct KeptRun {
    int64_t longest = -1;  // N; -1: not kept
    int64_t at = 0;        // of its numbers among the kept ones
  };
  static constexpr int64_t kMostKept = int64_t{1} << 20;  // numbers, both of rows and of exponents

  // forgets all runs; backward: those to come are wanted again
  void keep(bool backward) {
    runs_.resize(model_.blocks().size());
    for (size_t b = 1; b < runs_.size(); ++b) {
      const int64_t runs = backward ? view_->length * model_.size(model_.blocks()[b].top) : 0;
      runs_[b].assign(static_cast<size_t>(runs), {});
    }
    room_ = backward && runs_.size() > 1 ? kMostKept : 0;
    if (room_ && !kept_rows_) kept_rows_.reset(new double[kMostKept]);
    if (room_ && !kept_exponents_) kept_exponents_.reset(new int64_t[kMostKept]);
  }
  KeptRun* kept_run(int64_t b, int64_t start, int64_t parent) {
    const int64_t i = start * model_.size(model_.blocks()[b].top) + parent;
    return b > 0 && i < static_cast<int64_t>(runs_[b].size()) ? &runs_[b][i] : nullptr;
  }
  // the rows of the run that is set up stand with the kept ones
  void place(const KeptRun& kept) {
    const int64_t rows = kept.longest + 1, W = run_.stride;
    double* x = kept_rows_.get() + kept.at;
    int64_t* k = kept_exponents_.get() + kept.at;
    run_.before = x;
    run_.after = x + rows * W;
    run_.ends = x + 2 * rows * W;
    run_.before_k = k;
    run_.after_k = k + rows;
    run_.before_low = k + 2 * rows;
    run_.after_low = k + 3 * rows;
    run_.ends_k = k + 4 * rows;
  }

  // (N + 1,) log of the weight inside a parent, by its end
  const double* inside_ends(int64_t b, int64_t start, int64_t longest, int64_t parent) {
    const bool linear = forward(b, start, longest, parent);
    if (!linear) return log_rows_.whole_ends();
    constexpr double ln2 = 0.693147180559945309417;
    for (int64_t n = 0; n <= longest; ++n)
      log_ends_[n] = std::log(run_.ends[n]) + static_cast<double>(run_.ends_k[n]) * ln2;
    return log_ends_.data();
  }

  // the rows of a run, in linear space; false: in log space, in log_rows_
  bool forward(int64_t b, int64_t start, int64_t longest, int64_t parent) {
    const std::array<int64_t, 3> key = {b, start, parent};
    if (key == kept_ && run_.longest == longest) return true;
    set_up(b, start, longest, parent);
    KeptRun* kept = kept_run(b, start, parent);
    bool done = kept && kept->longest >= longest;
    const int64_t size = (longest + 1) * std::max<int64_t>(2 * run_.stride + 1, 5);
    if (!done && kept && kept->longest < 0 && size <= room_) {
      *kept = {longest, kMostKept - room_};
      room_ -= size;
    }
    if (kept && kept->longest >= longest) place(*kept);
    kept_ = {-1, -1, -1};
    done = done || kernels().nested_forward(run_);
    if (done) {
      kept_ = key;
      return true;
    }
    if (kept) kept->longest = -1;
    escaped_ = true;
    NestedOutside<double> log = log_run(b);
    log.forward(start, longest, parent, log_rows_);
    lost_ = lost_ || log.lost();
    return false;
  }

  // Posteriors of the children of one parent state, by stack: zeros, and into those of the segments. Exact runs need none.
  void open_stacks(int64_t b, int64_t parent) {
    if (exact_) return;
    const NestedBlock& block = model_.blocks()[b];
    stacks_.assign(static_cast<size_t>(tables_.cells[block.bottom].count() * block.stacks[parent].stride), 0.0);
  }
  void close_stacks(int64_t b, int64_t parent) {
    if (exact_ || !children_[b].ready) return;
    const NestedBlock& block = model_.blocks()[b];
    const NestedStacks& s = block.stacks[parent];
    const int64_t cells = tables_.cells[block.bottom].count(), S = model_.size(block.bottom);
    const int32_t* state = s.layers[block.depth()].state;
    const double* weight = children_[b].weight.data() + cells * s.offset;
    for (int64_t cell = 0; cell < cells; ++cell)
      for (int64_t c = 0; c < s.width; ++c)
        posterior_[block.bottom][cell * S + state[c]] += stacks_[cell * s.stride + c] * weight[cell * s.stride + c];
  }

  template <class Posterior>
  void outside(int64_t b, int64_t start, int64_t longest, int64_t parent, const Posterior& posterior,
               NestedAnswer& answer) {
    const NestedBlock& block = model_.blocks()[b];
    const bool linear = !exact_ && forward(b, start, longest, parent);
    const int64_t L = block.depth();
    sink_.segments = posterior_[block.bottom].data();
    sink_.starts.assign(L + 1, nullptr);
    sink_.stops.assign(L + 1, nullptr);
    sink_.transit.resize(L + 1);
    sink_.init.resize(L + 1);
    sink_.end.resize(L + 1);
    for (int64_t f = 1; f <= L; ++f) {
      const int64_t g = block.top + f;
      if (f < L) {
        sink_.starts[f] = starts_[g].data();
        sink_.stops[f] = stops_[g].data();
      }
      sink_.transit[f] = answer.transit[g];
      sink_.init[f] = answer.init[g];
      sink_.end[f] = answer.end[g];
    }
    if (linear) {
      for (int64_t n = 1; n <= longest; ++n) {
        const double q = posterior(n);
        outside_[n] = q > 0.0 ? q / run_.ends[n] : 0.0;
        outside_k_[n] = -run_.ends_k[n];
      }
      run_.segments = sink_.segments;
      run_.stacks = stacks_.data();
      run_.starts = sink_.starts.data();
      run_.stops = sink_.stops.data();
      run_.transit_e = sink_.transit.data();
      run_.init_e = sink_.init.data();
      run_.end_e = sink_.end.data();
      if (kernels().nested_backward(run_)) return;
    }
    escaped_ = true;
    if (!exact_) {
      NestedOutside<double> log = log_run(b);
      log.forward(start, longest, parent, log_rows_);
      if (!log.lost()) return log.backward(log_rows_, posterior, sink_);
    }
    if (!exact_ready_) nested_log_inside(model_, *view_, exact_tables_, exact_runs_, [](auto&) {});
    exact_ready_ = true;
    NestedOutside<Exact> exact(model_, *view_, block, exact_tables_);
    exact.forward(start, longest, parent, exact_rows_);
    exact.backward(exact_rows_, posterior, sink_);
  }

  // zeroed posteriors
  void open(const NestedAnswer&) {
    const int64_t T = view_->length;
    for (const NestedBlock& block : model_.blocks()) {
      const int64_t e = block.bottom;
      posterior_[e].assign(static_cast<size_t>(cells(e).count() * model_.size(e)), 0.0);
      for (int64_t g = block.top + 1; g <= e; ++g) {
        starts_[g].assign(static_cast<size_t>(T * model_.size(g)), 0.0);
        stops_[g].assign(static_cast<size_t>(T * model_.size(g)), 0.0);
      }
    }
  }

  // labels, boundaries and the parts of persistence, out of segments (timed levels) or starts and stops (free ones)
  void close(NestedAnswer& answer) {
    const int64_t T = view_->length;
    for (int64_t g = 1; g < model_.levels(); ++g) {
      const int64_t S = model_.size(g);
      double *starts = starts_[g].data(), *stops = stops_[g].data();
      bool single = false;
      if (!model_.free(g)) {
        const NestedCells& spans = cells(g);
        single = spans.longest <= 1;
        for (int64_t t = 0; t < T; ++t)
          for (int64_t m = 1; m <= spans.extent(t); ++m) {
            const double* q = posterior_[g].data() + (spans.first[t] + m - 1) * S;
            for (int64_t s = 0; s < S; ++s) {
              starts[t * S + s] += q[s];
              stops[(t + m - 1) * S + s] += q[s];
            }
            if (answer.spans[g]) std::copy(q, q + S, answer.spans[g] + (t * answer.spans_stride[g] + m - 1) * S);
            if (answer.length[g])
              for (int64_t s = 0; s < S; ++s) answer.length[g][(m - 1) * S + s] += q[s];
          }
      }
      for (int64_t t = 0; t < T; ++t)
        for (int64_t s = 0; s < S; ++s) {
          const double start = starts[t * S + s], stop = stops[t * S + s];
          if (answer.labels[g]) {
            double q = start;
            if (!single && t > 0) q += answer.labels[g][(t - 1) * S + s] - stops[(t - 1) * S + s];
            // a difference of sums: what is left of nothing is nothing
            answer.labels[g][t * S + s] = q > 1e-15 || start > 0.0 || stop > 0.0 ? (q > 0.0 ? q : 0.0) : 0.0;
          }
          if (answer.boundaries[g]) answer.boundaries[g][t] += stop;
          if (answer.start[g]) answer.start[g][t * answer.start_stride[g] + s] += start;
          if (answer.stop[g]) answer.stop[g][t * answer.stop_stride[g] + s] += stop;
        }
    }
  }

  const NestedTopology& model_;
  const NestedFixed& fixed_;
  const NestedView* view_ = nullptr;
  NestedFixed own_;
  NestedTables<LogSum<double>> tables_;
  NestedTables<LogSum<Exact>> exact_tables_;
  std::vector<NestedLogRun<LogSum<Exact>>> exact_runs_;
  std::vector<Children> children_;
  std::vector<std::vector<double>> posterior_, starts_, stops_;
  NestedRun run_;
  NestedSink sink_;
  NestedRows<LogSum<double>> log_rows_;
  NestedRows<LogSum<Exact>> exact_rows_;
  std::vector<int64_t> states_;
  std::vector<NestedTable> layer_tables_[5];
  std::vector<double> rows_[4], ends_, log_ends_, outside_, layer_rows_[5], row_, stacks_;
  std::vector<int64_t> exponents_[4], lows_[4], ends_k_, outside_k_, layer_exponents_[5];
  std::vector<double*> layer_pointers_[5];
  std::vector<NestedTerm> terms_;
  std::array<int64_t, 3> kept_ = {-1, -1, -1};  // the run that is set up: block, start, parent
  std::vector<std::vector<KeptRun>> runs_;      // by block: (T, parents)
  std::unique_ptr<double[]> kept_rows_;         // (kMostKept,)
  std::unique_ptr<int64_t[]> kept_exponents_;   // (kMostKept,)
  int64_t room_ = 0;                            // of kMostKept
  bool escaped_ = false;                        // some run did not stay in linear space
  bool lost_ = false;                           // doubles had not the digits
  bool exact_ = false;                          // so that the sequence is done in exact numbers
  bool exact_ready_ = false;                    // exact_tables_ are filled
};

}  // namespace scansion
