// Which label patterns live at which position, for the Sum-Difference engine (paper 002, section 1.2.1 and algorithm 1;
// models.md, section 1).
//
// P_t holds the labels, every pattern with a feature that fires at t, and the prefixes that later positions need: z
// firing at t' puts its first |z| - (t' - t) symbols into P_t. Patterns with an always-on feature fire everywhere, so
// their part of P_t, the base, depends on t only near the start, where long patterns do not fit yet. Sets are built
// once for a data set; positions with equal sets, equal states and an equal set before them share one.
//
// A pattern that begins with BOS and has n symbols lives at t = n - 2 only. The end of the sequence is one more
// position with one root, EOS, if patterns know it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "pattern_automaton.hpp"

namespace scansion {

// All symbol strings that can be in a set: the automaton's states, and the patterns that are no states.
class PatternStrings {
 public:
  explicit PatternStrings(const PatternAutomaton& net) : labels_(net.labels()) {
    const int64_t S = net.states(), P = net.patterns();
    root_ = net.root();
    for (int64_t p = 0; p < S; ++p)
      add(net.state_parent(p), net.state_suffix(p), net.state_last(p), net.length(p));
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

// One set with its arrays, in one block.
class PatternSet {
 public:
  using Places = std::vector<std::pair<int32_t, int32_t>>;  // (string, place), sorted

  // strings: what lives here beside the labels (or the end), sorted; wanted: which of them are states, sorted;
  // before: the set one position earlier, or null: the start.
  PatternSet(const PatternStrings& all, const std::vector<int32_t>& strings, const std::vector<int32_t>& wanted,
             const PatternSet* before, bool end) {
    const int32_t roots = end ? 1 : static_cast<int32_t>(all.labels());
    const int32_t longer = static_cast<int32_t>(strings.size()), nodes = roots + longer;
    const auto place = [&](int32_t s) {
      const auto i = std::lower_bound(strings.begin(), strings.end(), s);
      return i != strings.end() && *i == s ? static_cast<int32_t>(i - strings.begin()) : -1;
    };
    // the suffix tree, roots first; then its nodes by depth, children of a node side by side
    std::vector<std::vector<int32_t>> below(static_cast<size_t>(nodes));
    for (int32_t i = 0; i < longer; ++i) {
      int32_t s = all.suffix(strings[i]);
      while (s >= 0 && place(s) < 0) s = all.suffix(s);
      below[s >= 0 ? roots + place(s) : end ? 0 : all.last(strings[i])].push_back(roots + i);
    }
    std::vector<int32_t> order, suffix(roots, -1), label, children, string(roots, -1);
    for (int32_t r = 0; r < roots; ++r) order.push_back(r), label.push_back(r);
    for (size_t n = 0; n < order.size(); ++n) {
      children.push_back(static_cast<int32_t>(order.size()));
      for (const int32_t i : below[order[n]]) {
        order.push_back(i);
        label.push_back(label[n]);
        suffix.push_back(static_cast<int32_t>(n));
        string.push_back(strings[i - roots]);
      }
    }
    children.push_back(nodes);
    for (int32_t n = roots; n < nodes; ++n) node_of_.push_back({string[n], n});
    std::sort(node_of_.begin(), node_of_.end());

    std::vector<int32_t> state_node = {-1}, node_state(nodes);
    const int32_t states = 1 + roots + static_cast<int32_t>(wanted.size());
    std::fill(node_state.begin(), node_state.end(), states);
    for (int32_t r = 0; r < roots; ++r) node_state[r] = 1 + r, state_node.push_back(r);
    for (const int32_t s : wanted) {
      node_state[node(s)] = static_cast<int32_t>(state_node.size());
      state_of_.push_back({s, node_state[node(s)]});
      state_node.push_back(node(s));
    }

    std::vector<int32_t> inner_node, active_node, active_suffix, node_active(nodes, -1);
    for (int32_t n = 0; n < nodes; ++n) {
      const bool inner = children[n] < children[n + 1];
      if (n >= roots && inner) inner_node.push_back(n);
      if (n < roots || inner || node_state[n] < states) {
        node_active[n] = static_cast<int32_t>(active_node.size());
        active_node.push_back(n);
        active_suffix.push_back(suffix[n] < 0 ? -1 : node_active[suffix[n]]);
      }
    }

    std::vector<int32_t> depth(nodes, 0);
    for (int32_t n = roots; n < nodes; ++n) depth[n] = depth[suffix[n]] + 1;
    std::stable_sort(inner_node.begin(), inner_node.end(), [&](int32_t a, int32_t b) {
      return depth[a] != depth[b] ? depth[a] < depth[b] : children[a + 1] - children[a] < children[b + 1] - children[b];
    });

    // strings are sorted by their symbols read backwards, so states that end in a label are side by side
    std::vector<int32_t> label_states(roots + 1, 1 + roots);
    for (int32_t k = 1 + roots; k < states; ++k) label_states[label[state_node[k]] + 1] = k + 1;
    for (int32_t r = 0; r < roots; ++r) label_states[r + 1] = std::max(label_states[r + 1], label_states[r]);

    const int32_t before_states = before ? before->view_.states : all.any_bos() ? 2 : 1;
    std::vector<int32_t> prefix(nodes, 0), count(before_states, 0), state_count(before_states, 0);
    for (int32_t n = roots; n < nodes; ++n) {
      prefix[n] = state_before(all, before, all.prefix(string[n]));
      ++count[prefix[n]];
      if (node_state[n] < states) ++state_count[prefix[n]];
    }
    // loops of equal length follow each other, so that their ends are foreseen
    std::vector<int32_t> slot_state(before_states), slot(before_states);
    std::iota(slot_state.begin(), slot_state.end(), 0);
    std::stable_sort(slot_state.begin(), slot_state.end(), [&](int32_t a, int32_t b) {
      return count[a] != count[b] ? count[a] < count[b] : state_count[a] < state_count[b];
    });
    std::vector<int32_t> entries = {0}, state_entries = {0};
    for (int32_t j = 0; j < before_states; ++j) {
      slot[slot_state[j]] = j;
      entries.push_back(entries[j] + count[slot_state[j]]);
      state_entries.push_back(state_entries[j] + state_count[slot_state[j]]);
    }
    std::vector<int32_t> entry_node(longer), entry_suffix(longer), state_entry(wanted.size());
    std::vector<int32_t> at(entries), state_at(state_entries);
    for (int32_t n = roots; n < nodes; ++n) {
      const int32_t k = at[slot[prefix[n]]]++;
      entry_node[k] = n;
      entry_suffix[k] = node_active[suffix[n]];
      if (node_state[n] < states) state_entry[state_at[slot[prefix[n]]]++] = node_state[n];
    }
    std::vector<int32_t> active_state, active_prefix;
    for (const int32_t n : active_node) active_state.push_back(node_state[n]), active_prefix.push_back(prefix[n]);
    std::vector<int32_t> pattern(nodes, -1);
    for (int32_t n = roots; n < nodes; ++n) pattern[n] = all.pattern(string[n]);

    view_.nodes = nodes;
    view_.roots = roots;
    view_.states = states;
    view_.active = static_cast<int32_t>(active_node.size());
    view_.before = before_states;
    view_.inner = static_cast<int32_t>(inner_node.size());
    const std::vector<int32_t>* parts[] = {&suffix,      &prefix,       &label,      &children,    &inner_node,
                                           &state_node,  &node_state,   &active_node, &active_suffix, &node_active,
                                           &entries,     &entry_node,   &entry_suffix, &state_entries, &state_entry,
                                           &pattern,     &label_states, &active_state, &active_prefix, &slot_state};
    const int32_t** pointers[] = {&view_.suffix,     &view_.prefix,     &view_.label,        &view_.children,
                                  &view_.inner_node, &view_.state_node, &view_.node_state,   &view_.active_node,
                                  &view_.active_suffix, &view_.node_active, &view_.entries,  &view_.entry_node,
                                  &view_.entry_suffix, &view_.state_entries, &view_.state_entry, &pattern_,
                                  &view_.label_states, &view_.active_state, &view_.active_prefix, &view_.slot_state};
    size_t total = 0;
    for (const auto* part : parts) total += part->size();
    block_.reserve(total);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; ++i) {
      *pointers[i] = block_.data() + block_.size();
      block_.insert(block_.end(), parts[i]->begin(), parts[i]->end());
    }
  }
  PatternSet(const PatternSet&) = delete;
  PatternSet& operator=(const PatternSet&) = delete;

  const PatternSetView& view() const { return view_; }
  // the pattern that node n is, or -1; labels have -1, their scores are elsewhere
  int32_t pattern(int64_t n) const { return pattern_[n]; }
  // the node of a string that lives here
  int32_t node(int32_t string) const { return find(node_of_, string); }
  int64_t bytes() const {
    return static_cast<int64_t>(sizeof *this + sizeof(int32_t) * (block_.size() + 2 * (node_of_.size() + state_of_.size())));
  }

 private:
  static int32_t find(const Places& places, int32_t string) {
    return std::lower_bound(places.begin(), places.end(), std::pair<int32_t, int32_t>(string, -1))->second;
  }
  static int32_t state_before(const PatternStrings& all, const PatternSet* before, int32_t string) {
    if (string == all.root()) return 0;
    if (!before) return 1;  // BOS
    if (all.length(string) == 1) return 1 + all.last(string);
    return find(before->state_of_, string);
  }

  PatternSetView view_;
  const int32_t* pattern_ = nullptr;
  std::vector<int32_t> block_;
  Places node_of_, state_of_;
};

// The sets of all positions of a data set.
class PatternSets {
 public:
  // always (patterns,): patterns that fire at every position
  PatternSets(const PatternAutomaton& net, const std::vector<uint8_t>& always) : all_(net) {
    std::vector<uint8_t> in(static_cast<size_t>(all_.size()), 0);
    for (int64_t z = 0; z < net.patterns(); ++z)
      if (always[z] && net.pattern_length(z) > 1) put(in, net.ends(z) ? all_.prefix(all_.string(z)) : all_.string(z));
    for (int32_t s = 0; s < all_.size(); ++s)
      if (in[s]) base_.push_back(s);
    for (const int32_t z : all_.end_patterns())
      if (always[z]) base_end_.push_back(all_.string(z));
    std::vector<uint8_t> prefix(static_cast<size_t>(all_.size()), 0);
    for (const int32_t s : base_) prefix[all_.prefix(s)] = 1;
    for (const int32_t s : base_end_) prefix[all_.prefix(s)] = 1;
    for (const int32_t s : base_)
      if (prefix[s]) base_states_.push_back(s);
  }

  const PatternStrings& strings() const { return all_; }
  bool has_end() const { return !all_.end_patterns().empty(); }
  int64_t count() const { return static_cast<int64_t>(sets_.size()); }
  const PatternSet& set(int64_t i) const { return *sets_[i]; }
  int64_t bytes() const {
    int64_t sum = 0;
    for (const auto& s : sets_) sum += s->bytes();
    return sum;
  }

  // The sets of one sequence of T > 0 positions, as indices: one for each position, and one for its end if has_end().
  // fired[t]: strings of patterns that fire at t beside those that always do, sorted, all of them fitting there;
  // empty vector of vectors: none. Strings of end patterns are in fired[T], which may be missing.
  std::vector<int32_t> sequence(int64_t T, const std::vector<std::vector<int32_t>>& fired) {
    std::vector<std::vector<int32_t>> alive(static_cast<size_t>(T) + 1), states(static_cast<size_t>(T) + 1);
    std::vector<int32_t> next;  // what t + 1 needs beside the base
    for (int64_t t = T; t >= 0; --t) {
      std::vector<int32_t>& here = alive[t];
      here = std::move(next);
      states[t] = here;
      if (t < static_cast<int64_t>(fired.size())) here.insert(here.end(), fired[t].begin(), fired[t].end());
      sort_unique(here);
      next.clear();
      for (const int32_t s : here)
        if (all_.length(all_.prefix(s)) > 1) next.push_back(all_.prefix(s));
      sort_unique(next);
    }
    std::vector<int32_t> out;
    int32_t before = -1;  // set one position earlier
    for (int64_t t = 0; t < T + (has_end() ? 1 : 0); ++t) {
      const bool end = t == T;
      const int64_t kind = end ? -1 - std::min(T, all_.longest()) : std::min(t, all_.longest());
      const Key key{kind, before < 0 ? -1 : states_of_[before], alive[t], states[t]};
      auto found = index_.find(key);
      if (found == index_.end()) {
        std::vector<int32_t> strings = alive[t], wanted = states[t];
        if (end) {
          for (const int32_t s : base_end_)
            if (fits_before(all_.prefix(s), T)) strings.push_back(s);
        } else {
          for (const int32_t s : base_)
            if (all_.length(s) > 1 && all_.fits(s, t)) strings.push_back(s);
          for (const int32_t s : base_states_)
            if (all_.length(s) > 1 && all_.fits(s, t)) wanted.push_back(s);
        }
        sort_unique(strings);
        sort_unique(wanted);
        sets_.push_back(std::make_unique<PatternSet>(all_, strings, wanted, before < 0 ? nullptr : sets_[before].get(), end));
        states_of_.push_back(state_lists_.emplace(wanted, static_cast<int32_t>(state_lists_.size())).first->second);
        found = index_.emplace(key, static_cast<int32_t>(sets_.size()) - 1).first;
      }
      before = found->second;
      out.push_back(before);
    }
    return out;
  }

 private:
  struct Key {
    int64_t kind;    // position, up to the longest pattern; negative: the end
    int32_t before;  // states of the set before, by number
    std::vector<int32_t> alive, states;
    bool operator<(const Key& o) const {
      if (kind != o.kind) return kind < o.kind;
      if (before != o.before) return before < o.before;
      return alive != o.alive ? alive < o.alive : states < o.states;
    }
  };
  static void sort_unique(std::vector<int32_t>& v) {
    std::sort(v.begin(), v.end());
    v.erase(std::unique(v.begin(), v.end()), v.end());
  }
  void put(std::vector<uint8_t>& in, int32_t s) const {
    for (; s != all_.root() && !in[s]; s = all_.prefix(s)) in[s] = 1;
  }
  // whether a string can stand at the last of T positions
  bool fits_before(int32_t s, int64_t T) const { return s == all_.root() ? true : all_.fits(s, T - 1); }

  PatternStrings all_;
  std::vector<int32_t> base_, base_end_, base_states_;
  std::vector<std::unique_ptr<PatternSet>> sets_;
  std::map<Key, int32_t> index_;
  std::map<std::vector<int32_t>, int32_t> state_lists_;
  std::vector<int32_t> states_of_;  // (sets,) number of a set's list of states
};

}  // namespace scansion
