#include "nested_objective.hpp"

#include "bind/objective.hpp"

namespace scansion {
namespace {

using Masks = std::tuple<Bytes, Bytes, Bytes, Bytes>;
using MaybeOut = std::optional<DoublesOut>;
using Persistence = std::tuple<MaybeOut, MaybeOut, MaybeOut, MaybeOut, MaybeOut>;  // as NestedBatch takes it
using Cliques = std::tuple<DoublesOut, DoublesOut, DoublesOut>;                    // transit, init, end

// Keeps the arrays behind a NestedModelView alive.
class NestedModelArrays {
 public:
  // masks by level: children, possible transitions, initialisations and endings
  NestedModelArrays(const std::vector<int64_t>& bounds, std::vector<Masks> masks, int64_t weights)
      : masks_(std::move(masks)), basis_(masks_.size()) {
    view_.weights = weights;
    for (size_t k = 0; k < masks_.size(); ++k) {
      const auto& [children, transition, initialisation, ending] = masks_[k];
      NestedLevelFeatures level;
      level.parents = static_cast<int64_t>(children.shape(0));
      level.states = static_cast<int64_t>(children.shape(1));
      level.bound = bounds[k];
      level.children = children.data();
      level.possible[0] = transition.data();
      level.possible[1] = initialisation.data();
      level.possible[2] = ending.data();
      view_.levels.push_back(level);
    }
  }

  void set_features(size_t level, int part, const Int64s& rows, const Int32s& columns, int64_t base) {
    NestedLevelFeatures& to = view_.levels[level];
    FeatureRows& f = part < NestedPart::kTokens ? to.tokens[part] : part == NestedPart::kLength ? to.length : to.span;
    f = kept_.keep(rows, columns, base);
  }
  void set_always(size_t level, int part, const Int64s& rows, const Int32s& columns, int64_t base) {
    view_.levels[level].always[part - NestedPart::kTransition] = kept_.keep(rows, columns, base);
  }
  void set_basis(size_t level, Doubles basis) {
    basis_[level] = basis;
    view_.levels[level].basis = basis_[level]->data();
  }

  const NestedModelView& view() const { return view_; }
  // made when first wanted
  const NestedFeatures& features() {
    if (!features_) features_ = std::make_unique<NestedFeatures>(view_, false);
    return *features_;
  }

 private:
  std::vector<Masks> masks_;
  std::vector<std::optional<Doubles>> basis_;
  KeptRows kept_;
  NestedModelView view_;
  std::unique_ptr<NestedFeatures> features_;
};

// Keeps the arrays behind a NestedTargetView alive, and model and data.
class NestedObjectiveArrays {
 public:
  NestedObjectiveArrays(nb::object model, nb::object data, std::vector<Int32s> labels, std::vector<Int8s> ends,
                        std::vector<std::optional<Bytes>> allowed, Bytes status, std::optional<Doubles> weight)
      : kept_(nb::make_tuple(model, data)),
        labels_(std::move(labels)),
        ends_(std::move(ends)),
        allowed_(std::move(allowed)),
        status_(status),
        weight_(weight) {
    NestedTargetView t;
    for (const Int32s& one : labels_) t.labels.push_back(one.data());
    for (const Int8s& one : ends_) t.ends.push_back(one.data());
    for (const auto& one : allowed_) t.allowed.push_back(data_or_null<uint8_t>(one));
    t.status = status_.data();
    t.weight = data_or_null<double>(weight_);
    objective_ = std::make_unique<NestedObjective>(
        NestedProblem(nb::cast<const NestedModelArrays&>(model).view(), nb::cast<const DataArrays&>(data).view(), t));
  }
  NestedObjective& get() { return *objective_; }

 private:
  nb::tuple kept_;
  std::vector<Int32s> labels_;
  std::vector<Int8s> ends_;
  std::vector<std::optional<Bytes>> allowed_;
  Bytes status_;
  std::optional<Doubles> weight_;
  std::unique_ptr<NestedObjective> objective_;
};

void score_arrays(NestedModelArrays& model, const DataArrays& data, const Doubles& w,
                  const std::vector<Persistence>& persist, const std::vector<Cliques>& cliques, int64_t threads) {
  NestedScoreArrays out;
  for (size_t k = 0; k < persist.size(); ++k) {
    const auto& [inside, start, stop, length, spans] = persist[k];
    const auto& [transit, init, end] = cliques[k];
    out.levels.push_back({out_or_null(inside),
                          out_or_null(start),
                          out_or_null(stop),
                          out_or_null(length),
                          out_or_null(spans),
                          {transit.data(), init.data(), end.data()}});
  }
  const NestedFeatures& features = model.features();
  nb::gil_scoped_release release;
  fill_scores(features, data.view(), w.data(), threads, out);
}

}  // namespace

void bind_nested_objective(nb::module_& m) {
  nb::class_<NestedModelArrays>(m, "NestedModel",
                                "Which features a hierarchical model has; weights are given at each call.")
      .def(
          nb::init<const std::vector<int64_t>&, std::vector<Masks>, int64_t>(), nb::arg("bounds"), nb::arg("masks"),
          nb::arg("weights"),
          "By level: the longest segment, 0 for none; children (P, S), possible transitions (P, S, S), initialisations "
          "and endings (P, S).")
      .def("set_features", &NestedModelArrays::set_features, nb::arg("level"), nb::arg("part"), nb::arg("rows"),
           nb::arg("columns"), nb::arg("base"),
           "Row r, an attribute or a function of the length, has the columns rows[r]:rows[r + 1]; base: first weight. "
           "part: 0 inside, 1 start, 2 end, 3 inner, 4 transition, 5 initialisation, 6 ending, 7 length, 8 span.")
      .def("set_always", &NestedModelArrays::set_always, nb::arg("level"), nb::arg("part"), nb::arg("rows"),
           nb::arg("columns"), nb::arg("base"), "The same for features that are always on: one row; parts 4 to 6.")
      .def("set_basis", &NestedModelArrays::set_basis, nb::arg("level"), nb::arg("basis"),
           "Functions of the length (n, M), without a bound (n, 1).");
  m.def("nested_score_arrays", &score_arrays, nb::arg("model"), nb::arg("data"), nb::arg("w"), nb::arg("persist"),
        nb::arg("cliques"), nb::arg("threads"),
        "Scores of all sequences by level, into the arrays that NestedBatch takes.");
  nb::class_<NestedObjectiveArrays> objective(m, "NestedObjective",
                                              "Objectives of a hierarchical model on encoded sequences and targets.");
  objective.def(nb::init<nb::object, nb::object, std::vector<Int32s>, std::vector<Int8s>,
                         std::vector<std::optional<Bytes>>, Bytes, std::optional<Doubles>>(),
                nb::arg("model"), nb::arg("data"), nb::arg("labels"), nb::arg("ends"), nb::arg("allowed"),
                nb::arg("status"), nb::arg("weight").none());
  def_objective(objective);
}

}  // namespace scansion
