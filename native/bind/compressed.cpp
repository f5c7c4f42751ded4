#include "bind/lattices.hpp"
#include "places.hpp"

namespace scansion {
namespace {

using Int32Array = nb::ndarray<nb::numpy, int32_t>;

std::tuple<Int32Array, Int64Array, Int32Array> patterns_of_places(const Int32s& symbols, const Int64s& offsets,
                                                                  const Int32s& trajectory, bool merge) {
  PlacePatterns out = place_patterns(symbols.data(), offsets.data(), static_cast<int64_t>(offsets.size()) - 1,
                                     trajectory.data(), static_cast<int32_t>(trajectory.size()), merge);
  const size_t n = out.symbols.size(), m = out.offsets.size(), p = out.column.size();
  return {to_numpy(std::move(out.symbols), {n}), to_numpy(std::move(out.offsets), {m}),
          to_numpy(std::move(out.column), {p})};
}

}  // namespace

void bind_compressed(nb::module_& m) {
  m.def("place_patterns", &patterns_of_places, nb::arg("symbols"), nb::arg("offsets"), nb::arg("trajectory"),
        nb::arg("merge"), "Patterns of places, and for each the label pattern whose score it takes (-1: forbidden).");
}

}  // namespace scansion
