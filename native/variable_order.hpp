// Chains of any order by the Sum-Difference algorithm (sum_difference.hpp): from encoded sequences and weights to the
// log loss and its gradient. What is built once for a data set: which patterns live where (pattern_sets.hpp), and the
// features of tokens on longer patterns as lists of (node, weight).
//
// Where the features of longer patterns are always-on ones, e^W is the same everywhere: it is computed once for an
// evaluation, four sequences go side by side, and expectations are added up before they are taken apart. Otherwise e^W
// belongs to a position.
//
// A sequence that the guard refuses (kappa, see sum_difference.hpp) is recomputed on the automaton, and counted.
#pragma once

#include <atomic>
#include <cmath>

#include "best_labelling.hpp"
#include "flat_model.hpp"
#include "pattern_sets.hpp"

namespace scansion {

constexpr double kMostKappa = 1e4;    // four digits of a difference may go; 1e-9 in log Z needs seven
constexpr double kMostWeight = 300.0;  // largest W whose exponential leaves room for products

// e^W of a set's nodes, with what the sweeps read.
class Coefficients {
 public:
  // w (nodes,): scores, roots 0. contiguous: copies in the order of the sweeps
  void compute(const PatternSetView& p, const double* w, bool contiguous) {
    const size_t nodes = static_cast<size_t>(p.nodes), states = static_cast<size_t>(p.states);
    sum_.resize(nodes);
    b_.resize(nodes);
    c_.resize(nodes);
    cap_.resize(static_cast<size_t>(p.active));
    top_ = 0.0;
    for (int32_t n = 0; n < p.nodes; ++n) {
      sum_[n] = n < p.roots ? 0.0 : sum_[p.suffix[n]] + w[n];
      top_ = std::max(top_, sum_[n]);
    }
    kernels().exp_array(sum_.data(), p.nodes, b_.data());
    for (int32_t n = 0; n < p.nodes; ++n) c_[n] = n < p.roots ? 0.0 : b_[n] - b_[p.suffix[n]];
    for (int32_t i = 0; i < p.active; ++i) {
      const int32_t n = p.active_node[i];
      double cap = n < p.roots ? b_[n] : std::max(b_[n], b_[p.suffix[n]]);
      for (int32_t k = p.children[n]; k < p.children[n + 1]; ++k) cap = std::max(cap, b_[k]);
      cap_[i] = cap;
    }
    view_.b = b_.data();
    view_.c = c_.data();
    view_.cap = cap_.data();
    if (!contiguous) return;
    entry_c_.resize(static_cast<size_t>(p.nodes - p.roots));
    state_b_.resize(states - 1 - static_cast<size_t>(p.roots));
    under_.assign(states, 1.0);
    for (size_t k = 0; k < entry_c_.size(); ++k) entry_c_[k] = c_[p.entry_node[k]];
    for (size_t k = 0; k < state_b_.size(); ++k) state_b_[k] = b_[p.state_node[p.state_entry[k]]];
    for (int32_t k = 1 + p.roots; k < p.states; ++k) under_[k] = b_[p.suffix[p.state_node[k]]];
    view_.entry_c = entry_c_.data();
    view_.state_b = state_b_.data();
    view_.under = under_.data();
  }
  const PatternCoefficients& view() const { return view_; }
  const double* sums() const { return sum_.data(); }  // (nodes,) W
  bool fits() const { return top_ <= kMostWeight; }

 private:
  std::vector<double> sum_, b_, c_, cap_, entry_c_, state_b_, under_;
  double top_ = 0.0;
  PatternCoefficients view_;
};

// The first place in a block that begins a vector: loads that cross a cache line cost twice. Blocks have eight doubles
// to spare.
inline double* aligned(double* p) {
  return reinterpret_cast<double*>((reinterpret_cast<uintptr_t>(p) + 63) / 64 * 64);
}

// Tables of one thread for sum_difference.hpp.
class SumDifferenceTables {
 public:
  SumDifferenceView view;
  SumDifferenceWork work;
  std::vector<const PatternSetView*> sets;             // (length,)
  std::vector<const PatternCoefficients*> coefficients;  // (length,)
  double *u = nullptr, *posterior = nullptr;           // (length, labels, width)

  // after sets are given
  void layout(int64_t labels, int64_t width, bool bos) {
    const int64_t T = static_cast<int64_t>(sets.size());
    view.length = T;
    view.labels = labels;
    view.before = bos ? 2 : 1;
    at_.assign(static_cast<size_t>(T) + 1, 0);
    int64_t total = view.before + 1, nodes = 0, states = view.before, active = 0;
    for (int64_t t = 0; t < T; ++t) {
      at_[t + 1] = total;
      total += sets[t]->states + 1;
      nodes = std::max<int64_t>(nodes, sets[t]->nodes);
      states = std::max<int64_t>(states, sets[t]->states);
      active = std::max<int64_t>(active, sets[t]->active);
    }
    double* p = block_.take((total + nodes + 2 * (states + 1) + 2 * active + 3 + 2 * T * labels) * width + 8);
    p = aligned(p);
    const auto take = [&](int64_t n) {
      double* q = p;
      p += n * width;
      return q;
    };
    work.gamma = take(total);
    work.gamma_at = at_.data();
    work.x = take(nodes);
    work.delta[0] = take(states + 1);
    work.delta[1] = take(states + 1);
    work.beta_top = take(active);
    work.scaled_beta = take(active);
    work.log_z = take(1);
    work.z = take(1);
    work.kappa = take(1);
    u = take(T * labels);
    posterior = take(T * labels);
    view.u = u;
  }
  void finish() {
    view.sets = sets.data();
    view.coefficients = coefficients.data();
  }

 private:
  Workspace block_;
  std::vector<int64_t> at_;
};

// Row of label scores -> e^{score - largest}; returns the largest. allowed (L,) or null.
inline double exponentiate_row(const double* score, int64_t labels, const uint8_t* allowed, double* out) {
  double top = kMinusInfinity;
  for (int64_t y = 0; y < labels; ++y) {
    out[y] = allowed && !allowed[y] ? kMinusInfinity : score[y];
    top = std::max(top, out[y]);
  }
  if (!(top > kMinusInfinity)) {
    std::fill_n(out, labels, 0.0);
    return kMinusInfinity;
  }
  for (int64_t y = 0; y < labels; ++y) out[y] -= top;
  kernels().exp_array(out, labels, out);
  return top;
}

// One lattice on given scores of patterns, for tests and for whoever has no features: score(y) is the sum over t and
// over patterns z that match at t of scores[t, z]. fires (T, P) or null: where patterns live; elsewhere scores are not
// read. Returns log Z and fills posteriors (T, P); false: the guard refuses, kappa says why.
inline bool sum_difference_lattice(const PatternAutomaton& net, const double* scores, const uint8_t* fires, int64_t T,
                                   const uint8_t* allowed, double& log_z, double* posteriors, double& kappa) {
  const int64_t P = net.patterns(), L = net.labels();
  std::vector<uint8_t> always(static_cast<size_t>(P), fires ? 0 : 1);
  PatternSets sets(net, always);
  const PatternStrings& all = sets.strings();
  std::vector<std::vector<int32_t>> fired(static_cast<size_t>(T) + 1);
  if (fires)
    for (int64_t t = 0; t < T; ++t)
      for (int64_t z = 0; z < P; ++z) {
        if (!fires[t * P + z] || net.pattern_length(z) == 1) continue;
        if (net.ends(z)) {
          const int32_t body = all.prefix(all.string(z));
          if (t == T - 1 && (body == all.root() || all.fits(body, t))) fired[T].push_back(all.string(z));
        } else if (all.fits(all.string(z), t)) {
          fired[t].push_back(all.string(z));
        }
      }
  for (auto& f : fired) std::sort(f.begin(), f.end());
  const std::vector<int32_t> which = sets.sequence(T, fired);
  SumDifferenceTables tables;
  std::vector<Coefficients> coefficients(which.size());
  for (size_t t = 0; t < which.size(); ++t) tables.sets.push_back(&sets.set(which[t]).view());
  tables.layout(L, 1, all.any_bos());
  std::vector<double> w;
  std::vector<std::vector<double>> patterns(which.size());
  std::vector<double*> pattern_rows;
  bool fits = true;
  for (size_t t = 0; t < which.size(); ++t) {
    const PatternSet& set = sets.set(which[t]);
    const int64_t from = std::min<int64_t>(static_cast<int64_t>(t), T - 1);
    w.assign(static_cast<size_t>(set.view().nodes), 0.0);
    for (int32_t n = set.view().roots; n < set.view().nodes; ++n) {
      const int32_t z = set.pattern(n);
      if (z >= 0 && (!fires || fires[from * P + z])) w[n] = scores[from * P + z];
    }
    coefficients[t].compute(set.view(), w.data(), false);
    fits = fits && coefficients[t].fits();
    tables.coefficients.push_back(&coefficients[t].view());
    patterns[t].assign(w.size(), 0.0);
    pattern_rows.push_back(patterns[t].data());
  }
  tables.finish();
  std::vector<int32_t> label_pattern(static_cast<size_t>(L), -1);
  for (int64_t z = 0; z < P; ++z)
    if (net.pattern_length(z) == 1) label_pattern[net.pattern_label(z)] = static_cast<int32_t>(z);
  std::vector<double> row(static_cast<size_t>(L));
  double shift = 0.0;
  for (int64_t t = 0; t < static_cast<int64_t>(which.size()); ++t) {
    double* u = tables.u + t * L;
    if (t == T) {
      std::fill_n(u, L, 1.0);
      continue;
    }
    for (int64_t y = 0; y < L; ++y) {
      const int32_t z = label_pattern[y];
      row[y] = z >= 0 && (!fires || fires[t * P + z]) ? scores[t * P + z] : 0.0;
    }
    shift += exponentiate_row(row.data(), L, allowed ? allowed + t * L : nullptr, u);
  }
  const int64_t stop = static_cast<int64_t>(which.size());
  const double factor = 1.0;
  tables.view.stop = &stop;
  tables.view.factor = &factor;
  kappa = std::numeric_limits<double>::infinity();
  if (!fits) return false;
  kernels().sum_difference_forward(tables.view, tables.work, false);
  kernels().sum_difference_backward(tables.view, tables.work, false, true, tables.posterior, nullptr,
                                    pattern_rows.data());
  kappa = *tables.work.kappa;
  log_z = *tables.work.log_z + shift;
  std::fill_n(posteriors, T * P, 0.0);
  for (int64_t t = 0; t < stop; ++t) {
    const PatternSet& set = sets.set(which[t]);
    const int64_t to = std::min(t, T - 1);
    for (int32_t n = set.view().roots; n < set.view().nodes; ++n)
      if (set.pattern(n) >= 0) posteriors[to * P + set.pattern(n)] += patterns[t][n];
    for (int64_t y = 0; t < T && y < L; ++y)
      if (label_pattern[y] >= 0) posteriors[t * P + label_pattern[y]] = tables.posterior[t * L + y];
  }
  return kappa <= kMostKappa;
}

// The features of a model on a data set, for this engine.
class VariableOrder {
 public:
  VariableOrder(const ModelView& model, const DataView& data, const TargetView& target, const PatternAutomaton& net)
      : m_(model), data_(data), target_(target), net_(net), sets_(net, always(model)) {
    if (m_.parts[kStart].rows && !data_.values) split_ = std::make_unique<SplitFeatures>(m_, data_);
    if (m_.parts[kStart].rows && data_.values) {
      const FeatureRows& f = m_.parts[kStart];
      for (int64_t a = 0; a < f.attributes; ++a)
        stop_.push_back(std::lower_bound(f.pattern + f.rows[a], f.pattern + f.rows[a + 1], m_.labels) - f.pattern);
    }
    shared_ = !m_.varying_starts;
    if (shared_)
      place_base();
    else
      place_tokens();
    count_observed();
  }

  bool lanes() const { return shared_ && !sets_.has_end(); }
  const SplitFeatures* split() const { return split_.get(); }
  int64_t refused() const { return refused_; }

  struct Size {
    int64_t sets, nodes, bytes;
  };
  // distinct sets, nodes of all positions, bytes of the structure
  Size size() const {
    Size s{sets_.count(), 0, sets_.bytes()};
    for (int64_t b = 0; b < data_.sequences; ++b)
      for (int64_t t = 0; t < positions(b); ++t) s.nodes += set(b, t).view().nodes;
    s.bytes += static_cast<int64_t>(position_set_.size() * sizeof(int32_t) + hit_weight_.size() * 24);
    return s;
  }

  // Best labellings (N,), by the targets' allowed labels if `known`; -1 in the first label: nothing is possible.
  void decode(const double* w, bool known, int32_t* labels, int64_t threads) {
    prepare(w);
    workers_.resize(static_cast<size_t>(std::max<int64_t>(1, threads)));
    parallel_for(data_.sequences, threads, [&](int64_t b, int64_t worker) {
      if (!workers_[worker]) workers_[worker] = std::make_unique<Worker>();
      if (length(b) > 0 && !decode_one(*workers_[worker], b, w, known, labels + data_.offsets[b]))
        labels[data_.offsets[b]] = -1;
    });
  }

  // sum_b weight_b (log Z_b - log Z_b(known)) and its gradient (weights,). fallback(worker, b, known, factor, out)
  // returns log Z and adds factor times the expectations, by the automaton.
  template <class Fallback>
  double log_loss(const double* w, double* gradient, int64_t threads, const Fallback& fallback) {
    const int64_t n = m_.weights, rows = split_ ? split_->size() : 0;
    const bool fits = prepare(w);
    refused_ = 0;
    const Chunks chunks(data_.sequences, 8);  // each takes its sums apart at the end, which is worth avoiding
    careful_.resize(static_cast<size_t>(chunks.chunks), 0);
    buffers_.resize(static_cast<size_t>(chunks.chunks));
    std::vector<double> losses(static_cast<size_t>(chunks.chunks), 0.0);
    workers_.resize(static_cast<size_t>(std::max<int64_t>(1, threads)));
    parallel_for(chunks.chunks, threads, [&](int64_t chunk, int64_t worker) {
      if (!workers_[worker]) workers_[worker] = std::make_unique<Worker>();
      const auto again = [&](int64_t b, bool known, double factor, double* out) {
        ++refused_;
        return fallback(worker, b, known, factor, out);
      };
      for (;;) {
        buffers_[chunk].assign(static_cast<size_t>(n + rows), 0.0);
        losses[chunk] = 0.0;
        if (run(*workers_[worker], chunks.begin(chunk), chunks.end(chunk), w, fits, careful_[chunk], again,
                buffers_[chunk].data(), losses[chunk]))
          break;
        careful_[chunk] = 1;  // some sequence is refused: look before adding anything, now and from now on
      }
      if (split_) split_->fold(m_, buffers_[chunk].data() + n, buffers_[chunk].data());
    });
    const Chunks ranges(n, 64);
    parallel_for(ranges.chunks, threads, [&](int64_t r, int64_t) {
      for (int64_t f = ranges.begin(r); f < ranges.end(r); ++f) {
        double sum = -observed_[f];
        for (const auto& buffer : buffers_) sum += buffer[f];
        gradient[f] = sum;
      }
    });
    double loss = 0.0;
    for (const double x : losses) loss += x;
    for (int64_t f = 0; f < n; ++f)
      if (observed_[f] != 0.0) loss -= observed_[f] * w[f];
    return loss;
  }

 private:
  struct Worker {
    SumDifferenceTables tables;
    std::vector<std::vector<double>> scores;  // by lane (T, stride)
    std::vector<double> row, node_weight;
    std::vector<Coefficients> coefficients;   // by position
    std::vector<std::vector<double>> patterns;  // by position (nodes,)
    std::vector<double*> pattern_rows;
    std::vector<std::vector<double>> sums;    // by set: entries, then states, four lanes each
    std::vector<PatternSums> sum_views;
    std::vector<const PatternSums*> sums_at;  // by position
    std::vector<uint8_t> used;                // by set
    BestLabelling best;
  };
  struct Job {
    int64_t b;
    bool known;
  };
  static constexpr int64_t kWidth = 4;

  static std::vector<uint8_t> always(const ModelView& m) {
    std::vector<uint8_t> out(static_cast<size_t>(m.patterns), 0);
    for (int64_t z = m.labels; z < m.patterns; ++z) out[z] = m.bias[z] >= 0;
    return out;
  }
  int64_t length(int64_t b) const { return data_.offsets[b + 1] - data_.offsets[b]; }
  // positions of a sequence, its end included where patterns know it
  int64_t positions(int64_t b) const { return length(b) + (length(b) > 0 && sets_.has_end() ? 1 : 0); }
  double weight(int64_t b) const { return target_.weight ? target_.weight[b] : 1.0; }
  const PatternSet& set(int64_t b, int64_t t) const {
    if (!shared_) return sets_.set(position_set_[data_.offsets[b] + b + t]);
    if (t < length(b)) return sets_.set(base_set_[t]);
    return sets_.set(end_set_[std::min<int64_t>(t, static_cast<int64_t>(end_set_.size()) - 1)]);
  }

  // ---- structure, once ----

  void place_base() {
    int64_t longest = 0;
    for (int64_t b = 0; b < data_.sequences; ++b) longest = std::max(longest, length(b));
    if (longest == 0) return;
    base_set_ = sets_.sequence(longest, {});
    base_set_.resize(static_cast<size_t>(longest));
    for (int64_t T = 0; sets_.has_end() && T <= std::min(longest, sets_.strings().longest()); ++T)
      end_set_.push_back(T == 0 ? -1 : sets_.sequence(T, {}).back());
  }

  void place_tokens() {
    const FeatureRows& f = m_.parts[kStart];
    const PatternStrings& all = sets_.strings();
    hit_offsets_.assign(1, 0);
    std::vector<std::vector<int32_t>> fired;
    std::vector<int32_t> strings;  // of the hits of a sequence
    for (int64_t b = 0; b < data_.sequences; ++b) {
      const int64_t T = length(b), first = data_.offsets[b];
      fired.assign(static_cast<size_t>(T) + 1, {});
      const size_t begin = hit_weight_.size(), slot = hit_offsets_.size();
      strings.clear();
      for (int64_t t = 0; t <= T; ++t) {
        const bool end = t == T;
        const int64_t token = first + (end ? t - 1 : t);
        if (T > 0 && !(end && !sets_.has_end()))
          for (int64_t e = data_.token_offsets[token]; e < data_.token_offsets[token + 1]; ++e) {
            const int64_t id = data_.ids[e];
            if (id >= f.attributes) continue;
            for (int64_t k = f.rows[id + 1] - 1; k >= f.rows[id] && f.pattern[k] >= m_.labels; --k) {
              const int32_t z = f.pattern[k], s = all.string(z);
              if (net_.ends(z) != end) continue;
              const int32_t body = end ? all.prefix(s) : s;
              if (!all.fits(body, end ? t - 1 : t)) continue;
              strings.push_back(s);
              hit_weight_.push_back(f.base + k);
              hit_value_.push_back(data_.values ? data_.values[e] : 1.0);
              if (m_.bias[z] < 0) fired[t].push_back(s);
            }
          }
        hit_offsets_.push_back(static_cast<int64_t>(hit_weight_.size()));
      }
      for (auto& s : fired) {
        std::sort(s.begin(), s.end());
        s.erase(std::unique(s.begin(), s.end()), s.end());
      }
      std::vector<int32_t> which;
      if (T > 0) which = sets_.sequence(T, fired);
      for (int64_t t = 0; t <= T; ++t) {
        position_set_.push_back(t < static_cast<int64_t>(which.size()) ? which[t] : -1);
        for (int64_t h = hit_offsets_[slot - 1 + t]; h < hit_offsets_[slot + t]; ++h)
          hit_node_.push_back(sets_.set(which[t]).node(strings[h - static_cast<int64_t>(begin)]));
      }
    }
  }

  // Features of longer patterns on complete sequences: their sum is the same in every evaluation.
  void count_observed() {
    observed_.assign(static_cast<size_t>(m_.weights), 0.0);
    const FeatureRows& f = m_.parts[kStart];
    std::vector<uint8_t> matched(static_cast<size_t>(m_.patterns), 0);
    std::vector<int32_t> list;
    for (int64_t b = 0; b < data_.sequences; ++b) {
      if (target_.status[b] != 2) continue;
      int64_t state = net_.initial();
      for (int64_t t = 0; t < length(b); ++t) {
        const int64_t token = data_.offsets[b] + t;
        const int32_t y = target_.labels[token];
        list.clear();
        for (int32_t z = net_.match(state, y); z >= 0; z = net_.pattern_suffix(z)) list.push_back(z);
        state = net_.next(state, y);
        if (t == length(b) - 1)
          for (int32_t z = net_.end_match(state); z >= 0; z = net_.pattern_suffix(z)) list.push_back(z);
        for (const int32_t z : list) {
          matched[z] = 1;
          if (z >= m_.labels && m_.bias[z] >= 0) observed_[m_.bias[z]] += weight(b);
        }
        if (!shared_)
          for (int64_t e = data_.token_offsets[token]; e < data_.token_offsets[token + 1]; ++e) {
            const int64_t id = data_.ids[e];
            if (id >= f.attributes) continue;
            for (int64_t k = f.rows[id + 1] - 1; k >= f.rows[id] && f.pattern[k] >= m_.labels; --k)
              if (matched[f.pattern[k]]) observed_[f.base + k] += weight(b) * (data_.values ? data_.values[e] : 1.0);
          }
        for (const int32_t z : list) matched[z] = 0;
      }
    }
  }

  // ---- scores ----

  // what all sequences share; false: some W is too large
  bool prepare(const double* w) {
    bool fits = true;
    table_.resize(static_cast<size_t>(split_ ? split_->size() : 0));
    if (split_) split_->expand(m_, w, table_.data());
    coefficients_.resize(static_cast<size_t>(shared_ ? sets_.count() : 0));
    for (int64_t i = 0; shared_ && i < sets_.count(); ++i) fits = share(i, w) && fits;
    return fits;
  }

  bool decode_one(Worker& k, int64_t b, const double* w, bool known, int32_t* labels) const {
    const int64_t N = positions(b), L = m_.labels;
    if (k.scores.empty()) k.scores.resize(1);
    label_scores(b, w, k.scores[0]);
    if (!shared_) local_coefficients(k, b, w);
    k.tables.sets.resize(static_cast<size_t>(N));
    k.best.start(sets_.strings().any_bos() ? 2 : 1);
    const double end = 0.0;
    for (int64_t t = 0; t < N; ++t) {
      k.tables.sets[t] = &set(b, t).view();
      double* row = k.scores[0].data() + t * stride();
      if (known && t < length(b))
        for (int64_t y = 0; y < L; ++y)
          if (!target_.allowed[(data_.offsets[b] + t) * L + y]) row[y] = kMinusInfinity;
      k.best.step(*k.tables.sets[t], t < length(b) ? row : &end,
                  (shared_ ? coefficients_[set_index(b, t)] : k.coefficients[t]).sums());
    }
    return k.best.finish(k.tables.sets, length(b), labels);
  }

  bool share(int64_t i, const double* w) {
    const PatternSet& s = sets_.set(i);
    std::vector<double> node(static_cast<size_t>(s.view().nodes), 0.0);
    for (int32_t n = s.view().roots; n < s.view().nodes; ++n)
      if (s.pattern(n) >= 0 && m_.bias[s.pattern(n)] >= 0) node[n] = w[m_.bias[s.pattern(n)]];
    coefficients_[i].compute(s.view(), node.data(), true);
    return coefficients_[i].fits();
  }

  // e^W of the positions of one sequence; false: some W is too large
  bool local_coefficients(Worker& k, int64_t b, const double* w) const {
    bool fits = true;
    if (static_cast<int64_t>(k.coefficients.size()) < positions(b)) k.coefficients.resize(static_cast<size_t>(positions(b)));
    for (int64_t t = 0; t < positions(b); ++t) {
      const PatternSet& s = set(b, t);
      k.node_weight.assign(static_cast<size_t>(s.view().nodes), 0.0);
      for (int32_t n = s.view().roots; n < s.view().nodes; ++n)
        if (s.pattern(n) >= 0 && m_.bias[s.pattern(n)] >= 0) k.node_weight[n] = w[m_.bias[s.pattern(n)]];
      const int64_t slot = data_.offsets[b] + b + t;
      for (int64_t h = hit_offsets_[slot]; h < hit_offsets_[slot + 1]; ++h)
        k.node_weight[hit_node_[h]] += hit_value_[h] * w[hit_weight_[h]];
      k.coefficients[t].compute(s.view(), k.node_weight.data(), false);
      fits = fits && k.coefficients[t].fits();
    }
    return fits;
  }

  int64_t stride() const { return (m_.labels + 3) / 4 * 4; }

  // scores of single labels (T, stride)
  void label_scores(int64_t b, const double* w, std::vector<double>& out) const {
    const int64_t T = length(b), first = data_.offsets[b], stride = this->stride();
    out.assign(static_cast<size_t>(T * stride), 0.0);
    const FeatureRows& f = m_.parts[kStart];
    if (!f.rows) return;
    for (int64_t t = 0; t < T; ++t) {
      double* row = out.data() + t * stride;
      if (split_) {
        const int64_t* wide = split_->wide_offsets.data() + first + t;
        kernels().sum_rows(table_.data(), stride, split_->wide_rows.data() + wide[0], wide[1] - wide[0], row);
      }
      each_narrow(first + t, [&](int64_t k, double value) { row[f.pattern[k]] += value * w[f.base + k]; });
    }
  }

  // use(feature, value) for the features of a token on single labels that are not in rows
  template <class Use>
  void each_narrow(int64_t token, const Use& use) const {
    const FeatureRows& f = m_.parts[kStart];
    if (split_) {
      const int64_t last = split_->narrow_offsets[token + 1];
      const int64_t ahead = static_cast<int64_t>(split_->narrow_ids.size());
      for (int64_t e = split_->narrow_offsets[token]; e < last; ++e) {
        if (e + 8 < ahead) prefetch(f.rows + split_->narrow_ids[e + 8]);
        const int64_t id = split_->narrow_ids[e];
        for (int64_t k = f.rows[id]; k < split_->stop[id]; ++k) use(k, 1.0);
      }
      return;
    }
    for (int64_t e = data_.token_offsets[token]; e < data_.token_offsets[token + 1]; ++e) {
      const int64_t id = data_.ids[e];
      if (id >= f.attributes) continue;
      for (int64_t k = f.rows[id]; k < stop_[id]; ++k) use(k, data_.values[e]);
    }
  }

  // out += expectations of single labels; row (stride,) at one token, ends in zeros
  void add_labels(int64_t token, const double* row, double* out) const {
    const FeatureRows& f = m_.parts[kStart];
    if (!f.rows) return;
    if (split_) {
      const int64_t* wide = split_->wide_offsets.data() + token;
      kernels().add_to_rows(out + m_.weights, nullptr, stride(), split_->wide_rows.data() + wide[0], wide[1] - wide[0], row, 1.0);
    }
    each_narrow(token, [&](int64_t k, double value) { out[f.base + k] += value * row[f.pattern[k]]; });
  }

  // ---- a chunk of sequences ----

  // False: a sequence was refused after its sums were added; call again with careful.
  template <class Fallback>
  bool run(Worker& k, int64_t first, int64_t last, const double* w, bool fits, bool careful, const Fallback& fallback,
           double* out, double& loss) const {
    std::vector<Job> jobs;
    for (int64_t b = first; b < last; ++b)
      if (target_.status[b] != 0 && length(b) > 0) jobs.push_back({b, false});
    const auto longer = [&](const Job& x, const Job& y) { return length(x.b) > length(y.b); };
    std::stable_sort(jobs.begin(), jobs.end(), longer);
    const size_t all = jobs.size();
    for (size_t i = 0; i < all; ++i)
      if (target_.status[jobs[i].b] == 1) jobs.push_back({jobs[i].b, true});
    if (!lanes()) {
      for (const Job& job : jobs) alone(k, job, w, fits, fallback, out, loss);
      return true;
    }
    clear_sums(k);
    for (size_t i = 0; i < jobs.size(); i += kWidth) {
      // free and known ones do not mix only because lengths would
      const size_t n = std::min<size_t>(kWidth, (i < all ? all : jobs.size()) - i);
      if (!together(k, jobs.data() + i, n, w, fits, careful, fallback, out, loss)) return false;
      i -= kWidth - n;
    }
    fold_sums(k, out);
    return true;
  }

  double factor(const Job& job) const { return (job.known ? -1.0 : 1.0) * weight(job.b); }

  // Row t of a lane with e^score, and the score taken out. False: nothing is possible.
  bool fill_lane(Worker& k, const Job& job, const std::vector<double>& scores, int64_t lane, int64_t width,
                 double& shift) const {
    const int64_t L = m_.labels, T = length(job.b);
    shift = 0.0;
    k.row.resize(static_cast<size_t>(L));
    for (int64_t t = 0; t < T; ++t) {
      const uint8_t* allowed = job.known ? target_.allowed + (data_.offsets[job.b] + t) * L : nullptr;
      const double top = exponentiate_row(scores.data() + t * stride(), L, allowed, k.row.data());
      if (!(top > kMinusInfinity)) return false;
      shift += top;
      double* u = k.tables.u + t * L * width + lane;
      for (int64_t y = 0; y < L; ++y) u[y * width] = k.row[y];
    }
    return true;
  }

  // what a sequence adds beside the expectations of its longer patterns; row t of the posteriors: at[t * L * width]
  void finish(Worker& k, const Job& job, const std::vector<double>& scores, const double* at, int64_t width, double* out,
              double& loss) const {
    const int64_t L = m_.labels;
    const bool gold = !job.known && target_.status[job.b] == 2;
    if (!at && !gold) return;
    k.row.assign(static_cast<size_t>(stride()), 0.0);
    for (int64_t t = 0; t < length(job.b); ++t) {
      const int64_t token = data_.offsets[job.b] + t;
      for (int64_t y = 0; y < L; ++y) k.row[y] = at ? at[(t * L + y) * width] : 0.0;
      if (gold) {
        const int32_t y = target_.labels[token];
        k.row[y] -= weight(job.b);
        loss -= weight(job.b) * scores[t * stride() + y];
      }
      add_labels(token, k.row.data(), out);
    }
  }

  template <class Fallback>
  void alone(Worker& k, const Job& job, const double* w, bool fits, const Fallback& fallback, double* out,
             double& loss) const {
    const int64_t b = job.b, N = positions(b), L = m_.labels;
    if (k.scores.empty()) k.scores.resize(1);
    label_scores(b, w, k.scores[0]);
    SumDifferenceTables& x = k.tables;
    x.sets.resize(static_cast<size_t>(N));
    for (int64_t t = 0; t < N; ++t) x.sets[t] = &set(b, t).view();
    x.layout(L, 1, sets_.strings().any_bos());
    if (!shared_) fits = local_coefficients(k, b, w);
    x.coefficients.resize(static_cast<size_t>(N));
    if (static_cast<int64_t>(k.patterns.size()) < N) k.patterns.resize(static_cast<size_t>(N));
    k.pattern_rows.resize(static_cast<size_t>(N));
    for (int64_t t = 0; t < N; ++t) {
      x.coefficients[t] = shared_ ? &coefficients_[set_index(b, t)].view() : &k.coefficients[t].view();
      k.patterns[t].resize(static_cast<size_t>(x.sets[t]->nodes));
      k.pattern_rows[t] = k.patterns[t].data();
    }
    x.finish();
    double shift = 0.0;
    fits = fits && fill_lane(k, job, k.scores[0], 0, 1, shift);
    if (N > length(b)) std::fill_n(x.u + length(b) * L, L, 1.0);
    const double factor = this->factor(job);
    x.view.stop = &N;
    x.view.factor = &factor;
    if (fits) {
      kernels().sum_difference_forward(x.view, x.work, false);
      kernels().sum_difference_backward(x.view, x.work, false, true, x.posterior, nullptr, k.pattern_rows.data());
      fits = *x.work.kappa <= kMostKappa;
    }
    if (!fits) {
      loss += factor * fallback(b, job.known, factor, out);
      finish(k, job, k.scores[0], nullptr, 1, out, loss);
      return;
    }
    loss += factor * (*x.work.log_z + shift);
    for (int64_t t = 0; t < N; ++t) {
      const PatternSet& s = set(b, t);
      for (int32_t n = s.view().roots; n < s.view().nodes; ++n)
        if (s.pattern(n) >= 0 && m_.bias[s.pattern(n)] >= 0) out[m_.bias[s.pattern(n)]] += factor * k.patterns[t][n];
      if (shared_) continue;
      const int64_t slot = data_.offsets[b] + b + t;
      for (int64_t h = hit_offsets_[slot]; h < hit_offsets_[slot + 1]; ++h)
        out[hit_weight_[h]] += factor * hit_value_[h] * k.patterns[t][hit_node_[h]];
    }
    finish(k, job, k.scores[0], x.posterior, 1, out, loss);
  }
  int64_t set_index(int64_t b, int64_t t) const {
    return t < length(b) ? base_set_[t] : end_set_[std::min<int64_t>(t, static_cast<int64_t>(end_set_.size()) - 1)];
  }

  template <class Fallback>
  bool together(Worker& k, const Job* jobs, size_t n, const double* w, bool fits, bool careful,
                const Fallback& fallback, double* out, double& loss) const {
    const int64_t L = m_.labels;
    SumDifferenceTables& x = k.tables;
    int64_t T = 0;
    for (size_t i = 0; i < n; ++i) T = std::max(T, length(jobs[i].b));
    x.sets.resize(static_cast<size_t>(T));
    x.coefficients.resize(static_cast<size_t>(T));
    k.sums_at.resize(static_cast<size_t>(T));
    for (int64_t t = 0; t < T; ++t) {
      x.sets[t] = &sets_.set(base_set_[t]).view();
      x.coefficients[t] = &coefficients_[base_set_[t]].view();
      k.sums_at[t] = &k.sum_views[base_set_[t]];
      k.used[base_set_[t]] = 1;
    }
    x.layout(L, kWidth, sets_.strings().any_bos());
    x.finish();
    if (k.scores.size() < kWidth) k.scores.resize(kWidth);
    for (size_t i = 0; i < n; ++i) label_scores(jobs[i].b, w, k.scores[i]);
    int64_t stop[kWidth] = {};
    double factors[kWidth] = {}, shift[kWidth] = {};
    bool refused[kWidth] = {};
    const auto fill = [&] {
      std::fill_n(x.u, T * L * kWidth, 1.0);
      for (size_t i = 0; i < n; ++i) {
        stop[i] = 0;
        factors[i] = 0.0;
        refused[i] = refused[i] || !fits || !fill_lane(k, jobs[i], k.scores[i], static_cast<int64_t>(i), kWidth, shift[i]);
        if (refused[i]) {  // a harmless sequence in its place
          for (int64_t j = 0; j < T * L; ++j) x.u[j * kWidth + i] = 1.0;
        } else {
          stop[i] = length(jobs[i].b);
          factors[i] = factor(jobs[i]);
        }
      }
    };
    x.view.stop = stop;
    x.view.factor = factors;
    const auto guard = [&] {
      bool fine = true;
      for (size_t i = 0; i < n; ++i)
        if (stop[i] > 0 && !(x.work.kappa[i] <= kMostKappa)) refused[i] = true, fine = false;
      return fine;
    };
    fill();
    if (fits) {
      kernels().sum_difference_forward(x.view, x.work, true);
      if (careful) {
        kernels().sum_difference_backward(x.view, x.work, true, false, nullptr, nullptr, nullptr);
        if (!guard()) {
          fill();
          kernels().sum_difference_forward(x.view, x.work, true);
        }
      }
      kernels().sum_difference_backward(x.view, x.work, true, true, x.posterior, k.sums_at.data(), nullptr);
      if (!guard()) return false;
    }
    for (size_t i = 0; i < n; ++i) {
      const double f = factor(jobs[i]);
      loss += f * (refused[i] ? fallback(jobs[i].b, jobs[i].known, f, out) : x.work.log_z[i] + shift[i]);
      finish(k, jobs[i], k.scores[i], refused[i] ? nullptr : x.posterior + i, kWidth, out, loss);
    }
    return true;
  }

  void clear_sums(Worker& k) const {
    const size_t sets = static_cast<size_t>(sets_.count());
    k.sums.resize(sets);
    k.sum_views.resize(sets);
    k.used.assign(sets, 0);
    for (size_t i = 0; i < sets; ++i) {
      const PatternSetView& p = sets_.set(static_cast<int64_t>(i)).view();
      const int64_t entries = (p.nodes - p.roots) * kWidth;
      k.sums[i].assign(static_cast<size_t>(entries + (p.states - 1 - p.roots) * kWidth + 8), 0.0);
      double* first = aligned(k.sums[i].data());
      k.sum_views[i] = {first, first + entries};
    }
  }

  // sums over positions -> expectations of always-on patterns
  void fold_sums(Worker& k, double* out) const {
    std::vector<double> plain, below;
    for (size_t i = 0; i < k.sums.size(); ++i) {
      if (!k.used[i]) continue;
      const PatternSet& s = sets_.set(static_cast<int64_t>(i));
      const PatternSetView& p = s.view();
      const PatternCoefficients& c = coefficients_[i].view();
      plain.assign(static_cast<size_t>(p.nodes), 0.0);  // B(suffix) times the sum of G u beta(suffix)
      below.assign(static_cast<size_t>(p.nodes), 0.0);  // F, then with all below
      const auto four = [](const double* x) { return (x[0] + x[1]) + (x[2] + x[3]); };
      for (int32_t j = 0; j < p.nodes - p.roots; ++j) {
        const int32_t node = p.entry_node[j];
        const double x = four(k.sum_views[i].entry + j * kWidth);
        plain[node] = c.b[p.suffix[node]] * x;
        below[node] = c.c[node] * x;
      }
      for (int32_t j = 0; j < p.states - 1 - p.roots; ++j) {
        const int32_t node = p.state_node[p.state_entry[j]];
        below[node] += c.b[node] * four(k.sum_views[i].state + j * kWidth);
      }
      for (int32_t node = p.nodes - 1; node >= p.roots; --node) {
        for (int32_t j = p.children[node]; j < p.children[node + 1]; ++j) below[node] += below[j];
        const int32_t z = s.pattern(node);
        if (z >= 0 && m_.bias[z] >= 0) out[m_.bias[z]] += plain[node] + below[node];
      }
    }
  }

  const ModelView m_;
  const DataView data_;
  const TargetView target_;
  const PatternAutomaton& net_;
  PatternSets sets_;
  bool shared_ = true;                      // e^W is the same at all positions of a set
  std::vector<int32_t> base_set_, end_set_;  // shared: by position; by length
  std::vector<int32_t> position_set_;        // not shared: (N + B,) position t of sequence b at offsets[b] + b + t
  // token features on longer patterns, by position as above
  std::vector<int64_t> hit_offsets_, hit_weight_;
  std::vector<int32_t> hit_node_;
  std::vector<double> hit_value_;
  std::unique_ptr<SplitFeatures> split_;
  std::vector<int64_t> stop_;      // as SplitFeatures::stop, without it
  std::vector<double> observed_;   // (weights,)
  std::vector<Coefficients> coefficients_;  // shared: by set
  std::vector<double> table_;
  std::vector<std::vector<double>> buffers_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<uint8_t> careful_;  // by chunk
  std::atomic<int64_t> refused_{0};
};

}  // namespace scansion
