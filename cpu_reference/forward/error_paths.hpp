#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>
#include <vector>

// The way of a sum from its first term to its last, term by term. A rounding errs in proportion to
// the partial sum at hand. Terms with a trend carry partial sums far above the last one: sums that
// cancel in the end, a walk's expectation knows nothing of.
namespace attest::error_model {

using Row = Eigen::Array<float, 1, Eigen::Dynamic>;
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using MatrixBlock = Eigen::Ref<const Matrix, 0, Eigen::OuterStride<>>;

/// Partial sums S_1 .. S_n of several sums at once, one a column.
struct PathSums {
  Row squares;  ///< sum of S_j^2
  Row sums;     ///< sum of S_j

  explicit PathSums(std::int64_t columns) : squares(Row::Zero(columns)), sums(Row::Zero(columns)) {}
  void add(const Row& partial) {
    squares += partial.square();
    sums += partial;
  }
  /// Keeps the larger figures of both orders of the terms, without signs: from the last term to the
  /// first the partial sums are S_n - S_j. `last` is S_n, `count` is n.
  void take_larger_order(const Row& last, std::int64_t count) {
    const auto n = static_cast<float>(count);
    const Row backwards = n * last.square() - 2 * last * sums + squares;
    squares = squares.max(backwards);
    sums = sums.abs().max((n * last - sums).abs());
  }
};

/// Scores: partial sums over the head dim of q_d k_jd, a column a key. `keys` is K transposed,
/// [head_dim, keys].
inline PathSums score_paths(const Eigen::Ref<const Row>& query, const MatrixBlock& keys) {
  PathSums paths(keys.cols());
  Row partial = Row::Zero(keys.cols());
  for (std::int64_t d = 0; d < keys.rows(); ++d) {
    partial += query(d) * keys.row(d).array();
    paths.add(partial);
  }
  return paths;
}

/// Order in which a kernel sums the keys of a row.
struct KeyWalk {
  std::int64_t chain = 0;  ///< keys of a sum that is formed apart and then added; 0: one sum of all
  std::int64_t block = 1;  ///< keys between which the maximum may move
  std::int64_t part = 0;   ///< keys of a split; 0: not split
};

/// Sums over keys of p_j v_jc, c a column.
struct ValuePaths {
  PathSums within;  ///< partial sums of each chain
  Row outer;        ///< sum of squares of the running sum where a chain is added to it
  /// Sum, over the blocks at which the maximum rose, of T^2, T = sum of p_j (v_jc - O_c) before:
  /// what an error of that rescale, which those keys share, moves O by.
  Row rescaled;
  double rescaled_mass = 0;  ///< as `rescaled`, T = sum of p_j: what it moves LSE by
  Matrix parts;  ///< sum of p_j (v_jc - O_c) over each split, a row a split; none: not split

  /// `weights` and `scores` are those of the keys, `values` is [keys, columns], `o` the exact sums.
  ValuePaths(const KeyWalk& walk, const Row& weights, const Row& scores, const MatrixBlock& values,
             const Row& o)
      : within(values.cols()), outer(Row::Zero(values.cols())), rescaled(Row::Zero(values.cols())) {
    const std::int64_t keys = values.rows();
    const std::int64_t chain = walk.chain > 0 ? walk.chain : keys;
    if (walk.part > 0) {
      parts = Matrix::Zero((keys + walk.part - 1) / walk.part, values.cols());
    }
    Row partial = Row::Zero(values.cols()), total = partial;
    float mass = 0, maximum = scores(0);
    for (std::int64_t j = 0; j < keys; ++j) {
      if (j > 0 && j % walk.block == 0) {
        const float ahead = scores.segment(j, std::min(walk.block, keys - j)).maxCoeff();
        if (ahead > maximum) {
          rescaled += (total + partial - mass * o).square();
          rescaled_mass += static_cast<double>(mass * mass);
          maximum = ahead;
        }
      }
      partial += weights(j) * values.row(j).array();
      mass += weights(j);
      within.add(partial);
      if (walk.part > 0) {
        parts.row(j / walk.part).array() += weights(j) * (values.row(j).array() - o);
      }
      if ((j + 1) % chain == 0 || j + 1 == keys) {
        total += partial;
        partial.setZero();
        outer += total.square();
      }
    }
    if (chain >= keys) within.take_larger_order(o, keys);
  }
};

}  // namespace attest::error_model
