// The symbol strings that can live at a position of the Sum-Difference engine: the automaton's states, and the patterns
// that are no states; with their prefixes and suffixes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "pattern_automaton.hpp"

namespace scansion {

class PatternStrings {
 public:
  explicit PatternStrings(const PatternAutomaton& net) : labels_(net.labels()) {
    const int64_t S = net.states(), P = net.patterns();
    root_ = net.root();
    for (int64_t p = 0; p < S; ++p) add(net.state_parent(p), net.state_suffix(p), net.state_last(p), net.length(p));
    pattern_string_.assign(static_cast<size_t>(P), -1);
    for (int64_t z = 0; z < P; ++z) {
      if (net.ends(z)) continue;
      const int32_t p = net.pattern_state(z), y = net.pattern_label(z), q = net.next(p, y);
      if (net.length(q) == net.pattern_length(z)) {
        pattern_string_[z] = q;
      } else {
        pattern_string_[z] = add(p, -1, y, net.pattern_length(z));
        fresh_.push_back(static_cast<int32_t>(z));
      }
    }
    const auto longest = [&](int32_t p, int32_t y) {  // longest string that is a suffix of p y
      const int32_t q = net.next(p, y), z = net.match(p, y);
      return z >= 0 && net.pattern_length(z) > net.length(q) ? pattern_string_[z] : q;
    };
    for (const int32_t z : fresh_)
      suffix_[pattern_string_[z]] = longest(net.state_suffix(net.pattern_state(z)), net.pattern_label(z));
    // states: a pattern may be a longer suffix than any state
    for (int32_t p = 0; p < S; ++p)
      if (net.length(p) > 1) suffix_[p] = longest(net.state_suffix(net.state_parent(p)), net.state_last(p));
    for (int64_t z = 0; z < P; ++z)
      if (net.ends(z)) {
        end_patterns_.push_back(static_cast<int32_t>(z));
        pattern_string_[z] = add(net.pattern_state(z), -1, kEos, net.pattern_length(z));
      }
    for (const int32_t z : end_patterns_)
      suffix_[pattern_string_[z]] = net.pattern_suffix(z) < 0 ? -1 : pattern_string_[net.pattern_suffix(z)];
    bos_.resize(prefix_.size());
    string_pattern_.assign(prefix_.size(), -1);
    for (int64_t z = 0; z < P; ++z) string_pattern_[pattern_string_[z]] = static_cast<int32_t>(z);
    longest_ = 1;
    for (size_t s = 0; s < prefix_.size(); ++s) {
      int32_t first = static_cast<int32_t>(s);
      while (prefix_[first] >= 0 && prefix_[first] != root_) first = prefix_[first];
      bos_[s] = last_[first] == kBos;
      any_bos_ = any_bos_ || bos_[s];
      longest_ = std::max(longest_, static_cast<int64_t>(length_[s]));
    }
  }

  int64_t size() const { return static_cast<int64_t>(prefix_.size()); }
  int64_t labels() const { return labels_; }
  int32_t root() const { return root_; }
  int64_t longest() const { return longest_; }
  bool any_bos() const { return any_bos_; }
  int32_t prefix(int32_t s) const { return prefix_[s]; }
  int32_t suffix(int32_t s) const { return suffix_[s]; }
  int32_t last(int32_t s) const { return last_[s]; }
  int32_t length(int32_t s) const { return length_[s]; }
  int32_t pattern(int32_t s) const { return string_pattern_[s]; }
  int32_t string(int64_t z) const { return pattern_string_[z]; }
  const std::vector<int32_t>& end_patterns() const { return end_patterns_; }
  bool fits(int32_t s, int64_t t) const { return bos_[s] ? length_[s] == t + 2 : length_[s] <= t + 1; }

 private:
  int32_t add(int32_t prefix, int32_t suffix, int32_t last, int32_t length) {
    prefix_.push_back(prefix);
    suffix_.push_back(suffix);
    last_.push_back(last);
    length_.push_back(length);
    return static_cast<int32_t>(prefix_.size()) - 1;
  }
  int64_t labels_, longest_ = 1;
  int32_t root_ = 0;
  bool any_bos_ = false;
  std::vector<int32_t> prefix_, suffix_, last_, length_;
  std::vector<uint8_t> bos_;
  std::vector<int32_t> string_pattern_, pattern_string_, fresh_, end_patterns_;
};

}  // namespace scansion
