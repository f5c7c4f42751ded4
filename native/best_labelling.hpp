// Best labellings on position-dependent pattern sets.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "paths.hpp"
#include "views.hpp"

namespace scansion {

// The best labelling of one sequence (paper 002, algorithms 4 and 5, with erratum 3 of docs/notation.md): O(labels x patterns
// alive) per position. p_t(q) is the best score of a history whose longest state is q; for a label y, the best
// predecessor of node z is the best over states that end in pre z and in no longer pre z' of another node ending in y.
//
// Departs from the paper: states are put in the order of their suffix tree, where those that end in pre z are a range, so
// that the predecessors of z are a range without the ranges of longer pre z'; the best of a stretch is a plain scan.
//
// Ties as everywhere: reading from the end, the smaller label wins; ranks remember it, as in viterbi.hpp.
class BestLabelling {
 public:
  // the patterns of one position; arrays as in PatternSetView, node_state: `states` where a node is none
  struct Patterns {
    int32_t nodes, roots, states;
    const int32_t *suffix, *prefix, *label, *node_state, *state_node;
  };

  // before: states before the first position (2 with BOS)
  void start(int64_t before) {
    score_.assign(static_cast<size_t>(before), kMinusInfinity);
    score_[before - 1] = 0.0;
    state_ = {0};
    stop_ = {static_cast<int32_t>(before)};
    if (before > 1) state_.push_back(1), stop_.push_back(2);
    rank_.assign(static_cast<size_t>(before), 0);
    back_.clear();
    label_.clear();
  }

  // label (roots,) scores, -inf: not allowed; sum (nodes,) W without it
  void step(const Patterns& p, const double* label, const double* sum) {
    group(p);
    nearest_.resize(static_cast<size_t>(p.nodes));  // state of a node, or of its longest suffix that is one
    for (int32_t n = 0; n < p.nodes; ++n) {
      const int32_t k = p.node_state[n];
      nearest_[n] = k < p.states ? k : nearest_[p.suffix[n]];  // labels are states
    }
    next_.assign(static_cast<size_t>(p.states), kMinusInfinity);
    back_.emplace_back(static_cast<size_t>(p.states), -1);
    label_.emplace_back(static_cast<size_t>(p.states), -1);
    for (int32_t k = 1; k < p.states; ++k) label_.back()[k] = p.label[p.state_node[k]];
    std::vector<int32_t>& back = back_.back();
    for (int32_t y = 0; y < p.roots; ++y) {
      if (!(label[y] > kMinusInfinity)) continue;
      // nodes that end in y, by the place of their prefix; open_ holds those whose range is not over
      int32_t at = 0;
      open_.clear();
      best_.clear();
      open(y, static_cast<int32_t>(state_.size()));
      const double* score = score_.data();
      const int32_t* rank = rank_.data();
      const auto take = [&](int32_t to) {
        Best best = best_.back();
        for (int32_t i = at; i < to; ++i)
          if (score[i] >= best.score)  // rarely
            if (score[i] > best.score || (best.place >= 0 && rank[i] < rank[best.place])) best = {score[i], i};
        at = std::max(at, to);
        best_.back() = best;
      };
      const auto close = [&] {
        take(open_.back().stop);
        const int32_t n = open_.back().node, k = nearest_[n];
        const Best best = best_.back();
        if (best.place >= 0) {
          const double x = best.score + (sum[n] + label[y]);
          if (x > next_[k] || (x == next_[k] && back[k] >= 0 && rank_[best.place] < rank_[back[k]]))
            next_[k] = x, back[k] = best.place;
        }
        open_.pop_back();
        best_.pop_back();
      };
      for (int32_t i = by_label_[y]; i < by_label_[y + 1]; ++i) {
        const int32_t from = place_[p.prefix[nodes_[i]]];
        while (open_.back().stop <= from) close();
        take(from);
        open(nodes_[i], stop_[from]);
      }
      while (!open_.empty()) close();
    }
    arrange(p, back);
  }

  // labels (T,) after all steps, of which the last may be the sequence's end; false: nothing is possible
  bool finish(int64_t T, int32_t* labels) const {
    int32_t best = -1;
    for (int32_t i = 0; i < static_cast<int32_t>(score_.size()); ++i)
      if (score_[i] > kMinusInfinity &&
          (best < 0 || score_[i] > score_[best] || (score_[i] == score_[best] && rank_[i] < rank_[best])))
        best = i;
    if (best < 0) return false;
    int32_t k = state_[best];
    for (int64_t t = static_cast<int64_t>(back_.size()) - 1; t >= 0; --t) {
      if (t < T) labels[t] = label_[t][k];
      k = back_[t][k];
    }
    return true;
  }

 private:
  struct Open {
    int32_t node, stop;
  };
  struct Best {
    double score;
    int32_t place;
  };
  void open(int32_t node, int32_t stop) {
    open_.push_back({node, stop});
    best_.push_back({kMinusInfinity, -1});
  }

  // nodes longer than a label by label, each list by the place of the prefix
  void group(const Patterns& p) {
    place_.resize(state_.size());
    for (size_t i = 0; i < state_.size(); ++i) place_[state_[i]] = static_cast<int32_t>(i);
    const auto counted = [&](std::vector<int32_t>& first, size_t keys, const auto& key) {
      first.assign(keys + 1, 0);
      for (int32_t n = p.roots; n < p.nodes; ++n) ++first[key(n) + 1];
      std::partial_sum(first.begin(), first.end(), first.begin());
    };
    counted(by_place_, state_.size(), [&](int32_t n) { return place_[p.prefix[n]]; });
    counted(by_label_, static_cast<size_t>(p.roots), [&](int32_t n) { return p.label[n]; });
    placed_.resize(static_cast<size_t>(p.nodes - p.roots));
    nodes_.resize(placed_.size());
    for (int32_t n = p.roots; n < p.nodes; ++n) placed_[by_place_[place_[p.prefix[n]]]++] = n;
    end_.assign(by_label_.begin(), by_label_.end() - 1);
    for (const int32_t n : placed_) nodes_[end_[p.label[n]]++] = n;
  }

  // scores and ranks of the new states in the order of their suffix tree; back: places -> states
  void arrange(const Patterns& p, std::vector<int32_t>& back) {
    order_.clear();
    double top = kMinusInfinity;
    for (int32_t k = 0; k < p.states; ++k)
      if (back[k] >= 0) order_.push_back(k), top = std::max(top, next_[k]);
    std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
      const int32_t x = p.label[p.state_node[a]], y = p.label[p.state_node[b]];
      return x != y ? x < y : rank_[back[a]] < rank_[back[b]];
    });
    for (int32_t& k : back)
      if (k >= 0) k = state_[k];
    // states below their longest suffix, depth first
    above_.assign(static_cast<size_t>(p.states), 0);
    child_.assign(static_cast<size_t>(p.states), -1);
    sibling_.assign(static_cast<size_t>(p.states), -1);
    for (int32_t k = p.states - 1; k > 0; --k) {
      const int32_t n = p.state_node[k];
      if (n >= p.roots) above_[k] = nearest_[p.suffix[n]];
      sibling_[k] = child_[above_[k]];
      child_[above_[k]] = k;
    }
    state_.clear();
    for (int32_t k = 0; k >= 0;) {
      state_.push_back(k);
      if (child_[k] >= 0) {
        k = child_[k];
        continue;
      }
      while (k > 0 && sibling_[k] < 0) k = above_[k];
      k = k > 0 ? sibling_[k] : -1;
    }
    place_.resize(state_.size());
    for (size_t i = 0; i < state_.size(); ++i) place_[state_[i]] = static_cast<int32_t>(i);
    stop_.resize(state_.size());
    for (size_t i = 0; i < state_.size(); ++i) stop_[i] = static_cast<int32_t>(i) + 1;
    for (int32_t i = static_cast<int32_t>(state_.size()) - 1; i > 0; --i) {
      int32_t& stop = stop_[place_[above_[state_[i]]]];
      stop = std::max(stop, stop_[i]);
    }
    score_.assign(state_.size(), kMinusInfinity);
    rank_.assign(state_.size(), 0);
    for (size_t i = 0; i < order_.size(); ++i) {
      score_[place_[order_[i]]] = next_[order_[i]] - top;
      rank_[place_[order_[i]]] = static_cast<int32_t>(i);
    }
  }

  // states in the order of their suffix tree: (before,)
  std::vector<double> score_;
  std::vector<int32_t> state_, stop_, rank_;  // the state, end of what extends it, rank of its best history
  std::vector<double> next_;                  // (states,)
  std::vector<int32_t> place_, nearest_, by_place_, by_label_, placed_, nodes_, end_, order_, above_, child_, sibling_;
  std::vector<Open> open_;
  std::vector<Best> best_;
  std::vector<std::vector<int32_t>> back_, label_;  // by position (states,): state before; last label
};

}  // namespace scansion
