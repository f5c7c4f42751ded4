#include "segment_batch.hpp"

#include "bind/lattices.hpp"
#include "bind/trajectories.hpp"

namespace scansion {
namespace {

using MaybeDoubles = std::optional<Doubles>;
using MaybeOut = std::optional<DoublesOut>;

// Keeps the arrays alive; the caller keeps the automaton and the topology (nb::keep_alive).
class OwnedSegmentBatch : public SegmentBatch {
 public:
  OwnedSegmentBatch(const PatternAutomaton& automaton, const Topology& topology, Int64s offsets, int64_t max_length,
                    MaybeDoubles starts, MaybeDoubles full, MaybeDoubles start, MaybeDoubles inside, MaybeDoubles end,
                    MaybeDoubles by_length, std::optional<Bytes> allowed, Ends ends)
      : SegmentBatch(automaton, topology), offsets_(offsets), arrays_{starts, full, start, inside, end, by_length} {
    sequences = static_cast<int64_t>(offsets.size()) - 1;
    this->offsets = offsets.data();
    this->max_length = max_length;
    for (const MaybeDoubles& part : {full, start, inside, end, by_length})
      if (part) columns = static_cast<int64_t>(part->shape(part->ndim() - 1));
    parts = {data_or_null<double>(starts), data_or_null<double>(full), data_or_null<double>(start),
             data_or_null<double>(inside), data_or_null<double>(end),  data_or_null<double>(by_length)};
    starts_vary = starts && starts->ndim() == 2;
    start_varies = start && start->ndim() == 2;
    prepare({data_or_null<uint8_t>(allowed), data_or_null<int8_t>(ends)});
  }

 private:
  Int64s offsets_;
  std::vector<MaybeDoubles> arrays_;
};

}  // namespace

void bind_segment(nb::module_& m) {
  m.def(
      "constraint_runs",
      [](const Int64s& offsets, std::optional<Bytes> allowed, Ends ends, int64_t labels, int64_t max_length) {
        const size_t n = static_cast<size_t>(offsets.data()[offsets.size() - 1]), L = static_cast<size_t>(labels);
        const SegmentRuns found({data_or_null<uint8_t>(allowed), data_or_null<int8_t>(ends)}, offsets.data(),
                                static_cast<int64_t>(offsets.size()) - 1, labels, max_length);
        std::vector<int32_t> runs(found.runs(), found.runs() + n * L);
        std::vector<uint8_t> may_end(found.may_end(), found.may_end() + n);
        return std::make_tuple(to_numpy(std::move(runs), {n, L}), to_numpy(std::move(may_end), {n}));
      },
      nb::arg("offsets"), nb::arg("allowed").none(), nb::arg("ends").none(), nb::arg("labels"), nb::arg("max_length"));
  nb::class_<OwnedSegmentBatch> batch(m, "SegmentBatch", "Segment lattices on a pattern automaton, ragged.");
  batch
      .def(nb::init<const PatternAutomaton&, const Topology&, Int64s, int64_t, MaybeDoubles, MaybeDoubles, MaybeDoubles,
                    MaybeDoubles, MaybeDoubles, MaybeDoubles, std::optional<Bytes>, Ends>(),
           nb::arg("automaton"), nb::arg("topology"), nb::arg("offsets"), nb::arg("max_length"),
           nb::arg("starts").none(), nb::arg("full").none(), nb::arg("start").none(), nb::arg("inside").none(),
           nb::arg("end").none(), nb::arg("by_length").none(), nb::arg("allowed").none(), nb::arg("ends").none(),
           nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
      .def(
          "posteriors",
          [](const OwnedSegmentBatch& b, const DoublesOut& log_partition, MaybeOut labels, MaybeOut boundaries,
             MaybeOut segments, MaybeOut starts, MaybeOut full, MaybeOut start, MaybeOut inside, MaybeOut end,
             MaybeOut by_length, int64_t threads) {
            nb::gil_scoped_release release;
            const SegmentParts<double> gradient = {out_or_null(starts), out_or_null(full), out_or_null(start),
                                                   out_or_null(inside), out_or_null(end),  out_or_null(by_length)};
            return b.posteriors(
                {log_partition.data(), out_or_null(labels), out_or_null(boundaries), out_or_null(segments), gradient},
                threads);
          },
          nb::arg("log_partition"), nb::arg("labels").none(), nb::arg("boundaries").none(), nb::arg("segments").none(),
          nb::arg("starts").none(), nb::arg("full").none(), nb::arg("start").none(), nb::arg("inside").none(),
          nb::arg("end").none(), nb::arg("by_length").none(), nb::arg("threads"),
          "Fills what is asked for (arrays of zeros); returns how many sequences needed the log-space kernel.");
  batch.def(
      "best_labels",
      [](const OwnedSegmentBatch& b, const Int64sOut& out, int64_t threads) {
        nb::gil_scoped_release release;
        b.best_labels(out.data(), threads);
      },
      nb::arg("out"), nb::arg("threads"), "Of chains: best labels (N,); -1 throughout a sequence that is impossible.");
  bind_questions(batch);
  CompressedQuestions<OwnedSegmentBatch>::bind(batch);
}

}  // namespace scansion
