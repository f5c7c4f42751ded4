// What is known of the labels and boundaries of sequences, in the forms that the kernels take (docs/notation.md, section 3).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace scansion {

// What is known of N rows at one level.
struct Known {
  const uint8_t* allowed = nullptr;  // (N, L) labels that a row may have; null: all
  const int8_t* ends = nullptr;      // (N,) 1 a segment ends here, 0 none does, -1 unknown; null: unknown everywhere
};

// For segments: how far one of each label may reach, and where one may end. Both are empty where nothing is known.
class SegmentRuns {
 public:
  SegmentRuns() = default;
  SegmentRuns(const Known& known, const int64_t* offsets, int64_t sequences, int64_t labels, int64_t max_length) {
    if (!known.allowed && !known.ends) return;
    const int64_t n = offsets[sequences];
    runs_.resize(static_cast<size_t>(n * labels));
    may_end_.resize(static_cast<size_t>(n));
    for (int64_t t = 0; t < n; ++t) may_end_[t] = !known.ends || known.ends[t] != 0;
    for (int64_t i = 0; i < sequences; ++i)
      for (int64_t t = offsets[i + 1] - 1; t >= offsets[i]; --t) {
        const bool stops = t + 1 == offsets[i + 1] || (known.ends && known.ends[t] == 1);
        for (int64_t y = 0; y < labels; ++y) {
          const int64_t run = stops ? 1 : 1 + runs_[(t + 1) * labels + y];
          const bool out = known.allowed && !known.allowed[t * labels + y];
          runs_[t * labels + y] = out ? 0 : static_cast<int32_t>(std::min(run, max_length));
        }
      }
  }
  // (N, L) the longest segment that agrees, by first row and label; null: nothing is known
  const int32_t* runs() const { return runs_.empty() ? nullptr : runs_.data(); }
  int32_t* runs() { return runs_.empty() ? nullptr : runs_.data(); }
  // (N,) whether a segment may end at a row
  const uint8_t* may_end() const { return may_end_.empty() ? nullptr : may_end_.data(); }

 private:
  std::vector<int32_t> runs_;
  std::vector<uint8_t> may_end_;
};

// For nested levels: after each row, the least and the greatest level whose segment is the highest to end there. A segment
// of level d ends after a row if and only if the highest that does is at level d or above (smaller); the number of levels
// stands for "none does". So boundaries known at several levels are an interval.
struct EventLevels {
  std::vector<int64_t> low, high;  // (N,)
  EventLevels(const std::vector<Known>& levels, int64_t rows)
      : low(static_cast<size_t>(rows), 1), high(static_cast<size_t>(rows), static_cast<int64_t>(levels.size())) {
    for (int64_t d = 0; d < static_cast<int64_t>(levels.size()); ++d)
      for (int64_t t = 0; levels[d].ends && t < rows; ++t) {
        if (levels[d].ends[t] == 1) high[t] = std::min(high[t], d);
        if (levels[d].ends[t] == 0) low[t] = std::max(low[t], d + 1);
      }
  }
};

}  // namespace scansion
