// Bindings that the batches of all kinds of lattices share: the questions of batch.hpp.
#pragma once

#include "batch.hpp"
#include "bind/common.hpp"

namespace scansion {

using Int64Array = nb::ndarray<nb::numpy, int64_t>;
using DoubleArray = nb::ndarray<nb::numpy, double>;
using Packed = std::tuple<Int64Array, Int64Array, Int64Array, DoubleArray>;

inline Packed packed(Configurations&& found) {
  const size_t n = found.steps.size() / 3, m = found.paths.size(), b = found.firsts.size(), c = found.scores.size();
  return {to_numpy(std::move(found.steps), {n, 3}), to_numpy(std::move(found.paths), {m}),
          to_numpy(std::move(found.firsts), {b}), to_numpy(std::move(found.scores), {c})};
}

template <class Ask>
Packed ask_packed(const Ask& ask) {
  Configurations found;
  {
    nb::gil_scoped_release release;
    found = ask();
  }
  return packed(std::move(found));
}

template <class Batch, class... Bases>
void bind_questions(nb::class_<Batch, Bases...>& cls) {
  using Random = In<typename Batch::Random>;
  cls.def(
         "best", [](const Batch& b, int64_t threads) { return ask_packed([&] { return best(b, threads); }); },
         nb::arg("threads"), "Best configurations: steps (n, 3), paths (configurations * levels + 1,), firsts, scores.")
      .def(
          "kbest",
          [](const Batch& b, int64_t k, int64_t threads) { return ask_packed([&] { return kbest(b, k, threads); }); },
          nb::arg("k"), nb::arg("threads"))
      .def(
          "sample",
          [](const Batch& b, int64_t n, const Random& random, int64_t threads) {
            return ask_packed([&] { return sample(b, n, random.data(), threads); });
          },
          nb::arg("n"), nb::arg("random"), nb::arg("threads"))
      .def(
          "entropies",
          [](const Batch& b, const DoublesOut& out, int64_t threads) {
            nb::gil_scoped_release release;
            entropies(b, out.data(), threads);
          },
          nb::arg("out"), nb::arg("threads"))
      .def(
          "scores",
          [](const Batch& b, const Int64s& steps, const Int64s& paths, const Int64s& owners, const DoublesOut& out) {
            nb::gil_scoped_release release;
            scores(b, steps.data(), paths.data(), owners.data(), static_cast<int64_t>(owners.size()), out.data());
          },
          nb::arg("steps"), nb::arg("paths"), nb::arg("owners"), nb::arg("out"))
      .def(
          "furthest",
          [](const Batch& b, int64_t i) {
            nb::gil_scoped_release release;
            return b.furthest(i);
          },
          nb::arg("sequence"), "Positions that some configuration can cover.");
}

using Ends = std::optional<Int8s>;

}  // namespace scansion
