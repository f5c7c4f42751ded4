// Compiled once per instruction set (SCANSION_ISA = baseline, avx2): the table of kernels.hpp.
// No standard containers here: their inline functions could end up compiled for the wrong CPU.
#include "kernels.hpp"

#include "chain.hpp"
#include "chain_entropy.hpp"
#include "nested.hpp"
#include "rows.hpp"
#include "segment.hpp"
#include "segment_additive.hpp"
#include "segment_lanes.hpp"
#include "segment_log.hpp"
#include "sum_difference.hpp"

#define SCANSION_STRING_(x) #x
#define SCANSION_STRING(x) SCANSION_STRING_(x)
#define SCANSION_JOIN_(x, y) x##y
#define SCANSION_JOIN(x, y) SCANSION_JOIN_(x, y)

namespace scansion {
namespace SCANSION_ISA {
namespace {

Sums chain_posteriors(const ChainView& view, const TransitionWeights* fixed, double* work, bool backward,
                      ChainAnswer& answer) {
  if (chain_forward_backward(view, fixed, work, backward, answer)) return Sums::kLinear;
  return chain_log_forward_backward(view, work, backward, answer) ? Sums::kLog : Sums::kLost;
}

Filled chain_table(const ChainView& view, bool best, double* row, double* table) {
  double log_z;
  return best ? chain_max_forward(view, row, table) : chain_log_forward(view, row, table, log_z);
}

void plain_chain_row(const ChainView& view, int64_t t, double* row) { chain_row(view, t, view.labels, row); }

int64_t segment_workspace(const SegmentView& view, const TopologyView& net) {
  SegmentWork work;
  AdditiveWork more;
  const int64_t size = carve_segment_work(view, net, nullptr, work);
  return additive_serves(view, net, {}) ? size + carve_additive(view, net, work, nullptr, more) : size;
}

Sums segment_posteriors(const SegmentView& view, const TopologyView& net, double* block, bool backward,
                        SegmentAnswer& answer) {
  SegmentWork work;
  Scale log_z;
  const SegmentSink sink{view, net, work, answer};
  prepare_segment(view, net, block, work);
  if (work.tame) {
    exponentiate_starts(work);
    if (additive_serves(view, net, answer)) {
      AdditiveWork more;
      carve_additive(view, net, work, block + carve_segment_work(view, net, block, work), more);
      AdditiveSweep sweep(view, net, work, more);
      if (sweep.forward(log_z)) {
        answer.log_partition = value(log_z);
        if (!backward || sweep.backward(log_z, sink)) return Sums::kLinear;
        clear(view, net, answer);
      }
    }
    if (segment_forward(view, net, work, log_z)) {
      answer.log_partition = value(log_z);
      if (!backward || segment_backward(view, net, work, log_z, sink)) return Sums::kLinear;
      clear(view, net, answer);
    }
    if (work.tame) {
      prepare_segment(view, net, block, work);
      work.cache = nullptr;
      const Filled filled = segment_log_forward(view, net, work, log_z);
      answer.log_partition = filled == Filled::kNothing ? kMinusInfinity : value(log_z);
      if (filled == Filled::kNothing || (filled == Filled::kFine && !backward)) return Sums::kLog;
      if (filled == Filled::kFine && segment_log_backward(view, net, work, log_z, sink)) return Sums::kLog;
      clear(view, net, answer);
    }
  }
  return Sums::kLost;
}

// for sweeps that need no second look at the rows
void segment_prepare(const SegmentView& view, const TopologyView& net, double* block, SegmentWork& work) {
  prepare_segment(view, net, block, work);
  work.cache = nullptr;
}

Filled segment_table(const SegmentView& view, const TopologyView& net, double* block, SegmentWork& work) {
  segment_prepare(view, net, block, work);
  Scale log_z;
  if (work.tame) {  // linear space where it serves: logarithms of the states in place of exponentials of the arcs
    exponentiate_starts(work);
    const bool served = segment_forward(view, net, work, log_z);
    segment_prepare(view, net, block, work);
    if (served) {
      for (int64_t i = 0; i < (view.length + 1) * work.Sp; ++i) work.a[i] = std::log(work.a[i]);
      return Filled::kFine;
    }
  }
  return segment_log_forward(view, net, work, log_z);
}

void sum_difference_forward(const SumDifferenceView& view, SumDifferenceWork& work) {
  SumDifference(view, work).forward();
}

void sum_difference_backward(const SumDifferenceView& view, SumDifferenceWork& work, bool answer, double* posterior,
                             const PatternSums* const* sums) {
  SumDifference(view, work).backward(answer, posterior, sums);
}

void sum_difference_local(const LocalView& view, LocalWork& work, double* posterior, double* const* patterns) {
  const LocalSumDifference sweep(view, work);
  sweep.forward();
  sweep.backward(posterior, patterns);
}

void exp_array(const double* x, int64_t n, double* out) {
  const int64_t whole = n / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) store(out + i, exp(load(x + i)));
  if (whole == n) return;
  double buffer[kLanes] = {};
  for (int64_t i = whole; i < n; ++i) buffer[i - whole] = x[i];
  store(buffer, exp(load(buffer)));
  for (int64_t i = whole; i < n; ++i) out[i] = buffer[i - whole];
}

bool in_range(const double* x, int64_t n, double limit) {
  Vec out = splat(0.0);  // NaN is not below anything
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Vec y = load(x + i);
    out = max(out, select_greater(splat(limit), max(y, splat(0.0) - y), splat(0.0), splat(1.0)));
  }
  bool fits = horizontal_max(out) == 0.0;
  for (; i < n; ++i) fits = fits && std::abs(x[i]) < limit;
  return fits;
}

void finite_range(const double* x, int64_t n, double& greatest, double& least) {
  Vec most = splat(kMinusInfinity), fewest = splat(kInfinity);
  const auto see = [&](Vec y) {
    most = max(most, y);
    fewest = min(fewest, select_greater(y, splat(kMinusInfinity), y, splat(kInfinity)));
  };
  const int64_t whole = n / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) see(load(x + i));
  if (whole < n) {
    double buffer[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) buffer[i] = whole + i < n ? x[whole + i] : kMinusInfinity;
    see(load(buffer));
  }
  greatest = horizontal_max(most);
  least = horizontal_min(fewest);
}

void exp_over(double* x, int64_t n, double k) {
  // ln 2 in two parts: the product with the first is exact
  const Vec high = splat(k * 0x1.62e42feep-1), low = splat(k * 0x1.a39ef35793c76p-33);
  const int64_t whole = n / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) store(x + i, exp(load(x + i) - high - low));
  if (whole == n) return;
  double buffer[kLanes] = {};
  for (int64_t i = whole; i < n; ++i) buffer[i - whole] = x[i];
  store(buffer, exp(load(buffer) - high - low));
  for (int64_t i = whole; i < n; ++i) x[i] = buffer[i - whole];
}

constexpr Kernels table = {
    SCANSION_STRING(SCANSION_ISA),
    exponentiate_transition,
    chain_workspace,
    chain_posteriors,
    chain_table,
    plain_chain_row,
    chain_entropy,
    segment_workspace,
    segment_posteriors,
    segment_prepare,
    segment_table,
    segment_end_rows,
    best_lanes_workspace,
    fill_best_lanes,
    nested_forward,
    nested_backward,
    sum_difference_forward,
    sum_difference_backward,
    sum_difference_local,
    outer_sum,
    sum_rows,
    add_to_rows,
    mix_rows,
    add_scaled,
    max_plus,
    array_max,
    sum_max,
    dot,
    subtract,
    exp_array,
    in_range,
    finite_range,
    exp_over,
};

}  // namespace
}  // namespace SCANSION_ISA

const Kernels& SCANSION_JOIN(kernels_, SCANSION_ISA)() { return SCANSION_ISA::table; }

}  // namespace scansion
