#include "nested_batch.hpp"

#include "bind/lattices.hpp"

namespace scansion {
namespace {

using MaybeDoubles = std::optional<Doubles>;
using MaybeOut = std::optional<DoublesOut>;
using Parts = std::tuple<MaybeDoubles, MaybeDoubles, MaybeDoubles, MaybeDoubles, MaybeDoubles>;
template <class Array>
using ByLevel = std::vector<Array>;

// An array whose first dimension is rows if it has one more than `ndim` dimensions.
template <class Number, class Array>
NestedRowsOf<Number> rows_of(const std::optional<Array>& array, size_t ndim) {
  NestedRowsOf<Number> out;
  if (!array) return out;
  out.data = array->data();
  if (array->ndim() == ndim) return out;
  out.stride = 1;
  for (size_t k = 1; k < array->ndim(); ++k) out.stride *= static_cast<int64_t>(array->shape(k));
  return out;
}

// Keeps the arrays alive.
class OwnedNestedBatch : public NestedBatch {
 public:
  OwnedNestedBatch(Int64s offsets, std::vector<int64_t> sizes, ByLevel<Bytes> children, ByLevel<Doubles> transit,
                   ByLevel<Doubles> init, ByLevel<Doubles> end, ByLevel<Parts> parts, std::vector<int64_t> bounds,
                   std::vector<bool> free, ByLevel<std::optional<Bytes>> allowed, ByLevel<Ends> ends)
      : offsets_(offsets), children_(children), cliques_{transit, init, end}, parts_(parts), allowed_(allowed),
        ends_(ends) {
    sequences = static_cast<int64_t>(offsets.size()) - 1;
    this->offsets = offsets.data();
    this->sizes = sizes;
    this->bounds = bounds;
    this->free.assign(free.begin(), free.end());
    for (const Bytes& mask : children_) this->children.push_back(mask.data());
    scores.resize(sizes.size());
    for (size_t g = 0; g < sizes.size(); ++g) {
      known.push_back({data_or_null<uint8_t>(allowed_[g]), data_or_null<int8_t>(ends_[g])});
      const auto& [inside, start, stop, length, spans] = parts_[g];
      NestedBatchLevel<const double>& s = scores[g];
      s.inside = rows_of<const double>(inside, 1);
      s.start = rows_of<const double>(start, 1);
      s.stop = rows_of<const double>(stop, 1);
      s.length = data_or_null<double>(length);
      s.spans = rows_of<const double>(spans, 2);
      if (g == 0) continue;
      s.transit = rows_of<const double>(MaybeDoubles(transit[g - 1]), 3);
      s.init = rows_of<const double>(MaybeDoubles(init[g - 1]), 2);
      s.end = rows_of<const double>(MaybeDoubles(end[g - 1]), 2);
    }
    prepare();
  }
  OwnedNestedBatch(const OwnedNestedBatch&) = delete;

 private:
  Int64s offsets_;
  ByLevel<Bytes> children_;
  std::vector<ByLevel<Doubles>> cliques_;
  ByLevel<Parts> parts_;
  ByLevel<std::optional<Bytes>> allowed_;
  ByLevel<Ends> ends_;
};

int64_t posteriors(const OwnedNestedBatch& b, const DoublesOut& log_partition, const ByLevel<DoublesOut>& labels,
                   const ByLevel<DoublesOut>& boundaries, const ByLevel<MaybeOut>& spans, const ByLevel<MaybeOut>& start,
                   const ByLevel<MaybeOut>& stop, const ByLevel<MaybeOut>& length, const ByLevel<MaybeOut>& transit,
                   const ByLevel<MaybeOut>& init, const ByLevel<MaybeOut>& end, int64_t threads) {
  nb::gil_scoped_release release;
  NestedBatchAnswer answer;
  answer.log_partition = log_partition.data();
  answer.gradient.resize(labels.size());
  for (size_t g = 0; g < labels.size(); ++g) {
    answer.labels.push_back(labels[g].data());
    answer.boundaries.push_back(boundaries[g].data());
    if (g == 0) continue;
    NestedBatchLevel<double>& e = answer.gradient[g];
    e.spans = rows_of<double>(spans[g], 2);
    e.start = rows_of<double>(start[g], 1);
    e.stop = rows_of<double>(stop[g], 1);
    e.length = out_or_null(length[g]);
    e.transit = rows_of<double>(transit[g - 1], 3);
    e.init = rows_of<double>(init[g - 1], 2);
    e.end = rows_of<double>(end[g - 1], 2);
  }
  return b.posteriors(answer, threads);
}

}  // namespace

void bind_nested(nb::module_& m) {
  nb::class_<OwnedNestedBatch> batch(m, "NestedBatch", "Scores of nested lattices, ragged.");
  batch
      .def(nb::init<Int64s, std::vector<int64_t>, ByLevel<Bytes>, ByLevel<Doubles>, ByLevel<Doubles>, ByLevel<Doubles>,
                    ByLevel<Parts>, std::vector<int64_t>, std::vector<bool>, ByLevel<std::optional<Bytes>>,
                    ByLevel<Ends>>(),
           nb::arg("offsets"), nb::arg("sizes"), nb::arg("children"), nb::arg("transit"), nb::arg("init"),
           nb::arg("end"), nb::arg("parts"), nb::arg("bounds"), nb::arg("free"), nb::arg("allowed"),
           nb::arg("ends"))
      .def(
          "log_partitions",
          [](const OwnedNestedBatch& b, const DoublesOut& out, int64_t threads) {
            nb::gil_scoped_release release;
            b.log_partitions(out.data(), threads);
          },
          nb::arg("out"), nb::arg("threads"))
      .def("posteriors", &posteriors, nb::arg("log_partition"), nb::arg("labels"), nb::arg("boundaries"),
           nb::arg("spans"), nb::arg("start"), nb::arg("stop"), nb::arg("length"), nb::arg("transit"), nb::arg("init"),
           nb::arg("end"), nb::arg("threads"),
           "Fills what is asked for (arrays of zeros); returns how many sequences needed log space somewhere.");
  bind_questions(batch);
}

}  // namespace scansion
