#include <limits>

#include "bind/common.hpp"
#include "bind/trajectories.hpp"

namespace scansion {
namespace {

int64_t padded4(int64_t n) { return (n + 3) / 4 * 4; }

// First-order chains: rows of all sequences one after another, cut at offsets.
class ChainBatch {
 public:
  ChainBatch(Doubles unary, Int64s offsets, Doubles transition, std::optional<Doubles> start,
             std::optional<Doubles> end, std::optional<Bytes> allowed)
      : unary_(std::move(unary)),
        offsets_(std::move(offsets)),
        transition_(std::move(transition)),
        start_(std::move(start)),
        end_(std::move(end)),
        allowed_(std::move(allowed)),
        labels_(static_cast<int64_t>(unary_.shape(1))),
        varying_(transition_.ndim() == 3) {
    if (varying_) {
      firsts_.push_back(0);
      for (int64_t i = 0; i < size(); ++i) firsts_.push_back(firsts_.back() + std::max<int64_t>(0, length(i) - 1));
    }
  }

  int64_t size() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  int64_t labels() const { return labels_; }
  bool varying() const { return varying_; }
  int64_t offset(int64_t i) const { return offsets_.data()[i]; }
  int64_t length(int64_t i) const { return offset(i + 1) - offset(i); }
  // where sequence i's transition posteriors start: T - 1 matrices each
  int64_t first_transition(int64_t i) const {
    if (varying_) return firsts_[i];
    int64_t n = 0;
    for (int64_t j = 0; j < i; ++j) n += std::max<int64_t>(0, length(j) - 1);
    return n;
  }
  const double* transition() const { return transition_.data(); }

  ChainView view(int64_t i) const {
    ChainView v;
    v.length = length(i);
    v.labels = labels_;
    v.unary = unary_.data() + offset(i) * labels_;
    v.transition = transition_.data() + (varying_ ? firsts_[i] * labels_ * labels_ : 0);
    v.transition_stride = varying_ ? labels_ * labels_ : 0;
    v.start = data_or_null<double>(start_);
    v.end = data_or_null<double>(end_);
    v.allowed = allowed_ ? allowed_->data() + offset(i) * labels_ : nullptr;
    return v;
  }

  template <class Use>
  bool on_graph(int64_t i, Workspace& work, Table table, const Use& use) const {
    return on_chain(view(i), work, table, use);
  }

 private:
  Doubles unary_;
  Int64s offsets_;
  Doubles transition_;
  std::optional<Doubles> start_, end_;
  std::optional<Bytes> allowed_;
  int64_t labels_;
  bool varying_;
  std::vector<int64_t> firsts_;
};

// Exponentials of the transitions that all positions share, made once per question.
struct SharedTransition {
  std::vector<double> block;
  TransitionWeights weights;
  explicit SharedTransition(const ChainBatch& batch) {
    if (batch.varying()) return;
    const int64_t L = batch.labels(), size = L * padded4(L);
    block.resize(static_cast<size_t>(2 * size));
    weights.weight = block.data();
    weights.transposed = block.data() + size;
    kernels().exponentiate_transition(batch.transition(), L, weights);
  }
};

int64_t posteriors(const ChainBatch& batch, const DoublesOut& log_partition, std::optional<DoublesOut> labels,
                   std::optional<DoublesOut> counts, std::optional<DoublesOut> transitions, int64_t threads) {
  nb::gil_scoped_release release;
  const SharedTransition shared(batch);
  const int64_t L = batch.labels(), stride = padded4(L);
  const bool backward = labels || counts || transitions;
  // expected counts: linear-space outer products and log-space probabilities, per chunk, added up in order
  const Chunks chunks(batch.size());
  const bool sum_counts = counts && !batch.varying();
  std::vector<double> outer(sum_counts ? static_cast<size_t>(chunks.chunks * L * stride) : 0, 0.0);
  std::vector<double> direct(sum_counts ? static_cast<size_t>(chunks.chunks * L * L) : 0, 0.0);
  std::vector<int64_t> firsts(batch.size() + 1, 0);
  for (int64_t i = 0; i < batch.size(); ++i) firsts[i + 1] = firsts[i] + std::max<int64_t>(0, batch.length(i) - 1);
  std::vector<Workspace> work(std::max<int64_t>(1, threads));
  std::atomic<int64_t> escaped{0};
  parallel_for(chunks.chunks, threads, [&](int64_t chunk, int64_t worker) {
    for (int64_t i = chunks.begin(chunk); i < chunks.end(chunk); ++i) {
      const ChainView view = batch.view(i);
      ChainAnswer answer;
      if (labels) answer.labels = labels->data() + batch.offset(i) * L;
      if (transitions) answer.transitions = transitions->data() + firsts[i] * L * L;
      if (sum_counts) {
        answer.outer = outer.data() + chunk * L * stride;
        answer.counts = direct.data() + chunk * L * L;
      }
      if (!chain_posteriors(view, batch.varying() ? nullptr : &shared.weights, work[worker], backward, answer)) ++escaped;
      log_partition.data()[i] = answer.log_partition;
    }
  });
  if (sum_counts) {
    double* out = counts->data();
    for (int64_t chunk = 0; chunk < chunks.chunks; ++chunk)
      for (int64_t i = 0; i < L; ++i)
        for (int64_t j = 0; j < L; ++j)
          out[i * L + j] += outer[(chunk * L + i) * stride + j] * shared.weights.weight[i * stride + j] +
                            direct[(chunk * L + i) * L + j];
  }
  return escaped;
}

// Viterbi labels of all rows; -1 throughout a sequence for which nothing is possible.
void best_labels_of_all(const ChainBatch& batch, const Int64sOut& out, int64_t threads) {
  nb::gil_scoped_release release;
  std::vector<Workspace> work(std::max<int64_t>(1, threads));
  std::vector<std::vector<int32_t>> labels(work.size());
  parallel_for(batch.size(), threads, [&](int64_t i, int64_t worker) {
    const ChainView view = batch.view(i);
    std::vector<int32_t>& best = labels[worker];
    best.resize(static_cast<size_t>(view.length));
    if (!best_labels(view, work[worker], best.data())) std::fill(best.begin(), best.end(), -1);
    std::copy(best.begin(), best.end(), out.data() + batch.offset(i));
  });
}

// labels (N,) of one labelling per sequence
void scores(const ChainBatch& batch, const Int64s& labels, const DoublesOut& out) {
  const int64_t L = batch.labels();
  for (int64_t i = 0; i < batch.size(); ++i) {
    const ChainView v = batch.view(i);
    const int64_t* y = labels.data() + batch.offset(i);
    ScoreSum sum;
    for (int64_t t = 0; t < v.length; ++t) {
      if (v.allowed && !v.allowed[t * L + y[t]]) sum.forbid();
      sum.add(v.unary[t * L + y[t]]);
      if (t > 0) sum.add(v.transition[(t - 1) * v.transition_stride + y[t - 1] * L + y[t]]);
    }
    if (v.length > 0) {
      if (v.start) sum.add(v.start[y[0]]);
      if (v.end) sum.add(v.end[y[v.length - 1]]);
    }
    out.data()[i] = sum.value();
  }
}

// How many positions of sequence i some labelling can cover: T, unless nothing is possible.
int64_t furthest(const ChainBatch& batch, int64_t i) {
  const ChainView view = batch.view(i);
  const int64_t L = view.labels;
  std::vector<double> row(static_cast<size_t>(L));
  std::vector<uint8_t> before, here;
  for (int64_t t = 0; t < view.length; ++t) {
    kernels().chain_row(view, t, row.data());
    const double* w = view.transition + (t - 1) * view.transition_stride;
    here.assign(static_cast<size_t>(L), t == 0);
    for (int64_t j = 0; j < L; ++j) {
      for (int64_t i = 0; t > 0 && i < L; ++i) here[j] = here[j] || (before[i] && possible(w[i * L + j]));
      here[j] = here[j] && possible(row[j]);
    }
    if (std::find(here.begin(), here.end(), 1) == here.end()) return t;
    before.swap(here);
  }
  return view.length;
}

}  // namespace

void bind_chain(nb::module_& m) {
  using Questions = PathQuestions<ChainBatch>;
  nb::class_<ChainBatch> batch(m, "ChainBatch", "First-order chains, ragged.");
  batch
      .def(nb::init<Doubles, Int64s, Doubles, std::optional<Doubles>, std::optional<Doubles>, std::optional<Bytes>>(),
           nb::arg("unary"), nb::arg("offsets"), nb::arg("transition"), nb::arg("start").none(), nb::arg("end").none(),
           nb::arg("allowed").none())
      .def("posteriors", &posteriors, nb::arg("log_partition"), nb::arg("labels").none(), nb::arg("counts").none(),
           nb::arg("transitions").none(), nb::arg("threads"),
           "Fills what is asked for; returns how many sequences needed the log-space kernel.")
      .def("best_labels", &best_labels_of_all, nb::arg("out"), nb::arg("threads"))
      .def("kbest", &Questions::kbest, nb::arg("k"), nb::arg("threads"))
      .def("sample", &Questions::sample, nb::arg("n"), nb::arg("uniform"), nb::arg("threads"))
      .def("entropies", &Questions::entropies, nb::arg("out"), nb::arg("threads"))
      .def("scores", &scores, nb::arg("labels"), nb::arg("out"))
      .def("furthest", &furthest, nb::arg("sequence"), "Positions that some labelling can cover.");
  CompressedQuestions<ChainBatch>::bind(batch);
}

}  // namespace scansion
