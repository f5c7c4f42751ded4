// One chain or one segment lattice: sums, walks. In doubles where these hold the digits, in exact numbers elsewhere.
#pragma once

#include <memory>

#include "exact_lattice.hpp"
#include "parallel.hpp"
#include "viterbi.hpp"

namespace scansion {

// What a walk needs: best scores; those with ties ranked, where several paths are wanted; sums, where single paths are
// drawn; sums, where every node counts.
enum class Table { kBest, kBests, kDraws, kSums };
constexpr bool of_best(Table table) { return table == Table::kBest || table == Table::kBests; }

inline bool serves(Filled filled, Table table) {
  return filled == Filled::kFine || (filled == Filled::kDoubtful && table != Table::kSums);
}

// log Z and, with backward, the answer's arrays; whether linear space served
inline bool chain_posteriors(const ChainView& view, const TransitionWeights* fixed, Workspace& work, bool backward,
                             ChainAnswer& answer) {
  double* block = work.take(kernels().chain_workspace(view.length, view.labels));
  const Sums sums = kernels().chain_posteriors(view, fixed, block, backward, answer);
  if (sums == Sums::kLost) exact_chain_posteriors(view, backward, answer);
  return sums == Sums::kLinear;
}

inline bool segment_posteriors(const SegmentView& view, const TopologyView& net, Workspace& work, bool backward,
                               SegmentAnswer& answer) {
  double* block = work.take(kernels().segment_workspace(view, net));
  const Sums sums = kernels().segment_posteriors(view, net, block, backward, answer);
  if (sums == Sums::kLost) exact_segment_posteriors(view, net, backward, answer);
  return sums == Sums::kLinear;
}

// use(graph) with a filled table, until it returns true. False: nothing is possible.
template <class Use>
bool on_chain(const ChainView& view, Workspace& work, Table table, const Use& use) {
  double* row = work.take(view.length * view.labels + view.labels);
  double* rows = row + view.labels;
  const Filled filled = view.length ? kernels().chain_table(view, of_best(table), row, rows) : Filled::kFine;
  if (filled == Filled::kNothing) return false;
  ChainGraph graph(kernels(), view, rows, row);
  if (serves(filled, table) && use(graph)) return true;
  ExactChain exact(view);
  return fill_exact(exact, of_best(table)) && use(exact);
}

template <class Use>
bool on_table(const SegmentView& view, const TopologyView& net, SegmentWork& tables, const int32_t* ranks,
              Filled filled, Table table, const Use& use) {
  if (filled == Filled::kNothing) return false;
  SegmentGraph graph(kernels(), view, net, tables, ranks);
  if (serves(filled, table) && use(graph)) return true;
  ExactSegments exact(view, net, of_best(table));
  return fill_exact(exact, of_best(table)) && use(exact);
}

template <class Use>
bool on_segments(const SegmentView& view, const TopologyView& net, Workspace& work, Table table, const Use& use) {
  SegmentWork tables;
  double* block = work.take(kernels().segment_workspace(view, net));
  const bool best = of_best(table);
  std::unique_ptr<Ranks> ranks;
  if (table == Table::kBests || (best && AdditiveBest::serves(view, net)))
    ranks = std::make_unique<Ranks>(net, view.length);
  const Filled filled = best ? fill_best_scores(kernels(), view, net, block, tables, ranks.get())
                             : kernels().segment_table(view, net, block, tables);
  return on_table(view, net, tables, ranks ? ranks->data() : nullptr, filled, table, use);
}

// The best labels of four chains whose patterns score the same at every position. labels[i] (T,): all -1 where nothing is
// possible.
inline void best_labels(const SegmentView* views, const TopologyView& net, Workspace* work, int64_t* const* labels) {
  SegmentWork tables[4];
  BestLane lanes[4];
  const int64_t scratch = kernels().best_lanes_workspace(net);
  double* first = nullptr;
  for (int i = 0; i < 4; ++i) {
    double* block = work[i].take(kernels().segment_workspace(views[i], net) + (i == 0 ? scratch : 0));
    if (i == 0) first = block;
    kernels().segment_prepare(views[i], net, i == 0 ? block + scratch : block, tables[i]);
    lanes[i] = {&views[i], &tables[i]};
  }
  kernels().fill_best_lanes(net, lanes, first);
  for (int i = 0; i < 4; ++i) {
    Path path;
    const auto best = [&](auto& graph) { return best_path(graph, path); };
    const bool found = on_table(views[i], net, tables[i], nullptr, lanes[i].filled, Table::kBest, best);
    for (int64_t t = 0; t < views[i].length; ++t) labels[i][t] = found ? path[t].label : -1;
  }
}

// The best labels of a chain. False: nothing is possible.
inline bool best_labels(const ChainView& view, Workspace& work, int32_t* labels) {
  double* row = work.take(view.length * view.labels + view.labels);
  double* rows = row + view.labels;
  const Filled filled = kernels().chain_table(view, true, row, rows);
  if (filled == Filled::kNothing) return false;
  if (serves(filled, Table::kBest) && best_chain_labels(view, rows, labels)) return true;
  ExactChain exact(view);
  Path path;
  if (!fill_exact(exact, true) || !best_path(exact, path)) return false;
  for (const Step& step : path) labels[step.start] = step.label;
  return true;
}

}  // namespace scansion
