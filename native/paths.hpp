// Single configurations out of a filled table: the best one, the k best, random ones; and the entropy.
//
// All four walk the same graph backwards. Its nodes are (v, p): a prefix of v positions that is in state p. A
// Graph says how a node is reached:
//   prepare(v)          once before incoming(v, .)
//   incoming(v, p, out) every way in, with total = table(u, source) + score of the step, all on one scale
//   finals(out)         every way to end: nodes (T, p) with their totals
//   initial(), label(p), reach()   the state before the first step; the last label of a state, or -1; longest step
//   doubtful(v, p)      the table's entry is too far below the best of v for its digits: walks must not pass it
//   Number              what totals are: double, or Exact
// Every configuration is exactly one path, so nothing is found twice. Walks return false where they find no way on, or a
// doubtful node: then the table must be made again in exact numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "exact.hpp"
#include "kernels.hpp"
#include "numeric.hpp"
#include "search.hpp"

namespace scansion {

template <class Number>
struct WayTo {
  int64_t from;    // u
  int32_t source;  // state at u
  int32_t label;   // label of the step (-1: none)
  Number total;
};
using Way = WayTo<double>;

struct Step {
  int64_t start, stop;
  int32_t label;
};
using Path = std::vector<Step>;

// First-order chain: node (v, j) for v >= 1 means label j at time v - 1; (0, 0) is the start.
class ChainGraph {
 public:
  using Number = double;
  ChainGraph(const Kernels& kernels, const ChainView& view, const double* table, double* row)
      : kernels_(kernels), view_(view), table_(table), row_(row) {}

  int64_t length() const { return view_.length; }
  int64_t states() const { return view_.labels; }
  int64_t initial() const { return 0; }
  int32_t label(int64_t p) const { return static_cast<int32_t>(p); }
  int64_t reach() const { return 1; }
  bool doubtful(int64_t v, int64_t p) const { return v > 0 && table_[(v - 1) * view_.labels + p] < -kFar; }
  // the table's row of v; for v >= 2 the row before it and the scores (L, L) of the steps, that incoming(v, .) adds up;
  // the scores (L,) of the labels at v themselves, until the next call
  const double* after(int64_t v) const { return table_ + (v - 1) * view_.labels; }
  const double* row(int64_t v) const {
    kernels_.chain_row(view_, v - 1, row_);
    return row_;
  }
  const double* before(int64_t v) const { return table_ + (v - 2) * view_.labels; }
  const double* transition(int64_t v) const { return view_.transition + (v - 2) * view_.transition_stride; }
  void prepare(int64_t) {}
  void incoming(int64_t v, int64_t p, std::vector<Way>& out) const {
    if (v == 1) {  // the only way in
      out.assign(1, {0, 0, label(p), table_[p]});
      return;
    }
    const int64_t L = view_.labels;
    const double *before = this->before(v), *w = transition(v) + p;
    out.resize(static_cast<size_t>(L));
    for (int64_t i = 0; i < L; ++i) out[i] = {v - 1, label(i), label(p), before[i] + w[i * L]};
  }
  void finals(std::vector<Way>& out) const {
    out.clear();
    const int64_t T = view_.length, L = view_.labels;
    for (int64_t j = 0; j < L; ++j) out.push_back({T, static_cast<int32_t>(j), -1, table_[(T - 1) * L + j]});
  }

 private:
  const Kernels& kernels_;
  const ChainView& view_;
  const double* table_;
  double* row_;
};

// The best path of a chain, straight from the table: what best_path(ChainGraph) finds, in a fraction of its time.
inline bool best_chain_labels(const ChainView& view, const double* table, int32_t* labels) {
  const int64_t L = view.labels;
  if (view.length == 0) return true;
  const double* last = table + (view.length - 1) * L;
  int64_t y = std::max_element(last, last + L) - last;
  for (int64_t t = view.length - 1;; --t) {
    labels[t] = static_cast<int32_t>(y);
    if (!(table[t * L + y] >= -kFar)) return false;
    if (t == 0) return true;
    const double* before = table + (t - 1) * L;
    const double* w = view.transition + (t - 1) * view.transition_stride + y;
    double best = kMinusInfinity;
    for (int64_t i = 0; i < L; ++i) {
      const double x = before[i] + w[i * L];
      if (x > best) {
        best = x;
        y = i;
      }
    }
  }
}

// Segment lattice on the pattern automaton. Ways are listed as the ranks of viterbi.hpp order them (null: no order).
class SegmentGraph {
 public:
  using Number = double;
  SegmentGraph(const Kernels& kernels, const SegmentView& view, const TopologyView& net, SegmentWork& work,
               const int32_t* ranks)
      : kernels_(kernels), view_(view), net_(net), work_(work), ranks_(ranks) {}

  int64_t length() const { return view_.length; }
  int64_t states() const { return net_.states; }
  int64_t initial() const { return net_.initial; }
  int32_t label(int64_t p) const {
    return net_.state_keys[p] < net_.state_keys[p + 1] ? net_.key_label[net_.state_keys[p]] : -1;
  }
  int64_t reach() const { return view_.max_length; }
  bool doubtful(int64_t v, int64_t p) const { return work_.a[v * work_.Sp + p] < -kFar; }
  void prepare(int64_t v) { keyed_ = kernels_.segment_end_rows(view_, net_, work_, v); }
  void incoming(int64_t v, int64_t p, std::vector<Way>& out) const {
    out.clear();
    const Scale& reference = work_.a_scale[v];
    for (int64_t d = 1; d <= view_.max_length && d <= v; ++d) {
      if (!(work_.row_top[d - 1] > kMinusInfinity)) continue;
      const int64_t u = v - d;
      const double* row = work_.rows + (d - 1) * work_.row_stride;
      const double* a = work_.a + u * work_.Sp;
      const double* start = work_.start_w + (work_.start_rows == 1 ? 0 : u) * work_.Qp;
      const Scale& scale = work_.a_scale[u];
      const double offset = (scale.hi - reference.hi) + (scale.lo - reference.lo);
      const size_t first = out.size();
      for (int64_t k = net_.state_keys[p]; k < net_.state_keys[p + 1]; ++k) {
        const double score = row[keyed_ ? k : net_.key_extent[k]] + offset;
        if (!(score > kMinusInfinity)) continue;
        for (int64_t i = net_.key_arcs[k]; i < net_.key_arcs[k + 1]; ++i) {
          const double total = a[net_.arc_source[i]] + start[net_.arc_start[i]] + score;
          if (total > kMinusInfinity) out.push_back({u, net_.arc_source[i], net_.key_label[k], total});
        }
      }
      if (ranks_) sort(out.begin() + first, out.end());
    }
  }
  void finals(std::vector<Way>& out) const {
    out.clear();
    const int64_t T = view_.length;
    for (int64_t p = 0; p < net_.states; ++p)
      if (work_.a[T * work_.Sp + p] > kMinusInfinity)
        out.push_back({T, static_cast<int32_t>(p), -1, work_.a[T * work_.Sp + p]});
    if (ranks_) sort(out.begin(), out.end());
  }

 private:
  template <class Iterator>
  void sort(Iterator begin, Iterator end) const {
    std::sort(begin, end, [this](const Way& a, const Way& b) {
      return ranks_[a.from * net_.states + a.source] < ranks_[b.from * net_.states + b.source];
    });
  }

  const Kernels& kernels_;
  const SegmentView& view_;
  const TopologyView& net_;
  SegmentWork& work_;
  const int32_t* ranks_;
  bool keyed_ = false;
};

// The probability of each way, given that one of them is taken; returns the logarithm of their sum.
template <class Number>
Number weigh(const std::vector<WayTo<Number>>& ways, std::vector<double>& weight) {
  weight.assign(ways.size(), 0.0);
  const auto* best = best_way(ways);
  if (!best) return Number(kMinusInfinity);
  double sum = 0.0;
  for (size_t i = 0; i < ways.size(); ++i) sum += weight[i] = std::exp(gap(ways[i].total, best->total));
  for (double& x : weight) x /= sum;
  return best->total + Number(std::log(sum));
}

// Follows the ways that choose(ways) points to, from the end to the beginning.
template <class Graph, class Choose>
bool walk(Graph& graph, const Choose& choose, Path& path) {
  path.clear();
  if (graph.length() == 0) return true;
  std::vector<WayTo<typename Graph::Number>> ways;
  graph.finals(ways);
  const auto* at = choose(ways);
  for (int64_t v = graph.length(); at;) {
    const int64_t from = at->from;
    const int32_t state = at->source;
    if (at->label >= 0) path.push_back({from, v, at->label});
    if (graph.doubtful(from, state)) break;
    if (from == 0) {
      std::reverse(path.begin(), path.end());
      return true;
    }
    v = from;
    graph.prepare(v);
    graph.incoming(v, state, ways);
    at = choose(ways);
  }
  path.clear();
  return false;
}

// The best path, from a table of best scores.
template <class Graph>
bool best_path(Graph& graph, Path& path) {
  return walk(graph, best_way<WayTo<typename Graph::Number>>, path);
}

// A random path drawn from the distribution, from a table of forward sums. uniform: one number in [0, 1) for each
// step and one for the final state, length() + 1 in all.
template <class Graph>
bool sample_path(Graph& graph, const double* uniform, Path& path) {
  std::vector<double> weight;
  return walk(graph, [&](const auto& ways) { return drawn_way(ways, *uniform++, weight); }, path);
}

// The k best paths, best first, from a table of best scores: O(k T) steps, each taken up in O(ways in).
template <class Graph>
bool best_paths(Graph& graph, int64_t k, std::vector<Path>& found) {
  using Way = WayTo<typename Graph::Number>;
  struct Rest {
    int64_t stop, steps;  // where the step of the way ends, and the steps after it
  };
  found.clear();
  if (graph.length() == 0) {
    if (k > 0) found.emplace_back();
    return true;
  }
  Lists<Step> steps;
  Frontier<Way, Rest> open(k);
  std::vector<Way> ways;
  graph.finals(ways);
  open.offer(typename Graph::Number(0.0), ways, {-1, -1});
  for (typename Frontier<Way, Rest>::Open node; open.take(node);) {
    const Way& way = node.way;
    if (graph.doubtful(way.from, way.source)) return false;
    int64_t path = node.rest.steps;
    if (way.label >= 0) path = steps.add({way.from, node.rest.stop, way.label}, path);
    if (way.from == 0) {
      found.push_back(steps.values(path));
      open.found();
      continue;
    }
    graph.prepare(way.from);
    graph.incoming(way.from, way.source, ways);
    open.offer(node.below, ways, {way.from, path});
  }
  return true;
}

// Entropy in nats, from a table of forward sums, without the cancellation of log Z - E[score]:
//   H(v, p) = sum over ways in of c (H(u, source) - log c),  c = P(way | v, p)
template <class Graph>
double entropy(Graph& graph) {
  const int64_t T = graph.length(), S = graph.states();
  if (T == 0) return 0.0;
  std::vector<double> table(static_cast<size_t>((T + 1) * S), 0.0), weight;
  std::vector<WayTo<typename Graph::Number>> ways;
  const auto mix = [&]() {
    const auto* best = best_way(ways);
    if (!best) return 0.0;
    const auto top = best->total;
    double sum = 0.0, h = 0.0;
    weight.clear();
    for (const auto& way : ways) {
      weight.push_back(std::exp(gap(way.total, top)));
      sum += weight.back();
    }
    const double log_sum = std::log(sum);
    for (size_t i = 0; i < ways.size(); ++i)
      if (weight[i] > 0.0)
        h += weight[i] / sum * (table[ways[i].from * S + ways[i].source] - (gap(ways[i].total, top) - log_sum));
    return h;
  };
  for (int64_t v = 1; v <= T; ++v) {
    graph.prepare(v);
    for (int64_t p = 0; p < S; ++p) {
      graph.incoming(v, p, ways);
      table[v * S + p] = mix();
    }
  }
  graph.finals(ways);
  return mix();
}

}  // namespace scansion
