// Entropy of a first-order chain in scaled linear space, without logarithms of forward weights. With p_ij = a_i w_ij / s_j,
// s_j = sum_i a_i w_ij, the probability of i before j, H_j the entropy of what came before j and
//
//   g_j = H_j - log a_j,   g'_j = sum_i p_ij (g_i - log w_ij) - log e_j,   a'_j = s_j e_j
//
// where a row of weights is scaled so that it sums to about 1: then g of what is likely is about H, and what is added and
// taken away again stays small. H = sum_j a_j g_j / S + log S with S = sum_j a_j at the end.
#pragma once

#include "chain.hpp"

namespace scansion::SCANSION_ISA {

// sums (stride,) = sum_i a_i w_ij and terms (stride,) = sum_i a_i w_ij (g_i - logs_ij), NV vectors of columns at a time
template <int NV>
inline void entropy_block(const double* w, const double* logs, int64_t rows, int64_t stride, const double* a,
                          const double* g, double* sums, double* terms) {
  Vec sum[NV], term[NV];
  for (int k = 0; k < NV; ++k) sum[k] = term[k] = splat(0.0);
  for (int64_t i = 0; i < rows; ++i) {
    const Vec x = splat(a[i]), y = splat(g[i]);
    for (int k = 0; k < NV; ++k) {
      const Vec p = x * load(w + i * stride + k * kLanes);
      sum[k] = sum[k] + p;
      term[k] = muladd(p, y - load(logs + i * stride + k * kLanes), term[k]);
    }
  }
  for (int k = 0; k < NV; ++k) {
    store(sums + k * kLanes, sum[k]);
    store(terms + k * kLanes, term[k]);
  }
}

// logs (L, padded L): logarithms of the transitions' weights, 0 where a weight is 0. False: the sequence is not one for
// linear space.
inline bool chain_entropy(const ChainView& c, const TransitionWeights& w, const double* logs, double* work, double& out) {
  const int64_t T = c.length, L = c.labels, stride = padded(L);
  ChainAnswer answer;
  if (!chain_forward_backward(c, &w, work, false, answer)) return false;
  out = 0.0;
  if (T == 0) return true;
  const double* alpha = work;
  const double* factor = alpha + T * stride;
  double* g = work + 2 * T * stride;
  double* row = g + stride;
  double* sums = row + stride;
  double* terms = sums + stride;
  for (int64_t t = 0; t < T; ++t) {
    const double* a = alpha + t * stride;
    chain_row(c, t, stride, row);
    const double shift = row_max(row, stride);
    for (int64_t j = 0; t == 0 && j < stride; ++j) sums[j] = 1.0, terms[j] = 0.0;
    int64_t j = 0;
    for (; t > 0 && j + 4 * kLanes <= stride; j += 4 * kLanes)
      entropy_block<4>(w.weight + j, logs + j, L, stride, a - stride, g, sums + j, terms + j);
    for (; t > 0 && j + 2 * kLanes <= stride; j += 2 * kLanes)
      entropy_block<2>(w.weight + j, logs + j, L, stride, a - stride, g, sums + j, terms + j);
    for (; t > 0 && j < stride; j += kLanes)
      entropy_block<1>(w.weight + j, logs + j, L, stride, a - stride, g, sums + j, terms + j);
    // the power of two that the row was divided by
    double scaled = 0.0, whole = 0.0;
    for (j = 0; j < L; ++j) {
      scaled += a[j];
      whole += sums[j] * factor[t * stride + j];
    }
    const double x = std::log(whole / scaled);
    for (j = 0; j < stride; ++j) g[j] = a[j] > 0.0 ? terms[j] / sums[j] - (row[j] - shift - x) : 0.0;
  }
  const double* last = alpha + (T - 1) * stride;
  const double total = row_sum(last, stride);
  const double entropy = row_dot(last, g, stride) / total + std::log(total);
  out = entropy > 0.0 ? entropy : 0.0;
  return true;
}

}  // namespace scansion::SCANSION_ISA
