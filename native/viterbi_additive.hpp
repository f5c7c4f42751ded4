// The best start of a segment that ends at a given position, where scores are sums of parts (segment_additive.hpp): of all
// lengths of a key at the price of an addition and a maximum each.
//
// With prefix sums C of the inside scores, the score of the best configuration whose last segment is [u, v) is
//   Y[u] + length[v-u] + (C[v] + end[v-1]),    Y[u] = (best up to u, by key) + start[u] - C[u]
// in doubles, whose rounding grows with C. So this only says which lengths may be the best, all those within a margin
// above its rounding; these are then added up as rows of scores are (segment_rows.hpp), and ties fall as they do there.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels.hpp"
#include "numeric.hpp"

namespace scansion {

class AdditiveBest {
 public:
  static constexpr int64_t kFrom = 8;  // longest segment from which on this is faster than rows

  static bool serves(const SegmentView& s, const TopologyView& n) {
    return !s.full && s.max_length >= kFrom && n.label_extents && n.end_classes == 0;
  }

  AdditiveBest(const Kernels& kernels, const SegmentView& view, const TopologyView& net, const SegmentWork& work)
      : kernels_(kernels), s_(view), n_(net), w_(work) {
    const int64_t T = view.length, M = view.max_length;
    before_.assign(static_cast<size_t>(work.K * (T + 1)), kMinusInfinity);
    sums_.assign(static_cast<size_t>(work.C), Scale());
    edge_.assign(static_cast<size_t>(work.C), 0);
    inside_.resize(static_cast<size_t>(work.C * (M + 1)));
    known_.resize(static_cast<size_t>(work.C));
    tops_.resize(static_cast<size_t>(M / kChunk + 2));
    for (int64_t c = 0; c < work.C; ++c) {
      Lengths all;
      all.most = M;
      while (all.most > 0 && !possible(length_score(all.most, c))) --all.most;
      while (all.least < all.most && !possible(length_score(all.least, c))) ++all.least;
      for (int64_t d = all.most; d >= all.least; --d) all.back.push_back(length_score(d, c));
      lengths_.push_back(std::move(all));
    }
    double largest = 0.0;  // score that a segment adds up
    for (int64_t i = 0; w_.inside_x && i < T * w_.Cp; ++i)
      if (possible(w_.inside_x[i])) largest = std::max(largest, std::abs(w_.inside_x[i]));
    rounding_ = 2.0 * static_cast<double>(M) * (static_cast<double>(M) * largest + 4.0 * kTame);
  }

  // Segments may start at u: scores (K,) of the best before them by key, less their scale.
  void start(int64_t u, const double* best, const Scale& scale) {
    highest_ = std::max(highest_, scale.hi);
    farthest_ = std::max(farthest_, std::abs(scale.hi));
    for (int64_t k = 0; k < w_.K; ++k) {
      const int64_t c = n_.key_extent[k];
      if (s_.runs && run(u, c) == 0) continue;
      before_[k * (s_.length + 1) + u] = best[k] + start_score(u, c) + (scale.hi - sums_[c].hi);
    }
  }

  // Moves on to the ends at v, after position v - 1.
  void step(int64_t v) {
    std::fill(known_.begin(), known_.end(), 0);
    for (int64_t c = 0; c < w_.C; ++c) {
      const double inside = w_.inside_x ? w_.inside_x[(v - 1) * w_.Cp + c] : 0.0;
      if (possible(inside))
        add(sums_[c], inside);
      else
        edge_[c] = v;  // no segment of its label reaches across
      farthest_ = std::max(farthest_, std::abs(sums_[c].hi));
    }
  }

  // h, length (K,): the best score of a segment that ends at v, relative to a scale, and its length; false: ask rows.
  bool ends(int64_t v, const Scale& reference, double* h, int32_t* length) {
    std::fill_n(h, w_.K, kMinusInfinity);
    if (highest_ - reference.hi > kFar) return false;
    if (s_.may_end && !s_.may_end[v - 1]) return true;
    const double margin = std::numeric_limits<double>::epsilon() * (32.0 * (farthest_ + 8.0 * kFar) + rounding_);
    for (int64_t k = 0; k < w_.K; ++k) {
      const int64_t c = n_.key_extent[k];
      const Lengths& all = lengths_[c];
      if (s_.runs)
        while (edge_[c] < v && edge_[c] + run(edge_[c], c) < v) ++edge_[c];
      const int64_t first = std::max(v - all.most, edge_[c]), stop = v - all.least + 1;
      if (first >= stop || (w_.end_x && !possible(w_.end_x[(v - 1) * w_.Cp + c]))) continue;
      const double* before = before_.data() + k * (s_.length + 1) + first;
      const double* lengths = all.back.data() + (first - (v - all.most));
      const double top = kernels_.sum_max(before, lengths, stop - first, kChunk, tops_.data());
      if (!possible(top)) continue;
      for (int64_t chunk = (stop - first - 1) / kChunk; chunk >= 0; --chunk) {  // shorter segments first
        if (tops_[chunk] < top - margin) continue;
        for (int64_t i = std::min(stop - first, (chunk + 1) * kChunk) - 1; i >= chunk * kChunk; --i) {
          if (before[i] + lengths[i] < top - margin) continue;
          const int64_t u = first + i;
          const double x = w_.g[u * w_.Kp + k] + (score(v, v - u, c) + difference(w_.a_scale[u], reference));
          if (x > h[k]) {
            h[k] = x;
            length[k] = static_cast<int32_t>(v - u);
          }
        }
      }
    }
    return true;
  }

 private:
  static constexpr int64_t kChunk = 64;

  struct Lengths {
    int64_t least = 1, most = 0;
    std::vector<double> back;  // scores of lengths most .. least
  };

  double start_score(int64_t u, int64_t c) const {
    return w_.start_x ? w_.start_x[(s_.start_stride ? u : 0) * w_.Cp + c] : 0.0;
  }
  double length_score(int64_t d, int64_t c) const { return w_.length_x ? w_.length_x[(d - 1) * w_.Cp + c] : 0.0; }
  int64_t run(int64_t u, int64_t c) const { return s_.runs[u * n_.labels + n_.extent_label[c]]; }

  // of the segment of length d that ends at v, as extent_row adds it up
  double score(int64_t v, int64_t d, int64_t c) {
    double* inside = inside_.data() + c * (s_.max_length + 1);
    inside[0] = 0.0;
    for (; known_[c] < d; ++known_[c])
      inside[known_[c] + 1] = inside[known_[c]] + (w_.inside_x ? w_.inside_x[(v - known_[c] - 1) * w_.Cp + c] : 0.0);
    double x = inside[d];
    if (w_.start_x) x += start_score(v - d, c);
    if (w_.end_x) x += w_.end_x[(v - 1) * w_.Cp + c];
    if (w_.length_x) x += length_score(d, c);
    return x;
  }

  const Kernels& kernels_;
  const SegmentView& s_;
  const TopologyView& n_;
  const SegmentWork& w_;
  std::vector<Lengths> lengths_;  // (C,)
  std::vector<double> before_;    // (K, T + 1) Y
  std::vector<Scale> sums_;       // (C,) of the inside scores so far
  std::vector<int64_t> edge_;     // (C,) the first position that a segment may reach back to
  std::vector<double> inside_;    // (C, M + 1) of the last d positions, for d up to
  std::vector<int64_t> known_;    // (C,)
  std::vector<double> tops_;
  double rounding_ = 0.0, farthest_ = 0.0, highest_ = kMinusInfinity;
};

}  // namespace scansion
