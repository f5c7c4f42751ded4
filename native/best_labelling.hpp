// Best labellings on position-dependent pattern sets.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "paths.hpp"
#include "views.hpp"

namespace scansion {

// The best labelling of one sequence (paper 002, algorithms 4 and 5, with errata 3 of models.md): O(labels x patterns
// alive) per position. p_t(q) is the best score of a history whose longest state is q; for a label y, the best
// predecessor of node z is the best over states that end in pre z and in no longer pre z' of another node ending in y.
// Ties as everywhere: reading from the end, the smaller label wins; ranks remember it, as in viterbi.hpp.
class BestLabelling {
 public:
  // before: states before the first position (2 with BOS)
  void start(int64_t before) {
    score_.assign(static_cast<size_t>(before), kMinusInfinity);
    score_[before - 1] = 0.0;
    suffix_.assign(static_cast<size_t>(before), 0);
    suffix_[0] = -1;
    rank_.assign(static_cast<size_t>(before), 0);
    back_.clear();
  }

  // label (roots,) scores, -inf: not allowed; sum (nodes,) W without it
  void step(const PatternSetView& p, const double* label, const double* sum) {
    const int32_t before = p.before;
    state_suffix_.assign(static_cast<size_t>(p.states), 0);
    nearest_.resize(static_cast<size_t>(p.nodes));  // state of a node, or of its longest suffix that is one
    for (int32_t n = 0; n < p.nodes; ++n) {
      const int32_t k = p.node_state[n], above = n < p.roots ? 0 : nearest_[p.suffix[n]];
      nearest_[n] = k < p.states ? k : above;
      if (k < p.states) state_suffix_[k] = above;
    }
    state_suffix_[0] = -1;
    by_label_.assign(static_cast<size_t>(p.roots) + 1, 0);
    for (int32_t n = p.roots; n < p.nodes; ++n) ++by_label_[p.label[n] + 1];
    std::partial_sum(by_label_.begin(), by_label_.end(), by_label_.begin());
    nodes_.resize(static_cast<size_t>(p.nodes - p.roots));
    std::vector<int32_t> at(by_label_.begin(), by_label_.end() - 1);
    for (int32_t n = p.roots; n < p.nodes; ++n) nodes_[at[p.label[n]]++] = n;

    next_.assign(static_cast<size_t>(p.states), kMinusInfinity);
    back_.emplace_back(static_cast<size_t>(p.states), -1);
    std::vector<int32_t>& back = back_.back();
    node_at_.assign(static_cast<size_t>(before), -1);
    for (int32_t y = 0; y < p.roots; ++y) {
      if (!(label[y] > kMinusInfinity)) continue;
      for (int32_t i = by_label_[y]; i < by_label_[y + 1]; ++i) node_at_[p.prefix[nodes_[i]]] = nodes_[i];
      node_at_[0] = y;
      best_ = score_;
      from_.resize(static_cast<size_t>(before));
      std::iota(from_.begin(), from_.end(), 0);
      for (int32_t q = before - 1; q >= 0; --q) {  // extensions before suffixes
        if (!(best_[q] > kMinusInfinity)) continue;
        const int32_t n = node_at_[q];
        if (n < 0) {
          improve(best_[q], from_[q], best_[suffix_[q]], from_[suffix_[q]]);
        } else {
          const double x = best_[q] + (sum[n] + label[y]);
          if (x > kMinusInfinity) improve(x, from_[q], next_[nearest_[n]], back[nearest_[n]]);
        }
      }
      for (int32_t i = by_label_[y]; i < by_label_[y + 1]; ++i) node_at_[p.prefix[nodes_[i]]] = -1;
    }
    order_.clear();
    double top = kMinusInfinity;
    for (int32_t k = 0; k < p.states; ++k)
      if (back[k] >= 0) order_.push_back(k), top = std::max(top, next_[k]);
    for (const int32_t k : order_) next_[k] -= top;
    std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
      const int32_t x = p.label[p.state_node[a]], y = p.label[p.state_node[b]];
      return x != y ? x < y : rank_[back[a]] < rank_[back[b]];
    });
    rank_.assign(static_cast<size_t>(p.states), 0);
    for (size_t i = 0; i < order_.size(); ++i) rank_[order_[i]] = static_cast<int32_t>(i);
    score_.swap(next_);
    suffix_.swap(state_suffix_);
  }

  // labels (T,) after all steps, of which the last may be the sequence's end; false: nothing is possible
  bool finish(const std::vector<const PatternSetView*>& sets, int64_t T, int32_t* labels) const {
    int32_t best = -1;
    for (int32_t k = 0; k < static_cast<int32_t>(score_.size()); ++k)
      if (score_[k] > kMinusInfinity &&
          (best < 0 || score_[k] > score_[best] || (score_[k] == score_[best] && rank_[k] < rank_[best])))
        best = k;
    if (best < 0) return false;
    for (int64_t t = static_cast<int64_t>(back_.size()) - 1; t >= 0; --t) {
      if (t < T) labels[t] = sets[t]->label[sets[t]->state_node[best]];
      best = back_[t][best];
    }
    return true;
  }

 private:
  void improve(double x, int32_t from, double& score, int32_t& source) const {
    if (x > score || (x == score && (source < 0 || rank_[from] < rank_[source]))) score = x, source = from;
  }

  std::vector<double> score_, next_, best_;
  std::vector<int32_t> suffix_, state_suffix_, rank_, nearest_, by_label_, nodes_, node_at_, from_, order_;
  std::vector<std::vector<int32_t>> back_;
};

}  // namespace scansion
