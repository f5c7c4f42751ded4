// Exact inference on a first-order chain: forward-backward in scaled linear space, the same in log space,
// and the max-plus forward pass.
//
//   alpha_0(j) = exp(start_j + u_0(j)),   alpha_t(j) = exp(u_t(j)) sum_i alpha_{t-1}(i) exp(A(i, j))
//   beta_{T-1}(i) = exp(end_i),           beta_t(i)  = sum_j exp(A(i, j)) v_{t+1}(j),  v_t = exp(u_t) beta_t
//   P(y_t = j) = alpha_t(j) beta_t(j) / Z,  P(y_t = i, y_{t+1} = j) = alpha_t(i) exp(A(i, j)) v_{t+1}(j) / Z
//
// Scaling. Each row of scores is shifted by its maximum, each alpha and beta row by an exact power of two, so
// scaling costs no digit. Products below 1e-307 vanish. That is harmless where no transition is below 1e-100 of the
// largest ("mixing"): the row kept at least 1e-100 / 2 L, and what vanished beside it gains at most 1e100 on it in the
// next step, after which both are in the same states. Elsewhere a loss could matter later, so if something finite may
// have vanished while a state's weight is below 1e-280, the linear kernel gives up (returns false) and the caller runs
// the log-space kernel. O(T L^2) time, O(T L) memory.
//
// Size. Linear space knows differences to the best of a row only, and these are exact; but sums of large scores round:
// where a row is one (start, end), and in log space, scores beyond kTame are for exact.hpp, and so are entries further
// than kFar behind the best of their row.
#pragma once

#include "simd.hpp"
#include "views.hpp"

namespace scansion::SCANSION_ISA {

constexpr double kTiny = 1e-280;        // a kept weight above this is not hurt by vanished ones
constexpr double kNoUnderflow = 1e-290;  // products above this have not vanished
constexpr double kLogNoUnderflow = -665.0;
constexpr double kMixing = 1e-100;
constexpr double kMostShift = 0x1p40;  // 1e5 of these add up without loss in a Scale

// out[j] = sum_i a[i] w[i, j]; the sum over i in order, NV vectors of columns at a time in registers.
template <int NV>
inline void matvec_block(const double* w, int64_t rows, int64_t stride, const double* a, double* out) {
  Vec acc[NV];
  for (int k = 0; k < NV; ++k) acc[k] = splat(0.0);
  for (int64_t i = 0; i < rows; ++i) {
    const Vec x = splat(a[i]);
    for (int k = 0; k < NV; ++k) acc[k] = muladd(x, load(w + i * stride + k * kLanes), acc[k]);
  }
  for (int k = 0; k < NV; ++k) store(out + k * kLanes, acc[k]);
}

inline void matvec(const double* w, int64_t rows, int64_t stride, const double* a, double* out) {
#if defined(__AVX2__)  // sums of up to eight vectors fit into the registers, and one pass waits less than two
  if (stride == 8 * kLanes) return matvec_block<8>(w, rows, stride, a, out);
  if (stride == 7 * kLanes) return matvec_block<7>(w, rows, stride, a, out);
#endif
  int64_t j = 0;
  for (; j + 6 * kLanes <= stride; j += 6 * kLanes) matvec_block<6>(w + j, rows, stride, a, out + j);
  switch ((stride - j) / kLanes) {
    case 5: matvec_block<5>(w + j, rows, stride, a, out + j); break;
    case 4: matvec_block<4>(w + j, rows, stride, a, out + j); break;
    case 3: matvec_block<3>(w + j, rows, stride, a, out + j); break;
    case 2: matvec_block<2>(w + j, rows, stride, a, out + j); break;
    case 1: matvec_block<1>(w + j, rows, stride, a, out + j); break;
    default: break;
  }
}

// out[i, j] += sum_t a[t, i] v[t, j], rows t = 0..n-1, in blocks of I x J vectors held in registers.
template <int I, int J>
inline void outer_block(const double* a, const double* v, int64_t n, int64_t stride, double* out) {
  Vec acc[I][J];
  for (int i = 0; i < I; ++i)
    for (int j = 0; j < J; ++j) acc[i][j] = load(out + i * stride + j * kLanes);
  for (int64_t t = 0; t < n; ++t) {
    Vec row[J];
    for (int j = 0; j < J; ++j) row[j] = load(v + t * stride + j * kLanes);
    for (int i = 0; i < I; ++i) {
      const Vec x = splat(a[t * stride + i]);
      for (int j = 0; j < J; ++j) acc[i][j] = muladd(x, row[j], acc[i][j]);
    }
  }
  for (int i = 0; i < I; ++i)
    for (int j = 0; j < J; ++j) store(out + i * stride + j * kLanes, acc[i][j]);
}

template <int J>
inline void outer_columns(const double* a, const double* v, int64_t n, int64_t rows, int64_t stride, double* out) {
#if defined(__AVX2__)
  constexpr int I = 4;
#else
  constexpr int I = 2;
#endif
  int64_t i = 0;
  for (; i + I <= rows; i += I) outer_block<I, J>(a + i, v, n, stride, out + i * stride);
  for (; i < rows; ++i) outer_block<1, J>(a + i, v, n, stride, out + i * stride);
}

inline void outer_sum(const double* a, const double* v, int64_t n, int64_t rows, int64_t stride, double* out) {
  int64_t j = 0;
  for (; j + 3 * kLanes <= stride; j += 3 * kLanes) outer_columns<3>(a, v + j, n, rows, stride, out + j);
  for (; j + 2 * kLanes <= stride; j += 2 * kLanes) outer_columns<2>(a, v + j, n, rows, stride, out + j);
  for (; j < stride; j += kLanes) outer_columns<1>(a, v + j, n, rows, stride, out + j);
}

inline double row_max(const double* x, int64_t n) {
  Vec m = splat(-kInfinity);
  for (int64_t j = 0; j < n; j += kLanes) m = max(m, load(x + j));
  return horizontal_max(m);
}
inline double row_sum(const double* x, int64_t n) {
  Vec s = splat(0.0);
  for (int64_t j = 0; j < n; j += kLanes) s = s + load(x + j);
  return horizontal_sum(s);
}
inline double row_dot(const double* x, const double* y, int64_t n) {
  Vec s = splat(0.0);
  for (int64_t j = 0; j < n; j += kLanes) s = muladd(load(x + j), load(y + j), s);
  return horizontal_sum(s);
}
inline void row_scale(double* x, int64_t n, double factor) {
  const Vec f = splat(factor);
  for (int64_t j = 0; j < n; j += kLanes) store(x + j, load(x + j) * f);
}
// smallest positive entry (1 if there is none)
inline double row_smallest(const double* x, int64_t n) {
  const Vec zero = splat(0.0), one = splat(1.0);
  Vec m = one;
  for (int64_t j = 0; j < n; j += kLanes) {
    const Vec y = load(x + j);
    m = min(m, select_greater(y, zero, y, one));
  }
  return horizontal_min(m);
}

// x <- exp(x - shift); returns the lowest finite argument (0 if none), shift must be finite.
inline double row_exp(double* x, int64_t n, double shift) {
  const Vec s = splat(shift), none = splat(-kInfinity), zero = splat(0.0);
  Vec low = zero;
  for (int64_t j = 0; j < n; j += kLanes) {
    const Vec y = load(x + j) - s;
    low = min(low, select_greater(y, none, y, zero));
    store(x + j, exp(y));
  }
  return horizontal_min(low);
}

// scores of position t with start, end and constraints in; padded with -inf
inline void chain_row(const ChainView& c, int64_t t, int64_t stride, double* row) {
  const int64_t n = c.labels;
  const double* u = c.unary + t * n;
  for (int64_t j = 0; j < n; ++j) row[j] = u[j];
  if (t == 0 && c.start)
    for (int64_t j = 0; j < n; ++j) row[j] += c.start[j];
  if (t == c.length - 1 && c.end)
    for (int64_t j = 0; j < n; ++j) row[j] += c.end[j];
  if (c.allowed)
    for (int64_t j = 0; j < n; ++j)
      if (!c.allowed[t * n + j]) row[j] = -kInfinity;
  for (int64_t j = n; j < stride; ++j) row[j] = -kInfinity;
}

// Row t holds sums with start or end scores
inline bool is_edge(const ChainView& c, int64_t t) { return (t == 0 && c.start) || (t == c.length - 1 && c.end); }

// Whether these are sums of scores that doubles can add; top: the row's greatest entry
SCANSION_RARE inline bool edge_is_tame(const ChainView& c, int64_t t, double top) {
  const double* start = t == 0 ? c.start : nullptr;
  const double* end = t == c.length - 1 ? c.end : nullptr;
  if (!(top >= -kFar)) return false;
  for (int64_t j = 0; j < c.labels; ++j)
    if (!(c.unary[t * c.labels + j] <= kTame && (!start || start[j] <= kTame) && (!end || end[j] <= kTame))) return false;
  return true;
}

inline void exponentiate_transition(const double* scores, int64_t n, TransitionWeights& w) {
  const int64_t stride = padded(n);
  double shift = -kInfinity;
  for (int64_t i = 0; i < n; ++i) {
    double* row = w.weight + i * stride;
    for (int64_t j = 0; j < n; ++j) row[j] = scores[i * n + j];
    for (int64_t j = n; j < stride; ++j) row[j] = -kInfinity;
    const double m = row_max(row, stride);
    shift = shift > m ? shift : m;
  }
  w.shift = shift > -kInfinity ? shift : 0.0;
  double low = 0.0, smallest = 1.0;
  int64_t zeros = 0;
  for (int64_t i = 0; i < n; ++i) {
    double* row = w.weight + i * stride;
    const double l = row_exp(row, stride, w.shift);
    low = low < l ? low : l;
    for (int64_t j = 0; j < n; ++j) {
      zeros += row[j] == 0.0;
      if (row[j] > 0.0 && row[j] < smallest) smallest = row[j];
    }
    if (w.transposed)
      for (int64_t j = 0; j < n; ++j) w.transposed[j * stride + i] = row[j];
  }
  if (w.transposed)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = n; i < stride; ++i) w.transposed[j * stride + i] = 0.0;
  w.smallest = low < kLogNoUnderflow ? 0.0 : smallest;  // 0: something finite has vanished here already
  w.mixing = zeros == 0 && smallest >= kMixing;
}

// Watches over one sweep: has something finite vanished that may matter later?
struct UnderflowGuard {
  double smallest = 1.0;  // smallest positive weight of the last row

  // raw: the unscaled row whose factors were all <= 1; low: lowest finite log score that entered it
  bool survives(const double* raw, int64_t n, int64_t stride, double low, const TransitionWeights& w) {
    const bool lossless = low > kLogNoUnderflow && smallest * w.smallest * exp_scalar(low) > kNoUnderflow;
    smallest = row_smallest(raw, stride);
    if (lossless) return true;
    for (int64_t j = 0; j < n; ++j)
      if (raw[j] < kTiny) return false;
    return true;
  }
  void rescaled(double factor) { smallest *= factor; }
};

inline int64_t chain_workspace(int64_t length, int64_t labels) {
  const int64_t stride = padded(labels);
  return 2 * length * stride + 4 * stride + labels * stride + 2 * length;
}

// Linear space. False: give the sequence to chain_log_forward_backward. `fixed` holds the exponentials of a
// transition matrix shared by all positions, or is null when the view's transitions vary.
inline bool chain_forward_backward(const ChainView& c, const TransitionWeights* fixed, double* work, bool backward,
                                   ChainAnswer& answer) {
  const int64_t T = c.length, L = c.labels, stride = padded(L);
  double* alpha = work;
  double* factor = alpha + T * stride;  // exp(u_t - shift), later v_t
  double* beta = factor + T * stride;
  double* previous = beta + stride;
  TransitionWeights varying;
  varying.weight = previous + 3 * stride;
  double* lows = varying.weight + L * stride;

  Scale scale;
  int64_t exponent = 0;
  UnderflowGuard guard;
  for (int64_t t = 0; t < T; ++t) {
    double* e = factor + t * stride;
    double* a = alpha + t * stride;
    chain_row(c, t, stride, e);
    const double shift = row_max(e, stride);
    if (!(std::abs(shift) <= kMostShift) || (is_edge(c, t) && !edge_is_tame(c, t, shift))) return false;
    lows[t] = row_exp(e, stride, shift);
    add(scale, shift);
    if (t == 0) {
      for (int64_t j = 0; j < stride; ++j) a[j] = e[j];
      guard.smallest = lows[0] > kLogNoUnderflow ? row_smallest(a, stride) : 0.0;
    } else {
      const TransitionWeights* w = fixed;
      if (!w) {
        exponentiate_transition(c.transition + (t - 1) * c.transition_stride, L, varying);
        w = &varying;
      }
      add(scale, w->shift);
      matvec(w->weight, L, stride, a - stride, a);
      if (w->mixing) {
        for (int64_t j = 0; j < stride; j += kLanes) store(a + j, load(a + j) * load(e + j));
        // every label got at least (0.5 / L) w.smallest before its own score came in
        const double least = w->smallest * exp_scalar(lows[t]) / static_cast<double>(2 * L);
        guard.smallest = least > kNoUnderflow ? row_smallest(a, stride) : 0.0;
      } else {
        if (guard.smallest == 0.0) return false;  // the row before had lost something, and this step may need it
        for (int64_t j = 0; j < stride; j += kLanes) store(a + j, load(a + j) * load(e + j));
        if (!guard.survives(a, L, stride, lows[t], *w)) return false;
      }
    }
    const double sum = row_sum(a, stride);
    if (!(sum > kTiny)) return false;
    const int x = exponent_of(sum);
    row_scale(a, stride, two_to(-x));
    guard.rescaled(two_to(-x));
    exponent += x;
  }
  const double total = T ? row_sum(alpha + (T - 1) * stride, stride) : 1.0;
  add(scale, static_cast<double>(exponent) * kLn2);
  add(scale, std::log(total));
  answer.log_partition = value(scale);
  if (!backward || T == 0) return true;

  for (int64_t j = 0; j < stride; ++j) beta[j] = j < L ? 1.0 : 0.0;
  guard.smallest = 1.0;
  for (int64_t t = T - 1;; --t) {
    double* a = alpha + t * stride;
    const double mass = row_dot(a, beta, stride);
    if (!(mass > kTiny)) return false;
    if (answer.labels) {
      const double inverse = 1.0 / mass;
      for (int64_t j = 0; j < L; ++j) answer.labels[t * L + j] = a[j] * beta[j] * inverse;
    }
    if (t == 0) break;

    double* v = factor + t * stride;
    for (int64_t j = 0; j < stride; j += kLanes) store(v + j, load(v + j) * load(beta + j));
    const TransitionWeights* w = fixed;
    if (w) {
      matvec(w->transposed, L, stride, v, beta);
    } else {
      exponentiate_transition(c.transition + (t - 1) * c.transition_stride, L, varying);
      w = &varying;
      for (int64_t i = 0; i < L; ++i) beta[i] = row_dot(w->weight + i * stride, v, stride);
    }
    const double sum = row_sum(beta, stride);
    if (!(sum > kTiny)) return false;
    if (w->mixing) {
      if (!(sum * w->smallest > kTiny)) return false;
      guard.smallest = row_smallest(beta, stride);
    } else if (!guard.survives(beta, L, stride, lows[t], *w)) {
      return false;
    }

    double* before = a - stride;
    const double pairs = row_dot(before, beta, stride);
    if (!(pairs > kTiny)) return false;
    if (answer.transitions) {
      double* out = answer.transitions + (t - 1) * L * L;
      for (int64_t i = 0; i < L; ++i) {
        const double x = before[i] / pairs;
        const double* row = w->weight + i * stride;
        for (int64_t j = 0; j < L; ++j) out[i * L + j] = x * row[j] * v[j];
      }
    }
    // keep alpha_{t-1} / pairs for the outer products in the row of alpha_t, which is not read again
    if (answer.outer) {
      const Vec inverse = splat(1.0 / pairs);
      for (int64_t j = 0; j < stride; j += kLanes) store(a + j, load(before + j) * inverse);
    }
    const double f = two_to(-exponent_of(sum));
    row_scale(beta, stride, f);
    guard.rescaled(f);
  }
  if (answer.outer && T > 1) outer_sum(alpha + stride, factor + stride, T - 1, L, stride, answer.outer);
  return true;
}

// out[j] = log sum_i exp(x[i] + w[i, j]), w (n, n); four columns at a time
inline void log_matvec(const double* x, const double* w, int64_t n, double* out) {
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    Vec m = splat(-kInfinity);
    for (int64_t i = 0; i < n; ++i) m = max(m, splat(x[i]) + load(w + i * n + j));
    const Vec shift = select_greater(m, splat(-kInfinity), m, splat(0.0));
    Vec s = splat(0.0);
    for (int64_t i = 0; i < n; ++i) s = s + exp(splat(x[i]) + load(w + i * n + j) - shift);
    double top[kLanes], sum[kLanes];
    store(top, shift);
    store(sum, s);
    for (int64_t k = 0; k < kLanes; ++k) out[j + k] = top[k] + std::log(sum[k]);  // log 0 = -inf
  }
  for (; j < n; ++j) {
    double m = -kInfinity;
    for (int64_t i = 0; i < n; ++i) {
      const double y = x[i] + w[i * n + j];
      m = y > m ? y : m;
    }
    if (!(m > -kInfinity)) {
      out[j] = m;
      continue;
    }
    double s = 0.0;
    for (int64_t i = 0; i < n; ++i) s += std::exp(x[i] + w[i * n + j] - m);
    out[j] = m + std::log(s);
  }
}

// Greatest of n numbers
inline double array_max(const double* x, int64_t n) {
  const int64_t whole = n / kLanes * kLanes;
  Vec top = splat(-kInfinity);
  for (int64_t j = 0; j < whole; j += kLanes) top = max(top, load(x + j));
  double m = horizontal_max(top);
  for (int64_t j = whole; j < n; ++j) m = x[j] > m ? x[j] : m;
  return m;
}

// The rows of a sweep in log space: sums of what comes from the left and a row of scores, shifted to a maximum of 0.
class LogRows {
 public:
  // x <- x + row (null: zeros), then shifted by its maximum, which is returned; -inf: nothing is possible, x stays.
  double settle(double* x, const double* row, int64_t n) {
    const int64_t last = n - kLanes;  // the last vector overlaps the one before it
    if (last < 0) return settle_few(x, row, n);
    const auto added = [&](int64_t j) {
      const Vec a = load(x + j), r = row ? load(row + j) : splat(0.0);
      most_ = max(most_, max(a, r));
      return a + r;
    };
    const Vec none = splat(-kInfinity), final_sum = added(last);
    Vec top = final_sum;
    for (int64_t j = 0; j < last; j += kLanes) {
      const Vec sum = added(j);
      top = max(top, sum);
      store(x + j, sum);
    }
    store(x + last, final_sum);
    const double shift = horizontal_max(top);
    if (!(shift > -kInfinity)) return shift;
    const Vec by = splat(shift);
    const auto shifted = [&](int64_t j) {
      const Vec y = load(x + j) - by;
      low_ = min(low_, select_greater(y, none, y, splat(0.0)));
      return y;
    };
    const Vec final_row = shifted(last);
    for (int64_t j = 0; j < last; j += kLanes) store(x + j, shifted(j));
    store(x + last, final_row);
    shifts_ = max(shifts_, splat(std::abs(shift)));
    return shift;
  }

  // kLost: some number was too large for the digits of a sum to be kept. kDoubtful: entries fell far behind their best.
  Filled kept() const {
    if (!(horizontal_max(most_) <= kFar && horizontal_max(shifts_) <= kFar)) return Filled::kLost;
    return horizontal_min(low_) >= -kFar ? Filled::kFine : Filled::kDoubtful;
  }

 private:
  double settle_few(double* x, const double* row, int64_t n) {
    double rest[2 * kLanes];
    for (int64_t j = 0; j < kLanes; ++j) {
      rest[j] = j < n ? x[j] : -kInfinity;
      rest[kLanes + j] = row && j < n ? row[j] : 0.0;
    }
    const double shift = settle(rest, rest + kLanes, kLanes);
    for (int64_t j = 0; j < n; ++j) x[j] = rest[j];
    return shift;
  }

  Vec most_ = splat(-kInfinity), low_ = splat(0.0), shifts_ = splat(0.0);
};

// Whether no score is too large to be added to others: entries that fell behind cannot come back, then
SCANSION_RARE inline bool chain_is_tame(const ChainView& c) {
  const int64_t T = c.length, L = c.labels, matrices = c.transition_stride ? T - 1 : 1;
  return array_max(c.unary, T * L) <= kTame && array_max(c.transition, matrices * L * L) <= kTame &&
         (!c.start || array_max(c.start, L) <= kTame) && (!c.end || array_max(c.end, L) <= kTame);
}

// A table of logarithms (T, L), row by row: step(before, transition, out) takes what comes from the left.
template <class Step>
inline Filled chain_log_table(const ChainView& c, const Step& step, double* row, double* table, Scale& scale) {
  const int64_t T = c.length, L = c.labels;
  LogRows rows;
  for (int64_t t = 0; t < T; ++t) {
    double* a = table + t * L;
    chain_row(c, t, L, row);
    if (is_edge(c, t) && !edge_is_tame(c, t, 0.0)) return Filled::kLost;
    if (t == 0)
      for (int64_t j = 0; j < L; ++j) a[j] = 0.0;
    else
      step(a - L, c.transition + (t - 1) * c.transition_stride, a);
    const double shift = rows.settle(a, row, L);
    if (shift == -kInfinity) return Filled::kNothing;
    add(scale, shift);
  }
  const Filled kept = rows.kept();
  return kept == Filled::kDoubtful && !chain_is_tame(c) ? Filled::kLost : kept;
}

// Log space. table (T, L): log alpha_t, each row shifted to a maximum of 0; log Z.
inline Filled chain_log_forward(const ChainView& c, double* row, double* table, double& log_z) {
  const int64_t T = c.length, L = c.labels;
  Scale scale;
  const Filled filled = chain_log_table(
      c, [L](const double* before, const double* w, double* out) { log_matvec(before, w, L, out); }, row, table, scale);
  log_z = filled == Filled::kNothing ? -kInfinity : 0.0;
  if (T == 0 || filled == Filled::kNothing || filled == Filled::kLost) return filled;
  double s = 0.0;
  for (int64_t j = 0; j < L; ++j) s += std::exp(table[(T - 1) * L + j]);
  add(scale, std::log(s));
  log_z = value(scale);
  return filled;
}

// log sum_j exp(x[j] + y[j])
inline double log_sum(const double* x, const double* y, int64_t n) {
  const int64_t whole = n / kLanes * kLanes;
  Vec top = splat(-kInfinity);
  for (int64_t j = 0; j < whole; j += kLanes) top = max(top, load(x + j) + load(y + j));
  double m = horizontal_max(top);
  for (int64_t j = whole; j < n; ++j) m = x[j] + y[j] > m ? x[j] + y[j] : m;
  if (!(m > -kInfinity)) return m;
  const Vec shift = splat(m);
  Vec sum = splat(0.0);
  for (int64_t j = 0; j < whole; j += kLanes) sum = sum + exp(load(x + j) + load(y + j) - shift);
  double s = horizontal_sum(sum);
  for (int64_t j = whole; j < n; ++j) s += std::exp(x[j] + y[j] - m);
  return m + std::log(s);
}

// As chain_forward_backward. False: digits would be lost; counts are not touched then.
inline bool chain_log_forward_backward(const ChainView& c, double* work, bool backward, ChainAnswer& answer) {
  const int64_t T = c.length, L = c.labels;
  double* alpha = work;
  double* beta = alpha + T * L;
  double* v = beta + L;
  double* row = v + L;
  double* counts = row + L;
  const Filled filled = chain_log_forward(c, row, alpha, answer.log_partition);
  if (filled == Filled::kLost || filled == Filled::kDoubtful) return false;
  if (!backward || T == 0 || filled == Filled::kNothing) return true;
  LogRows rows;
  for (int64_t j = 0; j < L; ++j) beta[j] = 0.0;
  for (int64_t i = 0; i < L * L; ++i) counts[i] = 0.0;
  for (int64_t t = T - 1;; --t) {
    const double* a = alpha + t * L;
    if (answer.labels) {
      const double mass = log_sum(a, beta, L);
      for (int64_t j = 0; j < L; ++j) answer.labels[t * L + j] = std::exp(a[j] + beta[j] - mass);
    }
    if (t == 0) break;
    chain_row(c, t, L, row);
    for (int64_t j = 0; j < L; ++j) v[j] = row[j] + beta[j];
    const double* w = c.transition + (t - 1) * c.transition_stride;
    for (int64_t i = 0; i < L; ++i) beta[i] = log_sum(w + i * L, v, L);
    if (answer.transitions || answer.counts) {
      const double pairs = log_sum(a - L, beta, L);
      for (int64_t i = 0; i < L; ++i)
        for (int64_t j = 0; j < L; ++j) {
          const double p = std::exp(a[i - L] + w[i * L + j] + v[j] - pairs);
          if (answer.transitions) answer.transitions[((t - 1) * L + i) * L + j] = p;
          counts[i * L + j] += p;
        }
    }
    rows.settle(beta, nullptr, L);
  }
  if (rows.kept() != Filled::kFine) return false;
  for (int64_t i = 0; answer.counts && i < L * L; ++i) answer.counts[i] += counts[i];
  return true;
}

// out[j] = max_i (x[i] + w[i, j]), w (n, n): eight columns at a time in registers
inline void max_matvec(const double* x, const double* w, int64_t n, double* out) {
  int64_t j = 0;
  for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
    Vec m0 = splat(-kInfinity), m1 = m0;
    for (int64_t i = 0; i < n; ++i) {
      const Vec xi = splat(x[i]);
      m0 = max(m0, xi + load(w + i * n + j));
      m1 = max(m1, xi + load(w + i * n + j + kLanes));
    }
    store(out + j, m0);
    store(out + j + kLanes, m1);
  }
  for (; j + kLanes <= n; j += kLanes) {
    Vec m = splat(-kInfinity);
    for (int64_t i = 0; i < n; ++i) m = max(m, splat(x[i]) + load(w + i * n + j));
    store(out + j, m);
  }
  for (; j < n; ++j) {
    double m = -kInfinity;
    for (int64_t i = 0; i < n; ++i) m = x[i] + w[i * n + j] > m ? x[i] + w[i * n + j] : m;
    out[j] = m;
  }
}

// Max-plus. table (T, L): best score of a labelling of 0..t that ends in j, each row shifted to a maximum of 0.
inline Filled chain_max_forward(const ChainView& c, double* row, double* table) {
  const int64_t L = c.labels;
  Scale scale;
  return chain_log_table(
      c, [L](const double* before, const double* w, double* out) { max_matvec(before, w, L, out); }, row, table, scale);
}

}  // namespace scansion::SCANSION_ISA
