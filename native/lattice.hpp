// One chain or one segment lattice: sums, walks. In doubles where these hold the digits, in exact numbers elsewhere.
#pragma once

#include "exact_lattice.hpp"
#include "parallel.hpp"
#include "viterbi.hpp"

namespace scansion {

// What a walk needs: best scores; sums, where single paths are drawn; sums, where every node counts.
enum class Table { kBest, kDraws, kSums };

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
  const Filled filled =
      view.length ? kernels().chain_table(view, table == Table::kBest, row, rows) : Filled::kFine;
  if (filled == Filled::kNothing) return false;
  ChainGraph graph(kernels(), view, rows, row);
  if (serves(filled, table) && use(graph)) return true;
  ExactChain exact(view);
  return fill_exact(exact, table == Table::kBest) && use(exact);
}

template <class Use>
bool on_segments(const SegmentView& view, const TopologyView& net, Workspace& work, std::vector<int32_t>& ranks,
                 Table table, const Use& use) {
  SegmentWork tables;
  double* block = work.take(kernels().segment_workspace(view, net));
  const bool best = table == Table::kBest;
  const Filled filled = best ? fill_best_scores(kernels(), view, net, block, tables, ranks)
                             : kernels().segment_table(view, net, block, tables);
  if (filled == Filled::kNothing) return false;
  SegmentGraph graph(kernels(), view, net, tables, best ? ranks.data() : nullptr);
  if (serves(filled, table) && use(graph)) return true;
  ExactSegments exact(view, net, best);
  return fill_exact(exact, best) && use(exact);
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
