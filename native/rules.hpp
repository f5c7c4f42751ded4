// Rules over whole sequences (docs/notation.md, section 5): deterministic automata that read a configuration's labels.
#pragma once

#include <cstdint>

namespace scansion {

// State 0 is the first; next (states, labels) has -1 where no continuation can be accepted.
struct RuleMachine {
  int64_t states = 0;
  const int32_t* next = nullptr;
  const uint8_t* accepting = nullptr;  // (states,)

  bool accepts(const int64_t* first, const int64_t* last, int64_t stride, int64_t labels) const {
    int32_t q = 0;
    for (; first < last; first += stride) {
      q = next[q * labels + *first];
      if (q < 0) return false;
    }
    return accepting[q];
  }
};

}  // namespace scansion
