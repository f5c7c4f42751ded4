#include "objective.hpp"

#include "bind/common.hpp"
#include "feature_index.hpp"

namespace scansion {
namespace {

// Keeps the arrays behind a ModelView alive.
class Model {
 public:
  Model(nb::object automaton, nb::object topology, int64_t max_length, Int32s bias, std::optional<Int32s> pair,
        Bytes extent, int64_t columns, bool varying_starts, int64_t weights)
      : automaton_object_(automaton), topology_object_(topology), bias_(bias), pair_(pair), extent_(extent) {
    automaton_ = nb::cast<const PatternAutomaton*>(automaton);
    topology_ = topology.is_none() ? nullptr : nb::cast<const Topology*>(topology);
    view_.labels = automaton_->labels();
    view_.patterns = automaton_->patterns();
    view_.max_length = max_length;
    view_.weights = weights;
    view_.dense = topology_ == nullptr;
    view_.varying_starts = varying_starts;
    view_.columns = columns;
    view_.bias = bias_.data();
    view_.pair = pair_ ? pair_->data() : nullptr;
    view_.extent = extent_.data();
  }

  void set_features(int part, Int64s rows, Int32s pattern, int64_t base) {
    FeatureRows& f = part < kParts ? view_.parts[part] : view_.cells;
    f.rows = rows.data();
    f.pattern = pattern.data();
    f.attributes = static_cast<int64_t>(rows.size()) - 1;
    f.base = base;
    kept_rows_.push_back(rows);
    kept_patterns_.push_back(pattern);
  }
  void set_limits(std::optional<Int32s> limits, std::optional<Bytes> forbidden) {
    limits_ = limits;
    forbidden_ = forbidden;
    view_.limits = data_or_null<int32_t>(limits_);
    view_.forbidden = data_or_null<uint8_t>(forbidden_);
  }
  void set_lengths(Doubles basis, int64_t base) {
    basis_ = basis;
    view_.basis = static_cast<int64_t>(basis.shape(0));
    view_.basis_value = basis_->data();
    view_.basis_base = base;
  }

  const ModelView& view() const { return view_; }
  const PatternAutomaton* automaton() const { return automaton_; }
  const Topology* topology() const { return topology_; }

 private:
  nb::object automaton_object_, topology_object_;
  const PatternAutomaton* automaton_;
  const Topology* topology_;
  Int32s bias_;
  std::optional<Int32s> pair_;
  Bytes extent_;
  std::vector<Int64s> kept_rows_;
  std::vector<Int32s> kept_patterns_;
  std::optional<Doubles> basis_;
  std::optional<Int32s> limits_;
  std::optional<Bytes> forbidden_;
  ModelView view_;
};

// Keeps the arrays behind a DataView alive.
class Data {
 public:
  Data(Int64s offsets, Int64s token_offsets, Int32s ids, std::optional<Doubles> values)
      : offsets_(offsets), token_offsets_(token_offsets), ids_(ids), values_(values) {
    view_.sequences = static_cast<int64_t>(offsets_.size()) - 1;
    view_.offsets = offsets_.data();
    view_.token_offsets = token_offsets_.data();
    view_.ids = ids_.data();
    view_.values = data_or_null<double>(values_);
  }
  void set_cells(Int64s offsets, Int32s start, Int32s length, Int32s ids, Doubles values) {
    cell_offsets_ = offsets, cell_start_ = start, cell_length_ = length, cell_ids_ = ids, cell_values_ = values;
    view_.cell_offsets = cell_offsets_->data();
    view_.cell_start = cell_start_->data();
    view_.cell_length = cell_length_->data();
    view_.cell_ids = cell_ids_->data();
    view_.cell_values = cell_values_->data();
  }
  const DataView& view() const { return view_; }

 private:
  Int64s offsets_, token_offsets_;
  Int32s ids_;
  std::optional<Doubles> values_, cell_values_;
  std::optional<Int64s> cell_offsets_;
  std::optional<Int32s> cell_start_, cell_length_, cell_ids_;
  DataView view_;
};

class Objective {
 public:
  Objective(nb::object model, nb::object data, Int32s labels, std::optional<Bytes> ends, Bytes status,
            std::optional<Bytes> allowed, std::optional<Int32s> runs, std::optional<Bytes> may_end,
            std::optional<Doubles> weight)
      : model_(model), data_(data), labels_(labels), ends_(ends), status_(status), allowed_(allowed), runs_(runs),
        may_end_(may_end), weight_(weight) {
    TargetView t;
    t.labels = labels_.data();
    t.ends = data_or_null<uint8_t>(ends_);
    t.status = status_.data();
    t.allowed = data_or_null<uint8_t>(allowed_);
    t.runs = data_or_null<int32_t>(runs_);
    t.may_end = data_or_null<uint8_t>(may_end_);
    t.weight = data_or_null<double>(weight_);
    const Model& m = nb::cast<const Model&>(model_);
    objective_ = std::make_unique<FlatObjective>(m.view(), nb::cast<const Data&>(data_).view(), t, m.automaton(),
                                                 m.topology());
  }
  FlatObjective& get() { return *objective_; }
  void set_trajectories(Int64s offsets, Int32s labels, bool merge) {
    trajectory_offsets_ = offsets;
    trajectories_ = labels;
    objective_->set_trajectories(trajectory_offsets_->data(), trajectories_->data(), merge);
  }

 private:
  nb::object model_, data_;
  Int32s labels_;
  std::optional<Bytes> ends_;
  Bytes status_;
  std::optional<Bytes> allowed_;
  std::optional<Int32s> runs_;
  std::optional<Bytes> may_end_;
  std::optional<Doubles> weight_;
  std::optional<Int64s> trajectory_offsets_;
  std::optional<Int32s> trajectories_;
  std::unique_ptr<FlatObjective> objective_;
};

// Scores of all sequences in the arrays of PatternCore or DenseCore; null: not there in this model.
void score_arrays(const Model& model, const Data& data, const Doubles& w, DoublesOut start,
                  std::optional<DoublesOut> inside, std::optional<DoublesOut> end, std::optional<DoublesOut> by_length,
                  std::optional<DoublesOut> full, std::optional<DoublesOut> starts, std::optional<DoublesOut> pairs,
                  int64_t threads) {
  nb::gil_scoped_release release;
  const ModelView& m = model.view();
  const DataView& d = data.view();
  std::vector<int64_t> first_pair(static_cast<size_t>(d.sequences) + 1, 0);
  for (int64_t b = 0; b < d.sequences; ++b)
    first_pair[b + 1] = first_pair[b] + std::max<int64_t>(0, d.offsets[b + 1] - d.offsets[b] - 1);
  std::vector<std::unique_ptr<SequenceScores>> scores(std::max<int64_t>(1, threads));
  parallel_for(d.sequences, threads, [&](int64_t b, int64_t worker) {
    if (!scores[worker]) scores[worker] = std::make_unique<SequenceScores>(m, model.automaton(), model.topology());
    SequenceScores& s = *scores[worker];
    s.fill(d, b, w.data(), 1.0, nullptr);
    const int64_t first = d.offsets[b], T = d.offsets[b + 1] - first;
    const SequenceScores::Arrays& a = s.scores();
    std::copy_n(a.start, T * m.columns, start.data() + first * m.columns);
    if (inside && a.inside) std::copy_n(a.inside, T * m.columns, inside->data() + first * m.columns);
    if (end && a.end) std::copy_n(a.end, T * m.columns, end->data() + first * m.columns);
    if (full && a.full)
      for (int64_t t = 0; t < T; ++t)
        std::copy_n(a.full + t * s.limit() * m.columns, s.limit() * m.columns,
                    full->data() + (first + t) * m.max_length * m.columns);
    if (starts && m.varying_starts) std::copy_n(a.starts, T * m.patterns, starts->data() + first * m.patterns);
    if (pairs && m.varying_starts && T > 1)
      std::copy_n(a.pairs, (T - 1) * m.labels * m.labels, pairs->data() + first_pair[b] * m.labels * m.labels);
  });
  // what does not vary, from the weights
  for (int64_t z = m.labels; z < m.patterns; ++z) {
    if (starts && !m.varying_starts && m.forbidden && m.forbidden[z]) starts->data()[z] = kMinusInfinity;
    if (m.bias[z] < 0 || m.varying_starts) continue;
    if (starts && !m.extent[z]) starts->data()[z] = w.data()[m.bias[z]];
    if (pairs) pairs->data()[m.pair[z]] = w.data()[m.bias[z]];
  }
  for (int64_t y = 0; by_length && m.limits && y < m.labels; ++y)
    for (int64_t d = m.limits[y]; d < m.max_length; ++d) by_length->data()[d * m.columns + y] = kMinusInfinity;
  if (by_length)
    for (int64_t i = 0; i < m.basis; ++i)
      for (int64_t l = 0; l < m.max_length; ++l)
        for (int64_t y = 0; y < m.labels; ++y)
          by_length->data()[l * m.columns + y] +=
              w.data()[m.basis_base + i * m.labels + y] * m.basis_value[i * m.max_length + l];
}

using Ends = std::optional<nb::ndarray<const int8_t, nb::numpy, nb::c_contig, nb::device::cpu>>;
using Table = std::tuple<nb::ndarray<nb::numpy, int64_t>, nb::ndarray<nb::numpy, int32_t>>;

Table to_table(FeatureTable&& table) {
  const size_t rows = table.rows.size(), features = table.pattern.size();
  return {to_numpy(std::move(table.rows), {rows}), to_numpy(std::move(table.pattern), {features})};
}

Table token_feature_table(const Data& data, const PatternAutomaton& automaton, const Int32s& labels, const Ends& ends,
                          int part, const nb::ndarray<const uint32_t, nb::numpy, nb::c_contig, nb::device::cpu>& orders,
                          double least) {
  FeatureTable table;
  {
    nb::gil_scoped_release release;
    const KnownSegments known{data.view(), automaton, labels.data(), data_or_null<int8_t>(ends)};
    table = token_features(known, static_cast<Part>(part), orders.data(), static_cast<int64_t>(orders.size()), least);
  }
  return to_table(std::move(table));
}

Table cell_feature_table(const Data& data, const PatternAutomaton& automaton, const Int32s& labels, const Ends& ends,
                         int64_t attributes, double least) {
  const KnownSegments known{data.view(), automaton, labels.data(), data_or_null<int8_t>(ends)};
  return to_table(cell_features(known, attributes, least));
}

}  // namespace

void bind_objective(nb::module_& m) {
  m.def("token_feature_table", &token_feature_table, nb::arg("data"), nb::arg("automaton"), nb::arg("labels"),
        nb::arg("ends").none(), nb::arg("part"), nb::arg("orders"), nb::arg("least"));
  m.def("cell_feature_table", &cell_feature_table, nb::arg("data"), nb::arg("automaton"), nb::arg("labels"),
        nb::arg("ends").none(), nb::arg("attributes"), nb::arg("least"));
  nb::class_<Model>(m, "FlatModel", "Which features a flat model has; weights are given at each call.")
      .def(nb::init<nb::object, nb::object, int64_t, Int32s, std::optional<Int32s>, Bytes, int64_t, bool, int64_t>(),
           nb::arg("automaton"), nb::arg("topology").none(), nb::arg("max_length"), nb::arg("bias"), nb::arg("pair").none(),
           nb::arg("extent"), nb::arg("columns"), nb::arg("varying_starts"), nb::arg("weights"))
      .def("set_features", &Model::set_features, nb::arg("part"), nb::arg("rows"), nb::arg("pattern"), nb::arg("base"),
           "part: 0 start, 1 inside, 2 end, 3 inner, 4 whole segments.")
      .def("set_lengths", &Model::set_lengths, nb::arg("basis"), nb::arg("base"))
      .def("set_limits", &Model::set_limits, nb::arg("limits").none(), nb::arg("forbidden").none(),
           "limits (labels,): longest segment of each label; forbidden (patterns,): 1 for patterns that must not occur.");
  nb::class_<Data>(m, "FlatData", "Encoded sequences.")
      .def(nb::init<Int64s, Int64s, Int32s, std::optional<Doubles>>(), nb::arg("offsets"), nb::arg("token_offsets"),
           nb::arg("ids"), nb::arg("values").none())
      .def("set_cells", &Data::set_cells, nb::arg("offsets"), nb::arg("start"), nb::arg("length"), nb::arg("ids"),
           nb::arg("values"));
  m.def("score_arrays", &score_arrays, nb::arg("model"), nb::arg("data"), nb::arg("w"), nb::arg("start"),
        nb::arg("inside").none(), nb::arg("end").none(), nb::arg("by_length").none(), nb::arg("full").none(),
        nb::arg("starts").none(), nb::arg("pairs").none(), nb::arg("threads"));

  using Online = FlatObjective::Online;
  nb::enum_<FlatObjective::Algorithm>(m, "Algorithm")
      .value("likelihood", FlatObjective::kLikelihood)
      .value("margin", FlatObjective::kMargin)
      .value("perceptron", FlatObjective::kPerceptron)
      .value("passive_aggressive", FlatObjective::kPassiveAggressive);
  nb::class_<Online>(m, "Online", "Settings and state of an online algorithm.")
      .def("__init__", [](Online* self, FlatObjective::Algorithm a) { new (self) Online{a}; }, nb::arg("algorithm"))
      .def_rw("strength", &Online::lambda)
      .def_rw("t0", &Online::t0)
      .def_rw("aggressiveness", &Online::aggressiveness)
      .def_rw("pa_type", &Online::pa_type)
      .def_rw("error_sensitive", &Online::error_sensitive)
      .def_rw("average", &Online::average)
      .def_rw("t", &Online::t)
      .def_rw("scale", &Online::scale)
      .def_rw("steps", &Online::steps);

  nb::class_<Objective>(m, "FlatObjective", "Objectives of a flat model on encoded sequences and targets.")
      .def(nb::init<nb::object, nb::object, Int32s, std::optional<Bytes>, Bytes, std::optional<Bytes>,
                    std::optional<Int32s>, std::optional<Bytes>, std::optional<Doubles>>(),
           nb::arg("model"), nb::arg("data"), nb::arg("labels"), nb::arg("ends").none(), nb::arg("status"),
           nb::arg("allowed").none(), nb::arg("runs").none(), nb::arg("may_end").none(), nb::arg("weight").none())
      .def("use_sum_difference",
           [](Objective& o) {
             nb::gil_scoped_release release;
             o.get().use_sum_difference();
           },
           "Log losses by the Sum-Difference algorithm from now on, unless targets are trajectories; chains only.")
      .def("decode",
           [](Objective& o, const Doubles& w, bool known,
              const nb::ndarray<int32_t, nb::numpy, nb::c_contig, nb::device::cpu>& labels, int64_t threads) {
             nb::gil_scoped_release release;
             o.get().decode(w.data(), known, labels.data(), threads);
           },
           nb::arg("w"), nb::arg("known"), nb::arg("labels"), nb::arg("threads"),
           "Best labels (N,) by algorithms 4 and 5 of paper 002; a sequence that begins with -1 is impossible.")
      .def("refused", [](Objective& o) { return o.get().variable_order() ? o.get().variable_order()->refused() : 0; },
           "Sequences of the last log loss that the Sum-Difference guard left to the automaton.")
      .def("sum_difference_size",
           [](Objective& o) {
             if (!o.get().variable_order()) return std::tuple<int64_t, int64_t, int64_t>(0, 0, 0);
             const VariableOrder::Size s = o.get().variable_order()->size();
             return std::tuple<int64_t, int64_t, int64_t>(s.sets, s.nodes, s.bytes);
           },
           "Distinct pattern sets, patterns alive summed over positions, bytes of the structure.")
      .def("set_trajectories", &Objective::set_trajectories, nb::arg("offsets"), nb::arg("labels"), nb::arg("merge"),
           "Trajectories of the sequences of status 3.")
      .def("log_loss",
           [](Objective& o, const Doubles& w, const DoublesOut& gradient, int64_t threads) {
             nb::gil_scoped_release release;
             return o.get().log_loss(w.data(), gradient.data(), threads);
           },
           nb::arg("w"), nb::arg("gradient"), nb::arg("threads"))
      .def("margin_loss",
           [](Objective& o, const Doubles& w, const DoublesOut& gradient, int64_t threads) {
             nb::gil_scoped_release release;
             return o.get().margin_loss(w.data(), gradient.data(), threads);
           },
           nb::arg("w"), nb::arg("gradient"), nb::arg("threads"))
      .def("log_partitions",
           [](Objective& o, const Doubles& w, bool known, const DoublesOut& out, int64_t threads) {
             nb::gil_scoped_release release;
             o.get().log_partitions(w.data(), known, out.data(), threads);
           },
           nb::arg("w"), nb::arg("known"), nb::arg("out"), nb::arg("threads"))
      .def("run_pass",
           [](Objective& o, Online& online, const Int64s& order, const DoublesOut& w, const DoublesOut& sum) {
             nb::gil_scoped_release release;
             return o.get().pass(online, order.data(), static_cast<int64_t>(order.size()), w.data(), sum.data());
           },
           nb::arg("online"), nb::arg("order"), nb::arg("w"), nb::arg("sum"));
}

}  // namespace scansion
