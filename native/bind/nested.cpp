#include "bind/common.hpp"
#include "nested_paths.hpp"

namespace scansion {
namespace {

using MaybeDoubles = std::optional<Doubles>;
using MaybeOut = std::optional<DoublesOut>;
using Parts = std::tuple<MaybeDoubles, MaybeDoubles, MaybeDoubles, MaybeDoubles, MaybeDoubles>;

std::vector<int64_t> with(std::vector<int64_t> values, bool more, int64_t value) {
  if (more) values.push_back(value);
  return values;
}

// Nested lattices, ragged. A bottom level that is free gets one more level of single steps below it.
class NestedBatch {
 public:
  NestedBatch(Int64s offsets, std::vector<int64_t> sizes, std::vector<Bytes> children, std::vector<Doubles> transit,
              std::vector<Doubles> init, std::vector<Doubles> end, std::vector<Parts> parts, std::vector<int64_t> bounds,
              std::vector<bool> free, std::vector<std::optional<Bytes>> allowed, Int64s low, Int64s high)
      : offsets_(std::move(offsets)),
        sizes_(std::move(sizes)),
        children_(std::move(children)),
        transit_(std::move(transit)),
        init_(std::move(init)),
        end_(std::move(end)),
        parts_(std::move(parts)),
        bounds_(std::move(bounds)),
        allowed_(std::move(allowed)),
        low_(std::move(low)),
        high_(std::move(high)),
        steps_(free.back()),
        model_(with(sizes_, steps_, 1), masks(), flags(free)) {
    zeros_.assign(static_cast<size_t>(sizes_.back()), 0.0);
    NestedView any = view(0);
    any.length = 0;  // tables by time are left to each sequence
    nested_tables(model_, any, true, fixed_);
  }
  NestedBatch(const NestedBatch&) = delete;

  int64_t size() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  int64_t levels() const { return static_cast<int64_t>(sizes_.size()); }
  int64_t offset(int64_t i) const { return offsets_.data()[i]; }
  int64_t states(int64_t g) const { return sizes_[g]; }
  const NestedModel& model() const { return model_; }
  const NestedFixed& fixed() const { return fixed_; }
  bool allowed(int64_t g, int64_t p, int64_t u) const { return children_[g - 1].data()[p * sizes_[g] + u]; }

  NestedView view(int64_t i) const {
    const int64_t first = size() ? offset(i) : 0, D = levels();
    NestedView v;
    v.length = size() ? offset(i + 1) - first : 0;
    v.levels.resize(model_.levels());
    v.transit.resize(model_.levels());
    v.init.resize(model_.levels());
    v.end.resize(model_.levels());
    for (int64_t g = 0; g < D; ++g) {
      NestedLevel& level = v.levels[g];
      const int64_t S = sizes_[g];
      level.states = S;
      level.longest = bounds_[g] ? std::min(bounds_[g], v.length) : v.length;
      const auto& [inside, start, stop, length, spans] = parts_[g];
      if (inside) level.inside = inside->data() + first * S;
      if (start) level.start_stride = start->ndim() == 2 ? S : 0;
      if (start) level.start = start->data() + first * level.start_stride;
      if (stop) level.stop_stride = stop->ndim() == 2 ? S : 0;
      if (stop) level.stop = stop->data() + first * level.stop_stride;
      level.length = data_or_null<double>(length);
      if (spans) level.spans_stride = static_cast<int64_t>(spans->shape(1));
      if (spans) level.spans = spans->data() + first * level.spans_stride * S;
      if (allowed_[g]) level.allowed = allowed_[g]->data() + first * S;
      if (g == 0) continue;
      v.transit[g] = clique(transit_[g - 1], 3, first);
      v.init[g] = clique(init_[g - 1], 2, first);
      v.end[g] = clique(end_[g - 1], 2, first);
    }
    if (steps_) {
      v.levels[D].states = v.levels[D].longest = 1;
      v.transit[D] = v.init[D] = v.end[D] = {zeros_.data(), 0};
    }
    v.low = low_.data() + first;
    v.high = high_.data() + first;
    return v;
  }

 private:
  static NestedClique clique(const Doubles& array, size_t ndim, int64_t first) {
    int64_t stride = 1;
    for (size_t k = 1; k < array.ndim(); ++k) stride *= static_cast<int64_t>(array.shape(k));
    if (array.ndim() == ndim) stride = 0;
    return {array.data() + first * stride, stride};
  }

  std::vector<const uint8_t*> masks() {
    std::vector<const uint8_t*> out;
    for (const Bytes& mask : children_) out.push_back(mask.data());
    ones_.assign(static_cast<size_t>(sizes_.back()), 1);
    if (steps_) out.push_back(ones_.data());
    return out;
  }

  std::vector<uint8_t> flags(const std::vector<bool>& free) const {
    std::vector<uint8_t> out(free.begin(), free.end());
    if (steps_) out.push_back(0);
    return out;
  }

  Int64s offsets_;
  std::vector<int64_t> sizes_;
  std::vector<Bytes> children_;
  std::vector<Doubles> transit_, init_, end_;
  std::vector<Parts> parts_;
  std::vector<int64_t> bounds_;
  std::vector<std::optional<Bytes>> allowed_;
  Int64s low_, high_;
  bool steps_;
  std::vector<uint8_t> ones_;
  NestedModel model_;
  std::vector<double> zeros_;
  NestedFixed fixed_;
};

using Scratch = std::vector<std::unique_ptr<NestedInference>>;

NestedInference& scratch_of(Scratch& scratch, int64_t worker, const NestedBatch& batch) {
  if (!scratch[worker]) scratch[worker] = std::make_unique<NestedInference>(batch.model(), batch.fixed());
  return *scratch[worker];
}

NestedAnswer no_answer(const NestedBatch& batch) {
  const size_t D = static_cast<size_t>(batch.model().levels());
  NestedAnswer a;
  for (auto* list : {&a.labels, &a.boundaries, &a.spans, &a.start, &a.stop, &a.length}) list->assign(D, nullptr);
  for (auto* list : {&a.spans_stride, &a.start_stride, &a.stop_stride}) list->assign(D, 0);
  for (auto* list : {&a.transit, &a.init, &a.end}) list->resize(D);
  return a;
}

void log_partitions(const NestedBatch& batch, const DoublesOut& out, int64_t threads) {
  nb::gil_scoped_release release;
  Scratch scratch(static_cast<size_t>(std::max<int64_t>(1, threads)));
  parallel_for(batch.size(), threads, [&](int64_t i, int64_t worker) {
    NestedAnswer answer = no_answer(batch);
    scratch_of(scratch, worker, batch).run(batch.view(i), false, answer);
    out.data()[i] = answer.log_partition;
  });
}

// Counts of one kind, laid out like the tables, into an array of the scores' shape.
void scatter(const NestedChildren& c, bool square, const std::vector<double>& counts, double* out) {
  for (int64_t p = 0; p < c.parents; ++p) {
    const int64_t n = c.pair[p + 1] - c.pair[p], width = (n + 3) / 4 * 4;
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

int64_t posteriors(const NestedBatch& batch, const DoublesOut& log_partition, const std::vector<DoublesOut>& labels,
                   const std::vector<DoublesOut>& boundaries, const std::vector<MaybeOut>& spans,
                   const std::vector<MaybeOut>& start, const std::vector<MaybeOut>& stop,
                   const std::vector<MaybeOut>& length, const std::vector<MaybeOut>& transit,
                   const std::vector<MaybeOut>& init, const std::vector<MaybeOut>& end, int64_t threads) {
  nb::gil_scoped_release release;
  const NestedModel& model = batch.model();
  const int64_t D = batch.levels();
  const Chunks chunks(batch.size());
  std::vector<NestedCounts> counts(static_cast<size_t>(chunks.chunks));
  Scratch scratch(static_cast<size_t>(std::max<int64_t>(1, threads)));
  std::atomic<int64_t> escaped{0};
  // arrays that all sequences share are summed by chunk, and the chunks in order
  const auto shared = [](const MaybeOut& out, size_t ndim) { return out && out->ndim() == ndim; };
  parallel_for(chunks.chunks, threads, [&](int64_t chunk, int64_t worker) {
    NestedCounts& sum = counts[chunk];
    for (auto* list : {&sum.transit, &sum.init, &sum.end, &sum.start, &sum.stop, &sum.length}) list->resize(D);
    for (int64_t g = 1; g < D; ++g) {
      if (shared(transit[g - 1], 3)) sum.transit[g].assign(model.children(g).square.back(), 0.0);
      if (shared(init[g - 1], 2)) sum.init[g].assign(model.children(g).kid.size(), 0.0);
      if (shared(end[g - 1], 2)) sum.end[g].assign(model.children(g).kid.size(), 0.0);
      if (shared(start[g], 1)) sum.start[g].assign(start[g]->size(), 0.0);
      if (shared(stop[g], 1)) sum.stop[g].assign(stop[g]->size(), 0.0);
      if (length[g]) sum.length[g].assign(length[g]->size(), 0.0);
    }
    for (int64_t i = chunks.begin(chunk); i < chunks.end(chunk); ++i) {
      const int64_t first = batch.offset(i);
      NestedAnswer answer = no_answer(batch);
      for (int64_t g = 0; g < D; ++g) {
        const int64_t S = batch.states(g);
        answer.labels[g] = labels[g].data() + first * S;
        answer.boundaries[g] = boundaries[g].data() + first;
        if (g == 0) continue;
        if (spans[g]) {
          answer.spans_stride[g] = static_cast<int64_t>(spans[g]->shape(1));
          answer.spans[g] = spans[g]->data() + first * answer.spans_stride[g] * S;
        }
        if (start[g]) {
          answer.start_stride[g] = start[g]->ndim() == 1 ? 0 : S;
          answer.start[g] = start[g]->ndim() == 1 ? sum.start[g].data() : start[g]->data() + first * S;
        }
        if (stop[g]) {
          answer.stop_stride[g] = stop[g]->ndim() == 1 ? 0 : S;
          answer.stop[g] = stop[g]->ndim() == 1 ? sum.stop[g].data() : stop[g]->data() + first * S;
        }
        if (length[g]) answer.length[g] = sum.length[g].data();
        const int64_t pairs = batch.states(g - 1) * S;
        const auto place = [&](const MaybeOut& out, size_t ndim, std::vector<double>& total, int64_t size) {
          NestedExpect e;
          if (shared(out, ndim)) e.counts = total.data();
          if (out && out->ndim() != ndim) e.by_time = out->data() + first * size;
          return e;
        };
        answer.transit[g] = place(transit[g - 1], 3, sum.transit[g], pairs * S);
        answer.init[g] = place(init[g - 1], 2, sum.init[g], pairs);
        answer.end[g] = place(end[g - 1], 2, sum.end[g], pairs);
      }
      scratch_of(scratch, worker, batch).run(batch.view(i), true, answer);
      log_partition.data()[i] = answer.log_partition;
      if (answer.escaped) ++escaped;
    }
  });
  for (const NestedCounts& sum : counts)
    for (int64_t g = 1; g < D; ++g) {
      const auto add = [](const MaybeOut& out, const std::vector<double>& total) {
        for (size_t k = 0; k < total.size(); ++k) out->data()[k] += total[k];
      };
      if (!sum.transit[g].empty()) scatter(model.children(g), true, sum.transit[g], transit[g - 1]->data());
      if (!sum.init[g].empty()) scatter(model.children(g), false, sum.init[g], init[g - 1]->data());
      if (!sum.end[g].empty()) scatter(model.children(g), false, sum.end[g], end[g - 1]->data());
      add(start[g], sum.start[g]);
      add(stop[g], sum.stop[g]);
      add(length[g], sum.length[g]);
    }
  return escaped;
}

// Configurations of many sequences, a path per level.
Packed pack_nested(const std::vector<std::vector<Nesting>>& sequences, int64_t levels) {
  std::vector<std::vector<Path>> flat(sequences.size());
  for (size_t i = 0; i < sequences.size(); ++i)
    for (const Nesting& nesting : sequences[i]) flat[i].insert(flat[i].end(), nesting.begin(), nesting.end());
  auto [steps, paths, firsts] = pack(flat);
  auto* data = static_cast<int64_t*>(firsts.data());
  for (size_t i = 0; i <= sequences.size(); ++i) data[i] /= levels;
  return {steps, paths, firsts};
}

template <class Answer>
Packed nested_paths(const NestedBatch& batch, int64_t threads, const Answer& answer) {
  std::vector<std::vector<Nesting>> out(static_cast<size_t>(batch.size()));
  {
    nb::gil_scoped_release release;
    parallel_for(batch.size(), threads, [&](int64_t i, int64_t) { answer(i, batch.view(i), out[i]); });
  }
  return pack_nested(out, batch.levels());
}

Packed best(const NestedBatch& batch, int64_t threads) {
  return nested_paths(batch, threads, [&](int64_t, const NestedView& view, std::vector<Nesting>& out) {
    if (view.length == 0) return out.push_back(Nesting(batch.levels()));
    on_nested<Highest>(batch.model(), view, [&](auto& graph) {
      std::vector<NestedRecord> records;
      out.clear();
      const auto choose = [](const auto& ways) { return best_nested_way(ways); };
      if (nested_walk(graph, choose, records)) out.push_back(graph.nesting(records, batch.levels()));
    });
  });
}

Packed kbest(const NestedBatch& batch, int64_t k, int64_t threads) {
  return nested_paths(batch, threads, [&](int64_t, const NestedView& view, std::vector<Nesting>& out) {
    if (view.length == 0) return out.push_back(Nesting(batch.levels()));
    on_nested<Highest>(batch.model(), view, [&](auto& graph) {
      out.clear();
      for (const auto& records : nested_best(graph, k)) out.push_back(graph.nesting(records, batch.levels()));
    });
  });
}

// seeds: (B, n)
Packed sample(const NestedBatch& batch, int64_t n, const Int64s& seeds, int64_t threads) {
  return nested_paths(batch, threads, [&](int64_t i, const NestedView& view, std::vector<Nesting>& out) {
    if (view.length == 0) return out.assign(static_cast<size_t>(n), Nesting(batch.levels()));
    on_nested<LogSum>(batch.model(), view, [&](auto& graph) {
      std::vector<NestedRecord> records;
      out.clear();
      for (int64_t k = 0; k < n; ++k) {
        NestedDraw draw(seeds.data()[i * n + k]);
        const auto choose = [&](const auto& ways) { return draw(ways); };
        if (nested_walk(graph, choose, records)) out.push_back(graph.nesting(records, batch.levels()));
      }
    });
  });
}

void entropies(const NestedBatch& batch, const DoublesOut& out, int64_t threads) {
  nb::gil_scoped_release release;
  parallel_for(batch.size(), threads, [&](int64_t i, int64_t) { out.data()[i] = nested_entropy(batch.model(), batch.view(i)); });
}

// Configurations, a path per level: steps (n, 3), paths (D * configurations + 1,), owners: the sequence of each.
void scores(const NestedBatch& batch, const Int64s& steps, const Int64s& paths, const Int64s& owners, const DoublesOut& out) {
  const int64_t D = batch.levels();
  for (size_t c = 0; c < owners.size(); ++c) {
    const NestedView v = batch.view(owners.data()[c]);
    ScoreSum sum;
    std::vector<int64_t> event(static_cast<size_t>(v.length + 1), D);  // the highest level that ends before row t
    const int64_t* cut = paths.data() + c * D;
    for (int64_t g = 0; g < D; ++g) {
      const NestedLevel& level = v.levels[g];
      const int64_t S = level.states;
      int64_t parent = g ? cut[g - 1] : 0;
      for (int64_t k = cut[g]; k < cut[g + 1]; ++k) {
        const int64_t *x = steps.data() + 3 * k, t = x[0], j = x[1], s = x[2];
        event[j] = std::min(event[j], g);
        for (int64_t r = t; r < j; ++r) sum.add(level.within(r, s));
        sum.add(level.at_start(t, s));
        sum.add(level.at_stop(j - 1, s));
        if (level.length) sum.add(level.length[(j - t - 1) * S + s]);
        if (level.spans) sum.add(level.spans[(t * level.spans_stride + j - t - 1) * S + s]);
        if (g == 0) continue;
        while (steps.data()[3 * parent + 1] <= t) ++parent;
        const int64_t *above = steps.data() + 3 * parent, p = above[2];
        if (!batch.allowed(g, p, s)) sum.forbid();
        if (t == above[0])
          sum.add(v.init[g].at(t)[p * S + s]);
        else
          sum.add(v.transit[g].at(t - 1)[(p * S + x[-1]) * S + s]);
        if (j == above[1]) sum.add(v.end[g].at(j - 1)[p * S + s]);
      }
    }
    for (int64_t j = 1; j < v.length; ++j)
      if (event[j] < v.low[j - 1] || event[j] > v.high[j - 1]) sum.forbid();
    out.data()[c] = sum.value();
  }
}

int64_t furthest(const NestedBatch& batch, int64_t i) {
  return NestedInference(batch.model(), batch.fixed()).furthest(batch.view(i));
}

}  // namespace

void bind_nested(nb::module_& m) {
  nb::class_<NestedBatch>(m, "NestedBatch", "Scores of nested lattices, ragged.")
      .def(nb::init<Int64s, std::vector<int64_t>, std::vector<Bytes>, std::vector<Doubles>, std::vector<Doubles>,
                    std::vector<Doubles>, std::vector<Parts>, std::vector<int64_t>, std::vector<bool>,
                    std::vector<std::optional<Bytes>>, Int64s, Int64s>(),
           nb::arg("offsets"), nb::arg("sizes"), nb::arg("children"), nb::arg("transit"), nb::arg("init"),
           nb::arg("end"), nb::arg("parts"), nb::arg("bounds"), nb::arg("free"), nb::arg("allowed"),
           nb::arg("low"), nb::arg("high"))
      .def("log_partitions", &log_partitions, nb::arg("out"), nb::arg("threads"))
      .def("posteriors", &posteriors, nb::arg("log_partition"), nb::arg("labels"), nb::arg("boundaries"),
           nb::arg("spans"), nb::arg("start"), nb::arg("stop"), nb::arg("length"), nb::arg("transit"), nb::arg("init"),
           nb::arg("end"), nb::arg("threads"),
           "Fills what is asked for (arrays of zeros); returns how many sequences needed log space somewhere.")
      .def("best", &best, nb::arg("threads"))
      .def("kbest", &kbest, nb::arg("k"), nb::arg("threads"))
      .def("sample", &sample, nb::arg("n"), nb::arg("seeds"), nb::arg("threads"))
      .def("entropies", &entropies, nb::arg("out"), nb::arg("threads"))
      .def("scores", &scores, nb::arg("steps"), nb::arg("paths"), nb::arg("owners"), nb::arg("out"))
      .def("furthest", &furthest, nb::arg("sequence"), "Positions that some configuration can cover.");
}

}  // namespace scansion
