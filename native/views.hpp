// What the kernels see: spans and integers, no Python, no ownership.
//
// Conventions. Times 0..T-1; segments are half-open; scores are natural logarithms and -inf is forbidden;
// arrays are row-major doubles; "row = from, column = to"; `padded` sizes are multiples of four.
#pragma once

#include <cstdint>

namespace scansion {

// How far doubles go in log space: sums of scores up to kTame, in rows whose entries lie within kFar of the best, keep
// ten digits behind the point. Beyond, numbers are those of exact.hpp.
constexpr double kTame = 0x1p17;
constexpr double kFar = 0x1p20;

// How sums over configurations were taken: in scaled linear space, in log space; or digits would have been lost.
enum class Sums { kLinear, kLog, kLost };

// How a table of logarithms was filled. kDoubtful: but for entries further than kFar below the best of their position.
enum class Filled { kFine, kDoubtful, kNothing, kLost };

// One sequence of a first-order chain: score(y) = start[y_0] + sum_t unary[t, y_t]
// + sum_t transition[(t,) y_t, y_{t+1}] + end[y_{T-1}].
struct ChainView {
  int64_t length = 0;                  // T
  int64_t labels = 0;                  // L
  const double* unary = nullptr;       // (T, L)
  const double* transition = nullptr;  // (L, L), or (T-1, L, L)
  int64_t transition_stride = 0;       // 0, or L * L
  const double* start = nullptr;       // (L,) or null
  const double* end = nullptr;         // (L,) or null
  const uint8_t* allowed = nullptr;    // (T, L) or null
};

// Exponentials of one transition matrix, shared by all positions (and sequences) that use it.
struct TransitionWeights {
  double* weight = nullptr;      // (L, padded L): exp(transition - shift)
  double* transposed = nullptr;  // (L, padded L): the same, column by column
  double shift = 0.0;            // largest finite score
  double smallest = 1.0;         // smallest positive weight
  bool mixing = false;           // no weight is zero and none is below 1e-200
};

// Where answers go; null pointers are not asked for.
struct ChainAnswer {
  double* labels = nullptr;       // (T, L)
  double* transitions = nullptr;  // (T-1, L, L)
  double* outer = nullptr;        // (L, padded L): += sum_t alpha_t (x) v_{t+1}; times weight = expected counts
  double* counts = nullptr;       // (L, L): += expected counts, for the log-space kernel
  double log_partition = 0.0;
};

// The pattern automaton laid out for the segment kernels (built by pattern_automaton.hpp).
//
// An arc (p, y) takes label y in state p. Its score on segment (u, v) splits into a part that depends on u
// alone (patterns with nothing but a start score) and a part that depends on the extent (u, v). Arcs with
// the same target and the same extent class form one `key`: the sum over their sources is taken once per u,
// and only keys take part in the loop over segment lengths.
//
// Most arcs take the way of a shorter state: states are ordered by their suffixes, so that those which go one way by a
// label are neighbours, but for a few that know better. Arcs therefore leave nodes: states, and sums over ranges of
// neighbouring ones, each of two nodes before it. What a label costs follows the patterns, not the states.
struct TopologyView {
  int64_t states = 0;         // S
  int64_t labels = 0;         // L
  int64_t patterns = 0;       // P
  int64_t initial = 0;        // state before the first segment
  int64_t keys = 0;           // K
  int64_t start_classes = 0;  // classes are trees: a parent comes before its children
  int64_t extent_classes = 0;
  int64_t end_classes = 0;     // patterns that end in EOS
  int64_t longest = 1;         // length of the longest pattern
  bool bare_arcs = false;      // some arc has no start class
  bool label_extents = false;  // every extent class is a single label: extents say nothing of the past
  bool identity_keys = false;  // key k has extent class k
  bool restricted = false;     // states remember all of the past: a product with rules

  const int64_t* key_arcs = nullptr;    // (K + 1,) arcs of key k
  const int32_t* arc_source = nullptr;  // (A,) node
  const int32_t* arc_start = nullptr;   // (A,) start class; start_classes stands for none
  int64_t nodes = 0;                    // N: the states, padded; then the sums
  const int32_t* node_parts = nullptr;  // (N, 2) the nodes that a sum is of
  const int32_t* node_range = nullptr;  // (N, 2) first state and the one after the last
  const int32_t* key_target = nullptr;  // (K,)
  const int32_t* key_extent = nullptr;  // (K,)
  const int32_t* key_label = nullptr;   // (K,)
  const int32_t* key_end = nullptr;     // (K,) end class, or -1
  const int64_t* state_keys = nullptr;  // (S + 1,) keys are sorted by target

  const int32_t* start_pattern = nullptr;   // (start_classes,)
  const int32_t* start_parent = nullptr;    // (start_classes,) or -1
  const int32_t* extent_pattern = nullptr;  // (extent_classes,) or -1: no pattern, score 0
  const int32_t* extent_parent = nullptr;   // (extent_classes,) or -1
  const int32_t* extent_label = nullptr;    // (extent_classes,)
  const int32_t* end_pattern = nullptr;     // (end_classes,) or -1: the sequence must not end so
  const int32_t* end_parent = nullptr;      // (end_classes,) or -1
};

// One sequence of a segment lattice (a chain of any order is the case max_length = 1).
// Pattern z on segment [u, v), d = v - u, scores starts[u, z] if it depends on u alone (a start class), else
// full[u, d-1, z] + start[u, z] + sum_{u <= t < v} inside[t, z] + end[v-1, z] + by_length[d-1, z]; null is zero.
// Patterns that end in EOS take starts and, where there is a column for them, all of the others.
struct SegmentView {
  int64_t length = 0;                 // T
  int64_t max_length = 1;             // M, no longer than the sequence
  const double* starts = nullptr;     // (T, P) or (P,); null only without start classes
  int64_t starts_stride = 0;          // P, or 0 for the same at every position
  int64_t columns = 0;                // patterns 0..columns-1 have a column in the arrays below
  const double* full = nullptr;       // (T, full_stride, columns)
  int64_t full_stride = 1;            // >= M
  const double* start = nullptr;      // (T, columns) or (columns,)
  int64_t start_stride = 0;           // columns or 0
  const double* inside = nullptr;     // (T, columns)
  const double* end = nullptr;        // (T, columns)
  const double* by_length = nullptr;  // (M, columns)
  const int32_t* runs = nullptr;      // (T, L) or null: the longest segment of label y that may start at t
  const uint8_t* may_end = nullptr;   // (T,) or null: a segment may end at t (its last position)
};

// A log scale, hi + lo without loss: scales grow to 1e9 on long sequences while the kernels need differences
// of neighbouring ones to full precision.
struct Scale {
  double hi = 0.0, lo = 0.0;
};
inline void add(Scale& s, double x) {
  const double sum = s.hi + x;
  const double b = sum - s.hi;
  s.lo += (s.hi - (sum - b)) + (x - b);
  s.hi = sum;
}
inline double difference(const Scale& x, const Scale& y) { return (x.hi - y.hi) + (x.lo - y.lo); }
inline double value(const Scale& s) { return s.hi + s.lo; }

// One sequence's tables, carved from one block of doubles; the sweeps of segment.hpp fill them.
struct SegmentWork {
  int64_t S = 0, K = 0, C = 0, Q = 0;      // states, keys, extent classes, start classes + 1 (bare arcs)
  int64_t Sp = 0, Kp = 0, Cp = 0, Qp = 0;  // the same, padded
  int64_t N = 0;                           // nodes
  int64_t start_rows = 0;                  // T or 1
  int64_t row_stride = 0;
  bool mixing = false;
  bool tame = true;             // doubles can add the scores: false once one was met that is too large
  double* start_x = nullptr;    // (start_rows, Cp): parts by extent class, summed over suffix classes
  double* inside_x = nullptr;   // (T, Cp)
  double* end_x = nullptr;      // (T, Cp)
  double* length_x = nullptr;   // (M, Cp)
  double* start_w = nullptr;    // (start_rows, Qp): start-class scores, or their exponentials
  double* start_top = nullptr;  // (start_rows,) maximum of a start row
  double* start_low = nullptr;  // (start_rows,) lowest finite score, below the maximum
  double* a = nullptr;          // (T+1, Sp)
  double* g = nullptr;          // (T+1, Kp)
  double* b = nullptr;          // (T+1, Kp): b[v][target of k], key by key
  Scale* a_scale = nullptr;     // (T+1,)
  Scale* g_scale = nullptr;     // (T+1,)
  Scale* b_scale = nullptr;     // (T+1,)
  double* g_low = nullptr;      // (T+1,) log of the smallest positive weight
  uint8_t* alive = nullptr;     // (T+1,) some configuration passes here
  double* rows = nullptr;       // (M, row_stride)
  double* cache = nullptr;      // (T, M, Cp): with full scores, exponentials of all rows, made once for both sweeps
  double* cache_top = nullptr;  // (T, M)
  double* cache_low = nullptr;  // (T, M)
  double* row_top = nullptr;    // (M,)
  double* row_low = nullptr;    // (M,)
  Scale* row_scale = nullptr;   // (M,) of a row's maximum times the weights that it meets
  double* h = nullptr;          // (Kp,)
  double* x = nullptr;          // (row_stride,)
  double* q = nullptr;          // (Kp,)
  double* state = nullptr;      // (N,) nodes: a row of states, then sums
  double* state_sum = nullptr;  // (N,)
  double* sum_c = nullptr;      // (Cp,)
  double* inside_c = nullptr;   // (Cp,)
  double* start_q = nullptr;    // (Qp,)
  double* tail = nullptr;       // (end classes,)
  double* start_e = nullptr;    // (T+1, Cp): expected starts by extent class
  double* end_e = nullptr;      // (T+1, Cp): expected ends
  double* length_e = nullptr;   // (M, Cp): expected lengths
};

// One of several chains whose best scores are found side by side.
struct BestLane {
  const SegmentView* view = nullptr;
  SegmentWork* work = nullptr;  // prepared; receives a, a_scale, alive
  Filled filled = Filled::kFine;
};

// A set P_t of label patterns that live at a position (docs/notation.md, section 1, Sum-Difference), as two trees.
//
// Nodes are the patterns. Node r < roots is the label r (or, in the set after the last position, the end); longer ones
// follow, suffixes before extensions and the children of a node side by side. States are what the next position asks
// for: state 0 is the empty pattern, 1 + r the label r, the others are nodes that are prefixes of nodes there. Active
// nodes are those whose beta is read: the roots, then nodes that have children, in order.
struct PatternSetView {
  int32_t nodes = 0, roots = 0, states = 0, active = 0, before = 0;  // before: states of the set one position earlier
  int32_t inner = 0;                                                 // nodes from `roots` on that have children
  const int32_t* suffix = nullptr;         // (nodes,) longest proper suffix, a node; -1 for roots
  const int32_t* prefix = nullptr;         // (nodes,) without the last label, a state of the set before; 0 for roots
  const int32_t* label = nullptr;          // (nodes,) root that the node ends in
  const int32_t* children = nullptr;       // (nodes + 1,) node n has the children children[n] .. children[n + 1]
  const int32_t* leaves = nullptr;         // (nodes,) the first of its children that has none itself: the last ones
  const int32_t* inner_node = nullptr;     // (inner,) suffixes before extensions
  const int32_t* state_node = nullptr;     // (states,) -1 for state 0
  const int32_t* state_inner = nullptr;    // (states,) its node if that has children, else 0
  const int32_t* node_state = nullptr;     // (nodes,) state of a node, or `states`: none
  const int32_t* label_states = nullptr;   // (roots + 1,) states from 1 + roots on that end in a label, side by side
  const int32_t* active_node = nullptr;    // (active,)
  const int32_t* active_state = nullptr;   // (active,) node_state of it
  const int32_t* active_prefix = nullptr;  // (active,) prefix of it
  const int32_t* active_suffix = nullptr;  // (active,) place of the suffix among the active nodes; -1 for roots
  // nodes from `roots` on, by prefix: those of state slot_state[j] are entries[j] .. entries[j + 1]
  const int32_t* slot_state = nullptr;     // (before,) states of the set before, by their number of entries
  const int32_t* entries = nullptr;        // (before + 1,)
  const int32_t* entry_node = nullptr;     // (nodes - roots,)
  const int32_t* entry_suffix = nullptr;   // (nodes - roots,) place of the suffix among the active nodes
  const int32_t* state_entries = nullptr;  // (before + 1,) the same for nodes that are states
  const int32_t* state_entry = nullptr;    // (states - 1 - roots,) the state
};

// A set with what attributes add to it at one position: nodes and states that follow those of the base.
struct LocalPatternsView {
  const PatternSetView* base = nullptr;
  int32_t nodes = 0, states = 0;         // with the base's
  bool dense = false;                    // all pairs of labels live here, by a matrix
  int32_t pairs = 0;                     // dense: the first so many nodes beyond the base's are pairs of labels
  const int32_t* suffix = nullptr;       // (nodes - base nodes,) a node
  const int32_t* prefix = nullptr;       // (nodes - base nodes,) a state of the set before
  const int32_t* state_node = nullptr;   // (states - base states,)
  const int32_t* state_label = nullptr;  // (states - base states,)
};

// e^W at all positions that share a set, B(n) = e^{W(n)} without the score of the last label: that is u.
struct PatternCoefficients {
  const double* b = nullptr;        // (nodes,) B(n); 1 for roots
  const double* c = nullptr;        // (nodes,) B(n) - B(suffix of n); 0 for roots
  const double* cap = nullptr;      // (active,) largest of B(n), B(suffix), B(children)
  const double* entry_c = nullptr;  // (nodes - roots,) c by entry
  const double* state_b = nullptr;  // (states - 1 - roots,) b by state entry
  const double* under = nullptr;    // (states,) B(suffix of the state's node), of a leaf its own B
};

// Four sequences side by side in the lanes of a vector: position t of all of them at once.
struct SumDifferenceView {
  int64_t length = 0;                                        // positions of the longest
  int64_t labels = 0;                                        // row length of u and of the posteriors
  const PatternSetView* const* sets = nullptr;               // (length,)
  const PatternCoefficients* const* coefficients = nullptr;  // (length,)
  int64_t before = 1;              // states before the first position: empty, and BOS where patterns know it
  double* u = nullptr;             // (length, labels, width) e^{score of a label}, largest 1; is scaled in place
  const int64_t* stop = nullptr;   // (width,) positions of each sequence
  const double* factor = nullptr;  // (width,) what expectations are multiplied by
};

struct SumDifferenceWork {
  double* gamma = nullptr;      // states of all sets, then one zero each, by position; preceded by the start's
  int64_t* gamma_at = nullptr;  // (length + 1,) offset of a position's states, in lanes: [0] is the start
  double* x = nullptr;          // (most nodes, width)
  double* delta[2] = {nullptr, nullptr};  // (most states + 1, width)
  double* beta_top = nullptr;             // (most active, width) largest u beta of a node and its suffixes
  double* scaled_beta = nullptr;          // (most active, width) u beta
  double* log_z = nullptr;                // (width,)
  double* z = nullptr;                    // (width,) Z on the last position's scale
  double* kappa = nullptr;                // (width,) largest term of a difference, relative to what it leaves of Z
};

// B of all pairs of labels, 1 for those without a feature; rows are padded with what is never read.
struct PairMatrixView {
  int64_t stride = 0;
  const double* weight = nullptr;      // (labels, stride) by first label
  const double* transposed = nullptr;  // (labels, stride) by last label
  const double* cap = nullptr;         // (labels,) largest of 1 and B of pairs that end in a label
};

// One sequence whose sets and coefficients belong to its positions.
struct LocalView {
  int64_t length = 0, labels = 0, before = 1;  // as above
  const LocalPatternsView* sets = nullptr;     // (length,)
  const double* const* b = nullptr;            // (length,) of (nodes,): B(n)
  const double* const* under = nullptr;        // (length,) of (nodes - base nodes,): B(suffix), of pairs the matrix's B
  PairMatrixView pairs;                        // for dense sets
  double* u = nullptr;                         // (length, labels)
};

struct LocalWork {
  double* gamma = nullptr;                                                                 // as above, without zeros
  const int64_t* gamma_at = nullptr;                                                       // (length + 1,)
  double *x = nullptr, *beta = nullptr, *top = nullptr, *reach = nullptr, *own = nullptr;  // (most nodes, or stride)
  double* guard = nullptr;                                                                 // (most nodes + 4,)
  double* delta[2] = {nullptr, nullptr};                                                   // (most states,)
  double *from = nullptr, *to = nullptr;  // (length, stride) dense: G of labels, u beta of labels; zeros elsewhere
  double log_z = 0.0, z = 0.0, kappa = 0.0;
};

// Expectations, added up over positions that share coefficients: of prefix weight times suffix continuation.
struct PatternSums {
  double* entry = nullptr;  // (nodes - roots, width) sum of gamma(prefix) u beta(suffix)
  double* state = nullptr;  // (states - 1 - roots, width) sum of gamma(prefix) u delta(node)
};

// Where answers go, in the shapes of the view; null pointers are not asked for; arrays come in zeroed.
struct SegmentAnswer {
  double* labels = nullptr;      // (T, L)
  double* boundaries = nullptr;  // (T,)
  int64_t stride = 1;            // >= M
  double* segments = nullptr;    // (T, stride, L)
  double* full = nullptr;        // (T, stride, columns)
  double* starts = nullptr;
  double* start = nullptr;
  double* inside = nullptr;
  double* end = nullptr;
  double* by_length = nullptr;
  double log_partition = 0.0;
};

}  // namespace scansion
