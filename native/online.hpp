// Online algorithms: one pass over sequences, a step after each (or after each batch, see OnlinePass).
//
//   likelihood          w <- (1 - r lambda) w - r grad [log Z - log Z(known)],   r = 1 / (lambda (t0 + t))   (Bottou)
//   margin              the same with the subgradient of max_y [w.f(y) + cost(y)] - w.f(gold)               (Pegasos)
//   perceptron          w <- w + f(gold) - f(guess)                                                   (Collins 2002)
//   passive-aggressive  w <- w + tau (f(gold) - f(guess)),  the least change that mends the mistake (Crammer et al. 2006)
//   arow                the same, each weight by its variance v, which falls where steps were made    (Crammer et al. 2009)
//                       w <- w + a v d,  v <- 1 / (1 / v + d^2 / gamma),  d = f(gold) - f(guess),  a = loss / (gamma + v.d^2)
//
// gold is the target or, where that is not complete, the best configuration that agrees with it. Steps of a sequence are
// times its weight. Decay is a scale of all weights, so that a step touches nothing but the features of its sequence.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "features.hpp"
#include "numeric.hpp"
#include "parallel.hpp"

namespace scansion {

enum class Algorithm { kLikelihood, kMargin, kPerceptron, kPassiveAggressive, kArow };

// Settings and state of an algorithm.
struct Online {
  Algorithm algorithm;
  double lambda = 0.0;          // L2 strength per sequence (likelihood, margin)
  double t0 = 0.0;              // step t has rate 1 / (lambda (t0 + t))
  double aggressiveness = 1.0;  // largest step, or its softness (passive-aggressive)
  int pa_type = 1;              // 0: steps of any size, 1: at most aggressiveness, 2: soft
  bool error_sensitive = true;  // steps grow with the number of wrong tokens (passive-aggressive)
  double gamma = 1.0;           // how slowly variances fall (arow)
  bool average = false;
  // carried from pass to pass
  double t = 0.0;      // steps taken
  double scale = 1.0;  // the weights are scale * w
  // averaging. Where updates are sparse (perceptron, passive-aggressive), over the weights after each step: the mean
  // is w - sum / steps. Elsewhere over the weights after every so many steps: the mean is sum / steps.
  double steps = 0.0;

  // Whether it keeps a second number for each weight: of averaging, or its variance.
  bool keeps_sum() const { return average || algorithm == Algorithm::kArow; }
};

// log Z - log Z(known) of one sequence and, as expectations, its gradient.
template <class Problem>
struct Likelihood {
  explicit Likelihood(const Problem& problem) : free(problem.expectations()), known(problem.expectations()) {}

  double evaluate(const Problem& problem, typename Problem::Scores& scores, int64_t b) {
    double value = scores.posteriors(false, &free);
    complete = problem.status(b) == kComplete;
    if (complete) {
      const typename Problem::Configuration gold = problem.configuration(b);
      value -= scores.score(gold);
      free.add(gold, -1.0);
    } else {
      value -= scores.posteriors(true, &known);
    }
    return value;
  }
  void add_to(const WeightVector& out, double factor, const SplitFeatures* split) {
    free.add_to(out, factor, split);
    if (!complete) known.add_to(out, -factor, split);
  }

  typename Problem::Expectations free, known;
  bool complete = true;  // what is known is in `free`
};

// The best configuration of one sequence beside the one it should be.
template <class Problem>
struct Mistake {
  explicit Mistake(const Problem& problem) : expectations(problem.expectations()) {}

  // cost: look for the best with the Hamming cost against gold. False: scores are out of range.
  bool find(const Problem& problem, typename Problem::Scores& scores, int64_t b, const WeightsView& w,
            const SplitFeatures* split, bool cost) {
    const bool complete = problem.status(b) == kComplete;
    if (complete) gold = problem.configuration(b);
    if (!complete || !cost) {
      if (!scores.fill(b, w, split, nullptr)) return false;
      if (!complete) gold = scores.best(true);
    }
    if (cost && !scores.fill(b, w, split, &gold)) return false;
    const typename Problem::Configuration guess = scores.best(false);
    made = !problem.same(guess, gold);
    wrong = violation = 0.0;
    if (!made) return true;
    wrong = static_cast<double>(problem.wrong(b, guess, gold));
    violation = scores.score(guess) - scores.score(gold);  // the cost of gold is 0
    expectations.clear(b);
    expectations.add(gold, 1.0);
    expectations.add(guess, -1.0);
    return true;
  }

  typename Problem::Configuration gold;
  bool made = false;                            // the two differ; if so:
  typename Problem::Expectations expectations;  // f(gold) - f(guess)
  double wrong = 0.0;                           // tokens
  double violation = 0.0;                       // score of the guess, with its cost, above that of gold
};

// A sparse vector over all weights.
class SparseVector {
 public:
  explicit SparseVector(int64_t n) : value_(static_cast<size_t>(n), 0.0), seen_(static_cast<size_t>(n), 0) {}
  void add(int64_t f, double x) {
    if (!seen_[f]) touched_.push_back(f);
    seen_[f] = 1;
    value_[f] += x;
  }
  void clear() {
    for (const int64_t f : touched_) value_[f] = 0.0, seen_[f] = 0;
    touched_.clear();
  }
  double squared_norm() const {
    double sum = 0.0;
    for (const int64_t f : touched_) sum += value_[f] * value_[f];
    return sum;
  }
  // use(f, value)
  template <class Use>
  void each(const Use& use) const {
    for (const int64_t f : touched_) use(f, value_[f]);
  }

 private:
  std::vector<double> value_;     // (n,)
  std::vector<uint8_t> seen_;     // (n,)
  std::vector<int64_t> touched_;  // where seen is 1
};

// One pass. The sequences of a batch share their weights, those after all their decays, and make their steps one after
// another: what is computed between is done on threads, and their number changes nothing.
template <class Problem>
class OnlinePass {
 public:
  OnlinePass(const Problem& problem, Online& online, double* w, double* sum, int64_t batch, int64_t threads)
      : problem_(problem), o_(online), given_w_(w), given_sum_(sum), batch_(batch), threads_(threads) {
    // rows take the place of the weights of frequent attributes while the pass lasts
    const bool sparse = o_.algorithm == Algorithm::kPassiveAggressive || o_.algorithm == Algorithm::kArow;
    split_ = sparse ? nullptr : problem.split();
    w_ = arrange(w, own_w_, rows_);
    if (o_.keeps_sum()) sum_ = arrange(sum, own_sum_, sum_rows_);
    if (split_) mask_ = split_->mask();
    w_.mask = sum_.mask = mask_.data();
    for (int64_t i = 0; i < std::max<int64_t>(1, threads); ++i) scores_.push_back(problem.scores(shared_));
  }

  // Returns the summed loss: negative log likelihood, margin violation, wrong tokens, or suffered loss.
  double run(const int64_t* order, int64_t count) {
    order_ = order;
    count_ = count;
    double loss = 0.0;
    switch (o_.algorithm) {
      case Algorithm::kLikelihood:
        loss = likelihood();
        break;
      case Algorithm::kMargin:
        loss = margin();
        break;
      case Algorithm::kPerceptron:
        loss = perceptron();
        break;
      case Algorithm::kPassiveAggressive:
        loss = passive_aggressive();
        break;
      case Algorithm::kArow:
        loss = arow();
        break;
    }
    restore(w_, rows_, given_w_);
    if (o_.keeps_sum()) restore(sum_, sum_rows_, given_sum_);
    return loss;
  }

 private:
  using Scores = typename Problem::Scores;

  // A sequence's place in a batch: its step, and what it looked at.
  template <class Look>
  struct Place {
    explicit Place(const Problem& problem) : look(problem) {}
    int64_t number = 0, sequence = 0;  // in order_, and in the data
    double rate = 1.0, gain = 1.0;     // the step is gain times what was looked at
    double loss = 0.0;
    bool fits = true;  // scores are not out of range
    Look look;
  };

  double likelihood() {
    using Look = Likelihood<Problem>;
    return batches<Look>(
        true, true,
        [&](Scores& scores, Place<Look>& p) {
          p.fits = scores.fill(p.sequence, weights(), split_, nullptr);
          if (p.fits) p.loss = p.look.evaluate(problem_, scores, p.sequence);
        },
        [&](Place<Look>& p) { step(p.look, -p.gain); });
  }

  double margin() {
    using Look = Mistake<Problem>;
    return batches<Look>(
        true, false,
        [&](Scores& scores, Place<Look>& p) {
          p.fits = p.look.find(problem_, scores, p.sequence, weights(), split_, true);
          p.loss = p.look.violation;
        },
        [&](Place<Look>& p) {
          if (p.look.made) step(p.look.expectations, p.gain);
        });
  }

  double perceptron() {
    using Look = Mistake<Problem>;
    return batches<Look>(
        false, false,
        [&](Scores& scores, Place<Look>& p) {
          p.fits = p.look.find(problem_, scores, p.sequence, weights(), split_, false);
          p.loss = p.look.wrong;
        },
        [&](Place<Look>& p) {
          if (p.look.made) step(p.look.expectations, p.gain);
        });
  }

  double passive_aggressive() {
    using Look = Mistake<Problem>;
    SparseVector update(problem_.weights());
    return batches<Look>(
        false, false,
        [&](Scores& scores, Place<Look>& p) {
          p.fits = p.look.find(problem_, scores, p.sequence, weights(), split_, false);
          const double cost = p.look.violation + (o_.error_sensitive ? std::sqrt(p.look.wrong) : 1.0);
          p.loss = p.look.made ? std::max(0.0, cost) : 0.0;
        },
        [&](Place<Look>& p) {
          if (!p.look.made) return;
          update.clear();
          p.look.expectations.each([&](int64_t f, double x) { update.add(f, x); });
          const double c = o_.aggressiveness, norm = update.squared_norm();
          double tau = norm > 0.0 && p.loss > 0.0 ? p.loss / (o_.pa_type == 2 ? norm + 0.5 / c : norm) : 0.0;
          if (o_.pa_type == 1) tau = std::min(c, tau);
          const double gain = p.gain * tau, missed = missing();
          update.each([&](int64_t f, double x) {
            w_.plain[f] += gain * x;
            if (missed > 0.0) sum_.plain[f] += gain * missed * x;
          });
        });
  }

  double arow() {
    using Look = Mistake<Problem>;
    SparseVector update(problem_.weights());
    double* variance = sum_.plain;
    return batches<Look>(
        false, false,
        [&](Scores& scores, Place<Look>& p) {
          p.fits = p.look.find(problem_, scores, p.sequence, weights(), split_, false);
          p.loss = p.look.made ? std::max(0.0, p.look.violation + p.look.wrong) : 0.0;
        },
        [&](Place<Look>& p) {
          if (!p.look.made) return;
          update.clear();
          p.look.expectations.each([&](int64_t f, double x) { update.add(f, p.gain * x); });
          double spread = o_.gamma;
          update.each([&](int64_t f, double x) { spread += variance[f] * x * x; });
          const double alpha = p.loss / spread;
          update.each([&](int64_t f, double x) {
            w_.plain[f] += alpha * variance[f] * x;
            variance[f] = 1.0 / (1.0 / variance[f] + x * x / o_.gamma);
          });
        });
  }

  // look(scores, place) for all sequences of a batch, on threads, then learn(place) in order. decays: by the L2 penalty;
  // exponentials: look asks for posteriors.
  template <class Look, class See, class Learn>
  double batches(bool decays, bool exponentials, const See& look, const Learn& learn) {
    decays_ = decays;
    std::vector<Place<Look>> places;
    for (int64_t i = 0; i < std::min(batch_, count_); ++i) places.emplace_back(problem_);
    const int64_t between = count_ / 32 + 1;  // steps between the weights that are averaged
    double loss = 0.0;
    for (int64_t first = 0; first < count_; first += batch_) {
      int64_t n = 0;
      for (int64_t i = first; i < std::min(first + batch_, count_); ++i) {
        if (problem_.status(order_[i]) == kUnknown) continue;
        places[n].number = i;
        places[n].sequence = order_[i];
        if (decays) places[n].rate = decay();
        o_.t += 1.0;
        ++n;
      }
      problem_.share(weights(), exponentials, shared_);
      parallel_for(n, threads_, [&](int64_t i, int64_t worker) { look(scores_[worker], places[i]); });
      for (int64_t i = 0; i < n; ++i) {
        Place<Look>& p = places[i];
        const double weight = problem_.weight(p.sequence);
        p.gain = decays ? weight * (p.rate / o_.scale) : weight;
        loss += p.fits ? weight * p.loss : kInfinity;
        if (p.fits) learn(p);
        if (!o_.average) continue;
        if (!decays)
          o_.steps += 1.0;
        else if ((p.number + 1) % between == 0)
          add_to_sum();
      }
    }
    return loss;
  }

  // The weights shrink by the step's share of the penalty; returns the step's rate.
  double decay() {
    const double rate = 1.0 / (o_.lambda * (o_.t0 + o_.t));
    o_.scale *= 1.0 - rate * o_.lambda;
    if (o_.scale < 1e-9) {
      for (int64_t f = 0; f < problem_.weights(); ++f) w_.plain[f] *= o_.scale;
      for (double& x : rows_) x *= o_.scale;
      o_.scale = 1.0;
    }
    return rate;
  }

  WeightsView weights() const { return {w_.plain, w_.rows, o_.scale}; }
  // what is added to w now was missing from so many steps before
  double missing() const { return o_.average && !decays_ ? o_.steps : 0.0; }

  template <class Counts>
  void step(Counts& counts, double amount) {
    counts.add_to(w_, amount, split_);
    if (missing() > 0.0) counts.add_to(sum_, amount * missing(), split_);
  }

  void add_to_sum() {
    o_.steps += 1.0;
    for (int64_t f = 0; f < problem_.weights(); ++f) sum_.plain[f] += o_.scale * w_.plain[f];
    for (size_t i = 0; i < sum_rows_.size(); ++i) sum_rows_[i] += o_.scale * rows_[i];
  }

  // numbers for all weights in the form that sequences take, and back
  WeightVector arrange(double* given, std::vector<double>& own, std::vector<double>& rows) {
    const double* plain = problem_.arrange(given, own);
    WeightVector v;
    v.plain = plain == given ? given : own.data();
    if (split_) {
      rows.resize(static_cast<size_t>(split_->size()));
      split_->expand(v.plain, rows.data());
      v.rows = rows.data();
    }
    return v;
  }
  void restore(const WeightVector& from, const std::vector<double>& rows, double* to) {
    if (split_) split_->restore(rows.data(), from.plain);
    problem_.restore(from.plain, to);
  }

  const Problem& problem_;
  Online& o_;
  double *given_w_, *given_sum_;
  const int64_t batch_, threads_;
  const SplitFeatures* split_ = nullptr;
  WeightVector w_, sum_;
  std::vector<double> own_w_, own_sum_, rows_, sum_rows_, mask_;
  typename Problem::Shared shared_;
  std::vector<Scores> scores_;  // by thread
  const int64_t* order_ = nullptr;
  int64_t count_ = 0;
  bool decays_ = false;
};

}  // namespace scansion
