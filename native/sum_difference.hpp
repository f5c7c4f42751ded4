// The Sum-Difference algorithm on position-dependent pattern sets (paper 002, algorithm 2, mended as in models.md,
// section 1), in scaled linear space: O(patterns alive) per position.
//
// With B(z) = e^{W(z)} without the score of z's last label y, u(y) = e^{that score}, s = suf(z), G(z) = gamma_{t-1}(pre z)
// and C(z) = B(z) - B(s), the paper's alpha and gamma give, alpha being eliminated,
//   D(z)       = C(z) G(z) + sum over children c of D(c)          [gamma(z) / u - B(s) G(z)]
//   gamma_t(z) = u(y) (B(s) G(z) + D(z)),   gamma_t(empty) = sum over labels
//   beta_t(z)  = delta_t(z) + beta_t(s)
//   delta_{t-1}(q) = sum over z with pre z = q of u(y) (C(z) beta_t(s) + B(z) delta_t(z))
// delta is the derivative of Z by gamma, beta that by alpha. Where weights are 0 the terms are exact zeros. Expectations:
//   P(y_t = y) = sum over states z ending in y of gamma_t(z) delta_t(z) + gamma_t(y) delta_t(empty)
//   F(z) = G(z) u(y) (C(z) beta(s) + B(z) delta(z)),  P(z at t) = B(s) G(z) u(y) beta(s) + F(z) + sum of F below z
// B and C are the same at all positions that share coefficients: only the sums over positions of G u beta(s) and
// G u delta(z) are kept there, and the last line is done once (expected_patterns in variable_order.hpp).
//
// The guard. All of this is linear, so to first order the error of Z or of an expectation is the sum over operations of
// (rounding error) x (derivative): at most a few eps times the largest of the terms
//   max(B(s), B(z), B(children)) G(z) u(y) max over suffixes of beta,   gamma(z) delta(z),
// beside Z = 1. That largest term is kappa; log10(kappa) digits are lost to cancellation. The caller recomputes a
// sequence with kappa > kMostKappa on the automaton, which only adds. It also bounds what underflow can take away.
//
// Sequences stand side by side in the lanes of a vector: all of them have the same sets at the same position.
#pragma once

#include "simd.hpp"

namespace scansion::SCANSION_ISA {

// One sequence, or kLanes of them.
struct Solo {
  double v;
};
inline Solo operator+(Solo a, Solo b) { return {a.v + b.v}; }
inline Solo operator*(Solo a, Solo b) { return {a.v * b.v}; }
inline Solo muladd(Solo a, Solo b, Solo c) { return {a.v * b.v + c.v}; }
inline Solo max(Solo a, Solo b) { return {a.v > b.v ? a.v : b.v}; }

template <class V>
struct Lanes;
template <>
struct Lanes<Solo> {
  static constexpr int64_t width = 1;
  static Solo load(const double* p) { return {*p}; }
  static void store(double* p, Solo a) { *p = a.v; }
  static Solo splat(double x) { return {x}; }
};
template <>
struct Lanes<Vec> {
  static constexpr int64_t width = kLanes;
  static Vec load(const double* p) { return SCANSION_ISA::load(p); }
  static void store(double* p, Vec a) { SCANSION_ISA::store(p, a); }
  static Vec splat(double x) { return SCANSION_ISA::splat(x); }
};

template <class V>
class SumDifference {
  using L = Lanes<V>;
  static constexpr int64_t W = L::width;
  static V at(const double* p, int64_t i) { return L::load(p + i * W); }
  static void put(double* p, int64_t i, V x) { L::store(p + i * W, x); }

 public:
  SumDifference(const SumDifferenceView& view, SumDifferenceWork& work) : s(view), w(work) {}

  // gamma of all positions; w.z, w.log_z (without what was taken out of u), w.kappa = 0, or infinite: give up
  void forward() const {
    Scale scale[W];
    for (int64_t i = 0; i < W; ++i) w.z[i] = 0.0, w.kappa[i] = 0.0, w.log_z[i] = -kInfinity;
    double* start = w.gamma;
    for (int64_t q = 0; q < s.before; ++q) put(start, q, L::splat(1.0));
    put(start, s.before, L::splat(0.0));
    for (int64_t t = 0; t < s.length; ++t) {
      // copies: stores of vectors may alias anything, so that the compiler would read a view's fields again and again
      const PatternSetView p = *s.sets[t];
      const PatternCoefficients c = *s.coefficients[t];
      const double* g = w.gamma + w.gamma_at[t] * W;
      double* out = w.gamma + w.gamma_at[t + 1] * W;
      double* u = s.u + t * s.labels * W;
      double* x = w.x;
      for (int32_t n = p.roots; n < p.nodes; ++n) put(x, n, L::splat(c.c[n]) * at(g, p.prefix[n]));
      for (int32_t i = p.inner - 1; i >= 0; --i) {
        const int32_t n = p.inner_node[i], last = p.children[n + 1];
        V sum = at(x, n);
        for (int32_t k = p.children[n]; k < last; ++k) sum = sum + at(x, k);
        put(x, n, sum);
      }
      V total = L::splat(0.0);
      const V before = at(g, 0);
      for (int32_t r = 0; r < p.roots; ++r) {
        V sum = before;
        const int32_t last = p.children[r + 1];
        for (int32_t k = p.children[r]; k < last; ++k) sum = sum + at(x, k);
        sum = sum * at(u, r);
        put(out, 1 + r, sum);
        total = total + sum;
      }
      double totals[W], factors[W];
      L::store(totals, total);
      for (int64_t i = 0; i < W; ++i) {
        const bool fine = totals[i] > 1e-290 && totals[i] < 1e290;
        const int e = fine ? exponent_of(totals[i]) : 0;
        factors[i] = two_to(-e);
        if (t >= s.stop[i]) continue;
        add(scale[i], e * kLn2);
        if (!fine) w.kappa[i] = kInfinity;
        if (t == s.stop[i] - 1 && fine) {
          w.z[i] = totals[i] * factors[i];
          Scale last = scale[i];
          add(last, std::log(w.z[i]));
          w.log_z[i] = value(last);
        }
      }
      const V f = L::load(factors);
      put(out, 0, total * f);
      for (int32_t r = 0; r < p.roots; ++r) {
        const V v = at(u, r) * f;
        put(out, 1 + r, at(out, 1 + r) * f);
        put(u, r, v);
        for (int32_t k = p.label_states[r]; k < p.label_states[r + 1]; ++k) {
          const int32_t n = p.state_node[k];
          const double b = c.under ? c.under[k] : c.b[p.suffix[n]];
          put(out, k, v * muladd(L::splat(b), at(g, p.prefix[n]), at(x, n)));
        }
      }
      put(out, p.states, L::splat(0.0));
    }
  }

  // After forward(): w.kappa and, with `answer`, the posteriors of labels (length, labels, width), sums[t] of
  // positions that share coefficients, and patterns[t] (nodes,) where they do not (one sequence only).
  void backward(bool answer, double* posterior, const PatternSums* const* sums, double* const* patterns) const {
    if (s.length == 0) return;
    double* delta = w.delta[0];
    double* earlier = w.delta[1];
    const V factor = L::load(s.factor);
    for (int32_t k = 0; k <= s.sets[s.length - 1]->states; ++k) put(delta, k, L::splat(0.0));
    V kappa = L::load(w.kappa);
    bool failed[W] = {};
    for (int64_t t = s.length - 1; t >= 0; --t) {
      const PatternSetView p = *s.sets[t];
      const PatternCoefficients c = *s.coefficients[t];
      const double* g = w.gamma + w.gamma_at[t] * W;
      const double* gamma = w.gamma + w.gamma_at[t + 1] * W;
      const double* u = s.u + t * s.labels * W;
      double* row = answer ? posterior + t * s.labels * W : nullptr;
      double* ub = w.scaled_beta;
      double* top = w.beta_top;
      for (int64_t i = 0; i < W; ++i)
        if (t == s.stop[i] - 1 && w.z[i] > 0.0) delta[i] = 1.0 / w.z[i];

      // u delta and u beta; all of Z passes through the states of a position
      const V empty = at(delta, 0);
      V whole = empty * at(gamma, 0);
      kappa = max(kappa, whole);
      for (int32_t r = 0; r < p.roots; ++r) {
        const V v = at(u, r), d = at(delta, 1 + r), mine = at(gamma, 1 + r);
        V mass = mine * d;
        whole = whole + mass;
        kappa = max(kappa, mass);
        mass = muladd(mine, empty, mass);
        const V beta = v * (empty + d), most = max(v * empty, beta);
        put(delta, 1 + r, v * d);
        put(ub, r, beta);
        put(top, r, most);
        kappa = max(kappa, L::splat(c.cap[r]) * at(g, 0) * most);
        for (int32_t k = p.label_states[r]; k < p.label_states[r + 1]; ++k) {
          const V e = at(delta, k), m = at(gamma, k) * e;
          mass = mass + m;
          whole = whole + m;
          kappa = max(kappa, m);
          put(delta, k, v * e);
        }
        if (row) put(row, r, factor * mass);
      }
      for (int32_t i = p.roots; i < p.active; ++i) {
        const int32_t from = p.active_suffix[i];
        const V beta = at(ub, from) + at(delta, p.active_state[i]), most = max(at(top, from), beta);
        put(ub, i, beta);
        put(top, i, most);
        kappa = max(kappa, L::splat(c.cap[i]) * at(g, p.active_prefix[i]) * most);
      }
      double wholes[W];
      L::store(wholes, whole);
      for (int64_t i = 0; i < W; ++i)
        if (t < s.stop[i] && !(wholes[i] > 0.999 && wholes[i] < 1.001)) failed[i] = true;
      if (answer && patterns) pattern_posteriors(p, c, g, delta, patterns[t]);

      // to the position before
      V sum = L::splat(0.0);
      for (int32_t r = 0; r < p.roots; ++r) sum = sum + at(ub, r);
      if (answer && sums) {
        sums_and_deltas(p, c, g, factor, delta, *sums[t], earlier);
      } else {
        for (int32_t j = 0; j < p.before; ++j) {
          V acc = L::splat(0.0);
          for (int32_t k = p.entries[j]; k < p.entries[j + 1]; ++k)
            acc = muladd(L::splat(c.entry_c ? c.entry_c[k] : c.c[p.entry_node[k]]), at(ub, p.entry_suffix[k]), acc);
          for (int32_t k = p.state_entries[j]; k < p.state_entries[j + 1]; ++k) {
            const int32_t state = p.state_entry[k];
            acc = muladd(L::splat(c.state_b ? c.state_b[k] : c.b[p.state_node[state]]), at(delta, state), acc);
          }
          put(earlier, p.slot_state[j], acc);
        }
      }
      put(earlier, 0, at(earlier, 0) + sum);
      put(earlier, p.before, L::splat(0.0));
      double* last = delta;
      delta = earlier;
      earlier = last;
    }
    double gone[W];
    for (int64_t i = 0; i < W; ++i) gone[i] = w.kappa[i];  // infinite: forward() gave up
    L::store(w.kappa, kappa);
    for (int64_t i = 0; i < W; ++i)
      if (gone[i] == kInfinity) w.kappa[i] = kInfinity;
    for (int64_t i = 0; i < W; ++i)
      if (failed[i] || !(w.kappa[i] >= 0.0)) w.kappa[i] = kInfinity;
  }

 private:
  // what backward() does to the position before, with the sums of shared coefficients along the way
  void sums_and_deltas(const PatternSetView p, const PatternCoefficients c, const double* g, V factor,
                       const double* delta, const PatternSums sums, double* earlier) const {
    const double* ub = w.scaled_beta;
    for (int32_t j = 0; j < p.before; ++j) {
      V acc = L::splat(0.0);
      const int32_t q = p.slot_state[j], last = p.entries[j + 1], last_state = p.state_entries[j + 1];
      const V weight = factor * at(g, q);
      for (int32_t k = p.entries[j]; k < last; ++k) {
        const V x = at(ub, p.entry_suffix[k]);
        acc = muladd(L::splat(c.entry_c[k]), x, acc);
        put(sums.entry, k, muladd(weight, x, at(sums.entry, k)));
      }
      for (int32_t k = p.state_entries[j]; k < last_state; ++k) {
        const V x = at(delta, p.state_entry[k]);
        acc = muladd(L::splat(c.state_b[k]), x, acc);
        put(sums.state, k, muladd(weight, x, at(sums.state, k)));
      }
      put(earlier, q, acc);
    }
  }

  // P(z at t) for all nodes, from G, u delta and u beta
  void pattern_posteriors(const PatternSetView p, const PatternCoefficients c, const double* g, const double* delta,
                          double* out) const {
    for (int32_t n = p.roots; n < p.nodes; ++n) {
      const V v = at(w.scaled_beta, p.node_active[p.suffix[n]]), before = at(g, p.prefix[n]);
      const V f = before * muladd(L::splat(c.c[n]), v, L::splat(c.b[n]) * at(delta, p.node_state[n]));
      put(w.x, n, f);
      put(out, n, muladd(L::splat(c.b[p.suffix[n]]), before * v, f));
    }
    for (int32_t i = p.inner - 1; i >= 0; --i) {
      const int32_t n = p.inner_node[i];
      V sum = L::splat(0.0);
      for (int32_t k = p.children[n]; k < p.children[n + 1]; ++k) sum = sum + at(w.x, k);
      put(w.x, n, at(w.x, n) + sum);
      put(out, n, at(out, n) + sum);
    }
  }

  const SumDifferenceView& s;
  SumDifferenceWork& w;
};

}  // namespace scansion::SCANSION_ISA
