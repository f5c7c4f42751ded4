// Which features exist: the pairs of attribute and label pattern that occur in training (as in CRFsuite), counted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "flat_model.hpp"

namespace scansion {

// What is known for certain of the sequences: stretches of known segments.
struct KnownSegments {
  const DataView& data;
  const PatternAutomaton& automaton;
  const int32_t* labels;  // (N,) -1: unknown
  const int8_t* ends;     // (N,) 1, 0 or -1; null: every position ends a segment

  // use(b, start, stop, patterns that match), positions within sequence b. A pattern that would reach back over
  // something unknown does not match.
  template <class Use>
  void each(const Use& use) const {
    const int64_t L = automaton.labels();
    int64_t root = automaton.next(automaton.initial(), 0);  // any state leads to the empty one by its suffixes
    while (automaton.state_suffix(root) >= 0) root = automaton.state_suffix(root);
    std::vector<int32_t> matched;
    for (int64_t b = 0; b < data.sequences; ++b) {
      const int64_t first = data.offsets[b], length = data.offsets[b + 1] - first;
      int64_t state = automaton.initial();
      for (int64_t start = 0; start < length;) {
        const int32_t y = labels[first + start];
        int64_t stop = start + 1;
        bool known = y >= 0 && y < L;
        if (ends && known) {
          while (stop < length && ends[first + stop - 1] == 0 && labels[first + stop] == y) ++stop;
          known = ends[first + stop - 1] == 1;
        }
        if (!known) {
          state = root;
          start = stop;
          continue;
        }
        matched.clear();
        const int32_t longest = automaton.match(state, y);
        state = automaton.next(state, y);
        if (stop == length)
          for (int32_t z = automaton.end_match(state); z >= 0; z = automaton.pattern_suffix(z)) matched.push_back(z);
        for (int32_t z = longest; z >= 0; z = automaton.pattern_suffix(z)) matched.push_back(z);
        use(b, start, stop, matched);
        start = stop;
      }
    }
  }
};

struct FeatureTable {
  std::vector<int64_t> rows;     // (attributes + 1,)
  std::vector<int32_t> pattern;  // sorted within a row
};

// Groups (attribute, pattern, value) triples by attribute; keeps pairs whose summed value is at least `least`.
class PairCounter {
 public:
  explicit PairCounter(int64_t attributes) : counts_(static_cast<size_t>(attributes) + 1, 0) {}

  void add(int32_t attribute, int32_t pattern, double value) {
    attribute_.push_back(attribute);
    pattern_.push_back(pattern);
    if (value != 1.0 && value_.empty()) value_.assign(pattern_.size() - 1, 1.0);
    if (!value_.empty() || value != 1.0) value_.push_back(value);
    ++counts_[attribute + 1];
  }

  FeatureTable finish(double least) {
    const int64_t attributes = static_cast<int64_t>(counts_.size()) - 1;
    std::partial_sum(counts_.begin(), counts_.end(), counts_.begin());
    struct Entry {
      int32_t pattern;
      double value;
    };
    std::vector<Entry> sorted(pattern_.size());
    std::vector<int64_t> at(counts_.begin(), counts_.end() - 1);
    for (size_t i = 0; i < pattern_.size(); ++i)
      sorted[at[attribute_[i]]++] = {pattern_[i], value_.empty() ? 1.0 : value_[i]};
    FeatureTable out;
    out.rows.assign(counts_.size(), 0);
    for (int64_t a = 0; a < attributes; ++a) {
      const auto begin = sorted.begin() + counts_[a], end = sorted.begin() + counts_[a + 1];
      std::sort(begin, end, [](const Entry& x, const Entry& y) { return x.pattern < y.pattern; });
      for (auto i = begin; i != end;) {
        double sum = 0.0;
        auto j = i;
        for (; j != end && j->pattern == i->pattern; ++j) sum += j->value;
        if (sum >= least) out.pattern.push_back(i->pattern);
        i = j;
      }
      out.rows[a + 1] = static_cast<int64_t>(out.pattern.size());
    }
    return out;
  }

 private:
  std::vector<int64_t> counts_;
  std::vector<int32_t> attribute_, pattern_;
  std::vector<double> value_;
};

// Token features of one part. orders (attributes,): bit m set where an attribute goes with patterns of length m + 1.
inline FeatureTable token_features(const KnownSegments& known, Part part, const uint32_t* orders, int64_t attributes,
                                   double least) {
  PairCounter pairs(attributes);
  const DataView& data = known.data;
  // Single labels, the bulk of it, need no counting where every pair is kept: one bit for each label.
  const bool by_bits = least <= 0.0 && known.automaton.labels() <= 64;
  std::vector<uint64_t> bits(by_bits ? static_cast<size_t>(attributes) : 0, 0);
  known.each([&](int64_t b, int64_t start, int64_t stop, const std::vector<int32_t>& matched) {
    const int64_t first = data.offsets[b];
    int64_t from = start, to = stop;
    if (part == kStart) to = start + 1;
    if (part == kEnd) from = stop - 1;
    if (part == kInner) from = start + 1;
    for (int64_t t = from; t < to; ++t)
      for (int64_t e = data.token_offsets[first + t]; e < data.token_offsets[first + t + 1]; ++e) {
        const int32_t id = data.ids[e];
        const uint32_t wanted = orders[id];
        if (by_bits && wanted == 1u) {
          bits[id] |= uint64_t{1} << matched.back();  // the shortest pattern: the label
          continue;
        }
        for (const int32_t z : matched)
          if (wanted >> std::min(known.automaton.pattern_length(z) - 1, 31) & 1u)
            pairs.add(id, z, data.values ? data.values[e] : 1.0);
      }
  });
  FeatureTable table = pairs.finish(least);
  if (!by_bits) return table;
  FeatureTable both;  // an attribute's features come from one of the two
  both.rows.assign(1, 0);
  both.pattern.reserve(table.pattern.size() + static_cast<size_t>(2 * attributes));
  for (int64_t a = 0; a < attributes; ++a) {
    for (int64_t k = table.rows[a]; k < table.rows[a + 1]; ++k) both.pattern.push_back(table.pattern[k]);
    for (int32_t y = 0; bits[a] >> y; ++y) {
      if (bits[a] >> y & 1u) both.pattern.push_back(y);
      if (y == 63) break;
    }
    both.rows.push_back(static_cast<int64_t>(both.pattern.size()));
  }
  return both;
}

// Features of whole segments: cells of the data against the segments that occur.
inline FeatureTable cell_features(const KnownSegments& known, int64_t attributes, double least) {
  PairCounter pairs(attributes);
  const CellsView& cells = known.data.cells[0];
  known.each([&](int64_t b, int64_t start, int64_t stop, const std::vector<int32_t>& matched) {
    for (int64_t e = cells.offsets[b]; e < cells.offsets[b + 1]; ++e)
      if (cells.start[e] == start && cells.length[e] == stop - start)
        for (const int32_t z : matched)
          if (known.automaton.pattern_length(z) == 1) pairs.add(cells.ids[e], z, cells.values[e]);
  });
  return pairs.finish(least);
}

}  // namespace scansion
