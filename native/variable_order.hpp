// Chains of any order by the Sum-Difference algorithm (sum_difference.hpp): from encoded sequences and weights to the
// log loss and its gradient, and to best labels. What is built once for a data set: which patterns live where
// (pattern_sets.hpp), and the features of tokens on longer patterns as lists of (node, feature).
//
// Where the features of longer patterns are always-on ones, e^W is the same everywhere: it is computed once for an
// evaluation, four sequences go side by side, and expectations are added up before they are taken apart. Otherwise
// positions have their own sets, and e^W differs from the base's where an attribute is tied to a pattern; the base is
// a matrix if it has nothing longer than pairs (pair_matrix.hpp).
//
// A sequence that the guard refuses (kappa, see sum_difference.hpp) is recomputed on the automaton, and counted.
#pragma once

#include <atomic>

#include "best_labelling.hpp"
#include "flat_model.hpp"
#include "pair_matrix.hpp"
#include "pattern_sets.hpp"
#include "sum_difference_tables.hpp"

namespace scansion {

// The features of a model on a data set, for this engine.
class VariableOrder {
 public:
  VariableOrder(const FlatModelView& model, const DataView& data, const FlatTargetView& target)
      : m_(model),
        data_(data),
        target_(target),
        net_(*model.automaton),
        shared_(!model.varying_starts),
        matrix_(model, net_),
        always_(always(model, matrix_)),
        sets_(net_, always_, model.varying_starts, matrix_.member()),
        local_(sets_) {
    const FeatureRows& f = m_.parts[kStart];
    if (f.rows && SplitFeatures::serves(data_)) split_ = std::make_unique<SplitFeatures>(f, m_.labels, data_);
    for (int64_t a = 0; f.rows && !split_ && a < f.attributes; ++a)
      stop_.push_back(std::lower_bound(f.column + f.rows[a], f.column + f.rows[a + 1], m_.labels) - f.column);
  }

  // what evaluations of the loss share: structure of all positions, observed counts
  void prepare_loss() {
    if (!observed_.empty()) return;
    if (!shared_) place_all();
    count_observed();
  }

  int64_t refused() const { return refused_; }

  struct Size {
    int64_t sets, nodes, bytes;
  };
  // distinct sets, nodes of all positions, bytes of the structure
  Size size() const {
    Size s{shared_ ? sets_.count() : local_.count(), 0, local_.bytes()};
    for (int64_t b = 0; b < data_.sequences; ++b)
      for (int64_t t = 0; t < positions(b); ++t) {
        const LocalPatternsView p = local(b, t);
        s.nodes += p.nodes + (p.dense ? static_cast<int64_t>(matrix_.pairs().size()) : 0);
        for (int32_t i = 0; i < p.pairs; ++i) s.nodes -= matrix_.bias(p.prefix[i] - 1, p.suffix[i]) >= 0;
      }
    for (int64_t i = 0; i < sets_.count(); ++i) s.bytes += sets_.set(i).bytes();
    s.bytes += static_cast<int64_t>((position_set_.size() + hits_.node.size() + hits_.feature.size()) * sizeof(int32_t) +
                                    hits_.offsets.size() * sizeof(int64_t) + hits_.value.size() * sizeof(double));
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
    prepare_loss();
    const int64_t n = m_.weights, rows = split_ ? split_->size() : 0;
    const bool fits = prepare(w);
    refused_ = 0;
    // each clears its sums and takes them apart at the end, which costs as much as some hundred positions a set
    const int64_t most = data_.offsets[data_.sequences] / (200 * sets_.count());
    const Chunks chunks(data_.sequences, std::clamp<int64_t>(most, 2, 8));
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
      if (split_) split_->fold(buffers_[chunk].data() + n, buffers_[chunk].data());
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
  // Features of tokens on longer patterns, position by position.
  struct Hits {
    std::vector<int64_t> offsets = {0};  // (positions + 1,)
    std::vector<int32_t> node, feature;  // feature of the part
    std::vector<double> value;           // empty: all 1
  };
  struct Worker {
    SumDifferenceTables tables;
    LocalTables alone;
    std::vector<std::vector<double>> scores;  // by lane (T, stride)
    std::vector<double> row, weight, added, few;
    std::vector<int32_t> changed;
    std::vector<std::vector<double>> sums;  // by set: entries, then states, four lanes each
    std::vector<PatternSums> sum_views;
    std::vector<const PatternSums*> sums_at;  // by position
    std::vector<uint8_t> used;                // by set
    std::vector<std::vector<double>> base_sums;  // by set (nodes,): expectations
    std::vector<double> pair_sums, beyond;       // as PairMatrix::fold
    // decoding: one sequence's structure, one position's patterns
    Hits hits;
    std::vector<int32_t> links, suffix, prefix, label, node_state, state_node;
    std::vector<uint8_t> apart;  // (labels, labels)
    BestLabelling best;
  };
  struct Job {
    int64_t b;
    bool known;
  };
  static constexpr int64_t kWidth = 4;

  static std::vector<uint8_t> always(const FlatModelView& m, const PairMatrix& matrix) {
    std::vector<uint8_t> out(static_cast<size_t>(m.patterns), 0);
    for (int64_t z = m.labels; z < m.patterns; ++z) out[z] = m.bias[z] >= 0 && !matrix.member()[z];
    return out;
  }
  int64_t length(int64_t b) const { return data_.offsets[b + 1] - data_.offsets[b]; }
  int64_t positions(int64_t b) const { return sets_.positions(length(b)); }
  double weight(int64_t b) const { return target_.weight ? target_.weight[b] : 1.0; }
  int32_t base(int64_t b, int64_t t) const { return sets_.base(t, length(b)); }
  // place of a position in position_set_ and hits_: sequences have room for an end each
  int64_t slot(int64_t b, int64_t t) const { return data_.offsets[b] + b + t; }
  LocalPatternsView local(int64_t b, int64_t t) const {
    return shared_ ? LocalSets::view(sets_, base(b, t), {}, nullptr) : local_.view(position_set_[slot(b, t)]);
  }

  // ---- structure, once ----

  // Extras of one sequence, and its hits appended.
  std::vector<PatternSets::Extras> place(int64_t b, Hits& hits) const {
    const FeatureRows& f = m_.parts[kStart];
    const PatternStrings& all = sets_.strings();
    const int64_t T = length(b), first = static_cast<int64_t>(hits.offsets.size()) - 1;
    std::vector<std::vector<int32_t>> fired(static_cast<size_t>(T) + 1);
    const size_t begin = hits.feature.size();
    std::vector<int32_t> strings;  // of the hits
    for (int64_t t = 0; t <= T; ++t) {
      const bool end = t == T;
      const int64_t token = data_.offsets[b] + (end ? t - 1 : t);
      for (int64_t e = data_.token_offsets[token]; t < positions(b) && e < data_.token_offsets[token + 1]; ++e) {
        const int64_t id = data_.ids[e];
        if (id >= f.attributes) continue;
        for (int64_t k = f.rows[id + 1] - 1; k >= f.rows[id] && f.column[k] >= m_.labels; --k) {
          const int32_t z = f.column[k], s = all.string(z);
          if (net_.ends(z) != end || !sets_.fits(s, t)) continue;
          strings.push_back(s);
          hits.feature.push_back(static_cast<int32_t>(k));
          if (data_.values) hits.value.push_back(data_.values[e]);
          if (!always_[z]) fired[t].push_back(s);
        }
      }
      hits.offsets.push_back(static_cast<int64_t>(hits.feature.size()));
    }
    std::vector<PatternSets::Extras> extras = sets_.extras(T, std::move(fired));
    for (int64_t t = 0; t < positions(b); ++t)
      for (int64_t h = hits.offsets[first + t]; h < hits.offsets[first + t + 1]; ++h)
        hits.node.push_back(sets_.node(extras[t], t, T, strings[h - static_cast<int64_t>(begin)]));
    return extras;
  }

  void place_all() {
    std::vector<int32_t> links;
    for (int64_t b = 0; b < data_.sequences; ++b) {
      const std::vector<PatternSets::Extras> extras = place(b, hits_);
      for (int64_t t = 0; t <= length(b); ++t) {
        position_set_.push_back(-1);
        if (t >= positions(b)) continue;
        sets_.links(extras, t, length(b), links);
        position_set_.back() = local_.add(base(b, t), extras[t], links);
      }
    }
    local_.finish();
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
            for (int64_t k = f.rows[id + 1] - 1; k >= f.rows[id] && f.column[k] >= m_.labels; --k)
              if (matched[f.column[k]]) observed_[f.base + k] += weight(b) * (data_.values ? data_.values[e] : 1.0);
          }
        for (const int32_t z : list) matched[z] = 0;
      }
    }
  }

  // ---- scores ----

  // what all sequences share; false: some W is too large
  bool prepare(const double* w) {
    table_.resize(static_cast<size_t>(split_ ? split_->size() : 0));
    if (split_) split_->expand(w, table_.data());
    bool fits = matrix_.compute(w, kMostWeight);
    coefficients_.resize(static_cast<size_t>(sets_.count()));
    std::vector<double> own;
    for (int64_t i = 0; i < sets_.count(); ++i) {
      const PatternSet& s = sets_.set(i);
      own.assign(static_cast<size_t>(s.view().nodes), 0.0);
      for (int32_t n = s.view().roots; n < s.view().nodes; ++n) own[n] = bias(s, n, w);
      coefficients_[i].compute(s.view(), own.data());
      fits = fits && coefficients_[i].fits();
    }
    return fits;
  }
  // weight of a base node's always-on feature
  double bias(const PatternSet& s, int32_t n, const double* w) const {
    const int32_t z = s.pattern(n);
    return z >= 0 && m_.bias[z] >= 0 ? w[m_.bias[z]] : 0.0;
  }

  // k.weight (nodes,) = W of a position whose hits are those of a slot; k.changed: base nodes where it is not the base's
  void local_weights(Worker& k, const LocalPatternsView& p, int32_t base, const Hits& hits, int64_t slot,
                     const double* w) const {
    const PatternSetView& v = *p.base;
    const PatternSet& set = sets_.set(base);
    const double* features = w + m_.parts[kStart].base;
    k.weight.resize(static_cast<size_t>(p.nodes));
    if (static_cast<int32_t>(k.added.size()) < v.nodes) k.added.resize(static_cast<size_t>(v.nodes), 0.0);  // zeros
    k.changed.clear();
    std::copy_n(coefficients_[base].sums(), v.nodes, k.weight.data());
    std::fill(k.weight.begin() + v.nodes, k.weight.end(), 0.0);
    for (int64_t h = hits.offsets[slot]; h < hits.offsets[slot + 1]; ++h) {
      const int32_t n = hits.node[h];
      const double x = features[hits.feature[h]] * (hits.value.empty() ? 1.0 : hits.value[h]);
      if (n < v.nodes)
        k.added[n] += x, k.changed.push_back(n);
      else
        k.weight[n] += x;
    }
    for (size_t i = 0; i < k.changed.size(); ++i)
      for (int32_t n = v.children[k.changed[i]]; n < v.children[k.changed[i] + 1]; ++n) k.changed.push_back(n);
    std::sort(k.changed.begin(), k.changed.end());
    k.changed.erase(std::unique(k.changed.begin(), k.changed.end()), k.changed.end());
    for (const int32_t n : k.changed) k.weight[n] = k.weight[v.suffix[n]] + bias(set, n, w) + k.added[n];
    for (int32_t i = 0, n = v.nodes; n < p.nodes; ++i, ++n)
      k.weight[n] += i < p.pairs ? matrix_.sum(p.prefix[i] - 1, p.suffix[i]) : k.weight[p.suffix[i]];
    for (const int32_t n : k.changed) k.added[n] = 0.0;
  }

  // B of a position and LocalView::under; false: some W is too large
  bool local_coefficients(Worker& k, const LocalPatternsView& p, int32_t base, const double* w, int64_t slot,
                          double* b, double* under) const {
    local_weights(k, p, base, hits_, slot, w);
    const int32_t N = p.base->nodes;
    std::copy_n(coefficients_[base].view().b, N, b);
    const size_t count = k.changed.size();
    k.few.resize(count);
    for (size_t i = 0; i < count; ++i) k.few[i] = k.weight[k.changed[i]];
    double top = 0.0;
    for (const double x : k.few) top = std::max(top, x);
    for (int32_t n = N; n < p.nodes; ++n) top = std::max(top, k.weight[n]);
    kernels().exp_array(k.few.data(), static_cast<int64_t>(count), k.few.data());
    for (size_t i = 0; i < count; ++i) b[k.changed[i]] = k.few[i];
    kernels().exp_array(k.weight.data() + N, p.nodes - N, b + N);
    for (int32_t i = 0; i < p.pairs; ++i) under[i] = matrix_.weight(p.prefix[i] - 1, p.suffix[i]);
    for (int32_t i = p.pairs; i < p.nodes - N; ++i) under[i] = b[p.suffix[i]];
    return top <= kMostWeight;
  }

  bool decode_one(Worker& k, int64_t b, const double* w, bool known, int32_t* labels) const {
    const int64_t N = positions(b), L = m_.labels;
    if (k.scores.empty()) k.scores.resize(1);
    label_scores(b, w, k.scores[0]);
    k.best.start(sets_.strings().any_bos() ? 2 : 1);
    k.hits = Hits();
    std::vector<PatternSets::Extras> extras;
    if (!shared_) extras = place(b, k.hits);
    const double end = 0.0;
    for (int64_t t = 0; t < N; ++t) {
      double* row = k.scores[0].data() + t * stride();
      if (known && t < length(b))
        for (int64_t y = 0; y < L; ++y)
          if (!target_.allowed[(data_.offsets[b] + t) * L + y]) row[y] = kMinusInfinity;
      const double* scores = t < length(b) ? row : &end;
      const PatternSetView& v = sets_.set(base(b, t)).view();
      if (shared_) {
        k.best.step({v.nodes, v.roots, v.states, v.suffix, v.prefix, v.label, v.node_state, v.state_node}, scores,
                    coefficients_[base(b, t)].sums());
        continue;
      }
      sets_.links(extras, t, length(b), k.links);
      const LocalPatternsView p = LocalSets::view(sets_, base(b, t), extras[t], k.links.data());
      local_weights(k, p, base(b, t), k.hits, t, w);
      const BestLabelling::Patterns all = merged(k, p);
      k.best.step(all, scores, k.weight.data());
    }
    return k.best.finish(length(b), labels);
  }

  // base, extras and the other pairs of the matrix as one
  BestLabelling::Patterns merged(Worker& k, const LocalPatternsView& p) const {
    const PatternSetView& v = *p.base;
    const auto join = [](std::vector<int32_t>& out, const int32_t* first, int32_t n, const int32_t* last, int32_t all) {
      out.assign(first, first + n);
      out.insert(out.end(), last, last + (all - n));
    };
    join(k.suffix, v.suffix, v.nodes, p.suffix, p.nodes);
    join(k.prefix, v.prefix, v.nodes, p.prefix, p.nodes);
    join(k.state_node, v.state_node, v.states, p.state_node, p.states);
    if (p.dense) {
      k.apart.assign(static_cast<size_t>(m_.labels * m_.labels), 0);
      for (int32_t i = 0; i < p.pairs; ++i) k.apart[(p.prefix[i] - 1) * m_.labels + p.suffix[i]] = 1;
      for (const PairMatrix::Pair& pair : matrix_.pairs()) {
        if (k.apart[pair.from * m_.labels + pair.to]) continue;
        k.suffix.push_back(pair.to);
        k.prefix.push_back(1 + pair.from);
        k.weight.push_back(matrix_.sum(pair.from, pair.to));
      }
    }
    const int32_t nodes = static_cast<int32_t>(k.suffix.size());
    k.label.assign(v.label, v.label + v.nodes);
    for (int32_t n = v.nodes; n < nodes; ++n) k.label.push_back(k.label[k.suffix[n]]);
    k.node_state.assign(static_cast<size_t>(nodes), p.states);
    for (int32_t i = 1; i < p.states; ++i) k.node_state[k.state_node[i]] = i;
    return {nodes,           v.roots,        p.states,           k.suffix.data(),
            k.prefix.data(), k.label.data(), k.node_state.data(), k.state_node.data()};
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
        kernels().sum_rows(table_.data(), stride, split_->wide(first + t), split_->wide_count(first + t), row);
      }
      each_narrow(first + t, [&](int64_t k, double value) { row[f.column[k]] += value * w[f.base + k]; });
    }
  }

  // use(feature, value) for the features of a token on single labels that are not in rows
  template <class Use>
  void each_narrow(int64_t token, const Use& use) const {
    const FeatureRows& f = m_.parts[kStart];
    if (split_) {
      split_->each_other(token, [](int64_t) {}, [&](int64_t k, int64_t, double value) { use(k, value); });
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
    if (split_)
      kernels().add_to_rows(out + m_.weights, nullptr, stride(), split_->wide(token), split_->wide_count(token), row, 1.0);
    each_narrow(token, [&](int64_t k, double value) { out[f.base + k] += value * row[f.column[k]]; });
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
    if (!shared_ || sets_.has_end()) {
      k.base_sums.assign(static_cast<size_t>(sets_.count()), {});
      k.pair_sums.assign(static_cast<size_t>(matrix_.size()), 0.0);
      k.beyond.assign(static_cast<size_t>(matrix_.size()), 0.0);
      for (const Job& job : jobs) alone(k, job, w, fits, fallback, out, loss);
      for (int64_t i = 0; i < sets_.count(); ++i)
        for (int32_t n = sets_.set(i).view().roots; n < static_cast<int32_t>(k.base_sums[i].size()); ++n) {
          const int32_t z = sets_.set(i).pattern(n);
          if (z >= 0 && m_.bias[z] >= 0) out[m_.bias[z]] += k.base_sums[i][n];
        }
      matrix_.fold(k.pair_sums.data(), k.beyond.data(), out);
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
                 double* to, double& shift) const {
    const int64_t L = m_.labels, T = length(job.b);
    shift = 0.0;
    k.row.resize(static_cast<size_t>(L));
    for (int64_t t = 0; t < T; ++t) {
      const uint8_t* allowed = job.known ? target_.allowed + (data_.offsets[job.b] + t) * L : nullptr;
      const double top = exponentiate_row(scores.data() + t * stride(), L, allowed, k.row.data());
      if (!(top > kMinusInfinity)) return false;
      shift += top;
      double* u = to + t * L * width + lane;
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
    LocalTables& x = k.alone;
    x.sets.clear();
    for (int64_t t = 0; t < N; ++t) x.sets.push_back(local(b, t));
    x.layout(L, sets_.strings().any_bos(), matrix_.view());
    for (int64_t t = 0; t < N && fits; ++t) {
      if (shared_)
        x.b[t] = coefficients_[base(b, t)].view().b;
      else
        fits = local_coefficients(k, x.sets[t], base(b, t), w, slot(b, t), x.own[t], x.under[t]);
    }
    double shift = 0.0;
    if (N > length(b)) std::fill_n(x.u + length(b) * L, L, 1.0);
    fits = fits && fill_lane(k, job, k.scores[0], 0, 1, x.u, shift) && x.run();
    const double factor = this->factor(job);
    loss += factor * (fits ? x.work.log_z + shift : fallback(b, job.known, factor, out));
    if (fits) {
      for (int64_t i = 0; i < length(b) * L; ++i) x.posterior[i] *= factor;
      double* features = out + m_.parts[kStart].base;
      const int64_t stride = matrix_.view().stride;
      for (int64_t i = 0; i < N * stride; ++i) x.work.to[i] *= factor;
      if (stride) kernels().outer_sum(x.work.from, x.work.to, N, L, stride, k.pair_sums.data());
      for (int64_t t = 0; t < N; ++t) {
        const LocalPatternsView& p = x.sets[t];
        if (p.base->nodes > p.base->roots) {
          std::vector<double>& sum = k.base_sums[base(b, t)];
          sum.resize(static_cast<size_t>(p.base->nodes), 0.0);
          kernels().add_scaled(sum.data(), x.patterns[t], factor, static_cast<int64_t>(sum.size()));
        }
        if (shared_) continue;
        for (int32_t i = 0; i < p.pairs; ++i)
          k.beyond[matrix_.place(p.prefix[i] - 1, p.suffix[i])] += factor * x.patterns[t][p.nodes + i];
        for (int64_t h = hits_.offsets[slot(b, t)]; h < hits_.offsets[slot(b, t) + 1]; ++h)
          features[hits_.feature[h]] += factor * (hits_.value.empty() ? 1.0 : hits_.value[h]) * x.patterns[t][hits_.node[h]];
      }
    }
    finish(k, job, k.scores[0], fits ? x.posterior : nullptr, 1, out, loss);
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
      const int32_t i = sets_.base(t, T);
      x.sets[t] = &sets_.set(i).view();
      x.coefficients[t] = &coefficients_[i].view();
      k.sums_at[t] = &k.sum_views[i];
      k.used[i] = 1;
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
        refused[i] = refused[i] || !fits || !fill_lane(k, jobs[i], k.scores[i], static_cast<int64_t>(i), kWidth, x.u, shift[i]);
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
      kernels().sum_difference_forward(x.view, x.work);
      if (careful) {
        kernels().sum_difference_backward(x.view, x.work, false, nullptr, nullptr);
        if (!guard()) {
          fill();
          kernels().sum_difference_forward(x.view, x.work);
        }
      }
      kernels().sum_difference_backward(x.view, x.work, true, x.posterior, k.sums_at.data());
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

  const FlatModelView m_;
  const DataView data_;
  const FlatTargetView target_;
  const PatternAutomaton& net_;
  const bool shared_;  // e^W is the same at all positions of a set
  PairMatrix matrix_;
  const std::vector<uint8_t> always_;  // (patterns,) in the base, without the matrix
  const PatternSets sets_;
  // not shared: sets of positions and their hits, by slot
  LocalSets local_;
  std::vector<int32_t> position_set_;
  Hits hits_;
  std::unique_ptr<SplitFeatures> split_;
  std::vector<int64_t> stop_;      // (attributes,) end of their features on single labels, unless split_ has it
  std::vector<double> observed_;   // (weights,)
  std::vector<Coefficients> coefficients_;  // by base set
  std::vector<double> table_;
  std::vector<std::vector<double>> buffers_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<uint8_t> careful_;  // by chunk
  std::atomic<int64_t> refused_{0};
};

}  // namespace scansion
