#include "chain_answers.hpp"

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

using ChainPacked = std::tuple<nb::ndarray<nb::numpy, int32_t>, Int64Array, DoubleArray>;

template <class Ask>
ChainPacked ask_labels(const ChainBatch& batch, const Ask& ask) {
  ChainLabels found;
  {
    nb::gil_scoped_release release;
    found = ask(ChainAnswers(batch));
  }
  const size_t n = found.labels.size(), b = found.firsts.size(), c = found.scores.size();
  return {to_numpy(std::move(found.labels), {n}), to_numpy(std::move(found.firsts), {b}),
          to_numpy(std::move(found.scores), {c})};
}

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
  batch
      .def(
          "kbest_labels",
          [](const OwnedChainBatch& b, int64_t k, int64_t threads) {
            return ask_labels(b, [&](const ChainAnswers& a) { return a.kbest(k, threads); });
          },
          nb::arg("k"), nb::arg("threads"),
          "Labels of the k best configurations one after another, firsts (sequences + 1,), scores.")
      .def(
          "sample_labels",
          [](const OwnedChainBatch& b, int64_t n, const Doubles& random, int64_t threads) {
            return ask_labels(b, [&](const ChainAnswers& a) { return a.sample(n, random.data(), threads); });
          },
          nb::arg("n"), nb::arg("random"), nb::arg("threads"), "The same of n random configurations.")
      .def(
          "chain_entropies",
          [](const OwnedChainBatch& b, const DoublesOut& out, int64_t threads) {
            nb::gil_scoped_release release;
            ChainAnswers(b).entropies(out.data(), threads);
          },
          nb::arg("out"), nb::arg("threads"), "What entropies() fills, in linear space where that serves.");
  bind_questions(batch);
  CompressedQuestions<OwnedChainBatch>::bind(batch);
}

}  // namespace scansion
