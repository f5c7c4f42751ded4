// Single configurations of a nested sequence: the best (generalised Viterbi), the k best, random ones.
//
// A configuration is put together from the root down and, within a run, from its end back to its start. What is still to
// do are *nodes*: a parent that ends (choose the stack of its last child), a child that ended (choose where it began),
// a place where a child begins (choose the level that changed and the stack before). Each node lists its ways with
// totals out of the filled tables: the best or the summed weight of everything up to there. Every configuration is
// exactly one sequence of ways. O(ways) per choice, O(T D) choices; runs are filled when they are first met.
#pragma once

#include <map>
#include <memory>
#include <random>
#include <tuple>

#include "batch.hpp"
#include "nested_inference.hpp"

namespace scansion {

// The cliques of a configuration at the levels from 1 on: segment(g, i, j, s); init(g, t, p, u) where p begins at t;
// transit(g, t, p, v, u) where u follows v, whose last position is t; end(g, t, p, u) where p's last position is t.
template <class Segment, class Init, class Transit, class End>
void each_clique(const Configuration& configuration, const Segment& segment, const Init& init, const Transit& transit, const End& end) {
  for (size_t g = 1; g < configuration.size(); ++g) {
    const Step* parent = configuration[g - 1].data();
    for (const Step& step : configuration[g]) {
      while (parent->stop <= step.start) ++parent;
      segment(g, step.start, step.stop, step.label);
      if (step.start == parent->start)
        init(g, step.start, parent->label, step.label);
      else
        transit(g, step.start - 1, parent->label, (&step)[-1].label, step.label);
      if (step.stop == parent->stop) end(g, step.stop - 1, parent->label, step.label);
    }
  }
}

// sum.add(x) for the scores of a configuration
template <class Sum>
void add_scores(const NestedView& v, const Configuration& configuration, Sum& sum) {
  for (const Step& root : configuration[0]) sum.add(v.root[root.label]);
  each_clique(
      configuration,
      [&](size_t g, int64_t i, int64_t j, int64_t s) {
        const NestedLevel& level = v.levels[g];
        for (int64_t t = i; t < j; ++t) sum.add(level.within(t, s));
        sum.add(level.at_start(i, s));
        sum.add(level.at_stop(j - 1, s));
        if (level.length) sum.add(level.length[(j - i - 1) * level.states + s]);
        if (level.spans) sum.add(level.spans[(i * level.spans_stride + j - i - 1) * level.states + s]);
      },
      [&](size_t g, int64_t t, int64_t p, int64_t u) { sum.add(v.init[g].at(t)[p * v.levels[g].states + u]); },
      [&](size_t g, int64_t t, int64_t p, int64_t w, int64_t u) {
        const int64_t S = v.levels[g].states;
        sum.add(v.transit[g].at(t)[(p * S + w) * S + u]);
      },
      [&](size_t g, int64_t t, int64_t p, int64_t u) { sum.add(v.end[g].at(t)[p * v.levels[g].states + u]); });
}

struct NestedNode {
  enum Kind : int32_t { kRoot, kParent, kAfter, kBefore };
  Kind kind = kRoot;
  int32_t block = 0, parent = 0, stack = 0;
  int64_t start = 0, longest = 0, n = 0;
};

// Part of a configuration: a child [t, j) of a block in a stack, or the layer that changed at t (0: the parent began).
struct NestedRecord {
  enum Kind : int32_t { kNone, kChild, kChange };
  Kind kind = kNone;
  int32_t block = 0, parent = 0, stack = 0;
  int64_t t = 0, j = 0;
};

struct NestedWay {
  double total = kNothing;
  int count = 0;
  NestedNode next[2];
  NestedRecord record;
};

template <class Ring>
class NestedGraph {
 public:
  // levels: those that configurations have; a level of single steps may be below them
  NestedGraph(const NestedModel& model, const NestedView& view, int64_t levels)
      : model_(model), view_(view), levels_(levels) {}

  const NestedModel& model() const { return model_; }
  const NestedView& view() const { return view_; }
  Configuration nothing() const { return Configuration(static_cast<size_t>(levels_)); }

  // Fills the tables, before ways are asked for.
  void fill() {
    if (!runs_.empty()) return;
    const NestedModel& model = model_;
    const NestedView& view = view_;
    nested_prepare(model, view, tables_);
    for (const NestedBlock& block : model.blocks()) runs_.emplace_back(model, view, block, tables_);
    NestedRows<Ring> rows;
    nested_inside(model, view, tables_, [&](int64_t b, int64_t t, int64_t longest, int64_t p) {
      runs_[b].forward(t, longest, p, rows);
      return rows.whole_ends();
    });
  }

  void ways(const NestedNode& node, std::vector<NestedWay>& out) {
    out.clear();
    if (node.kind == NestedNode::kRoot) return root_ways(out);
    const NestedRows<Ring>& rows = run(node);
    const NestedBlock& block = model_.blocks()[node.block];
    const NestedStacks& s = block.stacks[node.parent];
    const int64_t j = node.start + node.n;
    if (node.kind == NestedNode::kParent) {
      for (int64_t c = 0; c < s.width; ++c) {
        const double total = rows.after[node.n * s.width + c] + closing(block, s, c, 0, j);
        if (total > kNothing) out.push_back(step(node, total, NestedNode::kAfter, node.n, c));
      }
    } else if (node.kind == NestedNode::kAfter) {
      child_ways(node, rows, block, s, out);
    } else {
      change_ways(node, rows, block, s, out);
    }
  }

  // the parts of a configuration in any order, as segments by level
  Configuration configuration(std::vector<NestedRecord> records) const {
    Configuration out = nothing();
    std::sort(records.begin(), records.end(), [](const NestedRecord& a, const NestedRecord& b) {
      return std::make_tuple(a.block, a.t, -a.kind) < std::make_tuple(b.block, b.t, -b.kind);  // changes come first
    });
    int64_t layer = 0;
    for (const NestedRecord& r : records) {
      if (r.kind == NestedRecord::kChange) {
        layer = r.stack;
        continue;
      }
      const NestedBlock& block = model_.blocks()[r.block];
      const NestedStacks& s = block.stacks[r.parent];
      if (block.top == 0 && r.t == 0) out[0].push_back({0, view_.length, r.parent});
      int64_t at = r.stack;
      for (int64_t f = block.depth(); f >= 1; --f) {
        const int64_t g = block.top + f;
        if (g < levels_) {
          if (f == block.depth() || layer <= f)
            out[g].push_back({r.t, r.j, s.state[f][at]});
          else
            out[g].back().stop = r.j;
        }
        at = s.above[f][at];
      }
    }
    return out;
  }

 private:
  static NestedWay step(const NestedNode& node, double total, NestedNode::Kind kind, int64_t n, int64_t stack) {
    NestedWay way;
    way.total = total;
    way.count = 1;
    way.next[0] = node;
    way.next[0].kind = kind;
    way.next[0].n = n;
    way.next[0].stack = static_cast<int32_t>(stack);
    return way;
  }

  void root_ways(std::vector<NestedWay>& out) {
    double base = 0.0;
    for (int64_t p = 0; p < model_.size(0); ++p) {
      if (!(view_.root[p] > kNothing)) continue;
      NestedNode node;
      node.kind = NestedNode::kParent;
      node.parent = static_cast<int32_t>(p);
      node.longest = node.n = view_.length;
      const NestedRows<Ring>& rows = run(node);
      if (out.empty()) base = rows.after_base[view_.length];  // all totals are relative to this one
      const double total = view_.root[p] + (rows.ends[view_.length] + (rows.after_base[view_.length] - base));
      if (total > kNothing) out.push_back(step(node, total, NestedNode::kParent, node.n, 0));
    }
  }

  void child_ways(const NestedNode& node, const NestedRows<Ring>& rows, const NestedBlock& block, const NestedStacks& s,
                  std::vector<NestedWay>& out) {
    const NestedCells& cells = tables_.cells[block.bottom];
    const int64_t state = s.state[block.depth()][node.stack], S = model_.size(block.bottom);
    const int64_t below = model_.block_below(block.bottom), j = node.start + node.n;
    const std::vector<double>& free = tables_.within[node.block];
    double within = 0.0;
    for (int64_t m = 1; m <= std::min(node.n, cells.longest); ++m) {
      const int64_t t = j - m;
      if (!free.empty()) within += free[t * block.child_stride + s.offset + node.stack];
      if (m > cells.extent(t)) continue;
      const double total = rows.before[(node.n - m) * s.width + node.stack] +
                           tables_.value[block.bottom][(cells.first[t] + m - 1) * S + state] + within +
                           (rows.before_base[node.n - m] - rows.after_base[node.n]);
      if (!(total > kNothing)) continue;
      NestedWay way = step(node, total, NestedNode::kBefore, node.n - m, node.stack);
      way.record = {NestedRecord::kChild, node.block, node.parent, node.stack, t, j};
      if (below >= 0) {
        NestedNode& inner = way.next[way.count++];
        inner.kind = NestedNode::kParent;
        inner.block = static_cast<int32_t>(below);
        inner.parent = static_cast<int32_t>(state);
        inner.start = t;
        inner.longest = inner.n = m;
      }
      out.push_back(way);
    }
  }

  void change_ways(const NestedNode& node, const NestedRows<Ring>& rows, const NestedBlock& block, const NestedStacks& s,
                   std::vector<NestedWay>& out) const {
    const int64_t L = block.depth(), t = node.start + node.n;
    if (node.n == 0) {  // the parent begins
      NestedWay way;
      way.total = 0.0;
      way.record = {NestedRecord::kChange, node.block, node.parent, 0, t, t};
      out.push_back(way);
      return;
    }
    double opening = 0.0;  // levels below f that begin
    int64_t at = node.stack;
    for (int64_t f = L; f >= 1; --f) {
      const int64_t g = block.top + f, S = model_.size(g), above = s.above[f][at];
      const int64_t p = s.state[f - 1][above], u = s.state[f][at];
      if (f < L) opening += view_.levels[g].at_start(t, u);
      if (view_.may_move(t, g)) {
        int64_t first = s.first[f][above], last = s.first[f][above + 1];
        for (int64_t h = f + 1; h <= L; ++h) {
          first = s.first[h][first];
          last = s.first[h][last];
        }
        const double* transit = view_.transit[g].at(t - 1);
        for (int64_t c = first; c < last; ++c) {
          int64_t v = c;
          for (int64_t h = L; h > f; --h) v = s.above[h][v];
          const double total = rows.after[node.n * s.width + c] + closing(block, s, c, f, t) +
                               transit[(p * S + s.state[f][v]) * S + u] + opening;
          if (!(total > kNothing)) continue;
          NestedWay way = step(node, total, NestedNode::kAfter, node.n, c);
          way.record = {NestedRecord::kChange, node.block, node.parent, static_cast<int32_t>(f), t, t};
          out.push_back(way);
        }
      }
      opening += view_.init[g].at(t)[p * S + u];
      at = above;
    }
  }

  // score of all layers from f on that end at j below a leaf c (f = 0: the parent's last child, too)
  double closing(const NestedBlock& block, const NestedStacks& s, int64_t c, int64_t f, int64_t j) const {
    double sum = 0.0;
    for (int64_t h = block.depth(); h > f; --h) {
      const int64_t g = block.top + h, above = s.above[h][c], p = s.state[h - 1][above];
      sum += view_.end[g].at(j - 1)[p * model_.size(g) + s.state[h][c]];
      if (h - 1 > 0) sum += view_.levels[g - 1].at_stop(j - 1, p);
      c = above;
    }
    return sum;
  }

  const NestedRows<Ring>& run(const NestedNode& node) {
    std::unique_ptr<NestedRows<Ring>>& rows = rows_[std::make_tuple(node.block, node.start, node.parent)];
    if (!rows || rows->longest < node.longest) {
      rows = std::make_unique<NestedRows<Ring>>();
      runs_[node.block].forward(node.start, node.longest, node.parent, *rows);
    }
    return *rows;
  }

  const NestedModel& model_;
  const NestedView& view_;
  int64_t levels_;
  NestedTables<Ring> tables_;
  std::vector<NestedLogRun<Ring>> runs_;
  std::map<std::tuple<int32_t, int64_t, int32_t>, std::unique_ptr<NestedRows<Ring>>> rows_;
};

// One configuration: choose(ways) gives the index of the way to take, or -1 if nothing is possible.
template <class Ring, class Choose>
bool nested_walk(NestedGraph<Ring>& graph, const Choose& choose, std::vector<NestedRecord>& records) {
  std::vector<NestedNode> open(1);
  std::vector<NestedWay> ways;
  records.clear();
  while (!open.empty()) {
    const NestedNode node = open.back();
    open.pop_back();
    graph.ways(node, ways);
    const int64_t i = choose(ways);
    if (i < 0) return false;
    const NestedWay& way = ways[i];
    if (way.record.kind != NestedRecord::kNone) records.push_back(way.record);
    for (int c = 0; c < way.count; ++c) open.push_back(way.next[c]);
  }
  return true;
}

inline int64_t best_nested_way(const std::vector<NestedWay>& ways) {
  int64_t best = -1;
  for (size_t i = 0; i < ways.size(); ++i)
    if (ways[i].total > kNothing && (best < 0 || ways[i].total > ways[best].total)) best = static_cast<int64_t>(i);
  return best;
}

class NestedDraw {
 public:
  explicit NestedDraw(int64_t seed) : engine_(static_cast<uint64_t>(seed)) {}
  int64_t operator()(const std::vector<NestedWay>& ways) {
    const int64_t best = best_nested_way(ways);
    if (best < 0 || ways.size() == 1) return best;
    const double top = ways[best].total;
    double sum = 0.0;
    for (const NestedWay& way : ways) sum += std::exp(way.total - top);
    double left = static_cast<double>(engine_() >> 11) * 0x1p-53 * sum;
    int64_t last = best;
    for (size_t i = 0; i < ways.size(); ++i) {
      const double p = std::exp(ways[i].total - top);
      if (p == 0.0) continue;
      last = static_cast<int64_t>(i);
      if (left < p) break;
      left -= p;
    }
    return last;
  }

 private:
  std::mt19937_64 engine_;
};

// The k best, best first. Best-first search; an open configuration carries its regret, how much worse than the best
// its best completion is, which the tables give exactly: each one that is taken up is part of one of the k best.
inline std::vector<std::vector<NestedRecord>> nested_best(NestedGraph<Highest>& graph, int64_t k) {
  struct Todo {
    NestedNode node;
    int64_t next;
  };
  struct Done {
    NestedRecord record;
    int64_t next;
  };
  struct Open {
    double regret;
    int64_t steps, id, todo, done;
    NestedWay way;
  };
  // least regret first; among equals the further, then the earlier: the first is the Viterbi configuration
  const auto worse = [](const Open& a, const Open& b) {
    if (a.regret != b.regret) return a.regret > b.regret;
    if (a.steps != b.steps) return a.steps < b.steps;
    return a.id > b.id;
  };
  std::vector<Todo> todo;
  std::vector<Done> done;
  std::vector<Open> open;
  std::vector<NestedWay> ways;
  std::vector<std::vector<NestedRecord>> found;
  int64_t id = 0;
  const auto expand = [&](const NestedNode& node, double regret, int64_t steps, int64_t rest, int64_t parts) {
    graph.ways(node, ways);
    const int64_t best = best_nested_way(ways);
    if (best < 0) return;
    const double top = ways[best].total;
    for (const NestedWay& way : ways) {
      if (!(way.total > kNothing)) continue;
      open.push_back({regret + (top - way.total), steps + 1, id++, rest, parts, way});
      std::push_heap(open.begin(), open.end(), worse);
    }
  };
  expand(NestedNode(), 0.0, 0, -1, -1);
  while (!open.empty() && static_cast<int64_t>(found.size()) < k) {
    std::pop_heap(open.begin(), open.end(), worse);
    const Open at = open.back();
    open.pop_back();
    int64_t rest = at.todo, parts = at.done;
    if (at.way.record.kind != NestedRecord::kNone) {
      done.push_back({at.way.record, parts});
      parts = static_cast<int64_t>(done.size()) - 1;
    }
    for (int c = 0; c < at.way.count; ++c) {
      todo.push_back({at.way.next[c], rest});
      rest = static_cast<int64_t>(todo.size()) - 1;
    }
    if (rest < 0) {
      std::vector<NestedRecord> records;
      for (int64_t i = parts; i >= 0; i = done[i].next) records.push_back(done[i].record);
      found.push_back(std::move(records));
      continue;
    }
    const Todo next = todo[rest];
    expand(next.node, at.regret, at.steps, next.next, parts);
    // each open one stands for at least one configuration: more than are still wanted need not be kept
    const size_t wanted = static_cast<size_t>(k) - found.size();
    if (open.size() > 4 * wanted + 4096) {
      std::nth_element(open.begin(), open.begin() + wanted, open.end(),
                       [&](const Open& a, const Open& b) { return worse(b, a); });
      open.resize(wanted);
      std::make_heap(open.begin(), open.end(), worse);
    }
  }
  return found;
}

inline bool best_configuration(NestedGraph<Highest>& graph, Configuration& out) {
  out = graph.nothing();
  if (graph.view().length == 0) return true;
  graph.fill();
  std::vector<NestedRecord> records;
  if (!nested_walk(graph, best_nested_way, records)) return false;
  out = graph.configuration(records);
  return true;
}

inline std::vector<Configuration> best_configurations(NestedGraph<Highest>& graph, int64_t k) {
  if (graph.view().length == 0) return {graph.nothing()};
  graph.fill();
  std::vector<Configuration> out;
  for (const auto& records : nested_best(graph, k)) out.push_back(graph.configuration(records));
  return out;
}

// random: a seed
inline bool random_configuration(NestedGraph<LogSum>& graph, const int64_t* random, Configuration& out) {
  out = graph.nothing();
  if (graph.view().length == 0) return true;
  graph.fill();
  NestedDraw draw(*random);
  std::vector<NestedRecord> records;
  const auto choose = [&](const std::vector<NestedWay>& ways) { return draw(ways); };
  if (!nested_walk(graph, choose, records)) return false;
  out = graph.configuration(records);
  return true;
}

inline double entropy(NestedGraph<LogSum>& graph) {
  const NestedModel& model = graph.model();
  const NestedView& view = graph.view();
  if (view.length == 0) return 0.0;
  using Value = LogSumEntropy::Value;
  NestedTables<LogSumEntropy> tables;
  nested_prepare(model, view, tables);
  std::vector<NestedLogRun<LogSumEntropy>> runs;
  for (const NestedBlock& block : model.blocks()) runs.emplace_back(model, view, block, tables);
  NestedRows<LogSumEntropy> rows;
  nested_inside(model, view, tables, [&](int64_t b, int64_t t, int64_t longest, int64_t p) {
    runs[b].forward(t, longest, p, rows);
    return rows.whole_ends();
  });
  std::vector<Value> root;
  for (int64_t p = 0; p < model.size(0); ++p) {
    if (!(view.root[p] > kNothing)) continue;
    runs[0].forward(0, view.length, p, rows);
    root.push_back(LogSumEntropy::times(LogSumEntropy::of(view.root[p]), rows.end(view.length)));
  }
  return LogSumEntropy::sum(root.data(), root.size()).entropy;
}

}  // namespace scansion
