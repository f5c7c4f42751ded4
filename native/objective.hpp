// Learning from a data set: the objectives f(w) -> (loss, gradient) over all sequences, and one pass of the online
// algorithms. Sequences whose labels are partly known go through the same code as complete ones: the numerator is
// log Z of what is known (models.md, section 3), or the best configuration that agrees with it.
//
// Threads: sequences are cut into a fixed number of chunks, each with its own gradient; chunks are added in order.
#pragma once

#include <memory>

#include "flat_model.hpp"
#include "trajectory.hpp"
#include "variable_order.hpp"

namespace scansion {

class FlatObjective {
 public:
  FlatObjective(const ModelView& model, const DataView& data, const TargetView& target,
                const PatternAutomaton* automaton, const Topology* topology)
      : m_(model), data_(data), target_(target), automaton_(automaton), topology_(topology) {}

  // Chains only: log_loss by the Sum-Difference algorithm from now on, unless targets are trajectories.
  void use_sum_difference() {
    const uint8_t* status = target_.status;
    const bool plain = std::none_of(status, status + data_.sequences, [](uint8_t x) { return x == kTrajectory; });
    if (plain) make_variable_order().prepare_loss();
  }
  // Chains only: as VariableOrder::decode.
  void decode(const double* w, bool known, int32_t* labels, int64_t threads) {
    make_variable_order().decode(w, known, labels, threads);
  }
  const VariableOrder* variable_order() const { return variable_order_.get(); }

  // Trajectories of the sequences of status 3: labels, cut at offsets (B + 1). merge: runs of equal labels are one.
  void set_trajectories(const int64_t* offsets, const int32_t* labels, bool merge) {
    target_.trajectory_offsets = offsets;
    target_.trajectories = labels;
    target_.merge = merge;
    nets_.resize(static_cast<size_t>(data_.sequences));
  }

  // sum_b weight_b (log Z_b - log Z_b(known)) and its gradient
  double log_loss(const double* w, double* gradient, int64_t threads) {
    if (variable_order_) return sum_difference_loss(w, gradient, threads);
    std::vector<double> block;
    TransitionWeights shared;
    const bool share = make_shared(w, 1.0, block, shared);
    const SplitFeatures* split = split_features();
    if (split) {
      table_.resize(static_cast<size_t>(split->size()));
      split->expand(m_, w, table_.data());
    }
    return over_chunks(threads, gradient, [&](SequenceScores& s, int64_t b, double* out) {
      if (status(b) == kUnknown) return 0.0;
      double* rows = split ? out + m_.weights : nullptr;
      s.fill(data_, b, w, 1.0, nullptr, split, table_.data());
      return weight(b) * loss_of(s, b, share ? &shared : nullptr, [&](double factor) {
        s.add_expectations(data_, b, factor * weight(b), out, split, rows);
      });
    });
  }

  // sum_b weight_b (max_y [w.f(y) + cost(y)] - w.f(known)): Hamming cost, subgradient
  double margin_loss(const double* w, double* gradient, int64_t threads) {
    return over_chunks(threads, gradient, [&](SequenceScores& s, int64_t b, double* out) {
      if (status(b) == kUnknown) return 0.0;
      const Path gold = gold_path(s, b, w, 1.0);
      s.fill(data_, b, w, 1.0, costs(b, gold).data());
      const Path worst = s.decode(nullptr);
      s.clear_expectations(data_);
      s.add_path(worst, 1.0);
      s.add_path(gold, -1.0);
      s.add_expectations(data_, b, weight(b), out);
      return weight(b) * (s.score(worst) - s.score(gold));  // the cost of gold is 0
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
      if (known && status(b) == kTrajectory)
        out[b] = places(*scores[worker], b).posteriors(data_, false);
      else
        out[b] = scores[worker]->posteriors(data_, share ? &shared : nullptr, known ? &target_ : nullptr, false);
    });
  }

  enum Algorithm { kLikelihood, kMargin, kPerceptron, kPassiveAggressive };
  struct Online {
    Algorithm algorithm;
    double lambda = 0.0;  // L2 strength per sequence (likelihood, margin)
    double t0 = 0.0;      // step t has rate 1 / (lambda (t0 + t))
    double aggressiveness = 1.0;
    int pa_type = 1;
    bool error_sensitive = true;
    bool average = false;
    // state, carried from pass to pass
    double t = 0.0;      // steps taken
    double scale = 1.0;  // the weights are scale * w
    // averaging. Where updates are sparse (perceptron, passive-aggressive), over the weights after each step: the mean
    // is (steps * w - sum) / steps. Elsewhere over the weights after every so many steps: the mean is sum / steps.
    double steps = 0.0;
  };

  // One pass over `order`; w and (for averages) sum change in place. Returns the summed loss: negative log
  // likelihood, margin violation, wrong tokens, or suffered loss.
  double pass(Online& o, const int64_t* order, int64_t count, double* w, double* sum) {
    SequenceScores s(m_, automaton_, topology_);
    std::vector<double> block;
    TransitionWeights shared;
    Sparse update(o.algorithm == kPassiveAggressive ? m_.weights : 0);
    // rows take the place of the weights of frequent attributes while the pass lasts
    const SplitFeatures* split = o.algorithm == kPassiveAggressive ? nullptr : split_features();
    std::vector<double> sum_table, mask;
    if (split) {
      table_.resize(static_cast<size_t>(split->size()));
      mask.resize(table_.size());
      split->expand(m_, std::vector<double>(static_cast<size_t>(m_.weights), 1.0).data(), mask.data());
      split->expand(m_, w, table_.data());
      if (o.average) {
        sum_table.resize(table_.size());
        split->expand(m_, sum, sum_table.data());
      }
    }
    double loss = 0.0;
    const bool decays = o.algorithm == kLikelihood || o.algorithm == kMargin;
    const int64_t between = count / 32 + 1;  // steps between the weights that are averaged
    for (int64_t i = 0; i < count; ++i) {
      const int64_t b = order[i];
      if (status(b) == kUnknown) continue;
      double gain = weight(b);
      if (decays) {
        const double rate = 1.0 / (o.lambda * (o.t0 + o.t));
        o.scale *= 1.0 - rate * o.lambda;
        if (o.scale < 1e-9) rescale(o, w, split ? table_.data() : nullptr);
        gain *= rate / o.scale;
      }
      o.t += 1.0;
      // what is added to w now was missing from the steps before
      const double missed = o.average && !decays ? o.steps : 0.0;
      const auto step = [&](double amount) {
        s.add_expectations(data_, b, amount, w, split, table_.data(), mask.data());
        if (missed > 0.0) s.add_expectations(data_, b, amount * missed, sum, split, sum_table.data(), mask.data());
      };
      if (o.algorithm == kLikelihood) {
        s.fill(data_, b, w, o.scale, nullptr, split, table_.data());
        const bool share = make_shared(w, o.scale, block, shared);
        loss += weight(b) * loss_of(s, b, share ? &shared : nullptr, [&](double factor) { step(-factor * gain); });
      } else {
        const Path gold = gold_path(s, b, w, o.scale, split);
        s.fill(data_, b, w, o.scale, o.algorithm == kMargin ? costs(b, gold).data() : nullptr, split, table_.data());
        const Path guess = s.decode(nullptr);
        const double wrong = static_cast<double>(errors(b, guess, gold));
        const double violation = s.score(guess) - s.score(gold);  // with the cost in, for kMargin
        if (o.algorithm == kPerceptron) loss += weight(b) * wrong;
        if (o.algorithm == kMargin) loss += weight(b) * violation;
        if (!same(guess, gold)) {
          s.clear_expectations(data_);
          s.add_path(gold, 1.0);
          s.add_path(guess, -1.0);
          if (o.algorithm != kPassiveAggressive) {
            step(gain);
          } else {
            update.clear();
            s.each_expectation(data_, b, [&](int64_t f, double x) { update.add(f, x); });
            const double cost = violation + (o.error_sensitive ? std::sqrt(wrong) : 1.0);
            const double c = o.aggressiveness, norm = update.squared_norm();
            loss += weight(b) * std::max(0.0, cost);
            double tau = norm > 0.0 && cost > 0.0 ? cost / (o.pa_type == 2 ? norm + 0.5 / c : norm) : 0.0;
            if (o.pa_type == 1) tau = std::min(c, tau);
            gain *= tau;
            for (const int64_t f : update.touched) {
              w[f] += gain * update.value[f];
              if (missed > 0.0) sum[f] += gain * missed * update.value[f];
            }
          }
        }
      }
      if (!o.average) continue;
      if (!decays) {
        o.steps += 1.0;
      } else if ((i + 1) % between == 0) {
        o.steps += 1.0;
        for (int64_t f = 0; f < m_.weights; ++f) sum[f] += o.scale * w[f];
        for (size_t j = 0; j < sum_table.size(); ++j) sum_table[j] += o.scale * table_[j];
      }
    }
    if (split) {
      split->restore(m_, table_.data(), w);
      if (o.average) split->restore(m_, sum_table.data(), sum);
    }
    return loss;
  }

 private:
  VariableOrder& make_variable_order() {
    if (!variable_order_) variable_order_ = std::make_unique<VariableOrder>(m_, data_, target_, *automaton_);
    return *variable_order_;
  }

  double sum_difference_loss(const double* w, double* gradient, int64_t threads) {
    std::vector<double> block;
    TransitionWeights shared;
    const bool share = make_shared(w, 1.0, block, shared);
    std::vector<std::unique_ptr<SequenceScores>> scores(std::max<int64_t>(1, threads));
    return variable_order_->log_loss(w, gradient, threads, [&](int64_t worker, int64_t b, bool known, double factor, double* out) {
      if (!scores[worker]) scores[worker] = std::make_unique<SequenceScores>(m_, automaton_, topology_);
      SequenceScores& s = *scores[worker];
      s.fill(data_, b, w, 1.0, nullptr);
      const double log_z = s.posteriors(data_, share ? &shared : nullptr, known ? &target_ : nullptr, true);
      s.add_expectations(data_, b, factor, out);
      return log_z;
    });
  }

  enum Status : uint8_t { kUnknown = 0, kPartial = 1, kComplete = 2, kTrajectory = 3 };

  // A sparse vector over all weights.
  struct Sparse {
    std::vector<double> value;
    std::vector<uint8_t> seen;
    std::vector<int64_t> touched;
    explicit Sparse(int64_t n) : value(static_cast<size_t>(n), 0.0), seen(static_cast<size_t>(n), 0) {}
    void add(int64_t f, double x) {
      if (!seen[f]) touched.push_back(f);
      seen[f] = 1;
      value[f] += x;
    }
    void clear() {
      for (const int64_t f : touched) value[f] = 0.0, seen[f] = 0;
      touched.clear();
    }
    double squared_norm() const {
      double sum = 0.0;
      for (const int64_t f : touched) sum += value[f] * value[f];
      return sum;
    }
  };

  void rescale(Online& o, double* w, double* table) const {
    for (int64_t f = 0; f < m_.weights; ++f) w[f] *= o.scale;
    for (int64_t i = 0; table && i < split_->size(); ++i) table[i] *= o.scale;
    o.scale = 1.0;
  }

  // log Z - log Z(known) of the scores that s holds; add(factor) is called while s holds expectations that enter the
  // gradient with that factor
  template <class Add>
  double loss_of(SequenceScores& s, int64_t b, const TransitionWeights* shared, const Add& add) const {
    double value = s.posteriors(data_, shared, nullptr, true);
    if (status(b) == kComplete) {
      const Path gold = target_path(data_, target_, b);
      value -= s.score(gold);
      s.add_path(gold, -1.0);
      add(1.0);
    } else {
      add(1.0);
      value -= status(b) == kTrajectory ? places(s, b).posteriors(data_, true)
                                        : s.posteriors(data_, shared, &target_, true);
      add(-1.0);
    }
    return value;
  }
  // the scores that s holds, on the places of the trajectory of sequence b
  PlaceScores places(SequenceScores& s, int64_t b) const {
    const int64_t first = target_.trajectory_offsets[b], count = target_.trajectory_offsets[b + 1] - first;
    const int32_t* trajectory = target_.trajectories + first;
    if (!m_.dense && !nets_[b])
      nets_[b] = std::make_unique<PlaceNet>(m_, *automaton_, trajectory, count, target_.merge);
    return PlaceScores(s, trajectory, count, m_.dense ? nullptr : nets_[b].get());
  }
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

  // made when first wanted
  const SplitFeatures* split_features() {
    if (!split_ && m_.dense && !m_.varying_starts && !data_.values && m_.parts[kStart].rows)
      split_ = std::make_unique<SplitFeatures>(m_, data_);
    return split_.get();
  }

  Path gold_path(SequenceScores& s, int64_t b, const double* w, double scale, const SplitFeatures* split = nullptr) const {
    if (status(b) == kComplete) return target_path(data_, target_, b);
    s.fill(data_, b, w, scale, nullptr, split, table_.data());
    return status(b) == kTrajectory ? places(s, b).decode() : s.decode(&target_);
  }

  // gold labels by token of sequence b, for the cost
  std::vector<int32_t> costs(int64_t b, const Path& gold) const {
    const int64_t length = data_.offsets[b + 1] - data_.offsets[b];
    std::vector<int32_t> labels(static_cast<size_t>(std::max<int64_t>(1, length)), -1);
    for (const Step& step : gold)
      for (int64_t t = step.start; t < step.stop; ++t) labels[t] = step.label;
    return labels;
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
  static bool same(const Path& a, const Path& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Step& x, const Step& y) {
      return x.start == y.start && x.stop == y.stop && x.label == y.label;
    });
  }

  // gradient = sum over sequences of what one(scores, b, out) adds; returns the sum of what it returns
  template <class One>
  double over_chunks(int64_t threads, double* gradient, const One& one) {
    const int64_t n = m_.weights;
    const Chunks chunks(data_.sequences, n > 100000 ? 6 : 16);  // each has a gradient of its own
    buffers_.resize(static_cast<size_t>(chunks.chunks));
    std::vector<double> losses(static_cast<size_t>(chunks.chunks), 0.0);
    std::vector<std::unique_ptr<SequenceScores>> scores(std::max<int64_t>(1, threads));
    parallel_for(chunks.chunks, threads, [&](int64_t chunk, int64_t worker) {
      if (!scores[worker]) scores[worker] = std::make_unique<SequenceScores>(m_, automaton_, topology_);
      buffers_[chunk].assign(static_cast<size_t>(n + (split_ ? split_->size() : 0)), 0.0);
      for (int64_t b = chunks.begin(chunk); b < chunks.end(chunk); ++b)
        losses[chunk] += one(*scores[worker], b, buffers_[chunk].data());
      if (split_) split_->fold(m_, buffers_[chunk].data() + n, buffers_[chunk].data());
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
  std::unique_ptr<VariableOrder> variable_order_;
  std::unique_ptr<SplitFeatures> split_;
  std::vector<double> table_;  // (rows, stride) of split_
  std::vector<std::vector<double>> buffers_;
  // by sequence, made when first wanted: a sequence is only ever in one thread's hands
  mutable std::vector<std::unique_ptr<PlaceNet>> nets_;
};

}  // namespace scansion
