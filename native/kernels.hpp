// The kernels of one instruction set as a table of functions; dispatch.cpp picks the table once.
#pragma once

#include "nested_views.hpp"
#include "views.hpp"

namespace scansion {

struct Kernels {
  const char* name;

  void (*exponentiate_transition)(const double* scores, int64_t labels, TransitionWeights& out);
  // doubles of scratch that the chain functions need
  int64_t (*chain_workspace)(int64_t length, int64_t labels);
  // log Z and, with backward, the answer's arrays; kLost: nothing was added to counts and outer products
  Sums (*chain_posteriors)(const ChainView& view, const TransitionWeights* fixed, double* work, bool backward,
                           ChainAnswer& answer);
  // table (T, L) of forward logarithms, or (best) of best scores, rows shifted to maximum 0
  Filled (*chain_table)(const ChainView& view, bool best, double* row, double* table);
  void (*chain_row)(const ChainView& view, int64_t t, double* row);
  // logs (L, padded L): logarithms of the weights, 0 where one is 0; false: another way must be gone
  bool (*chain_entropy)(const ChainView& view, const TransitionWeights& weights, const double* logs, double* work,
                        double& out);

  int64_t (*segment_workspace)(const SegmentView& view, const TopologyView& net);
  // kLost: the answer's arrays are as they came, zero
  Sums (*segment_posteriors)(const SegmentView& view, const TopologyView& net, double* block, bool backward,
                             SegmentAnswer& answer);
  void (*segment_prepare)(const SegmentView& view, const TopologyView& net, double* block, SegmentWork& work);
  // prepares, then fills work.a with forward logarithms relative to work.a_scale
  Filled (*segment_table)(const SegmentView& view, const TopologyView& net, double* block, SegmentWork& work);
  // scores of all segments that end at v into work.rows; returns whether rows go by key, not by extent class
  bool (*segment_end_rows)(const SegmentView& view, const TopologyView& net, SegmentWork& work, int64_t v);
  // best scores of as many chains as a vector has lanes, and the doubles of scratch that takes
  int64_t (*best_lanes_workspace)(const TopologyView& net);
  void (*fill_best_lanes)(const TopologyView& net, BestLane* lanes, double* scratch);
  // one run of a nested lattice: before, after and ends; rest, ahead and expectations; false: use log space
  bool (*nested_forward)(const NestedRun& run);
  bool (*nested_backward)(const NestedRun& run);
  // sum_difference.hpp: four sequences side by side; one by itself
  void (*sum_difference_forward)(const SumDifferenceView& view, SumDifferenceWork& work);
  void (*sum_difference_backward)(const SumDifferenceView& view, SumDifferenceWork& work, bool answer,
                                  double* posterior, const PatternSums* const* sums);
  void (*sum_difference_local)(const LocalView& view, LocalWork& work, double* posterior, double* const* patterns);
  // out (rows, stride) += sum over t < n of a[t, i] v[t, j]; a and v (n, stride)
  void (*outer_sum)(const double* a, const double* v, int64_t n, int64_t rows, int64_t stride, double* out);
  // out (stride,) += the named rows of a table; the named rows += factor * x where mask is 1 (null: everywhere)
  void (*sum_rows)(const double* table, int64_t stride, const int32_t* rows, int64_t n, double* out);
  void (*add_to_rows)(double* table, const double* mask, int64_t stride, const int32_t* rows, int64_t n,
                      const double* x, double factor);
  // out (stride,) = sum_i weight[i] * row i of table (n, stride)
  void (*mix_rows)(const double* table, int64_t stride, const double* weight, int64_t n, double* out);
  // out (n,) += factor * x
  void (*add_scaled)(double* out, const double* x, double factor, int64_t n);
  // h (n,) = the greater of h and g + (row + offset)
  void (*max_plus)(const double* g, const double* row, double offset, int64_t n, double* h);
  double (*most)(const double* x, int64_t n);  // the greatest, -inf of none
  // the greatest of a + b and, in tops, that of every so many of them
  double (*sum_max)(const double* a, const double* b, int64_t n, int64_t chunk, double* tops);
  double (*dot)(const double* a, const double* b, int64_t n);
  void (*subtract)(const double* a, const double* b, int64_t n, double* out);  // out (n,) = a - b
  void (*exp_array)(const double* x, int64_t n, double* out);
  bool (*in_range)(const double* x, int64_t n, double limit);  // |x| < limit, all of them
  // the greatest and the least of the numbers above -inf; of none, -inf and inf
  void (*finite_range)(const double* x, int64_t n, double& greatest, double& least);
  void (*exp_over)(double* x, int64_t n, double k);  // x (n,) = e^x / 2^k, for a whole k that makes this at most 1
};

const Kernels& kernels_baseline();
#if defined(SCANSION_HAVE_AVX2)
const Kernels& kernels_avx2();
#endif

// The fastest table that this CPU can run, unless the environment variable SCANSION_ISA names another.
const Kernels& kernels();

}  // namespace scansion
