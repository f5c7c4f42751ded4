// Which label patterns live at which position, for the Sum-Difference engine (paper 002, section 1.2.1 and algorithm 1;
// docs/notation.md, section 1).
//
// P_t holds the labels, every pattern with a feature that fires at t, and the prefixes that later positions need: z
// firing at t' puts its first |z| - (t' - t) symbols into P_t. Patterns with an always-on feature fire everywhere: their
// part of P_t, the base, depends on t only near the start, where long patterns do not fit yet, and all sequences share
// it. What attributes add to the base at a position, the extras, is kept as three lists of numbers; equal lists are one.
//
// A pattern that begins with BOS and has n symbols lives at t = n - 2 only. The end of the sequence is one more
// position with one root, EOS, if patterns know it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pattern_strings.hpp"
#include "views.hpp"

namespace scansion {

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
    for (auto& nodes_below : below)
      std::stable_partition(nodes_below.begin(), nodes_below.end(), [&](int32_t i) { return !below[i].empty(); });
    std::vector<int32_t> order, suffix(roots, -1), label, children, leaves, string(roots, -1);
    for (int32_t r = 0; r < roots; ++r) order.push_back(r), label.push_back(r);
    for (size_t n = 0; n < order.size(); ++n) {
      children.push_back(static_cast<int32_t>(order.size()));
      leaves.push_back(children.back());
      for (const int32_t i : below[order[n]]) {
        leaves.back() += below[i].empty() ? 0 : 1;
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
      if (n < roots || inner) {
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

    std::vector<int32_t> state_inner(state_node);
    for (int32_t& n : state_inner)
      if (n < 0 || children[n] == children[n + 1]) n = 0;

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
    const std::pair<const std::vector<int32_t>*, const int32_t**> parts[] = {
        {&suffix, &view_.suffix},
        {&prefix, &view_.prefix},
        {&label, &view_.label},
        {&children, &view_.children},
        {&leaves, &view_.leaves},
        {&inner_node, &view_.inner_node},
        {&state_node, &view_.state_node},
        {&state_inner, &view_.state_inner},
        {&node_state, &view_.node_state},
        {&label_states, &view_.label_states},
        {&active_node, &view_.active_node},
        {&active_state, &view_.active_state},
        {&active_prefix, &view_.active_prefix},
        {&active_suffix, &view_.active_suffix},
        {&slot_state, &view_.slot_state},
        {&entries, &view_.entries},
        {&entry_node, &view_.entry_node},
        {&entry_suffix, &view_.entry_suffix},
        {&state_entries, &view_.state_entries},
        {&state_entry, &view_.state_entry},
        {&pattern, &pattern_},
    };
    size_t total = 0;
    for (const auto& part : parts) total += part.first->size();
    block_.reserve(total);
    for (const auto& part : parts) {
      *part.second = block_.data() + block_.size();
      block_.insert(block_.end(), part.first->begin(), part.first->end());
    }
  }
  PatternSet(const PatternSet&) = delete;
  PatternSet& operator=(const PatternSet&) = delete;

  // the state that a string is in the set `before`, null: the start; -1: none
  static int32_t state_before(const PatternStrings& all, const PatternSet* before, int32_t string) {
    if (string == all.root()) return 0;
    if (!before) return 1;  // BOS
    if (all.length(string) == 1) return 1 + all.last(string);
    return before->state(string);
  }

  const PatternSetView& view() const { return view_; }
  // the pattern that node n is, or -1; labels have -1, their scores are elsewhere
  int32_t pattern(int64_t n) const { return pattern_[n]; }
  // the node of a string that lives here, or -1
  int32_t node(int32_t string) const { return find(node_of_, string); }
  // the state of a string of two symbols or more, or -1
  int32_t state(int32_t string) const { return find(state_of_, string); }
  int64_t bytes() const {
    return static_cast<int64_t>(sizeof *this +
                                sizeof(int32_t) * (block_.size() + 2 * (node_of_.size() + state_of_.size())));
  }

 private:
  static int32_t find(const Places& places, int32_t string) {
    const auto i = std::lower_bound(places.begin(), places.end(), std::pair<int32_t, int32_t>(string, -1));
    return i != places.end() && i->first == string ? i->second : -1;
  }
  PatternSetView view_;
  const int32_t* pattern_ = nullptr;
  std::vector<int32_t> block_;
  Places node_of_, state_of_;
};

// The sets of all positions of a data set.
class PatternSets {
 public:
  // always (patterns,): patterns that fire at every position. extras: there will be some. matrix (patterns,): pairs of
  // labels that fire at every position too, but are nodes only where extras need them; then no base pattern has three
  // symbols. Empty: none.
  PatternSets(const PatternAutomaton& net, const std::vector<uint8_t>& always, bool extras,
              const std::vector<uint8_t>& matrix = {})
      : all_(net), matrix_(static_cast<size_t>(all_.size()), 0) {
    for (size_t z = 0; z < matrix.size(); ++z)
      if (matrix[z]) matrix_[all_.string(static_cast<int64_t>(z))] = 1, dense_ = true;
    std::vector<uint8_t> in(static_cast<size_t>(all_.size()), 0);
    std::vector<int32_t> found;
    for (int64_t z = 0; z < net.patterns(); ++z)
      if (always[z] && net.pattern_length(z) > 1) put(in, found, all_.string(z));
    // no extra is a suffix of what the base has: extras hang below the base, whose links stay as they are
    for (size_t i = 0; extras && i < found.size(); ++i)
      for (int32_t s = all_.suffix(found[i]); s >= 0 && s != all_.root(); s = all_.suffix(s)) put(in, found, s);
    std::vector<int32_t> body, end, states;
    std::vector<uint8_t> prefix(static_cast<size_t>(all_.size()), 0);
    for (const int32_t s : found) {
      if (all_.last(s) == kEos)
        end.push_back(s);
      else if (all_.length(s) > 1)
        body.push_back(s);
      prefix[all_.prefix(s)] = 1;
    }
    std::sort(body.begin(), body.end());
    std::sort(end.begin(), end.end());
    for (const int32_t s : body)
      if (prefix[s]) states.push_back(s);
    const auto fitting = [&](const std::vector<int32_t>& strings, int64_t t) {
      std::vector<int32_t> out;
      for (const int32_t s : strings)
        if (fits(s, t)) out.push_back(s);
      return out;
    };
    for (int64_t t = 0; t <= all_.longest(); ++t)
      base_.push_back(std::make_unique<PatternSet>(all_, fitting(body, t), fitting(states, t),
                                                   t ? base_.back().get() : nullptr, false));
    for (int64_t T = 1; has_end() && T <= all_.longest(); ++T)
      ends_.push_back(
          std::make_unique<PatternSet>(all_, fitting(end, T), std::vector<int32_t>(), base_[T - 1].get(), true));
  }

  const PatternStrings& strings() const { return all_; }
  bool has_end() const { return !all_.end_patterns().empty(); }
  // positions that have a set, of a sequence of length T
  int64_t positions(int64_t T) const { return T + (T > 0 && has_end() ? 1 : 0); }
  // whether a string can end at position t; one with EOS: whether its sequence can have length t
  bool fits(int32_t s, int64_t t) const {
    if (all_.last(s) != kEos) return all_.fits(s, t);
    return all_.prefix(s) == all_.root() || all_.fits(all_.prefix(s), t - 1);
  }

  // base sets, of positions and then of ends
  int64_t count() const { return static_cast<int64_t>(base_.size() + ends_.size()); }
  const PatternSet& set(int64_t i) const {
    return i < static_cast<int64_t>(base_.size()) ? *base_[i] : *ends_[i - static_cast<int64_t>(base_.size())];
  }
  // number of the base set of position t of T, t = T being the end
  int32_t base(int64_t t, int64_t T) const {
    const int64_t n = all_.longest();
    return static_cast<int32_t>(t < T ? std::min(t, n) : static_cast<int64_t>(base_.size()) + std::min(T, n) - 1);
  }

  // whether base set i is one of positions whose pairs are in the matrix
  bool dense(int64_t i) const { return dense_ && i > 0 && i < static_cast<int64_t>(base_.size()); }

  // Extras of one position: their strings, by length and number, and those that the next position asks for.
  struct Extras {
    std::vector<int32_t> nodes, states;
    int32_t pairs = 0;  // nodes of two labels, the first ones; 0 without a matrix
  };
  // fired[t] for t = 0 .. T (the end): strings of patterns that fire there beside those that always do, all fitting.
  std::vector<Extras> extras(int64_t T, std::vector<std::vector<int32_t>> fired) const {
    std::vector<Extras> out(static_cast<size_t>(positions(T)));
    std::vector<int32_t> wanted;  // what t + 1 needs, its base not counted
    for (int64_t t = positions(T) - 1; t >= 0; --t) {
      const PatternSet& here = set(base(t, T));
      std::vector<int32_t>& nodes = out[t].nodes;
      for (const int32_t s : wanted)
        if (here.state(s) < 0) out[t].states.push_back(s);
      nodes = std::move(fired[t]);
      nodes.insert(nodes.end(), wanted.begin(), wanted.end());
      nodes.erase(std::remove_if(nodes.begin(), nodes.end(), [&](int32_t s) { return here.node(s) >= 0; }),
                  nodes.end());
      for (size_t i = 0, n = nodes.size(); dense_ && i < n; ++i) {
        int32_t s = nodes[i];
        while (s >= 0 && all_.length(s) > 2) s = all_.suffix(s);
        if (s >= 0 && matrix_[s]) nodes.push_back(s);
      }
      std::sort(nodes.begin(), nodes.end(), [&](int32_t a, int32_t b) { return before(a, b); });
      nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
      while (dense(base(t, T)) && out[t].pairs < static_cast<int32_t>(nodes.size()) &&
             all_.length(nodes[out[t].pairs]) == 2)
        ++out[t].pairs;
      wanted.clear();
      for (const int32_t s : nodes)
        if (all_.length(all_.prefix(s)) > 1) wanted.push_back(all_.prefix(s));
      std::sort(wanted.begin(), wanted.end());
      wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    }
    return out;
  }
  // the node of a string at position t of T
  int32_t node(const Extras& here, int64_t t, int64_t T, int32_t string) const {
    const PatternSet& base_set = set(base(t, T));
    const int32_t n = base_set.node(string);
    return n >= 0 ? n : base_set.view().nodes + extra(here.nodes, string);
  }
  // The numbers of the extras of position t of T: suffixes, prefixes; nodes and labels of states; all in one vector.
  void links(const std::vector<Extras>& sequence, int64_t t, int64_t T, std::vector<int32_t>& out) const {
    const Extras& here = sequence[t];
    const PatternSet& base_set = set(base(t, T));
    const bool end = t == T;
    out.clear();
    for (const int32_t string : here.nodes) {
      int32_t s = all_.suffix(string), n = -1;
      for (; n < 0 && s >= 0 && all_.length(s) > 1; s = all_.suffix(s)) {
        n = base_set.node(s);
        if (n < 0 && extra(here.nodes, s) >= 0) n = base_set.view().nodes + extra(here.nodes, s);
      }
      out.push_back(n >= 0 ? n : end ? 0 : all_.last(string));
    }
    for (const int32_t string : here.nodes) {
      const PatternSet* earlier = t ? &set(base(t - 1, T)) : nullptr;
      const int32_t p = all_.prefix(string), k = PatternSet::state_before(all_, earlier, p);
      if (k >= 0) {
        out.push_back(k);
        continue;
      }
      const std::vector<int32_t>& states = sequence[t - 1].states;
      const auto i = std::lower_bound(states.begin(), states.end(), p);
      out.push_back(earlier->view().states + static_cast<int32_t>(i - states.begin()));
    }
    for (const int32_t string : here.states) out.push_back(node(here, t, T, string));
    for (const int32_t string : here.states) out.push_back(all_.last(string));
  }

 private:
  bool before(int32_t a, int32_t b) const {  // suffixes first
    return all_.length(a) != all_.length(b) ? all_.length(a) < all_.length(b) : a < b;
  }
  // place of a string among extras, or -1
  int32_t extra(const std::vector<int32_t>& nodes, int32_t s) const {
    const auto i = std::lower_bound(nodes.begin(), nodes.end(), s, [&](int32_t a, int32_t b) { return before(a, b); });
    return i != nodes.end() && *i == s ? static_cast<int32_t>(i - nodes.begin()) : -1;
  }
  // a string and its prefixes
  void put(std::vector<uint8_t>& in, std::vector<int32_t>& found, int32_t s) const {
    for (; s != all_.root() && !in[s]; s = all_.prefix(s)) in[s] = 1, found.push_back(s);
  }

  PatternStrings all_;
  bool dense_ = false;
  std::vector<uint8_t> matrix_;                           // (strings,)
  std::vector<std::unique_ptr<PatternSet>> base_, ends_;  // by position; by length - 1: up to the longest pattern
};

// Extras of many positions, stored once where they are equal.
class LocalSets {
 public:
  explicit LocalSets(const PatternSets& sets) : sets_(sets) {}

  // a set, by number: base set with extras, whose links are `links`
  int32_t add(int32_t base, const PatternSets::Extras& extras, const std::vector<int32_t>& links) {
    uint64_t hash = static_cast<uint64_t>(base) * 31 + extras.nodes.size();
    for (const int32_t x : links) hash = (hash ^ static_cast<uint32_t>(x)) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
    const Place place{base, static_cast<int32_t>(extras.nodes.size()), static_cast<int32_t>(extras.states.size()),
                      extras.pairs, static_cast<int64_t>(pool_.size())};
    const auto same = index_.equal_range(hash);
    for (auto i = same.first; i != same.second; ++i) {
      const Place& p = places_[i->second];
      if (p.base == base && p.nodes == place.nodes && p.states == place.states &&
          std::equal(links.begin(), links.end(), pool_.begin() + p.at))
        return i->second;
    }
    index_.emplace(hash, static_cast<int32_t>(places_.size()));
    places_.push_back(place);
    pool_.insert(pool_.end(), links.begin(), links.end());
    return static_cast<int32_t>(places_.size()) - 1;
  }
  // all sets are there
  void finish() {
    std::unordered_multimap<uint64_t, int32_t>().swap(index_);
    pool_.shrink_to_fit();
  }

  int64_t count() const { return static_cast<int64_t>(places_.size()); }
  int64_t bytes() const {
    return static_cast<int64_t>(pool_.size() * sizeof(int32_t) + places_.size() * sizeof(Place));
  }
  LocalPatternsView view(int64_t i) const {
    const Place& p = places_[i];
    return view(sets_, p, pool_.data() + p.at);
  }
  // a set that is not stored here; links may be null if there are no extras
  static LocalPatternsView view(const PatternSets& sets, int32_t base, const PatternSets::Extras& extras,
                                const int32_t* links) {
    return view(
        sets,
        {base, static_cast<int32_t>(extras.nodes.size()), static_cast<int32_t>(extras.states.size()), extras.pairs, 0},
        links);
  }

 private:
  struct Place {
    int32_t base, nodes, states, pairs;
    int64_t at;
  };
  static LocalPatternsView view(const PatternSets& sets, const Place& p, const int32_t* links) {
    LocalPatternsView v;
    v.base = &sets.set(p.base).view();
    v.nodes = v.base->nodes + p.nodes;
    v.states = v.base->states + p.states;
    v.dense = sets.dense(p.base);
    v.pairs = p.pairs;
    if (!links) return v;
    v.suffix = links;
    v.prefix = links + p.nodes;
    v.state_node = links + 2 * p.nodes;
    v.state_label = links + 2 * p.nodes + p.states;
    return v;
  }

  const PatternSets& sets_;
  std::vector<Place> places_;
  std::vector<int32_t> pool_;
  std::unordered_multimap<uint64_t, int32_t> index_;
};

}  // namespace scansion
