#include "bind/common.hpp"
#include "bind/trajectories.hpp"
#include "pattern_automaton.hpp"

namespace scansion {
namespace {

// Segment lattices (chains of any order: max_length = 1), ragged. The caller keeps the automaton and the topology
// alive (nb::keep_alive).
class SegmentBatch {
 public:
  SegmentBatch(const PatternAutomaton& automaton, const Topology& topology, Int64s offsets, int64_t max_length,
               std::optional<Doubles> starts, std::optional<Doubles> full, std::optional<Doubles> start, std::optional<Doubles> inside,
               std::optional<Doubles> end, std::optional<Doubles> by_length, std::optional<Int32s> runs,
               std::optional<Bytes> may_end)
      : automaton_(automaton),
        net_(topology.view()),
        offsets_(std::move(offsets)),
        max_length_(max_length),
        starts_(std::move(starts)),
        full_(std::move(full)),
        start_(std::move(start)),
        inside_(std::move(inside)),
        end_(std::move(end)),
        by_length_(std::move(by_length)),
        runs_(std::move(runs)),
        may_end_(std::move(may_end)) {
    in_extent_.assign(static_cast<size_t>(net_.patterns), 0);
    for (int64_t c = 0; c < net_.extent_classes; ++c)
      if (net_.extent_pattern[c] >= 0) in_extent_[net_.extent_pattern[c]] = 1;
    for (const auto* part : {&full_, &start_, &inside_, &end_, &by_length_})
      if (*part) columns_ = static_cast<int64_t>((*part)->shape((*part)->ndim() - 1));
  }

  int64_t size() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  int64_t offset(int64_t i) const { return offsets_.data()[i]; }
  int64_t length(int64_t i) const { return offset(i + 1) - offset(i); }
  int64_t max_length() const { return max_length_; }
  const TopologyView& net() const { return net_; }
  const PatternAutomaton& automaton() const { return automaton_; }
  int64_t columns() const { return columns_; }
  // pattern z is scored by extent; else by starts (so are patterns that end in EOS)
  bool in_extent(int64_t z) const { return in_extent_[z]; }
  bool start_varies() const { return start_ && start_->ndim() == 2; }
  bool starts_vary() const { return starts_ && starts_->ndim() == 2; }

  SegmentView view(int64_t i) const {
    const int64_t C = columns_, first = offset(i);
    SegmentView v;
    v.length = length(i);
    v.max_length = std::max<int64_t>(1, std::min(max_length_, v.length));
    v.starts_stride = starts_vary() ? net_.patterns : 0;
    if (starts_) v.starts = starts_->data() + first * v.starts_stride;
    v.columns = C;
    v.full_stride = max_length_;
    if (full_) v.full = full_->data() + first * max_length_ * C;
    v.start_stride = start_varies() ? C : 0;
    if (start_) v.start = start_->data() + first * v.start_stride;
    if (inside_) v.inside = inside_->data() + first * C;
    if (end_) v.end = end_->data() + first * C;
    v.by_length = data_or_null<double>(by_length_);
    if (runs_) v.runs = runs_->data() + first * net_.labels;
    if (may_end_) v.may_end = may_end_->data() + first;
    return v;
  }

  template <class Use>
  bool on_graph(int64_t i, Workspace& work, Table table, const Use& use) const {
    std::vector<int32_t> ranks;
    return on_segments(view(i), net_, work, ranks, table, use);
  }

 private:
  const PatternAutomaton& automaton_;
  const TopologyView& net_;
  Int64s offsets_;
  int64_t max_length_;
  std::optional<Doubles> starts_, full_, start_, inside_, end_, by_length_;
  int64_t columns_ = 0;
  std::vector<uint8_t> in_extent_;
  std::optional<Int32s> runs_;
  std::optional<Bytes> may_end_;
};

// A gradient that several sequences share: summed by chunk, chunks added up in order.
class SharedSum {
 public:
  SharedSum(const std::optional<DoublesOut>& out, bool shared, int64_t chunks)
      : out_(out && shared ? out->data() : nullptr), size_(out_ ? static_cast<int64_t>(out->size()) : 0) {
    sums_.assign(static_cast<size_t>(chunks * size_), 0.0);
  }
  explicit operator bool() const { return out_ != nullptr; }
  // zeroed space for one sequence, then added to the chunk's sum
  double* open(std::vector<double>& one) const {
    one.assign(static_cast<size_t>(size_), 0.0);
    return one.data();
  }
  void close(const std::vector<double>& one, int64_t chunk) {
    for (int64_t i = 0; i < size_; ++i) sums_[chunk * size_ + i] += one[i];
  }
  ~SharedSum() {
    for (size_t i = 0; i < sums_.size(); ++i) out_[static_cast<int64_t>(i) % size_] += sums_[i];
  }

 private:
  double* out_;
  int64_t size_;
  std::vector<double> sums_;
};

int64_t posteriors(const SegmentBatch& batch, const DoublesOut& log_partition, std::optional<DoublesOut> labels,
                   std::optional<DoublesOut> boundaries, std::optional<DoublesOut> segments,
                   std::optional<DoublesOut> starts, std::optional<DoublesOut> full, std::optional<DoublesOut> start,
                   std::optional<DoublesOut> inside, std::optional<DoublesOut> end, std::optional<DoublesOut> by_length,
                   int64_t threads) {
  nb::gil_scoped_release release;
  const TopologyView& net = batch.net();
  const int64_t L = net.labels, C = batch.columns(), M = batch.max_length();
  const bool backward =
      labels || boundaries || segments || starts || full || start || inside || end || by_length;
  const Chunks chunks(batch.size());
  SharedSum starts_sum(starts, !batch.starts_vary(), chunks.chunks);
  SharedSum start_sum(start, !batch.start_varies(), chunks.chunks);
  SharedSum length_sum(by_length, true, chunks.chunks);
  std::vector<Workspace> work(std::max<int64_t>(1, threads));
  std::atomic<int64_t> escaped{0};
  parallel_for(chunks.chunks, threads, [&](int64_t chunk, int64_t worker) {
    std::vector<double> one_starts, one_start, one_length;
    for (int64_t i = chunks.begin(chunk); i < chunks.end(chunk); ++i) {
      const SegmentView view = batch.view(i);
      const int64_t first = batch.offset(i);
      SegmentAnswer answer;
      answer.stride = M;
      if (labels) answer.labels = labels->data() + first * L;
      if (boundaries) answer.boundaries = boundaries->data() + first;
      if (segments) answer.segments = segments->data() + first * M * L;
      if (full) answer.full = full->data() + first * M * C;
      if (starts) answer.starts = starts_sum ? starts_sum.open(one_starts) : starts->data() + first * net.patterns;
      if (start) answer.start = start_sum ? start_sum.open(one_start) : start->data() + first * C;
      if (inside) answer.inside = inside->data() + first * C;
      if (end) answer.end = end->data() + first * C;
      if (by_length) answer.by_length = length_sum.open(one_length);
      if (!segment_posteriors(view, net, work[worker], backward, answer)) ++escaped;
      log_partition.data()[i] = answer.log_partition;
      if (starts_sum) starts_sum.close(one_starts, chunk);
      if (start_sum) start_sum.close(one_start, chunk);
      if (length_sum) length_sum.close(one_length, chunk);
    }
  });
  return escaped;
}

// One segmentation per sequence: segments (n, 3) start, stop, label; firsts (B + 1,).
void scores(const SegmentBatch& batch, const Int64s& segments, const Int64s& firsts, const DoublesOut& out) {
  const PatternAutomaton& net = batch.automaton();
  const int64_t P = batch.columns();
  for (int64_t i = 0; i < batch.size(); ++i) {
    const SegmentView v = batch.view(i);
    ScoreSum sum;
    int64_t state = net.initial();
    for (int64_t j = firsts.data()[i]; j < firsts.data()[i + 1]; ++j) {
      const int64_t* segment = segments.data() + 3 * j;
      const int64_t start = segment[0], stop = segment[1], label = segment[2], d = stop - start;
      if (v.runs && d > v.runs[start * net.labels() + label]) sum.forbid();
      if (v.may_end && !v.may_end[stop - 1]) sum.forbid();
      const auto add_pattern = [&](int64_t z) {
        if (v.starts && !batch.in_extent(z)) sum.add(v.starts[start * v.starts_stride + z]);
        if (z >= P) return;
        if (v.full) sum.add(v.full[(start * v.full_stride + d - 1) * P + z]);
        if (v.start && batch.in_extent(z)) sum.add(v.start[start * v.start_stride + z]);
        for (int64_t t = start; v.inside && t < stop; ++t) sum.add(v.inside[t * P + z]);
        if (v.end) sum.add(v.end[(stop - 1) * P + z]);
        if (v.by_length) sum.add(v.by_length[(d - 1) * P + z]);
      };
      for (int64_t z = net.match(state, label); z >= 0; z = net.pattern_suffix(z)) add_pattern(z);
      state = net.next(state, label);
      if (stop == v.length)
        for (int64_t z = net.end_match(state); z >= 0; z = net.pattern_suffix(z)) add_pattern(z);
    }
    out.data()[i] = sum.value();
  }
}

// How many positions of sequence i some segmentation can cover: T, unless nothing is possible.
int64_t furthest(const SegmentBatch& batch, int64_t i) {
  const SegmentView view = batch.view(i);
  ExactSegments graph(view, batch.net(), false);
  fill_exact(graph, true);
  int64_t v = view.length;
  while (v > 0 && !graph.alive(v)) --v;
  return v;
}

// Longest segment of each label that may start at each row: within the sequence, every label inside it allowed
// (null: all are), no known boundary strictly inside. allowed (N, L); ends (N,) 1, 0 or -1; out (N, L).
void constraint_runs(const Int64s& offsets, std::optional<Bytes> allowed,
                     const nb::ndarray<const int8_t, nb::numpy, nb::c_contig, nb::device::cpu>& ends, int64_t max_length,
                     const nb::ndarray<int32_t, nb::numpy, nb::c_contig, nb::device::cpu>& out) {
  const int64_t L = static_cast<int64_t>(out.shape(1));
  int32_t* runs = out.data();
  for (size_t i = 0; i + 1 < offsets.size(); ++i)
    for (int64_t t = offsets.data()[i + 1] - 1; t >= offsets.data()[i]; --t) {
      const bool stops = t + 1 == offsets.data()[i + 1] || ends.data()[t] == 1;
      for (int64_t y = 0; y < L; ++y) {
        const int64_t run = stops ? 1 : 1 + runs[(t + 1) * L + y];
        runs[t * L + y] =
            allowed && !allowed->data()[t * L + y] ? 0 : static_cast<int32_t>(std::min<int64_t>(run, max_length));
      }
    }
}

}  // namespace

void bind_segment(nb::module_& m) {
  m.def("constraint_runs", &constraint_runs, nb::arg("offsets"), nb::arg("allowed").none(), nb::arg("ends"),
        nb::arg("max_length"), nb::arg("out"));
  using Questions = PathQuestions<SegmentBatch>;
  nb::class_<SegmentBatch> batch(m, "SegmentBatch", "Segment lattices on a pattern automaton, ragged.");
  batch
      .def(nb::init<const PatternAutomaton&, const Topology&, Int64s, int64_t, std::optional<Doubles>,
                    std::optional<Doubles>, std::optional<Doubles>, std::optional<Doubles>, std::optional<Doubles>,
                    std::optional<Doubles>, std::optional<Int32s>, std::optional<Bytes>>(),
           nb::arg("automaton"), nb::arg("topology"), nb::arg("offsets"), nb::arg("max_length"),
           nb::arg("starts").none(), nb::arg("full").none(),
           nb::arg("start").none(), nb::arg("inside").none(), nb::arg("end").none(), nb::arg("by_length").none(),
           nb::arg("runs").none(), nb::arg("may_end").none(), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
      .def("posteriors", &posteriors, nb::arg("log_partition"), nb::arg("labels").none(), nb::arg("boundaries").none(),
           nb::arg("segments").none(), nb::arg("starts").none(), nb::arg("full").none(), nb::arg("start").none(), nb::arg("inside").none(),
           nb::arg("end").none(), nb::arg("by_length").none(), nb::arg("threads"),
           "Fills what is asked for (arrays of zeros); returns how many sequences needed the log-space kernel.")
      .def("best", &Questions::best, nb::arg("threads"))
      .def("kbest", &Questions::kbest, nb::arg("k"), nb::arg("threads"))
      .def("sample", &Questions::sample, nb::arg("n"), nb::arg("uniform"), nb::arg("threads"))
      .def("entropies", &Questions::entropies, nb::arg("out"), nb::arg("threads"))
      .def("scores", &scores, nb::arg("segments"), nb::arg("firsts"), nb::arg("out"))
      .def("furthest", &furthest, nb::arg("sequence"), "Positions that some segmentation can cover.");
  CompressedQuestions<SegmentBatch>::bind(batch);
}

}  // namespace scansion
