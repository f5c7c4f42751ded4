// The probabilities of given trajectories (paper 004, equation 6), many at a time: the trajectories of a lexicon are a
// tree whose nodes are their prefixes, and what prefixes share is computed once.
//
// f_n(q) = log P(the trajectory up to n is q | node n of the graph), for each prefix q: the sum over ways w into n, from
// m, of R(w | n) f_m(q) where w stays, f_m(parent of q) where w begins q's last place. All in logarithms, so that no
// trajectory is too improbable. A prefix has one cell for each state of its last label: O(T) for each prefix of a
// first-order chain, O(T c) for one trajectory of c places.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "numeric.hpp"
#include "paths.hpp"

namespace scansion {

inline double log_add(double a, double b) {
  const double hi = std::max(a, b), lo = std::min(a, b);
  return lo > kMinusInfinity ? hi + std::log1p(std::exp(lo - hi)) : hi;
}

// The prefixes of a list of trajectories, shorter ones first.
struct Lexicon {
  std::vector<int64_t> parent;  // of each prefix; prefix 0 is the empty one
  std::vector<int32_t> label;   // its last label; -1: the empty one
  std::vector<int32_t> depth;   // how many labels it has
  std::vector<int32_t> need;    // labels missing to the shortest trajectory that begins with it
  std::vector<int64_t> word;    // (trajectories,) the prefix that is the whole trajectory

  // labels of all trajectories one after another, cut at offsets (words + 1,); labels: how many there are
  Lexicon(const int64_t* symbols, const int64_t* offsets, int64_t words, int64_t labels)
      : parent{-1}, label{-1}, depth{0}, word(static_cast<size_t>(words), 0) {
    std::unordered_map<int64_t, int64_t> child;  // (prefix, label) -> prefix
    std::vector<int64_t> open(static_cast<size_t>(words));
    for (int64_t i = 0; i < words; ++i) open[i] = i;
    for (int32_t d = 0; !open.empty(); ++d) {
      open.erase(std::remove_if(open.begin(), open.end(), [&](int64_t i) { return offsets[i + 1] - offsets[i] <= d; }),
                 open.end());
      for (const int64_t i : open) {
        const int64_t y = symbols[offsets[i] + d];
        const auto [found, fresh] = child.try_emplace(word[i] * labels + y, static_cast<int64_t>(parent.size()));
        if (fresh) {
          parent.push_back(word[i]);
          label.push_back(static_cast<int32_t>(y));
          depth.push_back(d + 1);
        }
        word[i] = found->second;
      }
    }
    need.assign(parent.size(), std::numeric_limits<int32_t>::max());
    for (const int64_t q : word) need[q] = 0;
    for (int64_t q = size() - 1; q > 0; --q) need[parent[q]] = std::min(need[parent[q]], need[q] + 1);
  }

  int64_t size() const { return static_cast<int64_t>(parent.size()); }
};

// log of the summed exponentials of the ways' totals; minus infinity if none is possible
template <class Number>
Number log_sum(const std::vector<WayTo<Number>>& ways) {
  const WayTo<Number>* best = best_way(ways);
  if (!best) return Number(kMinusInfinity);
  double sum = 0.0;
  for (const WayTo<Number>& way : ways) sum += std::exp(gap(way.total, best->total));
  return best->total + Number(std::log(sum));
}

// out (words,) = log P(trajectory); merge: neighbouring equal labels are one place. No trajectory is empty, T >= 1.
template <class Graph>
void score_lexicon(Graph& graph, bool merge, int64_t labels, const Lexicon& lexicon, double* out) {
  using Number = typename Graph::Number;
  const int64_t T = graph.length(), S = graph.states(), N = lexicon.size(), ring = graph.reach() + 1;
  // states by label, and the cells of each prefix: one for each state of its label
  std::vector<int64_t> group(static_cast<size_t>(S), 0), members(static_cast<size_t>(labels), 0);
  for (int64_t p = 0; p < S; ++p)
    if (graph.label(p) >= 0) group[p] = members[graph.label(p)]++;
  std::vector<int64_t> first(static_cast<size_t>(N + 1), 0);
  std::vector<std::vector<int64_t>> prefixes(static_cast<size_t>(labels));
  for (int64_t q = 0; q < N; ++q) {
    first[q + 1] = first[q] + (q == 0 ? 1 : members[lexicon.label[q]]);
    if (q > 0) prefixes[lexicon.label[q]].push_back(q);
  }
  std::vector<double> table(static_cast<size_t>(ring * first[N]), kMinusInfinity);
  table[0] = 0.0;
  std::vector<WayTo<Number>> ways;
  // ways by the label before them, plus one; what they add to a prefix, and where it stands
  std::vector<std::vector<std::pair<double, int64_t>>> by_source(static_cast<size_t>(labels + 1));
  for (int64_t v = 1; v <= T; ++v) {
    double* row = table.data() + (v % ring) * first[N];
    std::fill_n(row, first[N], kMinusInfinity);
    graph.prepare(v);
    for (int64_t p = 0; p < S; ++p) {
      const int32_t y = graph.label(p);
      if (y < 0 || prefixes[y].empty()) continue;
      graph.incoming(v, p, ways);
      const Number norm = log_sum(ways);
      if (!possible(norm)) continue;
      for (auto& some : by_source) some.clear();
      for (const auto& way : ways)
        if (possible(way.total))
          by_source[way.from == 0 ? 0 : graph.label(way.source) + 1].push_back(
              {gap(way.total, norm), (way.from % ring) * first[N] + (way.from == 0 ? 0 : group[way.source])});
      const auto each = [&](int64_t q, int32_t from, const auto& use) {  // ways to y from cells of prefix q
        for (const auto& [weight, cell] : by_source[from + 1]) use(weight + table[cell + first[q]]);
      };
      for (const int64_t q : prefixes[y]) {
        if (lexicon.depth[q] > v) break;
        if (lexicon.need[q] > T - v) continue;
        const int64_t parent = lexicon.parent[q];
        const auto all = [&](const auto& use) {
          each(parent, lexicon.label[parent], use);
          if (merge) each(q, y, use);
        };
        double top = kMinusInfinity, sum = 0.0;
        all([&](double x) { top = std::max(top, x); });
        if (!(top > kMinusInfinity)) continue;
        all([&](double x) { sum += std::exp(x - top); });
        row[first[q] + group[p]] = top + std::log(sum);
      }
    }
  }
  graph.finals(ways);
  const Number norm = log_sum(ways);
  for (size_t i = 0; i < lexicon.word.size(); ++i) {
    const int64_t q = lexicon.word[i];
    out[i] = kMinusInfinity;
    for (const auto& way : ways)
      if (q > 0 && possible(way.total) && graph.label(way.source) == lexicon.label[q])
        out[i] = log_add(out[i], gap(way.total, norm) + table[(T % ring) * first[N] + first[q] + group[way.source]]);
  }
}

// First-order chains: the weight of all labellings up to v that have the prefix, on the scale of the graph's table.
inline void score_lexicon(ChainGraph& graph, bool, int64_t labels, const Lexicon& lexicon, double* out) {
  const int64_t T = graph.length(), L = labels, N = lexicon.size();
  std::vector<double> weight(static_cast<size_t>(N), kMinusInfinity);
  std::vector<int64_t> until(static_cast<size_t>(lexicon.depth.back() + 1), N);  // prefixes of at most so many labels
  for (int64_t q = N - 1; q > 0; --q) until[lexicon.depth[q] - 1] = q;
  for (int64_t q = 1; q < until[std::min<int64_t>(1, lexicon.depth.back())]; ++q)
    weight[q] = graph.after(1)[lexicon.label[q]];
  for (int64_t v = 2; v <= T; ++v) {
    const double *before = graph.before(v), *after = graph.after(v), *w = graph.transition(v), *row = graph.row(v);
    // what the table's row was divided by, from the likeliest label
    const int64_t likeliest = std::max_element(after, after + L) - after;
    double scale = kMinusInfinity;
    for (int64_t i = 0; i < L; ++i) scale = log_add(scale, before[i] + w[i * L + likeliest]);
    scale += row[likeliest] - after[likeliest];
    // longer prefixes first: their parents still have the weights of v - 1
    for (int64_t q = until[std::min<int64_t>(v, lexicon.depth.back())] - 1; q > 0; --q) {
      if (lexicon.need[q] > T - v) continue;
      const int64_t parent = lexicon.parent[q], y = lexicon.label[q];
      const double stay = weight[q] + w[y * L + y];
      const double enter = parent > 0 ? weight[parent] + w[lexicon.label[parent] * L + y] : kMinusInfinity;
      weight[q] = log_add(stay, enter) + row[y] - scale;
    }
  }
  double norm = kMinusInfinity;
  for (int64_t j = 0; j < L; ++j) norm = log_add(norm, graph.after(T)[j]);
  for (size_t i = 0; i < lexicon.word.size(); ++i)
    out[i] = lexicon.word[i] > 0 ? weight[lexicon.word[i]] - norm : kMinusInfinity;
}

}  // namespace scansion
