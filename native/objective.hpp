// Learning from a data set: the objectives f(w) -> (loss, gradient) over all sequences, and one pass of the online
// algorithms. Sequences whose labels are partly known go through the same code as complete ones: the numerator is
// log Z of what is known (models.md, section 3), or the best configuration that agrees with it.
//
// Threads: sequences are cut into a fixed number of chunks, each with its own gradient; chunks are added in order.
#pragma once

#include <memory>

#include "flat_model.hpp"

namespace scansion {

class FlatObjective {
 public:
  FlatObjective(const ModelView& model, const DataView& data, const TargetView& target,
                const PatternAutomaton* automaton, const Topology* topology)
      : m_(model), data_(data), target_(target), automaton_(automaton), topology_(topology) {
    observed_.assign(static_cast<size_t>(m_.weights), 0.0);
    const SequenceScores features(m_, automaton_, topology_);
    for (int64_t b = 0; b < data_.sequences; ++b)
      if (status(b) == kComplete)
        features.path_features(data_, b, target_path(data_, target_, b),
                               [&](int64_t f, double x) { observed_[f] += weight(b) * x; });
  }

  const std::vector<double>& observed() const { return observed_; }

  // sum_b weight_b (log Z_b - log Z_b(known)) and its gradient
  double log_loss(const double* w, double* gradient, int64_t threads) {
    std::vector<double> block;
    TransitionWeights shared;
    const bool share = make_shared(w, 1.0, block, shared);
    double loss = over_chunks(threads, gradient, [&](SequenceScores& s, int64_t b, double* out) {
      if (status(b) == kUnknown) return 0.0;
      const double factor = weight(b);
      s.fill(data_, b, w, 1.0, nullptr);
      double value = s.posteriors(data_, share ? &shared : nullptr, nullptr, true);
      s.add_expectations(data_, b, factor, out);
      if (status(b) == kPartial) {
        value -= s.posteriors(data_, share ? &shared : nullptr, &target_, true);
        s.add_expectations(data_, b, -factor, out);
      }
      return factor * value;
    });
    for (int64_t f = 0; f < m_.weights; ++f) {
      loss -= w[f] * observed_[f];
      gradient[f] -= observed_[f];
    }
    return loss;
  }

  // sum_b weight_b (max_y [w.f(y) + cost(y)] - w.f(known)): Hamming cost, subgradient
  double margin_loss(const double* w, double* gradient, int64_t threads) {
    return over_chunks(threads, gradient, [&](SequenceScores& s, int64_t b, double* out) {
      if (status(b) == kUnknown) return 0.0;
      const double factor = weight(b);
      const Path gold = gold_path(s, b, w, 1.0);
      s.fill(data_, b, w, 1.0, costs(b, gold));
      const Path worst = s.decode(nullptr);
      double value = static_cast<double>(errors(b, worst, gold));
      s.path_features(data_, b, worst, [&](int64_t f, double x) { value += w[f] * x, out[f] += factor * x; });
      s.path_features(data_, b, gold, [&](int64_t f, double x) { value -= w[f] * x, out[f] -= factor * x; });
      return factor * value;
    });
  }

  // log Z, or log Z of what is known, of each sequence
  void log_partitions(const double* w, bool known, double* out, int64_t threads) {
    std::vector<double> block;
    TransitionWeights shared;
    const bool share = make_shared(w, 1.0, block, shared);
    std::vector<std::unique_ptr<SequenceScores>> scores(std::max<int64_t>(1, threads));
    parallel_for(data_.sequences, threads, [&](int64_t b, int64_t worker) {
      if (!scores[worker]) scores[worker] = std::make_unique<SequenceScores>(m_, automaton_, topology_);
      scores[worker]->fill(data_, b, w, 1.0, nullptr);
      out[b] = scores[worker]->posteriors(data_, share ? &shared : nullptr, known ? &target_ : nullptr, false);
    });
  }

  enum Algorithm { kLikelihood, kMargin, kPerceptron, kPassiveAggressive };
  struct Online {
    Algorithm algorithm;
    double lambda = 0.0;      // L2 strength per sequence (likelihood, margin)
    double t0 = 0.0;          // step t has rate 1 / (lambda (t0 + t))
    double aggressiveness = 1.0;
    int pa_type = 1;
    bool error_sensitive = true;
    bool average = false;
    // state, carried from pass to pass
    double t = 0.0;           // steps taken
    double scale = 1.0;       // the weights are scale * w
  };

  // One pass over `order`; w and (for averages) sum change in place. Returns the summed loss: negative log
  // likelihood, margin violation, wrong tokens, or suffered loss.
  double pass(Online& o, const int64_t* order, int64_t count, double* w, double* sum) {
    SequenceScores s(m_, automaton_, topology_);
    std::vector<double> block, delta(static_cast<size_t>(m_.weights), 0.0);
    std::vector<int64_t> touched;
    std::vector<uint8_t> seen(static_cast<size_t>(m_.weights), 0);
    TransitionWeights shared;
    double loss = 0.0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t b = order[i];
      if (status(b) == kUnknown) continue;
      const bool decays = o.algorithm == kLikelihood || o.algorithm == kMargin;
      double gain = 1.0;
      if (decays) {
        const double rate = 1.0 / (o.lambda * (o.t0 + o.t));
        o.scale *= 1.0 - rate * o.lambda;
        if (o.scale < 1e-9) {
          for (int64_t f = 0; f < m_.weights; ++f) w[f] *= o.scale;
          o.scale = 1.0;
        }
        gain = rate * weight(b) / o.scale;
      }
      o.t += 1.0;
      if (o.algorithm == kLikelihood) {
        s.fill(data_, b, w, o.scale, nullptr);
        const bool share = make_shared(w, o.scale, block, shared);
        double value = s.posteriors(data_, share ? &shared : nullptr, nullptr, true);
        s.add_expectations(data_, b, -gain, w);
        if (status(b) == kPartial) {
          value -= s.posteriors(data_, share ? &shared : nullptr, &target_, true);
          s.add_expectations(data_, b, gain, w);
        } else {
          // the score of the gold path under the weights before this step: from the scores in hand
          value -= path_score(s, b);
          s.path_features(data_, b, target_path(data_, target_, b), [&](int64_t f, double x) { w[f] += gain * x; });
        }
        loss += weight(b) * value;
        continue;
      }
      const Path gold = gold_path(s, b, w, o.scale);
      s.fill(data_, b, w, o.scale, o.algorithm == kMargin ? costs(b, gold) : nullptr);
      const Path guess = s.decode(nullptr);
      const int64_t wrong = errors(b, guess, gold);
      if (o.algorithm == kPerceptron) loss += weight(b) * static_cast<double>(wrong);
      if (guess_is(guess, gold)) continue;
      const auto add = [&](int64_t f, double x) {
        if (!seen[f]) touched.push_back(f);
        seen[f] = 1;
        delta[f] += x;
      };
      s.path_features(data_, b, gold, [&](int64_t f, double x) { add(f, x); });
      s.path_features(data_, b, guess, [&](int64_t f, double x) { add(f, -x); });
      double step = weight(b) * gain;
      double difference = 0.0, norm = 0.0;
      for (const int64_t f : touched) {
        difference += o.scale * w[f] * delta[f];
        norm += delta[f] * delta[f];
      }
      if (o.algorithm == kMargin) {
        loss += weight(b) * std::max(0.0, static_cast<double>(wrong) - difference);
        step = gain;  // the sequence's weight is in it already
      } else if (o.algorithm == kPassiveAggressive) {
        const double cost = (o.error_sensitive ? std::sqrt(static_cast<double>(wrong)) : 1.0) - difference;
        loss += weight(b) * std::max(0.0, cost);
        const double c = o.aggressiveness;
        double tau = norm > 0.0 && cost > 0.0 ? cost / (o.pa_type == 2 ? norm + 0.5 / c : norm) : 0.0;
        if (o.pa_type == 1) tau = std::min(c, tau);
        step = weight(b) * tau;
      }
      for (const int64_t f : touched) {
        w[f] += step * delta[f];
        if (o.average) sum[f] += o.t * step * delta[f];
        delta[f] = 0.0;
        seen[f] = 0;
      }
      touched.clear();
    }
    return loss;
  }

 private:
  enum Status : uint8_t { kUnknown = 0, kPartial = 1, kComplete = 2 };
  uint8_t status(int64_t b) const { return target_.status[b]; }
  double weight(int64_t b) const { return target_.weight ? target_.weight[b] : 1.0; }

  // transitions that all sequences share, for dense models whose pairs do not vary
  bool make_shared(const double* w, double scale, std::vector<double>& block, TransitionWeights& out) const {
    if (!m_.dense || m_.varying_starts) return false;
    const int64_t L = m_.labels, size = L * SequenceScores::padded4(L);
    block.resize(static_cast<size_t>(2 * size + L * L));
    double* pairs = block.data() + 2 * size;
    std::fill_n(pairs, L * L, 0.0);
    for (int64_t z = L; z < m_.patterns; ++z)
      if (m_.bias[z] >= 0) pairs[m_.pair[z]] = scale * w[m_.bias[z]];
    out.weight = block.data();
    out.transposed = block.data() + size;
    kernels().exponentiate_transition(pairs, L, out);
    return true;
  }

  Path gold_path(SequenceScores& s, int64_t b, const double* w, double scale) const {
    if (status(b) == kComplete) return target_path(data_, target_, b);
    s.fill(data_, b, w, scale, nullptr);
    return s.decode(&target_);
  }

  // gold labels by token of sequence b, for the cost
  const int32_t* costs(int64_t b, const Path& gold) const {
    const int64_t length = data_.offsets[b + 1] - data_.offsets[b];
    thread_local std::vector<int32_t> labels;
    labels.assign(static_cast<size_t>(std::max<int64_t>(1, length)), -1);
    for (const Step& step : gold)
      for (int64_t t = step.start; t < step.stop; ++t) labels[t] = step.label;
    return labels.data();
  }

  int64_t errors(int64_t b, const Path& guess, const Path& gold) const {
    const int64_t length = data_.offsets[b + 1] - data_.offsets[b];
    std::vector<int32_t> a(length), c(length);
    for (const Step& step : guess) std::fill(a.begin() + step.start, a.begin() + step.stop, step.label);
    for (const Step& step : gold) std::fill(c.begin() + step.start, c.begin() + step.stop, step.label);
    int64_t wrong = 0;
    for (int64_t t = 0; t < length; ++t) wrong += a[t] != c[t];
    return wrong;
  }
  static bool guess_is(const Path& a, const Path& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Step& x, const Step& y) {
      return x.start == y.start && x.stop == y.stop && x.label == y.label;
    });
  }

  // score of the complete target under the scores that s holds
  double path_score(const SequenceScores& s, int64_t b) const {
    const SequenceScores::Arrays& a = s.scores();
    const int64_t C = m_.columns, L = m_.labels, length = data_.offsets[b + 1] - data_.offsets[b];
    int64_t state = automaton_->initial();
    double sum = 0.0;
    const auto pattern = [&](int64_t z, const Step& step) {
      const int64_t d = step.stop - step.start;
      if (m_.dense) {
        if (z < L)
          sum += a.start[step.start * L + z];
        else if (step.start > 0)
          sum += a.pairs[(m_.varying_starts ? step.start - 1 : 0) * L * L + m_.pair[z]];
        return;
      }
      if (!m_.extent[z]) sum += a.starts[(m_.varying_starts ? step.start : 0) * m_.patterns + z];
      if (z >= C || !m_.extent[z]) return;
      sum += a.start[step.start * C + z];
      for (int64_t t = step.start; a.inside && t < step.stop; ++t) sum += a.inside[t * C + z];
      if (a.end) sum += a.end[(step.stop - 1) * C + z];
      if (a.by_length) sum += a.by_length[(d - 1) * C + z];
      if (a.full) sum += a.full[(step.start * s.limit() + d - 1) * C + z];
    };
    for (const Step& step : target_path(data_, target_, b)) {
      for (int64_t z = automaton_->match(state, step.label); z >= 0; z = automaton_->pattern_suffix(z)) pattern(z, step);
      state = automaton_->next(state, step.label);
      if (step.stop == length)
        for (int64_t z = automaton_->end_match(state); z >= 0; z = automaton_->pattern_suffix(z)) pattern(z, step);
    }
    return sum;
  }

  // gradient = sum over sequences of what one(scores, b, out) adds; returns the sum of what it returns
  template <class One>
  double over_chunks(int64_t threads, double* gradient, const One& one) {
    const int64_t n = m_.weights;
    const Chunks chunks(data_.sequences, n > 100000 ? 8 : 16);
    buffers_.resize(static_cast<size_t>(chunks.chunks));
    std::vector<double> losses(static_cast<size_t>(chunks.chunks), 0.0);
    std::vector<std::unique_ptr<SequenceScores>> scores(std::max<int64_t>(1, threads));
    parallel_for(chunks.chunks, threads, [&](int64_t chunk, int64_t worker) {
      if (!scores[worker]) scores[worker] = std::make_unique<SequenceScores>(m_, automaton_, topology_);
      buffers_[chunk].assign(static_cast<size_t>(n), 0.0);
      for (int64_t b = chunks.begin(chunk); b < chunks.end(chunk); ++b)
        losses[chunk] += one(*scores[worker], b, buffers_[chunk].data());
    });
    const Chunks ranges(n, 64);
    parallel_for(ranges.chunks, threads, [&](int64_t r, int64_t) {
      for (int64_t f = ranges.begin(r); f < ranges.end(r); ++f) gradient[f] = buffers_[0][f];
      for (size_t chunk = 1; chunk < buffers_.size(); ++chunk)
        for (int64_t f = ranges.begin(r); f < ranges.end(r); ++f) gradient[f] += buffers_[chunk][f];
    });
    double loss = 0.0;
    for (const double x : losses) loss += x;
    return loss;
  }

  ModelView m_;
  DataView data_;
  TargetView target_;
  const PatternAutomaton* automaton_;
  const Topology* topology_;
  std::vector<double> observed_;
  std::vector<std::vector<double>> buffers_;
};

}  // namespace scansion
