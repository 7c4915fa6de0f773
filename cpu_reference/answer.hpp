#pragma once

#include <cstdint>

#include "core/attention/tensor_list.hpp"

namespace attest {

/// The exact values of one output, in double, with what is known about their errors. The three
/// tensors have the output's shape.
struct OutputAnswer {
  Tensor<double> value;
  /// |kernel - value| is at most this for a correct kernel of the given roundings; own_error is
  /// included. +infinity: nothing can be proven (an intermediate can overflow). NaN where value is.
  Tensor<double> bound;
  Tensor<double> own_error;  ///< |exact - value| is at most this
};

/// One a output of the operation.
using Answer = IndexedList<OutputAnswer, OutputIndex>;

/// Comparison of sampled rows with an oracle.
struct Certificate {
  std::int64_t rows = 0;  ///< rows compared; fewer than asked for only when the problem has none
  /// Worst |value - oracle| / own_error of any output; infinity when one of them is NaN and the
  /// other not.
  double worst_ratio = 0;

  /// True only if every sampled value lies within its own-error estimate.
  [[nodiscard]] bool holds() const { return worst_ratio <= 1; }
};

}  // namespace attest
