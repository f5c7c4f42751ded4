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
#include "lattice.hpp"

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

using Int64Array = nb::ndarray<nb::numpy, int64_t>;
using Packed = std::tuple<Int64Array, Int64Array, Int64Array>;

// Paths of many sequences as (segments (n, 3): start, stop, label; first segment of each path; first path of each
// sequence).
inline Packed pack(const std::vector<std::vector<Path>>& sequences) {
  std::vector<int64_t> steps, paths = {0}, firsts = {0};
  for (const auto& sequence : sequences) {
    for (const Path& path : sequence) {
      for (const Step& step : path) steps.insert(steps.end(), {step.start, step.stop, step.label});
      paths.push_back(static_cast<int64_t>(steps.size() / 3));
    }
    firsts.push_back(static_cast<int64_t>(paths.size()) - 1);
  }
  const size_t n = steps.size() / 3, m = paths.size(), b = firsts.size();
  return {to_numpy(std::move(steps), {n, 3}), to_numpy(std::move(paths), {m}), to_numpy(std::move(firsts), {b})};
}

// One question about single configurations for every sequence of a batch. Batch::on_graph(i, workspace, table, use) is
// on_chain or on_segments for sequence i; where nothing is possible there is no answer.
template <class Batch>
struct PathQuestions {
  static Packed best(const Batch& batch, int64_t threads) {
    std::vector<std::vector<Path>> out(batch.size());
    {
      nb::gil_scoped_release release;
      std::vector<Workspace> work(std::max<int64_t>(1, threads));
      parallel_for(batch.size(), threads, [&](int64_t i, int64_t worker) {
        out[i].resize(1);
        if (!batch.on_graph(i, work[worker], Table::kBest, [&](auto& graph) { return best_path(graph, out[i][0]); }))
          out[i].clear();
      });
    }
    return pack(out);
  }

  static Packed kbest(const Batch& batch, int64_t k, int64_t threads) {
    std::vector<std::vector<Path>> out(batch.size());
    {
      nb::gil_scoped_release release;
      std::vector<Workspace> work(std::max<int64_t>(1, threads));
      parallel_for(batch.size(), threads, [&](int64_t i, int64_t worker) {
        batch.on_graph(i, work[worker], Table::kBest, [&](auto& graph) { return best_paths(graph, k, out[i]); });
      });
    }
    return pack(out);
  }

  // uniform: n rows of length T_i + 1 for each sequence, one sequence after another
  static Packed sample(const Batch& batch, int64_t n, const Doubles& uniform, int64_t threads) {
    std::vector<std::vector<Path>> out(batch.size());
    {
      nb::gil_scoped_release release;
      std::vector<Workspace> work(std::max<int64_t>(1, threads));
      parallel_for(batch.size(), threads, [&](int64_t i, int64_t worker) {
        const double* u = uniform.data() + n * (batch.offset(i) + i);
        batch.on_graph(i, work[worker], Table::kDraws, [&](auto& graph) {
          out[i].assign(static_cast<size_t>(n), Path());
          bool found = true;
          for (int64_t j = 0; j < n && found; ++j) found = sample_path(graph, u + j * (graph.length() + 1), out[i][j]);
          return found;
        });
      });
    }
    return pack(out);
  }

  static void entropies(const Batch& batch, const DoublesOut& out, int64_t threads) {
    nb::gil_scoped_release release;
    std::vector<Workspace> work(std::max<int64_t>(1, threads));
    parallel_for(batch.size(), threads, [&](int64_t i, int64_t worker) {
      batch.on_graph(i, work[worker], Table::kSums, [&](auto& graph) {
        out.data()[i] = entropy(graph);
        return true;
      });
    });
  }
};

void bind_automaton(nb::module_& m);
void bind_chain(nb::module_& m);
void bind_compressed(nb::module_& m);
void bind_encoder(nb::module_& m);
void bind_nested(nb::module_& m);
void bind_objective(nb::module_& m);
void bind_quasi_newton(nb::module_& m);
void bind_segment(nb::module_& m);
void bind_sum_difference(nb::module_& m);
void bind_template(nb::module_& m);
void bind_token_features(nb::module_& m);

}  // namespace scansion
