// One lattice by the Sum-Difference algorithm, on given scores of patterns.
#pragma once

#include <limits>

#include "numeric.hpp"
#include "pattern_sets.hpp"
#include "sum_difference_tables.hpp"

namespace scansion {

// score(y) is the sum over t and over patterns z that match at t of scores[t, z]. fires (T, P) or null: where patterns
// live; elsewhere scores are not read. Returns log Z and fills posteriors (T, P); false: the guard refuses, kappa says why.
inline bool sum_difference_lattice(const PatternAutomaton& net, const double* scores, const uint8_t* fires, int64_t T,
                                   const uint8_t* allowed, double& log_z, double* posteriors, double& kappa) {
  const int64_t P = net.patterns(), L = net.labels();
  const PatternSets sets(net, std::vector<uint8_t>(static_cast<size_t>(P), fires ? 0 : 1), fires != nullptr);
  const PatternStrings& all = sets.strings();
  const int64_t N = sets.positions(T);
  std::vector<std::vector<int32_t>> fired(static_cast<size_t>(T) + 1);
  for (int64_t t = 0; fires && t < T; ++t)
    for (int64_t z = 0; z < P; ++z) {
      const int64_t at = net.ends(z) ? T : t;
      const bool here = fires[t * P + z] && net.pattern_length(z) > 1 && (!net.ends(z) || t == T - 1);
      if (here && sets.fits(all.string(z), at)) fired[at].push_back(all.string(z));
    }
  const std::vector<PatternSets::Extras> extras = sets.extras(T, fired);
  std::vector<std::vector<int32_t>> links(static_cast<size_t>(N));
  LocalTables x;
  for (int64_t t = 0; t < N; ++t) {
    sets.links(extras, t, T, links[t]);
    x.sets.push_back(LocalSets::view(sets, sets.base(t, T), extras[t], links[t].data()));
  }
  x.layout(L, all.any_bos());
  // the pattern of a node and where its score is, -1: none
  const auto pattern = [&](int64_t t, int32_t n) {
    const PatternSet& base = sets.set(sets.base(t, T));
    const int32_t z = n < base.view().nodes ? base.pattern(n) : all.pattern(extras[t].nodes[n - base.view().nodes]);
    return z >= 0 && (!fires || fires[std::min(t, T - 1) * P + z]) ? std::min(t, T - 1) * P + z : -1;
  };
  bool fits = true;
  for (int64_t t = 0; t < N; ++t) {
    const LocalPatternsView& p = x.sets[t];
    double* w = x.own[t];
    std::fill_n(w, p.base->roots, 0.0);
    for (int32_t n = p.base->roots; n < p.nodes; ++n) {
      const int64_t at = pattern(t, n);
      w[n] = w[n < p.base->nodes ? p.base->suffix[n] : p.suffix[n - p.base->nodes]] + (at < 0 ? 0.0 : scores[at]);
      fits = fits && w[n] <= kMostWeight;
    }
    kernels().exp_array(w, p.nodes, w);
    for (int32_t i = 0; i < p.nodes - p.base->nodes; ++i) x.under[t][i] = w[p.suffix[i]];
  }
  std::vector<int32_t> label_pattern(static_cast<size_t>(L), -1);
  for (int64_t z = 0; z < P; ++z)
    if (net.pattern_length(z) == 1) label_pattern[net.pattern_label(z)] = static_cast<int32_t>(z);
  std::vector<double> row(static_cast<size_t>(L));
  double shift = 0.0;
  std::fill_n(x.u, N * L, 1.0);
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t y = 0; y < L; ++y) {
      const int32_t z = label_pattern[y];
      row[y] = z >= 0 && (!fires || fires[t * P + z]) ? scores[t * P + z] : 0.0;
    }
    shift += exponentiate_row(row.data(), L, allowed ? allowed + t * L : nullptr, x.u + t * L);
  }
  kappa = kInfinity;
  std::fill_n(posteriors, T * P, 0.0);
  if (!fits) return false;
  const bool fine = x.run();
  kappa = x.work.kappa;
  log_z = x.work.log_z + shift;
  if (!fine) return false;
  for (int64_t t = 0; t < N; ++t) {
    for (int32_t n = x.sets[t].base->roots; n < x.sets[t].nodes; ++n)
      if (pattern(t, n) >= 0) posteriors[pattern(t, n)] += x.patterns[t][n];
    for (int64_t y = 0; t < T && y < L; ++y)
      if (label_pattern[y] >= 0) posteriors[t * P + label_pattern[y]] = x.posterior[t * L + y];
  }
  return true;
}

}  // namespace scansion
