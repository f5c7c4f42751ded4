// Learning from trajectories: what a sequence's labels go through is known, and not where (docs/notation.md, section 4). The
// numerator is log Z of all configurations that go through its places, whose expectations go back to the labels they
// stand for.
#pragma once

#include <memory>
#include <vector>

#include "flat_model.hpp"
#include "lexicon.hpp"
#include "place_net.hpp"

namespace scansion {

// The scores of one sequence on the places of a trajectory, out of those that `s` holds.
class PlaceScores {
 public:
  PlaceScores(FlatScores& s, const int32_t* trajectory, int64_t places, const PlaceNet* net)
      : s_(s), m_(s.m_), trajectory_(trajectory), places_(places), net_(net), T_(s.length_) {}

  // log Z of all configurations with this trajectory and, unless null, their posteriors
  double posteriors(FlatExpectations* out) {
    if (out) out->clear(s_.sequence_, false);
    return m_.dense ? chain_posteriors(out) : segment_posteriors(out);
  }

  // the best of them; empty if none is possible
  Path best() {
    if (m_.dense) return best_chain();
    Path path;
    const PlaceScoresView view = gathered();
    PlaceSweep sweep(*net_, view);
    if (!(sweep.forward(true) > kMinusInfinity)) return path;
    sweep.each_best([&](int64_t u, int64_t v, int64_t place) { path.push_back({u, v, trajectory_[place]}); });
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
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

  // scores by the classes of patterns of the net
  PlaceScoresView gathered() {
    const FlatArrays& a = s_;
    const int64_t M = s_.limit_;
    gather(net_->extents(), a.start, T_, start_);
    gather(net_->extents(), a.inside, T_, inside_);
    gather(net_->extents(), a.end, T_, end_);
    gather(net_->extents(), a.by_length, M, by_length_);
    gather(net_->extents(), a.full, T_ * M, full_);
    PlaceScoresView v;
    v.length = T_;
    v.longest = M;
    v.start_rows = m_.varying_starts ? T_ : 1;
    starts_.assign(net_->starts().size() * v.start_rows, 0.0);
    each_start(v.start_rows, [&](double& x, int64_t cell) { x += a.starts[cell]; });
    const auto given = [](const std::vector<double>& x) { return x.empty() ? nullptr : x.data(); };
    v.starts = starts_.data();
    v.start = start_.data();
    v.inside = given(inside_);
    v.end = given(end_);
    v.by_length = given(by_length_);
    v.full = given(full_);
    return v;
  }

  // use(number of a class, cell of the patterns' array) for every row and every pattern of a class
  template <class Use>
  void each_start(int64_t rows, const Use& use) {
    const auto& classes = net_->starts();
    for (size_t k = 0; k < classes.size(); ++k)
      for (const int32_t z : classes[k])
        for (int64_t r = 0; r < rows; ++r) use(starts_[k * rows + r], r * m_.patterns + z);
  }

  // (rows, columns of patterns) -> (classes, rows), and back
  void gather(const std::vector<PlaceNet::Patterns>& classes, const double* from, int64_t rows,
              std::vector<double>& to) const {
    if (!from) return;
    to.assign(classes.size() * rows, 0.0);
    for (size_t k = 0; k < classes.size(); ++k)
      for (const int32_t z : classes[k])
        for (int64_t r = 0; r < rows; ++r) to[k * rows + r] += from[r * m_.columns + z];
  }
  void scatter(const std::vector<PlaceNet::Patterns>& classes, const std::vector<double>& from, int64_t rows,
               double* to) const {
    if (!to || from.empty()) return;
    for (size_t k = 0; k < classes.size(); ++k)
      for (const int32_t z : classes[k])
        for (int64_t r = 0; r < rows; ++r) to[r * m_.columns + z] += from[k * rows + r];
  }

  double segment_posteriors(FlatExpectations* out) {
    const PlaceScoresView view = gathered();
    PlaceSweep sweep(*net_, view);
    const double log_z = sweep.forward(false);
    if (!out || !(log_z > kMinusInfinity)) return log_z;
    PlaceCounts counts;
    sweep.posteriors(counts);
    const FlatArrays& a = *out;
    scatter(net_->extents(), counts.start, T_, a.start);
    scatter(net_->extents(), counts.inside, T_, a.inside);
    scatter(net_->extents(), counts.end, T_, a.end);
    scatter(net_->extents(), counts.by_length, s_.limit_, a.by_length);
    scatter(net_->extents(), counts.full, T_ * s_.limit_, a.full);
    starts_.swap(counts.starts);
    each_start(view.start_rows, [&](double& x, int64_t cell) { a.starts[cell] += x; });
    return log_z;
  }

  FlatScores& s_;
  const FlatModelView& m_;
  const int32_t* trajectory_;
  int64_t places_;
  const PlaceNet* net_;
  int64_t T_;
  std::vector<double> start_, inside_, end_, by_length_, full_, starts_;
};

}  // namespace scansion
