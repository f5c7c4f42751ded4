// Chains and segment lattices in exact numbers (exact.hpp): graphs for the walks of paths.hpp, and posteriors.
//
// A table of exact logarithms is filled from left to right. Posteriors follow from it backwards, as probabilities:
//   P(way w into n) = P(n) R(w | n),  R(w | n) = exp(total(w)) / sum over the ways into n,  P(n) = sum over the ways out
// so that no second table is needed and nothing has a scale. A way costs about 50 ns, a table 56 bytes for each node.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "paths.hpp"

namespace scansion {

class ExactChain {
 public:
  using Number = Exact;

  explicit ExactChain(const ChainView& view)
      : view_(view), table_(static_cast<size_t>(view.length * view.labels)), row_(static_cast<size_t>(view.labels)) {}

  int64_t length() const { return view_.length; }
  int64_t states() const { return view_.labels; }
  int64_t initial() const { return 0; }
  int32_t label(int64_t p) const { return static_cast<int32_t>(p); }
  int64_t reach() const { return 1; }
  bool doubtful(int64_t, int64_t) const { return false; }
  Exact& at(int64_t v, int64_t p) { return table_[(v - 1) * view_.labels + p]; }
  void order(int64_t, const std::vector<WayTo<Exact>>&) {}

  void prepare(int64_t v) {
    const int64_t t = v - 1, L = view_.labels;
    for (int64_t j = 0; j < L; ++j) {
      const bool allowed = !view_.allowed || view_.allowed[t * L + j];
      row_[j] = Exact(allowed ? view_.unary[t * L + j] : kMinusInfinity);
      if (t == 0 && view_.start) row_[j] += Exact(view_.start[j]);
      if (t == view_.length - 1 && view_.end) row_[j] += Exact(view_.end[j]);
    }
  }

  void incoming(int64_t v, int64_t p, std::vector<WayTo<Exact>>& out) const {
    out.clear();
    const int64_t L = view_.labels;
    const int32_t label = static_cast<int32_t>(p);
    if (!row_[p].possible()) return;
    if (v == 1) {
      out.push_back({0, 0, label, row_[p]});
      return;
    }
    const double* w = view_.transition + (v - 2) * view_.transition_stride;
    for (int64_t i = 0; i < L; ++i) {
      const Exact& before = table_[(v - 2) * L + i];
      if (before.possible() && possible(w[i * L + p]))
        out.push_back({v - 1, static_cast<int32_t>(i), label, before + Exact(w[i * L + p]) + row_[p]});
    }
  }

  void finals(std::vector<WayTo<Exact>>& out) const {
    out.clear();
    const int64_t T = view_.length, L = view_.labels;
    for (int64_t j = 0; j < L; ++j)
      if (table_[(T - 1) * L + j].possible()) out.push_back({T, static_cast<int32_t>(j), -1, table_[(T - 1) * L + j]});
  }

 private:
  const ChainView& view_;
  std::vector<Exact> table_, row_;
};

class ExactSegments {
 public:
  using Number = Exact;

  // ordered: ways come in the order of ties, for tables of best scores
  ExactSegments(const SegmentView& view, const TopologyView& net, bool ordered)
      : view_(view),
        net_(net),
        ordered_(ordered),
        table_(static_cast<size_t>((view.length + 1) * net.states), Exact(kMinusInfinity)),
        ranks_(table_.size(), 0),
        starts_(static_cast<size_t>(view.max_length)),
        rows_(starts_.size()),
        inside_(static_cast<size_t>(net.extent_classes)),
        inside_end_(static_cast<size_t>(net.end_classes)) {
    table_[net.initial] = Exact();
  }

  int64_t length() const { return view_.length; }
  int64_t states() const { return net_.states; }
  int64_t initial() const { return net_.initial; }
  int32_t label(int64_t p) const {
    return net_.state_keys[p] < net_.state_keys[p + 1] ? net_.key_label[net_.state_keys[p]] : -1;
  }
  int64_t reach() const { return view_.max_length; }
  bool doubtful(int64_t, int64_t) const { return false; }
  Exact& at(int64_t v, int64_t p) { return table_[v * net_.states + p]; }
  // some configuration reaches v
  bool alive(int64_t v) const {
    const Exact* row = table_.data() + v * net_.states;
    return std::any_of(row, row + net_.states, [](const Exact& x) { return x.possible(); });
  }

  // The ranks of the states at v as in viterbi.hpp; best (S,): the best way into each, -inf where there is none.
  void order(int64_t v, const std::vector<WayTo<Exact>>& best) {
    const int64_t S = net_.states;
    std::vector<int32_t> states;
    for (int64_t p = 0; p < S; ++p)
      if (best[p].total.possible()) states.push_back(static_cast<int32_t>(p));
    std::sort(states.begin(), states.end(), [&](int32_t p, int32_t q) {
      const WayTo<Exact>&a = best[p], &b = best[q];
      if (a.label != b.label) return a.label < b.label;
      if (a.from != b.from) return a.from > b.from;
      return ranks_[a.from * S + a.source] < ranks_[b.from * S + b.source];
    });
    for (size_t i = 0; i < states.size(); ++i) ranks_[v * S + states[i]] = static_cast<int32_t>(i);
  }

  // scores of all segments that end at v: by extent class, or by key where the sequence ends on EOS patterns
  void prepare(int64_t v) {
    const int64_t C = net_.extent_classes;
    keyed_ = net_.end_classes > 0 && v == view_.length;
    std::fill(inside_.begin(), inside_.end(), Exact());
    std::fill(inside_end_.begin(), inside_end_.end(), Exact());
    for (int64_t d = 1; d <= view_.max_length && d <= v; ++d) {
      const int64_t u = v - d;
      std::vector<Exact>& row = rows_[d - 1];
      row.clear();
      add_inside(u, net_.extent_pattern, C, inside_);
      if (keyed_) add_inside(u, net_.end_pattern, net_.end_classes, inside_end_);
      if ((view_.may_end && !view_.may_end[v - 1]) || !alive(u)) continue;
      for (int64_t c = 0; c < C; ++c) {
        const int64_t z = net_.extent_pattern[c], parent = net_.extent_parent[c];
        if (view_.runs && d > view_.runs[u * net_.labels + net_.extent_label[c]]) {
          row.push_back(Exact(kMinusInfinity));
          continue;
        }
        row.push_back(parent >= 0 ? row[parent] : Exact());
        if (z < 0) continue;
        if (view_.start) row[c] += Exact(view_.start[u * view_.start_stride + z]);
        add_extent(u, d, z, inside_[c], row[c]);
      }
      if (keyed_) add_tails(u, d, row);
      fill_starts(u, starts_[d - 1]);
    }
  }

  void incoming(int64_t v, int64_t p, std::vector<WayTo<Exact>>& out) const {
    out.clear();
    int64_t last = v;
    size_t first = 0;  // ways of one length come in the order of ranks
    each_way(v, p, [&](int64_t u, int32_t source, int64_t k, int64_t, const Exact& total) {
      if (u != last) sort(out, first);
      last = u;
      out.push_back({u, source, net_.key_label[k], total});
    });
    sort(out, first);
  }

  void finals(std::vector<WayTo<Exact>>& out) const {
    out.clear();
    const int64_t T = view_.length;
    for (int64_t p = 0; p < net_.states; ++p)
      if (table_[T * net_.states + p].possible())
        out.push_back({T, static_cast<int32_t>(p), -1, table_[T * net_.states + p]});
    size_t first = 0;
    sort(out, first);
  }

  // use(u, source, key, arc, total) for every possible way into (v, p); after prepare(v)
  template <class Use>
  void each_way(int64_t v, int64_t p, const Use& use) const {
    for (int64_t d = 1; d <= view_.max_length && d <= v; ++d) {
      const std::vector<Exact>& row = rows_[d - 1];
      if (row.empty()) continue;
      const Exact* a = table_.data() + (v - d) * net_.states;
      for (int64_t k = net_.state_keys[p]; k < net_.state_keys[p + 1]; ++k) {
        const Exact& score = row[keyed_ ? k : net_.key_extent[k]];
        if (!score.possible()) continue;
        for (int64_t i = net_.key_arcs[k]; i < net_.key_arcs[k + 1]; ++i) {
          const Exact& start = starts_[d - 1][net_.arc_start[i]];
          if (!start.possible()) continue;
          const int32_t* range = net_.node_range + 2 * net_.arc_source[i];
          for (int32_t source = range[0]; source < range[1]; ++source)
            if (a[source].possible()) use(v - d, source, k, i, a[source] + start + score);
        }
      }
    }
  }

 private:
  void sort(std::vector<WayTo<Exact>>& ways, size_t& first) const {
    if (!ordered_) return;
    std::sort(ways.begin() + first, ways.end(), [this](const WayTo<Exact>& a, const WayTo<Exact>& b) {
      return ranks_[a.from * net_.states + a.source] < ranks_[b.from * net_.states + b.source];
    });
    first = ways.size();
  }
  void add_inside(int64_t t, const int32_t* pattern, int64_t classes, std::vector<Exact>& sum) const {
    for (int64_t c = 0; view_.inside && c < classes; ++c)
      if (pattern[c] >= 0 && pattern[c] < view_.columns) sum[c] += Exact(view_.inside[t * view_.columns + pattern[c]]);
  }
  // what pattern z scores on [u, u + d) beside its start
  void add_extent(int64_t u, int64_t d, int64_t z, const Exact& inside, Exact& sum) const {
    const int64_t P = view_.columns;
    sum += inside;
    if (view_.full) sum += Exact(view_.full[(u * view_.full_stride + d - 1) * P + z]);
    if (view_.end) sum += Exact(view_.end[(u + d - 1) * P + z]);
    if (view_.by_length) sum += Exact(view_.by_length[(d - 1) * P + z]);
  }
  // by class -> by key, with the patterns that end in EOS
  void add_tails(int64_t u, int64_t d, std::vector<Exact>& row) const {
    std::vector<Exact> tail, keys;
    for (int64_t e = 0; e < net_.end_classes; ++e) {
      const int64_t z = net_.end_pattern[e];
      tail.push_back(net_.end_parent[e] >= 0 ? tail[net_.end_parent[e]] : Exact());
      if (z < 0) {  // the sequence must not end so
        tail[e] = Exact(kMinusInfinity);
        continue;
      }
      if (view_.starts) tail[e] += Exact(view_.starts[u * view_.starts_stride + z]);
      if (z < view_.columns) add_extent(u, d, z, inside_end_[e], tail[e]);
    }
    for (int64_t k = 0; k < net_.keys; ++k) {
      keys.push_back(row[net_.key_extent[k]]);
      if (net_.key_end[k] >= 0) keys[k] += tail[net_.key_end[k]];
    }
    row.swap(keys);
  }
  void fill_starts(int64_t u, std::vector<Exact>& row) const {
    row.clear();
    for (int64_t q = 0; q < net_.start_classes; ++q) {
      row.push_back(net_.start_parent[q] >= 0 ? row[net_.start_parent[q]] : Exact());
      row[q] += Exact(view_.starts[u * view_.starts_stride + net_.start_pattern[q]]);
    }
    row.emplace_back();  // arcs without a start class
  }

  const SegmentView& view_;
  const TopologyView& net_;
  const bool ordered_;
  std::vector<Exact> table_;                       // (T + 1, S)
  std::vector<int32_t> ranks_;                     // (T + 1, S)
  std::vector<std::vector<Exact>> starts_, rows_;  // by length: (start classes + 1,), (extent classes or keys,)
  std::vector<Exact> inside_, inside_end_;         // sums over a segment, by extent class and by end class
  bool keyed_ = false;
};

// The table, of sums or of best scores. False: nothing is possible.
template <class Graph>
bool fill_exact(Graph& graph, bool best) {
  const int64_t T = graph.length(), S = graph.states();
  std::vector<WayTo<Exact>> ways, ahead(static_cast<size_t>(S));
  std::vector<double> weight;
  for (int64_t v = 1; v <= T; ++v) {
    graph.prepare(v);
    for (int64_t p = 0; p < S; ++p) {
      graph.incoming(v, p, ways);
      if (best) {
        const WayTo<Exact>* first = best_way(ways);
        ahead[p] = first ? *first : WayTo<Exact>{0, 0, -1, Exact(kMinusInfinity)};
      }
      graph.at(v, p) = best ? ahead[p].total : weigh(ways, weight);
    }
    if (best) graph.order(v, ahead);
  }
  if (T == 0) return true;
  graph.finals(ways);
  return !ways.empty();
}

inline void exact_chain_posteriors(const ChainView& view, bool backward, ChainAnswer& answer) {
  const int64_t T = view.length, L = view.labels;
  ExactChain graph(view);
  answer.log_partition = kMinusInfinity;
  if (!fill_exact(graph, false)) return;
  std::vector<double> here(static_cast<size_t>(L), 0.0), before, weight;
  std::vector<WayTo<Exact>> ways;
  graph.finals(ways);
  answer.log_partition = weigh(ways, weight).value();
  if (!backward) return;
  for (size_t i = 0; i < ways.size(); ++i) here[ways[i].source] = weight[i];
  for (int64_t v = T; v >= 1; --v) {
    const int64_t t = v - 1;
    if (answer.labels) std::copy(here.begin(), here.end(), answer.labels + t * L);
    if (t == 0) return;
    double* pairs = answer.transitions ? answer.transitions + (t - 1) * L * L : nullptr;
    if (pairs) std::fill_n(pairs, L * L, 0.0);
    before.assign(static_cast<size_t>(L), 0.0);
    graph.prepare(v);
    for (int64_t j = 0; j < L; ++j) {
      if (here[j] == 0.0) continue;
      graph.incoming(v, j, ways);
      weigh(ways, weight);
      for (size_t i = 0; i < ways.size(); ++i) {
        const double p = here[j] * weight[i];
        before[ways[i].source] += p;
        if (pairs) pairs[ways[i].source * L + j] = p;
        if (answer.counts) answer.counts[ways[i].source * L + j] += p;
      }
    }
    here.swap(before);
  }
}

// p into all expectations of the segment [u, v) that key k and arc i stand for
inline void add_segment(const SegmentView& s, const TopologyView& n, int64_t u, int64_t v, int64_t k, int64_t i,
                        double p, const SegmentAnswer& answer) {
  const int64_t d = v - u, C = s.columns, cell = u * answer.stride + d - 1, y = n.key_label[k];
  for (int64_t t = u; answer.labels && t < v; ++t) answer.labels[t * n.labels + y] += p;
  if (answer.boundaries) answer.boundaries[v - 1] += p;
  if (answer.segments) answer.segments[cell * n.labels + y] += p;
  const auto extent = [&](int64_t z) {
    if (answer.full) answer.full[cell * C + z] += p;
    for (int64_t t = u; answer.inside && t < v; ++t) answer.inside[t * C + z] += p;
    if (answer.end) answer.end[(v - 1) * C + z] += p;
    if (answer.by_length) answer.by_length[(d - 1) * C + z] += p;
  };
  for (int64_t c = n.key_extent[k]; c >= 0; c = n.extent_parent[c]) {
    const int64_t z = n.extent_pattern[c];
    if (z < 0) continue;
    extent(z);
    if (answer.start) answer.start[u * s.start_stride + z] += p;
  }
  const auto start = [&](int64_t z) {
    if (answer.starts) answer.starts[u * s.starts_stride + z] += p;
  };
  for (int64_t q = n.arc_start[i]; q >= 0 && q < n.start_classes; q = n.start_parent[q]) start(n.start_pattern[q]);
  if (v < s.length) return;
  for (int64_t e = n.key_end[k]; e >= 0; e = n.end_parent[e]) {
    start(n.end_pattern[e]);
    if (n.end_pattern[e] < C) extent(n.end_pattern[e]);
  }
}

inline void exact_segment_posteriors(const SegmentView& view, const TopologyView& net, bool backward,
                                     SegmentAnswer& answer) {
  const int64_t T = view.length, S = net.states;
  ExactSegments graph(view, net, false);
  answer.log_partition = kMinusInfinity;
  if (!fill_exact(graph, false)) return;
  std::vector<double> posterior(static_cast<size_t>((T + 1) * S), 0.0), weight;
  std::vector<WayTo<Exact>> ways;
  std::vector<std::pair<int64_t, int64_t>> arcs;  // key and arc of each way
  graph.finals(ways);
  answer.log_partition = weigh(ways, weight).value();
  if (!backward) return;
  for (size_t i = 0; i < ways.size(); ++i) posterior[T * S + ways[i].source] = weight[i];
  for (int64_t v = T; v >= 1; --v) {
    graph.prepare(v);
    for (int64_t p = 0; p < S; ++p) {
      const double here = posterior[v * S + p];
      if (here == 0.0) continue;
      ways.clear();
      arcs.clear();
      graph.each_way(v, p, [&](int64_t u, int32_t source, int64_t k, int64_t i, const Exact& total) {
        ways.push_back({u, source, net.key_label[k], total});
        arcs.push_back({k, i});
      });
      weigh(ways, weight);
      for (size_t i = 0; i < ways.size(); ++i) {
        const double q = here * weight[i];
        if (q == 0.0) continue;
        posterior[ways[i].from * S + ways[i].source] += q;
        add_segment(view, net, ways[i].from, v, arcs[i].first, arcs[i].second, q, answer);
      }
    }
  }
}

}  // namespace scansion
