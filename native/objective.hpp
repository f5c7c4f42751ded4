// Learning from a data set: the objectives f(w) -> (loss, gradient) over all sequences, and passes of the online
// algorithms (online.hpp), for every kind of model. Sequences whose labels are partly known go through the same code as
// complete ones: the numerator is log Z of what is known (docs/notation.md, section 3), or the best configuration that
// agrees with it. Sequences of which nothing is known, or whose weight is 0, count nothing.
//
// A Problem is a model with its data and targets (flat_objective.hpp, nested_objective.hpp). It has
//   Configuration, Scores, Expectations     of one sequence
//   Shared                                  what all sequences have in common under some weights
//   sequences(), weights(), status(b), weight(b)
//   split()                                 features of tokens as rows, or null
//   kArranges, arrange(w, own), restore(from, to)
//                                           whether the problem has an order of weights of its own; weights in that order:
//                                           w itself, or `own`, filled; numbers for all weights back in the model's order
//   share(w, exponentials, shared)          exponentials: for posteriors, too
//   scores(shared), expectations()          scratch of one thread
//   configuration(b)                        that of a complete sequence
//   same(x, y), wrong(b, x, y)              whether two configurations are equal; tokens that they label differently
// Scores: fill(b, w, split, gold), scores under the weights, with the Hamming cost against gold unless it is null
// (false: out of range); posteriors(known, expectations or null), log Z; best(known); score(configuration).
// Expectations: clear(b), add(configuration, amount), add_to(vector, factor, split), each(add).
//
// Threads: sequences are cut into a fixed number of chunks, each with its own gradient; chunks are added in order.
#pragma once

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "features.hpp"
#include "numeric.hpp"
#include "online.hpp"
#include "parallel.hpp"

namespace scansion {

template <class Problem>
class Objective {
 public:
  explicit Objective(Problem problem) : problem_(std::move(problem)) {}

  // Passes take `size` sequences at a time, on so many threads; see OnlinePass.
  void set_batches(int64_t size, int64_t threads) {
    batch_ = size;
    threads_ = threads;
  }

  // sum_b weight_b (log Z_b - log Z_b(known)) and its gradient
  double log_loss(const double* w, double* gradient, int64_t threads) {
    const SplitFeatures* split = problem_.split();
    const WeightsView at = with_rows({problem_.arrange(w, arranged_)}, split);
    Shared shared;
    problem_.share(at, true, shared);
    return over_sequences(shared, split, threads, gradient, [&](Worker& k, int64_t b, const WeightVector& out) {
      return k.log_loss(problem_, b, problem_.weight(b), at, split, out);
    });
  }

  // sum_b weight_b (max_y [w.f(y) + cost(y)] - w.f(known)): Hamming cost, subgradient
  double margin_loss(const double* w, double* gradient, int64_t threads) {
    const WeightsView at = {problem_.arrange(w, arranged_)};
    Shared shared;
    problem_.share(at, false, shared);
    return over_sequences(shared, nullptr, threads, gradient, [&](Worker& k, int64_t b, const WeightVector& out) {
      Mistake<Problem>& m = k.mistake;
      if (!m.find(problem_, k.scores, b, at, nullptr, true)) return kInfinity;
      if (m.made) m.expectations.add_to(out, -problem_.weight(b), nullptr);
      return problem_.weight(b) * m.violation;
    });
  }

  // out (weights,): what the second derivatives of log_loss are about, each by itself. A cell of probability p gives
  // p (1 - p), and what is summed over positions, and may exceed 1, a tenth of itself. units (weights,), or null: what
  // features are multiplied by.
  void curvature(const double* w, const double* units, double* out, int64_t threads) {
    const WeightsView at = {problem_.arrange(w, arranged_)};
    std::vector<double> own;
    const double* unit = units ? problem_.arrange(units, own) : nullptr;
    Shared shared;
    problem_.share(at, true, shared);
    over_sequences(shared, nullptr, threads, out, [&](Worker& k, int64_t b, const WeightVector& to) {
      if (!k.scores.fill(b, at, nullptr, nullptr)) return 0.0;
      k.scores.posteriors(false, &k.likelihood.free);
      const double weight = problem_.weight(b);
      k.likelihood.free.each([&](int64_t f, double expected) {
        const double x = std::abs(expected) * (unit ? unit[f] : 1.0);
        to.plain[f] += weight * (x < 1.0 ? x * (1.0 - x) : 0.1 * x);
      });
      return 0.0;
    });
  }

  // log Z, or log Z of what is known, of each sequence
  void log_partitions(const double* w, bool known, double* out, int64_t threads) {
    const WeightsView at = {problem_.arrange(w, arranged_)};
    Shared shared;
    problem_.share(at, true, shared);
    std::vector<std::unique_ptr<Scores>> scores(std::max<int64_t>(1, threads));
    parallel_for(problem_.sequences(), threads, [&](int64_t b, int64_t worker) {
      if (!scores[worker]) scores[worker] = std::make_unique<Scores>(problem_.scores(shared));
      const bool fits = scores[worker]->fill(b, at, nullptr, nullptr);
      out[b] = fits ? scores[worker]->posteriors(known, nullptr) : std::numeric_limits<double>::quiet_NaN();
    });
  }

  // One pass over the sequences of `order`; w and (for averages) sum change in place. Returns the summed loss.
  double run_pass(Online& online, const int64_t* order, int64_t count, double* w, double* sum) {
    return OnlinePass<Problem>(problem_, online, w, sum, batch_, threads_).run(order, count);
  }

 protected:
  using Scores = typename Problem::Scores;
  using Shared = typename Problem::Shared;

  // scratch of one thread
  struct Worker {
    Worker(const Problem& problem, const Shared& shared)
        : scores(problem.scores(shared)), likelihood(problem), mistake(problem) {}

    // out += weight times the gradient of a sequence; returns its loss times the weight
    double log_loss(const Problem& problem, int64_t b, double weight, const WeightsView& at, const SplitFeatures* split,
                    const WeightVector& out) {
      if (!scores.fill(b, at, split, nullptr)) return kInfinity;
      const double loss = likelihood.evaluate(problem, scores, b);
      likelihood.add_to(out, weight, split);
      return weight * loss;
    }

    Scores scores;
    Likelihood<Problem> likelihood;
    Mistake<Problem> mistake;
  };

  // the weights, those of frequent attributes as rows, too
  WeightsView with_rows(WeightsView at, const SplitFeatures* split) {
    if (!split) return at;
    rows_.resize(static_cast<size_t>(split->size()));
    split->expand(at.plain, rows_.data());
    at.rows = rows_.data();
    return at;
  }

  bool counts(int64_t b) const { return problem_.status(b) != kUnknown && problem_.weight(b) > 0.0; }

  // gradient = sum over chunks of the sequences of what run(worker, begin, end, out) adds; returns the sum of what it
  // returns. make() gives the scratch of a thread.
  template <class Make, class Run>
  double over_chunks(const SplitFeatures* split, int64_t threads, double* gradient, const Make& make, const Run& run) {
    const int64_t n = problem_.weights();
    const Chunks chunks(problem_.sequences(), n > 100000 ? 6 : 16);  // each has a gradient of its own
    const size_t size = static_cast<size_t>(n + (split ? split->size() : 0));
    std::vector<double> losses(static_cast<size_t>(chunks.chunks), 0.0);
    std::vector<decltype(make())> workers(std::max<int64_t>(1, threads));
    const auto fill = [&](int64_t chunk, int64_t worker, std::vector<double>& buffer) {
      if (!workers[worker]) workers[worker] = make();
      buffer.assign(size, 0.0);
      const WeightVector out = {buffer.data(), split ? buffer.data() + n : nullptr};
      losses[chunk] = run(*workers[worker], chunks.begin(chunk), chunks.end(chunk), out);
      if (split) split->fold(out.rows, out.plain);
    };
    if (threads <= 1) {  // two gradients will do
      buffers_.resize(2);
      for (int64_t chunk = 0; chunk < chunks.chunks; ++chunk) {
        fill(chunk, 0, buffers_[chunk > 0]);
        for (int64_t f = 0; chunk > 0 && f < n; ++f) buffers_[0][f] += buffers_[1][f];
      }
    } else {
      buffers_.resize(static_cast<size_t>(chunks.chunks));
      parallel_for(chunks.chunks, threads,
                   [&](int64_t chunk, int64_t worker) { fill(chunk, worker, buffers_[chunk]); });
      const Chunks ranges(n, 64);
      parallel_for(ranges.chunks, threads, [&](int64_t r, int64_t) {
        for (size_t chunk = 1; chunk < buffers_.size(); ++chunk)
          for (int64_t f = ranges.begin(r); f < ranges.end(r); ++f) buffers_[0][f] += buffers_[chunk][f];
      });
    }
    if (Problem::kArranges)
      problem_.restore(buffers_[0].data(), gradient);
    else
      std::copy_n(buffers_[0].data(), n, gradient);
    double loss = 0.0;
    for (const double x : losses) loss += x;
    return loss;
  }

  Problem problem_;

 private:
  // the same with what one(worker, b, out) adds and returns for each sequence that counts
  template <class One>
  double over_sequences(const Shared& shared, const SplitFeatures* split, int64_t threads, double* gradient,
                        const One& one) {
    return over_chunks(
        split, threads, gradient, [&] { return std::make_unique<Worker>(problem_, shared); },
        [&](Worker& k, int64_t begin, int64_t end, const WeightVector& out) {
          double loss = 0.0;
          for (int64_t b = begin; b < end; ++b)
            if (counts(b)) loss += one(k, b, out);
          return loss;
        });
  }

  int64_t batch_ = 1, threads_ = 1;
  // kept from call to call for their memory
  std::vector<double> arranged_, rows_;
  std::vector<std::vector<double>> buffers_;
};

}  // namespace scansion
