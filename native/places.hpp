// The lattice of a trajectory: labels become places of the trajectory, so that a configuration of places is a
// configuration of labels that has it. A pattern z of labels that matches the trajectory from place i on is one
// pattern of places; moves that no configuration with this trajectory makes are patterns that are forbidden.
#pragma once

#include <cstdint>
#include <vector>

#include "pattern_automaton.hpp"

namespace scansion {

struct PlacePatterns {
  std::vector<int32_t> symbols;  // patterns of places, one after another
  std::vector<int64_t> offsets = {0};
  std::vector<int32_t>
      column;  // (patterns,) the label pattern whose score it takes, in order; -1, at the end: forbidden

  int64_t size() const { return static_cast<int64_t>(column.size()); }
};

// Patterns of labels as in PatternAutomaton, in whose order theirs come. merge: a place is a run of equal
// labels (neighbouring places differ); else a place is one segment.
inline PlacePatterns place_patterns(const int32_t* symbols, const int64_t* offsets, int64_t patterns,
                                    const int32_t* trajectory, int32_t places, bool merge) {
  PlacePatterns out;
  std::vector<int32_t> body;
  const auto add = [&](int64_t column) {
    out.symbols.insert(out.symbols.end(), body.begin(), body.end());
    out.offsets.push_back(static_cast<int64_t>(out.symbols.size()));
    out.column.push_back(static_cast<int32_t>(column));
  };
  const auto map = [&](int64_t z) {
    const int32_t* first = symbols + offsets[z];
    const int32_t* last = symbols + offsets[z + 1];
    const bool begins = *first == kBos, ends = last[-1] == kEos;
    if (begins) ++first;
    if (ends) --last;
    for (int32_t start = 0; start < (begins ? 1 : places); ++start) {
      body.clear();
      if (begins) body.push_back(kBos);
      int32_t at = start;
      bool fits = trajectory[at] == *first;
      body.push_back(at);
      for (const int32_t* y = first + 1; fits && y < last; ++y) {
        if (!merge || *y != trajectory[at]) ++at;
        fits = at < places && trajectory[at] == *y;
        body.push_back(at);
      }
      if (!fits || (ends && at != places - 1)) continue;
      if (ends) body.push_back(kEos);
      add(z);
    }
  };
  for (int64_t z = 0; z < patterns; ++z) map(z);
  for (int32_t i = 0; i < places; ++i)
    for (int32_t j = 0; j < places; ++j)
      if (j != i + 1 && (j != i || !merge)) {
        body = {i, j};
        add(-1);
      }
  return out;
}

}  // namespace scansion
