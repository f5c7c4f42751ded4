// Sums of rows of a table, and a row added to rows of a table: features that many labels share.
#pragma once

#include "simd.hpp"

namespace scansion::SCANSION_ISA {

template <int NV>
inline void sum_rows_block(const double* table, int64_t stride, const int32_t* rows, int64_t n, double* out) {
  Vec acc[NV];
  for (int k = 0; k < NV; ++k) acc[k] = load(out + k * kLanes);
  for (int64_t i = 0; i < n; ++i) {
    const double* row = table + rows[i] * stride;
    for (int k = 0; k < NV; ++k) acc[k] = acc[k] + load(row + k * kLanes);
  }
  for (int k = 0; k < NV; ++k) store(out + k * kLanes, acc[k]);
}

// out (stride,) += sum of the named rows of table (., stride); stride is a multiple of four
inline void sum_rows(const double* table, int64_t stride, const int32_t* rows, int64_t n, double* out) {
  int64_t j = 0;
  for (; j + 6 * kLanes <= stride; j += 6 * kLanes) sum_rows_block<6>(table + j, stride, rows, n, out + j);
  for (; j + 2 * kLanes <= stride; j += 2 * kLanes) sum_rows_block<2>(table + j, stride, rows, n, out + j);
  for (; j < stride; j += kLanes) sum_rows_block<1>(table + j, stride, rows, n, out + j);
}

template <int NV>
inline void add_to_rows_block(double* table, const double* mask, int64_t stride, const int32_t* rows, int64_t n,
                              const double* x, Vec factor) {
  Vec row[NV];
  for (int k = 0; k < NV; ++k) row[k] = load(x + k * kLanes) * factor;
  for (int64_t i = 0; i < n; ++i) {
    double* to = table + rows[i] * stride;
    if (mask) {
      const double* m = mask + rows[i] * stride;
      for (int k = 0; k < NV; ++k) store(to + k * kLanes, muladd(row[k], load(m + k * kLanes), load(to + k * kLanes)));
    } else {
      for (int k = 0; k < NV; ++k) store(to + k * kLanes, load(to + k * kLanes) + row[k]);
    }
  }
}

// the named rows of table += factor * x (stride,), where mask (., stride) is 1; null: everywhere
inline void add_to_rows(double* table, const double* mask, int64_t stride, const int32_t* rows, int64_t n,
                        const double* x, double factor) {
  const Vec f = splat(factor);
  int64_t j = 0;
  const auto at = [&](int64_t k) { return mask ? mask + k : nullptr; };
  for (; j + 6 * kLanes <= stride; j += 6 * kLanes) add_to_rows_block<6>(table + j, at(j), stride, rows, n, x + j, f);
  for (; j + 2 * kLanes <= stride; j += 2 * kLanes) add_to_rows_block<2>(table + j, at(j), stride, rows, n, x + j, f);
  for (; j < stride; j += kLanes) add_to_rows_block<1>(table + j, at(j), stride, rows, n, x + j, f);
}

template <int NV>
inline void mix_rows_block(const double* table, int64_t stride, const double* weight, int64_t n, double* out) {
  Vec acc[NV];
  for (int k = 0; k < NV; ++k) acc[k] = splat(0.0);
  for (int64_t i = 0; i < n; ++i) {
    const Vec w = splat(weight[i]);
    const double* row = table + i * stride;
    for (int k = 0; k < NV; ++k) acc[k] = muladd(w, load(row + k * kLanes), acc[k]);
  }
  for (int k = 0; k < NV; ++k) store(out + k * kLanes, acc[k]);
}

// out (stride,) = sum_i weight[i] * row i of table (n, stride); stride is a multiple of four
inline void mix_rows(const double* table, int64_t stride, const double* weight, int64_t n, double* out) {
  int64_t j = 0;
  for (; j + 6 * kLanes <= stride; j += 6 * kLanes) mix_rows_block<6>(table + j, stride, weight, n, out + j);
  for (; j + 2 * kLanes <= stride; j += 2 * kLanes) mix_rows_block<2>(table + j, stride, weight, n, out + j);
  for (; j < stride; j += kLanes) mix_rows_block<1>(table + j, stride, weight, n, out + j);
}

// out (n,) += factor * x
inline void add_scaled(double* out, const double* x, double factor, int64_t n) {
  const Vec f = splat(factor);
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) store(out + j, muladd(f, load(x + j), load(out + j)));
  for (; j < n; ++j) out[j] += factor * x[j];
}

// h (n,) = the greater of h and g + (row + offset)
inline void max_plus(const double* g, const double* row, double offset, int64_t n, double* h) {
  const Vec by = splat(offset);
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) store(h + k, max(load(h + k), load(g + k) + (load(row + k) + by)));
  for (; k < n; ++k) {
    const double x = g[k] + (row[k] + offset);
    h[k] = x > h[k] ? x : h[k];
  }
}

// sum_i a[i] b[i], in an order that depends on n alone
inline double dot(const double* a, const double* b, int64_t n) {
  Vec acc[4] = {splat(0.0), splat(0.0), splat(0.0), splat(0.0)};
  int64_t j = 0;
  for (; j + 4 * kLanes <= n; j += 4 * kLanes) {
    for (int k = 0; k < 4; ++k) acc[k] = muladd(load(a + j + k * kLanes), load(b + j + k * kLanes), acc[k]);
  }
  double lanes[kLanes];
  store(lanes, (acc[0] + acc[1]) + (acc[2] + acc[3]));
  double sum = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  for (; j < n; ++j) sum += a[j] * b[j];
  return sum;
}

// out (n,) = a - b
inline void subtract(const double* a, const double* b, int64_t n, double* out) {
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) store(out + j, load(a + j) - load(b + j));
  for (; j < n; ++j) out[j] = a[j] - b[j];
}

// The greatest of a + b, -inf of none; tops (n / chunk, rounded up): of every chunk of them, the last one shorter.
inline double sum_max(const double* a, const double* b, int64_t n, int64_t chunk, double* tops) {
  double top = kMinusInfinity;
  for (int64_t first = 0; first < n; first += chunk) {
    const int64_t stop = first + chunk < n ? first + chunk : n;
    Vec p = splat(kMinusInfinity), q = p;
    int64_t j = first;
    for (; j + 2 * kLanes <= stop; j += 2 * kLanes) {
      p = max(p, load(a + j) + load(b + j));
      q = max(q, load(a + j + kLanes) + load(b + j + kLanes));
    }
    double m = horizontal_max(max(p, q));
    for (; j < stop; ++j) m = a[j] + b[j] > m ? a[j] + b[j] : m;
    *tops++ = m;
    top = m > top ? m : top;
  }
  return top;
}

}  // namespace scansion::SCANSION_ISA
