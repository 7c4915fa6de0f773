#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/records/case.hpp"
#include "core/records/record.hpp"
#include "core/run/kernel.hpp"
#include "cpu_reference/tensor_errors.hpp"
#include "verify/cases/key_order.hpp"
#include "verify/judge/error_study.hpp"

namespace attest {

/// Errors of a kernel, or of outputs in a file, in one precision on one kind of inputs.
struct ErrorsRow {
  std::string name;      ///< of a kernel, or of whoever made the outputs in a file
  std::string executor;  ///< or `file`
  Case the_case{};       ///< of the first data set
  std::int64_t sets = 1;
  const KernelInfo* kernel = nullptr;  ///< nullptr: outputs from a file
  KeyOrder key_order = KeyOrder::drawn;
  Truth truth = Truth::given;           ///< see ErrorStudyOptions
  bool smooths_keys = false;            ///< see ErrorStudyOptions
  std::string made_by{};                ///< what a file says about its outputs
  std::string left_out{};               ///< why nothing was measured
  std::vector<OutputErrors> outputs{};  ///< empty: it was left out
  std::int64_t certified_rows = 0;      ///< of the reference, by the oracle
};

/// True if an element is further from the exact answer than its bound allows. False where there is
/// no bound, or none that is finite: nothing was proven there.
[[nodiscard]] bool is_beyond_bound(const ErrorProfile& profile);
/// True if any output of the row is beyond its bound.
[[nodiscard]] bool is_beyond_bound(const ErrorsRow& row);

/// A record of each output, with the verdict `failed` where it is beyond its bound; one of each
/// part, with the label `by`; one of kind `error_map` where there is a map. `device` ran the
/// kernel; empty: none did here.
[[nodiscard]] std::vector<Record> records_of(const ErrorsRow& row, const std::string& device);

/// Runs the row's kernel on its data sets and fills in the errors of its outputs. `seed` orders the
/// blocks of an executor. Throws what study_errors throws.
void measure(ErrorsRow& row, Device& device, std::uint64_t seed, const ErrorDetail& detail);

/// A table for each problem and kind of inputs; parts are in the records alone.
[[nodiscard]] std::string errors_table(const std::vector<ErrorsRow>& rows);

}  // namespace attest
