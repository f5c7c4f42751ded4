// Attributes of tokens times weights of features (attribute, column), and back. What a token has is a list of entries:
// an attribute and a value; which features exist is a list of columns for each attribute, ascending.
#pragma once

#include <algorithm>
#include <cstdint>

#include "parallel.hpp"

namespace scansion {

struct FeatureTable {
  const int64_t* rows;     // (A + 1,) features of attribute a: rows[a] .. rows[a + 1]
  const int32_t* columns;  // (features,)
  int64_t width;           // number of columns
};

// out (tokens, width) = sum over the entries e of each token of value[e] * weight[f], at the columns of ids[e]'s
// features. token_offsets (tokens + 1,); ids, values (entries,), values null: all 1.
inline void token_scores(int64_t tokens, const int64_t* token_offsets, const int32_t* ids, const double* values,
                         const FeatureTable& table, const double* weights, double* out, int64_t threads) {
  const Chunks chunks(tokens, 64);
  parallel_for(chunks.chunks, threads, [&](int64_t chunk, int64_t) {
    for (int64_t t = chunks.begin(chunk); t < chunks.end(chunk); ++t) {
      double* row = out + t * table.width;
      std::fill(row, row + table.width, 0.0);
      for (int64_t e = token_offsets[t]; e < token_offsets[t + 1]; ++e) {
        const double value = values ? values[e] : 1.0;
        for (int64_t f = table.rows[ids[e]]; f < table.rows[ids[e] + 1]; ++f)
          row[table.columns[f]] += value * weights[f];
      }
    }
  });
}

// out (features,) = sum over the entries of the features' attributes of value * counts[token, column]. The entries by
// attribute: offsets (attributes + 1,); tokens, values (entries,), values null: all 1. Every sum is in the order of the
// entries, whatever the number of threads.
inline void token_counts(int64_t attributes, const int64_t* offsets, const int64_t* tokens, const double* values,
                         const FeatureTable& table, const double* counts, double* out, int64_t threads) {
  const Chunks chunks(attributes, 256);
  parallel_for(chunks.chunks, threads, [&](int64_t chunk, int64_t) {
    for (int64_t a = chunks.begin(chunk); a < chunks.end(chunk); ++a) {
      const int64_t first = table.rows[a], last = table.rows[a + 1];
      std::fill(out + first, out + last, 0.0);
      if (first == last) continue;
      for (int64_t e = offsets[a]; e < offsets[a + 1]; ++e) {
        const double* row = counts + tokens[e] * table.width;
        const double value = values ? values[e] : 1.0;
        for (int64_t f = first; f < last; ++f) out[f] += value * row[table.columns[f]];
      }
    }
  });
}

}  // namespace scansion
