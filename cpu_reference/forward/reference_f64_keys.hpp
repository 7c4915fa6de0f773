#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/attention/problem.hpp"
#include "core/attention/tensor_list.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/forward/kept_keys.hpp"

// What the f64 reference holds of keys and values.
namespace attest::reference_f64 {

/// Keys and values of one kv head in double, those that padding hides left out. Elements that are
/// not finite are replaced by 0, so that a row that does not see them never meets them in 0 * NaN;
/// the keys that hold one are kept.
struct KeyValues {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  KeptKeys kept;  ///< key of every row of the matrices
  Matrix k, abs_k, v, abs_v;
  std::vector<std::int64_t> bad_keys;                 ///< rows of k, ascending
  std::vector<std::vector<std::int64_t>> bad_values;  ///< rows of v, ascending, by column
};

/// True if an ascending list has an element in the range.
inline bool has_any(const std::vector<std::int64_t>& list, KeyRange range) {
  const auto at = std::ranges::lower_bound(list, range.begin);
  return at != list.end() && *at < range.end;
}

/// Copies [count, columns] of a head, row i being row_of(i), zeroing what is not finite;
/// `on_bad(i, column)` is told.
template <class T, class RowOf, class OnBad>
KeyValues::Matrix finite_copy(const Tensor<T>& tensor, std::int64_t b, std::int64_t h,
                              std::int64_t count, RowOf row_of, OnBad on_bad) {
  KeyValues::Matrix copy(count, tensor.shape()[3]);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto row = tensor.row(b, h, row_of(i));
    for (std::size_t c = 0; c < row.size(); ++c) {
      const auto column = static_cast<std::int64_t>(c);
      copy(i, column) = static_cast<double>(row[c]);
      if (std::isfinite(row[c])) continue;
      copy(i, column) = 0;
      on_bad(i, column);
    }
  }
  return copy;
}

template <class Tensors>
KeyValues load_keys_and_values(const Problem& problem, const Tensors& inputs, std::int64_t b,
                               std::int64_t kv_head) {
  KeyValues kv;
  kv.kept = KeptKeys(problem, b);
  const std::int64_t keys = kv.kept.size();
  const auto key_of = [&](std::int64_t i) { return kv.kept[i]; };
  kv.bad_values.resize(static_cast<std::size_t>(problem.output_dim()));
  kv.k =
      finite_copy(inputs[forward::k], b, kv_head, keys, key_of, [&](std::int64_t j, std::int64_t) {
        if (kv.bad_keys.empty() || kv.bad_keys.back() != j) kv.bad_keys.push_back(j);
      });
  kv.v = finite_copy(inputs[forward::v], b, kv_head, keys, key_of,
                     [&](std::int64_t j, std::int64_t c) {
                       kv.bad_values[static_cast<std::size_t>(c)].push_back(j);
                     });
  kv.abs_k = kv.k.cwiseAbs();
  kv.abs_v = kv.v.cwiseAbs();
  return kv;
}

/// Column statistics of the values that a row sees. Cheap where a row sees what the row before saw
/// and more.
class VisibleValues {
 public:
  explicit VisibleValues(const KeyValues& kv)
      : kv_(kv), lowest_(kv.v.cols()), highest_(kv.v.cols()), abs_sum_(kv.v.cols()) {
    clear();
  }
  void move_to(KeyRange rows) {
    if (rows.begin != seen_.begin || rows.end < seen_.end) {
      clear();
      seen_ = {rows.begin, rows.begin};
    }
    for (; seen_.end < rows.end; ++seen_.end) {
      lowest_ = lowest_.min(kv_.v.row(seen_.end).array());
      highest_ = highest_.max(kv_.v.row(seen_.end).array());
      abs_sum_ += kv_.abs_v.row(seen_.end).array();
    }
  }
  [[nodiscard]] double abs_sum(std::int64_t c) const { return abs_sum_(c); }
  [[nodiscard]] double abs_max(std::int64_t c) const {
    return std::max(std::abs(lowest_(c)), std::abs(highest_(c)));
  }
  /// max_j |v_j - o|
  [[nodiscard]] double largest_distance(std::int64_t c, double o) const {
    return std::max(highest_(c) - o, o - lowest_(c));
  }

 private:
  using Columns = Eigen::Array<double, 1, Eigen::Dynamic>;
  void clear() {
    lowest_.setConstant(std::numeric_limits<double>::infinity());
    highest_.setConstant(-std::numeric_limits<double>::infinity());
    abs_sum_.setZero();
  }
  const KeyValues& kv_;
  KeyRange seen_;
  Columns lowest_, highest_, abs_sum_;
};

}  // namespace attest::reference_f64
