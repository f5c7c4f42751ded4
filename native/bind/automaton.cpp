#include "bind/common.hpp"
#include "pattern_automaton.hpp"

namespace scansion {

void bind_automaton(nb::module_& m) {
  nb::class_<PatternAutomaton>(m, "PatternAutomaton", "Pattern automaton of paper 001 (states, arcs, pattern lists).")
      .def(
          "__init__",
          [](PatternAutomaton* self, int64_t labels, const Int32s& symbols, const Int64s& offsets) {
            nb::gil_scoped_release release;
            new (self)
                PatternAutomaton(labels, symbols.data(), offsets.data(), static_cast<int64_t>(offsets.size()) - 1);
          },
          nb::arg("labels"), nb::arg("symbols"), nb::arg("offsets"))
      .def_prop_ro("n_labels", &PatternAutomaton::labels)
      .def_prop_ro("n_patterns", &PatternAutomaton::patterns)
      .def_prop_ro("n_states", &PatternAutomaton::states)
      .def_prop_ro("initial", &PatternAutomaton::initial)
      .def_prop_ro("longest", &PatternAutomaton::longest)
      .def("symbols", &PatternAutomaton::symbols, nb::arg("state"), "Symbols of a state, first to last.")
      .def(
          "next",
          [](const PatternAutomaton& self) {
            return to_numpy(std::vector<int32_t>(self.next_table()),
                            {static_cast<size_t>(self.states()), static_cast<size_t>(self.labels())});
          },
          "(states, labels): the state after a label.")
      .def(
          "match",
          [](const PatternAutomaton& self) {
            return to_numpy(std::vector<int32_t>(self.match_table()),
                            {static_cast<size_t>(self.states()), static_cast<size_t>(self.labels())});
          },
          "(states, labels): the longest pattern that matches on the arc, or -1.")
      .def(
          "pattern_suffix",
          [](const PatternAutomaton& self) {
            std::vector<int32_t> out;
            for (int64_t z = 0; z < self.patterns(); ++z) out.push_back(self.pattern_suffix(z));
            const size_t n = out.size();
            return to_numpy(std::move(out), {n});
          },
          "(patterns,): the longest other pattern that matches wherever this one does, or -1.");

  nb::class_<Topology>(m, "Topology", "The automaton laid out for the segment kernels.")
      .def(
          "__init__",
          [](Topology* self, const PatternAutomaton& automaton, const Bytes& extent) {
            nb::gil_scoped_release release;
            new (self) Topology(automaton, extent.data());
          },
          nb::arg("automaton"), nb::arg("extent"),
          "extent (patterns,): 1 where a pattern's score depends on more than the segment's start.")
      .def(
          "__init__",
          [](Topology* self, const PatternAutomaton& automaton, const Bytes& extent, const Int32s& next,
             const Bytes& accepting, int64_t most_states) {
            nb::gil_scoped_release release;
            const RuleMachine rules{static_cast<int64_t>(accepting.size()), next.data(), accepting.data()};
            new (self) Topology(automaton, extent.data(), &rules, most_states);
          },
          nb::arg("automaton"), nb::arg("extent"), nb::arg("next"), nb::arg("accepting"), nb::arg("most_states"),
          "The product with rules: next (rule states, labels), -1 where nothing can be accepted; OverflowError if it "
          "has more states.")
      .def_prop_ro("n_states", [](const Topology& t) { return t.view().states; })
      .def_prop_ro("n_keys", [](const Topology& t) { return t.view().keys; })
      .def_prop_ro(
          "n_nodes", [](const Topology& t) { return t.view().nodes; }, "States, and sums over ranges of them.")
      .def_prop_ro("n_arcs", [](const Topology& t) { return t.view().key_arcs[t.view().keys]; }, "That leave nodes.");

  m.def(
      "rules_broken",
      [](const std::vector<Int32s>& next, const std::vector<Bytes>& accepting, const Int64s& labels,
         const Int64s& offsets, int64_t stride) {
        const size_t n = offsets.size() - 1;
        std::vector<uint8_t> out(next.size() * n);
        {
          nb::gil_scoped_release release;
          for (size_t r = 0; r < next.size(); ++r) {
            const int64_t states = static_cast<int64_t>(accepting[r].size());
            const RuleMachine rule{states, next[r].data(), accepting[r].data()};
            const int64_t size = static_cast<int64_t>(next[r].size()) / states;
            for (size_t i = 0; i < n; ++i)
              out[r * n + i] = !rule.accepts(labels.data() + offsets.data()[i] * stride,
                                             labels.data() + offsets.data()[i + 1] * stride, stride, size);
          }
        }
        return to_numpy(std::move(out), {next.size(), n});
      },
      nb::arg("next"), nb::arg("accepting"), nb::arg("labels"), nb::arg("offsets"), nb::arg("stride"),
      "(rules, words): 1 where the word ``labels[offsets[i] * stride : offsets[i + 1] * stride : stride]`` breaks the "
      "rule.");
}

}  // namespace scansion
