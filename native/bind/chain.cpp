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
  void table(int64_t i, Workspace& work, bool best, const Use& use) const {
    const ChainView v = view(i);
    double* block = work.take(v.length * labels_ + labels_);
    double* rows = block + labels_;
    if (v.length > 0 && !(kernels().chain_table(v, best, block, rows) > kMinusInfinity)) return;
    ChainGraph graph(kernels(), v, rows, block);
    use(graph);
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
      double* block = work[worker].take(kernels().chain_workspace(view.length, L));
      if (!kernels().chain_posteriors(view, batch.varying() ? nullptr : &shared.weights, block, backward, answer))
        ++escaped;
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
void best_labels(const ChainBatch& batch, const Int64sOut& out, int64_t threads) {
  nb::gil_scoped_release release;
  std::vector<Workspace> work(std::max<int64_t>(1, threads));
  parallel_for(batch.size(), threads, [&](int64_t i, int64_t worker) {
    const ChainView view = batch.view(i);
    int64_t* labels = out.data() + batch.offset(i);
    double* row = work[worker].take(view.length * (view.labels + 1) + view.labels);
    double* table = row + view.labels;
    auto* best = reinterpret_cast<int32_t*>(table + view.length * view.labels);
    if (kernels().chain_table(view, true, row, table) > kMinusInfinity) {
      best_chain_labels(view, table, best);
      std::copy_n(best, view.length, labels);
    } else {
      std::fill_n(labels, view.length, int64_t{-1});
    }
  });
}

// labels (N,) of one labelling per sequence
void scores(const ChainBatch& batch, const Int64s& labels, const DoublesOut& out) {
  const int64_t L = batch.labels();
  for (int64_t i = 0; i < batch.size(); ++i) {
    const ChainView v = batch.view(i);
    const int64_t* y = labels.data() + batch.offset(i);
    double sum = 0.0, lost = 0.0;
    const auto add = [&](double x) {
      const double s = sum + x;
      lost += std::abs(sum) >= std::abs(x) ? (sum - s) + x : (x - s) + sum;
      sum = s;
    };
    bool possible = true;
    const auto take = [&](double x) {
      if (x > kMinusInfinity)
        add(x);
      else
        possible = false;
    };
    for (int64_t t = 0; t < v.length; ++t) {
      if (v.allowed && !v.allowed[t * L + y[t]]) possible = false;
      take(v.unary[t * L + y[t]]);
      if (t > 0) take(v.transition[(t - 1) * v.transition_stride + y[t - 1] * L + y[t]]);
    }
    if (v.length > 0) {
      if (v.start) take(v.start[y[0]]);
      if (v.end) take(v.end[y[v.length - 1]]);
    }
    out.data()[i] = possible ? sum + lost : kMinusInfinity;
  }
}

// How many positions of sequence i some labelling can cover: T, unless nothing is possible.
int64_t furthest(const ChainBatch& batch, int64_t i) {
  const ChainView whole = batch.view(i);
  std::vector<double> row(static_cast<size_t>(whole.labels));
  std::vector<double> table(static_cast<size_t>(whole.length * whole.labels));
  int64_t low = 0, high = whole.length;  // a prefix of `low` positions is possible
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    ChainView view = whole;
    view.length = middle;
    if (middle < whole.length) view.end = nullptr;
    if (kernels().chain_table(view, true, row.data(), table.data()) > kMinusInfinity)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
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
      .def("best_labels", &best_labels, nb::arg("out"), nb::arg("threads"))
      .def("kbest", &Questions::kbest, nb::arg("k"), nb::arg("threads"))
      .def("sample", &Questions::sample, nb::arg("n"), nb::arg("uniform"), nb::arg("threads"))
      .def("entropies", &Questions::entropies, nb::arg("out"), nb::arg("threads"))
      .def("scores", &scores, nb::arg("labels"), nb::arg("out"))
      .def("furthest", &furthest, nb::arg("sequence"), "Positions that some labelling can cover.");
  CompressedQuestions<ChainBatch>::bind(batch);
}

}  // namespace scansion
