// Numbers that everybody needs: minus infinity, whole vectors.
#pragma once

#include <cstdint>
#include <limits>

namespace scansion {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// n rounded up to whole vectors of four doubles
constexpr int64_t padded4(int64_t n) { return (n + 3) / 4 * 4; }

}  // namespace scansion
