// Shared by the bindings of models and objectives.
#pragma once

#include "bind/common.hpp"
#include "features.hpp"
#include "online.hpp"

namespace scansion {

// Keeps the arrays behind FeatureRows alive.
class KeptRows {
 public:
  FeatureRows keep(const Int64s& rows, const Int32s& column, int64_t base) {
    kept_.emplace_back(rows, column);
    FeatureRows f;
    f.rows = rows.data();
    f.column = column.data();
    f.attributes = static_cast<int64_t>(rows.size()) - 1;
    f.base = base;
    return f;
  }

 private:
  std::vector<std::pair<Int64s, Int32s>> kept_;
};

// Keeps the arrays behind a DataView alive.
class DataArrays {
 public:
  DataArrays(Int64s offsets, Int64s token_offsets, Int32s ids, std::optional<Doubles> values)
      : offsets_(offsets), token_offsets_(token_offsets), ids_(ids), values_(values) {
    view_.sequences = static_cast<int64_t>(offsets_.size()) - 1;
    view_.offsets = offsets_.data();
    view_.token_offsets = token_offsets_.data();
    view_.ids = ids_.data();
    view_.values = data_or_null<double>(values_);
  }
  void set_cells(size_t level, Int64s offsets, Int32s start, Int32s length, Int32s ids, Doubles values) {
    kept_.emplace_back(offsets, start, length, ids, values);
    if (view_.cells.size() <= level) view_.cells.resize(level + 1);
    view_.cells[level] = {offsets.data(), start.data(), length.data(), ids.data(), values.data()};
  }
  const DataView& view() const { return view_; }

 private:
  Int64s offsets_, token_offsets_;
  Int32s ids_;
  std::optional<Doubles> values_;
  std::vector<std::tuple<Int64s, Int32s, Int32s, Int32s, Doubles>> kept_;
  DataView view_;
};

// The methods that all objectives have; Arrays::get() gives the objective.
template <class Arrays>
void def_objective(nb::class_<Arrays>& c) {
  c.def(
       "log_loss",
       [](Arrays& o, const Doubles& w, const DoublesOut& gradient, int64_t threads) {
         nb::gil_scoped_release release;
         return o.get().log_loss(w.data(), gradient.data(), threads);
       },
       nb::arg("w"), nb::arg("gradient"), nb::arg("threads"),
       "Sum over sequences of weight (log Z - log Z of what is known), and its gradient (weights,).")
      .def(
          "margin_loss",
          [](Arrays& o, const Doubles& w, const DoublesOut& gradient, int64_t threads) {
            nb::gil_scoped_release release;
            return o.get().margin_loss(w.data(), gradient.data(), threads);
          },
          nb::arg("w"), nb::arg("gradient"), nb::arg("threads"),
          "Summed margin violations with the Hamming cost, and a subgradient (weights,).")
      .def(
          "curvature",
          [](Arrays& o, const Doubles& w, const std::optional<Doubles>& units, const DoublesOut& out, int64_t threads) {
            nb::gil_scoped_release release;
            o.get().curvature(w.data(), data_or_null<double>(units), out.data(), threads);
          },
          nb::arg("w"), nb::arg("units").none(), nb::arg("out"), nb::arg("threads"),
          "About the second derivatives of log_loss, (weights,), of features times units.")
      .def(
          "log_partitions",
          [](Arrays& o, const Doubles& w, bool known, const DoublesOut& out, int64_t threads) {
            nb::gil_scoped_release release;
            o.get().log_partitions(w.data(), known, out.data(), threads);
          },
          nb::arg("w"), nb::arg("known"), nb::arg("out"), nb::arg("threads"),
          "log Z (sequences,), or that of what is known.")
      .def(
          "run_pass",
          [](Arrays& o, Online& online, const Int64s& order, const DoublesOut& w, const DoublesOut& sum) {
            nb::gil_scoped_release release;
            if (online.keeps_sum() && sum.size() != w.size()) throw std::invalid_argument("sum must be as long as w");
            return o.get().run_pass(online, order.data(), static_cast<int64_t>(order.size()), w.data(), sum.data());
          },
          nb::arg("online"), nb::arg("order"), nb::arg("w"), nb::arg("sum"),
          "One pass of an online algorithm over some sequences; the summed loss. w and sum, if kept, change.")
      .def(
          "set_batches", [](Arrays& o, int64_t size, int64_t threads) { o.get().set_batches(size, threads); },
          nb::arg("size"), nb::arg("threads"), "Sequences that run_pass takes at a time, and on how many threads.");
}

}  // namespace scansion
