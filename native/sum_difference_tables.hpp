// What the sweeps of sum_difference.hpp read and fill: e^W of shared sets, and one thread's tables.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels.hpp"
#include "parallel.hpp"
#include "numeric.hpp"
#include "views.hpp"

namespace scansion {

constexpr double kMostKappa = 1e4;    // four digits of a difference may go; 1e-9 in log Z needs seven
constexpr double kMostWeight = 300.0;  // largest W whose exponential leaves room for products

// e^W of a set's nodes, with what the sweeps read.
class Coefficients {
 public:
  // w (nodes,): scores, roots 0
  void compute(const PatternSetView& p, const double* w) {
    const size_t nodes = static_cast<size_t>(p.nodes), states = static_cast<size_t>(p.states);
    sum_.resize(nodes);
    b_.resize(nodes);
    c_.resize(nodes);
    cap_.resize(static_cast<size_t>(p.active));
    top_ = 0.0;
    for (int32_t n = 0; n < p.nodes; ++n) {
      sum_[n] = n < p.roots ? 0.0 : sum_[p.suffix[n]] + w[n];
      top_ = std::max(top_, sum_[n]);
    }
    kernels().exp_array(sum_.data(), p.nodes, b_.data());
    for (int32_t n = 0; n < p.nodes; ++n) c_[n] = n < p.roots ? 0.0 : b_[n] - b_[p.suffix[n]];
    for (int32_t i = 0; i < p.active; ++i) {
      const int32_t n = p.active_node[i];
      double cap = n < p.roots ? b_[n] : std::max(b_[n], b_[p.suffix[n]]);
      for (int32_t k = p.children[n]; k < p.children[n + 1]; ++k) cap = std::max(cap, b_[k]);
      cap_[i] = cap;
    }
    view_.b = b_.data();
    view_.c = c_.data();
    view_.cap = cap_.data();
    entry_c_.resize(static_cast<size_t>(p.nodes - p.roots));
    state_b_.resize(states - 1 - static_cast<size_t>(p.roots));
    under_.assign(states, 1.0);
    for (size_t k = 0; k < entry_c_.size(); ++k) entry_c_[k] = c_[p.entry_node[k]];
    for (size_t k = 0; k < state_b_.size(); ++k) state_b_[k] = b_[p.state_node[p.state_entry[k]]];
    for (int32_t k = 1 + p.roots; k < p.states; ++k) under_[k] = b_[p.state_inner[k] ? p.suffix[p.state_node[k]] : p.state_node[k]];
    view_.entry_c = entry_c_.data();
    view_.state_b = state_b_.data();
    view_.under = under_.data();
  }
  const PatternCoefficients& view() const { return view_; }
  const double* sums() const { return sum_.data(); }  // (nodes,) W
  bool fits() const { return top_ <= kMostWeight; }

 private:
  std::vector<double> sum_, b_, c_, cap_, entry_c_, state_b_, under_;
  double top_ = 0.0;
  PatternCoefficients view_;
};

// The first place in a block that begins a vector: loads that cross a cache line cost twice. Blocks have eight doubles
// to spare.
inline double* aligned(double* p) {
  return reinterpret_cast<double*>((reinterpret_cast<uintptr_t>(p) + 63) / 64 * 64);
}

// Tables of one thread for sum_difference.hpp.
class SumDifferenceTables {
 public:
  SumDifferenceView view;
  SumDifferenceWork work;
  std::vector<const PatternSetView*> sets;             // (length,)
  std::vector<const PatternCoefficients*> coefficients;  // (length,)
  double *u = nullptr, *posterior = nullptr;           // (length, labels, width)

  // after sets are given
  void layout(int64_t labels, int64_t width, bool bos) {
    const int64_t T = static_cast<int64_t>(sets.size());
    view.length = T;
    view.labels = labels;
    view.before = bos ? 2 : 1;
    at_.assign(static_cast<size_t>(T) + 1, 0);
    int64_t total = view.before + 1, nodes = 0, states = view.before, active = 0;
    for (int64_t t = 0; t < T; ++t) {
      at_[t + 1] = total;
      total += sets[t]->states + 1;
      nodes = std::max<int64_t>(nodes, sets[t]->nodes);
      states = std::max<int64_t>(states, sets[t]->states);
      active = std::max<int64_t>(active, sets[t]->active);
    }
    double* p = block_.take((total + nodes + 2 * (states + 1) + 2 * active + 3 + 2 * T * labels) * width + 8);
    p = aligned(p);
    const auto take = [&](int64_t n) {
      double* q = p;
      p += n * width;
      return q;
    };
    work.gamma = take(total);
    work.gamma_at = at_.data();
    work.x = take(nodes);
    work.delta[0] = take(states + 1);
    work.delta[1] = take(states + 1);
    work.beta_top = take(active);
    work.scaled_beta = take(active);
    work.log_z = take(1);
    work.z = take(1);
    work.kappa = take(1);
    u = take(T * labels);
    posterior = take(T * labels);
    view.u = u;
  }
  void finish() {
    view.sets = sets.data();
    view.coefficients = coefficients.data();
  }

 private:
  Workspace block_;
  std::vector<int64_t> at_;
};

// The same for one sequence whose sets are its own.
class LocalTables {
 public:
  LocalView view;
  LocalWork work;
  std::vector<LocalPatternsView> sets;               // (length,)
  double *u = nullptr, *posterior = nullptr;         // (length, labels)
  std::vector<double*> own, under, patterns;         // (length,) room for B (nodes,) and LocalView::under; answers
  std::vector<const double*> b;                      // (length,) of (nodes,): B, in `own` or elsewhere

  // after sets are given; pairs: the matrix of dense ones
  void layout(int64_t labels, bool bos, const PairMatrixView& pairs = {}) {
    const int64_t T = static_cast<int64_t>(sets.size());
    view.length = T;
    view.labels = labels;
    view.before = bos ? 2 : 1;
    view.pairs = pairs;
    at_.assign(static_cast<size_t>(T) + 1, 0);
    int64_t total = view.before, all = 0, nodes = pairs.stride, states = view.before;
    for (int64_t t = 0; t < T; ++t) {
      at_[t + 1] = total;
      total += sets[t].states;
      all += 3 * sets[t].nodes - sets[t].base->nodes + sets[t].pairs;
      nodes = std::max<int64_t>(nodes, sets[t].nodes);
      states = std::max<int64_t>(states, sets[t].states);
    }
    double* p = block_.take(total + all + 6 * nodes + 4 + 2 * states + 2 * T * (labels + pairs.stride));
    const auto take = [&](int64_t n) {
      double* q = p;
      p += n;
      return q;
    };
    work.gamma = take(total);
    work.gamma_at = at_.data();
    for (double** row : {&work.x, &work.beta, &work.top, &work.reach, &work.own}) *row = take(nodes);
    work.guard = take(nodes + 4);
    work.delta[0] = take(states);
    work.delta[1] = take(states);
    u = take(T * labels);
    posterior = take(T * labels);
    work.from = take(T * pairs.stride);
    work.to = take(T * pairs.stride);
    own.resize(static_cast<size_t>(T));
    under.resize(static_cast<size_t>(T));
    patterns.resize(static_cast<size_t>(T));
    b.resize(static_cast<size_t>(T));
    for (int64_t t = 0; t < T; ++t) {
      own[t] = take(sets[t].nodes);
      under[t] = take(sets[t].nodes - sets[t].base->nodes);
      patterns[t] = take(sets[t].nodes + sets[t].pairs);
      b[t] = own[t];
    }
    view.sets = sets.data();
    view.b = b.data();
    view.under = under.data();
    view.u = u;
  }
  // whether the guard lets the answers pass; log Z without what was taken out of u
  bool run() {
    kernels().sum_difference_local(view, work, posterior, patterns.data());
    return work.kappa <= kMostKappa;
  }

 private:
  Workspace block_;
  std::vector<int64_t> at_;
};

// Row of label scores -> e^{score - largest}; returns the largest. allowed (L,) or null. Minus infinity: nothing is
// possible, or the sum of such numbers would lose digits.
inline double exponentiate_row(const double* score, int64_t labels, const uint8_t* allowed, double* out) {
  double top = kMinusInfinity;
  for (int64_t y = 0; y < labels; ++y) {
    out[y] = allowed && !allowed[y] ? kMinusInfinity : score[y];
    top = std::max(top, out[y]);
  }
  if (!(std::abs(top) <= kTame)) {
    std::fill_n(out, labels, 0.0);
    return kMinusInfinity;
  }
  for (int64_t y = 0; y < labels; ++y) out[y] -= top;
  kernels().exp_array(out, labels, out);
  return top;
}

}  // namespace scansion
