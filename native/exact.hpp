// A logarithm as a fixed-point number, for scores of sizes that a double cannot hold beside each other.
//
// The range of scores is +-1e100. A configuration may add 1e100 and -1e100, and what is left decides: sums must not
// round. Seven words of 64 bits, the lowest of them behind the point, hold every sum of 1e15 such scores to 5e-20;
// sums, differences and comparisons are those of whole numbers. Exponentials are taken of differences, as doubles.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "numeric.hpp"
#include "views.hpp"

namespace scansion {

class Exact {
 public:
  Exact() = default;  // zero
  // To the nearest multiple of 2^-64 towards zero. What lies beyond the range is brought to 2^350: sums stay sums.
  explicit Exact(double x) {
    if (!(x > kMinusInfinity)) {  // NaN too
      word_[kWords - 1] = kNothing;
      return;
    }
    const double most = 0x1p350;
    const double size = std::abs(x) < most ? std::abs(x) : most;
    uint64_t bits;
    std::memcpy(&bits, &size, sizeof bits);
    const int at = static_cast<int>(bits >> 52) - 1075 + 64;  // place of the lowest bit
    uint64_t digits = (bits & ((uint64_t{1} << 52) - 1)) | uint64_t{1} << 52;
    if (at <= -64) return;  // subnormal ones too
    if (at < 0) {
      word_[0] = digits >> -at;
    } else {
      word_[at / 64] = digits << at % 64;
      if (at % 64 > 11) word_[at / 64 + 1] = digits >> (64 - at % 64);
    }
    if (x < 0) negate();
  }

  bool possible() const { return word_[kWords - 1] != kNothing; }

  Exact& operator+=(const Exact& other) {
    if (!possible()) return *this;
    if (!other.possible()) return *this = other;
    uint64_t carry = 0;
    for (int i = 0; i < kWords; ++i) {
      const uint64_t sum = word_[i] + other.word_[i], with = sum + carry;
      carry = (sum < other.word_[i]) | (with < sum);
      word_[i] = with;
    }
    return *this;
  }
  friend Exact operator+(Exact a, const Exact& b) { return a += b; }

  friend bool operator<(const Exact& a, const Exact& b) {
    const auto high = [](const Exact& x) { return static_cast<int64_t>(x.word_[kWords - 1]); };
    if (high(a) != high(b)) return high(a) < high(b);
    for (int i = kWords - 2; i >= 0; --i)
      if (a.word_[i] != b.word_[i]) return a.word_[i] < b.word_[i];
    return false;
  }
  friend bool operator==(const Exact& a, const Exact& b) { return std::memcmp(a.word_, b.word_, sizeof a.word_) == 0; }

  // the nearest double, or one beside it
  double value() const {
    if (!possible()) return kMinusInfinity;
    Exact size = *this;
    const bool negative = static_cast<int64_t>(word_[kWords - 1]) < 0;
    if (negative) size.negate();
    double sum = 0.0, unit = 0x1p-64;
    for (int i = 0; i < kWords; ++i, unit *= 0x1p64) sum += static_cast<double>(size.word_[i]) * unit;
    return negative ? -sum : sum;
  }

  // a - b of possible numbers
  friend Exact operator-(const Exact& a, Exact b) {
    b.negate();
    return b += a;
  }

 private:
  static constexpr int kWords = 7;
  static constexpr uint64_t kNothing = uint64_t{1} << 63;  // minus infinity

  void negate() {
    uint64_t carry = 1;
    for (uint64_t& word : word_) {
      word = ~word + carry;
      carry = carry & (word == 0);
    }
  }

  uint64_t word_[kWords] = {};  // lowest first, two's complement
};

// The score of one configuration: the sum of its parts, rounded once. Small parts are added with what they lose.
class ScoreSum {
 public:
  void add(double x) {
    if (!(x > kMinusInfinity)) {
      possible_ = false;
    } else if (!(std::abs(x) <= kTame)) {
      large_ += Exact(x);
      any_large_ = true;
    } else {
      const double s = sum_ + x;
      lost_ += std::abs(sum_) >= std::abs(x) ? (sum_ - s) + x : (x - s) + sum_;
      sum_ = s;
    }
  }
  void forbid(bool when) { possible_ = possible_ && !when; }
  double value() const {
    if (!possible_) return kMinusInfinity;
    return any_large_ ? (large_ + Exact(sum_) + Exact(lost_)).value() : sum_ + lost_;
  }

 private:
  double sum_ = 0.0, lost_ = 0.0;
  Exact large_;
  bool possible_ = true, any_large_ = false;
};

// The two kinds of numbers that logarithms are kept in: doubles, and these.
inline bool possible(double x) { return x > kMinusInfinity; }
inline bool possible(const Exact& x) { return x.possible(); }
// a - b; minus infinity if a is
inline double gap(double a, double b) { return a - b; }
inline double gap(const Exact& a, const Exact& b) { return a.possible() ? (a - b).value() : kMinusInfinity; }

}  // namespace scansion
