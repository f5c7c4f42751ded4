// Chains of any order by the Sum-Difference algorithm (sum_difference.hpp): from encoded sequences and weights to the
// log loss and its gradient. What is built once for a data set: which patterns live where (pattern_sets.hpp), and the
// features of tokens on longer patterns as lists of (node, weight).
//
// Where the features of longer patterns are always-on ones, e^W is the same everywhere: it is computed once for an
// evaluation, four sequences go side by side, and expectations are added up before they are taken apart. Otherwise e^W
// belongs to a position.
//
// A sequence that the guard refuses (kappa, see sum_difference.hpp) is recomputed on the automaton, and counted.
#pragma once

#include <atomic>
#include <cmath>

#include "flat_model.hpp"
#include "pattern_sets.hpp"

namespace scansion {

constexpr double kMostKappa = 1e4;    // four digits of a difference may go; 1e-9 in log Z needs seven
constexpr double kMostWeight = 300.0;  // largest W whose exponential leaves room for products

// e^W of a set's nodes, with what the sweeps read.
class Coefficients {
 public:
  // w (nodes,): scores, roots 0. contiguous: copies in the order of the sweeps
  void compute(const PatternSetView& p, const double* w, bool contiguous) {
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
    if (!contiguous) return;
    entry_c_.resize(static_cast<size_t>(p.nodes - p.roots));
    state_b_.resize(states - 1 - static_cast<size_t>(p.roots));
    under_.assign(states, 1.0);
    for (size_t k = 0; k < entry_c_.size(); ++k) entry_c_[k] = c_[p.entry_node[k]];
    for (size_t k = 0; k < state_b_.size(); ++k) state_b_[k] = b_[p.state_node[p.state_entry[k]]];
    for (int32_t k = 1 + p.roots; k < p.states; ++k) under_[k] = b_[p.suffix[p.state_node[k]]];
    view_.entry_c = entry_c_.data();
    view_.state_b = state_b_.data();
    view_.under = under_.data();
  }
  const PatternCoefficients& view() const { return view_; }
  bool fits() const { return top_ <= kMostWeight; }

 private:
  std::vector<double> sum_, b_, c_, cap_, entry_c_, state_b_, under_;
  double top_ = 0.0;
  PatternCoefficients view_;
};

// Tables of one thread for sum_difference.hpp.
class SumDifferenceTables {
 public:
  SumDifferenceView view;
  SumDifferenceWork work;
  std::vector<const PatternSetView*> sets;             // (length,)
  std::vector<const PatternCoefficients*> coefficients;  // (length,)
  std::vector<double> u, posterior;                    // (length, labels, width)

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
    double* p = block_.take((total + nodes + 2 * (states + 1) + 3 * active + 3) * width);
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
    work.beta = take(active);
    work.beta_top = take(active);
    work.scaled_beta = take(active);
    work.log_z = take(1);
    work.z = take(1);
    work.kappa = take(1);
    u.resize(static_cast<size_t>(T * labels * width));
    posterior.resize(u.size());
    view.u = u.data();
  }
  void finish() {
    view.sets = sets.data();
    view.coefficients = coefficients.data();
  }

 private:
  Workspace block_;
  std::vector<int64_t> at_;
};

// Row of label scores -> e^{score - largest}; returns the largest. allowed (L,) or null.
inline double exponentiate_row(const double* score, int64_t labels, const uint8_t* allowed, double* out) {
  double top = kMinusInfinity;
  for (int64_t y = 0; y < labels; ++y) {
    out[y] = allowed && !allowed[y] ? kMinusInfinity : score[y];
    top = std::max(top, out[y]);
  }
  if (!(top > kMinusInfinity)) {
    std::fill_n(out, labels, 0.0);
    return kMinusInfinity;
  }
  for (int64_t y = 0; y < labels; ++y) out[y] -= top;
  kernels().exp_array(out, labels, out);
  return top;
}

// One lattice on given scores of patterns, for tests and for whoever has no features: score(y) is the sum over t and
// over patterns z that match at t of scores[t, z]. fires (T, P) or null: where patterns live; elsewhere scores are not
// read. Returns log Z and fills posteriors (T, P); false: the guard refuses, kappa says why.
inline bool sum_difference_lattice(const PatternAutomaton& net, const double* scores, const uint8_t* fires, int64_t T,
                                   const uint8_t* allowed, double& log_z, double* posteriors, double& kappa) {
  const int64_t P = net.patterns(), L = net.labels();
  std::vector<uint8_t> always(static_cast<size_t>(P), fires ? 0 : 1);
  PatternSets sets(net, always);
  const PatternStrings& all = sets.strings();
  std::vector<std::vector<int32_t>> fired(static_cast<size_t>(T) + 1);
  if (fires)
    for (int64_t t = 0; t < T; ++t)
      for (int64_t z = 0; z < P; ++z) {
        if (!fires[t * P + z] || net.pattern_length(z) == 1) continue;
        if (net.ends(z)) {
          const int32_t body = all.prefix(all.string(z));
          if (t == T - 1 && (body == all.root() || all.fits(body, t))) fired[T].push_back(all.string(z));
        } else if (all.fits(all.string(z), t)) {
          fired[t].push_back(all.string(z));
        }
      }
  for (auto& f : fired) std::sort(f.begin(), f.end());
  const std::vector<int32_t> which = sets.sequence(T, fired);
  SumDifferenceTables tables;
  std::vector<Coefficients> coefficients(which.size());
  for (size_t t = 0; t < which.size(); ++t) tables.sets.push_back(&sets.set(which[t]).view());
  tables.layout(L, 1, all.any_bos());
  std::vector<double> w;
  std::vector<std::vector<double>> patterns(which.size());
  std::vector<double*> pattern_rows;
  bool fits = true;
  for (size_t t = 0; t < which.size(); ++t) {
    const PatternSet& set = sets.set(which[t]);
    const int64_t from = std::min<int64_t>(static_cast<int64_t>(t), T - 1);
    w.assign(static_cast<size_t>(set.view().nodes), 0.0);
    for (int32_t n = set.view().roots; n < set.view().nodes; ++n) {
      const int32_t z = set.pattern(n);
      if (z >= 0 && (!fires || fires[from * P + z])) w[n] = scores[from * P + z];
    }
    coefficients[t].compute(set.view(), w.data(), false);
    fits = fits && coefficients[t].fits();
    tables.coefficients.push_back(&coefficients[t].view());
    patterns[t].assign(w.size(), 0.0);
    pattern_rows.push_back(patterns[t].data());
  }
  tables.finish();
  std::vector<int32_t> label_pattern(static_cast<size_t>(L), -1);
  for (int64_t z = 0; z < P; ++z)
    if (net.pattern_length(z) == 1) label_pattern[net.pattern_label(z)] = static_cast<int32_t>(z);
  std::vector<double> row(static_cast<size_t>(L));
  double shift = 0.0;
  for (int64_t t = 0; t < static_cast<int64_t>(which.size()); ++t) {
    double* u = tables.u.data() + t * L;
    if (t == T) {
      std::fill_n(u, L, 1.0);
      continue;
    }
    for (int64_t y = 0; y < L; ++y) {
      const int32_t z = label_pattern[y];
      row[y] = z >= 0 && (!fires || fires[t * P + z]) ? scores[t * P + z] : 0.0;
    }
    shift += exponentiate_row(row.data(), L, allowed ? allowed + t * L : nullptr, u);
  }
  const int64_t stop = static_cast<int64_t>(which.size());
  const double factor = 1.0;
  tables.view.stop = &stop;
  tables.view.factor = &factor;
  kappa = std::numeric_limits<double>::infinity();
  if (!fits) return false;
  kernels().sum_difference_forward(tables.view, tables.work, false);
  kernels().sum_difference_backward(tables.view, tables.work, false, true, tables.posterior.data(), nullptr,
                                    pattern_rows.data());
  kappa = *tables.work.kappa;
  log_z = *tables.work.log_z + shift;
  std::fill_n(posteriors, T * P, 0.0);
  for (int64_t t = 0; t < stop; ++t) {
    const PatternSet& set = sets.set(which[t]);
    const int64_t to = std::min(t, T - 1);
    for (int32_t n = set.view().roots; n < set.view().nodes; ++n)
      if (set.pattern(n) >= 0) posteriors[to * P + set.pattern(n)] += patterns[t][n];
    for (int64_t y = 0; t < T && y < L; ++y)
      if (label_pattern[y] >= 0) posteriors[t * P + label_pattern[y]] = tables.posterior[t * L + y];
  }
  return kappa <= kMostKappa;
}

}  // namespace scansion
