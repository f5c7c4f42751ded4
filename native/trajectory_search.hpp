// The k most probable trajectories of a lattice (paper 004 leaves them open), on the sweeps of compressed.hpp.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "compressed.hpp"

namespace scansion {

struct BestTrajectories {
  std::vector<Trajectory> trajectories;  // most probable first
  std::vector<double> probabilities;
  double bound = 0.0;    // nothing that is not listed is more probable than this
  bool proven = true;    // these are the best ones
  int64_t expanded = 0;  // prefixes that were taken up
};

// The k most probable trajectories by best-first search over prefixes.
//
// The mass of a prefix, P(the trajectory starts with it), bounds every trajectory that it starts, and is exact:
//   X_n(q) = P(n, the trajectory up to n is q) = sum over stays w: m -> n of X_m(q) F(w | m) + what enters from q's parent
// with F(w | m) = P(w) / P(m), the probability of leaving m by w. Taking up q gives the mass of each child, the sum
// of X_m(q) F(w | m) over the changes w to its label, and P(q) itself, the sum of X at the end. Not all of a child's mass
// can go to one trajectory. With
//   U(n) = max(P(no further change | n), max over labels k of C(n, k)) >= P(any one way of going on, as a trajectory | n)
//   C(n, k) = sum over stays w: n -> m of F(w | n) C(m, k) + sum over changes w to label k, into m, of F(w | n) U(m)
// the sum of X_m(q) F(w | m) U(n) over those changes bounds every trajectory that the child starts: the next label is
// chosen once for all times, those after it may differ with the time. The first complete trajectory that no open prefix
// can beat is the best. O(T A / L) time and O(T S / L) memory for each prefix.
class TrajectorySearch {
 public:
  template <class Sweep>
  TrajectorySearch(Sweep& sweep, int64_t labels, int64_t most)
      : T_(sweep.length()),
        S_(sweep.states()),
        labels_(labels),
        most_(most),
        initial_(sweep.initial()),
        reach_(sweep.reach()) {
    group_.assign(static_cast<size_t>(S_), 0);
    members_.resize(static_cast<size_t>(labels));
    for (int64_t p = 0; p < S_; ++p) {
      const int32_t y = sweep.label(p);
      if (y < 0) continue;
      group_[p] = static_cast<int32_t>(members_[y].size());
      members_[y].push_back(static_cast<int32_t>(p));
    }
    list_ways_out(sweep);
    bound_completions();
    prefixes_.push_back({-1, -1, 0, -1, -1, 0});
  }

  BestTrajectories run(int64_t k, int64_t budget, const Trajectory& candidate) {
    BestTrajectories result;
    k_ = k;
    budget_ = budget;
    push({1.0, 0, false});
    visit(candidate);
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

  // U of every node, from the end
  void bound_completions() {
    rest_.assign(static_cast<size_t>((T_ + 1) * S_), 1.0);
    std::vector<double> stay(rest_), next(static_cast<size_t>(labels_));
    const int64_t ring = (reach_ + 1) * S_;  // C of the nodes that a step reaches
    std::vector<double> change(static_cast<size_t>(ring * labels_), 0.0);
    for (int64_t node = T_ * S_ - 1; node >= 0; --node) {
      double none = 0.0;
      std::fill(next.begin(), next.end(), 0.0);
      for (int64_t i = first_[node]; i < first_[node + 1]; ++i) {
        const WayOut& way = out_[i];
        const int64_t to = way.stop * S_ + way.target;
        if (way.change) {
          next[way.label] += way.weight * rest_[to];
          continue;
        }
        none += way.weight * stay[to];
        const double* later = change.data() + to % ring * labels_;
        for (int64_t k = 0; k < labels_; ++k) next[k] += way.weight * later[k];
      }
      stay[node] = none;
      std::copy(next.begin(), next.end(), change.begin() + node % ring * labels_);
      rest_[node] = std::max(none, *std::max_element(next.begin(), next.end()));
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
      walk(
          parent, data_[parent.data],
          [&](double x, const WayOut& way) {
            if (way.change && way.label == prefix.label)
              mass.value[way.stop * n + group_[way.target]] += x * way.weight;
          },
          [](double) {});
    }
    walk(
        prefix, mass,
        [&](double x, const WayOut& way) {
          if (way.change)
            child[way.label] += x * way.weight * rest_[way.stop * S_ + way.target];
          else
            mass.value[way.stop * n + group_[way.target]] += x * way.weight;
        },
        [&](double x) { complete += x; });
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
      prefixes_.push_back({id, y, prefix.depth + 1, -1, -1, 0});
      ++prefixes_[id].children;
      // what rounding may have taken from a bound that is attained
      push({child[y] * (1.0 + 1e-12), static_cast<int64_t>(prefixes_.size()) - 1, false});
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

  int64_t T_, S_, labels_, most_, initial_, reach_;
  int64_t k_ = 1, budget_ = 0, spent_ = 0;
  double pruned_ = 0.0;
  std::vector<int32_t> group_;                 // (S,) index of a state among those of its label
  std::vector<std::vector<int32_t>> members_;  // states by label
  std::vector<int64_t> first_;                 // (T * S + 1,) ways out of a node
  std::vector<WayOut> out_;
  std::vector<double> rest_;  // (T + 1, S) U
  std::vector<Prefix> prefixes_;
  std::vector<Mass> data_;
  std::vector<Entry> open_;   // a heap
  std::vector<double> best_;  // a heap: the k largest probabilities met
};

}  // namespace scansion
