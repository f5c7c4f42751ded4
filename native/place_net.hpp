// The ways through one trajectory, for models of segments or of any order: only moves that the trajectory makes exist, so
// that cost follows its places (paper 004, equation 6), not their pairs.
//
// A node is a place i with a state p of the label automaton, an arc a segment [u, v) of place i's label y that leads from
// one node to another:
//   f[v][n'] = sum over arcs n -> n' and lengths d of exp(Psi(v-d, v, p.y)) f[v-d][n],   f[0][before the first place] = 1
// Place i follows place i - 1 or, where a place is a run of equal labels, itself. With segments the labels before a
// place are known, and there is one node for each place. O(T M arcs) time. Tables hold logarithms, each row less its
// largest entry.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "pattern_automaton.hpp"
#include "views.hpp"

namespace scansion {

class PlaceNet {
 public:
  using Patterns = std::vector<int32_t>;
  struct Node {
    int32_t place;  // -1: before the first
    int32_t state;
  };
  struct Arc {
    int32_t source, target;  // nodes
    int32_t starts, extent;  // classes: which patterns without and with an extent it scores
    bool closing;            // its segment is the last of the sequence
  };

  // extent (patterns,): whether a pattern's score depends on more than a segment's start
  PlaceNet(const PatternAutomaton& labels, const uint8_t* extent, const int32_t* trajectory, int64_t places, bool merge)
      : nodes_{{-1, static_cast<int32_t>(labels.initial())}}, first_{0} {
    std::map<Patterns, int32_t> starts, extents;
    const auto add = [&](int64_t source, int64_t target, bool closing) {
      const int64_t y = trajectory[nodes_[target].place];
      Patterns with, without;
      const auto split = [&](int64_t z) {
        for (; z >= 0; z = labels.pattern_suffix(z)) (extent[z] ? with : without).push_back(static_cast<int32_t>(z));
      };
      split(labels.match(nodes_[source].state, y));
      if (closing) split(labels.end_match(nodes_[target].state));
      arcs_.push_back({static_cast<int32_t>(source), static_cast<int32_t>(target), number(without, starts, starts_),
                       number(with, extents, extents_), closing});
    };
    int64_t before = 0;  // first node of the place before
    for (int64_t i = 0; i < places; ++i) {
      const int64_t first = size();
      const bool last = i == places - 1;
      const auto lead = [&](int64_t source) {
        const int32_t state = labels.next(nodes_[source].state, trajectory[i]);
        int64_t target = first;
        while (target < size() && nodes_[target].state != state) ++target;
        if (target == size()) nodes_.push_back({static_cast<int32_t>(i), state});
        if (!last || merge) add(source, target, false);
        if (last) add(source, target, true);
      };
      first_.push_back(static_cast<int64_t>(arcs_.size()));
      for (int64_t n = before; n < first; ++n) lead(n);
      for (int64_t n = first; merge && n < size(); ++n) lead(n);
      before = first;
    }
    first_.push_back(static_cast<int64_t>(arcs_.size()));
    last_ = before;
  }

  int64_t size() const { return static_cast<int64_t>(nodes_.size()); }
  int64_t places() const { return static_cast<int64_t>(first_.size()) - 2; }
  int64_t last() const { return last_; }  // first node of the last place
  const Node& node(int64_t n) const { return nodes_[n]; }
  const Arc& arc(int64_t a) const { return arcs_[a]; }
  // arcs into place i are first_arc(i) .. first_arc(i + 1)
  int64_t first_arc(int64_t i) const { return first_[i + 1]; }
  const std::vector<Patterns>& starts() const { return starts_; }
  const std::vector<Patterns>& extents() const { return extents_; }

 private:
  static int32_t number(const Patterns& patterns, std::map<Patterns, int32_t>& numbers, std::vector<Patterns>& all) {
    const auto [found, fresh] = numbers.try_emplace(patterns, static_cast<int32_t>(all.size()));
    if (fresh) all.push_back(patterns);
    return found->second;
  }

  std::vector<Node> nodes_;     // by place
  std::vector<Arc> arcs_;       // by the place they lead to
  std::vector<int64_t> first_;  // (places + 2,)
  std::vector<Patterns> starts_, extents_;
  int64_t last_ = 0;
};

// Scores of the arcs of one sequence: of T positions, of segments of at most M; null: not there.
struct PlaceScoresView {
  int64_t length = 0, longest = 1;
  const double* starts = nullptr;     // (classes, start_rows) patterns without an extent
  int64_t start_rows = 1;             // 1, or T
  const double* start = nullptr;      // (classes, T) patterns with one: by first position,
  const double* inside = nullptr;     // (classes, T) summed over a segment,
  const double* end = nullptr;        // (classes, T) by last position,
  const double* by_length = nullptr;  // (classes, M)
  const double* full = nullptr;       // (classes, T, M)
};

// Expectations in the same shapes.
struct PlaceCounts {
  std::vector<double> starts, start, inside, end, by_length, full;
};

// The sums over all ways through a net, or the best one.
class PlaceSweep {
 public:
  PlaceSweep(const PlaceNet& net, const PlaceScoresView& s)
      : net_(net), s_(s), T_(s.length), M_(s.longest), N_(net.size()), E_(static_cast<int64_t>(net.extents().size())) {}

  // log of the sum over all ways, or (best) of the largest
  double forward(bool best) {
    const size_t rows = static_cast<size_t>(T_ + 1);
    table_.assign(rows * N_, kMinusInfinity);
    scale_.assign(rows, Scale());
    table_[0] = 0.0;
    std::vector<double> top(static_cast<size_t>(N_)), sum(top.size());
    for (int64_t v = 1; v <= T_; ++v) {
      double* row = table_.data() + v * N_;
      const auto each = [&](const auto& use) { each_into(v, use); };
      fill_ending(v);
      std::fill(top.begin(), top.end(), kMinusInfinity);
      each([&](const PlaceNet::Arc& arc, int64_t, double x) { top[arc.target] = std::max(top[arc.target], x); });
      if (best) {
        std::copy(top.begin(), top.end(), row);
      } else {
        std::fill(sum.begin(), sum.end(), 0.0);
        each([&](const PlaceNet::Arc& arc, int64_t, double x) {
          if (x > kMinusInfinity) sum[arc.target] += std::exp(x - top[arc.target]);
        });
        for (int64_t n = 0; n < N_; ++n)
          if (sum[n] > 0.0) row[n] = top[n] + std::log(sum[n]);
      }
      scale_[v] = scale_[v - 1];
      shift(row, scale_[v]);
    }
    const double* row = table_.data() + T_ * N_;
    double most = kMinusInfinity, all = 0.0;
    for (int64_t n = net_.last(); n < N_; ++n) most = std::max(most, row[n]);
    if (!(most > kMinusInfinity)) return kMinusInfinity;
    for (int64_t n = net_.last(); n < N_; ++n) all += std::exp(row[n] - most);
    log_z_ = scale_[T_];
    add(log_z_, best ? most : most + std::log(all));
    return value(log_z_);
  }

  // use(start, stop, place) for the segments of the best way, the last first; after forward(true)
  template <class Use>
  void each_best(const Use& use) {
    const double* row = table_.data() + T_ * N_;
    int64_t n = std::max_element(row + net_.last(), row + N_) - row;
    for (int64_t v = T_; v > 0;) {
      double top = kMinusInfinity;
      int64_t u = 0, source = 0;
      fill_ending(v);
      each_into(v, [&](const PlaceNet::Arc& arc, int64_t d, double x) {
        if (arc.target != n || !(x > top)) return;
        top = x, u = v - d, source = arc.source;
      });
      use(u, v, net_.node(n).place);
      v = u;
      n = source;
    }
  }

  // expected numbers of segments, after forward(false) that found some
  void posteriors(PlaceCounts& out) {
    const int64_t ring = M_ + 1, starts = static_cast<int64_t>(net_.starts().size());
    out.starts.assign(static_cast<size_t>(starts * s_.start_rows), 0.0);
    out.start.assign(static_cast<size_t>(E_ * T_), 0.0);
    out.inside.assign(s_.inside ? out.start.size() : 0, 0.0);
    out.end.assign(out.start.size(), 0.0);
    out.by_length.assign(s_.by_length ? static_cast<size_t>(E_ * M_) : 0, 0.0);
    out.full.assign(s_.full ? static_cast<size_t>(E_ * T_ * M_) : 0, 0.0);
    // the rest of the sequence from each node
    std::vector<double> after(static_cast<size_t>(ring * N_), kMinusInfinity), top(static_cast<size_t>(N_));
    std::vector<double> sum(top), chance(top);
    std::vector<Scale> scale(static_cast<size_t>(ring));
    std::fill_n(after.data() + (T_ % ring) * N_ + net_.last(), N_ - net_.last(), 0.0);
    for (int64_t u = T_ - 1; u >= 0; --u) {
      const double* before = table_.data() + u * N_;
      const Scale near = scale[(u + 1) % ring];
      fill_starting(u);
      // use(arc, d, score of the rest from the arc on, less `near`)
      const auto each = [&](const auto& use) {
        for (int64_t d = 1; d <= std::min(M_, T_ - u); ++d) {
          const int64_t v = u + d;
          const double* row = after.data() + (v % ring) * N_;
          const double shifted = difference(scale[v % ring], near);
          for (int64_t a = first_into(v); a < last_into(v); ++a) {
            const PlaceNet::Arc& arc = net_.arc(a);
            if (arc.closing != (v == T_) || !(before[arc.source] > kMinusInfinity)) continue;
            use(arc, d, row[arc.target] + shifted + start_of(arc, u) + extent_[(d - 1) * E_ + arc.extent]);
          }
        }
      };
      std::fill(top.begin(), top.end(), kMinusInfinity);
      std::fill(sum.begin(), sum.end(), 0.0);
      each([&](const PlaceNet::Arc& arc, int64_t, double x) { top[arc.source] = std::max(top[arc.source], x); });
      Scale both = scale_[u];
      add(both, near.hi);
      add(both, -log_z_.hi);
      const double known = both.hi + (both.lo + (near.lo - log_z_.lo));
      for (int64_t n = 0; n < N_; ++n) chance[n] = std::exp(before[n] + top[n] + known);  // of its best way on
      each([&](const PlaceNet::Arc& arc, int64_t d, double x) {
        if (!(x > kMinusInfinity)) return;
        const double e = std::exp(x - top[arc.source]);
        sum[arc.source] += e;
        count(out, arc, u, d, e * chance[arc.source]);
      });
      double* row = after.data() + (u % ring) * N_;
      for (int64_t n = 0; n < N_; ++n) row[n] = sum[n] > 0.0 ? top[n] + std::log(sum[n]) : kMinusInfinity;
      scale[u % ring] = near;
      shift(row, scale[u % ring]);
    }
    if (!s_.inside) return;
    for (int64_t e = 0; e < E_; ++e) {  // a segment covers t if it began up to t and did not end before
      double cover = 0.0;
      for (int64_t t = 0; t < T_; ++t) {
        cover += out.start[e * T_ + t];
        out.inside[e * T_ + t] = cover;
        cover = std::max(0.0, cover - out.end[e * T_ + t]);
      }
    }
  }

 private:
  // the row less its largest entry, which goes to the scale
  void shift(double* row, Scale& scale) const {
    const double top = *std::max_element(row, row + N_);
    if (!(top > kMinusInfinity)) return;
    for (int64_t n = 0; n < N_; ++n) row[n] -= top;
    add(scale, top);
  }

  // arcs into the places that leave room for those before and after them, where a segment ends at v
  int64_t first_into(int64_t v) const { return net_.first_arc(std::max<int64_t>(0, net_.places() - 1 - (T_ - v))); }
  int64_t last_into(int64_t v) const { return net_.first_arc(std::min(v, net_.places())); }

  double start_of(const PlaceNet::Arc& arc, int64_t u) const {
    return s_.starts[arc.starts * s_.start_rows + (s_.start_rows > 1 ? u : 0)];
  }

  // extent_ (M, classes): scores of the segments that end at v, or that start at u, by length
  void fill_ending(int64_t v) {
    fill_extents(std::min(M_, v), [&](int64_t d) { return v - d; }, [&](int64_t d) { return v - d; });
  }
  void fill_starting(int64_t u) {
    fill_extents(std::min(M_, T_ - u), [&](int64_t) { return u; }, [&](int64_t d) { return u + d - 1; });
  }
  template <class Start, class Added>
  void fill_extents(int64_t longest, const Start& start, const Added& added) {
    extent_.resize(static_cast<size_t>(M_ * E_));
    for (int64_t e = 0; e < E_; ++e) {
      double inside = 0.0;
      for (int64_t d = 1; d <= longest; ++d) {
        const int64_t u = start(d);
        if (s_.inside) inside += s_.inside[e * T_ + added(d)];
        double x = s_.start[e * T_ + u] + inside;
        if (s_.end) x += s_.end[e * T_ + u + d - 1];
        if (s_.by_length) x += s_.by_length[e * M_ + d - 1];
        if (s_.full) x += s_.full[(e * T_ + u) * M_ + d - 1];
        extent_[(d - 1) * E_ + e] = x;
      }
    }
  }

  // use(arc, d, x) for the segments that end at v; x: the sum up to v by it, less the scale of v - 1
  template <class Use>
  void each_into(int64_t v, const Use& use) const {
    const int64_t first = first_into(v), last = last_into(v);
    for (int64_t d = 1; d <= std::min(M_, v); ++d) {
      const double* before = table_.data() + (v - d) * N_;
      const double shifted = difference(scale_[v - d], scale_[v - 1]);
      for (int64_t a = first; a < last; ++a) {
        const PlaceNet::Arc& arc = net_.arc(a);
        if (arc.closing != (v == T_) || !(before[arc.source] > kMinusInfinity)) continue;
        use(arc, d, before[arc.source] + shifted + start_of(arc, v - d) + extent_[(d - 1) * E_ + arc.extent]);
      }
    }
  }

  void count(PlaceCounts& out, const PlaceNet::Arc& arc, int64_t u, int64_t d, double p) const {
    out.starts[arc.starts * s_.start_rows + (s_.start_rows > 1 ? u : 0)] += p;
    const int64_t at = arc.extent * T_ + u;
    out.start[at] += p;
    out.end[at + d - 1] += p;
    if (s_.by_length) out.by_length[arc.extent * M_ + d - 1] += p;
    if (s_.full) out.full[at * M_ + d - 1] += p;
  }

  const PlaceNet& net_;
  const PlaceScoresView& s_;
  const int64_t T_, M_, N_, E_;
  std::vector<double> table_;  // (T + 1, nodes)
  std::vector<Scale> scale_;   // (T + 1,)
  Scale log_z_;
  std::vector<double> extent_;
};

}  // namespace scansion
