// Always-on features of label pairs as a matrix, for models whose longer patterns are tied to attributes: the base of
// the dense sets of sum_difference.hpp, where a pair is a node of its own only if something there needs it.
#pragma once

#include <algorithm>
#include <vector>

#include "flat_model.hpp"
#include "kernels.hpp"
#include "pattern_automaton.hpp"

namespace scansion {

class PairMatrix {
 public:
  // Without pairs if the model wants no matrix: no attribute is tied to a longer pattern, some always-on pattern is
  // longer than a pair, or there are so few pairs that nodes cost less.
  PairMatrix(const FlatModelView& m, const PatternAutomaton& net)
      : labels_(m.labels), stride_(padded4(m.labels)), member_(static_cast<size_t>(m.patterns), 0) {
    bool wanted = m.varying_starts;
    for (int64_t z = m.labels; wanted && z < m.patterns; ++z) {
      if (m.bias[z] < 0) continue;
      wanted = net.pattern_length(z) <= 2;
      const int32_t from = net.state_last(net.pattern_state(z));
      if (!net.ends(z) && from >= 0) pairs_.push_back({from, net.pattern_label(z), m.bias[z], static_cast<int32_t>(z)});
    }
    if (!wanted || static_cast<int64_t>(pairs_.size()) * 8 < labels_ * labels_) pairs_.clear();
    for (const Pair& p : pairs_) member_[p.pattern] = 1;
    bias_.assign(static_cast<size_t>(labels_ * labels_), -1);
    for (const Pair& p : pairs_) bias_[p.from * labels_ + p.to] = p.bias;
  }

  struct Pair {
    int32_t from, to, bias, pattern;
  };
  const std::vector<Pair>& pairs() const { return pairs_; }
  const std::vector<uint8_t>& member() const { return member_; }  // (patterns,)
  // weight of the feature of a pair, or -1
  int32_t bias(int32_t from, int32_t to) const { return bias_[from * labels_ + to]; }

  // from the weights of an evaluation; false: some W is too large
  bool compute(const double* w, double most) {
    if (pairs_.empty()) return true;
    const size_t size = static_cast<size_t>(labels_ * stride_);
    sum_.assign(size, 0.0);
    weight_.resize(size);
    transposed_.assign(size, 0.0);
    cap_.assign(static_cast<size_t>(labels_), 1.0);
    double top = 0.0;
    for (const Pair& p : pairs_) {
      sum_[p.from * stride_ + p.to] = w[p.bias];
      top = std::max(top, w[p.bias]);
    }
    if (!(top <= most)) return false;
    kernels().exp_array(sum_.data(), labels_ * stride_, weight_.data());
    for (int64_t i = 0; i < labels_; ++i)
      for (int64_t j = 0; j < labels_; ++j) {
        transposed_[j * stride_ + i] = weight_[i * stride_ + j];
        cap_[j] = std::max(cap_[j], weight_[i * stride_ + j]);
      }
    view_ = {stride_, weight_.data(), transposed_.data(), cap_.data()};
    return true;
  }
  const PairMatrixView& view() const { return view_; }
  // W of a pair, and e^W
  double sum(int32_t from, int32_t to) const { return sum_[place(from, to)]; }
  double weight(int32_t from, int32_t to) const { return weight_[place(from, to)]; }

  int64_t size() const { return labels_ * stride_; }
  int64_t place(int32_t from, int32_t to) const { return from * stride_ + to; }
  // out (weights,) += expectations; sums (labels, stride) of gamma(from) u beta(to), beyond (labels, stride): what
  // nodes of pairs add to the matrix's part
  void fold(const double* sums, const double* beyond, double* out) const {
    for (const Pair& p : pairs_) {
      const int64_t i = place(p.from, p.to);
      out[p.bias] += weight_[i] * sums[i] + beyond[i];
    }
  }

 private:
  const int64_t labels_, stride_;
  std::vector<Pair> pairs_;
  std::vector<uint8_t> member_;
  std::vector<int32_t> bias_;
  std::vector<double> sum_, weight_, transposed_, cap_;
  PairMatrixView view_;
};

}  // namespace scansion
