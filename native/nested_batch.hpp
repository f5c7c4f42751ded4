// Nested lattices of many sequences: rows of all sequences one after another, cut at offsets.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "batch.hpp"
#include "knowledge.hpp"
#include "nested_paths.hpp"

namespace scansion {

// An array by rows of all sequences, or one that they share (stride 0); null: zero, or not asked for.
template <class Number>
struct NestedRowsOf {
  Number* data = nullptr;
  int64_t stride = 0;
  Number* at(int64_t row) const { return data ? data + row * stride : nullptr; }
  bool shared() const { return data && stride == 0; }
};

// Scores of one level, or the gradient with respect to them.
template <class Number>
struct NestedBatchLevel {
  NestedRowsOf<Number> inside;     // (N, S)
  NestedRowsOf<Number> start;      // (N, S), or (S,)
  NestedRowsOf<Number> stop;       // (N, S), or (S,)
  Number* length = nullptr;        // (M, S)
  NestedRowsOf<Number> spans;      // (N, M, S)
  NestedRowsOf<Number> transit;    // (N, S_parent, S, S), or without rows; by the children's level
  NestedRowsOf<Number> init, end;  // (N, S_parent, S), or without rows
};

// Where the answers of all sequences go, by level; null: not asked for. Arrays of zeros, to which is added.
struct NestedBatchAnswer {
  double* log_partition = nullptr;          // (B,)
  std::vector<double*> labels, boundaries;  // (N, S) posteriors, (N,) probability that a segment ends here
  std::vector<NestedBatchLevel<double>> gradient;
};

class NestedBatch {
 public:
  using Random = int64_t;

  int64_t sequences = 0;
  const int64_t* offsets = nullptr;                    // (B + 1,)
  std::vector<int64_t> sizes;                          // (D,) states of each level
  std::vector<int64_t> bounds;                         // (D,) longest segment of each level, 0: no bound
  std::vector<uint8_t> free;                           // (D,) levels whose persistence is a plain sum over time steps
  std::vector<const uint8_t*> children;                // (D - 1,) of (S_d, S_{d+1}): which states may lie in which
  std::vector<NestedBatchLevel<const double>> scores;  // (D,)
  std::vector<Known> known;                            // (D,)

  // once after the fields above are set
  void prepare() {
    zeros_.assign(static_cast<size_t>(sizes.back()), 0.0);
    model_ = std::make_unique<NestedTopology>(sizes, children, free);
    events_ = std::make_unique<EventLevels>(known, sequences ? offsets[sequences] : 0);
    NestedView any = view(0);
    any.length = 0;  // tables by time are left to each sequence
    nested_tables(*model_, any, true, fixed_);
  }

  int64_t size() const { return sequences; }
  int64_t levels() const { return static_cast<int64_t>(sizes.size()); }
  int64_t length(int64_t i) const { return offsets[i + 1] - offsets[i]; }
  static int64_t randoms(int64_t i) { return i; }  // a seed for each draw
  const NestedTopology& model() const { return *model_; }

  NestedView view(int64_t i) const {
    const int64_t first = sequences ? offsets[i] : 0, D = levels();
    NestedView v;
    v.length = sequences ? length(i) : 0;
    for (auto* list : {&v.transit, &v.init, &v.end}) list->resize(model_->levels());
    v.levels.resize(model_->levels());
    for (int64_t g = 0; g < D; ++g) {
      NestedLevel& level = v.levels[g];
      level.states = sizes[g];
      level.longest = bounds[g] ? std::min(bounds[g], v.length) : v.length;
      const NestedBatchLevel<const double>& s = scores[g];
      level.inside = s.inside.at(first);
      level.inside_stride = s.inside.stride;
      level.start = s.start.at(first);
      level.start_stride = s.start.stride;
      level.stop = s.stop.at(first);
      level.stop_stride = s.stop.stride;
      level.length = s.length;
      level.spans = s.spans.at(first);
      level.spans_stride = s.spans.stride / sizes[g];
      if (known[g].allowed) level.allowed = known[g].allowed + first * sizes[g];
      if (g == 0) continue;
      v.transit[g] = {s.transit.at(first), s.transit.stride};
      v.init[g] = {s.init.at(first), s.init.stride};
      v.end[g] = {s.end.at(first), s.end.stride};
    }
    if (model_->levels() > D) v.set_steps(D, zeros_.data());
    v.low = events_->low.data() + first;
    v.high = events_->high.data() + first;
    return v;
  }

  template <Table table, class Use>
  bool with_graph(int64_t i, Workspace&, const Use& use) const {
    if constexpr (table == Table::kBest)
      return on_nested<Highest>(*model_, view(i), levels(), use);
    else
      return on_nested<LogSum>(*model_, view(i), levels(), use);
  }

  double score(int64_t i, const Configuration& configuration) const {
    const NestedView v = view(i);
    ScoreSum sum;
    add_scores(v, configuration, sum);
    std::vector<int64_t> event(static_cast<size_t>(v.length + 1),
                               levels());  // the highest level that ends before row t
    for (int64_t g = levels() - 1; g >= 0; --g)
      for (const Step& step : configuration[g]) event[step.stop] = g;
    for (int64_t j = 1; j < v.length; ++j) sum.forbid(event[j] < v.low[j - 1] || event[j] > v.high[j - 1]);
    const auto child = [&](size_t g, int64_t, int64_t p, int64_t u) { sum.forbid(!children[g - 1][p * sizes[g] + u]); };
    each_clique(
        configuration, [](size_t, int64_t, int64_t, int64_t) {}, child,
        [&](size_t g, int64_t t, int64_t p, int64_t, int64_t u) { child(g, t, p, u); },
        [](size_t, int64_t, int64_t, int64_t) {});
    return sum.value();
  }

  int64_t furthest(int64_t i) const { return NestedInference(*model_, fixed_).furthest(view(i)); }

  void log_partitions(double* out, int64_t threads) const {
    Scratch scratch(static_cast<size_t>(std::max<int64_t>(1, threads)));
    parallel_for(size(), threads, [&](int64_t i, int64_t worker) {
      NestedAnswer answer = no_answer();
      inference(scratch, worker).run(view(i), false, answer);
      out[i] = answer.log_partition;
    });
  }

  // Fills what is asked for; returns how many sequences needed log space somewhere.
  int64_t posteriors(const NestedBatchAnswer& answer, int64_t threads) const {
    const int64_t D = levels();
    const Chunks chunks(size());
    std::vector<NestedCounts> counts(static_cast<size_t>(chunks.chunks));
    Scratch scratch(static_cast<size_t>(std::max<int64_t>(1, threads)));
    std::atomic<int64_t> escaped{0};
    // arrays that all sequences share are summed by chunk, and the chunks in order
    parallel_for(chunks.chunks, threads, [&](int64_t chunk, int64_t worker) {
      NestedCounts& sum = counts[chunk];
      for (auto* list : {&sum.transit, &sum.init, &sum.end, &sum.start, &sum.stop, &sum.length}) list->resize(D);
      for (int64_t g = 1; g < D; ++g) {
        const NestedBatchLevel<double>& e = answer.gradient[g];
        const NestedChildren& c = model_->children(g);
        if (e.transit.shared()) sum.transit[g].assign(c.square.back(), 0.0);
        if (e.init.shared()) sum.init[g].assign(c.kid.size(), 0.0);
        if (e.end.shared()) sum.end[g].assign(c.kid.size(), 0.0);
        if (e.start.shared()) sum.start[g].assign(sizes[g], 0.0);
        if (e.stop.shared()) sum.stop[g].assign(sizes[g], 0.0);
        if (e.length) sum.length[g].assign(bounds[g] * sizes[g], 0.0);  // levels with scores of lengths have a bound
      }
      for (int64_t i = chunks.begin(chunk); i < chunks.end(chunk); ++i) {
        const int64_t first = offsets[i];
        NestedAnswer one = no_answer();
        for (int64_t g = 0; g < D; ++g) {
          const int64_t S = sizes[g];
          one.labels[g] = answer.labels[g] + first * S;
          one.boundaries[g] = answer.boundaries[g] + first;
          if (g == 0) continue;
          const NestedBatchLevel<double>& e = answer.gradient[g];
          one.spans[g] = e.spans.at(first);
          one.spans_stride[g] = e.spans.stride / S;
          one.start[g] = e.start.shared() ? sum.start[g].data() : e.start.at(first);
          one.start_stride[g] = e.start.stride;
          one.stop[g] = e.stop.shared() ? sum.stop[g].data() : e.stop.at(first);
          one.stop_stride[g] = e.stop.stride;
          if (e.length) one.length[g] = sum.length[g].data();
          one.transit[g] = expect(e.transit, sum.transit[g], first);
          one.init[g] = expect(e.init, sum.init[g], first);
          one.end[g] = expect(e.end, sum.end[g], first);
        }
        inference(scratch, worker).run(view(i), true, one);
        answer.log_partition[i] = one.log_partition;
        if (one.escaped) ++escaped;
      }
    });
    for (const NestedCounts& sum : counts)
      for (int64_t g = 1; g < D; ++g) {
        const NestedBatchLevel<double>& e = answer.gradient[g];
        if (!sum.transit[g].empty()) spread(model_->children(g), true, sum.transit[g], e.transit.data);
        if (!sum.init[g].empty()) spread(model_->children(g), false, sum.init[g], e.init.data);
        if (!sum.end[g].empty()) spread(model_->children(g), false, sum.end[g], e.end.data);
        add(sum.start[g], e.start.data);
        add(sum.stop[g], e.stop.data);
        add(sum.length[g], e.length);
      }
    return escaped;
  }

 private:
  using Scratch = std::vector<std::unique_ptr<NestedInference>>;

  NestedInference& inference(Scratch& scratch, int64_t worker) const {
    if (!scratch[worker]) scratch[worker] = std::make_unique<NestedInference>(*model_, fixed_);
    return *scratch[worker];
  }
  NestedAnswer no_answer() const {
    const size_t D = static_cast<size_t>(model_->levels());
    NestedAnswer a;
    for (auto* list : {&a.labels, &a.boundaries, &a.spans, &a.start, &a.stop, &a.length}) list->assign(D, nullptr);
    for (auto* list : {&a.spans_stride, &a.start_stride, &a.stop_stride}) list->assign(D, 0);
    for (auto* list : {&a.transit, &a.init, &a.end}) list->resize(D);
    return a;
  }
  static NestedExpect expect(const NestedRowsOf<double>& out, std::vector<double>& sum, int64_t first) {
    NestedExpect e;
    if (out.shared()) e.counts = sum.data();
    if (out.data && out.stride) e.by_time = out.at(first);
    return e;
  }
  static void add(const std::vector<double>& sum, double* out) {
    for (size_t k = 0; k < sum.size(); ++k) out[k] += sum[k];
  }
  // Counts of one kind, laid out like the tables, into an array of the scores' shape.
  static void spread(const NestedChildren& c, bool square, const std::vector<double>& counts, double* out) {
    for (int64_t p = 0; p < c.parents; ++p) {
      const int64_t n = c.pair[p + 1] - c.pair[p], width = padded4(n);
      const int32_t* kid = c.kid.data() + c.pair[p];
      for (int64_t i = 0; i < n; ++i) {
        if (!square) {
          out[p * c.children + kid[i]] += counts[c.pair[p] + i];
          continue;
        }
        for (int64_t j = 0; j < n; ++j)
          out[(p * c.children + kid[i]) * c.children + kid[j]] += counts[c.square[p] + i * width + j];
      }
    }
  }

  std::vector<double> zeros_;
  std::unique_ptr<NestedTopology> model_;
  std::unique_ptr<EventLevels> events_;
  NestedFixed fixed_;
};

}  // namespace scansion
