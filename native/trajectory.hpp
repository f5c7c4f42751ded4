// Learning from trajectories: what a sequence's labels go through is known, and not where (docs/notation.md, section 4). The
// numerator is log Z of the lattice over places (places.hpp), whose expectations go back to the labels they stand for;
// all recursions are those of chain.hpp and segment.hpp.
#pragma once

#include <memory>
#include <vector>

#include "flat_model.hpp"
#include "places.hpp"

namespace scansion {

// The automaton of one sequence's places, for models that the segment kernel serves. It depends on the features only.
class PlaceNet {
 public:
  PlaceNet(const FlatModelView& m, const int32_t* trajectory, int64_t places, bool merge) {
    const PatternAutomaton& labels = *m.automaton;
    std::vector<int32_t> symbols;
    std::vector<int64_t> offsets = {0};
    for (int64_t z = 0; z < labels.patterns(); ++z) {
      const std::vector<int32_t> one = labels.pattern_symbols(z);
      symbols.insert(symbols.end(), one.begin(), one.end());
      offsets.push_back(static_cast<int64_t>(symbols.size()));
    }
    const PlacePatterns found = place_patterns(symbols.data(), offsets.data(), labels.patterns(), trajectory,
                                               static_cast<int32_t>(places), merge);
    // those with a column in the arrays of extent scores first, as the kernels want them
    const auto rank = [&](int32_t z) { return found.column[z] < 0 ? 2 : found.column[z] < m.columns ? 0 : 1; };
    std::vector<int32_t> order(static_cast<size_t>(found.size()));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return rank(a) < rank(b); });
    std::vector<int32_t> moved;
    std::vector<int64_t> cuts = {0};
    std::vector<uint8_t> extent;
    for (const int32_t z : order) {
      moved.insert(moved.end(), found.symbols.begin() + found.offsets[z], found.symbols.begin() + found.offsets[z + 1]);
      cuts.push_back(static_cast<int64_t>(moved.size()));
      column_.push_back(found.column[z]);
      extent.push_back(found.column[z] >= 0 && m.extent[found.column[z]]);
      columns_ += rank(z) == 0;
    }
    automaton_ = std::make_unique<PatternAutomaton>(places, moved.data(), cuts.data(), found.size());
    topology_ = std::make_unique<Topology>(*automaton_, extent.data());
  }

  const TopologyView& topology() const { return topology_->view(); }
  int64_t patterns() const { return static_cast<int64_t>(column_.size()); }
  int64_t columns() const { return columns_; }                // patterns with a column in the arrays of extent scores
  int32_t column(int64_t z) const { return column_[z]; }  // the label pattern, or -1: forbidden

 private:
  std::vector<int32_t> column_;
  int64_t columns_ = 0;
  std::unique_ptr<PatternAutomaton> automaton_;
  std::unique_ptr<Topology> topology_;
};

// The scores of one sequence on the places of a trajectory, out of those that `s` holds.
class PlaceScores {
 public:
  PlaceScores(FlatScores& s, const int32_t* trajectory, int64_t places, const PlaceNet* net)
      : s_(s), m_(s.m_), trajectory_(trajectory), places_(places), net_(net), T_(s.length_) {
    if (m_.dense)
      fill_chain();
    else
      fill_segments();
  }

  // log Z of all configurations with this trajectory and, unless null, their posteriors
  double posteriors(FlatExpectations* out) {
    if (out) out->clear(s_.sequence_, false);
    return m_.dense ? chain_posteriors(out) : segment_posteriors(out);
  }

  // the best of them; empty if none is possible
  Path best() {
    Path path;
    if (m_.dense) {
      const ChainView view = chain_view();
      std::vector<int32_t> place(static_cast<size_t>(T_));
      if (!best_labels(view, s_.work_, place.data())) return path;
      for (int64_t t = 0; t < T_; ++t) path.push_back({t, t + 1, trajectory_[place[t]]});
      return path;
    }
    const SegmentView view = segment_view();
    std::vector<int32_t> ranks;
    on_segments(view, net_->topology(), s_.work_, ranks, Table::kBest,
                [&](auto& graph) { return best_path(graph, path); });
    for (Step& step : path) step.label = trajectory_[step.label];
    return path;
  }

 private:
  // place i at position t leaves room for the places before it and after it
  bool room(int64_t t, int64_t i) const { return i <= t && places_ - 1 - i <= T_ - 1 - t; }

  // ---- first-order chains ----

  void fill_chain() {
    const int64_t L = m_.labels, c = places_, rows = pair_rows();
    start_.resize(static_cast<size_t>(T_ * c));
    allowed_.resize(static_cast<size_t>(T_ * c));
    for (int64_t t = 0; t < T_; ++t)
      for (int64_t i = 0; i < c; ++i) {
        start_[t * c + i] = s_.start[t * L + trajectory_[i]];
        allowed_[t * c + i] = room(t, i);
      }
    pairs_.assign(static_cast<size_t>(std::max<int64_t>(1, rows) * c * c), kMinusInfinity);
    each_move([&](int64_t at, int64_t pair) {
      for (int64_t r = 0; r < rows; ++r) pairs_[r * c * c + at] = s_.pairs[r * L * L + pair];
    });
  }
  int64_t pair_rows() const { return m_.varying_starts ? std::max<int64_t>(0, T_ - 1) : 1; }

  // use(place pair, label pair) for staying and for going on
  template <class Use>
  void each_move(const Use& use) const {
    for (int64_t i = 0; i < places_; ++i) {
      use(i * places_ + i, trajectory_[i] * m_.labels + trajectory_[i]);
      if (i + 1 < places_) use(i * places_ + i + 1, trajectory_[i] * m_.labels + trajectory_[i + 1]);
    }
  }

  ChainView chain_view() const {
    ChainView v;
    v.length = T_;
    v.labels = places_;
    v.unary = start_.data();
    v.transition = pairs_.data();
    v.transition_stride = m_.varying_starts ? places_ * places_ : 0;
    v.allowed = allowed_.data();
    return v;
  }

  double chain_posteriors(FlatExpectations* out) {
    const int64_t c = places_, L = m_.labels, stride = padded4(c);
    TransitionWeights shared;
    std::vector<double> weights, outer, counts, labels, transitions;
    if (!m_.varying_starts) {
      weights.resize(static_cast<size_t>(2 * c * stride));
      shared.weight = weights.data();
      shared.transposed = weights.data() + c * stride;
      kernels().exponentiate_transition(pairs_.data(), c, shared);
    }
    ChainAnswer answer;
    if (out) {
      labels.assign(static_cast<size_t>(T_ * c), 0.0);
      answer.labels = labels.data();
      if (m_.varying_starts) {
        transitions.assign(pairs_.size(), 0.0);
        answer.transitions = transitions.data();
      } else {
        outer.assign(static_cast<size_t>(c * stride), 0.0);
        counts.assign(static_cast<size_t>(c * c), 0.0);
        answer.outer = outer.data();
        answer.counts = counts.data();
      }
    }
    scansion::chain_posteriors(chain_view(), m_.varying_starts ? nullptr : &shared, s_.work_, out != nullptr, answer);
    if (!out) return answer.log_partition;
    for (int64_t t = 0; t < T_; ++t)
      for (int64_t i = 0; i < c; ++i) out->start[t * L + trajectory_[i]] += labels[t * c + i];
    each_move([&](int64_t at, int64_t pair) {
      if (m_.varying_starts) {
        for (int64_t r = 0; r < T_ - 1; ++r) out->pairs[r * L * L + pair] += transitions[r * c * c + at];
      } else {
        const int64_t padded = at / c * stride + at % c;
        out->pairs[pair] += counts[at] + outer[padded] * weights[padded];
      }
    });
    return answer.log_partition;
  }

  // ---- segments, and chains of higher order ----

  void fill_segments() {
    const FlatArrays& a = s_;
    gather(a.start, T_, start_);
    gather(a.inside, T_, inside_);
    gather(a.end, T_, end_);
    gather(a.by_length, s_.limit_, by_length_);
    gather(a.full, T_ * s_.limit_, full_);
    const int64_t rows = m_.varying_starts ? T_ : 1, P = net_->patterns();
    starts_.resize(static_cast<size_t>(rows * P));
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t z = 0; z < P; ++z)
        starts_[r * P + z] = net_->column(z) < 0 ? kMinusInfinity : a.starts[r * m_.patterns + net_->column(z)];
    runs_.resize(static_cast<size_t>(T_ * places_));
    for (int64_t t = 0; t < T_; ++t)
      for (int64_t i = 0; i < places_; ++i)
        runs_[t * places_ + i] =
            room(t, i) ? static_cast<int32_t>(std::min(s_.limit_, T_ - (places_ - 1 - i) - t)) : 0;
  }

  // (rows, columns of labels) -> (rows, columns of places), and back
  void gather(const double* from, int64_t rows, std::vector<double>& to) const {
    if (!from) return;
    const int64_t C = net_->columns();
    to.resize(static_cast<size_t>(rows * C));
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t z = 0; z < C; ++z) to[r * C + z] = from[r * m_.columns + net_->column(z)];
  }
  void scatter(const std::vector<double>& from, int64_t rows, double* to) const {
    const int64_t C = net_->columns();
    for (int64_t r = 0; to && r < rows; ++r)
      for (int64_t z = 0; z < C; ++z) to[r * m_.columns + net_->column(z)] += from[r * C + z];
  }

  SegmentView segment_view() const {
    const auto given = [](const std::vector<double>& x) { return x.empty() ? nullptr : x.data(); };
    SegmentView v;
    v.length = T_;
    v.max_length = s_.limit_;
    v.starts = starts_.data();
    v.starts_stride = m_.varying_starts ? net_->patterns() : 0;
    v.columns = net_->columns();
    v.full = given(full_);
    v.full_stride = s_.limit_;
    v.start = given(start_);
    v.start_stride = net_->columns();
    v.inside = given(inside_);
    v.end = given(end_);
    v.by_length = given(by_length_);
    v.runs = runs_.data();
    return v;
  }

  double segment_posteriors(FlatExpectations* out) {
    const SegmentView view = segment_view();
    SegmentAnswer answer;
    answer.stride = s_.limit_;
    std::vector<double> start, inside, end, by_length, full, starts;
    if (out) {
      const auto like = [](const std::vector<double>& scores, std::vector<double>& out) {
        out.assign(scores.size(), 0.0);
        return out.empty() ? nullptr : out.data();
      };
      answer.start = like(start_, start);
      answer.inside = like(inside_, inside);
      answer.end = like(end_, end);
      answer.by_length = like(by_length_, by_length);
      answer.full = like(full_, full);
      answer.starts = like(starts_, starts);
    }
    scansion::segment_posteriors(view, net_->topology(), s_.work_, out != nullptr, answer);
    if (!out) return answer.log_partition;
    const FlatArrays& a = *out;
    if (answer.start) scatter(start, T_, a.start);
    if (answer.inside) scatter(inside, T_, a.inside);
    if (answer.end) scatter(end, T_, a.end);
    if (answer.by_length) scatter(by_length, s_.limit_, a.by_length);
    if (answer.full) scatter(full, T_ * s_.limit_, a.full);
    const int64_t rows = m_.varying_starts ? T_ : 1, P = net_->patterns();
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t z = 0; z < P; ++z)
        if (net_->column(z) >= 0) a.starts[r * m_.patterns + net_->column(z)] += starts[r * P + z];
    return answer.log_partition;
  }

  FlatScores& s_;
  const FlatModelView& m_;
  const int32_t* trajectory_;
  int64_t places_;
  const PlaceNet* net_;
  int64_t T_;
  std::vector<double> start_, inside_, end_, by_length_, full_, starts_, pairs_;
  std::vector<uint8_t> allowed_;
  std::vector<int32_t> runs_;
};

}  // namespace scansion
