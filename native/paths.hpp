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
#include <tuple>
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

// The entropy of a choice between ways, each with the log of its mass and an entropy of its own: sum of p (H - log p).
class Mixture {
 public:
  void add(double log_mass, double entropy) {
    if (!(log_mass > kMinusInfinity)) return;
    ways_.push_back({log_mass, entropy});
    top_ = std::max(top_, log_mass);
  }
  // log of the summed mass and the entropy; of nothing: -inf and 0
  std::pair<double, double> finish() {
    double sum = 0.0, entropy = 0.0;
    for (auto& way : ways_) sum += std::exp(way.first - top_);
    const double log_sum = std::log(sum);
    for (auto& way : ways_) {
      const double log_p = way.first - top_ - log_sum;
      if (log_p > kMinusInfinity) entropy += std::exp(log_p) * (way.second - log_p);
    }
    const double total = ways_.empty() ? kMinusInfinity : top_ + log_sum;
    ways_.clear();
    top_ = kMinusInfinity;
    return {total, entropy};
  }

 private:
  std::vector<std::pair<double, double>> ways_;
  double top_ = kMinusInfinity;
};

// Segment lattice on the pattern automaton. Ways are listed as the ranks of viterbi.hpp order them (null: no order, the table
// is not one of best scores).
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
  // Of a table of sums, as entropy() finds it, but with the sources of a key mixed once for all lengths, and those of a
  // node once for all keys.
  double entropy() {
    const int64_t T = view_.length, S = net_.states, Sp = work_.Sp, K = net_.keys, N = net_.nodes;
    Mixture mixture;
    std::vector<double> keys(static_cast<size_t>((T + 1) * K)), of_keys(keys.size()), log_mass(static_cast<size_t>(N)),
        table(static_cast<size_t>(N));  // log masses and entropies, by key and by node
    for (int64_t v = 0;; ++v) {
      const double* a = work_.a + v * Sp;
      std::fill(table.begin(), table.end(), 0.0);
      if (v > 0) {
        prepare(v);
        for (int64_t p = 0; p < S; ++p) {
          each_key(v, p, [&](int64_t u, int64_t k, double score) {
            mixture.add(keys[u * K + k] + score, of_keys[u * K + k]);
          });
          table[p] = mixture.finish().second;
        }
      }
      if (v == T) {
        for (int64_t p = 0; p < S; ++p) mixture.add(a[p], table[p]);
        return mixture.finish().second;
      }
      std::copy_n(a, Sp, log_mass.begin());
      for (int64_t i = Sp; i < N; ++i) {
        for (int64_t part : {net_.node_parts[2 * i], net_.node_parts[2 * i + 1]})
          mixture.add(log_mass[part], table[part]);
        std::tie(log_mass[i], table[i]) = mixture.finish();
      }
      const double* start = work_.start_w + (work_.start_rows == 1 ? 0 : v) * work_.Qp;
      for (int64_t k = 0; k < K; ++k) {
        for (int64_t i = net_.key_arcs[k]; i < net_.key_arcs[k + 1]; ++i)
          mixture.add(log_mass[net_.arc_source[i]] + start[net_.arc_start[i]], table[net_.arc_source[i]]);
        std::tie(keys[v * K + k], of_keys[v * K + k]) = mixture.finish();
      }
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
  bool ranked() const { return ranks_ != nullptr; }
  // the best way into (v, p), as it was noted down with the ranks
  Way best_before(int64_t v, int64_t p) const {
    const int32_t* length = ranks_ + (view_.length + 1 + v) * net_.states + p;
    return {v - *length, length[(view_.length + 1) * net_.states], label(p), 0.0};
  }

 private:
  // use(way) for every way into (v, p), shorter segments first; after prepare(v)
  template <class Use>
  void each_way(int64_t v, int64_t p, const Use& use) const {
    each_key(v, p, [&](int64_t u, int64_t k, double score) {
      const double* a = work_.a + u * work_.Sp;
      const double* start = work_.start_w + (work_.start_rows == 1 ? 0 : u) * work_.Qp;
      for (int64_t i = net_.key_arcs[k]; i < net_.key_arcs[k + 1]; ++i) {
        const int32_t* range = net_.node_range + 2 * net_.arc_source[i];
        for (int32_t q = range[0]; q < range[1]; ++q)
          use({u, q, net_.key_label[k], a[q] + start[net_.arc_start[i]] + score});
      }
    });
  }
  // use(u, key, score of [u, v) on the scale of v) for every segment that ends at v in state p
  template <class Use>
  void each_key(int64_t v, int64_t p, const Use& use) const {
    const Scale& reference = work_.a_scale[v];
    for (int64_t d = 1; d <= view_.max_length && d <= v; ++d) {
      if (!(work_.row_top[d - 1] > kMinusInfinity)) continue;
      const double* row = work_.rows + (d - 1) * work_.row_stride;
      const Scale& scale = work_.a_scale[v - d];
      const double offset = (scale.hi - reference.hi) + (scale.lo - reference.lo);
      for (int64_t k = net_.state_keys[p]; k < net_.state_keys[p + 1]; ++k) {
        const double score = row[keyed_ ? k : net_.key_extent[k]] + offset;
        if (score > kMinusInfinity) use(v - d, k, score);
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

// Follows ways from the end to the beginning: choose(ways) points to the last one, before(v, state, ways) to the next.
template <class Graph, class Choose, class Before>
bool walk(Graph& graph, const Choose& choose, const Before& before, Path& path) {
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
    at = before(v, state, ways);
  }
  path.clear();
  return false;
}
template <class Graph, class Choose>
bool walk(Graph& graph, const Choose& choose, Path& path) {
  const auto before = [&](int64_t v, int32_t state, auto& ways) {
    graph.prepare(v);
    graph.incoming(v, state, ways);
    return choose(ways);
  };
  return walk(graph, choose, before, path);
}

// The best path, from a table of best scores.
template <class Graph>
bool best_path(Graph& graph, Path& path) {
  return walk(graph, best_way<WayTo<typename Graph::Number>>, path);
}
// With ranks, along the ways that were noted down; without, back along all best paths that are alike so far, keeping to
// those that the tie rule prefers.
inline bool best_path(SegmentGraph& graph, Path& path) {
  if (graph.ranked()) {
    const auto before = [&](int64_t v, int32_t state, std::vector<Way>& ways) {
      ways.assign(1, graph.best_before(v, state));
      return ways.data();
    };
    return walk(graph, best_way<Way>, before, path);
  }
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

inline double entropy(SegmentGraph& graph) { return graph.entropy(); }

}  // namespace scansion
