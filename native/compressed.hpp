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

inline int64_t whole_vectors(int64_t n) { return (n + 3) / 4 * 4; }

// Q_n(0..most) of the last reach() + 1 positions, (reach() + 1, S, stride). seen(v, rows) is called when only the
// changes into v have been added.
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

// out (most + 1,) = P(length c)
template <class Sweep>
void trajectory_lengths(Sweep& sweep, int64_t most, double* out) {
  const int64_t S = sweep.states(), T = sweep.length(), stride = whole_vectors(most + 1);
  const std::vector<double> table = count_places(sweep, most, stride, [](int64_t, const double*) {});
  const double* rows = table.data() + (T % (sweep.reach() + 1)) * S * stride;
  const std::vector<double> last = sweep.finals();
  std::fill_n(out, most + 1, 0.0);
  for (int64_t p = 0; p < S; ++p) kernels().add_scaled(out, rows + p * stride, last[p], most + 1);
  drop_tiny(out, most + 1);
}

// out (c, labels) = P(s_i = j, length c), c >= 1
template <class Sweep>
void trajectory_marginals(Sweep& sweep, int64_t c, int64_t labels, double* out) {
  const int64_t S = sweep.states(), T = sweep.length(), stride = whole_vectors(c + 1);
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

// The paper's labelling: the most likely length, then the most likely state at each place. False: no length up to
// `most` has a probability above zero. Tables are made longer only while a longer length could still be likelier.
template <class Sweep>
bool paper_labelling(Sweep& sweep, int64_t most, int64_t labels, Trajectory& out) {
  out.clear();
  if (sweep.length() == 0) return true;
  std::vector<double> lengths;
  int64_t c = 0;
  for (int64_t limit = std::min<int64_t>(32, most);; limit = std::min(2 * limit, most)) {
    lengths.resize(static_cast<size_t>(limit + 1));
    trajectory_lengths(sweep, limit, lengths.data());
    c = std::max_element(lengths.begin(), lengths.end()) - lengths.begin();
    const double rest = 1.0 - std::accumulate(lengths.begin(), lengths.end(), 0.0);
    if (limit == most || rest < lengths[c]) break;
  }
  if (!(lengths[c] > 0.0)) return false;
  std::vector<double> places(static_cast<size_t>(c * labels));
  trajectory_marginals(sweep, c, labels, places.data());
  for (int64_t i = 0; i < c; ++i) {
    const double* row = places.data() + i * labels;
    out.push_back(static_cast<int32_t>(std::max_element(row, row + labels) - row));
  }
  return true;
}

inline Trajectory trajectory_of(const Path& path, bool merge) {
  Trajectory out;
  for (const Step& step : path)
    if (!merge || out.empty() || out.back() != step.label) out.push_back(step.label);
  return out;
}

struct BestTrajectories {
  std::vector<Trajectory> trajectories;  // most probable first
  std::vector<double> probabilities;
  double bound = 0.0;    // nothing that is not listed is more probable than this
  bool proven = true;    // these are the best ones
  int64_t expanded = 0;  // prefixes that were taken up
};

// The k most probable trajectories by best-first search over prefixes. The paper leaves this open.
//
// The mass of a prefix, P(the trajectory starts with it), bounds every trajectory that it starts, and is exact:
//   X_n(q) = P(n, the trajectory up to n is q) = sum over stays w: m -> n of X_m(q) F(w | m) + what enters from q's parent
// with F(w | m) = P(w) / P(m), the probability of leaving m by w. Taking up q gives the mass of each child, the sum
// of X_m(q) F(w | m) over the changes w to its label, and P(q) itself, the sum of X at the end. The first complete
// trajectory that no open prefix can beat is the best. O(T A / L) time and O(T S / L) memory for each prefix.
class TrajectorySearch {
 public:
  template <class Sweep>
  TrajectorySearch(Sweep& sweep, int64_t labels, int64_t most)
      : T_(sweep.length()), S_(sweep.states()), labels_(labels), most_(most), initial_(sweep.initial()) {
    group_.assign(static_cast<size_t>(S_), 0);
    members_.resize(static_cast<size_t>(labels));
    for (int64_t p = 0; p < S_; ++p) {
      const int32_t y = sweep.label(p);
      if (y < 0) continue;
      group_[p] = static_cast<int32_t>(members_[y].size());
      members_[y].push_back(static_cast<int32_t>(p));
    }
    list_ways_out(sweep);
    prefixes_.push_back({-1, -1, 0, 1.0, -1, -1, 0});
  }

  BestTrajectories run(int64_t k, int64_t budget, const std::vector<Trajectory>& candidates) {
    BestTrajectories result;
    k_ = k;
    budget_ = budget;
    push({1.0, 0, false});
    for (const Trajectory& candidate : candidates) visit(candidate);
    std::vector<Entry> found;
    while (!open_.empty() && static_cast<int64_t>(found.size()) < k) {
      const Entry top = open_.front();
      if (!top.complete && prefixes_[top.prefix].data < 0 && spent_ >= budget_) break;
      pop();
      if (top.complete)
        found.push_back(top);
      else if (prefixes_[top.prefix].data < 0)
        expand(top.prefix);
    }
    const size_t sure = found.size();
    if (static_cast<int64_t>(sure) < k) {
      // out of budget: the most probable ones that were met
      std::vector<Entry> rest;
      std::vector<Entry> still;
      for (const Entry& entry : open_) (entry.complete ? rest : still).push_back(entry);
      std::sort(rest.begin(), rest.end(), [](const Entry& a, const Entry& b) { return worse(b, a); });
      for (const Entry& entry : rest) (static_cast<int64_t>(found.size()) < k ? found : still).push_back(entry);
      open_.swap(still);
    }
    result.bound = pruned_;
    for (const Entry& entry : open_)
      if (entry.complete || prefixes_[entry.prefix].data < 0) result.bound = std::max(result.bound, entry.bound);
    for (const Entry& entry : found) {
      result.probabilities.push_back(entry.bound);
      result.trajectories.push_back(labels_of(entry.prefix));
    }
    const bool all = static_cast<int64_t>(found.size()) == k;
    result.proven = all ? result.bound <= result.probabilities.back() : !(result.bound > 0.0);
    result.expanded = spent_;
    return result;
  }

 private:
  struct WayOut {
    double weight;  // F(w | m)
    int32_t target, stop, label;
    bool change;
  };
  struct Prefix {
    int64_t parent;
    int32_t label, depth;
    double mass;
    int64_t data;  // its X, or -1: not taken up yet
    int64_t child, children;
  };
  struct Mass {
    int64_t first = 0;          // v of the first row
    std::vector<double> value;  // (rows, states of the label)
  };
  struct Entry {
    double bound;
    int64_t prefix;
    bool complete;
  };
  static bool worse(const Entry& a, const Entry& b) {
    if (a.bound != b.bound) return a.bound < b.bound;
    if (a.complete != b.complete) return b.complete;
    return a.prefix > b.prefix;
  }

  template <class Sweep>
  void list_ways_out(Sweep& sweep) {
    struct Joint {
      int64_t node;
      WayOut way;
    };
    std::vector<Joint> joints;
    std::vector<double> posterior(static_cast<size_t>((T_ + 1) * S_), 0.0);
    const std::vector<double> last = sweep.finals();
    std::copy(last.begin(), last.end(), posterior.begin() + T_ * S_);
    first_.assign(static_cast<size_t>(T_ * S_ + 1), 0);
    for (int64_t v = T_; v >= 1; --v)
      for (const Arc& arc : sweep.into(v)) {
        const double joint = arc.weight * posterior[v * S_ + arc.target];
        if (joint < 1e-300) continue;
        const int64_t node = arc.from * S_ + arc.source;
        posterior[node] += joint;
        ++first_[node + 1];
        joints.push_back({node, {joint, arc.target, static_cast<int32_t>(v), arc.label, arc.change}});
      }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    std::vector<int64_t> at(first_.begin(), first_.end() - 1);
    out_.resize(joints.size());
    for (const Joint& j : joints) {
      WayOut way = j.way;
      way.weight /= posterior[j.node];
      out_[at[j.node]++] = way;
    }
  }

  // use(node's X, way) for every way out of the nodes of a prefix; X may grow ahead of u
  template <class Use, class End>
  void walk(const Prefix& prefix, const Mass& mass, const Use& use, const End& end) const {
    const auto leave = [&](int64_t u, int64_t p, double x) {
      if (x == 0.0) return;
      if (u == T_) return end(x);
      for (int64_t i = first_[u * S_ + p]; i < first_[u * S_ + p + 1]; ++i) use(x, out_[i]);
    };
    if (prefix.label < 0) return leave(0, initial_, 1.0);
    const std::vector<int32_t>& states = members_[prefix.label];
    const int64_t n = static_cast<int64_t>(states.size());
    for (int64_t row = 0; row < static_cast<int64_t>(mass.value.size()) / n; ++row)
      for (int64_t i = 0; i < n; ++i) leave(mass.first + row, states[i], mass.value[row * n + i]);
  }

  void expand(int64_t id) {
    ++spent_;
    const Prefix prefix = prefixes_[id];
    Mass mass;
    std::vector<double> child(static_cast<size_t>(labels_), 0.0);
    double complete = 0.0;
    int64_t n = 1;
    if (prefix.label >= 0) {
      n = static_cast<int64_t>(members_[prefix.label].size());
      mass.value.assign(static_cast<size_t>((T_ + 1) * n), 0.0);
      const Prefix& parent = prefixes_[prefix.parent];
      walk(parent, data_[parent.data], [&](double x, const WayOut& way) {
        if (way.change && way.label == prefix.label) mass.value[way.stop * n + group_[way.target]] += x * way.weight;
      }, [](double) {});
    }
    walk(prefix, mass, [&](double x, const WayOut& way) {
      if (way.change)
        child[way.label] += x * way.weight;
      else
        mass.value[way.stop * n + group_[way.target]] += x * way.weight;
    }, [&](double x) { complete += x; });
    trim(mass, n);
    prefixes_[id].data = static_cast<int64_t>(data_.size());
    data_.push_back(std::move(mass));
    if (complete > 0.0) {
      best_.push_back(complete);
      std::push_heap(best_.begin(), best_.end(), std::greater<double>());
      if (static_cast<int64_t>(best_.size()) > k_) {
        std::pop_heap(best_.begin(), best_.end(), std::greater<double>());
        best_.pop_back();
      }
      push({complete, id, true});
    }
    if (prefix.depth == most_) return;
    prefixes_[id].child = static_cast<int64_t>(prefixes_.size());
    for (int32_t y = 0; y < labels_; ++y) {
      if (!(child[y] > 0.0)) continue;
      prefixes_.push_back({id, y, prefix.depth + 1, child[y], -1, -1, 0});
      ++prefixes_[id].children;
      push({child[y], static_cast<int64_t>(prefixes_.size()) - 1, false});
    }
  }

  // keeps the rows from the first to the last that are not zero
  static void trim(Mass& mass, int64_t n) {
    const auto positive = [](double x) { return x > 0.0; };
    const auto begin = std::find_if(mass.value.begin(), mass.value.end(), positive);
    const auto end = std::find_if(mass.value.rbegin(), mass.value.rend(), positive);
    if (begin == mass.value.end()) {
      mass.value.clear();
      return;
    }
    mass.first = (begin - mass.value.begin()) / n;
    const int64_t stop = (mass.value.rend() - end + n - 1) / n;
    mass.value = std::vector<double>(mass.value.begin() + mass.first * n, mass.value.begin() + stop * n);
  }

  // takes up the prefixes of a trajectory that may be good: what is found early saves looking at others
  void visit(const Trajectory& trajectory) {
    int64_t id = 0;
    for (size_t i = 0;; ++i) {
      if (prefixes_[id].data < 0) {
        if (spent_ >= budget_) return;
        expand(id);
      }
      if (i == trajectory.size()) return;
      const Prefix& prefix = prefixes_[id];
      int64_t next = -1;
      for (int64_t child = prefix.child; child < prefix.child + prefix.children; ++child)
        if (prefixes_[child].label == trajectory[i]) next = child;
      if (next < 0) return;
      id = next;
    }
  }

  // entries that cannot be among the k best are not kept
  void push(const Entry& entry) {
    if (static_cast<int64_t>(best_.size()) == k_ && entry.bound < best_.front()) {
      pruned_ = std::max(pruned_, entry.bound);
      return;
    }
    open_.push_back(entry);
    std::push_heap(open_.begin(), open_.end(), worse);
  }
  void pop() {
    std::pop_heap(open_.begin(), open_.end(), worse);
    open_.pop_back();
  }

  Trajectory labels_of(int64_t id) const {
    Trajectory out;
    for (; prefixes_[id].parent >= 0; id = prefixes_[id].parent) out.push_back(prefixes_[id].label);
    std::reverse(out.begin(), out.end());
    return out;
  }

  int64_t T_, S_, labels_, most_, initial_;
  int64_t k_ = 1, budget_ = 0, spent_ = 0;
  double pruned_ = 0.0;
  std::vector<int32_t> group_;                 // (S,) index of a state among those of its label
  std::vector<std::vector<int32_t>> members_;  // states by label
  std::vector<int64_t> first_;                 // (T * S + 1,) ways out of a node
  std::vector<WayOut> out_;
  std::vector<Prefix> prefixes_;
  std::vector<Mass> data_;
  std::vector<Entry> open_;    // a heap
  std::vector<double> best_;  // a heap: the k largest probabilities met
};

}  // namespace scansion
