#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/attention/tensor.hpp"
#include "cpu_reference/forward/error_paths.hpp"
#include "cpu_reference/forward/kept_keys.hpp"

// What the model of errors needs of the inputs: K and V of one head, without hidden keys.
namespace attest::error_model {

/// K and V of one head and their squares, without the keys that padding hides.
struct Head {
  KeptKeys kept;  ///< key of every row of the matrices
  Matrix k, k2, v, v2;
  Matrix k_by_dim;       ///< K transposed
  double largest_v = 0;  ///< max |v|
};

inline Matrix copy_of(const Tensor<float>& tensor, std::int64_t b, std::int64_t h,
                      const KeptKeys& rows) {
  Matrix copy(rows.size(), tensor.shape()[3]);
  float* to = copy.data();
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    to = std::ranges::copy(tensor.row(b, h, rows[i]), to).out;
  }
  return copy;
}

}  // namespace attest::error_model
