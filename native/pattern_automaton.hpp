// The pattern automaton of paper 001, section 2.2, and its layout for the segment kernels.
//
// States P = {empty} + all labels + all proper prefixes of patterns (+ the start of the sequence, BOS).
// With suffix(p) = longest proper suffix of p in P, for a label y:
//   next(p, y)  = p.y if it is in P, else next(suffix(p), y)     [longest suffix of p.y in P]
//   match(p, y) = p.y if it is a pattern, else match(suffix(p), y)  [longest pattern that is a suffix of p.y]
// All patterns that match on an arc are match(p, y) and the chain of its suffix patterns. Both tables are filled
// in order of length: O(n log m + |P| L) time for patterns of n symbols, the longest of m, no search over pairs of
// patterns.
//
// A pattern that ends in EOS belongs to the state that its body is (bodies are proper prefixes, so they are
// states): it counts when the sequence ends there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "numeric.hpp"
#include "rules.hpp"
#include "views.hpp"

namespace scansion {

constexpr int32_t kBos = -1;
constexpr int32_t kEos = -2;

class PatternAutomaton {
 public:
  // Patterns one after another in `symbols`, cut at `offsets` (n + 1); symbols 0..labels-1, BOS first, EOS last.
  PatternAutomaton(int64_t labels, const int32_t* symbols, const int64_t* offsets, int64_t n)
      : labels_(labels), patterns_(n) {
    check_size(labels);
    build_trie(symbols, offsets);
    order_states();
    link();
  }

  int64_t labels() const { return labels_; }
  int64_t patterns() const { return patterns_; }
  int64_t states() const { return static_cast<int64_t>(length_.size()); }
  int64_t initial() const { return initial_; }
  int64_t longest() const { return longest_; }
  int32_t next(int64_t state, int64_t label) const { return next_[state * labels_ + label]; }
  int32_t match(int64_t state, int64_t label) const { return match_[state * labels_ + label]; }
  const std::vector<int32_t>& next_table() const { return next_; }
  const std::vector<int32_t>& match_table() const { return match_; }
  int32_t length(int64_t state) const { return length_[state]; }
  int32_t state_suffix(int64_t state) const { return suffix_[state]; }
  // longest pattern that is a proper suffix of pattern z (for EOS patterns: among those), or -1
  int32_t pattern_suffix(int64_t z) const { return pattern_suffix_[z]; }
  int32_t pattern_length(int64_t z) const { return pattern_length_[z]; }
  int32_t pattern_label(int64_t z) const { return pattern_label_[z]; }
  // the state that pattern z is without its last symbol
  int32_t pattern_state(int64_t z) const { return pattern_state_[z]; }
  int32_t state_parent(int64_t state) const { return parent_[state]; }
  int32_t state_last(int64_t state) const { return last_[state]; }
  int32_t root() const { return root_; }
  bool ends(int64_t z) const { return ends_[z]; }
  // longest EOS pattern whose body is a suffix of the state, or -1
  int32_t end_match(int64_t state) const { return end_match_[state]; }

  // the pattern's symbols, first to last
  std::vector<int32_t> pattern_symbols(int64_t z) const {
    std::vector<int32_t> out = symbols(pattern_state_[z]);
    out.push_back(ends_[z] ? kEos : pattern_label_[z]);
    return out;
  }

  // the state's symbols, first to last
  std::vector<int32_t> symbols(int64_t state) const {
    std::vector<int32_t> out;
    for (int64_t p = state; parent_[p] >= 0; p = parent_[p]) out.push_back(last_[p]);
    std::reverse(out.begin(), out.end());
    return out;
  }

 private:
  struct Key {
    int32_t node, symbol;
    bool operator==(const Key& o) const { return node == o.node && symbol == o.symbol; }
  };
  struct Hash {
    size_t operator()(const Key& k) const {
      return (static_cast<size_t>(static_cast<uint32_t>(k.node)) << 20) * 0x9E3779B97F4A7C15ull ^
             static_cast<size_t>(static_cast<uint32_t>(k.symbol + 2)) * 0xC2B2AE3D27D4EB4Full;
    }
  };
  using Children = std::unordered_map<Key, int32_t, Hash>;

  // What the labels lead to in each state, in lists.
  class ByState {
   public:
    explicit ByState(int64_t states) : first_(static_cast<size_t>(states), -1) {}
    void add(int32_t state, int32_t label, int32_t target) {
      entries_.push_back({label, target, first_[state]});
      first_[state] = static_cast<int32_t>(entries_.size()) - 1;
    }
    template <class Use>
    void each(int32_t state, const Use& use) const {
      for (int32_t i = first_[state]; i >= 0; i = entries_[i].next) use(entries_[i].label, entries_[i].target);
    }

   private:
    struct Entry {
      int32_t label, target, next;
    };
    std::vector<int32_t> first_;
    std::vector<Entry> entries_;
  };

  static constexpr int64_t kMostEntries = int64_t{1} << 29;

  void check_size(int64_t states) const {
    if (states > kMostEntries / labels_)
      throw std::length_error(std::to_string(states) + " states or more and " + std::to_string(labels_) +
                              " labels are too many for a table of " + std::to_string(kMostEntries) + " entries");
  }

  int32_t child(int32_t node, int32_t symbol) {
    const auto found = children_.try_emplace({node, symbol}, static_cast<int32_t>(parent_.size()));
    if (found.second) {
      parent_.push_back(node);
      last_.push_back(symbol);
      length_.push_back(length_[node] + 1);
    }
    return found.first->second;
  }

  void build_trie(const int32_t* symbols, const int64_t* offsets) {
    parent_ = {-1};
    last_ = {-3};
    length_ = {0};
    for (int32_t y = 0; y < labels_; ++y) child(0, y);
    bool bos = false;
    pattern_state_.resize(patterns_);
    pattern_label_.resize(patterns_);
    pattern_length_.resize(patterns_);
    ends_.assign(patterns_, 0);
    for (int64_t z = 0; z < patterns_; ++z) {
      int64_t stop = offsets[z + 1];
      pattern_length_[z] = static_cast<int32_t>(stop - offsets[z]);
      longest_ = std::max<int64_t>(longest_, pattern_length_[z]);
      ends_[z] = symbols[stop - 1] == kEos;
      bos = bos || symbols[offsets[z]] == kBos;
      int32_t node = 0;
      for (int64_t i = offsets[z]; i < stop - 1; ++i) node = child(node, symbols[i]);
      pattern_state_[z] = node;
      pattern_label_[z] = ends_[z] ? last_[node] : symbols[stop - 1];
    }
    if (bos) initial_ = child(0, kBos);
  }

  // States by their symbols read backwards, so that smaller last labels come first.
  void order_states() {
    const int64_t n = static_cast<int64_t>(parent_.size());
    const std::vector<int32_t> rank = backward_ranks();
    std::vector<int32_t> parent(n), last(n), length(n);
    for (int64_t i = 0; i < n; ++i) {
      parent[rank[i]] = parent_[i] < 0 ? -1 : rank[parent_[i]];
      last[rank[i]] = last_[i];
      length[rank[i]] = length_[i];
    }
    Children children;
    children.reserve(children_.size());
    for (const auto& c : children_) children[{rank[c.first.node], c.first.symbol}] = rank[c.second];
    parent_.swap(parent);
    last_.swap(last);
    length_.swap(length);
    children_.swap(children);
    for (int32_t& p : pattern_state_) p = rank[p];
    initial_ = rank[initial_];
    root_ = rank[0];
  }

  // Ranks by the last symbol, then by the last two, four, and so on: those of twice as many symbols are the pairs of
  // the ranks of a state and of its ancestor that many symbols up, sorted by counting. The root ends every string.
  std::vector<int32_t> backward_ranks() const {
    const int64_t n = static_cast<int64_t>(parent_.size());
    std::vector<int32_t> rank(n), up(parent_), order(n), sorted(n), next(n), first;
    up[0] = 0;
    for (int64_t i = 0; i < n; ++i) rank[i] = i == 0 ? 0 : last_[i] + 2;  // BOS before the labels
    std::iota(order.begin(), order.end(), 0);
    int32_t ranks = static_cast<int32_t>(labels_) + 2;
    const auto count = [&](const auto& key) {  // stable
      first.assign(static_cast<size_t>(ranks) + 1, 0);
      for (int64_t i = 0; i < n; ++i) ++first[key(i) + 1];
      std::partial_sum(first.begin(), first.end(), first.begin());
      for (const int32_t i : order) sorted[first[key(i)]++] = i;
      order.swap(sorted);
    };
    count([&](int64_t i) { return rank[i]; });
    for (bool again = true; again;) {
      count([&](int64_t i) { return rank[up[i]]; });
      count([&](int64_t i) { return rank[i]; });
      int32_t at = -1;
      for (int64_t i = 0; i < n; ++i) {
        const int32_t a = order[i], b = order[i > 0 ? i - 1 : 0];
        if (i == 0 || rank[a] != rank[b] || rank[up[a]] != rank[up[b]]) ++at;
        next[a] = at;
      }
      again = at + 1 < n;
      ranks = at + 1;
      rank.swap(next);
      for (int64_t i = 0; i < n; ++i) sorted[i] = up[up[i]];
      up.swap(sorted);
    }
    return rank;
  }

  void link() {
    const int64_t n = states();
    std::vector<int32_t> by_length(n);
    std::iota(by_length.begin(), by_length.end(), 0);
    std::stable_sort(by_length.begin(), by_length.end(), [&](int32_t a, int32_t b) { return length_[a] < length_[b]; });
    check_size(n);
    ByState patterns(n), children(n);
    end_match_.assign(n, -1);
    for (int64_t z = 0; z < patterns_; ++z) {
      if (ends_[z])
        end_match_[pattern_state_[z]] = static_cast<int32_t>(z);
      else
        patterns.add(pattern_state_[z], pattern_label_[z], static_cast<int32_t>(z));
    }
    for (const auto& c : children_)
      if (c.first.symbol >= 0) children.add(c.first.node, c.first.symbol, c.second);
    next_.assign(n * labels_, root_);
    match_.assign(n * labels_, -1);
    suffix_.assign(n, -1);
    pattern_suffix_.assign(patterns_, -1);
    for (const int32_t p : by_length) {
      const int32_t s = length_[p] == 0   ? -1
                        : length_[p] == 1 ? root_
                                          : next_[suffix_[parent_[p]] * labels_ + last_[p]];
      suffix_[p] = s;
      int32_t* next = next_.data() + p * labels_;
      int32_t* match = match_.data() + p * labels_;
      if (s >= 0) {
        std::copy_n(next_.data() + s * labels_, labels_, next);
        std::copy_n(match_.data() + s * labels_, labels_, match);
        if (end_match_[p] >= 0)
          pattern_suffix_[end_match_[p]] = end_match_[s];
        else
          end_match_[p] = end_match_[s];
      }
      children.each(p, [&](int32_t y, int32_t child) { next[y] = child; });
      patterns.each(p, [&](int32_t y, int32_t z) {
        pattern_suffix_[z] = match[y];
        match[y] = z;
      });
    }
    children_.clear();
  }

  int64_t labels_, patterns_;
  int64_t longest_ = 1;
  int32_t initial_ = 0, root_ = 0;
  Children children_;
  std::vector<int32_t> parent_, last_, length_, suffix_;
  std::vector<int32_t> next_, match_, end_match_;
  std::vector<int32_t> pattern_state_, pattern_label_, pattern_length_, pattern_suffix_;
  std::vector<uint8_t> ends_;
};

// Arcs and classes laid out for the kernels; see TopologyView. `extent[z]`: pattern z scores more than a start part.
// With rules, a state is a pair (state of the patterns, state of the rules): only pairs that can be reached are there,
// in order; arcs that the rules forbid are not, and the sequence must not end where they do not accept.
class Topology {
 public:
  Topology(const PatternAutomaton& net, const uint8_t* extent, const RuleMachine* rules = nullptr,
           int64_t most_states = 0) {
    const int64_t L = net.labels(), P = net.patterns();
    std::vector<int32_t> start_class(P, -1), extent_class(P, -1), end_class(P, -1);
    std::vector<int32_t> order(P);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return net.pattern_label(a) != net.pattern_label(b) ? net.pattern_label(a) < net.pattern_label(b)
                                                          : net.pattern_length(a) < net.pattern_length(b);
    });

    // nearest pattern of each kind on the suffix chain of z, z itself included
    std::vector<int32_t> near_start(P, -1), near_extent(P, -1);
    for (const int32_t z : order) {
      const int32_t s = net.pattern_suffix(z);
      if (net.ends(z)) continue;
      near_start[z] = !extent[z] ? z : s >= 0 ? near_start[s] : -1;
      near_extent[z] = extent[z] ? z : s >= 0 ? near_extent[s] : -1;
    }

    // states that can be reached
    std::vector<uint8_t> reached(net.states(), 0);
    std::vector<int32_t> queue = {static_cast<int32_t>(net.initial())};
    reached[net.initial()] = 1;
    for (size_t i = 0; i < queue.size(); ++i)
      for (int64_t y = 0; y < L; ++y) {
        const int32_t q = net.next(queue[i], y);
        if (!reached[q]) {
          reached[q] = 1;
          queue.push_back(q);
        }
      }
    std::sort(queue.begin(), queue.end());
    const Pairs pairs(net, rules, most_states);
    const int64_t S = rules ? pairs.size() : net.states();

    // extent classes: every extent pattern, and a bare class for labels that have an arc without one
    std::vector<uint8_t> bare(L, 0);
    for (const int32_t p : queue)
      for (int64_t y = 0; y < L; ++y) {
        const int32_t m = net.match(p, y);
        if (m < 0 || near_extent[m] < 0) bare[y] = 1;
      }
    std::vector<int32_t> bare_class(L, -1);
    size_t i = 0;
    view_.label_extents = true;
    for (int32_t y = 0; y < L; ++y) {
      if (bare[y]) {
        bare_class[y] = static_cast<int32_t>(extent_pattern_.size());
        add_extent(-1, -1, y);
      }
      for (; i < order.size() && net.pattern_label(order[i]) == y; ++i) {
        const int32_t z = order[i];
        if (net.ends(z) || !extent[z]) continue;
        const int32_t s = net.pattern_suffix(z);
        const int32_t parent = s >= 0 && near_extent[s] >= 0 ? extent_class[near_extent[s]] : -1;
        extent_class[z] = static_cast<int32_t>(extent_pattern_.size());
        add_extent(z, parent, y);
        if (net.pattern_length(z) > 1) view_.label_extents = false;
      }
    }
    for (const int32_t z : order) {
      if (net.ends(z) || extent[z]) continue;
      const int32_t s = net.pattern_suffix(z);
      start_class[z] = static_cast<int32_t>(start_pattern_.size());
      start_pattern_.push_back(z);
      start_parent_.push_back(s >= 0 && near_start[s] >= 0 ? start_class[near_start[s]] : -1);
    }
    for (const int32_t z : order) {
      if (!net.ends(z)) continue;
      const int32_t s = net.pattern_suffix(z);
      end_class[z] = static_cast<int32_t>(end_pattern_.size());
      end_pattern_.push_back(z);
      end_parent_.push_back(s >= 0 ? end_class[s] : -1);
    }

    struct Arc {
      int32_t target, extent, source, start, label;
    };
    std::vector<Arc> arcs;
    arcs.reserve((rules ? S : static_cast<int64_t>(queue.size())) * L);
    const int32_t none = static_cast<int32_t>(start_pattern_.size());
    const auto add_arc = [&](int32_t p, int32_t y, int32_t source, int32_t target) {
      const int32_t m = net.match(p, y);
      const int32_t s = m >= 0 ? near_start[m] : -1, e = m >= 0 ? near_extent[m] : -1;
      arcs.push_back({target, e >= 0 ? extent_class[e] : bare_class[y], source, s >= 0 ? start_class[s] : none, y});
      if (s < 0) view_.bare_arcs = true;
    };
    if (!rules) {
      for (const int32_t p : queue)
        for (int32_t y = 0; y < L; ++y) add_arc(p, y, p, net.next(p, y));
    } else {
      for (int32_t i = 0; i < S; ++i)
        for (int32_t y = 0; y < L; ++y) {
          const int32_t target = pairs.next(i, y);
          if (target >= 0) add_arc(pairs.pattern_state(i), y, i, target);
        }
    }
    const int32_t refused = static_cast<int32_t>(end_pattern_.size());
    if (rules) {  // the end class of states where the rules do not accept
      end_pattern_.push_back(-1);
      end_parent_.push_back(-1);
    }
    const auto end_of = [&](int32_t state) {
      if (rules && !rules->accepting[pairs.rule_state(state)]) return refused;
      const int32_t z = net.end_match(rules ? pairs.pattern_state(state) : state);
      return z >= 0 ? end_class[z] : -1;
    };
    std::sort(arcs.begin(), arcs.end(), [](const Arc& a, const Arc& b) {
      return a.target != b.target   ? a.target < b.target
             : a.extent != b.extent ? a.extent < b.extent
                                    : a.source < b.source;
    });
    state_keys_.assign(S + 1, 0);
    Ranges ranges(S, node_parts_, node_range_);
    for (size_t j = 0, stop; j < arcs.size(); j = stop) {
      const Arc& a = arcs[j];
      if (j == 0 || a.target != arcs[j - 1].target || a.extent != arcs[j - 1].extent) {
        key_arcs_.push_back(static_cast<int64_t>(arc_source_.size()));
        key_target_.push_back(a.target);
        key_extent_.push_back(a.extent);
        key_label_.push_back(a.label);
        key_end_.push_back(end_of(a.target));
        ++state_keys_[a.target + 1];
      }
      // as many arcs as neighbouring states have of this kind
      const auto alike = [&](const Arc& b, size_t after) {
        return b.target == a.target && b.extent == a.extent && b.start == a.start &&
               b.source == a.source + static_cast<int32_t>(after);
      };
      for (stop = j + 1; stop < arcs.size() && alike(arcs[stop], stop - j);) ++stop;
      ranges.cover(a.source, a.source + static_cast<int32_t>(stop - j), arc_source_);
      arc_start_.resize(arc_source_.size(), a.start);
    }
    key_arcs_.push_back(static_cast<int64_t>(arc_source_.size()));
    std::partial_sum(state_keys_.begin(), state_keys_.end(), state_keys_.begin());

    view_.states = S;
    view_.labels = L;
    view_.patterns = P;
    view_.initial = rules ? pairs.initial() : net.initial();
    view_.longest = net.longest();
    view_.restricted = rules != nullptr;
    view_.keys = static_cast<int64_t>(key_target_.size());
    view_.start_classes = none;
    view_.extent_classes = static_cast<int64_t>(extent_pattern_.size());
    view_.end_classes = static_cast<int64_t>(end_pattern_.size());
    view_.identity_keys = view_.keys == view_.extent_classes;
    for (int64_t k = 0; k < view_.keys && view_.identity_keys; ++k) view_.identity_keys = key_extent_[k] == k;
    view_.key_arcs = key_arcs_.data();
    view_.arc_source = arc_source_.data();
    view_.arc_start = arc_start_.data();
    view_.nodes = static_cast<int64_t>(node_parts_.size() / 2);
    view_.node_parts = node_parts_.data();
    view_.node_range = node_range_.data();
    view_.key_target = key_target_.data();
    view_.key_extent = key_extent_.data();
    view_.key_label = key_label_.data();
    view_.key_end = key_end_.data();
    view_.state_keys = state_keys_.data();
    view_.start_pattern = start_pattern_.data();
    view_.start_parent = start_parent_.data();
    view_.extent_pattern = extent_pattern_.data();
    view_.extent_parent = extent_parent_.data();
    view_.extent_label = extent_label_.data();
    view_.end_pattern = end_pattern_.data();
    view_.end_parent = end_parent_.data();
  }
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  const TopologyView& view() const { return view_; }

 private:
  // Pairs (state of the patterns, state of the rules) that can be reached, in order.
  class Pairs {
   public:
    Pairs(const PatternAutomaton& net, const RuleMachine* rules, int64_t most) : net_(net), rules_(rules) {
      if (!rules) return;
      const int64_t first = key(net.initial(), 0);
      keys_ = {first};
      number_[first] = 0;
      for (size_t i = 0; i < keys_.size(); ++i)
        for (int64_t y = 0; y < net.labels(); ++y) {
          const int64_t target = step(keys_[i], y);
          if (target >= 0 && number_.try_emplace(target, 0).second) keys_.push_back(target);
          if (static_cast<int64_t>(keys_.size()) > most) throw std::overflow_error("too many states");
        }
      std::sort(keys_.begin(), keys_.end());
      for (size_t i = 0; i < keys_.size(); ++i) number_[keys_[i]] = static_cast<int32_t>(i);
    }
    int64_t size() const { return static_cast<int64_t>(keys_.size()); }
    int32_t initial() const { return number_.at(key(net_.initial(), 0)); }
    int32_t pattern_state(int64_t i) const { return static_cast<int32_t>(keys_[i] / rules_->states); }
    int32_t rule_state(int64_t i) const { return static_cast<int32_t>(keys_[i] % rules_->states); }
    int32_t next(int64_t i, int64_t y) const {
      const int64_t target = step(keys_[i], y);
      return target >= 0 ? number_.at(target) : -1;
    }

   private:
    int64_t key(int64_t p, int64_t q) const { return p * rules_->states + q; }
    int64_t step(int64_t from, int64_t y) const {
      const int32_t q = rules_->next[from % rules_->states * net_.labels() + y];
      return q >= 0 ? key(net_.next(from / rules_->states, y), q) : -1;
    }

    const PatternAutomaton& net_;
    const RuleMachine* rules_;
    std::vector<int64_t> keys_;
    std::unordered_map<int64_t, int32_t> number_;
  };

  // Nodes of arcs: states, and blocks of 2, 4, 8 and so on neighbouring ones, made when first wanted.
  class Ranges {
   public:
    Ranges(int64_t states, std::vector<int32_t>& parts, std::vector<int32_t>& range) : parts_(parts), range_(range) {
      for (int32_t p = 0; p < padded4(states); ++p) add(p, p, p, p < states ? p + 1 : p);
    }
    // appends the nodes that make up the states first..stop-1, in order
    void cover(int32_t first, int32_t stop, std::vector<int32_t>& out) {
      while (first < stop) {
        int32_t size = 1;
        while (first % (2 * size) == 0 && first + 2 * size <= stop) size *= 2;
        out.push_back(block(first, size));
        first += size;
      }
    }

   private:
    int32_t add(int32_t left, int32_t right, int32_t first, int32_t stop) {
      parts_.insert(parts_.end(), {left, right});
      range_.insert(range_.end(), {first, stop});
      return static_cast<int32_t>(parts_.size() / 2) - 1;
    }
    int32_t block(int32_t first, int32_t size) {
      if (size == 1) return first;
      const int64_t key = int64_t{first} << 32 | size;
      const auto found = made_.find(key);
      if (found != made_.end()) return found->second;
      const int32_t left = block(first, size / 2), right = block(first + size / 2, size / 2);
      return made_[key] = add(left, right, first, first + size);
    }

    std::vector<int32_t>&parts_, &range_;
    std::unordered_map<int64_t, int32_t> made_;
  };

  void add_extent(int32_t pattern, int32_t parent, int32_t label) {
    extent_pattern_.push_back(pattern);
    extent_parent_.push_back(parent);
    extent_label_.push_back(label);
  }

  TopologyView view_;
  std::vector<int64_t> key_arcs_, state_keys_;
  std::vector<int32_t> arc_source_, arc_start_, node_parts_, node_range_, key_target_, key_extent_, key_label_,
      key_end_;
  std::vector<int32_t> start_pattern_, start_parent_, extent_pattern_, extent_parent_, extent_label_;
  std::vector<int32_t> end_pattern_, end_parent_;
};

}  // namespace scansion
