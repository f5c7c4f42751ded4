// Choices among ways: the best, a random one, and the best-first search for the k best configurations.
//
// A way is a step of a configuration that is put together from its end. Its `total` is the best or the summed weight of
// all that can come of it, known from a filled table; the order in which ways are listed is the order in which ties are
// broken: first come, first served.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "exact.hpp"
#include "numeric.hpp"

namespace scansion {

// Null: none is possible.
template <class Way>
const Way* best_way(const std::vector<Way>& ways) {
  const Way* best = nullptr;
  for (const Way& way : ways)
    if (possible(way.total) && (!best || best->total < way.total)) best = &way;
  return best;
}

// The way that a number in [0, 1) falls upon. weight: working space.
template <class Way>
const Way* drawn_way(const std::vector<Way>& ways, double uniform, std::vector<double>& weight) {
  const Way* last = best_way(ways);
  if (!last) return last;
  double sum = 0.0;
  weight.clear();
  for (const Way& way : ways) {
    weight.push_back(std::exp(gap(way.total, last->total)));
    sum += weight.back();
  }
  double left = uniform * sum;
  for (size_t i = 0; i < ways.size(); ++i) {
    if (weight[i] == 0.0) continue;
    last = &ways[i];
    if (left < weight[i]) break;
    left -= weight[i];
  }
  return last;
}

// Lists that share their tails; a list is the index of its first entry, -1 the empty one.
template <class Value>
class Lists {
 public:
  int64_t add(const Value& value, int64_t rest) {
    entries_.push_back({value, rest});
    return static_cast<int64_t>(entries_.size()) - 1;
  }
  const Value& first(int64_t list) const { return entries_[list].value; }
  int64_t rest(int64_t list) const { return entries_[list].rest; }
  std::vector<Value> values(int64_t list) const {
    std::vector<Value> out;
    for (; list >= 0; list = rest(list)) out.push_back(first(list));
    return out;
  }

 private:
  struct Entry {
    Value value;
    int64_t rest;
  };
  std::vector<Entry> entries_;
};

// What is open in the search for the k best. An open way carries how far its best completion lies below the best
// configuration. Totals make that exact, so every way that is taken up is part of one of the k best.
template <class Way, class Rest>
class Frontier {
 public:
  using Number = decltype(Way::total);
  struct Open {
    Number below;
    int64_t rank;
    Way way;
    Rest rest;  // what is known of the configuration besides
  };

  explicit Frontier(int64_t k) : wanted_(std::max<int64_t>(0, k)) {}

  // the ways on from what was taken up last; below: as it had
  void offer(const Number& below, const std::vector<Way>& ways, const Rest& rest) {
    const Way* best = best_way(ways);
    if (!best) return;
    const Number top = best->total;
    int64_t rank = ranks_ += static_cast<int64_t>(ways.size());
    for (const Way& way : ways) {
      --rank;
      if (!possible(way.total)) continue;
      const Number here = below + (way.total - top);
      if (full_ && here < least_) continue;
      open_.push_back({here, rank, way, rest});
      std::push_heap(open_.begin(), open_.end(), worse);
    }
    // each open way stands for at least one configuration: more than are still wanted need not be kept
    if (static_cast<int64_t>(open_.size()) > 2 * wanted_ + 32) {
      std::nth_element(open_.begin(), open_.begin() + (wanted_ - 1), open_.end(),
                       [](const Open& a, const Open& b) { return worse(b, a); });
      open_.resize(static_cast<size_t>(wanted_));
      full_ = true;
      least_ = open_.back().below;
      std::make_heap(open_.begin(), open_.end(), worse);
    }
  }

  // false: as many as were wanted are found, or all there are
  bool take(Open& out) {
    if (open_.empty() || wanted_ == 0) return false;
    std::pop_heap(open_.begin(), open_.end(), worse);
    out = std::move(open_.back());
    open_.pop_back();
    return true;
  }

  // what was taken up last makes a configuration complete
  void found() { --wanted_; }

 private:
  // nearest to the best first; among equals those offered last, as they are listed: the first configuration is the
  // Viterbi one
  static bool worse(const Open& a, const Open& b) {
    if (!(a.below == b.below)) return a.below < b.below;
    return a.rank < b.rank;
  }

  std::vector<Open> open_;
  int64_t wanted_, ranks_ = 0;
  bool full_ = false;  // as many as are wanted lie no further below than least_
  Number least_ = Number(0.0);
};

}  // namespace scansion
