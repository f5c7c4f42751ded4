// Segment lattices of many sequences (chains of any order: max_length = 1): rows of all sequences one after another, cut at
// offsets.
#pragma once

#include <array>
#include <atomic>
#include <numeric>
#include <utility>
#include <vector>

#include "batch.hpp"
#include "knowledge.hpp"
#include "pattern_automaton.hpp"

namespace scansion {

// The arrays of additive scores, or of their gradient, for all sequences; null: zero, or not asked for.
template <class Number>
struct SegmentParts {
  Number* starts = nullptr;     // (N, P), or (P,) for the same at every row: patterns that depend on the start alone
  Number* full = nullptr;       // (N, M, C)
  Number* start = nullptr;      // (N, C), or (C,)
  Number* inside = nullptr;     // (N, C)
  Number* end = nullptr;        // (N, C)
  Number* by_length = nullptr;  // (M, C)
};

// Where the answers of all sequences go; null: not asked for.
struct SegmentBatchAnswer {
  double* log_partition = nullptr;  // (B,)
  double* labels = nullptr;         // (N, L) posteriors
  double* boundaries = nullptr;     // (N,) probability that a segment ends here
  double* segments = nullptr;       // (N, M, L)
  SegmentParts<double> gradient;    // arrays of zeros, to which is added
};

class SegmentBatch {
 public:
  using Random = double;

  int64_t sequences = 0;
  const int64_t* offsets = nullptr;  // (B + 1,)
  int64_t max_length = 1;            // M
  int64_t columns = 0;               // C: patterns 0..C-1 have a column in all parts but starts
  SegmentParts<const double> parts;
  bool starts_vary = false, start_varies = false;  // by row

  SegmentBatch(const PatternAutomaton& automaton, const Topology& topology)
      : automaton_(automaton), net_(topology.view()) {
    in_extent_.assign(static_cast<size_t>(net_.patterns), 0);
    for (int64_t c = 0; c < net_.extent_classes; ++c)
      if (net_.extent_pattern[c] >= 0) in_extent_[net_.extent_pattern[c]] = 1;
  }
  // once after the fields above are set
  void prepare(const Known& known) { known_ = SegmentRuns(known, offsets, sequences, net_.labels, max_length); }

  int64_t size() const { return sequences; }
  static constexpr int64_t levels() { return 1; }
  int64_t length(int64_t i) const { return offsets[i + 1] - offsets[i]; }
  int64_t randoms(int64_t i) const { return offsets[i] + i; }  // one for each step, at most, and one for the last state

  SegmentView view(int64_t i) const {
    const int64_t C = columns, first = offsets[i];
    SegmentView v;
    v.length = length(i);
    v.max_length = std::max<int64_t>(1, std::min(max_length, v.length));
    v.starts_stride = starts_vary ? net_.patterns : 0;
    if (parts.starts) v.starts = parts.starts + first * v.starts_stride;
    v.columns = C;
    v.full_stride = max_length;
    if (parts.full) v.full = parts.full + first * max_length * C;
    v.start_stride = start_varies ? C : 0;
    if (parts.start) v.start = parts.start + first * v.start_stride;
    if (parts.inside) v.inside = parts.inside + first * C;
    if (parts.end) v.end = parts.end + first * C;
    v.by_length = parts.by_length;
    if (known_.runs()) v.runs = known_.runs() + first * net_.labels;
    if (known_.may_end()) v.may_end = known_.may_end() + first;
    return v;
  }

  template <Table table, class Use>
  bool with_graph(int64_t i, Workspace& work, const Use& use) const {
    return on_segments(view(i), net_, work, table, use);
  }

  // Of chains: (N,) best labels, -1 throughout a sequence that is impossible.
  void best_labels(int64_t* out, int64_t threads) const {
    std::vector<std::array<Workspace, 4>> work(static_cast<size_t>(std::max<int64_t>(1, threads)));
    if (starts_vary) {
      parallel_for(size(), threads, [&](int64_t i, int64_t worker) {
        Path path;
        const auto best = [&](auto& graph) { return best_path(graph, path); };
        const bool found = with_graph<Table::kBest>(i, work[worker][0], best);
        for (int64_t t = 0; t < length(i); ++t) out[offsets[i] + t] = found ? path[t].label : -1;
      });
      return;
    }
    // four of about one length side by side; the last ones are there more than once
    std::vector<int64_t> order(static_cast<size_t>(size()));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });
    parallel_for((size() + 3) / 4, threads, [&](int64_t group, int64_t worker) {
      SegmentView views[4];
      int64_t* labels[4];
      for (int64_t i = 0; i < 4; ++i) {
        const int64_t sequence = order[std::min(4 * group + i, size() - 1)];
        views[i] = view(sequence);
        labels[i] = out + offsets[sequence];
      }
      scansion::best_labels(views, net_, work[worker].data(), labels);
    });
  }

  double score(int64_t i, const Configuration& configuration) const {
    const SegmentView v = view(i);
    const int64_t C = columns;
    ScoreSum sum;
    int64_t state = automaton_.initial();
    for (const Step& step : configuration[0]) {
      const int64_t start = step.start, stop = step.stop, d = stop - start;
      if (v.runs) sum.forbid(d > v.runs[start * net_.labels + step.label]);
      if (v.may_end) sum.forbid(!v.may_end[stop - 1]);
      const auto add_pattern = [&](int64_t z) {
        // a pattern is scored by extent, or by starts (so are patterns that end in EOS)
        if (v.starts && !in_extent_[z]) sum.add(v.starts[start * v.starts_stride + z]);
        if (z >= C) return;
        if (v.full) sum.add(v.full[(start * v.full_stride + d - 1) * C + z]);
        if (v.start && in_extent_[z]) sum.add(v.start[start * v.start_stride + z]);
        for (int64_t t = start; v.inside && t < stop; ++t) sum.add(v.inside[t * C + z]);
        if (v.end) sum.add(v.end[(stop - 1) * C + z]);
        if (v.by_length) sum.add(v.by_length[(d - 1) * C + z]);
      };
      for (int64_t z = automaton_.match(state, step.label); z >= 0; z = automaton_.pattern_suffix(z)) add_pattern(z);
      state = automaton_.next(state, step.label);
      if (stop == v.length)
        for (int64_t z = automaton_.end_match(state); z >= 0; z = automaton_.pattern_suffix(z)) add_pattern(z);
    }
    return sum.value();
  }

  int64_t furthest(int64_t i) const {
    const SegmentView v = view(i);
    ExactSegments graph(v, net_, false);
    fill_exact(graph, true);
    int64_t reached = v.length;
    while (reached > 0 && !graph.alive(reached)) --reached;
    return reached;
  }

  // Fills what is asked for; returns how many sequences needed the log-space kernel.
  int64_t posteriors(const SegmentBatchAnswer& answer, int64_t threads) const {
    const int64_t L = net_.labels, C = columns, M = max_length;
    const SegmentParts<double>& g = answer.gradient;
    const bool backward = answer.labels || answer.boundaries || answer.segments || g.starts || g.full || g.start ||
                          g.inside || g.end || g.by_length;
    const Chunks chunks(size());
    SharedSum starts_sum(starts_vary ? nullptr : g.starts, net_.patterns, chunks.chunks);
    SharedSum start_sum(start_varies ? nullptr : g.start, C, chunks.chunks);
    SharedSum length_sum(g.by_length, M * C, chunks.chunks);
    std::vector<Workspace> work(static_cast<size_t>(std::max<int64_t>(1, threads)));
    std::atomic<int64_t> escaped{0};
    parallel_for(chunks.chunks, threads, [&](int64_t chunk, int64_t worker) {
      std::vector<double> one_starts, one_start, one_length;
      for (int64_t i = chunks.begin(chunk); i < chunks.end(chunk); ++i) {
        const SegmentView v = view(i);
        const int64_t first = offsets[i];
        SegmentAnswer one;
        one.stride = M;
        if (answer.labels) one.labels = answer.labels + first * L;
        if (answer.boundaries) one.boundaries = answer.boundaries + first;
        if (answer.segments) one.segments = answer.segments + first * M * L;
        if (g.full) one.full = g.full + first * M * C;
        if (g.starts) one.starts = starts_sum ? starts_sum.open(one_starts) : g.starts + first * net_.patterns;
        if (g.start) one.start = start_sum ? start_sum.open(one_start) : g.start + first * C;
        if (g.inside) one.inside = g.inside + first * C;
        if (g.end) one.end = g.end + first * C;
        if (g.by_length) one.by_length = length_sum.open(one_length);
        if (!segment_posteriors(v, net_, work[worker], backward, one)) ++escaped;
        answer.log_partition[i] = one.log_partition;
        starts_sum.close(one_starts, chunk);
        start_sum.close(one_start, chunk);
        length_sum.close(one_length, chunk);
      }
    });
    for (const SharedSum* sum : {&starts_sum, &start_sum, &length_sum}) sum->finish();
    return escaped;
  }

 private:
  // A gradient that all sequences share: summed by chunk, chunks added up in order. Null: there is none.
  class SharedSum {
   public:
    SharedSum(double* out, int64_t size, int64_t chunks) : out_(out), size_(out ? size : 0) {
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
    void finish() const {
      for (size_t i = 0; i < sums_.size(); ++i) out_[static_cast<int64_t>(i) % size_] += sums_[i];
    }

   private:
    double* out_;
    int64_t size_;
    std::vector<double> sums_;
  };

  const PatternAutomaton& automaton_;
  const TopologyView& net_;
  std::vector<uint8_t> in_extent_;  // (P,) pattern z is scored by extent
  SegmentRuns known_;
};

}  // namespace scansion
