// From encoded attributes and weights to scores, and from posteriors or paths back to features: the flat models
// (chains and segments of any order) as one thing. Paper 001, sections 2.1 and 2.3.
//
// A feature is an attribute (or "always") tied to a label pattern z, read in one of four ways on a segment [u, v):
//   start   g = value at u               end    g = value at v - 1
//   inside  g = sum of values over u..v-1   inner  g = sum over u+1..v-1 (= inside - start)
// Patterns 0..L-1 are the labels themselves, longer ones follow. Weights are one flat vector: see ModelView.
#pragma once

#include <cmath>
#include <vector>

#include "lattice.hpp"
#include "pattern_automaton.hpp"

namespace scansion {

enum Part : int { kStart = 0, kInside = 1, kEnd = 2, kInner = 3, kParts = 4 };

// Encoded sequences; see scansion.data.Dataset.
struct DataView {
  int64_t sequences = 0;
  const int64_t* offsets = nullptr;        // (B + 1,) tokens of a sequence
  const int64_t* token_offsets = nullptr;  // (N + 1,) entries of a token
  const int32_t* ids = nullptr;            // (nnz,)
  const double* values = nullptr;          // (nnz,) or null: all 1
  // attributes of whole segments, from a user's function; null: none
  const int64_t* cell_offsets = nullptr;   // (B + 1,)
  const int32_t* cell_start = nullptr;
  const int32_t* cell_length = nullptr;
  const int32_t* cell_ids = nullptr;
  const double* cell_values = nullptr;
};

// Which features exist: attribute a has the weights base + k, k in rows[a]..rows[a+1], on pattern[k].
struct FeatureRows {
  const int64_t* rows = nullptr;  // (attributes + 1,) or null: none
  const int32_t* pattern = nullptr;
  int64_t attributes = 0;  // ids from here on are unknown and ignored
  int64_t base = 0;
};

struct ModelView {
  int64_t labels = 0, patterns = 0, max_length = 1, weights = 0;
  bool dense = false;           // first-order chain: patterns are labels and pairs, kernel of chain.hpp
  bool varying_starts = false;  // some token feature sits on a longer pattern that has no extent
  int64_t columns = 0;          // L, or P when longer patterns have an extent
  FeatureRows parts[kParts];
  FeatureRows cells;                 // features of whole segments
  const int32_t* bias = nullptr;     // (P,) weight of the always-on feature of a pattern, or -1
  const int32_t* pair = nullptr;     // (P,) i * L + j for pairs, dense only
  const uint8_t* extent = nullptr;   // (P,)
  const uint8_t* forbidden = nullptr;  // (P,) or null: patterns that must not occur (segments only, no extent)
  const int32_t* limits = nullptr;     // (L,) or null: longest segment of each label (segments only)
  int64_t basis = 0;                 // length features: basis functions times labels
  const double* basis_value = nullptr;  // (basis, M)
  int64_t basis_base = 0;               // weight basis_base + b * L + y
};

// Token features of a chain on single labels in two forms: attributes that go with many labels have a whole row of L (padded)
// weights, so that a token's scores are sums of rows; the others keep their lists of features.
struct SplitFeatures {
  std::vector<int64_t> wide_offsets, narrow_offsets;  // (N + 1,) entries of a token
  std::vector<int32_t> wide_rows, narrow_ids;
  std::vector<int32_t> row_attribute;  // (rows,)
  std::vector<int64_t> stop;           // (attributes,) end of an attribute's features on single labels: they come first
  int64_t stride = 0;

  int64_t size() const { return static_cast<int64_t>(row_attribute.size()) * stride; }

  SplitFeatures(const ModelView& m, const DataView& data) : stride((m.labels + 3) / 4 * 4) {
    const FeatureRows& f = m.parts[kStart];
    const int64_t tokens = data.offsets[data.sequences];
    std::vector<int64_t> uses(static_cast<size_t>(f.attributes), 0);
    for (int64_t e = 0; e < data.token_offsets[tokens]; ++e)
      if (data.ids[e] < f.attributes) ++uses[data.ids[e]];
    for (int64_t a = 0; a < f.attributes; ++a)
      stop.push_back(std::lower_bound(f.pattern + f.rows[a], f.pattern + f.rows[a + 1], m.labels) - f.pattern);
    std::vector<int32_t> row(static_cast<size_t>(f.attributes), -1);
    for (int64_t a = 0; a < f.attributes; ++a) {
      // a row costs about a vector operation for four labels, a list about one for each feature
      const int64_t features = stop[a] - f.rows[a];
      if (2 * features > stride / 4 && uses[a] * features > 4 * stride) {
        row[a] = static_cast<int32_t>(row_attribute.size());
        row_attribute.push_back(static_cast<int32_t>(a));
      }
    }
    wide_offsets.assign(static_cast<size_t>(tokens) + 1, 0);
    narrow_offsets = wide_offsets;
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t e = data.token_offsets[t]; e < data.token_offsets[t + 1]; ++e) {
        const int32_t id = data.ids[e];
        if (id >= f.attributes || f.rows[id] == stop[id]) continue;
        if (row[id] >= 0)
          wide_rows.push_back(row[id]);
        else
          narrow_ids.push_back(id);
      }
      wide_offsets[t + 1] = static_cast<int64_t>(wide_rows.size());
      narrow_offsets[t + 1] = static_cast<int64_t>(narrow_ids.size());
    }
  }

  // rows -> weights, for rows that took the weights' place
  void restore(const ModelView& m, const double* table, double* w) const {
    const FeatureRows& f = m.parts[kStart];
    for (size_t r = 0; r < row_attribute.size(); ++r)
      for (int64_t k = f.rows[row_attribute[r]]; k < stop[row_attribute[r]]; ++k)
        w[f.base + k] = table[static_cast<int64_t>(r) * stride + f.pattern[k]];
  }

  // weights -> rows, and what the rows gathered -> weights
  void expand(const ModelView& m, const double* w, double* table) const {
    const FeatureRows& f = m.parts[kStart];
    std::fill_n(table, size(), 0.0);
    for (size_t r = 0; r < row_attribute.size(); ++r)
      for (int64_t k = f.rows[row_attribute[r]]; k < stop[row_attribute[r]]; ++k)
        table[static_cast<int64_t>(r) * stride + f.pattern[k]] = w[f.base + k];
  }
  void fold(const ModelView& m, const double* table, double* out) const {
    const FeatureRows& f = m.parts[kStart];
    for (size_t r = 0; r < row_attribute.size(); ++r)
      for (int64_t k = f.rows[row_attribute[r]]; k < stop[row_attribute[r]]; ++k)
        out[f.base + k] += table[static_cast<int64_t>(r) * stride + f.pattern[k]];
  }
};

// What is known of the sequences' labels; see scansion.data.Targets.
struct TargetView {
  const int32_t* labels = nullptr;   // (N,) -1: unknown
  const uint8_t* ends = nullptr;     // (N,) 1: a segment ends here; segments only, complete sequences
  const uint8_t* status = nullptr;   // (B,) 0 nothing known, 1 partly, 2 complete, 3 a trajectory
  const uint8_t* allowed = nullptr;  // (N, L) for partly known chains
  const int32_t* runs = nullptr;     // (N, L) for partly known segments
  const uint8_t* may_end = nullptr;  // (N,)
  const double* weight = nullptr;    // (B,) or null
  const int64_t* trajectory_offsets = nullptr;  // (B + 1,) or null: places of a trajectory
  const int32_t* trajectories = nullptr;        // labels of all trajectories, one after another
  bool merge = true;                            // a place is a run of equal labels, not a segment
};

inline void prefetch(const void* p) {
#if defined(__GNUC__)
  __builtin_prefetch(p);
#else
  (void)p;
#endif
}

// What to do where a feature meets the cell of its score, or of its expectation.
struct AddWeight {
  const double* w;
  double scale;
  void operator()(double* score, int64_t weight, double value) const { *score += scale * value * w[weight]; }
  void prefetch(int64_t weight) const { scansion::prefetch(w + weight); }
};
struct AddExpectation {
  double* out;
  double factor;
  void operator()(const double* expected, int64_t weight, double value) const { out[weight] += factor * value * *expected; }
  void prefetch(int64_t weight) const { scansion::prefetch(out + weight); }
};

template <class Add>
struct Each {
  const Add& add;
  void operator()(const double* expected, int64_t weight, double value) const {
    if (*expected != 0.0) add(weight, value * *expected);
  }
  void prefetch(int64_t) const {}
};

// One sequence's scores and expectations, in the arrays that the kernels take.
class SequenceScores {
 public:
  SequenceScores(const ModelView& model, const PatternAutomaton* automaton, const Topology* topology)
      : m_(model), automaton_(automaton), topology_(topology) {}

  // Scores of sequence b under `scale` times the weights; gold (T,), or null: the Hamming cost,
  // 1 for every other label of a token, is added.
  // split, table: the token features as rows; null: none.
  void fill(const DataView& data, int64_t b, const double* w, double scale, const int32_t* gold,
            const SplitFeatures* split = nullptr, const double* table = nullptr) {
    first_ = data.offsets[b];
    length_ = data.offsets[b + 1] - first_;
    limit_ = std::max<int64_t>(1, std::min(m_.max_length, length_));
    layout(scores_, data);
    if (m_.dense) {
      fill_pairs(w, scale);
    } else {
      fill_starts(w, scale);
    }
    const AddWeight add{w, scale};
    if (split) {
      for (int64_t t = 0; t < length_; ++t) {
        const int64_t* wide = split->wide_offsets.data() + first_ + t;
        double* row = scores_.start + t * m_.labels;
        kernels().sum_rows(table, split->stride, split->wide_rows.data() + wide[0], wide[1] - wide[0], row);
        if (scale != 1.0)
          for (int64_t y = 0; y < m_.labels; ++y) row[y] *= scale;
      }
      scatter_labels(split->narrow_offsets.data(), split->narrow_ids.data(), nullptr, add, scores_.start);
    } else {
      scatter_tokens(data, add, scores_);
    }
    if (m_.cells.rows && data.cell_offsets) scatter_cells(data, b, add, scores_);
    for (int64_t i = 0; i < m_.basis; ++i)
      for (int64_t d = 0; d < limit_; ++d)
        for (int64_t y = 0; y < m_.labels; ++y)
          scores_.by_length[d * m_.columns + y] += scale * w[m_.basis_base + i * m_.labels + y] * m_.basis_value[i * m_.max_length + d];
    for (int64_t y = 0; m_.limits && y < m_.labels; ++y)
      for (int64_t d = m_.limits[y]; d < limit_; ++d) scores_.by_length[d * m_.columns + y] = kMinusInfinity;
    if (gold) {
      double* row = m_.max_length == 1 ? scores_.start : scores_.inside;
      for (int64_t t = 0; t < length_; ++t)
        for (int64_t y = 0; y < m_.labels; ++y)
          if (gold[t] >= 0 && gold[t] != y) row[t * m_.columns + y] += 1.0;
    }
  }

  ChainView chain_view(const uint8_t* allowed) const {
    ChainView v;
    v.length = length_;
    v.labels = m_.labels;
    v.unary = scores_.start;
    v.transition = scores_.pairs;
    v.transition_stride = m_.varying_starts ? m_.labels * m_.labels : 0;
    v.allowed = allowed ? allowed + first_ * m_.labels : nullptr;
    return v;
  }

  SegmentView segment_view(const int32_t* runs, const uint8_t* may_end) const {
    SegmentView v;
    v.length = length_;
    v.max_length = limit_;
    v.starts = scores_.starts;
    v.starts_stride = m_.varying_starts ? m_.patterns : 0;
    v.columns = m_.columns;
    v.full = scores_.full;
    v.full_stride = limit_;
    v.start = scores_.start;
    v.start_stride = m_.columns;
    v.inside = scores_.inside;
    v.end = scores_.end;
    v.by_length = scores_.by_length;
    if (runs) v.runs = runs + first_ * m_.labels;
    if (may_end) v.may_end = may_end + first_;
    return v;
  }

  // log Z (with `known`: of what the targets allow) and, into the expectation arrays, the posteriors
  double posteriors(const DataView& data, const TransitionWeights* shared, const TargetView* known, bool backward) {
    if (backward) layout(expected_, data);
    sparse_ = false;
    if (m_.dense) {
      const ChainView view = chain_view(known ? known->allowed : nullptr);
      ChainAnswer answer;
      if (backward) {
        answer.labels = expected_.start;
        if (m_.varying_starts) {
          answer.transitions = expected_.pairs;
        } else {
          outer_.assign(static_cast<size_t>(m_.labels * padded4(m_.labels)), 0.0);
          answer.outer = outer_.data();
          answer.counts = expected_.pairs;
        }
      }
      chain_posteriors(view, m_.varying_starts ? nullptr : shared, work_, backward, answer);
      if (backward && !m_.varying_starts)
        for (int64_t i = 0; i < m_.labels; ++i)
          for (int64_t j = 0; j < m_.labels; ++j) {
            const int64_t at = i * padded4(m_.labels) + j;
            expected_.pairs[i * m_.labels + j] += outer_[at] * shared->weight[at];
          }
      return answer.log_partition;
    }
    const SegmentView view = segment_view(known ? known->runs : nullptr, known ? known->may_end : nullptr);
    SegmentAnswer answer;
    answer.stride = limit_;
    if (backward) {
      answer.starts = expected_.starts;
      answer.full = expected_.full;
      answer.start = expected_.start;
      answer.inside = expected_.inside;
      answer.end = expected_.end;
      answer.by_length = expected_.by_length;
    }
    segment_posteriors(view, topology_->view(), work_, backward, answer);
    return answer.log_partition;
  }

  // out[weight] += factor * expected value of the feature, from the arrays of posteriors(); with split, rows of table
  // take what belongs to them, where mask is 1 (null: also where there is no feature)
  void add_expectations(const DataView& data, int64_t b, double factor, double* out,
                        const SplitFeatures* split = nullptr, double* table = nullptr, const double* mask = nullptr) {
    const AddExpectation add{out, factor};
    if (split) {
      for (int64_t t = 0; t < length_; ++t) {
        if (!touched(t)) continue;
        const int64_t* wide = split->wide_offsets.data() + first_ + t;
        row_.assign(static_cast<size_t>(split->stride), 0.0);  // rows of a table end in zeros
        std::copy_n(expected_.start + t * m_.labels, m_.labels, row_.data());
        kernels().add_to_rows(table, mask, split->stride, split->wide_rows.data() + wide[0], wide[1] - wide[0],
                              row_.data(), factor);
      }
      scatter_labels(split->narrow_offsets.data(), split->narrow_ids.data(), nullptr, add, expected_.start);
    } else {
      scatter_tokens(data, add, expected_);
    }
    scatter_rest(data, b, add);
  }

  // The same feature by feature: add(weight, value), only for tokens where something is expected. For sparse updates.
  template <class Add>
  void each_expectation(const DataView& data, int64_t b, const Add& add) {
    const Each<Add> each{add};
    scatter_tokens(data, each, expected_);
    scatter_rest(data, b, each);
  }

  // best segmentation of the scores in hand; empty if nothing is possible
  Path decode(const TargetView* known) {
    Path path;
    if (m_.dense) {
      const ChainView view = chain_view(known ? known->allowed : nullptr);
      labels_.resize(static_cast<size_t>(length_));
      if (!best_labels(view, work_, labels_.data())) return path;
      for (int64_t t = 0; t < length_; ++t) path.push_back({t, t + 1, labels_[t]});
      return path;
    }
    const SegmentView view = segment_view(known ? known->runs : nullptr, known ? known->may_end : nullptr);
    on_segments(view, topology_->view(), work_, ranks_, Table::kBest, [&](auto& graph) { return best_path(graph, path); });
    return path;
  }

  // The score of a segmentation, from the scores in hand.
  double score(const Path& path) {
    double sum = 0.0;
    each_cell(path, scores_, [&](const double& cell) { sum += cell; });
    return sum;
  }

  // Expectations of nothing yet, for add_path().
  void clear_expectations(const DataView& data) {
    layout(expected_, data);
    sparse_ = true;
  }

  // Adds amount times a segmentation to the expectations: after posteriors(), amount = -1 leaves the gradient's cells.
  void add_path(const Path& path, double amount) {
    each_cell(path, expected_, [&](double& cell) { cell += amount; });
  }

  struct Arrays {
    std::vector<double> block;
    double *start = nullptr, *inside = nullptr, *end = nullptr, *by_length = nullptr, *full = nullptr;
    double *starts = nullptr, *pairs = nullptr;
  };
  const Arrays& scores() const { return scores_; }
  int64_t limit() const { return limit_; }

  static int64_t padded4(int64_t n) { return (n + 3) / 4 * 4; }

 private:
  friend class PlaceScores;  // the same sequence on the places of a trajectory

  // Whether anything is expected at token t: paths that agree there leave nothing.
  bool touched(int64_t t) const {
    if (!sparse_) return true;
    const double* row = expected_.start + t * m_.labels;
    return std::any_of(row, row + m_.labels, [](double x) { return x != 0.0; });
  }
  bool uses(Part part) const { return m_.parts[part].rows != nullptr; }
  bool needs_inside() const { return !m_.dense && (m_.max_length > 1 || uses(kInside) || uses(kInner)); }

  void layout(Arrays& a, const DataView& data) const {
    const int64_t T = length_, C = m_.columns, L = m_.labels;
    const int64_t inside = needs_inside() ? T * C : 0;
    const int64_t end = !m_.dense && uses(kEnd) ? T * C : 0;
    const int64_t by_length = m_.basis || m_.limits ? limit_ * C : 0;
    const int64_t full = m_.cells.rows && data.cell_offsets ? T * limit_ * C : 0;
    const int64_t starts = m_.dense ? 0 : (m_.varying_starts ? T : 1) * m_.patterns;
    const int64_t pairs = m_.dense ? (m_.varying_starts ? std::max<int64_t>(0, T - 1) : 1) * L * L : 0;
    a.block.assign(static_cast<size_t>(T * C + inside + end + by_length + full + starts + pairs + 4), 0.0);
    double* p = a.block.data();
    const auto take = [&p](int64_t n) {
      double* q = n ? p : nullptr;
      p += n;
      return q;
    };
    a.start = p;
    p += T * C;
    a.inside = take(inside);
    a.end = take(end);
    a.by_length = take(by_length);
    a.full = take(full);
    a.starts = take(starts);
    a.pairs = take(pairs);
  }

  // what scatter_tokens() leaves: whole segments, lengths, always-on patterns
  template <class Use>
  void scatter_rest(const DataView& data, int64_t b, const Use& use) {
    if (m_.cells.rows && data.cell_offsets) scatter_cells(data, b, use, expected_);
    for (int64_t i = 0; i < m_.basis; ++i)
      for (int64_t d = 0; d < limit_; ++d)
        for (int64_t y = 0; y < m_.labels; ++y)
          use(expected_.by_length + d * m_.columns + y, m_.basis_base + i * m_.labels + y,
              m_.basis_value[i * m_.max_length + d]);
    const int64_t rows = m_.varying_starts ? (m_.dense ? length_ - 1 : length_) : 1;
    for (int64_t z = m_.labels; z < m_.patterns; ++z) {
      if (m_.bias[z] < 0) continue;
      double sum = 0.0;
      if (m_.dense)
        for (int64_t r = 0; r < rows; ++r) sum += expected_.pairs[r * m_.labels * m_.labels + m_.pair[z]];
      else if (m_.extent[z])
        for (int64_t t = 0; t < length_; ++t) sum += expected_.start[t * m_.columns + z];
      else
        for (int64_t r = 0; r < rows; ++r) sum += expected_.starts[r * m_.patterns + z];
      use(&sum, m_.bias[z], 1.0);
    }
  }

  void fill_pairs(const double* w, double scale) {
    const int64_t LL = m_.labels * m_.labels;
    const int64_t rows = m_.varying_starts ? length_ - 1 : 1;
    for (int64_t z = m_.labels; z < m_.patterns; ++z)
      if (m_.bias[z] >= 0)
        for (int64_t r = 0; r < rows; ++r) scores_.pairs[r * LL + m_.pair[z]] = scale * w[m_.bias[z]];
  }
  void fill_starts(const double* w, double scale) {
    const int64_t rows = m_.varying_starts ? length_ : 1;
    for (int64_t z = m_.labels; z < m_.patterns; ++z) {
      if (m_.forbidden && m_.forbidden[z])
        for (int64_t r = 0; r < rows; ++r) scores_.starts[r * m_.patterns + z] = kMinusInfinity;
      if (m_.bias[z] < 0) continue;
      const double x = scale * w[m_.bias[z]];
      if (m_.extent[z])
        for (int64_t t = 0; t < length_; ++t) scores_.start[t * m_.columns + z] += x;
      else
        for (int64_t r = 0; r < rows; ++r) scores_.starts[r * m_.patterns + z] = x;
    }
  }

  // use(cell, weight, value) for every token feature, cell being where its score or expectation stands
  template <class Use, class A>
  void scatter_tokens(const DataView& data, const Use& use, A& a) const {
    const int64_t C = m_.columns, L = m_.labels;
    const auto each = [&](Part part, const auto& cell) {
      const FeatureRows& f = m_.parts[part];
      if (!f.rows) return;
      for (int64_t t = 0; t < length_; ++t) {
        const int64_t* entry = data.token_offsets + first_ + t;
        for (int64_t e = entry[0]; e < entry[1]; ++e) {
          const int64_t id = data.ids[e];
          if (id >= f.attributes) continue;
          const double value = data.values ? data.values[e] : 1.0;
          for (int64_t k = f.rows[id]; k < f.rows[id + 1]; ++k) cell(t, f.pattern[k], f.base + k, value);
        }
      }
    };
    if (m_.dense && !m_.varying_starts) {
      scatter_labels(data.token_offsets, data.ids, data.values, use, a.start);
      return;
    }
    each(kStart, [&](int64_t t, int64_t z, int64_t weight, double value) {
      if (z < L || (!m_.dense && m_.extent[z]))
        use(a.start + t * C + z, weight, value);
      else if (!m_.dense)
        use(a.starts + t * m_.patterns + z, weight, value);
      else if (t > 0)
        use(a.pairs + (t - 1) * L * L + m_.pair[z], weight, value);
    });
    each(kInside, [&](int64_t t, int64_t z, int64_t weight, double value) { use(a.inside + t * C + z, weight, value); });
    each(kEnd, [&](int64_t t, int64_t z, int64_t weight, double value) { use(a.end + t * C + z, weight, value); });
    each(kInner, [&](int64_t t, int64_t z, int64_t weight, double value) {
      use(a.inside + t * C + z, weight, value);
      use(a.start + t * C + z, weight, -value);
    });
  }

  // The case that matters most, a first-order chain whose token features sit on single labels. Rows of features are
  // spread over megabytes, so they are asked for a few entries ahead.
  template <class Use>
  void scatter_labels(const int64_t* token_offsets, const int32_t* ids, const double* values, const Use& use,
                      double* start) const {
    const FeatureRows& f = m_.parts[kStart];
    if (!f.rows) return;
    const int64_t L = m_.labels;
    const int64_t last = token_offsets[first_ + length_];
    for (int64_t t = 0; t < length_; ++t) {
      if (start == expected_.start && !touched(t)) continue;
      double* row = start + t * L;
      const int64_t* entry = token_offsets + first_ + t;
      for (int64_t e = entry[0]; e < entry[1]; ++e) {
        if (e + 12 < last) prefetch(f.rows + std::min<int64_t>(ids[e + 12], f.attributes));
        if (e + 6 < last) {
          const int64_t k = f.rows[std::min<int64_t>(ids[e + 6], f.attributes)];
          prefetch(f.pattern + k);
          use.prefetch(f.base + k);
        }
        const int64_t id = ids[e];
        if (id >= f.attributes) continue;
        const double value = values ? values[e] : 1.0;
        for (int64_t k = f.rows[id]; k < f.rows[id + 1]; ++k) use(row + f.pattern[k], f.base + k, value);
      }
    }
  }

  template <class Use, class A>
  void scatter_cells(const DataView& data, int64_t b, const Use& use, A& a) const {
    for (int64_t e = data.cell_offsets[b]; e < data.cell_offsets[b + 1]; ++e) {
      const int64_t id = data.cell_ids[e];
      if (id >= m_.cells.attributes || data.cell_length[e] > limit_) continue;
      double* row = a.full + (data.cell_start[e] * limit_ + data.cell_length[e] - 1) * m_.columns;
      for (int64_t k = m_.cells.rows[id]; k < m_.cells.rows[id + 1]; ++k)
        use(row + m_.cells.pattern[k], m_.cells.base + k, data.cell_values[e]);
    }
  }

  // use(cell) for every cell that the patterns of a segmentation read
  template <class Use>
  void each_cell(const Path& path, Arrays& a, const Use& use) const {
    const int64_t C = m_.columns, L = m_.labels;
    int64_t state = automaton_->initial();
    const auto pattern = [&](int64_t z, const Step& step) {
      if (m_.dense) {
        if (z < L)
          use(a.start[step.start * L + z]);
        else
          use(a.pairs[(m_.varying_starts ? step.start - 1 : 0) * L * L + m_.pair[z]]);
        return;
      }
      if (!m_.extent[z]) {
        use(a.starts[(m_.varying_starts ? step.start : 0) * m_.patterns + z]);
        return;
      }
      const int64_t d = step.stop - step.start;
      use(a.start[step.start * C + z]);
      for (int64_t t = step.start; a.inside && t < step.stop; ++t) use(a.inside[t * C + z]);
      if (a.end) use(a.end[(step.stop - 1) * C + z]);
      if (a.by_length) use(a.by_length[(d - 1) * C + z]);
      if (a.full) use(a.full[(step.start * limit_ + d - 1) * C + z]);
    };
    for (const Step& step : path) {
      for (int64_t z = automaton_->match(state, step.label); z >= 0; z = automaton_->pattern_suffix(z)) pattern(z, step);
      state = automaton_->next(state, step.label);
      if (step.stop == length_)
        for (int64_t z = automaton_->end_match(state); z >= 0; z = automaton_->pattern_suffix(z)) pattern(z, step);
    }
  }

  const ModelView& m_;
  const PatternAutomaton* automaton_;
  const Topology* topology_;
  int64_t first_ = 0, length_ = 0, limit_ = 1;
  bool sparse_ = false;  // expectations are a difference of paths
  Arrays scores_, expected_;
  Workspace work_;
  std::vector<double> outer_, row_;
  std::vector<int32_t> ranks_, labels_;
};

// The segmentation that a complete target stands for.
inline Path target_path(const DataView& data, const TargetView& target, int64_t b) {
  Path path;
  int64_t start = 0;
  const int64_t first = data.offsets[b], length = data.offsets[b + 1] - first;
  for (int64_t t = 0; t < length; ++t)
    if (!target.ends || target.ends[first + t] == 1) {
      path.push_back({start, t + 1, target.labels[first + t]});
      start = t + 1;
    }
  return path;
}

}  // namespace scansion
