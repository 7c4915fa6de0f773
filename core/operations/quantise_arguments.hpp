#pragma once

#include "core/attention/quantiser.hpp"
#include "core/operations/quantise.hpp"
#include "core/run/arguments.hpp"

namespace attest {

/// Arguments of a launch of a quantiser, with the tensors by name. X holds the problem's
/// element_type; codes are bytes, of 4 bits two each; scales are contiguous, and null where there
/// are none.
struct QuantiseArguments {
  Problem problem;
  const void* x = nullptr;
  std::uint8_t* codes = nullptr;
  void* scales = nullptr;  ///< in the problem's scale_format
  Strides x_strides, code_strides;
  std::int64_t scale_rows = 0;            ///< of a head's scales
  std::int64_t scale_columns = 0;         ///< 0: there are none
  const std::int32_t* starts = nullptr;   ///< [batch + 1] of packed entries; null: none are
  const std::int32_t* lengths = nullptr;  ///< [batch]; null: entries end where the next begin
  float* workspace = nullptr;

  /// Names the tensors of `all`. Implicit: a kernel's launch function takes these where
  /// KernelInfo::launch hands over Arguments.
  QuantiseArguments(const Arguments& all)
      : problem(all.problem),
        x(all[quantising::x].data),
        codes(static_cast<std::uint8_t*>(all[quantising::codes].data)),
        x_strides(all[quantising::x].strides),
        code_strides(all[quantising::codes].strides),
        starts(all.key_starts),
        lengths(all.key_lengths),
        workspace(static_cast<float*>(all.workspace)) {
    const Shape shape = scales_shape(key_shape(problem), problem.codes.k_scales);
    scale_rows = shape[2];
    scale_columns = shape[3];
    if (scale_columns > 0) scales = all[quantising::scales].data;
  }

  /// First row of an entry among those of X and of the codes, and how many it has.
  [[nodiscard]] ATTEST_HOST_DEVICE std::int64_t first_row(std::int64_t entry) const {
    return starts == nullptr ? 0 : starts[entry];
  }
  [[nodiscard]] ATTEST_HOST_DEVICE std::int64_t rows_of(std::int64_t entry) const {
    if (starts == nullptr) return problem.key_len;
    return lengths == nullptr ? starts[entry + 1] - starts[entry] : lengths[entry];
  }
  /// Entry whose strides apply: packed entries are one.
  [[nodiscard]] ATTEST_HOST_DEVICE std::int64_t stored_entry(std::int64_t entry) const {
    return starts == nullptr ? entry : 0;
  }
  /// The first of a head's scales, [scale_rows, scale_columns], among all.
  [[nodiscard]] ATTEST_HOST_DEVICE std::int64_t first_scale(std::int64_t entry,
                                                            std::int64_t head) const {
    return (entry * problem.kv_heads + head) * scale_rows * scale_columns;
  }
  /// A head's scales of fp32.
  [[nodiscard]] ATTEST_HOST_DEVICE float* scales_of(std::int64_t entry, std::int64_t head) const {
    return static_cast<float*>(scales) + first_scale(entry, head);
  }
};

}  // namespace attest
