#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/case.hpp"
#include "core/kernel.hpp"
#include "core/record.hpp"
#include "verify/error_study.hpp"

namespace attest {

/// One kernel in one precision on one kind of inputs.
struct ErrorsRow {
  const KernelInfo* kernel = nullptr;
  Case the_case;  ///< of the first data set
  std::int64_t sets = 1;
  std::string left_out{};             ///< why nothing was measured
  std::optional<ErrorStudy> study{};  ///< otherwise
};

/// Two records, of O and of LSE.
[[nodiscard]] std::vector<Record> records_of(const ErrorsRow& row, const std::string& device);

/// A table for each problem and kind of inputs.
void print_errors(const std::vector<ErrorsRow>& rows);

}  // namespace attest
