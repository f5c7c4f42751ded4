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
// Every configuration is exactly one path, so nothing is found twice. The order in which incoming() and finals()
// list the ways is the order in which ties are broken: first come, first served. Walks return false where they find no
// way on, or a doubtful node: then the table must be made again in exact numbers.
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
  // after prepare(v) the scores (L,) of the labels at v themselves
  const double* after(int64_t v) const { return table_ + (v - 1) * view_.labels; }
  const double* row() const { return row_; }
  const double* before(int64_t v) const { return table_ + (v - 2) * view_.labels; }
  const double* transition(int64_t v) const { return view_.transition + (v - 2) * view_.transition_stride; }
  void prepare(int64_t v) { kernels_.chain_row(view_, v - 1, row_); }
  void incoming(int64_t v, int64_t p, std::vector<Way>& out) const {
    out.clear();
    const int64_t L = view_.labels;
    if (v == 1) {
      out.push_back({0, 0, static_cast<int32_t>(p), row_[p]});
      return;
    }
    const double* before = table_ + (v - 2) * L;
    const double* w = view_.transition + (v - 2) * view_.transition_stride;
    for (int64_t i = 0; i < L; ++i)
      out.push_back({v - 1, static_cast<int32_t>(i), static_cast<int32_t>(p), before[i] + w[i * L + p]});
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
    size_t first = 0;  // ways of one length come in the order of ranks
    const auto sort_ways = [&] {
      if (ranks_) sort(out.begin() + first, out.end());
      first = out.size();
    };
    int64_t last = v;
    each_way(v, p, [&](const Way& way) {
      if (way.from != last) sort_ways();
      last = way.from;
      if (way.total > kMinusInfinity) out.push_back(way);
    });
    sort_ways();
  }
  // appends the ways into (v, p) that are as good as the best one
  void best_incoming(int64_t v, int64_t p, std::vector<Way>& out) const {
    const size_t first = out.size();
    double best = kMinusInfinity;
    each_way(v, p, [&](const Way& way) {
      if (way.total < best || !(way.total > kMinusInfinity)) return;
      if (way.total > best) out.resize(first);
      best = way.total;
      out.push_back(way);
    });
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
  // use(way) for every way into (v, p), shorter segments first; after prepare(v)
  template <class Use>
  void each_way(int64_t v, int64_t p, const Use& use) const {
    const Scale& reference = work_.a_scale[v];
    for (int64_t d = 1; d <= view_.max_length && d <= v; ++d) {
      if (!(work_.row_top[d - 1] > kMinusInfinity)) continue;
      const int64_t u = v - d;
      const double* row = work_.rows + (d - 1) * work_.row_stride;
      const double* a = work_.a + u * work_.Sp;
      const double* start = work_.start_w + (work_.start_rows == 1 ? 0 : u) * work_.Qp;
      const Scale& scale = work_.a_scale[u];
      const double offset = (scale.hi - reference.hi) + (scale.lo - reference.lo);
      for (int64_t k = net_.state_keys[p]; k < net_.state_keys[p + 1]; ++k) {
        const double score = row[keyed_ ? k : net_.key_extent[k]] + offset;
        if (!(score > kMinusInfinity)) continue;
        for (int64_t i = net_.key_arcs[k]; i < net_.key_arcs[k + 1]; ++i) {
          const int32_t* range = net_.node_range + 2 * net_.arc_source[i];
          for (int32_t q = range[0]; q < range[1]; ++q)
            use({u, q, net_.key_label[k], a[q] + start[net_.arc_start[i]] + score});
        }
      }
    }
  }
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

template <class Number>
const WayTo<Number>* best_way(const std::vector<WayTo<Number>>& ways) {
  const WayTo<Number>* best = nullptr;
  for (const auto& way : ways)
    if (possible(way.total) && (!best || best->total < way.total)) best = &way;
  return best;
}

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
  return walk(graph, best_way<typename Graph::Number>, path);
}

// The same on a table without ranks: goes back along all best paths that are alike so far, and keeps to those that the
// tie rule prefers.
inline bool best_path(SegmentGraph& graph, Path& path) {
  path.clear();
  if (graph.length() == 0) return true;
  std::vector<Way> ways;
  graph.finals(ways);
  const Way* best = best_way(ways);
  if (!best) return false;
  const double top = best->total;
  ways.erase(std::remove_if(ways.begin(), ways.end(), [&](const Way& way) { return way.total < top; }), ways.end());
  std::vector<int32_t> states;
  for (int64_t v = graph.length();;) {
    // the shortest segment, then the smallest label before it
    const auto ahead = [&](const Way& a, const Way& b) {
      return a.from != b.from ? a.from > b.from : graph.label(a.source) < graph.label(b.source);
    };
    const Way first = *std::min_element(ways.begin(), ways.end(), ahead);
    if (first.label >= 0) path.push_back({first.from, v, first.label});
    v = first.from;
    states.clear();
    for (const Way& way : ways)
      if (!ahead(first, way)) states.push_back(way.source);
    for (const int32_t p : states)
      if (graph.doubtful(v, p)) return path.clear(), false;
    if (v == 0) break;
    graph.prepare(v);
    ways.clear();
    for (const int32_t p : states) graph.best_incoming(v, p, ways);
    if (ways.empty()) return path.clear(), false;
  }
  std::reverse(path.begin(), path.end());
  return true;
}

// A random path drawn from the distribution, from a table of forward sums. uniform: one number in [0, 1) for each
// step and one for the final state, length() + 1 in all.
template <class Graph>
bool sample_path(Graph& graph, const double* uniform, Path& path) {
  using Ways = std::vector<WayTo<typename Graph::Number>>;
  std::vector<double> weight;
  const auto draw = [&](const Ways& ways) {
    const auto* last = best_way(ways);
    if (!last) return last;
    double sum = 0.0;
    weight.clear();
    for (const auto& way : ways) {
      weight.push_back(std::exp(gap(way.total, last->total)));
      sum += weight.back();
    }
    double left = *uniform++ * sum;
    for (size_t i = 0; i < ways.size(); ++i) {
      if (weight[i] == 0.0) continue;
      last = &ways[i];
      if (left < weight[i]) break;
      left -= weight[i];
    }
    return last;
  };
  return walk(graph, draw, path);
}

// The k best paths, best first, from a table of best scores. Best-first search from the end; an open node carries
// how far its best completion lies below the best path. The table makes that exact, so every node that is taken up
// lies on one of the k best paths: O(k T) nodes, each expanded in O(ways in).
template <class Graph>
bool best_paths(Graph& graph, int64_t k, std::vector<Path>& found) {
  using Number = typename Graph::Number;
  found.clear();
  if (k <= 0) return true;
  if (graph.length() == 0) {
    found.emplace_back();
    return true;
  }
  struct Link {
    Step step;
    int64_t next;
  };
  struct Open {
    Number below;
    int64_t v, turn, id, link;
    int32_t state;
  };
  // nearest to the best first; among equals those of the last node taken up, as they are listed: the first path is the
  // Viterbi path
  const auto worse = [](const Open& a, const Open& b) {
    if (!(a.below == b.below)) return a.below < b.below;
    if (a.turn != b.turn) return a.turn < b.turn;
    return a.id > b.id;
  };
  std::vector<Link> links;
  std::vector<Open> open;
  std::vector<WayTo<Number>> ways;
  int64_t turn = 0, id = 0;
  const auto push_all = [&](const Number& below, int64_t stop, int64_t link) {
    const auto* best = best_way(ways);
    if (!best) return;
    ++turn;
    const Number top = best->total;
    for (const auto& way : ways) {
      if (!possible(way.total)) continue;
      int64_t at = link;
      if (stop >= 0) {
        at = static_cast<int64_t>(links.size());
        links.push_back({{way.from, stop, way.label}, link});
      }
      open.push_back({below + (way.total - top), way.from, turn, id++, at, way.source});
      std::push_heap(open.begin(), open.end(), worse);
    }
  };
  graph.finals(ways);
  push_all(Number(0.0), -1, -1);
  while (!open.empty() && static_cast<int64_t>(found.size()) < k) {
    std::pop_heap(open.begin(), open.end(), worse);
    const Open node = open.back();
    open.pop_back();
    if (graph.doubtful(node.v, node.state)) return false;
    if (node.v == 0) {
      Path path;
      for (int64_t l = node.link; l >= 0; l = links[l].next) path.push_back(links[l].step);
      found.push_back(std::move(path));
      continue;
    }
    graph.prepare(node.v);
    graph.incoming(node.v, node.state, ways);
    push_all(node.below, node.v, node.link);
    // each open node stands for at least one path: more than are still wanted need not be kept
    const size_t wanted = static_cast<size_t>(k) - found.size();
    if (open.size() > 4 * wanted + 4096) {
      std::nth_element(open.begin(), open.begin() + wanted, open.end(),
                       [&](const Open& a, const Open& b) { return worse(b, a); });
      open.resize(wanted);
      std::make_heap(open.begin(), open.end(), worse);
      // drop links that no open node leads to: they are kept in order, so one backward pass marks them
      std::vector<uint8_t> used(links.size(), 0);
      for (const Open& o : open)
        if (o.link >= 0) used[o.link] = 1;
      for (int64_t l = static_cast<int64_t>(links.size()) - 1; l >= 0; --l)
        if (used[l] && links[l].next >= 0) used[links[l].next] = 1;
      std::vector<int64_t> moved(links.size(), -1);
      int64_t kept = 0;
      for (size_t l = 0; l < links.size(); ++l) {
        if (!used[l]) continue;
        Link link = links[l];
        if (link.next >= 0) link.next = moved[link.next];
        moved[l] = kept;
        links[kept++] = link;
      }
      links.resize(kept);
      for (Open& o : open)
        if (o.link >= 0) o.link = moved[o.link];
    }
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
