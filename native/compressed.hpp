// Compressed inference (paper 004): questions about the trajectory of a configuration, the labels it goes through
// without their transition points. On a chain, runs of equal labels are one place of the trajectory; on a segment
// lattice every segment is one (docs/notation.md, section 4).
//
// Everything here works on the graph of paths.hpp and its table of forward sums, turned around: given that a
// configuration passes node n = (v, p), it came by way w with probability R(w | n). With change(w) = 1 where a new
// place begins,
//   Q_n(c) = P(c places so far | n)             = sum over ways w into n, from m, of R(w | n) Q_m(c - change(w))
//   D_m(r) = P(m, r places begin after it)      = sum over ways w out of m, into n, of R(w | n) D_n(r - change(w))
//   P(length c) = sum over final nodes of P(n) Q_n(c)
//   P(s_i = j, length c) = sum over n with label j of [sum over changes w into n of R(w | n) Q_m(i)] D_n(c - 1 - i)
// Departs from the paper, which adds up unnormalised weights: these are probabilities, so no scale is needed at any
// length, nothing but what is below 1e-300 in the answer can vanish, and two sweeps give the marginals of all places
// (the paper runs one constrained sweep for each).
//
// Cost, for T positions, A ways into the nodes of one position, S states and lengths up to C: lengths O(C T A) time
// and O(C S) memory beside the table; marginals of one length c O(c T A) time, O(c T S) memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels.hpp"
#include "paths.hpp"

namespace scansion {

using Trajectory = std::vector<int32_t>;

// A way into node (v, target), and its probability given that node.
struct Arc {
  double weight;
  int64_t from;
  int32_t source, target, label;
  bool change;  // a new place of the trajectory begins
};

template <class Graph>
class ArcSweep {
 public:
  // merge: neighbouring equal labels are one place
  ArcSweep(Graph& graph, bool merge) : graph_(graph), merge_(merge) {}

  int64_t length() const { return graph_.length(); }
  int64_t states() const { return graph_.states(); }
  int64_t initial() const { return graph_.initial(); }
  int64_t reach() const { return graph_.reach(); }
  int32_t label(int64_t state) const { return graph_.label(state); }
  const Graph& graph() const { return graph_; }

  // every way into the nodes of v >= 1: changes first, `changes()` of them
  const std::vector<Arc>& into(int64_t v) {
    arcs_.clear();
    stays_.clear();
    graph_.prepare(v);
    for (int64_t p = 0; p < graph_.states(); ++p) into_node(v, p);
    changes_ = arcs_.size();
    arcs_.insert(arcs_.end(), stays_.begin(), stays_.end());
    return arcs_;
  }
  size_t changes() const { return changes_; }

  // P(state) at the end
  std::vector<double> finals() {
    std::vector<double> out(static_cast<size_t>(graph_.states()), 0.0);
    if (graph_.length() == 0) {
      out[graph_.initial()] = 1.0;
      return out;
    }
    graph_.finals(ways_);
    weigh(ways_, weight_);
    for (size_t i = 0; i < ways_.size(); ++i) out[ways_[i].source] = weight_[i];
    return out;
  }

 private:
  void into_node(int64_t v, int64_t p) {
    graph_.incoming(v, p, ways_);
    weigh(ways_, weight_);
    for (size_t i = 0; i < ways_.size(); ++i) {
      const auto& way = ways_[i];
      const bool change = !merge_ || way.from == 0 || graph_.label(way.source) != way.label;
      if (weight_[i] > 0.0)
        (change ? arcs_ : stays_)
            .push_back({weight_[i], way.from, way.source, static_cast<int32_t>(p), way.label, change});
    }
  }

  Graph& graph_;
  bool merge_;
  size_t changes_ = 0;
  std::vector<WayTo<typename Graph::Number>> ways_;
  std::vector<double> weight_;
  std::vector<Arc> arcs_, stays_;
};

// The ways of a first-order chain as matrices, made in linear space: no exponential for each pair of labels.
class ChainSteps {
 public:
  explicit ChainSteps(const ChainGraph& graph)
      : graph_(graph),
        labels_(graph.states()),
        by_target_(static_cast<size_t>(labels_ * labels_)),
        by_source_(by_target_.size()),
        weight_(by_target_.size()),
        row_(static_cast<size_t>(labels_)),
        column_(row_.size()),
        stay_(row_.size()) {}

  // the ways into the labels at time v - 1, v >= 2
  void prepare(int64_t v) {
    const int64_t L = labels_, LL = L * L;
    const double* scores = graph_.transition(v);
    if (scores != exponentiated_) {
      const double top = *std::max_element(scores, scores + LL);
      for (int64_t i = 0; i < LL; ++i) weight_[i] = top > kMinusInfinity ? scores[i] - top : kMinusInfinity;
      kernels().exp_array(weight_.data(), LL, weight_.data());
      exponentiated_ = scores;
    }
    const double* before = graph_.before(v);
    kernels().exp_array(before, L, row_.data());
    std::fill(column_.begin(), column_.end(), 0.0);
    for (int64_t i = 0; i < L; ++i) kernels().add_scaled(column_.data(), weight_.data() + i * L, row_[i], L);
    for (int64_t j = 0; j < L; ++j) column_[j] = column_[j] > 1e-200 ? 1.0 / column_[j] : -1.0;
    for (int64_t i = 0; i < L; ++i)
      for (int64_t j = 0; j < L; ++j) by_source_[i * L + j] = row_[i] * weight_[i * L + j] * column_[j];
    for (int64_t j = 0; j < L; ++j)
      if (column_[j] < 0.0) careful_column(before, scores, j);
    for (int64_t j = 0; j < L; ++j) {
      stay_[j] = by_source_[j * L + j];
      by_source_[j * L + j] = 0.0;
      for (int64_t i = 0; i < L; ++i) by_target_[j * L + i] = by_source_[i * L + j];
    }
  }

  // (L,) probabilities of the changes into label j, by their source; and of those out of label i, by their target,
  // each given its target
  const double* into(int64_t j) const { return by_target_.data() + j * labels_; }
  const double* from(int64_t i) const { return by_source_.data() + i * labels_; }
  double stay(int64_t j) const { return stay_[j]; }

 private:
  // a column so small that something in it may have vanished
  void careful_column(const double* before, const double* scores, int64_t j) {
    const int64_t L = labels_;
    double top = kMinusInfinity, sum = 0.0;
    for (int64_t i = 0; i < L; ++i) top = std::max(top, before[i] + scores[i * L + j]);
    for (int64_t i = 0; i < L; ++i) {
      double& x = by_source_[i * L + j];
      x = top > kMinusInfinity ? std::exp(before[i] + scores[i * L + j] - top) : 0.0;
      sum += x;
    }
    for (int64_t i = 0; i < L && sum > 0.0; ++i) by_source_[i * L + j] /= sum;
  }

  const ChainGraph& graph_;
  int64_t labels_;
  std::vector<double> by_target_, by_source_, weight_, row_, column_, stay_;
  const double* exponentiated_ = nullptr;  // the transition scores whose exponentials are in weight_
};

// Numbers on their way to zero take a hundred times as long; what is dropped cannot come to more than 1e-290.
inline void drop_tiny(double* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = x[i] < 1e-300 ? 0.0 : x[i];
}

// Q_n(0..most) of the last reach() + 1 positions, (reach() + 1, S, stride). seen(v, rows) is called when only the
// changes into v have been added; what it takes away there has not begun a place.
template <class Sweep, class Seen>
std::vector<double> count_places(Sweep& sweep, int64_t most, int64_t stride, const Seen& seen) {
  const int64_t S = sweep.states(), ring = sweep.reach() + 1;
  std::vector<double> table(static_cast<size_t>(ring * S * stride), 0.0);
  table[sweep.initial() * stride] = 1.0;
  for (int64_t v = 1; v <= sweep.length(); ++v) {
    double* rows = table.data() + (v % ring) * S * stride;
    std::fill_n(rows, S * stride, 0.0);
    const std::vector<Arc>& arcs = sweep.into(v);
    for (size_t i = 0; i < arcs.size(); ++i) {
      if (i == sweep.changes()) seen(v, rows);
      const Arc& arc = arcs[i];
      const int64_t shift = arc.change ? 1 : 0, filled = std::min(arc.from, most - shift) + 1;
      const double* from = table.data() + ((arc.from % ring) * S + arc.source) * stride;
      kernels().add_scaled(rows + arc.target * stride + shift, from, arc.weight, filled);
    }
    if (arcs.size() == sweep.changes()) seen(v, rows);
    drop_tiny(rows, S * stride);
  }
  return table;
}

template <class Seen>
std::vector<double> count_places(ArcSweep<ChainGraph>& sweep, int64_t most, int64_t stride, const Seen& seen) {
  const int64_t L = sweep.states();
  std::vector<double> table(static_cast<size_t>(2 * L * stride), 0.0), mixed(static_cast<size_t>(stride));
  if (sweep.length() == 0) {
    table[sweep.initial() * stride] = 1.0;
    return table;
  }
  ChainSteps steps(sweep.graph());
  for (int64_t j = 0; j < L; ++j) table[(L + j) * stride + 1] = 1.0;
  seen(1, table.data() + L * stride);
  for (int64_t v = 2; v <= sweep.length(); ++v) {
    const double* before = table.data() + ((v - 1) % 2) * L * stride;
    double* rows = table.data() + (v % 2) * L * stride;
    steps.prepare(v);
    for (int64_t j = 0; j < L; ++j) {
      kernels().mix_rows(before, stride, steps.into(j), L, mixed.data());
      rows[j * stride] = 0.0;
      std::copy_n(mixed.data(), most, rows + j * stride + 1);
    }
    seen(v, rows);
    for (int64_t j = 0; j < L; ++j)
      kernels().add_scaled(rows + j * stride, before + j * stride, steps.stay(j), most + 1);
    drop_tiny(rows, L * stride);
  }
  return table;
}

// D of all nodes, the last first; use(v, rows) is called with (S, stride) rows where D_n(r) stands at c - 1 - r, beside
// the place that it completes.
template <class Sweep, class Use>
void complete_places(Sweep& sweep, int64_t c, int64_t stride, const Use& use) {
  const int64_t S = sweep.states(), T = sweep.length(), ring = sweep.reach() + 1;
  std::vector<double> after(static_cast<size_t>(ring * S * stride), 0.0);
  const std::vector<double> last = sweep.finals();
  for (int64_t p = 0; p < S; ++p) after[((T % ring) * S + p) * stride + c - 1] = last[p];
  for (int64_t v = T; v >= 1; --v) {
    double* rows = after.data() + (v % ring) * S * stride;
    drop_tiny(rows, S * stride);
    use(v, rows);
    for (const Arc& arc : sweep.into(v)) {
      const int64_t shift = arc.change ? 1 : 0;
      double* to = after.data() + ((arc.from % ring) * S + arc.source) * stride;
      kernels().add_scaled(to, rows + arc.target * stride + shift, arc.weight, c - shift);
    }
    std::fill_n(rows, S * stride, 0.0);
  }
}

template <class Use>
void complete_places(ArcSweep<ChainGraph>& sweep, int64_t c, int64_t stride, const Use& use) {
  const int64_t L = sweep.states(), T = sweep.length();
  std::vector<double> after(static_cast<size_t>(2 * L * stride), 0.0), mixed(static_cast<size_t>(stride));
  const std::vector<double> last = sweep.finals();
  ChainSteps steps(sweep.graph());
  for (int64_t j = 0; j < L; ++j) after[((T % 2) * L + j) * stride + c - 1] = last[j];
  for (int64_t v = T; v >= 1; --v) {
    const double* rows = after.data() + (v % 2) * L * stride;
    use(v, rows);
    if (v == 1) break;
    double* to = after.data() + ((v - 1) % 2) * L * stride;
    steps.prepare(v);
    for (int64_t i = 0; i < L; ++i) {
      kernels().mix_rows(rows, stride, steps.from(i), L, mixed.data());
      std::copy_n(mixed.data() + 1, c - 1, to + i * stride);
      to[i * stride + c - 1] = 0.0;
      kernels().add_scaled(to + i * stride, rows + i * stride, steps.stay(i), c);
    }
    drop_tiny(to, L * stride);
  }
}

// out (most + 1,) = P(length c, and what `seen` leaves of the changes; see count_places)
template <class Sweep, class Seen>
void trajectory_lengths(Sweep& sweep, int64_t most, double* out, const Seen& seen) {
  const int64_t S = sweep.states(), T = sweep.length(), stride = padded4(most + 1);
  const std::vector<double> table = count_places(sweep, most, stride, seen);
  const double* rows = table.data() + (T % (sweep.reach() + 1)) * S * stride;
  const std::vector<double> last = sweep.finals();
  std::fill_n(out, most + 1, 0.0);
  for (int64_t p = 0; p < S; ++p) kernels().add_scaled(out, rows + p * stride, last[p], most + 1);
  drop_tiny(out, most + 1);
}

template <class Sweep>
void trajectory_lengths(Sweep& sweep, int64_t most, double* out) {
  trajectory_lengths(sweep, most, out, [](int64_t, double*) {});
}

// out (most + 1,) = P(length c, and every place has one of its labels); allowed: (places, labels), later places may
// have any (paper 004, equations 9 and 10, for any set of cells)
template <class Sweep>
void passing_lengths(Sweep& sweep, int64_t most, const uint8_t* allowed, int64_t places, int64_t labels, double* out) {
  const int64_t S = sweep.states(), stride = padded4(most + 1);
  trajectory_lengths(sweep, most, out, [&](int64_t, double* rows) {
    for (int64_t p = 0; p < S; ++p) {
      const int32_t y = sweep.label(p);
      for (int64_t i = 0; y >= 0 && i < std::min(places, most); ++i)
        if (!allowed[i * labels + y]) rows[p * stride + i + 1] = 0.0;
    }
  });
  for (int64_t c = 0; c < std::min(places, most + 1); ++c) out[c] = 0.0;  // too short to have all of the places
}

// out (c, labels) = P(s_i = j, length c), c >= 1
template <class Sweep>
void trajectory_marginals(Sweep& sweep, int64_t c, int64_t labels, double* out) {
  const int64_t S = sweep.states(), T = sweep.length(), stride = padded4(c + 1);
  std::vector<double> entered(static_cast<size_t>((T + 1) * S * c));  // [v, p, i]: place i begins on the way in
  count_places(sweep, c, stride, [&](int64_t v, const double* rows) {
    for (int64_t p = 0; p < S; ++p) std::copy_n(rows + p * stride + 1, c, entered.data() + (v * S + p) * c);
  });
  std::fill_n(out, c * labels, 0.0);
  complete_places(sweep, c, stride, [&](int64_t v, const double* rows) {
    for (int64_t p = 0; p < S; ++p) {
      const int64_t j = sweep.label(p);
      const double* enter = entered.data() + (v * S + p) * c;
      for (int64_t i = 0; i < c && j >= 0; ++i) out[i * labels + j] += enter[i] * rows[p * stride + i];
    }
  });
}

// The most likely length; 0: no length up to `most` has a probability above zero. Tables are made longer only while a
// longer length could still be likelier.
template <class Sweep>
int64_t likeliest_length(Sweep& sweep, int64_t most) {
  std::vector<double> lengths;
  for (int64_t limit = std::min<int64_t>(32, most);; limit = std::min(2 * limit, most)) {
    lengths.resize(static_cast<size_t>(limit + 1));
    trajectory_lengths(sweep, limit, lengths.data());
    const int64_t c = std::max_element(lengths.begin(), lengths.end()) - lengths.begin();
    const double rest = 1.0 - std::accumulate(lengths.begin(), lengths.end(), 0.0);
    if (limit == most || rest < lengths[c]) return lengths[c] > 0.0 ? c : 0;
  }
}

// Whether a configuration has this trajectory.
template <class Sweep>
bool can_occur(Sweep& sweep, const Trajectory& trajectory, int64_t labels) {
  const int64_t S = sweep.states(), ring = sweep.reach() + 1, c = static_cast<int64_t>(trajectory.size());
  std::vector<std::vector<int64_t>> places(static_cast<size_t>(labels));
  for (int64_t i = 0; i < c; ++i) places[trajectory[i]].push_back(i + 1);
  std::vector<uint8_t> reached(static_cast<size_t>(ring * S * (c + 1)), 0);  // [v, p, places so far]
  const auto at = [&](int64_t v, int64_t p) { return reached.data() + ((v % ring) * S + p) * (c + 1); };
  at(0, sweep.initial())[0] = 1;
  for (int64_t v = 1; v <= sweep.length(); ++v) {
    std::fill_n(at(v, 0), S * (c + 1), uint8_t{0});
    for (const Arc& arc : sweep.into(v)) {
      const uint8_t* from = at(arc.from, arc.source);
      uint8_t* to = at(v, arc.target);
      for (const int64_t i : places[arc.label]) to[i] |= from[arc.change ? i - 1 : i];
    }
  }
  const std::vector<double> last = sweep.finals();
  for (int64_t p = 0; p < S; ++p)
    if (last[p] > 0.0 && at(sweep.length(), p)[c]) return true;
  return false;
}

// Any table of forward sums tells which labels and steps are possible.
inline bool can_occur(ArcSweep<ChainGraph>& sweep, const Trajectory& trajectory, int64_t labels) {
  const ChainGraph& graph = sweep.graph();
  const int64_t c = static_cast<int64_t>(trajectory.size());
  std::vector<uint8_t> reached(static_cast<size_t>(c), 0);
  reached[0] = graph.after(1)[trajectory[0]] > kMinusInfinity;
  for (int64_t v = 2; v <= graph.length(); ++v) {
    const double *after = graph.after(v), *w = graph.transition(v);
    for (int64_t i = std::min(v, c) - 1; i >= 0; --i) {
      const int32_t y = trajectory[i];
      const bool stays = reached[i] && w[y * labels + y] > kMinusInfinity;
      const int32_t before = i > 0 ? trajectory[i - 1] : y;
      const bool enters = before != y && reached[i - 1] && w[before * labels + y] > kMinusInfinity;
      reached[i] = (stays || enters) && after[y] > kMinusInfinity;
    }
  }
  return reached[c - 1];
}

// Of the trajectories of length c that a configuration has, one with the largest sum of value (c, labels) over its
// places: the sweep of count_places with maxima in place of sums, and back along what attained them.
template <class Sweep>
Trajectory best_places(Sweep& sweep, const double* value, int64_t c, int64_t labels) {
  const int64_t S = sweep.states(), T = sweep.length();
  std::vector<double> table(static_cast<size_t>((T + 1) * S * (c + 1)), kMinusInfinity);  // [v, p, places so far]
  const auto at = [&](int64_t v, int64_t p) { return table.data() + (v * S + p) * (c + 1); };
  const auto via = [&](const Arc& arc, int64_t i) {
    const double* from = at(arc.from, arc.source);
    return arc.change ? from[i - 1] + value[(i - 1) * labels + arc.label] : from[i];
  };
  at(0, sweep.initial())[0] = 0.0;
  for (int64_t v = 1; v <= T; ++v)
    for (const Arc& arc : sweep.into(v)) {
      double* to = at(v, arc.target);
      for (int64_t i = 1; i <= c; ++i) to[i] = std::max(to[i], via(arc, i));
    }
  const std::vector<double> last = sweep.finals();
  int64_t p = -1;
  for (int64_t q = 0; q < S; ++q)
    if (last[q] > 0.0 && at(T, q)[c] > kMinusInfinity && (p < 0 || at(T, q)[c] > at(T, p)[c])) p = q;
  Trajectory out;
  for (int64_t v = T, i = c; p >= 0 && v > 0;) {
    const std::vector<Arc>& arcs = sweep.into(v);
    const auto arc =
        std::find_if(arcs.begin(), arcs.end(), [&](const Arc& a) { return a.target == p && via(a, i) == at(v, p)[i]; });
    if (arc == arcs.end()) break;
    if (arc->change) {
      out.push_back(arc->label);
      --i;
    }
    v = arc->from;
    p = arc->source;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

inline Trajectory best_places(ArcSweep<ChainGraph>& sweep, const double* value, int64_t c, int64_t labels) {
  const ChainGraph& graph = sweep.graph();
  const int64_t T = graph.length(), L = labels;
  std::vector<double> table(static_cast<size_t>(T * L * (c + 1)), kMinusInfinity);  // [v - 1, label, places so far]
  const auto at = [&](int64_t v, int64_t y) { return table.data() + ((v - 1) * L + y) * (c + 1); };
  for (int64_t y = 0; y < L; ++y)
    if (graph.after(1)[y] > kMinusInfinity) at(1, y)[1] = value[y];
  std::vector<double> enter(static_cast<size_t>(c + 1));
  for (int64_t v = 2; v <= T; ++v)
    for (int64_t y = 0; y < L; ++y) {
      if (!(graph.after(v)[y] > kMinusInfinity)) continue;
      const double* w = graph.transition(v) + y;
      std::fill(enter.begin(), enter.end(), kMinusInfinity);
      for (int64_t k = 0; k < L; ++k)
        if (k != y && w[k * L] > kMinusInfinity) {
          const double* from = at(v - 1, k);
          for (int64_t i = 0; i < c; ++i) enter[i + 1] = std::max(enter[i + 1], from[i]);
        }
      double* to = at(v, y);
      for (int64_t i = 1; i <= c; ++i) to[i] = enter[i] + value[(i - 1) * L + y];
      if (w[y * L] > kMinusInfinity)
        for (int64_t i = 1; i <= c; ++i) to[i] = std::max(to[i], at(v - 1, y)[i]);
    }
  int64_t y = 0;
  for (int64_t k = 1; k < L; ++k)
    if (at(T, k)[c] > at(T, y)[c]) y = k;
  Trajectory out;
  if (!(at(T, y)[c] > kMinusInfinity)) return out;
  out.push_back(static_cast<int32_t>(y));
  for (int64_t v = T, i = c; v > 1; --v) {
    const double* w = graph.transition(v) + y;
    if (w[y * L] > kMinusInfinity && at(v - 1, y)[i] == at(v, y)[i]) continue;
    int64_t k = 0;
    while (k == y || !(w[k * L] > kMinusInfinity) || at(v - 1, k)[i - 1] + value[(i - 1) * L + y] != at(v, y)[i]) ++k;
    --i;
    y = k;
    out.push_back(static_cast<int32_t>(y));
  }
  std::reverse(out.begin(), out.end());
  return out;
}

// The most likely length c, then a labelling of its places; false: no length up to `most` has a probability above zero.
// raw: the paper's, the most likely label at each place, which need not be a trajectory that can occur. Else the one that
// can occur with the most places expected to be right: the same wherever the paper's can.
template <class Sweep>
bool label_places(Sweep& sweep, int64_t most, int64_t labels, bool raw, Trajectory& out) {
  out.clear();
  if (sweep.length() == 0) return true;
  const int64_t c = likeliest_length(sweep, most);
  if (c == 0) return false;
  std::vector<double> places(static_cast<size_t>(c * labels));
  trajectory_marginals(sweep, c, labels, places.data());
  for (int64_t i = 0; i < c; ++i) {
    const double* row = places.data() + i * labels;
    out.push_back(static_cast<int32_t>(std::max_element(row, row + labels) - row));
  }
  if (raw || can_occur(sweep, out, labels)) return true;
  out = best_places(sweep, places.data(), c, labels);
  return !out.empty();
}

inline Trajectory trajectory_of(const Path& path, bool merge) {
  Trajectory out;
  for (const Step& step : path)
    if (!merge || out.empty() || out.back() != step.label) out.push_back(step.label);
  return out;
}

}  // namespace scansion
