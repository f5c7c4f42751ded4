// Log loss and gradient of first-order chains whose transitions are the same everywhere and all allowed, over sequences
// that are completely labelled: what most training runs spend their time on. The same numbers as Objective::log_loss, with
// everything that does not depend on the sequence taken out of the loop over sequences:
//
//   scores of label pairs and their exponentials  once for all
//   expected label pairs                          summed over the sequences of a chunk, then tied to their features
//   observed label pairs                          counted once
//   equal sequences with equal labels             one of them, times their summed weight
#pragma once

#include <cstring>
#include <string_view>
#include <unordered_map>

#include "flat_model.hpp"

namespace scansion {

class DenseLoss {
 public:
  // Whether the model is one of those; `serves` sequence by sequence.
  static bool serves(const FlatModelView& m) {
    return m.dense && !m.varying_starts && !m.first && !m.last && !m.forbidden;
  }
  bool serves(int64_t b) const { return target_.status[b] == kComplete; }

  DenseLoss(const FlatModelView& model, const DataView& data, const FlatTargetView& target)
      : m_(model), data_(data), target_(target), weight_(static_cast<size_t>(data.sequences), 0.0),
        observed_(static_cast<size_t>(model.labels * model.labels), 0.0) {
    std::unordered_multimap<size_t, int64_t> seen;
    for (int64_t b = 0; b < data.sequences; ++b) {
      const double weight = target.weight ? target.weight[b] : 1.0;
      if (!serves(b) || !(weight > 0.0)) continue;
      const int32_t* y = target.labels + data.offsets[b];
      for (int64_t t = 1; t < data.length(b); ++t) observed_[y[t - 1] * model.labels + y[t]] += weight;
      weight_[first_like(b, seen)] += weight;
    }
  }

  // Weight of sequence b and those like it; 0: it counts nothing, or another one stands for it.
  double weight(int64_t b) const { return weight_[b]; }

  // Scratch of a thread, and what a chunk of sequences gathers.
  class Chunk {
   public:
    // pairs: scores (L, L) under the weights; transitions: their exponentials
    Chunk(const DenseLoss& loss, const double* pairs, const TransitionWeights& transitions)
        : loss_(loss), pairs_(pairs), transitions_(transitions), square_(loss.m_.labels * padded4(loss.m_.labels)) {}

    void clear() {
      outer_.assign(static_cast<size_t>(square_), 0.0);
      counts_.assign(loss_.observed_.size(), 0.0);
    }

    // out += gradient but for the pairs, loss += that of sequence b times its weight. False: it needs another kernel, and
    // nothing was added but its observed pairs, which subtract_observed takes away.
    bool add(int64_t b, const WeightsView& w, const SplitFeatures* split, const WeightVector& out, double& loss) {
      const FlatModelView& m = loss_.m_;
      const int64_t first = loss_.data_.offsets[b], T = loss_.data_.length(b), L = m.labels;
      if (T == 0) return true;
      const double weight = loss_.weight_[b];
      const int32_t* y = loss_.target_.labels + first;
      scores_.assign(static_cast<size_t>(T * L + 4), 0.0);  // rows may be written up to whole vectors
      posterior_.resize(scores_.size());
      add_token_scores(m.parts[kStart], loss_.data_, split, first, T, w, scores_.data(), L, L);
      ChainView view;
      view.length = T;
      view.labels = L;
      view.unary = scores_.data();
      view.transition = pairs_;
      ChainAnswer answer;
      answer.labels = posterior_.data();
      own_.assign(static_cast<size_t>(weight == 1.0 ? 0 : square_), 0.0);  // to be weighted
      answer.outer = weight == 1.0 ? outer_.data() : own_.data();
      double* block = work_.take(kernels().chain_workspace(T, L));
      if (kernels().chain_posteriors(view, &transitions_, block, true, answer) != Sums::kLinear) {
        for (int64_t t = 1; t < T; ++t) counts_[y[t - 1] * L + y[t]] += weight;
        return false;
      }
      if (weight != 1.0) kernels().add_scaled(outer_.data(), own_.data(), weight, square_);
      double gold = 0.0;
      for (int64_t t = 0; t < T; ++t) {
        gold += scores_[t * L + y[t]];
        if (t > 0) gold += pairs_[y[t - 1] * L + y[t]];
        posterior_[t * L + y[t]] -= 1.0;
      }
      add_token_expectations(m.parts[kStart], loss_.data_, split, first, T, weight, posterior_.data(), L, L,
                             [](int64_t) { return false; }, out, row_);
      loss += weight * (answer.log_partition - gold);
      return true;
    }

    // out += expected pairs
    void finish(double* out) const {
      const FlatModelView& m = loss_.m_;
      const int64_t L = m.labels, stride = padded4(L);
      for (int64_t z = L; z < m.patterns; ++z) {
        const int64_t i = m.pair[z] / L, j = m.pair[z] % L;
        if (m.bias[z] >= 0)
          out[m.bias[z]] += outer_[i * stride + j] * transitions_.weight[i * stride + j] + counts_[m.pair[z]];
      }
    }

   private:
    const DenseLoss& loss_;
    const double* pairs_;
    const TransitionWeights& transitions_;
    const int64_t square_;
    Workspace work_;
    std::vector<double> outer_, counts_, own_, scores_, posterior_, row_;
  };

  // gradient -= observed pairs
  void subtract_observed(double* gradient) const {
    for (int64_t z = m_.labels; z < m_.patterns; ++z)
      if (m_.bias[z] >= 0) gradient[m_.bias[z]] -= observed_[m_.pair[z]];
  }

 private:
  // the first sequence with the tokens and labels of b
  int64_t first_like(int64_t b, std::unordered_multimap<size_t, int64_t>& seen) const {
    size_t hash = 0;
    each_part(b, [&](std::string_view part) { hash = 31 * hash + std::hash<std::string_view>()(part); });
    const auto [from, to] = seen.equal_range(hash);
    for (auto other = from; other != to; ++other) {
      std::vector<std::string_view> parts;
      each_part(other->second, [&](std::string_view part) { parts.push_back(part); });
      size_t i = 0;
      bool same = true;
      each_part(b, [&](std::string_view part) { same = same && part == parts[i++]; });
      if (same && same_tokens(b, other->second)) return other->second;
    }
    seen.emplace(hash, b);
    return b;
  }
  // labels, attributes and values of a sequence, as bytes
  template <class Use>
  void each_part(int64_t b, const Use& use) const {
    const int64_t first = data_.offsets[b], last = data_.offsets[b + 1];
    const int64_t from = data_.token_offsets[first], to = data_.token_offsets[last];
    const auto bytes = [](const auto* begin, const auto* end) {
      return std::string_view(reinterpret_cast<const char*>(begin), static_cast<size_t>(end - begin) * sizeof(*begin));
    };
    use(bytes(target_.labels + first, target_.labels + last));
    use(bytes(data_.ids + from, data_.ids + to));
    if (data_.values) use(bytes(data_.values + from, data_.values + to));
  }
  // whether tokens, of sequences of equal length, have the same numbers of attributes
  bool same_tokens(int64_t a, int64_t b) const {
    const int64_t* x = data_.token_offsets + data_.offsets[a];
    const int64_t* y = data_.token_offsets + data_.offsets[b];
    for (int64_t t = 1; t <= data_.length(a); ++t)
      if (x[t] - x[0] != y[t] - y[0]) return false;
    return true;
  }

  const FlatModelView& m_;
  const DataView& data_;
  const FlatTargetView& target_;
  std::vector<double> weight_;    // (B,)
  std::vector<double> observed_;  // (L, L)
};

}  // namespace scansion
