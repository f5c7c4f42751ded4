// The features of hierarchical models: from encoded attributes and weights to the scores of nested lattices.
//
// K named levels from the top down, S_k states each, above them the root: level k of the model is level k + 1 of its
// lattices. A feature is read on a clique (paper 000, equations 68 to 71):
//   inside          persistence, s-segment [i, j)    attributes summed over i .. j-1
//   start, end      persistence                      attributes at i, at j-1
//   inner           persistence                      attributes summed over i+1 .. j-1
//   length          persistence                      functions of j - i; without a bound, constants summed over positions
//   span            persistence                      attributes of [i, j)
//   transition      u then v under the parent p      always on; attributes at v's first position
//   initialisation  p and its first child u          always on; attributes at their first position
//   ending          p and its last child u           always on; attributes at their last position
// Columns are states s, pairs p * S + u, or triples (p * S + u) * S + v.
#pragma once

#include <cmath>
#include <memory>
#include <stdexcept>
#include <vector>

#include "features.hpp"
#include "nested_paths.hpp"
#include "parallel.hpp"

namespace scansion {

// Parts of attributes of tokens, then the others; the cliques are kTransition, kInitialisation and kEnding.
struct NestedPart {
  enum : int {
    kInside,
    kStart,
    kEnd,
    kInner,
    kTransition,
    kInitialisation,
    kEnding,
    kTokens,
    kLength = kTokens,
    kSpan
  };
  static constexpr int kCliques = 3;
};

// One named level: S states, P states of the level above.
struct NestedLevelFeatures {
  int64_t states = 0, parents = 0;
  int64_t bound = 0;                        // longest segment M; 0: none
  const uint8_t* children = nullptr;        // (P, S) 1 where a state may lie in a parent
  const uint8_t* possible[3] = {};          // by clique (P, S, S), (P, S), (P, S): 1 where it may occur
  FeatureRows tokens[NestedPart::kTokens];  // by part; rows are attributes of tokens
  FeatureRows always[3];                    // by clique; one row
  FeatureRows length;                       // rows are functions of the length
  FeatureRows span;                         // rows are attributes of spans
  const double* basis = nullptr;            // (functions, M), without a bound (functions, 1)

  // number of columns of a part
  int64_t width(int part) const {
    if (part < NestedPart::kTransition || part >= NestedPart::kTokens) return states;
    return part == NestedPart::kTransition ? parents * states * states : parents * states;
  }
};

struct NestedModelView {
  std::vector<NestedLevelFeatures> levels;  // (K,)
  int64_t weights = 0;                      // W
};

// Where the features stand. The scores that a token's attributes give to all parts of all levels are one row; a part has
// a place in it if it has features, "inside" always, and "start" if "inner" has.
class NestedFeatures {
 public:
  // arranged: weights in an order in which the features of an attribute stand side by side over all parts and levels,
  // the features of tokens first
  NestedFeatures(const NestedModelView& model, bool arranged) : levels_(model.levels), weights_(model.weights) {
    const size_t parts = levels_.size() * NestedPart::kTokens;
    place_.assign(parts, -1);
    int64_t attributes = 0;
    for (size_t i = 0; i < parts; ++i) {
      const int part = static_cast<int>(i % NestedPart::kTokens);
      const NestedLevelFeatures& level = levels_[i / NestedPart::kTokens];
      const bool corrected = part == NestedPart::kStart && level.tokens[NestedPart::kInner].rows;
      if (!level.tokens[part].rows && part != NestedPart::kInside && !corrected) continue;
      place_[i] = width_;
      width_ += level.width(part);
      attributes = std::max(attributes, level.tokens[part].attributes);
    }
    if (!arranged) {
      for (size_t i = 0; i < parts; ++i) {
        const FeatureRows& f = levels_[i / NestedPart::kTokens].tokens[i % NestedPart::kTokens];
        if (f.rows) tokens_.push_back({f, place_[i]});
      }
      return;
    }
    rows_.assign(1, 0);
    for (int64_t a = 0; a < attributes; ++a) {
      for (size_t i = 0; i < parts; ++i) {
        const FeatureRows& f = levels_[i / NestedPart::kTokens].tokens[i % NestedPart::kTokens];
        if (!f.rows || a >= f.attributes) continue;
        for (int64_t k = f.rows[a]; k < f.rows[a + 1]; ++k) {
          column_.push_back(static_cast<int32_t>(place_[i]) + f.column[k]);
          source_.push_back(f.base + k);
        }
      }
      rows_.push_back(static_cast<int64_t>(column_.size()));
    }
    if (!column_.empty()) tokens_.push_back({{rows_.data(), column_.data(), attributes, 0}, 0});
    for (NestedLevelFeatures& level : levels_)
      for (FeatureRows* f : {&level.always[0], &level.always[1], &level.always[2], &level.length, &level.span}) {
        if (!f->rows) continue;
        const int64_t base = static_cast<int64_t>(source_.size());
        for (int64_t k = 0; k < f->rows[f->attributes]; ++k) source_.push_back(f->base + k);
        f->base = base;
      }
    if (static_cast<int64_t>(source_.size()) != weights_) throw std::invalid_argument("weights that no feature has");
  }
  NestedFeatures(NestedFeatures&&) = default;

  const std::vector<NestedLevelFeatures>& levels() const { return levels_; }
  int64_t weights() const { return weights_; }
  int64_t width() const { return width_; }                                                    // of a token's row
  int64_t place(size_t k, int part) const { return place_[k * NestedPart::kTokens + part]; }  // or -1

  struct TokenFeatures {
    FeatureRows features;
    int64_t place;  // of column 0 in a token's row
  };
  const std::vector<TokenFeatures>& tokens() const { return tokens_; }

  // weight of the model that each of the arranged ones is; empty: all are where they were
  const std::vector<int64_t>& source() const { return source_; }

 private:
  std::vector<NestedLevelFeatures> levels_;
  const int64_t weights_;
  int64_t width_ = 0;
  std::vector<int64_t> place_;  // (K, parts of tokens)
  std::vector<TokenFeatures> tokens_;
  std::vector<int64_t> rows_;  // of the arranged features
  std::vector<int32_t> column_;
  std::vector<int64_t> source_;
};

// A search for weights may go astray: scores from here on are not taken.
constexpr double kLargestScore = 1e100;

inline bool in_range(const std::vector<double>& x, int64_t n) { return kernels().in_range(x.data(), n, kLargestScore); }
inline bool in_range(const std::vector<double>& x) { return in_range(x, static_cast<int64_t>(x.size())); }

// Scores that all sequences have in common under some weights.
struct NestedCommon {
  std::vector<std::vector<double>>
      cliques[NestedPart::kCliques];        // by level (P, S, S), (P, S), (P, S): -inf: impossible
  std::vector<std::vector<double>> length;  // by level (M, S), without a bound (1, S); empty: all 0
  bool fits = true;                         // none is out of range

  void fill(const NestedFeatures& features, const double* w, double scale) {
    const size_t K = features.levels().size();
    fits = true;
    for (auto& list : cliques) list.resize(K);
    length.resize(K);
    for (size_t k = 0; k < K; ++k) {
      const NestedLevelFeatures& level = features.levels()[k];
      for (int c = 0; c < NestedPart::kCliques; ++c) {
        std::vector<double>& scores = cliques[c][k];
        scores.assign(static_cast<size_t>(level.width(NestedPart::kTransition + c)), 0.0);
        const FeatureRows& f = level.always[c];
        for (int64_t i = 0; f.rows && i < f.rows[1]; ++i) scores[f.column[i]] = scale * w[f.base + i];
        fits &= in_range(scores);
        for (size_t i = 0; i < scores.size(); ++i)
          if (!level.possible[c][i]) scores[i] = kMinusInfinity;
      }
      length[k].clear();
      const FeatureRows& f = level.length;
      if (!f.rows) continue;
      const int64_t M = std::max<int64_t>(1, level.bound);
      length[k].assign(static_cast<size_t>(M * level.states), 0.0);
      for (int64_t i = 0; i < f.attributes; ++i)
        for (int64_t j = f.rows[i]; j < f.rows[i + 1]; ++j)
          for (int64_t d = 0; d < M; ++d)
            length[k][d * level.states + f.column[j]] += scale * w[f.base + j] * level.basis[i * M + d];
      fits &= in_range(length[k]);
    }
  }
};

// Scores of one sequence of T positions, as lattices take them.
class NestedScores {
 public:
  NestedScores(const NestedFeatures& features, const DataView& data, const NestedCommon& common)
      : f_(features), data_(data), common_(common), spans_(f_.levels().size()) {}

  // Scores of sequence b; split: what w.rows are the rows of. gold: the Hamming cost, 1 for every other state of a
  // position at each level, is added; null: none. False: scores are out of range.
  bool fill(int64_t b, const WeightsView& w, const SplitFeatures* split, const Configuration* gold) {
    first_ = data_.offsets[b];
    length_ = data_.length(b);
    const int64_t T = length_, R = f_.width();
    rows_.assign(static_cast<size_t>((T + 1) * R + 4), 0.0);  // the last transitions are those of no token
    for (const NestedFeatures::TokenFeatures& part : f_.tokens())
      add_token_scores(part.features, data_, split, first_, T, w, rows_.data() + part.place, R, R);
    bool fits = common_.fits && in_range(rows_, T * R);
    for (size_t k = 0; k < f_.levels().size(); ++k) {
      fill_spans(k, b, w);
      fits &= in_range(spans_[k]);
      for (int64_t t = 0; t < T; ++t) finish_row(k, rows_.data() + t * R);
    }
    for (size_t g = 1; gold && g < gold->size(); ++g) add_cost((*gold)[g], g - 1);
    return fits;
  }

  int64_t length() const { return length_; }
  // the arrays of one level; null: not there
  const double* row(size_t k, int part) const {  // (T, width of the part), row after row of stride()
    const int64_t place = f_.place(k, part);
    return place < 0 ? nullptr : rows_.data() + place + (part == NestedPart::kTransition ? f_.width() : 0);
  }
  int64_t stride() const { return f_.width(); }
  const double* spans(size_t k) const { return spans_[k].empty() ? nullptr : spans_[k].data(); }  // (T, limit, S)
  int64_t limit(size_t k) const { return std::max<int64_t>(1, std::min(f_.levels()[k].bound, length_)); }
  // without a bound, lengths count at each position
  const double* lengths(size_t k) const {
    return f_.levels()[k].bound && !common_.length[k].empty() ? common_.length[k].data() : nullptr;
  }

 private:
  // the scores of a token beside those of its own attributes
  void finish_row(size_t k, double* row) const {
    const NestedLevelFeatures& level = f_.levels()[k];
    const int64_t S = level.states, inner = f_.place(k, NestedPart::kInner);
    double* inside = row + f_.place(k, NestedPart::kInside);
    if (inner >= 0) {  // inside, but not at the start
      double* start = row + f_.place(k, NestedPart::kStart);
      for (int64_t s = 0; s < S; ++s) inside[s] += row[inner + s];
      for (int64_t s = 0; s < S; ++s) start[s] -= row[inner + s];
    }
    if (!level.bound && !common_.length[k].empty())
      for (int64_t s = 0; s < S; ++s) inside[s] += common_.length[k][s];
    for (int c = 0; c < NestedPart::kCliques; ++c) {
      const int64_t place = f_.place(k, NestedPart::kTransition + c);
      if (place < 0) continue;
      const std::vector<double>& common = common_.cliques[c][k];
      kernels().add_scaled(row + place, common.data(), 1.0, static_cast<int64_t>(common.size()));
    }
  }

  void fill_spans(size_t k, int64_t b, const WeightsView& w) {
    const FeatureRows& f = f_.levels()[k].span;
    const CellsView* cells = data_.cells_of(k);
    if (!f.rows || !cells) return;
    const int64_t S = f_.levels()[k].states, M = limit(k);
    spans_[k].assign(static_cast<size_t>(length_ * M * S), 0.0);
    for (int64_t e = cells->offsets[b]; e < cells->offsets[b + 1]; ++e) {
      const int64_t id = cells->ids[e];
      if (id >= f.attributes || cells->length[e] > M) continue;
      double* row = spans_[k].data() + (cells->start[e] * M + cells->length[e] - 1) * S;
      for (int64_t i = f.rows[id]; i < f.rows[id + 1]; ++i)
        row[f.column[i]] += w.scale * cells->values[e] * w.plain[f.base + i];
    }
  }

  void add_cost(const Path& gold, size_t k) {
    const int64_t S = f_.levels()[k].states;
    for (const Step& step : gold)
      for (int64_t t = step.start; t < step.stop; ++t) {
        double* inside = rows_.data() + t * f_.width() + f_.place(k, NestedPart::kInside);
        for (int64_t s = 0; s < S; ++s) inside[s] += s == step.label ? 0.0 : 1.0;
      }
  }

  const NestedFeatures& f_;
  const DataView& data_;
  const NestedCommon& common_;
  int64_t first_ = 0, length_ = 0;
  std::vector<double> rows_;                // (T + 1, R)
  std::vector<std::vector<double>> spans_;  // by level
};

// Scores of all sequences one after another, N positions in all; null: not there in this model, or not wanted.
struct NestedScoreArrays {
  struct Level {
    double* inside = nullptr;  // (N, S)
    double* start = nullptr;   // (N, S)
    double* stop = nullptr;    // (N, S)
    double* length = nullptr;  // (M, S)
    double* spans = nullptr;   // (N, M, S), given as zeros
    double* cliques[3] =
        {};  // transition (N, P, S, S), initialisation and ending (N, P, S); without N: at all positions
  };
  std::vector<Level> levels;
};

inline void fill_scores(const NestedFeatures& features, const DataView& data, const double* w, int64_t threads,
                        const NestedScoreArrays& out) {
  NestedCommon common;
  common.fill(features, w, 1.0);
  std::vector<std::unique_ptr<NestedScores>> scores(std::max<int64_t>(1, threads));
  parallel_for(data.sequences, threads, [&](int64_t b, int64_t worker) {
    if (!scores[worker]) scores[worker] = std::make_unique<NestedScores>(features, data, common);
    NestedScores& s = *scores[worker];
    s.fill(b, {w}, nullptr, nullptr);
    const int64_t first = data.offsets[b], T = data.length(b);
    for (size_t k = 0; k < out.levels.size(); ++k) {
      const NestedLevelFeatures& level = features.levels()[k];
      const NestedScoreArrays::Level& to = out.levels[k];
      const auto copy = [&](int part, double* array) {
        const double* from = s.row(k, part);
        const int64_t width = level.width(part);
        for (int64_t t = 0; array && from && t < T; ++t)
          std::copy_n(from + t * s.stride(), width, array + (first + t) * width);
      };
      copy(NestedPart::kInside, to.inside);
      copy(NestedPart::kStart, to.start);
      copy(NestedPart::kEnd, to.stop);
      for (int c = 0; c < NestedPart::kCliques; ++c) copy(NestedPart::kTransition + c, to.cliques[c]);
      const int64_t M = s.limit(k) * level.states;
      for (int64_t t = 0; to.spans && s.spans(k) && t < T; ++t)
        std::copy_n(s.spans(k) + t * M, M, to.spans + (first + t) * level.bound * level.states);
    }
  });
  for (size_t k = 0; k < out.levels.size(); ++k) {
    const NestedScoreArrays::Level& to = out.levels[k];
    if (to.length) std::copy(common.length[k].begin(), common.length[k].end(), to.length);
    for (int c = 0; c < NestedPart::kCliques; ++c)
      if (to.cliques[c] && features.place(k, NestedPart::kTransition + c) < 0)
        std::copy(common.cliques[c][k].begin(), common.cliques[c][k].end(), to.cliques[c]);
  }
}

}  // namespace scansion
