// The objectives of the flat models: what objective.hpp asks of them, trajectories as targets, and log losses by the
// Sum-Difference algorithm.
#pragma once

#include "dense_loss.hpp"
#include "flat_model.hpp"
#include "objective.hpp"
#include "trajectory.hpp"
#include "variable_order.hpp"

namespace scansion {

class FlatSequence;

// A flat model with its data and targets.
class FlatProblem {
 public:
  using Configuration = Path;
  using Scores = FlatSequence;
  using Expectations = FlatExpectations;
  static constexpr bool kArranges = false;

  // transitions of a dense model whose pairs do not vary, exponentiated
  struct Shared {
    std::vector<double> block;
    TransitionWeights weights;
    const TransitionWeights* transitions = nullptr;  // null: there are none
    const double* pairs = nullptr;                   // (L, L) their logarithms
  };

  FlatProblem(const FlatModelView& given_model, const DataView& given_data, const FlatTargetView& given_target)
      : model(given_model), data(given_data), target(given_target) {}

  FlatModelView model;
  DataView data;
  FlatTargetView target;

  int64_t sequences() const { return data.sequences; }
  int64_t weights() const { return model.weights; }
  Status status(int64_t b) const { return static_cast<Status>(target.status[b]); }
  double weight(int64_t b) const { return target.weight ? target.weight[b] : 1.0; }

  // made when first wanted
  const SplitFeatures* split() const {
    if (!split_ && model.single_labels() && model.parts[kStart].rows && SplitFeatures::serves(data))
      split_ = std::make_unique<SplitFeatures>(model.parts[kStart], model.labels, data);
    return split_.get();
  }

  const double* arrange(const double* w, std::vector<double>&) const { return w; }
  void restore(const double*, double*) const {}

  void share(const WeightsView& w, bool exponentials, Shared& out) const {
    out.transitions = nullptr;
    if (!exponentials || !model.dense || model.varying_starts) return;
    const int64_t L = model.labels, size = L * padded4(L);
    out.block.resize(static_cast<size_t>(2 * size + L * L));
    double* pairs = out.block.data() + 2 * size;
    std::fill_n(pairs, L * L, 0.0);
    fill_pairs(model, w.plain, w.scale, 1, pairs);
    out.weights.weight = out.block.data();
    out.weights.transposed = out.block.data() + size;
    kernels().exponentiate_transition(pairs, L, out.weights);
    out.transitions = &out.weights;
    out.pairs = pairs;
  }

  FlatSequence scores(const Shared& shared) const;
  FlatExpectations expectations() const { return FlatExpectations(model, data); }
  Path configuration(int64_t b) const { return target_path(data, target, b); }

  static bool same(const Path& a, const Path& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Step& x, const Step& y) {
      return x.start == y.start && x.stop == y.stop && x.label == y.label;
    });
  }
  int64_t wrong(int64_t b, const Path& x, const Path& y) const {
    std::vector<int32_t> a(static_cast<size_t>(data.length(b))), c(a.size());
    for (const Step& step : x) std::fill(a.begin() + step.start, a.begin() + step.stop, step.label);
    for (const Step& step : y) std::fill(c.begin() + step.start, c.begin() + step.stop, step.label);
    int64_t count = 0;
    for (size_t t = 0; t < a.size(); ++t) count += a[t] != c[t];
    return count;
  }

  // Trajectories of the sequences of status 3: labels, cut at offsets (B + 1). merge: runs of equal labels are one.
  void set_trajectories(const int64_t* offsets, const int32_t* labels, bool merge) {
    target.trajectory_offsets = offsets;
    target.trajectories = labels;
    target.merge = merge;
    nets_.resize(static_cast<size_t>(data.sequences));
  }
  // scores on the places of the trajectory of sequence b
  PlaceScores places(FlatScores& scores, int64_t b) const {
    const int64_t first = target.trajectory_offsets[b], count = target.trajectory_offsets[b + 1] - first;
    const int32_t* trajectory = target.trajectories + first;
    if (!model.dense && !nets_[b])
      nets_[b] = std::make_unique<PlaceNet>(*model.automaton, model.extent, trajectory, count, target.merge);
    return PlaceScores(scores, trajectory, count, model.dense ? nullptr : nets_[b].get());
  }

 private:
  mutable std::unique_ptr<SplitFeatures> split_;
  // by sequence, made when first wanted: a sequence is only ever in one thread's hands
  mutable std::vector<std::unique_ptr<PlaceNet>> nets_;
};

// The scores of one sequence, with what is known of it.
class FlatSequence : public FlatScores {
 public:
  FlatSequence(const FlatProblem& problem, const FlatProblem::Shared& shared)
      : FlatScores(problem.model, problem.data), problem_(problem), shared_(shared) {}

  bool fill(int64_t b, const WeightsView& w, const SplitFeatures* split, const Path* gold) {
    if (gold) {  // labels by token
      gold_.assign(static_cast<size_t>(std::max<int64_t>(1, problem_.data.length(b))), -1);
      for (const Step& step : *gold) std::fill(gold_.begin() + step.start, gold_.begin() + step.stop, step.label);
    }
    FlatScores::fill(b, w, split, gold ? gold_.data() : nullptr);
    return true;
  }
  double posteriors(bool known, FlatExpectations* out) {
    if (known && by_trajectory()) return problem_.places(*this, sequence_).posteriors(out);
    return FlatScores::posteriors(shared_.transitions, known ? &problem_.target : nullptr, out);
  }
  Path best(bool known) {
    if (known && by_trajectory()) return problem_.places(*this, sequence_).best();
    return FlatScores::best(known ? &problem_.target : nullptr);
  }

 private:
  bool by_trajectory() const { return problem_.status(sequence_) == kTrajectory; }

  const FlatProblem& problem_;
  const FlatProblem::Shared& shared_;
  std::vector<int32_t> gold_;
};

inline FlatSequence FlatProblem::scores(const Shared& shared) const { return FlatSequence(*this, shared); }

class FlatObjective : public Objective<FlatProblem> {
 public:
  using Objective::Objective;

  // Chains only: log_loss by the Sum-Difference algorithm from now on, unless targets are trajectories.
  void use_sum_difference() {
    const uint8_t* status = problem_.target.status;
    const bool plain =
        std::none_of(status, status + problem_.data.sequences, [](uint8_t x) { return x == kTrajectory; });
    if (plain) make_variable_order().prepare_loss();
  }
  // Chains only: as VariableOrder::decode.
  void decode(const double* w, bool known, int32_t* labels, int64_t threads) {
    make_variable_order().decode(w, known, labels, threads);
  }
  const VariableOrder* variable_order() const { return variable_order_.get(); }

  void set_trajectories(const int64_t* offsets, const int32_t* labels, bool merge) {
    problem_.set_trajectories(offsets, labels, merge);
  }

  double log_loss(const double* w, double* gradient, int64_t threads) {
    if (!variable_order_)
      return DenseLoss::serves(problem_.model) ? dense_loss(w, gradient, threads)
                                               : Objective::log_loss(w, gradient, threads);
    FlatProblem::Shared shared;
    problem_.share({w}, true, shared);
    // for sequences that the algorithm refuses
    struct Worker {
      FlatSequence scores;
      FlatExpectations expectations;
    };
    std::vector<std::unique_ptr<Worker>> workers(std::max<int64_t>(1, threads));
    const auto fallback = [&](int64_t worker, int64_t b, bool known, double factor, double* out) {
      if (!workers[worker]) workers[worker].reset(new Worker{problem_.scores(shared), problem_.expectations()});
      Worker& k = *workers[worker];
      k.scores.fill(b, {w}, nullptr, nullptr);
      const double log_z = k.scores.posteriors(known, &k.expectations);
      k.expectations.add_to({out}, factor, nullptr);
      return log_z;
    };
    return variable_order_->log_loss(w, gradient, threads, fallback);
  }

 private:
  VariableOrder& make_variable_order() {
    if (!variable_order_)
      variable_order_ = std::make_unique<VariableOrder>(problem_.model, problem_.data, problem_.target);
    return *variable_order_;
  }

  // sequences that DenseLoss does not serve, or gives back, go one by one
  double dense_loss(const double* w, double* gradient, int64_t threads) {
    if (!dense_) dense_ = std::make_unique<DenseLoss>(problem_.model, problem_.data, problem_.target);
    const SplitFeatures* split = problem_.split();
    const WeightsView at = with_rows({w}, split);
    FlatProblem::Shared shared;
    problem_.share(at, true, shared);
    struct Both {
      DenseLoss::Chunk chunk;
      Worker other;
    };
    const double loss = over_chunks(
        split, threads, gradient,
        [&] { return std::unique_ptr<Both>(new Both{{*dense_, shared.pairs, shared.weights}, {problem_, shared}}); },
        [&](Both& k, int64_t begin, int64_t end, const WeightVector& out) {
          double sum = 0.0;
          k.chunk.clear();
          for (int64_t b = begin; b < end; ++b) {
            const double weight = dense_->serves(b) ? dense_->weight(b) : counts(b) ? problem_.weight(b) : 0.0;
            if (!(weight > 0.0) || (dense_->serves(b) && k.chunk.add(b, at, split, out, sum))) continue;
            sum += k.other.log_loss(problem_, b, weight, at, split, out);
          }
          k.chunk.finish(out.plain);
          return sum;
        });
    dense_->subtract_observed(gradient);
    return loss;
  }

  std::unique_ptr<VariableOrder> variable_order_;
  std::unique_ptr<DenseLoss> dense_;
};

}  // namespace scansion
