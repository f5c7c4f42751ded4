#include "bind/objective.hpp"
#include "feature_index.hpp"
#include "flat_objective.hpp"

namespace scansion {
namespace {

// Keeps the arrays behind a FlatModelView alive.
class FlatModelArrays {
 public:
  FlatModelArrays(nb::object automaton, nb::object topology, int64_t max_length, Int32s bias,
                  std::optional<Int32s> pair, Bytes extent, int64_t columns, bool varying_starts, int64_t weights)
      : kept_(nb::make_tuple(automaton, topology)), bias_(bias), pair_(pair), extent_(extent) {
    view_.automaton = nb::cast<const PatternAutomaton*>(automaton);
    view_.topology = topology.is_none() ? nullptr : nb::cast<const Topology*>(topology);
    view_.labels = view_.automaton->labels();
    view_.patterns = view_.automaton->patterns();
    view_.max_length = max_length;
    view_.weights = weights;
    view_.dense = view_.topology == nullptr;
    view_.varying_starts = varying_starts;
    view_.columns = columns;
    view_.bias = bias_.data();
    view_.pair = data_or_null<int32_t>(pair_);
    view_.extent = extent_.data();
  }

  void set_features(int part, Int64s rows, Int32s pattern, int64_t base) {
    (part < kParts ? view_.parts[part] : view_.cells) = rows_.keep(rows, pattern, base);
  }
  void set_bounds(std::optional<Int32s> limits, std::optional<Int32s> shortest, std::optional<Bytes> forbidden,
                  std::optional<Bytes> first, std::optional<Bytes> last) {
    limits_ = limits;
    shortest_ = shortest;
    forbidden_ = forbidden;
    first_ = first;
    last_ = last;
    view_.limits = data_or_null<int32_t>(limits_);
    view_.shortest = data_or_null<int32_t>(shortest_);
    view_.forbidden = data_or_null<uint8_t>(forbidden_);
    view_.first = data_or_null<uint8_t>(first_);
    view_.last = data_or_null<uint8_t>(last_);
  }
  void set_lengths(Doubles basis, Int64s rows, Int32s columns, int64_t base) {
    basis_ = basis;
    view_.lengths = rows_.keep(rows, columns, base);
    view_.basis_value = basis_->data();
    const int64_t M = view_.max_length;
    for (int64_t i = 0; i < view_.lengths.attributes; ++i) {
      const double *row = basis_->data() + i * M, *end = row + M;
      const auto counts = [](double x) { return x != 0.0; };
      const double* first = std::find_if(row, end, counts);
      while (end > first && !counts(end[-1])) --end;
      support_.insert(support_.end(), {first - row, end - row});
    }
    view_.basis_support = support_.data();
  }

  const FlatModelView& view() const { return view_; }

 private:
  nb::tuple kept_;
  Int32s bias_;
  std::optional<Int32s> pair_;
  Bytes extent_;
  KeptRows rows_;
  std::optional<Doubles> basis_;
  std::vector<int64_t> support_;
  std::optional<Int32s> limits_, shortest_;
  std::optional<Bytes> forbidden_, first_, last_;
  FlatModelView view_;
};

// From the tokens of one sequence to its best labels in one call, for those who ask for one sequence at a time. Needs no
// attributes of whole segments.
class Tagger {
 public:
  Tagger(nb::object model, nb::object vocabulary, Doubles w, nb::list labels, nb::callable unusual)
      : model_(model),
        vocabulary_(vocabulary),
        w_(w),
        labels_(labels),
        unusual_(unusual),
        view_(&nb::cast<const FlatModelArrays&>(model).view()),
        names_(nb::cast<Vocabulary*>(vocabulary)) {}

  // labels, one a token; None: nothing is possible
  nb::object labels(nb::handle x) const {
    const auto [length, path] = best(x);
    if (static_cast<int64_t>(path.size()) < length) return nb::none();
    nb::list out;
    for (const Step& step : path) out.append(nb::handle(PyList_GET_ITEM(labels_.ptr(), step.label)));
    return out;
  }
  // segments (start, stop, label); None: nothing is possible
  nb::object segments(nb::handle x) const {
    const auto [length, path] = best(x);
    if (path.empty() && length > 0) return nb::none();
    nb::list out;
    for (const Step& step : path)
      out.append(nb::make_tuple(step.start, step.stop, nb::handle(PyList_GET_ITEM(labels_.ptr(), step.label))));
    return out;
  }

 private:
  std::pair<int64_t, Path> best(nb::handle x) const {
    Encoder encoder(*names_, true);
    encode_one(encoder, x, unusual_);
    DataView data;
    data.sequences = 1;
    data.offsets = encoder.offsets.data();
    data.token_offsets = encoder.token_offsets.data();
    data.ids = encoder.ids.data();
    data.values = encoder.weighted() ? encoder.values.data() : nullptr;
    // other threads of Python wait for a short sequence: letting them in could take longer
    std::optional<nb::gil_scoped_release> release;
    if (data.length(0) * view_->labels * view_->patterns > 1000000) release.emplace();
    FlatScores scores(*view_, data);
    scores.fill(0, {w_.data()}, nullptr, nullptr);
    return {data.length(0), data.length(0) > 0 ? scores.best(nullptr) : Path()};
  }

  nb::object model_, vocabulary_;
  Doubles w_;
  nb::list labels_;
  nb::callable unusual_;
  const FlatModelView* view_;
  Vocabulary* names_;
};

// Keeps the arrays behind a FlatTargetView alive, and model and data.
class FlatObjectiveArrays {
 public:
  FlatObjectiveArrays(nb::object model, nb::object data, Int32s labels, std::optional<Bytes> ends, Bytes status,
                      std::optional<Bytes> allowed, std::optional<Int32s> runs, std::optional<Bytes> may_end,
                      std::optional<Doubles> weight)
      : kept_(nb::make_tuple(model, data)),
        labels_(labels),
        ends_(ends),
        status_(status),
        allowed_(allowed),
        runs_(runs),
        may_end_(may_end),
        weight_(weight) {
    FlatTargetView t;
    t.labels = labels_.data();
    t.ends = data_or_null<uint8_t>(ends_);
    t.status = status_.data();
    t.allowed = data_or_null<uint8_t>(allowed_);
    t.runs = data_or_null<int32_t>(runs_);
    t.may_end = data_or_null<uint8_t>(may_end_);
    t.weight = data_or_null<double>(weight_);
    objective_ = std::make_unique<FlatObjective>(
        FlatProblem(nb::cast<const FlatModelArrays&>(model).view(), nb::cast<const DataArrays&>(data).view(), t));
  }
  FlatObjective& get() { return *objective_; }
  void set_trajectories(Int64s offsets, Int32s labels, bool merge) {
    trajectory_offsets_ = offsets;
    trajectories_ = labels;
    objective_->set_trajectories(trajectory_offsets_->data(), trajectories_->data(), merge);
  }

 private:
  nb::tuple kept_;
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

using Ends = std::optional<Int8s>;
using MaybeOut = std::optional<DoublesOut>;
using TableArrays = std::tuple<nb::ndarray<nb::numpy, int64_t>, nb::ndarray<nb::numpy, int32_t>>;

TableArrays to_table(FeatureTable&& table) {
  const size_t rows = table.rows.size(), features = table.pattern.size();
  return {to_numpy(std::move(table.rows), {rows}), to_numpy(std::move(table.pattern), {features})};
}

TableArrays token_feature_table(const DataArrays& data, const PatternAutomaton& automaton, const Int32s& labels,
                                const Ends& ends, int part, const In<uint32_t>& orders, double least) {
  FeatureTable table;
  {
    nb::gil_scoped_release release;
    const KnownSegments known{data.view(), automaton, labels.data(), data_or_null<int8_t>(ends)};
    table = token_features(known, static_cast<Part>(part), orders.data(), static_cast<int64_t>(orders.size()), least);
  }
  return to_table(std::move(table));
}

TableArrays cell_feature_table(const DataArrays& data, const PatternAutomaton& automaton, const Int32s& labels,
                               const Ends& ends, int64_t attributes, double least) {
  const KnownSegments known{data.view(), automaton, labels.data(), data_or_null<int8_t>(ends)};
  return to_table(cell_features(known, attributes, least));
}

}  // namespace

void bind_objective(nb::module_& m) {
  m.def("token_feature_table", &token_feature_table, nb::arg("data"), nb::arg("automaton"), nb::arg("labels"),
        nb::arg("ends").none(), nb::arg("part"), nb::arg("orders"), nb::arg("least"));
  m.def("cell_feature_table", &cell_feature_table, nb::arg("data"), nb::arg("automaton"), nb::arg("labels"),
        nb::arg("ends").none(), nb::arg("attributes"), nb::arg("least"));
  nb::class_<DataArrays>(m, "EncodedData", "Encoded sequences.")
      .def(nb::init<Int64s, Int64s, Int32s, std::optional<Doubles>>(), nb::arg("offsets"), nb::arg("token_offsets"),
           nb::arg("ids"), nb::arg("values").none())
      .def("set_cells", &DataArrays::set_cells, nb::arg("level"), nb::arg("offsets"), nb::arg("start"),
           nb::arg("length"), nb::arg("ids"), nb::arg("values"),
           "Attributes of whole segments; flat models have the level 0 alone.");

  nb::enum_<Algorithm>(m, "Algorithm")
      .value("likelihood", Algorithm::kLikelihood)
      .value("margin", Algorithm::kMargin)
      .value("perceptron", Algorithm::kPerceptron)
      .value("passive_aggressive", Algorithm::kPassiveAggressive)
      .value("arow", Algorithm::kArow);
  nb::class_<Online>(m, "Online", "Settings and state of an online algorithm.")
      .def(
          "__init__", [](Online* self, Algorithm a) { new (self) Online{a}; }, nb::arg("algorithm"))
      .def_rw("strength", &Online::lambda)
      .def_rw("t0", &Online::t0)
      .def_rw("aggressiveness", &Online::aggressiveness)
      .def_rw("pa_type", &Online::pa_type)
      .def_rw("error_sensitive", &Online::error_sensitive)
      .def_rw("gamma", &Online::gamma)
      .def_rw("average", &Online::average)
      .def_rw("t", &Online::t)
      .def_rw("scale", &Online::scale)
      .def_rw("steps", &Online::steps);

  nb::class_<FlatModelArrays>(m, "FlatModel", "Which features a flat model has; weights are given at each call.")
      .def(nb::init<nb::object, nb::object, int64_t, Int32s, std::optional<Int32s>, Bytes, int64_t, bool, int64_t>(),
           nb::arg("automaton"), nb::arg("topology").none(), nb::arg("max_length"), nb::arg("bias"),
           nb::arg("pair").none(), nb::arg("extent"), nb::arg("columns"), nb::arg("varying_starts"), nb::arg("weights"))
      .def("set_features", &FlatModelArrays::set_features, nb::arg("part"), nb::arg("rows"), nb::arg("pattern"),
           nb::arg("base"), "part: 0 start, 1 inside, 2 end, 3 inner, 4 whole segments.")
      .def("set_lengths", &FlatModelArrays::set_lengths, nb::arg("basis"), nb::arg("rows"), nb::arg("columns"),
           nb::arg("base"), "basis (rows, max_length): functions of the length; columns: the labels that have each.")
      .def("set_bounds", &FlatModelArrays::set_bounds, nb::arg("limits").none(), nb::arg("shortest").none(),
           nb::arg("forbidden").none(), nb::arg("first").none(), nb::arg("last").none(),
           "limits, shortest (labels,): longest and shortest segment of each label; forbidden (patterns,): 1 for "
           "patterns that must not occur; first, last (labels,): 1 for labels that may begin and end a sequence.");
  nb::class_<Tagger>(m, "Tagger", "Best labels of one sequence at a time, straight from its tokens.")
      .def(nb::init<nb::object, nb::object, Doubles, nb::list, nb::callable>(), nb::arg("model"), nb::arg("vocabulary"),
           nb::arg("w"), nb::arg("labels"), nb::arg("unusual"),
           nb::sig("def __init__(self, model: object, vocabulary: Vocabulary, w: "
                   "numpy.typing.NDArray[numpy.float64], labels: list[typing.Any], unusual: "
                   "typing.Callable[[typing.Any, int], typing.Any]) -> None"),
           "unusual: as of encode.")
      .def("labels", &Tagger::labels, nb::arg("x"), nb::sig("def labels(self, x: object) -> list[typing.Any] | None"),
           "Best labels, one a token; None: nothing is possible.")
      .def("segments", &Tagger::segments, nb::arg("x"),
           nb::sig("def segments(self, x: object) -> list[tuple[int, int, typing.Any]] | None"),
           "Best segments (start, stop, label); None: nothing is possible.");
  m.def(
      "score_arrays",
      [](const FlatModelArrays& model, const DataArrays& data, const Doubles& w, const DoublesOut& start,
         const MaybeOut& inside, const MaybeOut& end, const MaybeOut& by_length, const MaybeOut& full,
         const MaybeOut& starts, const MaybeOut& pairs, int64_t threads) {
        const FlatScoreArrays out = {start.data(),      out_or_null(inside), out_or_null(end),  out_or_null(by_length),
                                     out_or_null(full), out_or_null(starts), out_or_null(pairs)};
        nb::gil_scoped_release release;
        fill_scores(model.view(), data.view(), w.data(), threads, out);
      },
      nb::arg("model"), nb::arg("data"), nb::arg("w"), nb::arg("start"), nb::arg("inside").none(),
      nb::arg("end").none(), nb::arg("by_length").none(), nb::arg("full").none(), nb::arg("starts").none(),
      nb::arg("pairs").none(), nb::arg("threads"),
      "Scores of all sequences, into arrays of zeros that PatternCore or DenseCore takes.");

  nb::class_<FlatObjectiveArrays> objective(m, "FlatObjective",
                                            "Objectives of a flat model on encoded sequences and targets.");
  def_objective(objective);
  objective
      .def(nb::init<nb::object, nb::object, Int32s, std::optional<Bytes>, Bytes, std::optional<Bytes>,
                    std::optional<Int32s>, std::optional<Bytes>, std::optional<Doubles>>(),
           nb::arg("model"), nb::arg("data"), nb::arg("labels"), nb::arg("ends").none(), nb::arg("status"),
           nb::arg("allowed").none(), nb::arg("runs").none(), nb::arg("may_end").none(), nb::arg("weight").none())
      .def(
          "use_sum_difference",
          [](FlatObjectiveArrays& o) {
            nb::gil_scoped_release release;
            o.get().use_sum_difference();
          },
          "Log losses by the Sum-Difference algorithm from now on, unless targets are trajectories; chains only.")
      .def(
          "decode",
          [](FlatObjectiveArrays& o, const Doubles& w, bool known,
             const nb::ndarray<int32_t, nb::numpy, nb::c_contig, nb::device::cpu>& labels, int64_t threads) {
            nb::gil_scoped_release release;
            o.get().decode(w.data(), known, labels.data(), threads);
          },
          nb::arg("w"), nb::arg("known"), nb::arg("labels"), nb::arg("threads"),
          "Best labels (N,) by algorithms 4 and 5 of paper 002; a sequence that begins with -1 is impossible.")
      .def(
          "refused",
          [](FlatObjectiveArrays& o) { return o.get().variable_order() ? o.get().variable_order()->refused() : 0; },
          "Sequences of the last log loss that the Sum-Difference guard left to the automaton.")
      .def(
          "sum_difference_size",
          [](FlatObjectiveArrays& o) {
            if (!o.get().variable_order()) return std::tuple<int64_t, int64_t, int64_t>(0, 0, 0);
            const VariableOrder::Size s = o.get().variable_order()->size();
            return std::tuple<int64_t, int64_t, int64_t>(s.sets, s.nodes, s.bytes);
          },
          "Distinct pattern sets, patterns alive summed over positions, bytes of the structure.")
      .def("set_trajectories", &FlatObjectiveArrays::set_trajectories, nb::arg("offsets"), nb::arg("labels"),
           nb::arg("merge"), "Trajectories of the sequences of status 3.");
}

}  // namespace scansion
