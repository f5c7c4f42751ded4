// Numbers that everybody needs: minus infinity, whole vectors, sums that lose nothing.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace scansion {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// n rounded up to whole vectors of four doubles
constexpr int64_t padded4(int64_t n) { return (n + 3) / 4 * 4; }

// A sum of scores with what rounding took away (Neumaier); -inf where one of them is.
class ScoreSum {
 public:
  void add(double x) {
    if (!(x > kMinusInfinity)) {
      possible_ = false;
      return;
    }
    const double s = sum_ + x;
    lost_ += std::abs(sum_) >= std::abs(x) ? (sum_ - s) + x : (x - s) + sum_;
    sum_ = s;
  }
  void forbid(bool when) { possible_ = possible_ && !when; }
  double value() const { return possible_ ? sum_ + lost_ : kMinusInfinity; }

 private:
  double sum_ = 0.0, lost_ = 0.0;
  bool possible_ = true;
};

}  // namespace scansion
