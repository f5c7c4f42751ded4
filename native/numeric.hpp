// Numbers that everybody needs: the infinities, whole vectors.
#pragma once

#include <cstdint>
#include <limits>

namespace scansion {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMinusInfinity = -kInfinity;

// n rounded up to whole vectors of four doubles
constexpr int64_t padded4(int64_t n) { return (n + 3) / 4 * 4; }

}  // namespace scansion
