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
template <class T, class... More>
using Out = nb::ndarray<T, nb::numpy, nb::c_contig, nb::device::cpu, More...>;
// Arrays over bytes from elsewhere (unpickled, mapped, a field of a record) may lie at odd addresses: these are copied.
template <class T, class... More>
struct In : Out<const T, More...> {
  using Out<const T, More...>::Out;
  In(const Out<const T, More...>& array) : Out<const T, More...>(array) {}
  bool aligned() const { return reinterpret_cast<uintptr_t>(this->data()) % alignof(T) == 0; }
};
using Doubles = In<double>;
using DoublesOut = Out<double>;
using Int64s = In<int64_t>;
using Int64sOut = Out<int64_t>;
using Int32s = In<int32_t>;
using Int8s = In<int8_t>;
using Bytes = In<uint8_t>;

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

template <class T, class... More>
struct nanobind::detail::type_caster<scansion::In<T, More...>> {
  using Given = scansion::In<T, More...>;
  using Array = make_caster<scansion::Out<const T, More...>>;
  NB_TYPE_CASTER(Given, Array::Name)

  template <class Flags>
  bool from_python(handle source, Flags flags, cleanup_list* cleanup) noexcept {
    Array array;
    if (!array.from_python(source, flags, cleanup)) return false;
    value = array.value;
    if (value.aligned()) return true;
    object copy = steal(PyObject_CallMethod(source.ptr(), "copy", nullptr));
    if (!copy.is_valid()) PyErr_Clear();
    if (!copy.is_valid() || !array.from_python(copy, flags, cleanup)) return false;
    value = array.value;
    return true;
  }
};
