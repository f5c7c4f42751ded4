#include "bind/common.hpp"
#include "sum_difference_lattice.hpp"

namespace scansion {

void bind_sum_difference(nb::module_& m) {
  m.def(
      "sum_difference",
      [](const PatternAutomaton& net, const Doubles& scores, const std::optional<Bytes>& fires,
         const std::optional<Bytes>& allowed, const DoublesOut& posteriors) {
        nb::gil_scoped_release release;
        double log_z = 0.0, kappa = 0.0;
        const bool fine = sum_difference_lattice(net, scores.data(), data_or_null<uint8_t>(fires),
                                                 static_cast<int64_t>(scores.shape(0)), data_or_null<uint8_t>(allowed),
                                                 log_z, posteriors.data(), kappa);
        return std::tuple<double, double, bool>(log_z, kappa, fine);
      },
      nb::arg("automaton"), nb::arg("scores"), nb::arg("fires").none(), nb::arg("allowed").none(),
      nb::arg("posteriors"),
      "log Z, kappa and whether the guard lets them pass; posteriors (T, P) of the patterns. T > 0.");
  m.attr("MOST_KAPPA") = kMostKappa;
}

}  // namespace scansion
