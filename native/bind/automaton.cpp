#include "bind/common.hpp"
#include "pattern_automaton.hpp"

namespace scansion {

void bind_automaton(nb::module_& m) {
  nb::class_<PatternAutomaton>(m, "PatternAutomaton", "Pattern automaton of paper 001 (states, arcs, pattern lists).")
      .def(
          "__init__",
          [](PatternAutomaton* self, int64_t labels, const Int32s& symbols, const Int64s& offsets) {
            nb::gil_scoped_release release;
            new (self) PatternAutomaton(labels, symbols.data(), offsets.data(),
                                        static_cast<int64_t>(offsets.size()) - 1);
          },
          nb::arg("labels"), nb::arg("symbols"), nb::arg("offsets"))
      .def_prop_ro("n_labels", &PatternAutomaton::labels)
      .def_prop_ro("n_patterns", &PatternAutomaton::patterns)
      .def_prop_ro("n_states", &PatternAutomaton::states)
      .def_prop_ro("initial", &PatternAutomaton::initial)
      .def_prop_ro("longest", &PatternAutomaton::longest)
      .def("symbols", &PatternAutomaton::symbols, nb::arg("state"), "Symbols of a state, first to last.")
      .def("next",
           [](const PatternAutomaton& self) {
             return to_numpy(std::vector<int32_t>(self.next_table()),
                             {static_cast<size_t>(self.states()), static_cast<size_t>(self.labels())});
           }, "(states, labels): the state after a label.")
      .def("match",
           [](const PatternAutomaton& self) {
             return to_numpy(std::vector<int32_t>(self.match_table()),
                             {static_cast<size_t>(self.states()), static_cast<size_t>(self.labels())});
           }, "(states, labels): the longest pattern that matches on the arc, or -1.")
      .def("pattern_suffix",
           [](const PatternAutomaton& self) {
             std::vector<int32_t> out;
             for (int64_t z = 0; z < self.patterns(); ++z) out.push_back(self.pattern_suffix(z));
             const size_t n = out.size();
             return to_numpy(std::move(out), {n});
           }, "(patterns,): the longest other pattern that matches wherever this one does, or -1.");

  nb::class_<Topology>(m, "Topology", "The automaton laid out for the segment kernels.")
      .def(
          "__init__",
          [](Topology* self, const PatternAutomaton& automaton, const Bytes& extent) {
            nb::gil_scoped_release release;
            new (self) Topology(automaton, extent.data());
          },
          nb::arg("automaton"), nb::arg("extent"),
          "extent (patterns,): 1 where a pattern's score depends on more than the segment's start.")
      .def_prop_ro("n_keys", [](const Topology& t) { return t.view().keys; })
      .def_prop_ro("n_arcs", [](const Topology& t) { return t.view().key_arcs[t.view().keys]; });
}

}  // namespace scansion
