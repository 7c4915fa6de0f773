#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "cpu_reference/forward/error_profile.hpp"

namespace attest {

/// Along which axis the errors of a tensor are told apart.
enum class ErrorAxis { row, head };
[[nodiscard]] std::string_view name_of(ErrorAxis axis);

/// The errors of rows or heads `first` to `last`, over all of the other axes.
struct ErrorPart {
  ErrorAxis axis = ErrorAxis::row;
  std::int64_t first = 0, last = 0;
  ErrorProfile errors;  ///< `largest_at` counts within the whole tensor
};

/// RMSE of cells of rows times columns, over batch and heads. Cell (i, j) holds the rows
/// [i N / row_cells, (i + 1) N / row_cells) of N, and columns likewise.
struct ErrorMap {
  std::int64_t row_cells = 0, column_cells = 0;
  std::vector<double> rmse;  ///< [row_cells, column_cells]
};

/// Details of a tensor's errors that are asked for beside their profile.
struct ErrorDetail {
  std::vector<ErrorAxis> axes{};
  bool map = false;
};

/// The profile of a tensor, and of its parts.
struct TensorErrors : ErrorProfile {
  std::vector<ErrorPart> parts;  ///< axis by axis, ascending
  std::optional<ErrorMap> map;
};

/// Rows are parted at powers of two: 0, 1, 2-3, 4-7, ..., as the number of keys doubles that a
/// causal mask shows them; heads one by one. A map has at most 32 x 64 cells. Otherwise as
/// error_profile.
[[nodiscard]] TensorErrors tensor_errors(const Tensor<double>& want, const Tensor<float>& got,
                                         ElementType type, const Tensor<double>* bound,
                                         const ErrorDetail& detail);

}  // namespace attest
