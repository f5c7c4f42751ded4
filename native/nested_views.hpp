// What the kernel of nested lattices sees: one parent's *run*, the chain of children of a segment that starts at i.
//
// A block of levels goes from a timed parent (or the root) at level d through levels that are plain sums over time
// steps ("free") down to the next timed level e = d + L. In a run of parent state p the state after a child of level
// e ended at j is a *stack* (s_{d+1}, .., s_e); layer f of the run holds the stacks down to level d + f, and layer 0
// the parent alone. Only stacks that the topology allows exist; children of a stack are side by side.
#pragma once

#include <cstdint>

namespace scansion {

// A row of weights whose every entry is zero.
constexpr int64_t kDeadRow = INT64_MIN / 4;

// Exponents of rows of scores: those below the first have lost digits in sums; none lies beyond +- the other.
constexpr int64_t kDeepest = -1500000;  // about -kFar / ln 2
constexpr int64_t kBottom = int64_t{1} << 40;

// Exponentials of one kind of scores: exp(score) = weight * 2^exponent, a row per time (step 1) or one (step 0).
struct NestedTable {
  const double* weight = nullptr;      // (rows, size); null: every score is 0
  const double* transposed = nullptr;  // transitions only: (rows, size), left and right child exchanged
  const int64_t* exponent = nullptr;   // (rows,)
  const int64_t* low = nullptr;        // (rows,) log2 of the smallest positive weight, vanished ones too
  int64_t size = 0;
  int64_t step = 0;
};

struct NestedLayer {
  int64_t size = 0;                 // stacks
  const int32_t* state = nullptr;   // (size,) the last state of each
  const int32_t* first = nullptr;   // (size of the layer above + 1,) children of each stack of the layer above
  const int64_t* pair = nullptr;    // (size of the layer above,) where its parent state's row of init and end begins
  const int64_t* square = nullptr;  // (size of the layer above,) where its parent state's transitions begin: rows padded
};

// Where expectations go; null: not asked for. Counts are laid out like the tables, arrays by time like the scores.
struct NestedExpect {
  double* counts = nullptr;   // (size of the table,)
  double* by_time = nullptr;  // (T, parents, children) or (T, parents, children, children)
};

// A term of a sum over children: a row of weights, times those of a child, times 2^exponent.
struct NestedTerm {
  const double* row = nullptr;    // (stride,)
  const double* child = nullptr;  // (stride,)
  int64_t exponent = 0;
};

struct NestedRun {
  int64_t length = 0;   // T
  int64_t start = 0;    // i
  int64_t longest = 0;  // N: the parent's longest segment from i on
  int64_t level = 0;    // d
  int64_t depth = 0;    // L
  int64_t parent = 0;   // p
  int64_t stride = 0;   // padded width of the last layer
  const NestedLayer* layers = nullptr;   // (L + 1,)
  const int64_t* states = nullptr;       // (L + 1,) number of states of each level
  const NestedTable* transit = nullptr;  // (L + 1,) by layer of the children, from 1
  const NestedTable* init = nullptr;
  const NestedTable* end = nullptr;
  const NestedTable* first = nullptr;  // (L + 1,) at the first and at the last time of a segment of a free level
  const NestedTable* last = nullptr;
  const int64_t* low = nullptr;   // (T,) after row t: least level of the highest segment that may end there
  const int64_t* high = nullptr;  // (T,) greatest

  const int64_t* cells = nullptr;  // (T + 1,) children from t on, by length
  const double* child = nullptr;   // (cells, stride): weight of each child in p with its free levels
  const int64_t* child_exponent = nullptr;  // (cells,)
  const int64_t* child_low = nullptr;       // (cells,)
  int64_t reach = 1;  // longest child

  // rows n = 0..N, n positions after i
  double* before = nullptr;  // (N + 1, stride): a child begins at n                      [pre]
  double* after = nullptr;   // (N + 1, stride): a child ended at n                       [alpha]
  double* rest = nullptr;    // (N + 1, stride): what follows a child that ended at n     [lambda]
  double* ahead = nullptr;   // (N + 1, stride): what follows where a child begins at n
  int64_t *before_k = nullptr, *after_k = nullptr, *rest_k = nullptr, *ahead_k = nullptr;  // exponents
  int64_t *before_low = nullptr, *after_low = nullptr, *rest_low = nullptr, *ahead_low = nullptr;
  double* ends = nullptr;     // (N + 1,) weight inside the parent if it ends at n, over 2^ends_k             [D]
  double* outside = nullptr;  // (N + 1,) weight outside it, its persistence included, over Z 2^outside_k
  int64_t *ends_k = nullptr, *outside_k = nullptr;

  // scratch: a row per layer, padded
  double **up = nullptr, **down = nullptr, **x = nullptr, **bu = nullptr, **bd = nullptr;
  double* row = nullptr;        // (padded widest layer,)
  NestedTerm* terms = nullptr;  // (reach,)
  int64_t *up_k = nullptr, *down_k = nullptr, *x_k = nullptr, *bu_k = nullptr, *bd_k = nullptr;  // (L + 1,)

  // expectations
  double* segments = nullptr;       // (cells, states[L])
  double* stacks = nullptr;         // (cells, stride) those of segments, by stack and over the child's weight
  double** starts = nullptr;        // (L + 1,) free levels: (T, states)
  double** stops = nullptr;         // likewise
  const NestedExpect* transit_e = nullptr;  // (L + 1,)
  const NestedExpect* init_e = nullptr;
  const NestedExpect* end_e = nullptr;
};

}  // namespace scansion
