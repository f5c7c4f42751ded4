// Four doubles at a time, and the exponential on them.
//
// Everything here lives in the namespace SCANSION_ISA: the file is compiled once for the platform's
// baseline CPU and, on x86-64, once more for AVX2 + FMA (see dispatch.cpp). A Vec has four lanes on every
// instruction set, so that sums are taken in the same order everywhere and results differ only by the
// rounding of fused multiply-adds.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "numeric.hpp"
#include "views.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__) || defined(_M_X64)
#define SCANSION_SSE2 1
#include <emmintrin.h>
#elif defined(__aarch64__) || defined(_M_ARM64)
#define SCANSION_NEON 1
#include <arm_neon.h>
#endif

// Functions that are hardly ever called, and must not grow the loops that may call them.
#if defined(__GNUC__)
#define SCANSION_RARE __attribute__((noinline, cold))
#else
#define SCANSION_RARE
#endif

namespace scansion::SCANSION_ISA {

constexpr int64_t kLanes = 4;

// Arrays that the kernels walk with Vec are padded to whole vectors.
constexpr int64_t padded(int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

#if defined(__AVX2__)

struct Vec {
  __m256d v;
};
inline Vec load(const double* p) { return {_mm256_loadu_pd(p)}; }
inline void store(double* p, Vec a) { _mm256_storeu_pd(p, a.v); }
inline Vec splat(double x) { return {_mm256_set1_pd(x)}; }
inline Vec operator+(Vec a, Vec b) { return {_mm256_add_pd(a.v, b.v)}; }
inline Vec operator-(Vec a, Vec b) { return {_mm256_sub_pd(a.v, b.v)}; }
inline Vec operator*(Vec a, Vec b) { return {_mm256_mul_pd(a.v, b.v)}; }
inline Vec muladd(Vec a, Vec b, Vec c) { return {_mm256_fmadd_pd(a.v, b.v, c.v)}; }
inline Vec max(Vec a, Vec b) { return {_mm256_max_pd(a.v, b.v)}; }
inline Vec min(Vec a, Vec b) { return {_mm256_min_pd(a.v, b.v)}; }
// a > b ? x : y, lane by lane
inline Vec select_greater(Vec a, Vec b, Vec x, Vec y) {
  return {_mm256_blendv_pd(y.v, x.v, _mm256_cmp_pd(a.v, b.v, _CMP_GT_OQ))};
}
// 2^n where n is the integer in the low bits of m (see exp below)
inline Vec power_of_two(Vec m) {
  const __m256i n = _mm256_add_epi64(_mm256_castpd_si256(m.v), _mm256_set1_epi64x(1023));
  return {_mm256_castsi256_pd(_mm256_slli_epi64(n, 52))};
}

#elif defined(SCANSION_SSE2)

struct Vec {
  __m128d lo, hi;
};
inline Vec load(const double* p) { return {_mm_loadu_pd(p), _mm_loadu_pd(p + 2)}; }
inline void store(double* p, Vec a) {
  _mm_storeu_pd(p, a.lo);
  _mm_storeu_pd(p + 2, a.hi);
}
inline Vec splat(double x) { return {_mm_set1_pd(x), _mm_set1_pd(x)}; }
inline Vec operator+(Vec a, Vec b) { return {_mm_add_pd(a.lo, b.lo), _mm_add_pd(a.hi, b.hi)}; }
inline Vec operator-(Vec a, Vec b) { return {_mm_sub_pd(a.lo, b.lo), _mm_sub_pd(a.hi, b.hi)}; }
inline Vec operator*(Vec a, Vec b) { return {_mm_mul_pd(a.lo, b.lo), _mm_mul_pd(a.hi, b.hi)}; }
inline Vec muladd(Vec a, Vec b, Vec c) { return a * b + c; }
inline Vec max(Vec a, Vec b) { return {_mm_max_pd(a.lo, b.lo), _mm_max_pd(a.hi, b.hi)}; }
inline Vec min(Vec a, Vec b) { return {_mm_min_pd(a.lo, b.lo), _mm_min_pd(a.hi, b.hi)}; }
inline __m128d blend(__m128d mask, __m128d x, __m128d y) {
  return _mm_or_pd(_mm_and_pd(mask, x), _mm_andnot_pd(mask, y));
}
inline Vec select_greater(Vec a, Vec b, Vec x, Vec y) {
  return {blend(_mm_cmpgt_pd(a.lo, b.lo), x.lo, y.lo), blend(_mm_cmpgt_pd(a.hi, b.hi), x.hi, y.hi)};
}
inline __m128d power_of_two(__m128d m) {
  const __m128i n = _mm_add_epi64(_mm_castpd_si128(m), _mm_set1_epi64x(1023));
  return _mm_castsi128_pd(_mm_slli_epi64(n, 52));
}
inline Vec power_of_two(Vec m) { return {power_of_two(m.lo), power_of_two(m.hi)}; }

#elif defined(SCANSION_NEON)

struct Vec {
  float64x2_t lo, hi;
};
inline Vec load(const double* p) { return {vld1q_f64(p), vld1q_f64(p + 2)}; }
inline void store(double* p, Vec a) {
  vst1q_f64(p, a.lo);
  vst1q_f64(p + 2, a.hi);
}
inline Vec splat(double x) { return {vdupq_n_f64(x), vdupq_n_f64(x)}; }
inline Vec operator+(Vec a, Vec b) { return {vaddq_f64(a.lo, b.lo), vaddq_f64(a.hi, b.hi)}; }
inline Vec operator-(Vec a, Vec b) { return {vsubq_f64(a.lo, b.lo), vsubq_f64(a.hi, b.hi)}; }
inline Vec operator*(Vec a, Vec b) { return {vmulq_f64(a.lo, b.lo), vmulq_f64(a.hi, b.hi)}; }
inline Vec muladd(Vec a, Vec b, Vec c) { return {vfmaq_f64(c.lo, a.lo, b.lo), vfmaq_f64(c.hi, a.hi, b.hi)}; }
inline Vec max(Vec a, Vec b) { return {vmaxq_f64(a.lo, b.lo), vmaxq_f64(a.hi, b.hi)}; }
inline Vec min(Vec a, Vec b) { return {vminq_f64(a.lo, b.lo), vminq_f64(a.hi, b.hi)}; }
inline Vec select_greater(Vec a, Vec b, Vec x, Vec y) {
  return {vbslq_f64(vcgtq_f64(a.lo, b.lo), x.lo, y.lo), vbslq_f64(vcgtq_f64(a.hi, b.hi), x.hi, y.hi)};
}
inline float64x2_t power_of_two(float64x2_t m) {
  const int64x2_t n = vaddq_s64(vreinterpretq_s64_f64(m), vdupq_n_s64(1023));
  return vreinterpretq_f64_s64(vshlq_n_s64(n, 52));
}
inline Vec power_of_two(Vec m) { return {power_of_two(m.lo), power_of_two(m.hi)}; }

#else

struct Vec {
  double v[4];
};
template <class F>
inline Vec lanes(F f) {
  return {{f(0), f(1), f(2), f(3)}};
}
inline Vec load(const double* p) {
  return lanes([&](int k) { return p[k]; });
}
inline void store(double* p, Vec a) { std::memcpy(p, a.v, sizeof a.v); }
inline Vec splat(double x) { return {{x, x, x, x}}; }
inline Vec operator+(Vec a, Vec b) {
  return lanes([&](int k) { return a.v[k] + b.v[k]; });
}
inline Vec operator-(Vec a, Vec b) {
  return lanes([&](int k) { return a.v[k] - b.v[k]; });
}
inline Vec operator*(Vec a, Vec b) {
  return lanes([&](int k) { return a.v[k] * b.v[k]; });
}
inline Vec muladd(Vec a, Vec b, Vec c) { return a * b + c; }
inline Vec max(Vec a, Vec b) {
  return lanes([&](int k) { return a.v[k] > b.v[k] ? a.v[k] : b.v[k]; });
}
inline Vec min(Vec a, Vec b) {
  return lanes([&](int k) { return a.v[k] < b.v[k] ? a.v[k] : b.v[k]; });
}
inline Vec select_greater(Vec a, Vec b, Vec x, Vec y) {
  return lanes([&](int k) { return a.v[k] > b.v[k] ? x.v[k] : y.v[k]; });
}
inline Vec power_of_two(Vec m) {
  return lanes([&](int k) {
    uint64_t bits;
    std::memcpy(&bits, &m.v[k], sizeof bits);
    bits = (bits + 1023) << 52;
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
  });
}

#endif

inline double horizontal_sum(Vec a) {
  double x[kLanes];
  store(x, a);
  return (x[0] + x[1]) + (x[2] + x[3]);
}
inline double horizontal_max(Vec a) {
  double x[kLanes];
  store(x, a);
  const double p = x[0] > x[1] ? x[0] : x[1], q = x[2] > x[3] ? x[2] : x[3];
  return p > q ? p : q;
}
inline double horizontal_min(Vec a) {
  double x[kLanes];
  store(x, a);
  const double p = x[0] < x[1] ? x[0] : x[1], q = x[2] < x[3] ? x[2] : x[3];
  return p < q ? p : q;
}

// Below this argument the exponential is no normal number any more; exp() returns an exact zero.
constexpr double kExpFloor = -708.0;

// e^x for x in [-inf, 709], zero below kExpFloor; relative error below 2^-52.
// Cody-Waite reduction x = n ln 2 + r, |r| <= ln 2 / 2, and the Taylor polynomial of degree 13 in r
// (remainder 4e-18). n is rounded by adding 1.5 * 2^52, which leaves it in the low bits of the sum.
inline Vec exp(Vec x) {
  const Vec floor = splat(kExpFloor);
  const Vec kept = max(x, floor);
  const Vec magic = splat(0x1.8p52);
  const Vec m = muladd(kept, splat(0x1.71547652b82fep0), magic);
  const Vec n = m - magic;
  Vec r = muladd(n, splat(-0x1.62e42feep-1), kept);
  r = muladd(n, splat(-0x1.a39ef35793c76p-33), r);
  Vec p = splat(1.0 / 6227020800.0);
  p = muladd(p, r, splat(1.0 / 479001600.0));
  p = muladd(p, r, splat(1.0 / 39916800.0));
  p = muladd(p, r, splat(1.0 / 3628800.0));
  p = muladd(p, r, splat(1.0 / 362880.0));
  p = muladd(p, r, splat(1.0 / 40320.0));
  p = muladd(p, r, splat(1.0 / 5040.0));
  p = muladd(p, r, splat(1.0 / 720.0));
  p = muladd(p, r, splat(1.0 / 120.0));
  p = muladd(p, r, splat(1.0 / 24.0));
  p = muladd(p, r, splat(1.0 / 6.0));
  p = muladd(p, r, splat(0.5));
  p = muladd(p * r, r, r) + splat(1.0);
  return select_greater(floor, x, splat(0.0), p * power_of_two(m));
}

inline double exp_scalar(double x) { return x < kExpFloor ? 0.0 : std::exp(x); }

// The exponent e with 2^(e-1) <= x < 2^e, for a positive normal x, and an exact power of two.
inline int exponent_of(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<int>((bits >> 52) & 0x7ff) - 1022;
}
inline double two_to(int e) {
  const uint64_t bits = static_cast<uint64_t>(e + 1023) << 52;
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

constexpr double kLn2 = 0.693147180559945309417;

}  // namespace scansion::SCANSION_ISA
