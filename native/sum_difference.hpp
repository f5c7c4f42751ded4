// The Sum-Difference algorithm on position-dependent pattern sets (paper 002, algorithm 2, mended as in docs/notation.md,
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
// Where B and C are the same at all positions of a set, only the sums over positions of G u beta(s) and G u delta(z) are
// kept, and the last line is done once (fold_sums in variable_order.hpp).
//
// The guard. All of this is linear, so to first order the error of Z or of an expectation is the sum over operations of
// (rounding error) x (derivative): at most a few eps times the largest of the terms
//   max(B(s), B(z), B(children)) G(z) u(y) max over suffixes of beta,   gamma(z) delta(z),
// beside Z = 1, the first of nodes with children only: of a leaf gamma = u B G needs no difference. That largest term is kappa; log10(kappa) digits are lost to cancellation. The caller recomputes a
// sequence with kappa > kMostKappa on the automaton, which only adds. It also bounds what underflow can take away.
//
// SumDifference: sequences side by side in the lanes of a vector, with the same sets and coefficients at the same
// position. LocalSumDifference: one sequence, whose sets and coefficients are its own.
//
// Dense sets. Where all longer patterns of the base are pairs of labels, they are a matrix M of B, 1 for pairs without
// a feature, and the base is a first-order chain:
//   gamma_t(y) = u(y) (sum over y' of M(y', y) gamma_{t-1}(y') + sum over children c of D(c))
// A pair is a node only if an attribute is tied to it here, a longer node ends in it, or the next position asks for it;
// as M has counted it already, M(y', y) takes the place of B(s) in its C and gamma, and in the guard. P(y' y) of other
// pairs is M G u beta, summed over positions as an outer product; what nodes of pairs have beyond that is added.
#pragma once

#include "chain.hpp"
#include "simd.hpp"

namespace scansion::SCANSION_ISA {

class SumDifference {
  static constexpr int64_t W = kLanes;
  static Vec at(const double* p, int64_t i) { return load(p + i * W); }
  static void put(double* p, int64_t i, Vec x) { store(p + i * W, x); }

 public:
  SumDifference(const SumDifferenceView& view, SumDifferenceWork& work) : s(view), w(work) {}

  // gamma of all positions; w.z, w.log_z (without what was taken out of u), w.kappa = 0, or infinite: give up
  void forward() const {
    Scale scale[W];
    for (int64_t i = 0; i < W; ++i) w.z[i] = 0.0, w.kappa[i] = 0.0, w.log_z[i] = kMinusInfinity;
    double* start = w.gamma;
    for (int64_t q = 0; q < s.before; ++q) put(start, q, splat(1.0));
    put(start, s.before, splat(0.0));
    for (int64_t t = 0; t < s.length; ++t) {
      // copies: stores of vectors may alias anything, so that the compiler would read a view's fields again and again
      const PatternSetView p = *s.sets[t];
      const PatternCoefficients c = *s.coefficients[t];
      const double* g = w.gamma + w.gamma_at[t] * W;
      double* out = w.gamma + w.gamma_at[t + 1] * W;
      double* u = s.u + t * s.labels * W;
      double* x = w.x;
      // D of inner nodes; those of leaves are not kept. x[0] stays 0, for states that are leaves
      const auto children = [&](int32_t n, Vec sum) {
        const int32_t leaf = p.leaves[n], last = p.children[n + 1];
        for (int32_t k = p.children[n]; k < leaf; ++k) sum = sum + at(x, k);
        for (int32_t k = leaf; k < last; ++k) sum = muladd(splat(c.c[k]), at(g, p.prefix[k]), sum);
        return sum;
      };
      put(x, 0, splat(0.0));
      for (int32_t i = p.inner - 1; i >= 0; --i) {
        const int32_t n = p.inner_node[i];
        put(x, n, children(n, splat(c.c[n]) * at(g, p.prefix[n])));
      }
      Vec total = splat(0.0);
      const Vec before = at(g, 0);
      for (int32_t r = 0; r < p.roots; ++r) {
        const Vec sum = children(r, before) * at(u, r);
        put(out, 1 + r, sum);
        total = total + sum;
      }
      double totals[W], factors[W];
      store(totals, total);
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
      const Vec f = load(factors);
      put(out, 0, total * f);
      for (int32_t r = 0; r < p.roots; ++r) {
        const Vec v = at(u, r) * f;
        put(out, 1 + r, at(out, 1 + r) * f);
        put(u, r, v);
        for (int32_t k = p.label_states[r]; k < p.label_states[r + 1]; ++k) {
          const int32_t n = p.state_node[k];
          put(out, k, v * muladd(splat(c.under[k]), at(g, p.prefix[n]), at(x, p.state_inner[k])));
        }
      }
      put(out, p.states, splat(0.0));
    }
  }

  // After forward(): w.kappa and, with `answer`, the posteriors of labels (length, labels, width) and sums[t] of the set
  // at t.
  void backward(bool answer, double* posterior, const PatternSums* const* sums) const {
    if (s.length == 0) return;
    double* delta = w.delta[0];
    double* earlier = w.delta[1];
    const Vec factor = load(s.factor);
    for (int32_t k = 0; k <= s.sets[s.length - 1]->states; ++k) put(delta, k, splat(0.0));
    Vec kappa = load(w.kappa);
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
      const Vec empty = at(delta, 0);
      Vec whole = empty * at(gamma, 0);
      kappa = max(kappa, whole);
      for (int32_t r = 0; r < p.roots; ++r) {
        const Vec v = at(u, r), d = at(delta, 1 + r), mine = at(gamma, 1 + r);
        Vec mass = mine * d;
        kappa = max(kappa, mass);
        const Vec beta = v * (empty + d), most = max(v * empty, beta);
        put(delta, 1 + r, v * d);
        put(ub, r, beta);
        put(top, r, most);
        kappa = max(kappa, splat(c.cap[r]) * at(g, 0) * most);
        for (int32_t k = p.label_states[r]; k < p.label_states[r + 1]; ++k) {
          const Vec e = at(delta, k), m = at(gamma, k) * e;
          mass = mass + m;
          kappa = max(kappa, m);
          put(delta, k, v * e);
        }
        whole = whole + mass;
        if (row) put(row, r, factor * muladd(mine, empty, mass));
      }
      for (int32_t i = p.roots; i < p.active; ++i) {
        const int32_t from = p.active_suffix[i];
        const Vec beta = at(ub, from) + at(delta, p.active_state[i]), most = max(at(top, from), beta);
        put(ub, i, beta);
        put(top, i, most);
        kappa = max(kappa, splat(c.cap[i]) * at(g, p.active_prefix[i]) * most);
      }
      double wholes[W];
      store(wholes, whole);
      for (int64_t i = 0; i < W; ++i)
        if (t < s.stop[i] && !(wholes[i] > 0.999 && wholes[i] < 1.001)) failed[i] = true;

      // to the position before
      Vec sum = splat(0.0);
      for (int32_t r = 0; r < p.roots; ++r) sum = sum + at(ub, r);
      if (answer) {
        sums_and_deltas(p, c, g, factor, delta, *sums[t], earlier);
      } else {
        for (int32_t j = 0; j < p.before; ++j) {
          Vec acc = splat(0.0);
          for (int32_t k = p.entries[j]; k < p.entries[j + 1]; ++k)
            acc = muladd(splat(c.entry_c[k]), at(ub, p.entry_suffix[k]), acc);
          for (int32_t k = p.state_entries[j]; k < p.state_entries[j + 1]; ++k)
            acc = muladd(splat(c.state_b[k]), at(delta, p.state_entry[k]), acc);
          put(earlier, p.slot_state[j], acc);
        }
      }
      put(earlier, 0, at(earlier, 0) + sum);
      put(earlier, p.before, splat(0.0));
      double* last = delta;
      delta = earlier;
      earlier = last;
    }
    double gone[W];
    for (int64_t i = 0; i < W; ++i) gone[i] = w.kappa[i];  // infinite: forward() gave up
    store(w.kappa, kappa);
    for (int64_t i = 0; i < W; ++i)
      if (gone[i] == kInfinity) w.kappa[i] = kInfinity;
    for (int64_t i = 0; i < W; ++i)
      if (failed[i] || !(w.kappa[i] >= 0.0)) w.kappa[i] = kInfinity;
  }

 private:
  // what backward() does to the position before, with the sums of shared coefficients along the way
  void sums_and_deltas(const PatternSetView p, const PatternCoefficients c, const double* g, Vec factor,
                       const double* delta, const PatternSums sums, double* earlier) const {
    const double* ub = w.scaled_beta;
    for (int32_t j = 0; j < p.before; ++j) {
      Vec acc = splat(0.0);
      const int32_t q = p.slot_state[j], last = p.entries[j + 1], last_state = p.state_entries[j + 1];
      const Vec weight = factor * at(g, q);
      for (int32_t k = p.entries[j]; k < last; ++k) {
        const Vec x = at(ub, p.entry_suffix[k]);
        acc = muladd(splat(c.entry_c[k]), x, acc);
        put(sums.entry, k, muladd(weight, x, at(sums.entry, k)));
      }
      for (int32_t k = p.state_entries[j]; k < last_state; ++k) {
        const Vec x = at(delta, p.state_entry[k]);
        acc = muladd(splat(c.state_b[k]), x, acc);
        put(sums.state, k, muladd(weight, x, at(sums.state, k)));
      }
      put(earlier, q, acc);
    }
  }

  const SumDifferenceView& s;
  SumDifferenceWork& w;
};

class LocalSumDifference {
 public:
  LocalSumDifference(const LocalView& view, LocalWork& work) : s(view), w(work) {}

  // as SumDifference::forward
  void forward() const {
    Scale scale;
    w.z = 0.0, w.kappa = 0.0, w.log_z = kMinusInfinity;
    for (int64_t q = 0; q < s.before; ++q) w.gamma[q] = 1.0;
    for (int64_t t = 0; t < s.length; ++t) {
      const LocalPatternsView p = s.sets[t];
      const PatternSetView base = *p.base;
      const double *b = s.b[t], *under = s.under[t], *g = w.gamma + w.gamma_at[t];
      double *out = w.gamma + w.gamma_at[t + 1], *u = s.u + t * s.labels, *x = w.x;
      if (p.dense)
        matvec(s.pairs.weight, base.roots, s.pairs.stride, g + 1, x);
      else
        for (int32_t r = 0; r < base.roots; ++r) x[r] = g[0];
      for (int32_t n = base.roots; n < base.nodes; ++n) x[n] = (b[n] - b[base.suffix[n]]) * g[base.prefix[n]];
      for (int32_t i = 0, n = base.nodes; n < p.nodes; ++i, ++n) x[n] = (b[n] - under[i]) * g[p.prefix[i]];
      add_below(p, base, x);
      double total = 0.0;
      for (int32_t r = 0; r < base.roots; ++r) total += x[r] * u[r];
      if (!(total > 1e-290 && total < 1e290)) {
        w.kappa = kInfinity;
        return;
      }
      const int e = exponent_of(total);
      const double f = two_to(-e);
      add(scale, e * kLn2);
      out[0] = total * f;
      for (int32_t r = 0; r < base.roots; ++r) {
        u[r] *= f;
        out[1 + r] = x[r] * u[r];
      }
      for (int32_t k = 1 + base.roots; k < base.states; ++k) {
        const int32_t n = base.state_node[k];
        out[k] = u[base.label[n]] * (b[base.suffix[n]] * g[base.prefix[n]] + x[n]);
      }
      for (int32_t i = 0, k = base.states; k < p.states; ++i, ++k) {
        const int32_t n = p.state_node[i], j = n - base.nodes;
        const double before = j < 0 ? b[base.suffix[n]] * g[base.prefix[n]] : under[j] * g[p.prefix[j]];
        out[k] = u[p.state_label[i]] * (before + x[n]);
      }
    }
    if (s.length == 0) return;
    w.z = w.gamma[w.gamma_at[s.length]];
    add(scale, std::log(w.z));
    w.log_z = value(scale);
  }

  // After forward(): w.kappa, the posteriors of labels (length, labels) and of patterns: patterns[t] (nodes,), where
  // roots are not written, then (pairs,) what those of pairs have beyond the matrix's part; w.from and w.to. Nothing if
  // forward() gave up.
  void backward(double* posterior, double* const* patterns) const {
    if (s.length == 0 || w.kappa == kInfinity) return;
    double *delta = w.delta[0], *earlier = w.delta[1];
    double *x = w.x, *beta = w.beta, *top = w.top, *reach = w.reach, *guard = w.guard, *own = w.own;
    // own: u delta of a node; reach: G times the largest beta of a node and its suffixes; guard: terms of kappa
    for (int32_t k = 0; k < s.sets[s.length - 1].states; ++k) delta[k] = 0.0;
    delta[0] = 1.0 / w.z;
    double kappa = 0.0;
    const auto most = [&kappa](double a) { kappa = a > kappa ? a : kappa; };
    bool failed = false;
    for (int64_t t = s.length - 1; t >= 0; --t) {
      const LocalPatternsView p = s.sets[t];
      const PatternSetView base = *p.base;
      const double *b = s.b[t], *under = s.under[t];
      const double *g = w.gamma + w.gamma_at[t], *gamma = w.gamma + w.gamma_at[t + 1];
      const double* u = s.u + t * s.labels;
      double *row = posterior + t * s.labels, *out = patterns[t];
      const int32_t before = t ? s.sets[t - 1].states : static_cast<int32_t>(s.before);
      for (int32_t n = 0; n < p.nodes; ++n) own[n] = 0.0;

      double whole = delta[0] * gamma[0];
      most(whole);
      const auto state = [&](int32_t k, int32_t n, int32_t label) {
        const double mass = gamma[k] * delta[k];
        whole += mass;
        most(mass);
        row[label] += mass;
        own[n] = u[label] * delta[k];
      };
      for (int32_t r = 0; r < base.roots; ++r) row[r] = gamma[1 + r] * delta[0];
      for (int32_t r = 0; r < base.roots; ++r) state(1 + r, r, r);
      for (int32_t k = 1 + base.roots; k < base.states; ++k)
        state(k, base.state_node[k], base.label[base.state_node[k]]);
      for (int32_t i = 0, k = base.states; k < p.states; ++i, ++k) state(k, p.state_node[i], p.state_label[i]);
      failed = failed || !(whole > 0.999 && whole < 1.001);

      double sum = 0.0;
      for (int32_t r = 0; r < base.roots; ++r) {
        beta[r] = u[r] * delta[0] + own[r];
        top[r] = max(u[r] * delta[0], beta[r]);
        reach[r] = g[0] * top[r];
        guard[r] = p.dense ? s.pairs.cap[r] * reach[r] : reach[r];
        sum += beta[r];
        out[r] = 0.0;
      }
      earlier[0] = p.dense ? 0.0 : sum;
      for (int32_t k = 1; k < before; ++k) earlier[k] = 0.0;
      if (s.pairs.stride) pairs_before(p, t, g, earlier);
      for (int32_t r = 0; r < base.roots; ++r) x[r] = 0.0;
      // a node below `above`, whose B is `less` (of a pair the matrix's)
      const auto node = [&](int32_t n, int32_t above, int32_t prefix, double less) {
        const double mine = b[n], weight = g[prefix];
        beta[n] = beta[above] + own[n];
        top[n] = max(top[above], beta[n]);
        reach[n] = weight * top[n];
        guard[n] = max(max(mine, less) * reach[n], mine * reach[above]);
        const double v = (mine - less) * beta[above] + mine * own[n];
        earlier[prefix] += v;
        x[n] = weight * v;
        out[n] = less * weight * beta[above];
      };
      for (int32_t n = base.roots; n < base.nodes; ++n) node(n, base.suffix[n], base.prefix[n], b[base.suffix[n]]);
      for (int32_t i = 0, n = base.nodes; n < p.nodes; ++i, ++n) node(n, p.suffix[i], p.prefix[i], under[i]);
      most(largest(guard, p.nodes));
      add_below(p, base, x);
      for (int32_t n = base.roots; n < p.nodes; ++n) out[n] += x[n];
      for (int32_t i = 0; i < p.pairs; ++i) out[p.nodes + i] = x[base.nodes + i];
      double* last = delta;
      delta = earlier;
      earlier = last;
    }
    w.kappa = failed || !(kappa < kInfinity) ? kInfinity : kappa;
  }

 private:
  static double max(double a, double b) { return a > b ? a : b; }
  // of n numbers, room for a vector behind them
  static double largest(double* x, int64_t n) {
    store(x + n, splat(0.0));
    Vec m = splat(0.0);
    for (int64_t i = 0; i < n; i += kLanes) m = scansion::SCANSION_ISA::max(load(x + i), m);
    return horizontal_max(m);
  }
  // the matrix's part of delta at the position before t, and the rows of w.from and w.to
  void pairs_before(const LocalPatternsView& p, int64_t t, const double* g, double* earlier) const {
    const int64_t stride = s.pairs.stride;
    double *from = w.from + t * stride, *to = w.to + t * stride;
    const int64_t labels = p.dense ? s.labels : 0;
    for (int64_t r = 0; r < labels; ++r) from[r] = g[1 + r], to[r] = w.beta[r];
    for (int64_t r = labels; r < stride; ++r) from[r] = to[r] = 0.0;
    if (!p.dense) return;
    matvec(s.pairs.transposed, labels, stride, to, w.x);
    for (int64_t r = 0; r < labels; ++r) earlier[1 + r] = w.x[r];
  }
  // x (nodes,) += that of all nodes below
  static void add_below(const LocalPatternsView& p, const PatternSetView& base, double* x) {
    for (int32_t n = p.nodes - 1; n >= base.nodes; --n) x[p.suffix[n - base.nodes]] += x[n];
    if (base.nodes == base.roots) return;
    for (int32_t i = base.inner - 1; i >= -base.roots; --i) {
      const int32_t n = i < 0 ? i + base.roots : base.inner_node[i];
      double sum = x[n];
      for (int32_t k = base.children[n]; k < base.children[n + 1]; ++k) sum += x[k];
      x[n] = sum;
    }
  }

  const LocalView& s;
  LocalWork& w;
};

}  // namespace scansion::SCANSION_ISA
