// Encoded sequences and features of attributes, for all models: from weights to scores and from expectations back.
//
// A feature is an attribute on a column: a label pattern of a flat model, a state or clique of a nested one. Weights are
// one vector; the features of an attribute stand side by side in it (FeatureRows).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels.hpp"
#include "numeric.hpp"

namespace scansion {

// Attributes of whole segments, from a user's function: one entry an attribute of a segment.
struct CellsView {
  const int64_t* offsets = nullptr;  // (B + 1,) entries of a sequence
  const int32_t* start = nullptr;    // (entries,) first position, within the sequence
  const int32_t* length = nullptr;   // (entries,) number of positions
  const int32_t* ids = nullptr;      // (entries,) attribute
  const double* values = nullptr;    // (entries,)
};

// Encoded sequences: B of them, N tokens in all; see scansion.data.Dataset.
struct DataView {
  int64_t sequences = 0;                   // B
  const int64_t* offsets = nullptr;        // (B + 1,) tokens of a sequence
  const int64_t* token_offsets = nullptr;  // (N + 1,) entries of a token
  const int32_t* ids = nullptr;            // (entries,) attribute
  const double* values = nullptr;          // (entries,) or null: all 1
  std::vector<CellsView> cells;            // by level, one for flat models; without offsets: none

  int64_t length(int64_t b) const { return offsets[b + 1] - offsets[b]; }
  int64_t longest() const {
    int64_t most = 0;
    for (int64_t b = 0; b < sequences; ++b) most = std::max(most, length(b));
    return most;
  }
  const CellsView* cells_of(size_t level) const {
    return level < cells.size() && cells[level].offsets ? &cells[level] : nullptr;
  }
};

// Which features exist: attribute a has the weights base + k, k in rows[a]..rows[a + 1], on column[k].
struct FeatureRows {
  const int64_t* rows = nullptr;    // (attributes + 1,) or null: none
  const int32_t* column = nullptr;  // (features,) ascending within a row
  int64_t attributes = 0;           // ids from here on are unknown and ignored
  int64_t base = 0;                 // weight of the first feature
};

// How much is known of a sequence; see scansion.data.Targets.
enum Status : uint8_t { kUnknown = 0, kPartial = 1, kComplete = 2, kTrajectory = 3 };

// Numbers for all weights, as sequences write them: attributes that SplitFeatures keeps as rows may have theirs there.
struct WeightVector {
  double* plain = nullptr;       // (weights,)
  double* rows = nullptr;        // (rows, stride) or null: all are in `plain`
  const double* mask = nullptr;  // (rows, stride) 1 where there is a feature; null: what is written elsewhere is lost
};

// Weights as sequences read them: scale times the numbers.
struct WeightsView {
  const double* plain = nullptr;  // (weights,)
  const double* rows = nullptr;   // (rows, stride) or null, as in WeightVector
  double scale = 1.0;
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
// add(weight, value) where something is expected
template <class Add>
struct Each {
  const Add& add;
  void operator()(const double* expected, int64_t weight, double value) const {
    if (*expected != 0.0) add(weight, value * *expected);
  }
  void prefetch(int64_t) const {}
};

// Features of tokens in the forms that are quickest to add up. Attributes that go with many columns have a whole row of
// (padded) weights, so that a token's scores are sums of rows; those of the others are listed one by one for each token.
// That is for values of 1; entries whose value is 0 are left out, and those of other values keep their lists.
class SplitFeatures {
 public:
  // A feature of a token: the weight `base` + feature, on a column.
  struct Single {
    int32_t feature, column;
  };

  // Whether most entries have the value 1 or 0.
  static bool serves(const DataView& data) {
    if (!data.values) return true;
    const int64_t entries = data.token_offsets[data.offsets[data.sequences]];
    return 2 * std::count_if(data.values, data.values + entries, [](double x) { return x == 0.0 || x == 1.0; }) >= entries;
  }

  // width: features on columns from there on belong to none of the forms
  SplitFeatures(const FeatureRows& features, int64_t width, const DataView& data)
      : f_(features), stride_(padded4(width)) {
    const int64_t tokens = data.offsets[data.sequences], entries = data.token_offsets[tokens];
    const auto plain = [&](int64_t e) { return !data.values || data.values[e] == 1.0; };
    std::vector<int64_t> uses(static_cast<size_t>(f_.attributes), 0);
    for (int64_t e = 0; e < entries; ++e)
      if (data.ids[e] < f_.attributes && plain(e)) ++uses[data.ids[e]];
    for (int64_t a = 0; a < f_.attributes; ++a)
      stop_.push_back(
          std::lower_bound(f_.column + f_.rows[a], f_.column + f_.rows[a + 1], static_cast<int32_t>(width)) - f_.column);
    std::vector<int32_t> row(static_cast<size_t>(f_.attributes), -1);
    size_t wide = 0, narrow = 0;
    for (int64_t a = 0; a < f_.attributes; ++a) {
      // a row costs about a vector operation for four columns, a list about one for each feature
      const int64_t features_of = stop_[a] - f_.rows[a];
      if (2 * features_of > stride_ / 4 && uses[a] * features_of > 4 * stride_) {
        row[a] = static_cast<int32_t>(attribute_.size());
        attribute_.push_back(static_cast<int32_t>(a));
        wide += static_cast<size_t>(uses[a]);
      } else {
        narrow += static_cast<size_t>(uses[a] * features_of);
      }
    }
    wide_rows_.reserve(wide);
    singles_.reserve(narrow);
    wide_offsets_.assign(static_cast<size_t>(tokens) + 1, 0);
    single_offsets_ = wide_offsets_;
    if (data.values) valued_offsets_ = wide_offsets_;
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t e = data.token_offsets[t]; e < data.token_offsets[t + 1]; ++e) {
        const int32_t id = data.ids[e];
        if (id >= f_.attributes || f_.rows[id] == stop_[id]) continue;
        if (!plain(e)) {
          if (data.values[e] == 0.0) continue;
          valued_ids_.push_back(id);
          values_.push_back(data.values[e]);
        } else if (row[id] >= 0) {
          wide_rows_.push_back(row[id]);
        } else {
          for (int64_t k = f_.rows[id]; k < stop_[id]; ++k) singles_.push_back({static_cast<int32_t>(k), f_.column[k]});
        }
      }
      wide_offsets_[t + 1] = static_cast<int64_t>(wide_rows_.size());
      single_offsets_[t + 1] = static_cast<int64_t>(singles_.size());
      if (data.values) valued_offsets_[t + 1] = static_cast<int64_t>(values_.size());
    }
  }

  int64_t stride() const { return stride_; }
  int64_t size() const { return static_cast<int64_t>(attribute_.size()) * stride_; }  // doubles of all rows

  // the rows of a token
  const int32_t* wide(int64_t token) const { return wide_rows_.data() + wide_offsets_[token]; }
  int64_t wide_count(int64_t token) const { return wide_offsets_[token + 1] - wide_offsets_[token]; }

  // use(feature, column, value) for the features of a token that are not in its rows. They are spread over megabytes, so
  // they are asked for ahead: prefetch(feature).
  template <class Use, class Prefetch>
  void each_other(int64_t token, const Prefetch& prefetch, const Use& use) const {
    const Single* const last = singles_.data() + single_offsets_[token + 1];
    const int64_t ahead = static_cast<int64_t>(singles_.data() + singles_.size() - last) > kAhead ? kAhead : 0;
    for (const Single* at = singles_.data() + single_offsets_[token]; at < last; ++at) {
      prefetch(at[ahead].feature);
      use(at->feature, at->column, 1.0);
    }
    if (valued_offsets_.empty()) return;
    for (int64_t e = valued_offsets_[token]; e < valued_offsets_[token + 1]; ++e)
      for (int64_t k = f_.rows[valued_ids_[e]]; k < stop_[valued_ids_[e]]; ++k) use(k, f_.column[k], values_[e]);
  }

  // rows -> weights, for rows that took the weights' place
  void restore(const double* table, double* w) const {
    each([&](int64_t at, int64_t weight) { w[weight] = table[at]; });
  }
  // weights -> rows, and what the rows gathered -> weights
  void expand(const double* w, double* table) const {
    std::fill_n(table, size(), 0.0);
    each([&](int64_t at, int64_t weight) { table[at] = w[weight]; });
  }
  void fold(const double* table, double* out) const {
    each([&](int64_t at, int64_t weight) { out[weight] += table[at]; });
  }
  // 1 where a row has a feature
  std::vector<double> mask() const {
    std::vector<double> found(static_cast<size_t>(size()), 0.0);
    each([&](int64_t at, int64_t) { found[at] = 1.0; });
    return found;
  }

 private:
  static constexpr int64_t kAhead = 16;

  // use(place in the rows, weight)
  template <class Use>
  void each(const Use& use) const {
    for (size_t r = 0; r < attribute_.size(); ++r)
      for (int64_t k = f_.rows[attribute_[r]]; k < stop_[attribute_[r]]; ++k)
        use(static_cast<int64_t>(r) * stride_ + f_.column[k], f_.base + k);
  }

  const FeatureRows f_;
  const int64_t stride_;
  std::vector<int64_t> stop_;                           // (attributes,) end of their features below `width`: they come first
  std::vector<int32_t> attribute_;                      // (rows,)
  std::vector<int64_t> wide_offsets_, single_offsets_;  // (N + 1,) entries of a token
  std::vector<int32_t> wide_rows_;
  std::vector<Single> singles_;
  std::vector<int64_t> valued_offsets_;  // (N + 1,), or empty: there are none
  std::vector<int32_t> valued_ids_;      // (entries,)
  std::vector<double> values_;           // (entries,)
};

// use(cell, weight, value) for the features of `length` tokens from `first` on whose columns are cells of a row: row t
// begins at rows + t * stride. Tokens t with skip(t) are left out. Rows of features are spread over megabytes, so they
// are asked for a few entries ahead.
template <class Use, class Skip>
void each_token_feature(const FeatureRows& f, const int64_t* token_offsets, const int32_t* ids, const double* values,
                        int64_t first, int64_t length, double* rows, int64_t stride, const Skip& skip, const Use& use) {
  if (!f.rows) return;
  const int64_t last = token_offsets[first + length];
  for (int64_t t = 0; t < length; ++t) {
    if (skip(t)) continue;
    double* row = rows + t * stride;
    const int64_t* entry = token_offsets + first + t;
    for (int64_t e = entry[0]; e < entry[1]; ++e) {
      if (e + 12 < last) prefetch(f.rows + std::min<int64_t>(ids[e + 12], f.attributes));
      if (e + 6 < last) {
        const int64_t k = f.rows[std::min<int64_t>(ids[e + 6], f.attributes)];
        prefetch(f.column + k);
        use.prefetch(f.base + k);
      }
      const int64_t id = ids[e];
      if (id >= f.attributes) continue;
      const double value = values ? values[e] : 1.0;
      for (int64_t k = f.rows[id]; k < f.rows[id + 1]; ++k) use(row + f.column[k], f.base + k, value);
    }
  }
}

// rows (length, stride) += scores of the tokens from `first` on. split: what w.rows are the rows of, or null. Rows may
// be written up to whole vectors: what follows the last one needs room for that.
inline void add_token_scores(const FeatureRows& f, const DataView& data, const SplitFeatures* split, int64_t first,
                             int64_t length, const WeightsView& w, double* rows, int64_t stride, int64_t width) {
  const AddWeight add{w.plain, w.scale};
  const auto all = [](int64_t) { return false; };
  if (!split || !w.rows)
    return each_token_feature(f, data.token_offsets, data.ids, data.values, first, length, rows, stride, all, add);
  const double* const plain = w.plain + f.base;
  for (int64_t t = 0; t < length; ++t) {
    double* row = rows + t * stride;
    kernels().sum_rows(w.rows, split->stride(), split->wide(first + t), split->wide_count(first + t), row);
    if (w.scale != 1.0)
      for (int64_t y = 0; y < width; ++y) row[y] *= w.scale;
  }
  for (int64_t t = 0; t < length; ++t) {
    double* row = rows + t * stride;
    split->each_other(
        first + t, [plain](int64_t k) { prefetch(plain + k); },
        [&](int64_t k, int64_t column, double value) { row[column] += w.scale * value * plain[k]; });
  }
}

// out += factor times the expectations (length, stride) of the tokens from `first` on; tokens t with skip(t) expect
// nothing. buffer: scratch.
template <class Skip>
void add_token_expectations(const FeatureRows& f, const DataView& data, const SplitFeatures* split, int64_t first,
                            int64_t length, double factor, double* rows, int64_t stride, int64_t width, const Skip& skip,
                            const WeightVector& out, std::vector<double>& buffer) {
  const AddExpectation add{out.plain, factor};
  if (!split || !out.rows)
    return each_token_feature(f, data.token_offsets, data.ids, data.values, first, length, rows, stride, skip, add);
  buffer.assign(static_cast<size_t>(split->stride()), 0.0);  // rows of a table end in zeros
  double* const plain = out.plain + f.base;
  for (int64_t t = 0; t < length; ++t) {
    if (skip(t)) continue;
    const double* row = rows + t * stride;
    std::copy_n(row, width, buffer.data());
    kernels().add_to_rows(out.rows, out.mask, split->stride(), split->wide(first + t), split->wide_count(first + t),
                          buffer.data(), factor);
    split->each_other(
        first + t, [plain](int64_t k) { prefetch(plain + k); },
        [&](int64_t k, int64_t column, double value) { plain[k] += factor * value * row[column]; });
  }
}

}  // namespace scansion
