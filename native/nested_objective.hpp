// The objectives of hierarchical models: what objective.hpp asks of them. Conventions as in nested_features.hpp; D levels
// of lattices, the root first.
#pragma once

#include "knowledge.hpp"
#include "nested_features.hpp"
#include "objective.hpp"

namespace scansion {

// What is known of N positions; see scansion.data.LevelTargets. Lists are by named level.
struct NestedTargetView {
  std::vector<const int32_t*> labels;   // (N,) state, -1: unknown
  std::vector<const int8_t*> ends;      // (N,) 1: a segment ends here, 0: none does, -1: unknown
  std::vector<const uint8_t*> allowed;  // (N, S) states that are allowed, in place of labels; or null
  const uint8_t* status = nullptr;      // (B,) of enum Status
  const double* weight = nullptr;       // (B,) or null: all 1
};

class NestedSequence;
class NestedExpectations;

// A hierarchical model with its data and targets.
class NestedProblem {
 public:
  using Configuration = scansion::Configuration;
  using Scores = NestedSequence;
  using Expectations = NestedExpectations;
  static constexpr bool kArranges = true;

  struct Shared {
    NestedCommon scores;
    NestedFixed tables;  // exponentials of cliques that are the same at all positions
  };

  NestedProblem(const NestedModelView& model, const DataView& given_data, const NestedTargetView& given_target)
      : features(model, true), data(given_data), target(given_target), topology(make_topology(features, data)) {
    std::vector<Known> known(static_cast<size_t>(levels()));  // of the root, nothing
    any_ = EventLevels(known, data.longest());
    for (size_t k = 0; k < target.ends.size(); ++k) known[k + 1].ends = target.ends[k];
    known_ = EventLevels(known, data.offsets[data.sequences]);
    zeros_.assign(static_cast<size_t>(topology.size(levels() - 1)), 0.0);
  }

  NestedFeatures features;
  DataView data;
  NestedTargetView target;
  NestedTopology topology;

  int64_t levels() const { return static_cast<int64_t>(features.levels().size()) + 1; }  // D
  int64_t sequences() const { return data.sequences; }
  int64_t weights() const { return features.weights(); }
  Status status(int64_t b) const { return static_cast<Status>(target.status[b]); }
  double weight(int64_t b) const { return target.weight ? target.weight[b] : 1.0; }

  // made when first wanted
  const SplitFeatures* split() const {
    if (!split_ && !features.tokens().empty() && SplitFeatures::serves(data))
      split_ = std::make_unique<SplitFeatures>(features.tokens()[0].features, features.width(), data);
    return split_.get();
  }

  const double* arrange(const double* w, std::vector<double>& own) const {
    own.resize(features.source().size());
    for (size_t i = 0; i < own.size(); ++i) own[i] = w[features.source()[i]];
    return own.data();
  }
  void restore(const double* from, double* to) const {
    for (size_t i = 0; i < features.source().size(); ++i) to[features.source()[i]] = from[i];
  }

  void share(const WeightsView& w, bool exponentials, Shared& out) const {
    out.scores.fill(features, w.plain, w.scale);
    if (!exponentials || !out.scores.fits) return;
    NestedView any;
    any.levels.resize(topology.levels());
    for (auto* list : {&any.transit, &any.init, &any.end}) list->resize(topology.levels());
    for (int64_t g = 1; g < levels(); ++g) set_cliques(g, out.scores, nullptr, any);
    if (topology.levels() > levels()) any.set_steps(levels(), zeros_.data());
    nested_tables(topology, any, true, out.tables);
  }

  // the cliques of level g; rows: scores of a sequence, null: those that are not by position
  void set_cliques(int64_t g, const NestedCommon& common, const NestedScores* rows, NestedView& view) const {
    NestedClique* const cliques[] = {&view.transit[g], &view.init[g], &view.end[g]};
    for (int c = 0; c < NestedPart::kCliques; ++c) {
      const bool by_time = features.place(g - 1, NestedPart::kTransition + c) >= 0;
      if (by_time)
        *cliques[c] = {rows ? rows->row(g - 1, NestedPart::kTransition + c) : nullptr, features.width()};
      else
        *cliques[c] = {common.cliques[c][g - 1].data(), 0};
    }
  }

  NestedSequence scores(const Shared& shared) const;
  NestedExpectations expectations() const;

  Configuration configuration(int64_t b) const {
    Configuration out(static_cast<size_t>(levels()));
    const int64_t first = data.offsets[b], T = data.length(b);
    if (T > 0) out[0].push_back({0, T, 0});
    for (size_t k = 0; k < features.levels().size(); ++k) {
      int64_t start = 0;
      for (int64_t t = 0; t < T; ++t)
        if (t + 1 == T || target.ends[k][first + t] == 1) {
          out[k + 1].push_back({start, t + 1, target.labels[k][first + t]});
          start = t + 1;
        }
    }
    return out;
  }
  static bool same(const Configuration& a, const Configuration& b) {
    const auto equal = [](const Step& x, const Step& y) {
      return x.start == y.start && x.stop == y.stop && x.label == y.label;
    };
    for (size_t g = 0; g < a.size(); ++g)
      if (!std::equal(a[g].begin(), a[g].end(), b[g].begin(), b[g].end(), equal)) return false;
    return true;
  }
  // over all levels
  int64_t wrong(int64_t b, const Configuration& x, const Configuration& y) const {
    int64_t count = 0;
    std::vector<int32_t> label(static_cast<size_t>(data.length(b)));
    for (size_t g = 1; g < x.size(); ++g) {
      for (const Step& step : x[g]) std::fill(label.begin() + step.start, label.begin() + step.stop, step.label);
      for (const Step& step : y[g])
        for (int64_t t = step.start; t < step.stop; ++t) count += label[t] != step.label;
    }
    return count;
  }

  // (T,) each, as NestedView takes them
  const int64_t* low(int64_t b, bool known) const {
    return known ? known_.low.data() + data.offsets[b] : any_.low.data();
  }
  const int64_t* high(int64_t b, bool known) const {
    return known ? known_.high.data() + data.offsets[b] : any_.high.data();
  }
  const double* zeros() const { return zeros_.data(); }

 private:
  // Levels without a bound that matters, lengths and spans are free: nothing but sums over positions.
  static NestedTopology make_topology(const NestedFeatures& features, const DataView& data) {
    const int64_t longest = data.longest();
    std::vector<int64_t> sizes = {1};
    std::vector<const uint8_t*> children;
    std::vector<uint8_t> free = {0};
    for (size_t k = 0; k < features.levels().size(); ++k) {
      const NestedLevelFeatures& level = features.levels()[k];
      const bool timed = (level.bound && level.length.rows) || (level.span.rows && data.cells_of(k));
      sizes.push_back(level.states);
      children.push_back(level.children);
      free.push_back(longest > 1 && !timed && (!level.bound || level.bound >= longest));
    }
    return NestedTopology(std::move(sizes), std::move(children), std::move(free));
  }

  EventLevels known_{{}, 0}, any_{{}, 0};  // (N,) what is known, (longest,) nothing
  std::vector<double> zeros_;
  mutable std::unique_ptr<SplitFeatures> split_;
};

// Expected numbers of cliques in one sequence of T positions, or differences of configurations.
class NestedExpectations {
 public:
  explicit NestedExpectations(const NestedProblem& problem) : p_(problem), f_(problem.features) {
    const size_t D = static_cast<size_t>(p_.topology.levels());
    NestedAnswer& a = answer;
    for (auto* list : {&a.labels, &a.boundaries, &a.spans, &a.start, &a.stop, &a.length}) list->assign(D, nullptr);
    for (auto* list : {&a.spans_stride, &a.start_stride, &a.stop_stride}) list->assign(D, 0);
    for (auto* list : {&a.transit, &a.init, &a.end}) list->resize(D);
  }

  NestedAnswer answer;  // where inference adds them

  // expectations of nothing yet; sparse: to become a difference of configurations
  void clear(int64_t b, bool sparse = true) {
    sequence_ = b;
    first_ = p_.data.offsets[b];
    length_ = p_.data.length(b);
    sparse_ = sparse;
    const int64_t T = length_;
    int64_t size = 0;
    const auto layout = [&](double* block) {
      size = 0;
      const auto take = [&](bool wanted, int64_t n) -> double* {
        if (!wanted) return nullptr;
        size += n;
        return block ? block + size - n : nullptr;
      };
      for (size_t k = 0; k < f_.levels().size(); ++k) {
        const NestedLevelFeatures& level = f_.levels()[k];
        const size_t g = k + 1;
        const int64_t S = level.states, M = limit(k);
        const bool inner = level.tokens[NestedPart::kInner].rows;
        const bool constants = !level.bound && level.length.rows;
        answer.labels[g] = take(level.tokens[NestedPart::kInside].rows || inner || constants, T * S);
        answer.start[g] = take(level.tokens[NestedPart::kStart].rows || inner, T * S);
        answer.stop[g] = take(level.tokens[NestedPart::kEnd].rows, T * S);
        answer.start_stride[g] = answer.stop_stride[g] = S;
        answer.length[g] = take(level.bound && level.length.rows, M * S);
        answer.spans[g] = take(level.span.rows && p_.data.cells_of(k), T * M * S);
        answer.spans_stride[g] = M;
        const NestedChildren& c = p_.topology.children(static_cast<int64_t>(g));
        NestedExpect* const cliques[] = {&answer.transit[g], &answer.init[g], &answer.end[g]};
        for (int i = 0; i < NestedPart::kCliques; ++i) {
          const int64_t counts = i == 0 ? c.square.back() : static_cast<int64_t>(c.kid.size());
          const int part = NestedPart::kTransition + i;
          const bool by_time = level.tokens[part].rows;
          cliques[i]->counts = take(!by_time && level.always[i].rows, counts);
          cliques[i]->by_time = take(by_time, T * level.width(part));
        }
      }
    };
    layout(nullptr);
    block_.assign(static_cast<size_t>(size), 0.0);
    layout(block_.data());
  }

  // Adds amount times a configuration: to posteriors, amount = -1 leaves the gradient's cells.
  void add(const Configuration& configuration, double amount) {
    const auto put = [amount](double* array, int64_t at) {
      if (array && at >= 0) array[at] += amount;
    };
    const auto pair = [&](const NestedExpect& e, size_t g, int64_t t, int64_t p, int64_t u) {
      const NestedLevelFeatures& level = f_.levels()[g - 1];
      put(e.counts, p_.topology.children(static_cast<int64_t>(g)).pair_of(p, u));
      put(e.by_time, (t * level.parents + p) * level.states + u);
    };
    each_clique(
        configuration,
        [&](size_t g, int64_t i, int64_t j, int64_t s) {
          const int64_t S = f_.levels()[g - 1].states;
          for (int64_t t = i; t < j; ++t) put(answer.labels[g], t * S + s);
          put(answer.start[g], i * S + s);
          put(answer.stop[g], (j - 1) * S + s);
          put(answer.length[g], (j - i - 1) * S + s);
          put(answer.spans[g], (i * answer.spans_stride[g] + j - i - 1) * S + s);
        },
        [&](size_t g, int64_t t, int64_t p, int64_t u) { pair(answer.init[g], g, t, p, u); },
        [&](size_t g, int64_t t, int64_t p, int64_t v, int64_t u) {
          const NestedLevelFeatures& level = f_.levels()[g - 1];
          put(answer.transit[g].counts, p_.topology.children(static_cast<int64_t>(g)).square_of(p, v, u));
          put(answer.transit[g].by_time, ((t * level.parents + p) * level.states + v) * level.states + u);
        },
        [&](size_t g, int64_t t, int64_t p, int64_t u) { pair(answer.end[g], g, t, p, u); });
  }

  // out += factor * expected values of the features; split: what out.rows are the rows of
  void add_to(const WeightVector& out, double factor, const SplitFeatures* split) {
    gather_rows();
    const auto skip = [this](int64_t t) { return empty_[t] != 0; };
    for (const NestedFeatures::TokenFeatures& part : f_.tokens())
      add_token_expectations(part.features, p_.data, split, first_, length_, factor, rows_.data() + part.place,
                             f_.width(), f_.width(), skip, out, row_);
    each_other(AddExpectation{out.plain, factor});
  }

  // add(weight, value) feature by feature, only where something is expected
  template <class Add>
  void each(const Add& add) {
    const Each<Add> use{add};
    gather_rows();
    const auto skip = [this](int64_t t) { return empty_[t] != 0; };
    for (const NestedFeatures::TokenFeatures& part : f_.tokens())
      each_token_feature(part.features, p_.data.token_offsets, p_.data.ids, p_.data.values, first_, length_,
                         rows_.data() + part.place, f_.width(), skip, use);
    each_other(use);
  }

 private:
  int64_t limit(size_t k) const { return std::max<int64_t>(1, std::min(f_.levels()[k].bound, length_)); }

  // rows_ (T, R): what is expected of the columns that a token's attributes have, in the order of its row of scores
  void gather_rows() {
    const int64_t T = length_, R = f_.width();
    rows_.assign(static_cast<size_t>(T * R), 0.0);
    for (size_t k = 0; k < f_.levels().size(); ++k) {
      const NestedLevelFeatures& level = f_.levels()[k];
      const size_t g = k + 1;
      const double* const from[] = {answer.labels[g],     answer.start[g],           answer.stop[g],
                                    answer.labels[g],     answer.transit[g].by_time, answer.init[g].by_time,
                                    answer.end[g].by_time};
      for (int part = 0; part < NestedPart::kTokens; ++part) {
        if (!level.tokens[part].rows) continue;
        const int64_t width = level.width(part);
        double* row = rows_.data() + f_.place(k, part);
        // a transition is of the token after its left child
        const bool later = part == NestedPart::kTransition;
        for (int64_t t = later ? 1 : 0; t < T; ++t) std::copy_n(from[part] + (t - later) * width, width, row + t * R);
        if (part != NestedPart::kInner) continue;
        for (int64_t t = 0; t < T; ++t)
          for (int64_t s = 0; s < width; ++s) row[t * R + s] -= answer.start[g][t * width + s];
      }
    }
    empty_.assign(static_cast<size_t>(T), 0);
    for (int64_t t = 0; sparse_ && t < T; ++t) {
      const double* row = rows_.data() + t * R;
      empty_[t] = std::none_of(row, row + R, [](double x) { return x != 0.0; });
    }
  }

  // use(cell, weight, value) for features that are always on, of lengths and of spans
  template <class Use>
  void each_other(const Use& use) {
    for (size_t k = 0; k < f_.levels().size(); ++k) {
      const NestedLevelFeatures& level = f_.levels()[k];
      const size_t g = k + 1;
      const int64_t S = level.states;
      const NestedChildren& c = p_.topology.children(static_cast<int64_t>(g));
      const NestedExpect* const cliques[] = {&answer.transit[g], &answer.init[g], &answer.end[g]};
      for (int i = 0; i < NestedPart::kCliques; ++i) {
        const FeatureRows& f = level.always[i];
        if (!f.rows) continue;
        const double* by_time = cliques[i]->by_time;
        if (by_time) sum_positions(by_time, level.width(NestedPart::kTransition + i));
        for (int64_t j = 0; j < f.rows[1]; ++j) {
          const int64_t column = f.column[j];
          const int64_t at = by_time  ? column
                             : i == 0 ? c.square_of(column / S / S, column / S % S, column % S)
                                      : c.pair_of(column / S, column % S);
          if (at >= 0) use((by_time ? sums_.data() : cliques[i]->counts) + at, f.base + j, 1.0);
        }
      }
      each_length(k, use);
      each_span(k, use);
    }
  }

  // sums_ (width,) = sum over the positions of an array (T, width)
  void sum_positions(const double* array, int64_t width) {
    sums_.assign(static_cast<size_t>(width), 0.0);
    for (int64_t t = 0; t < length_; ++t) kernels().add_scaled(sums_.data(), array + t * width, 1.0, width);
  }

  template <class Use>
  void each_length(size_t k, const Use& use) {
    const NestedLevelFeatures& level = f_.levels()[k];
    const FeatureRows& f = level.length;
    if (!f.rows) return;
    const int64_t S = level.states, M = std::max<int64_t>(1, level.bound);
    const double* lengths = answer.length[k + 1];
    if (!level.bound) {
      sum_positions(answer.labels[k + 1], S);
      lengths = sums_.data();
    }
    for (int64_t i = 0; i < f.attributes; ++i)
      for (int64_t j = f.rows[i]; j < f.rows[i + 1]; ++j)
        for (int64_t d = 0; d < limit(k); ++d) use(lengths + d * S + f.column[j], f.base + j, level.basis[i * M + d]);
  }

  template <class Use>
  void each_span(size_t k, const Use& use) {
    const NestedLevelFeatures& level = f_.levels()[k];
    const CellsView* cells = p_.data.cells_of(k);
    if (!level.span.rows || !cells) return;
    for (int64_t e = cells->offsets[sequence_]; e < cells->offsets[sequence_ + 1]; ++e) {
      const int64_t id = cells->ids[e];
      if (id >= level.span.attributes || cells->length[e] > limit(k)) continue;
      const double* row = answer.spans[k + 1] + (cells->start[e] * limit(k) + cells->length[e] - 1) * level.states;
      for (int64_t i = level.span.rows[id]; i < level.span.rows[id + 1]; ++i)
        use(row + level.span.column[i], level.span.base + i, cells->values[e]);
    }
  }

  const NestedProblem& p_;
  const NestedFeatures& f_;
  int64_t sequence_ = 0, first_ = 0, length_ = 0;
  bool sparse_ = false;
  std::vector<double> block_, rows_, row_, sums_;
  std::vector<uint8_t> empty_;  // (T,) nothing is expected
};

// The scores of one sequence, and what inference makes of them.
class NestedSequence : public NestedScores {
 public:
  NestedSequence(const NestedProblem& problem, const NestedProblem::Shared& shared)
      : NestedScores(problem.features, problem.data, shared.scores),
        p_(problem),
        shared_(shared),
        inference_(problem.topology, shared.tables),
        nothing_(problem.expectations()),
        masks_(problem.features.levels().size()) {
    const size_t D = static_cast<size_t>(p_.topology.levels());
    view_.levels.resize(D);
    for (auto* list : {&view_.transit, &view_.init, &view_.end}) list->resize(D);
  }

  bool fill(int64_t b, const WeightsView& w, const SplitFeatures* split, const Configuration* gold) {
    sequence_ = b;
    const bool fits = NestedScores::fill(b, w, split, gold);
    view_.length = length();
    for (int64_t g = 1; g < p_.levels(); ++g) {
      const size_t k = static_cast<size_t>(g - 1);
      const NestedLevelFeatures& features = p_.features.levels()[k];
      NestedLevel& level = view_.levels[g];
      level.states = features.states;
      level.longest = features.bound ? std::min(features.bound, length()) : length();
      level.inside = row(k, NestedPart::kInside);
      level.start = row(k, NestedPart::kStart);
      level.stop = row(k, NestedPart::kEnd);
      level.inside_stride = level.start_stride = level.stop_stride = stride();
      level.length = lengths(k);
      level.spans = spans(k);
      level.spans_stride = limit(k);
      p_.set_cliques(g, shared_.scores, this, view_);
    }
    view_.levels[0].states = 1;
    view_.levels[0].longest = length();
    if (p_.topology.levels() > p_.levels()) view_.set_steps(p_.levels(), p_.zeros());
    return fits;
  }

  double posteriors(bool known, NestedExpectations* out) {
    hold(known);
    if (out) out->clear(sequence_, false);
    NestedAnswer& answer = out ? out->answer : nothing_.answer;
    inference_.run(view_, out != nullptr, answer);
    return answer.log_partition;
  }

  // segments of no level if nothing is possible
  Configuration best(bool known) {
    hold(known);
    Configuration found;
    on_nested<Highest>(p_.topology, view_, p_.levels(), [&](auto& graph) { return best_configuration(graph, found); });
    return found;
  }

  double score(const Configuration& configuration) const {
    struct {
      double value = 0.0;
      void add(double x) { value += x; }
    } sum;
    add_scores(view_, configuration, sum);
    return sum.value;
  }

 private:
  // what is known, or nothing
  void hold(bool known) {
    view_.low = p_.low(sequence_, known);
    view_.high = p_.high(sequence_, known);
    const int64_t first = p_.data.offsets[sequence_], T = length();
    for (size_t k = 0; k < masks_.size(); ++k) {
      const int64_t S = p_.features.levels()[k].states;
      NestedLevel& level = view_.levels[k + 1];
      level.allowed = nullptr;
      if (!known) continue;
      if (p_.target.allowed[k]) {
        level.allowed = p_.target.allowed[k] + first * S;
        continue;
      }
      const int32_t* labels = p_.target.labels[k] + first;
      if (std::all_of(labels, labels + T, [](int32_t y) { return y < 0; })) continue;
      masks_[k].resize(static_cast<size_t>(T * S));
      for (int64_t t = 0; t < T; ++t)
        for (int64_t s = 0; s < S; ++s) masks_[k][t * S + s] = labels[t] < 0 || labels[t] == s;
      level.allowed = masks_[k].data();
    }
  }

  const NestedProblem& p_;
  const NestedProblem::Shared& shared_;
  NestedInference inference_;
  NestedExpectations nothing_;  // an answer without arrays
  int64_t sequence_ = 0;
  NestedView view_;
  std::vector<std::vector<uint8_t>> masks_;  // by level (T, S)
};

inline NestedSequence NestedProblem::scores(const Shared& shared) const { return NestedSequence(*this, shared); }
inline NestedExpectations NestedProblem::expectations() const { return NestedExpectations(*this); }

using NestedObjective = Objective<NestedProblem>;

}  // namespace scansion
