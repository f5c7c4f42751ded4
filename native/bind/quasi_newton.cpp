// scansion._core: long vectors of the quasi-Newton optimiser.
#include "quasi_newton.hpp"

#include "bind/common.hpp"

namespace scansion {

void bind_quasi_newton(nb::module_& m) {
  m.def(
      "dot",
      [](const Doubles& a, const Doubles& b, int64_t threads) {
        nb::gil_scoped_release release;
        return dot(a.data(), b.data(), static_cast<int64_t>(a.size()), threads);
      },
      nb::arg("a"), nb::arg("b"), nb::arg("threads"), "Scalar product of two vectors (n,).");
  m.def(
      "add_scaled_and_square",
      [](const DoublesOut& y, const Doubles& x, double factor, int64_t threads) {
        nb::gil_scoped_release release;
        return add_scaled_and_square(y.data(), x.data(), factor, static_cast<int64_t>(x.size()), threads);
      },
      nb::arg("y"), nb::arg("x"), nb::arg("factor"), nb::arg("threads"), "y += factor x; returns x.x.");
  m.def(
      "remember_pair",
      [](const DoublesOut& pairs, int64_t count, int64_t slot, const Doubles& w_old, const Doubles& w_new,
         const Doubles& g_old, const Doubles& g_new, const Doubles& v, int64_t threads) {
        std::vector<double> out;
        {
          nb::gil_scoped_release release;
          out = remember_pair(pairs.data(), static_cast<int64_t>(pairs.shape(1)), count, 2 * slot, 2 * slot + 1,
                              w_old.data(), w_new.data(), g_old.data(), g_new.data(), v.data(), threads);
        }
        const size_t size = out.size();
        return to_numpy(std::move(out), {size});
      },
      nb::arg("pairs"), nb::arg("count"), nb::arg("slot"), nb::arg("w_old"), nb::arg("w_new"), nb::arg("g_old"),
      nb::arg("g_new"), nb::arg("v"), nb::arg("threads"),
      "Write s and y to rows 2 slot and 2 slot + 1 of pairs (2 m, n); returns s.s, then row.y and row.v of each of the "
      "first `count` rows.");
  m.def(
      "combine_pairs",
      [](const Doubles& pairs, const Doubles& weights, const Doubles& v, double factor, const DoublesOut& out,
         int64_t threads) {
        nb::gil_scoped_release release;
        return combine_pairs(pairs.data(), static_cast<int64_t>(pairs.shape(1)), weights.data(),
                             static_cast<int64_t>(weights.size()), v.data(), factor, out.data(), threads);
      },
      nb::arg("pairs"), nb::arg("weights"), nb::arg("v"), nb::arg("factor"), nb::arg("out"), nb::arg("threads"),
      "out = weights . rows of pairs - factor v; returns v.out.");
}

}  // namespace scansion
