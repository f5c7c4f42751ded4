// From encoded attributes and weights to scores, and from posteriors or paths back to features: the flat models
// (chains and segments of any order) as one thing. Paper 001, sections 2.1 and 2.3.
//
// A feature is an attribute (or "always") tied to a label pattern z, read in one of four ways on a segment [u, v):
//   start   g = value at u               end    g = value at v - 1
//   inside  g = sum of values over u..v-1   inner  g = sum over u+1..v-1 (= inside - start)
// Patterns 0..L-1 are the labels themselves, longer ones follow. Weights are one flat vector: see FlatModelView.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "features.hpp"
#include "lattice.hpp"
#include "pattern_automaton.hpp"

namespace scansion {

enum Part : int { kStart = 0, kInside = 1, kEnd = 2, kInner = 3, kParts = 4 };

// Which features a flat model has: L labels, P patterns, W weights.
struct FlatModelView {
  const PatternAutomaton* automaton = nullptr;
  const Topology* topology = nullptr;  // for the segment kernel; null: dense
  int64_t labels = 0, patterns = 0, weights = 0;
  int64_t max_length = 1;                  // longest segment M
  bool dense = false;                      // first-order chain: patterns are labels and pairs, kernel of chain.hpp
  bool varying_starts = false;             // some token feature sits on a longer pattern that has no extent
  int64_t columns = 0;                     // L, or P when longer patterns have an extent
  FeatureRows parts[kParts];               // of tokens; columns are patterns
  FeatureRows cells;                       // of whole segments; likewise
  const int32_t* bias = nullptr;           // (P,) weight of the always-on feature of a pattern, or -1
  const int32_t* pair = nullptr;           // (P,) i * L + j for pairs, dense only
  const uint8_t* extent = nullptr;         // (P,) 1: the score depends on more than a segment's start
  const uint8_t* forbidden = nullptr;      // (P,) or null: patterns that must not occur (no extent)
  const uint8_t* first = nullptr;          // (L,) or null: 1 for labels that may begin a sequence
  const uint8_t* last = nullptr;           // (L,) or null: 1 for labels that may end one
  const int32_t* limits = nullptr;         // (L,) or null: longest segment of each label (segments only)
  const int32_t* shortest = nullptr;       // (L,) or null: shortest segment of each label (segments only)
  FeatureRows lengths;                     // rows are functions of the length, columns labels
  const double* basis_value = nullptr;     // (rows, M) the functions
  const int64_t* basis_support = nullptr;  // (rows, 2) lengths - 1 from the first up to which a function is not 0

  bool timed() const { return lengths.rows || limits || shortest; }
  // all scores of a token's features are one row of single labels
  bool single_labels() const {
    return columns == labels && !varying_starts && !parts[kInside].rows && !parts[kEnd].rows && !parts[kInner].rows;
  }
};

// What is known of the sequences' labels; see scansion.data.Targets.
struct FlatTargetView {
  const int32_t* labels = nullptr;              // (N,) -1: unknown
  const uint8_t* ends = nullptr;                // (N,) 1: a segment ends here; segments only, complete sequences
  const uint8_t* status = nullptr;              // (B,) of enum Status
  const uint8_t* allowed = nullptr;             // (N, L) for partly known chains
  const int32_t* runs = nullptr;                // (N, L) for partly known segments: the longest that may start here
  const uint8_t* may_end = nullptr;             // (N,) likewise: whether one may end here
  const double* weight = nullptr;               // (B,) or null: all 1
  const int64_t* trajectory_offsets = nullptr;  // (B + 1,) or null: places of a trajectory
  const int32_t* trajectories = nullptr;        // labels of all trajectories, one after another
  bool merge = true;                            // a place is a run of equal labels, not a segment
};

// ---- scores that do not depend on tokens; `rows` of them are the same ----

// pairs (rows, L, L) of a dense model
inline void fill_pairs(const FlatModelView& m, const double* w, double scale, int64_t rows, double* pairs) {
  const int64_t LL = m.labels * m.labels;
  for (int64_t z = m.labels; z < m.patterns; ++z) {
    const bool never = m.forbidden && m.forbidden[z];
    if (m.bias[z] < 0 && !never) continue;
    for (int64_t r = 0; r < rows; ++r) pairs[r * LL + m.pair[z]] = never ? kMinusInfinity : scale * w[m.bias[z]];
  }
}

// starts (rows, P): patterns without an extent
inline void fill_starts(const FlatModelView& m, const double* w, double scale, int64_t rows, double* starts) {
  for (int64_t z = m.labels; z < m.patterns; ++z) {
    if (m.forbidden && m.forbidden[z])
      for (int64_t r = 0; r < rows; ++r) starts[r * m.patterns + z] = kMinusInfinity;
    if (m.bias[z] < 0 || m.extent[z]) continue;
    for (int64_t r = 0; r < rows; ++r) starts[r * m.patterns + z] = scale * w[m.bias[z]];
  }
}

// use(length - 1, label, weight, value) for every feature of lengths up to `limit`, where it is not 0
template <class Use>
void each_length(const FlatModelView& m, int64_t limit, const Use& use) {
  const FeatureRows& f = m.lengths;
  for (int64_t i = 0; f.rows && i < f.attributes; ++i)
    for (int64_t d = m.basis_support[2 * i]; d < std::min(limit, m.basis_support[2 * i + 1]); ++d)
      for (int64_t k = f.rows[i]; k < f.rows[i + 1]; ++k)
        use(d, f.column[k], f.base + k, m.basis_value[i * m.max_length + d]);
}

// by_length (limit, columns) += scores of lengths 1..limit
inline void add_lengths(const FlatModelView& m, const double* w, double scale, int64_t limit, double* by_length) {
  each_length(m, limit, [&](int64_t d, int64_t y, int64_t weight, double value) {
    by_length[d * m.columns + y] += scale * w[weight] * value;
  });
  for (int64_t y = 0; m.limits && y < m.labels; ++y)
    for (int64_t d = m.limits[y]; d < limit; ++d) by_length[d * m.columns + y] = kMinusInfinity;
  for (int64_t y = 0; m.shortest && y < m.labels; ++y)
    for (int64_t d = 0; d < std::min<int64_t>(m.shortest[y] - 1, limit); ++d)
      by_length[d * m.columns + y] = kMinusInfinity;
}

// ---- one sequence ----

// A number for every cell that the patterns of one sequence read, scores or expectations, in the arrays that the kernels
// take: T positions, C columns, longest segment `limit`.
class FlatArrays {
 public:
  FlatArrays(const FlatModelView& model, const DataView& data) : m_(model), data_(data) {}

  double* start = nullptr;      // (T, C)
  double* inside = nullptr;     // (T, C) or null
  double* end = nullptr;        // (T, C) or null
  double* by_length = nullptr;  // (limit, C) or null
  double* full = nullptr;       // (T, limit, C) or null: whole segments
  double* starts = nullptr;     // (T or 1, P), not dense: patterns without an extent
  double* pairs = nullptr;      // (T - 1 or 1, L, L), dense
  int64_t limit() const { return limit_; }

 protected:
  // arrays of zeros for sequence b
  void layout(int64_t b) {
    sequence_ = b;
    first_ = data_.offsets[b];
    length_ = data_.length(b);
    limit_ = std::max<int64_t>(1, std::min(m_.max_length, length_));
    const int64_t T = length_, C = m_.columns, L = m_.labels;
    const int64_t insides = needs_inside() ? T * C : 0;
    const int64_t ends = !m_.dense && (uses(kEnd) || m_.last) ? T * C : 0;
    const int64_t lengths = m_.timed() ? limit_ * C : 0;
    const int64_t fulls = m_.cells.rows && data_.cells_of(0) ? T * limit_ * C : 0;
    const int64_t all_starts = m_.dense ? 0 : start_rows() * m_.patterns;
    const int64_t all_pairs = m_.dense ? pair_rows() * L * L : 0;
    block_.assign(static_cast<size_t>(T * C + insides + ends + lengths + fulls + all_starts + all_pairs + 4), 0.0);
    double* p = block_.data();
    const auto take = [&p](int64_t n) {
      double* q = n ? p : nullptr;
      p += n;
      return q;
    };
    start = p;
    p += T * C;
    inside = take(insides);
    end = take(ends);
    by_length = take(lengths);
    full = take(fulls);
    starts = take(all_starts);
    pairs = take(all_pairs);
  }

  bool uses(Part part) const { return m_.parts[part].rows != nullptr; }
  bool needs_inside() const { return !m_.dense && (m_.max_length > 1 || uses(kInside) || uses(kInner)); }
  int64_t pair_rows() const { return m_.varying_starts ? std::max<int64_t>(0, length_ - 1) : 1; }
  int64_t start_rows() const { return m_.varying_starts ? length_ : 1; }

  // use(cell, weight, value) for every token feature, cell being where its score or expectation stands
  template <class Use>
  void each_token_cell(const Use& use) {
    const int64_t C = m_.columns, L = m_.labels;
    const auto each = [&](Part part, const auto& cell) {
      const FeatureRows& f = m_.parts[part];
      if (!f.rows) return;
      for (int64_t t = 0; t < length_; ++t) {
        const int64_t* entry = data_.token_offsets + first_ + t;
        for (int64_t e = entry[0]; e < entry[1]; ++e) {
          const int64_t id = data_.ids[e];
          if (id >= f.attributes) continue;
          const double value = data_.values ? data_.values[e] : 1.0;
          for (int64_t k = f.rows[id]; k < f.rows[id + 1]; ++k) cell(t, f.column[k], f.base + k, value);
        }
      }
    };
    each(kStart, [&](int64_t t, int64_t z, int64_t weight, double value) {
      if (z < L || (!m_.dense && m_.extent[z]))
        use(start + t * C + z, weight, value);
      else if (!m_.dense)
        use(starts + t * m_.patterns + z, weight, value);
      else if (t > 0)
        use(pairs + (t - 1) * L * L + m_.pair[z], weight, value);
    });
    each(kInside, [&](int64_t t, int64_t z, int64_t weight, double value) { use(inside + t * C + z, weight, value); });
    each(kEnd, [&](int64_t t, int64_t z, int64_t weight, double value) { use(end + t * C + z, weight, value); });
    each(kInner, [&](int64_t t, int64_t z, int64_t weight, double value) {
      use(inside + t * C + z, weight, value);
      use(start + t * C + z, weight, -value);
    });
  }

  // the same for features of whole segments
  template <class Use>
  void each_segment_cell(const Use& use) {
    const CellsView* cells = data_.cells_of(0);
    if (!m_.cells.rows || !cells) return;
    for (int64_t e = cells->offsets[sequence_]; e < cells->offsets[sequence_ + 1]; ++e) {
      const int64_t id = cells->ids[e];
      if (id >= m_.cells.attributes || cells->length[e] > limit_) continue;
      double* row = full + (cells->start[e] * limit_ + cells->length[e] - 1) * m_.columns;
      for (int64_t k = m_.cells.rows[id]; k < m_.cells.rows[id + 1]; ++k)
        use(row + m_.cells.column[k], m_.cells.base + k, cells->values[e]);
    }
  }

  // use(cell) for every cell that the patterns of a segmentation read
  template <class Use>
  void each_cell(const Path& path, const Use& use) {
    const int64_t C = m_.columns, L = m_.labels;
    const PatternAutomaton& net = *m_.automaton;
    int64_t state = net.initial();
    const auto pattern = [&](int64_t z, const Step& step) {
      if (m_.dense) {
        if (z < L)
          use(start[step.start * L + z]);
        else
          use(pairs[(m_.varying_starts ? step.start - 1 : 0) * L * L + m_.pair[z]]);
        return;
      }
      if (!m_.extent[z]) {
        use(starts[(m_.varying_starts ? step.start : 0) * m_.patterns + z]);
        return;
      }
      const int64_t d = step.stop - step.start;
      use(start[step.start * C + z]);
      for (int64_t t = step.start; inside && t < step.stop; ++t) use(inside[t * C + z]);
      if (end) use(end[(step.stop - 1) * C + z]);
      if (by_length) use(by_length[(d - 1) * C + z]);
      if (full) use(full[(step.start * limit_ + d - 1) * C + z]);
    };
    for (const Step& step : path) {
      for (int64_t z = net.match(state, step.label); z >= 0; z = net.pattern_suffix(z)) pattern(z, step);
      state = net.next(state, step.label);
      if (step.stop == length_)
        for (int64_t z = net.end_match(state); z >= 0; z = net.pattern_suffix(z)) pattern(z, step);
    }
  }

  const FlatModelView& m_;
  const DataView& data_;
  int64_t sequence_ = 0, first_ = 0, length_ = 0, limit_ = 1;
  std::vector<double> block_;
};

// Expected numbers of cells, or differences of segmentations.
class FlatExpectations : public FlatArrays {
 public:
  using FlatArrays::FlatArrays;

  // expectations of nothing yet; sparse: to become a difference of segmentations
  void clear(int64_t b, bool sparse = true) {
    layout(b);
    sparse_ = sparse;
  }

  // Adds amount times a segmentation: to posteriors, amount = -1 leaves the gradient's cells.
  void add(const Path& path, double amount) {
    each_cell(path, [&](double& cell) { cell += amount; });
  }

  // out += factor * expected values of the features; split: what out.rows are the rows of
  void add_to(const WeightVector& out, double factor, const SplitFeatures* split) {
    const AddExpectation add{out.plain, factor};
    const auto skip = [this](int64_t t) { return nothing(t); };
    if (m_.single_labels())
      add_token_expectations(m_.parts[kStart], data_, split, first_, length_, factor, start, m_.labels, m_.labels, skip,
                             out, row_);
    else
      each_token_cell(add);
    each_other(add);
  }

  // add(weight, value) feature by feature, only where something is expected
  template <class Add>
  void each(const Add& add) {
    const Each<Add> use{add};
    const auto skip = [this](int64_t t) { return nothing(t); };
    if (m_.single_labels())
      each_token_feature(m_.parts[kStart], data_.token_offsets, data_.ids, data_.values, first_, length_, start,
                         m_.labels, skip, use);
    else
      each_token_cell(use);
    each_other(use);
  }

 private:
  friend class FlatScores;
  friend class PlaceScores;  // the same sequence on the places of a trajectory

  // whether nothing is expected at token t: segmentations that agree there leave nothing
  bool nothing(int64_t t) const {
    if (!sparse_) return false;
    const double* row = start + t * m_.labels;
    return std::none_of(row, row + m_.labels, [](double x) { return x != 0.0; });
  }

  // whole segments, lengths, always-on patterns
  template <class Use>
  void each_other(const Use& use) {
    each_segment_cell(use);
    each_length(m_, limit_, [&](int64_t d, int64_t y, int64_t weight, double value) {
      use(by_length + d * m_.columns + y, weight, value);
    });
    for (int64_t z = m_.labels; z < m_.patterns; ++z) {
      if (m_.bias[z] < 0) continue;
      double sum = 0.0;
      if (m_.dense)
        for (int64_t r = 0; r < pair_rows(); ++r) sum += pairs[r * m_.labels * m_.labels + m_.pair[z]];
      else if (m_.extent[z])
        for (int64_t t = 0; t < length_; ++t) sum += start[t * m_.columns + z];
      else
        for (int64_t r = 0; r < start_rows(); ++r) sum += starts[r * m_.patterns + z];
      use(&sum, m_.bias[z], 1.0);
    }
  }

  bool sparse_ = false;
  std::vector<double> row_;
};

// Scores of one sequence, and what the kernels make of them.
class FlatScores : public FlatArrays {
 public:
  using FlatArrays::FlatArrays;

  // Scores of sequence b; split: what w.rows are the rows of. gold (T,), or null: the Hamming cost, 1 for every other
  // label of a token, is added.
  void fill(int64_t b, const WeightsView& w, const SplitFeatures* split, const int32_t* gold) {
    layout(b);
    if (m_.dense) {
      fill_pairs(m_, w.plain, w.scale, pair_rows(), pairs);
    } else {
      fill_starts(m_, w.plain, w.scale, start_rows(), starts);
      for (int64_t z = m_.labels; z < m_.patterns; ++z)
        for (int64_t t = 0; m_.bias[z] >= 0 && m_.extent[z] && t < length_; ++t)
          start[t * m_.columns + z] += w.scale * w.plain[m_.bias[z]];
    }
    const AddWeight add{w.plain, w.scale};
    if (m_.single_labels())
      add_token_scores(m_.parts[kStart], data_, split, first_, length_, w, start, m_.labels, m_.labels);
    else
      each_token_cell(add);
    each_segment_cell(add);
    if (by_length) add_lengths(m_, w.plain, w.scale, limit_, by_length);
    if (m_.first && length_ > 0) forbid(m_.first, start);
    if (m_.last && length_ > 0) forbid(m_.last, (m_.dense ? start : end) + (length_ - 1) * m_.columns);
    if (gold) {
      double* row = m_.max_length == 1 ? start : inside;
      for (int64_t t = 0; t < length_; ++t)
        for (int64_t y = 0; y < m_.labels; ++y)
          if (gold[t] >= 0 && gold[t] != y) row[t * m_.columns + y] += 1.0;
    }
  }

  ChainView chain_view(const uint8_t* allowed) const {
    ChainView v;
    v.length = length_;
    v.labels = m_.labels;
    v.unary = start;
    v.transition = pairs;
    v.transition_stride = m_.varying_starts ? m_.labels * m_.labels : 0;
    v.allowed = allowed ? allowed + first_ * m_.labels : nullptr;
    return v;
  }

  SegmentView segment_view(const int32_t* runs, const uint8_t* may_end) const {
    SegmentView v;
    v.length = length_;
    v.max_length = limit_;
    v.starts = starts;
    v.starts_stride = m_.varying_starts ? m_.patterns : 0;
    v.columns = m_.columns;
    v.full = full;
    v.full_stride = limit_;
    v.start = start;
    v.start_stride = m_.columns;
    v.inside = inside;
    v.end = end;
    v.by_length = by_length;
    if (runs) v.runs = runs + first_ * m_.labels;
    if (may_end) v.may_end = may_end + first_;
    return v;
  }

  // log Z (with `known`: of what the targets allow) and, unless null, the posteriors. shared: transitions that all
  // sequences of a dense model share, not varying ones.
  double posteriors(const TransitionWeights* shared, const FlatTargetView* known, FlatExpectations* out) {
    if (out) out->clear(sequence_, false);
    if (m_.dense) {
      const ChainView view = chain_view(known ? known->allowed : nullptr);
      ChainAnswer answer;
      const int64_t L = m_.labels, stride = padded4(L);
      if (out) {
        answer.labels = out->start;
        if (m_.varying_starts) {
          answer.transitions = out->pairs;
        } else {
          outer_.assign(static_cast<size_t>(L * stride), 0.0);
          answer.outer = outer_.data();
          answer.counts = out->pairs;
        }
      }
      chain_posteriors(view, m_.varying_starts ? nullptr : shared, work_, out != nullptr, answer);
      if (out && !m_.varying_starts)
        for (int64_t i = 0; i < L; ++i)
          for (int64_t j = 0; j < L; ++j)
            out->pairs[i * L + j] += outer_[i * stride + j] * shared->weight[i * stride + j];
      return answer.log_partition;
    }
    const SegmentView view = segment_view(known ? known->runs : nullptr, known ? known->may_end : nullptr);
    SegmentAnswer answer;
    answer.stride = limit_;
    if (out) {
      answer.starts = out->starts;
      answer.full = out->full;
      answer.start = out->start;
      answer.inside = out->inside;
      answer.end = out->end;
      answer.by_length = out->by_length;
    }
    segment_posteriors(view, m_.topology->view(), work_, out != nullptr, answer);
    return answer.log_partition;
  }

  // best segmentation (with `known`: of those that the targets allow); empty if nothing is possible
  Path best(const FlatTargetView* known) {
    Path path;
    if (m_.dense) {
      const ChainView view = chain_view(known ? known->allowed : nullptr);
      labels_.resize(static_cast<size_t>(length_));
      if (!best_labels(view, work_, labels_.data())) return path;
      for (int64_t t = 0; t < length_; ++t) path.push_back({t, t + 1, labels_[t]});
      return path;
    }
    const SegmentView view = segment_view(known ? known->runs : nullptr, known ? known->may_end : nullptr);
    on_segments(view, m_.topology->view(), work_, Table::kBest, [&](auto& graph) { return best_path(graph, path); });
    return path;
  }

  double score(const Path& path) {
    double sum = 0.0;
    each_cell(path, [&](const double& cell) { sum += cell; });
    return sum;
  }

 private:
  friend class PlaceScores;  // the same sequence on the places of a trajectory

  // the labels that are not among those allowed, in a row of scores
  void forbid(const uint8_t* allowed, double* row) const {
    for (int64_t y = 0; y < m_.labels; ++y)
      if (!allowed[y]) row[y] = kMinusInfinity;
  }

  Workspace work_;
  std::vector<double> outer_;
  std::vector<int32_t> labels_;
};

// ---- all sequences ----

// Scores of all sequences one after another, in the arrays of FlatArrays with M in place of `limit`; null: not there in
// this model, or not wanted. Given as zeros.
struct FlatScoreArrays {
  double* start = nullptr;      // (N, C)
  double* inside = nullptr;     // (N, C)
  double* end = nullptr;        // (N, C)
  double* by_length = nullptr;  // (M, C)
  double* full = nullptr;       // (N, M, C)
  double* starts = nullptr;     // (N, P) where they vary, else (P,)
  double* pairs = nullptr;      // (sum of T - 1, L, L) where they vary, else (L, L)
};

inline void fill_scores(const FlatModelView& m, const DataView& data, const double* w, int64_t threads,
                        const FlatScoreArrays& out) {
  std::vector<int64_t> first_pair(static_cast<size_t>(data.sequences) + 1, 0);
  for (int64_t b = 0; b < data.sequences; ++b)
    first_pair[b + 1] = first_pair[b] + std::max<int64_t>(0, data.length(b) - 1);
  std::vector<std::unique_ptr<FlatScores>> scores(std::max<int64_t>(1, threads));
  parallel_for(data.sequences, threads, [&](int64_t b, int64_t worker) {
    if (!scores[worker]) scores[worker] = std::make_unique<FlatScores>(m, data);
    FlatScores& s = *scores[worker];
    s.fill(b, {w}, nullptr, nullptr);
    const int64_t first = data.offsets[b], T = data.length(b), C = m.columns, LL = m.labels * m.labels;
    std::copy_n(s.start, T * C, out.start + first * C);
    if (out.inside && s.inside) std::copy_n(s.inside, T * C, out.inside + first * C);
    if (out.end && s.end) std::copy_n(s.end, T * C, out.end + first * C);
    for (int64_t t = 0; out.full && s.full && t < T; ++t)
      std::copy_n(s.full + t * s.limit() * C, s.limit() * C, out.full + (first + t) * m.max_length * C);
    if (!m.varying_starts) return;
    if (out.starts) std::copy_n(s.starts, T * m.patterns, out.starts + first * m.patterns);
    if (out.pairs && T > 1) std::copy_n(s.pairs, (T - 1) * LL, out.pairs + first_pair[b] * LL);
  });
  if (out.starts && !m.varying_starts) fill_starts(m, w, 1.0, 1, out.starts);
  if (out.pairs && !m.varying_starts) fill_pairs(m, w, 1.0, 1, out.pairs);
  if (out.by_length) add_lengths(m, w, 1.0, m.max_length, out.by_length);
}

// The segmentation that a complete target stands for.
inline Path target_path(const DataView& data, const FlatTargetView& target, int64_t b) {
  Path path;
  int64_t start = 0;
  const int64_t first = data.offsets[b], length = data.length(b);
  for (int64_t t = 0; t < length; ++t)
    if (!target.ends || target.ends[first + t] == 1) {
      path.push_back({start, t + 1, target.labels[first + t]});
      start = t + 1;
    }
  return path;
}

}  // namespace scansion
