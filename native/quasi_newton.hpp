// The vectors of L-BFGS: products and combinations of long rows, on several threads. Sums go through pieces of a fixed
// size that are added up in order, so that results do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels.hpp"
#include "parallel.hpp"

namespace scansion {

constexpr int64_t kPiece = 2048;        // doubles: a piece of three vectors stays in the first-level cache
constexpr int64_t kPiecesPerTask = 16;  // what a thread takes at once

// body(begin, end, piece) for every piece of 0..n-1
template <class Body>
void for_pieces(int64_t n, int64_t threads, const Body& body) {
  const int64_t pieces = (n + kPiece - 1) / kPiece;
  const int64_t tasks = (pieces + kPiecesPerTask - 1) / kPiecesPerTask;
  parallel_for(tasks, threads, [&](int64_t task, int64_t) {
    const int64_t stop = std::min(pieces, (task + 1) * kPiecesPerTask);
    for (int64_t p = task * kPiecesPerTask; p < stop; ++p) body(p * kPiece, std::min(n, (p + 1) * kPiece), p);
  });
}

// Sums of `width` products, one row of partial sums for each piece.
class PieceSums {
 public:
  PieceSums(int64_t n, int64_t width) : width_(width), sums_((n + kPiece - 1) / kPiece * width) {}
  double* piece(int64_t p) { return sums_.data() + p * width_; }
  std::vector<double> total() const {
    std::vector<double> out(width_);
    for (size_t i = 0; i < sums_.size(); ++i) out[i % width_] += sums_[i];
    return out;
  }

 private:
  int64_t width_;
  std::vector<double> sums_;
};

inline double dot(const double* a, const double* b, int64_t n, int64_t threads) {
  PieceSums sums(n, 1);
  for_pieces(n, threads, [&](int64_t begin, int64_t end, int64_t p) {
    *sums.piece(p) = kernels().dot(a + begin, b + begin, end - begin);
  });
  return sums.total()[0];
}

// y += factor x; returns x.x
inline double add_scaled_and_square(double* y, const double* x, double factor, int64_t n, int64_t threads) {
  PieceSums sums(n, 1);
  for_pieces(n, threads, [&](int64_t begin, int64_t end, int64_t p) {
    kernels().add_scaled(y + begin, x + begin, factor, end - begin);
    *sums.piece(p) = kernels().dot(x + begin, x + begin, end - begin);
  });
  return sums.total()[0];
}

// s = w_new - w_old and y = g_new - g_old, two of the `count` rows of pairs (., n); then, with v a vector, the
// products {s.s, row_0.y, row_0.v, row_1.y, ...}, all in one pass.
inline std::vector<double> remember_pair(double* pairs, int64_t n, int64_t count, int64_t s, int64_t y,
                                         const double* w_old, const double* w_new, const double* g_old,
                                         const double* g_new, const double* v, int64_t threads) {
  const Kernels& k = kernels();
  PieceSums sums(n, 1 + 2 * count);
  for_pieces(n, threads, [&](int64_t begin, int64_t end, int64_t p) {
    const int64_t size = end - begin;
    double *s_row = pairs + s * n + begin, *y_row = pairs + y * n + begin, *out = sums.piece(p);
    k.subtract(w_new + begin, w_old + begin, size, s_row);
    k.subtract(g_new + begin, g_old + begin, size, y_row);
    out[0] = k.dot(s_row, s_row, size);
    for (int64_t i = 0; i < count; ++i) {
      const double* row = pairs + i * n + begin;
      out[1 + 2 * i] = k.dot(row, y_row, size);
      out[2 + 2 * i] = k.dot(row, v + begin, size);
    }
  });
  return sums.total();
}

// out (n,) = sum_i weight[i] * row i of pairs - factor * v; returns v.out
inline double combine_pairs(const double* pairs, int64_t n, const double* weight, int64_t count, const double* v,
                            double factor, double* out, int64_t threads) {
  const Kernels& k = kernels();
  PieceSums sums(n, 1);
  for_pieces(n, threads, [&](int64_t begin, int64_t end, int64_t p) {
    const int64_t size = end - begin;
    std::fill(out + begin, out + end, 0.0);
    for (int64_t i = 0; i < count; ++i) k.add_scaled(out + begin, pairs + i * n + begin, weight[i], size);
    k.add_scaled(out + begin, v + begin, -factor, size);
    *sums.piece(p) = k.dot(out + begin, v + begin, size);
  });
  return sums.total()[0];
}

}  // namespace scansion
