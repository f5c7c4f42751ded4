// Table of contents of scansion._core.
#include "bind/common.hpp"

NB_MODULE(_core, m) {
  m.doc() = "Native kernels of scansion. Arguments are trusted: the Python layer checks them.";
  nanobind::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      PyErr_SetString(PyExc_MemoryError, "there is not enough memory for the tables of this computation");
    }
  });
  scansion::bind_automaton(m);
  scansion::bind_chain(m);
  scansion::bind_compressed(m);
  scansion::bind_encoder(m);
  scansion::bind_nested(m);
  scansion::bind_objective(m);
  scansion::bind_nested_objective(m);
  scansion::bind_quasi_newton(m);
  scansion::bind_segment(m);
  scansion::bind_sum_difference(m);
  scansion::bind_template(m);
  m.def(
      "instruction_set", [] { return std::string(scansion::kernels().name); },
      "Instruction set of the kernels in use: 'avx2' or 'baseline'.");
  m.def(
      "exp",
      [](const scansion::Doubles& x, const scansion::DoublesOut& out) {
        scansion::kernels().exp_array(x.data(), static_cast<int64_t>(x.size()), out.data());
      },
      nb::arg("x"), nb::arg("out"), "The kernels' exponential, for its tests.");
}
