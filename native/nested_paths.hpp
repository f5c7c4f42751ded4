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
#include "search.hpp"

namespace scansion {

// The cliques of a configuration at the levels from 1 on: segment(g, i, j, s); init(g, t, p, u) where p begins at t;
// transit(g, t, p, v, u) where u follows v, whose last position is t; end(g, t, p, u) where p's last position is t.
template <class Segment, class Init, class Transit, class End>
void each_clique(const Configuration& configuration, const Segment& segment, const Init& init, const Transit& transit,
                 const End& end) {
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
  const auto segment = [&](size_t g, int64_t i, int64_t j, int64_t s) {
    const NestedLevel& level = v.levels[g];
    for (int64_t t = i; t < j; ++t) sum.add(level.within(t, s));
    sum.add(level.at_start(i, s));
    sum.add(level.at_stop(j - 1, s));
    if (level.length) sum.add(level.length[(j - i - 1) * level.states + s]);
    if (level.spans) sum.add(level.spans[(i * level.spans_stride + j - i - 1) * level.states + s]);
  };
  for (const Step& root : configuration[0]) segment(0, root.start, root.stop, root.label);
  each_clique(
      configuration, segment,
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

template <class Number>
struct NestedWay {
  Number total = Number(kMinusInfinity);
  int count = 0;
  NestedNode next[2];
  NestedRecord record;
};

template <class Ring>
class NestedGraph {
 public:
  using Number = typename Ring::Number;
  using Way = NestedWay<Number>;

  // levels: those that configurations have; a level of single steps may be below them
  NestedGraph(const NestedTopology& model, const NestedView& view, int64_t levels)
      : model_(model), view_(view), levels_(levels) {}
  NestedGraph(const NestedGraph&) = delete;

  const NestedTopology& model() const { return model_; }
  const NestedView& view() const { return view_; }
  Configuration nothing() const { return Configuration(static_cast<size_t>(levels_)); }

  // Fills the tables, before ways are asked for. False: digits were lost.
  bool fill() {
    if (!root_.empty()) return fine();
    root_.assign(static_cast<size_t>(model_.size(0)), Exact(kMinusInfinity));
    fine_ = nested_log_inside(model_, view_, tables_, runs_, [&](NestedRows<Ring>& rows) {
      root_[rows.parent] = rows.total(view_);
      const auto key = std::make_tuple(int32_t{0}, int64_t{0}, static_cast<int32_t>(rows.parent));
      rows_[key] = std::make_unique<NestedRows<Ring>>(std::move(rows));
    });
    return fine();
  }

  // no digits were lost so far: what was found can be relied on
  bool fine() const {
    return fine_ && std::none_of(runs_.begin(), runs_.end(), [](const auto& run) { return run.lost(); });
  }

  void ways(const NestedNode& node, std::vector<Way>& out) {
    out.clear();
    if (node.kind == NestedNode::kRoot) return root_ways(out);
    const NestedRows<Ring>& rows = run(node);
    const NestedBlock& block = model_.blocks()[node.block];
    const NestedStacks& s = block.stacks[node.parent];
    const int64_t j = node.start + node.n;
    if (node.kind == NestedNode::kParent) {
      for (int64_t c = 0; c < s.width; ++c) {
        const Number total = rows.after[node.n * s.width + c] + closing(block, s, c, 0, j);
        if (possible(total)) out.push_back(step(node, total, NestedNode::kAfter, node.n, c));
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
  static Way step(const NestedNode& node, const Number& total, NestedNode::Kind kind, int64_t n, int64_t stack) {
    Way way;
    way.total = total;
    way.count = 1;
    way.next[0] = node;
    way.next[0].kind = kind;
    way.next[0].n = n;
    way.next[0].stack = static_cast<int32_t>(stack);
    return way;
  }

  void root_ways(std::vector<Way>& out) const {
    const Exact top = Highest<Exact>::sum(root_.data(), root_.size());
    for (int64_t p = 0; p < model_.size(0); ++p) {
      if (!root_[p].possible()) continue;
      NestedNode node;
      node.parent = static_cast<int32_t>(p);
      node.longest = view_.length;
      Number below;  // the best
      if constexpr (std::is_same_v<Number, double>)
        below = gap(root_[p], top);
      else
        below = root_[p] - top;
      out.push_back(step(node, below, NestedNode::kParent, view_.length, 0));
    }
  }

  void child_ways(const NestedNode& node, const NestedRows<Ring>& rows, const NestedBlock& block, const NestedStacks& s,
                  std::vector<Way>& out) {
    const NestedCells& cells = tables_.cells[block.bottom];
    const int64_t state = s.state[block.depth()][node.stack], S = model_.size(block.bottom);
    const int64_t below = model_.block_below(block.bottom), j = node.start + node.n;
    const std::vector<Number>& free = tables_.within[node.block];
    Number within(0.0);
    for (int64_t m = 1; m <= std::min(node.n, cells.longest); ++m) {
      const int64_t t = j - m;
      if (!free.empty()) within += free[t * block.child_stride + s.offset + node.stack];
      if (m > cells.extent(t)) continue;
      const Number total = rows.before[(node.n - m) * s.width + node.stack] +
                           tables_.value[block.bottom][(cells.first[t] + m - 1) * S + state] + within +
                           Number(rows.before_base[node.n - m] - rows.after_base[node.n]);
      if (!possible(total)) continue;
      Way way = step(node, total, NestedNode::kBefore, node.n - m, node.stack);
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

  void change_ways(const NestedNode& node, const NestedRows<Ring>& rows, const NestedBlock& block,
                   const NestedStacks& s, std::vector<Way>& out) const {
    const int64_t L = block.depth(), t = node.start + node.n;
    if (node.n == 0) {  // the parent begins
      Way way;
      way.total = Number(0.0);
      way.record = {NestedRecord::kChange, node.block, node.parent, 0, t, t};
      out.push_back(way);
      return;
    }
    Number opening(0.0);  // levels below f that begin
    int64_t at = node.stack;
    for (int64_t f = L; f >= 1; --f) {
      const int64_t g = block.top + f, S = model_.size(g), above = s.above[f][at];
      const int64_t p = s.state[f - 1][above], u = s.state[f][at];
      if (f < L) opening += Number(view_.levels[g].at_start(t, u));
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
          const Number total = rows.after[node.n * s.width + c] + closing(block, s, c, f, t) +
                               Number(transit[(p * S + s.state[f][v]) * S + u]) + opening;
          if (!possible(total)) continue;
          Way way = step(node, total, NestedNode::kAfter, node.n, c);
          way.record = {NestedRecord::kChange, node.block, node.parent, static_cast<int32_t>(f), t, t};
          out.push_back(way);
        }
      }
      opening += Number(view_.init[g].at(t)[p * S + u]);
      at = above;
    }
  }

  // score of all layers from f on that end at j below a leaf c (f = 0: the parent's last child, too)
  Number closing(const NestedBlock& block, const NestedStacks& s, int64_t c, int64_t f, int64_t j) const {
    Number sum(0.0);
    for (int64_t h = block.depth(); h > f; --h) {
      const int64_t g = block.top + h, above = s.above[h][c], p = s.state[h - 1][above];
      sum += Number(view_.end[g].at(j - 1)[p * model_.size(g) + s.state[h][c]]);
      if (h - 1 > 0) sum += Number(view_.levels[g - 1].at_stop(j - 1, p));
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

  const NestedTopology& model_;
  const NestedView& view_;
  int64_t levels_;
  NestedTables<Ring> tables_;
  std::vector<NestedLogRun<Ring>> runs_;
  std::vector<Exact> root_;  // by state: the weight of everything under it
  bool fine_ = true;
  std::map<std::tuple<int32_t, int64_t, int32_t>, std::unique_ptr<NestedRows<Ring>>> rows_;
};

// One configuration: choose(ways) gives the way to take, or null if nothing is possible.
template <class Graph, class Choose>
bool nested_walk(Graph& graph, const Choose& choose, std::vector<NestedRecord>& records) {
  std::vector<NestedNode> open(1);
  std::vector<typename Graph::Way> ways;
  records.clear();
  while (!open.empty()) {
    const NestedNode node = open.back();
    open.pop_back();
    graph.ways(node, ways);
    const auto* way = choose(ways);
    if (!way) return false;
    if (way->record.kind != NestedRecord::kNone) records.push_back(way->record);
    for (int c = 0; c < way->count; ++c) open.push_back(way->next[c]);
  }
  return true;
}

// The k best, best first.
template <class Graph>
std::vector<std::vector<NestedRecord>> nested_best(Graph& graph, int64_t k) {
  using Way = typename Graph::Way;
  struct Rest {
    int64_t todo, done;  // lists of nodes and of records
  };
  Lists<NestedNode> todo;
  Lists<NestedRecord> done;
  Frontier<Way, Rest> open(k);
  std::vector<Way> ways;
  std::vector<std::vector<NestedRecord>> found;
  graph.ways(NestedNode(), ways);
  open.offer(typename Graph::Number(0.0), ways, {-1, -1});
  for (typename Frontier<Way, Rest>::Open at; open.take(at);) {
    int64_t nodes = at.rest.todo, records = at.rest.done;
    if (at.way.record.kind != NestedRecord::kNone) records = done.add(at.way.record, records);
    for (int c = 0; c < at.way.count; ++c) nodes = todo.add(at.way.next[c], nodes);
    if (nodes < 0) {
      found.push_back(done.values(records));
      open.found();
      continue;
    }
    graph.ways(todo.first(nodes), ways);
    open.offer(at.below, ways, {todo.rest(nodes), records});
  }
  return found;
}

// use(graph), until it returns true: a graph in doubles and, where these have not the digits, one in exact numbers.
template <template <class> class Ring, class Use>
bool on_nested(const NestedTopology& model, const NestedView& view, int64_t levels, const Use& use) {
  {
    NestedGraph<Ring<double>> graph(model, view, levels);
    if (use(graph)) return true;
  }
  NestedGraph<Ring<Exact>> graph(model, view, levels);
  return use(graph);
}

// The questions of batch.hpp. False: nothing was found, or digits were lost.
template <class Number>
bool best_configuration(NestedGraph<Highest<Number>>& graph, Configuration& out) {
  out = graph.nothing();
  if (graph.view().length == 0) return true;
  std::vector<NestedRecord> records;
  if (!graph.fill() || !nested_walk(graph, best_way<NestedWay<Number>>, records) || !graph.fine()) return false;
  out = graph.configuration(records);
  return true;
}

template <class Number>
bool best_configurations(NestedGraph<Highest<Number>>& graph, int64_t k, std::vector<Configuration>& out) {
  out.clear();
  if (graph.view().length == 0) {
    out.push_back(graph.nothing());
    return true;
  }
  if (!graph.fill()) return false;
  for (const auto& records : nested_best(graph, k)) out.push_back(graph.configuration(records));
  return graph.fine();
}

// random: a seed
template <class Number>
bool random_configuration(NestedGraph<LogSum<Number>>& graph, const int64_t* random, Configuration& out) {
  out = graph.nothing();
  if (graph.view().length == 0) return true;
  std::mt19937_64 engine(static_cast<uint64_t>(*random));
  std::vector<double> weight;
  std::vector<NestedRecord> records;
  const auto choose = [&](const auto& ways) {
    return ways.size() == 1 ? best_way(ways) : drawn_way(ways, static_cast<double>(engine() >> 11) * 0x1p-53, weight);
  };
  if (!graph.fill() || !nested_walk(graph, choose, records) || !graph.fine()) return false;
  out = graph.configuration(records);
  return true;
}

template <class Number>
bool find_entropy(NestedGraph<LogSum<Number>>& graph, double& out) {
  using Ring = LogSumEntropy<Number>;
  const NestedView& view = graph.view();
  out = 0.0;
  if (view.length == 0) return true;
  NestedTables<Ring> tables;
  std::vector<NestedLogRun<Ring>> runs;
  std::vector<LogSumEntropy<Exact>::Value> root;
  const bool fine = nested_log_inside(graph.model(), view, tables, runs, [&](NestedRows<Ring>& rows) {
    root.push_back({rows.total(view), rows.ends[view.length].entropy});
  });
  out = LogSumEntropy<Exact>::sum(root.data(), root.size()).entropy;
  return fine;
}

}  // namespace scansion
