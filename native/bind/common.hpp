// Shared by the bindings: array types, and answers that become NumPy arrays without a copy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "encoder.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace nb = nanobind;

namespace scansion {

// Inputs are C-contiguous and checked in Python; outputs are allocated there too.
using Doubles = nb::ndarray<const double, nb::numpy, nb::c_contig, nb::device::cpu>;
using DoublesOut = nb::ndarray<double, nb::numpy, nb::c_contig, nb::device::cpu>;
using Int64s = nb::ndarray<const int64_t, nb::numpy, nb::c_contig, nb::device::cpu>;
using Int64sOut = nb::ndarray<int64_t, nb::numpy, nb::c_contig, nb::device::cpu>;
using Int32s = nb::ndarray<const int32_t, nb::numpy, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const uint8_t, nb::numpy, nb::c_contig, nb::device::cpu>;

template <class T, class Array>
const T* data_or_null(const std::optional<Array>& array) {
  return array ? array->data() : nullptr;
}
inline double* out_or_null(const std::optional<DoublesOut>& array) { return array ? array->data() : nullptr; }

// Gives the vector to NumPy.
template <class T>
nb::ndarray<nb::numpy, T> to_numpy(std::vector<T>&& values, std::initializer_list<size_t> shape) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T>(owned->data(), shape, owner);
}

// The ragged arrays of a data set: offsets, token_offsets, ids, and values (None: all are 1).
inline nb::tuple dataset_arrays(Encoder& encoder) {
  const size_t b = encoder.offsets.size(), n = encoder.token_offsets.size(), nnz = encoder.ids.size();
  nb::object values = nb::none();
  if (encoder.weighted()) values = nb::cast(to_numpy(std::move(encoder.values), {nnz}));
  return nb::make_tuple(to_numpy(std::move(encoder.offsets), {b}), to_numpy(std::move(encoder.token_offsets), {n}),
                        to_numpy(std::move(encoder.ids), {nnz}), values);
}

// One more sequence of tokens for the encoder, read as _core.encode reads those of X.
void encode_one(Encoder& encoder, nb::handle sequence, const nb::callable& unusual);

void bind_automaton(nb::module_& m);
void bind_chain(nb::module_& m);
void bind_compressed(nb::module_& m);
void bind_encoder(nb::module_& m);
void bind_nested(nb::module_& m);
void bind_objective(nb::module_& m);
void bind_nested_objective(nb::module_& m);
void bind_quasi_newton(nb::module_& m);
void bind_segment(nb::module_& m);
void bind_sum_difference(nb::module_& m);
void bind_template(nb::module_& m);

}  // namespace scansion
