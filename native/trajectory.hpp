// Learning from trajectories: what a sequence's labels go through is known, and not where (docs/notation.md, section 4). The
// numerator is log Z of the lattice over places (places.hpp), whose expectations go back to the labels they stand for;
// all recursions are those of chain.hpp and segment.hpp.
#pragma once

#include <memory>
#include <vector>

#include "flat_model.hpp"
#include "lexicon.hpp"
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
    std::vector<uint8_t> extent;
    for (const int32_t z : found.column) {
      extent.push_back(z >= 0 && m.extent[z]);
      columns_ += z >= 0 && z < m.columns;
    }
    automaton_ = std::make_unique<PatternAutomaton>(places, found.symbols.data(), found.offsets.data(), found.size());
    column_ = found.column;
    topology_ = std::make_unique<Topology>(*automaton_, extent.data());
  }

  const TopologyView& topology() const { return topology_->view(); }
  int64_t patterns() const { return static_cast<int64_t>(column_.size()); }
  int64_t columns() const { return columns_; }            // patterns with a column in the arrays of extent scores
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
    if (!m_.dense) fill_segments();
  }

  // log Z of all configurations with this trajectory and, unless null, their posteriors
  double posteriors(FlatExpectations* out) {
    if (out) out->clear(s_.sequence_, false);
    return m_.dense ? chain_posteriors(out) : segment_posteriors(out);
  }

  // the best of them; empty if none is possible
  Path best() {
    if (m_.dense) return best_chain();
    Path path;
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

  // ---- first-order chains: place i goes on, or place i + 1 begins (paper 004, equation 6), in logarithms ----

  // the first and last place, exclusive, that leave room at t
  int64_t low(int64_t t) const { return std::max<int64_t>(0, places_ - (T_ - t)); }
  int64_t high(int64_t t) const { return std::min(t + 1, places_); }

  // scores at t of place i's label, of staying in it from t - 1, of coming from the place before
  double at(int64_t t, int64_t i) const { return s_.start[t * m_.labels + trajectory_[i]]; }
  double stay(int64_t t, int64_t i) const { return pairs(t)[trajectory_[i] * m_.labels + trajectory_[i]]; }
  double enter(int64_t t, int64_t i) const { return pairs(t)[trajectory_[i - 1] * m_.labels + trajectory_[i]]; }
  const double* pairs(int64_t t) const { return s_.pairs + (m_.varying_starts ? (t - 1) * m_.labels * m_.labels : 0); }

  // (T, places) by rows up to t: the join (sum or maximum) over all ways to be in a place, each row less its largest
  // entry; what was taken off comes back in `scale`
  template <class Join>
  std::vector<double> forward(const Join& join, double& scale) const {
    const int64_t c = places_;
    std::vector<double> table(static_cast<size_t>(T_ * c), kMinusInfinity);
    scale = 0.0;
    for (int64_t t = 0; t < T_; ++t) {
      double* row = table.data() + t * c;
      const double* before = row - c;
      double top = kMinusInfinity;
      for (int64_t i = low(t); i < high(t); ++i) {
        double x = 0.0;
        if (t > 0) {
          x = before[i] + stay(t, i);
          if (i > 0) x = join(x, before[i - 1] + enter(t, i));
        }
        row[i] = x + at(t, i);
        top = std::max(top, row[i]);
      }
      if (!(top > kMinusInfinity)) {
        scale = kMinusInfinity;
        return table;
      }
      for (int64_t i = low(t); i < high(t); ++i) row[i] -= top;
      scale += top;
    }
    return table;
  }

  Path best_chain() const {
    Path path;
    double scale = 0.0;
    const std::vector<double> table = forward([](double a, double b) { return std::max(a, b); }, scale);
    if (!(scale > kMinusInfinity)) return path;
    path.resize(static_cast<size_t>(T_));
    for (int64_t t = T_ - 1, i = places_ - 1; t >= 0; --t) {
      path[t] = {t, t + 1, trajectory_[i]};
      const double* before = table.data() + (t - 1) * places_;
      if (t > 0 && i > 0 && before[i - 1] + enter(t, i) > before[i] + stay(t, i)) --i;
    }
    return path;
  }

  double chain_posteriors(FlatExpectations* out) const {
    double log_z = 0.0;
    const int64_t c = places_, L = m_.labels;
    const std::vector<double> table = forward(log_add, log_z);
    if (!out || !(log_z > kMinusInfinity)) return log_z;
    std::vector<double> after(static_cast<size_t>(c), kMinusInfinity), stays(after), enters(after);
    after[c - 1] = 0.0;  // the rest of the sequence, from each place at t
    out->start[(T_ - 1) * L + trajectory_[c - 1]] += 1.0;
    for (int64_t t = T_ - 1; t > 0; --t) {
      // both ways into the places at t, then their probabilities: together they are certain
      const double* before = table.data() + (t - 1) * c;
      double top = kMinusInfinity;
      for (int64_t i = low(t); i < high(t); ++i) {
        stays[i] = after[i] + at(t, i) + stay(t, i);
        enters[i] = i > 0 ? after[i] + at(t, i) + enter(t, i) : kMinusInfinity;
        top = std::max(top, std::max(before[i] + stays[i], i > 0 ? before[i - 1] + enters[i] : kMinusInfinity));
      }
      double sum = 0.0;
      const auto each = [&](const auto& use) {
        for (int64_t i = low(t); i < high(t); ++i) {
          use(i, i, std::exp(before[i] + stays[i] - top));
          if (i > 0) use(i - 1, i, std::exp(before[i - 1] + enters[i] - top));
        }
      };
      each([&](int64_t, int64_t, double x) { sum += x; });
      double* to = out->pairs + (m_.varying_starts ? (t - 1) * L * L : 0);
      each([&](int64_t from, int64_t i, double x) {
        to[trajectory_[from] * L + trajectory_[i]] += x / sum;
        out->start[(t - 1) * L + trajectory_[from]] += x / sum;
      });
      // on to t - 1; the largest entry taken off
      double largest = kMinusInfinity;
      for (int64_t i = low(t - 1); i < high(t - 1); ++i) {
        const double go = i + 1 < high(t) ? enters[i + 1] : kMinusInfinity;
        after[i] = log_add(i >= low(t) ? stays[i] : kMinusInfinity, go);
        largest = std::max(largest, after[i]);
      }
      for (int64_t i = low(t - 1); i < high(t - 1); ++i) after[i] -= largest;
    }
    return log_z;
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
        runs_[t * places_ + i] = room(t, i) ? static_cast<int32_t>(std::min(s_.limit_, T_ - (places_ - 1 - i) - t)) : 0;
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
  std::vector<double> start_, inside_, end_, by_length_, full_, starts_;
  std::vector<int32_t> runs_;
};

}  // namespace scansion
