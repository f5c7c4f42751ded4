#include "chain_batch.hpp"

#include "bind/lattices.hpp"
#include "bind/trajectories.hpp"

namespace scansion {
namespace {

// Keeps the arrays alive.
class OwnedChainBatch : public ChainBatch {
 public:
  OwnedChainBatch(Doubles unary, Int64s offsets, Doubles transition, std::optional<Doubles> start,
                  std::optional<Doubles> end, std::optional<Bytes> allowed)
      : arrays_(unary, offsets, transition, start, end, allowed) {
    sequences = static_cast<int64_t>(offsets.size()) - 1;
    labels = static_cast<int64_t>(unary.shape(1));
    this->offsets = offsets.data();
    this->unary = unary.data();
    this->transition = transition.data();
    varying = transition.ndim() == 3;
    this->start = data_or_null<double>(start);
    this->end = data_or_null<double>(end);
    this->allowed = data_or_null<uint8_t>(allowed);
    prepare();
  }

 private:
  std::tuple<Doubles, Int64s, Doubles, std::optional<Doubles>, std::optional<Doubles>, std::optional<Bytes>> arrays_;
};

}  // namespace

void bind_chain(nb::module_& m) {
  nb::class_<OwnedChainBatch> batch(m, "ChainBatch", "First-order chains, ragged.");
  batch
      .def(nb::init<Doubles, Int64s, Doubles, std::optional<Doubles>, std::optional<Doubles>, std::optional<Bytes>>(),
           nb::arg("unary"), nb::arg("offsets"), nb::arg("transition"), nb::arg("start").none(), nb::arg("end").none(),
           nb::arg("allowed").none())
      .def(
          "posteriors",
          [](const OwnedChainBatch& b, const DoublesOut& log_partition, std::optional<DoublesOut> labels,
             std::optional<DoublesOut> counts, std::optional<DoublesOut> transitions, int64_t threads) {
            nb::gil_scoped_release release;
            return b.posteriors({log_partition.data(), out_or_null(labels), out_or_null(counts), out_or_null(transitions)},
                                threads);
          },
          nb::arg("log_partition"), nb::arg("labels").none(), nb::arg("counts").none(), nb::arg("transitions").none(),
          nb::arg("threads"), "Fills what is asked for; returns how many sequences needed the log-space kernel.")
      .def(
          "best_labels",
          [](const OwnedChainBatch& b, const Int64sOut& out, int64_t threads) {
            nb::gil_scoped_release release;
            b.best_labels(out.data(), threads);
          },
          nb::arg("out"), nb::arg("threads"), "Best labels (N,); -1 throughout a sequence that is impossible.");
  bind_questions(batch);
  CompressedQuestions<OwnedChainBatch>::bind(batch);
}

}  // namespace scansion
