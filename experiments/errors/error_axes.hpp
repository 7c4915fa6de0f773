#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/run/device.hpp"
#include "core/run/kernel.hpp"
#include "experiments/errors/error_rows.hpp"

namespace attest {

/// Defaults of `attest errors` for an operation, where the user names nothing.
struct ErrorsDefaults {
  const Operation* operation;
  std::string kernels;  ///< a glob
  std::vector<std::string> problems;
  std::vector<std::string> families;  ///< NAME or NAME:MAGNITUDE
};
/// The first is forward.
[[nodiscard]] const std::vector<ErrorsDefaults>& all_errors_defaults();
/// Defaults of an operation. Throws InvalidInput listing the operations whose errors are measured.
[[nodiscard]] const ErrorsDefaults& errors_defaults(const Operation& operation);

/// Axes of `attest errors`. Every text may hold lists in braces; every combination is measured.
struct ErrorsAxes {
  const Operation* operation = &forward_operation;  ///< that all problems ask for
  // Empty: errors_defaults().
  std::vector<std::string> problems{};
  std::vector<std::string> families{};  ///< NAME or NAME:MAGNITUDE
  std::vector<std::string> plans{};     ///< empty: each kernel's default
  std::vector<std::string> layouts{};   ///< asked_paging(); empty: each kernel's default_paging()
  std::vector<std::string> key_orders{"drawn"};
  Truth truth = Truth::given;  ///< otherwise of kernels of 16 bits or of codes alone
  bool smooths_keys = false;   ///< see ErrorStudyOptions
  std::int64_t sets = 4;
  std::uint64_t seed = 0;
  /// Families that a seed does not change: one set, unless it draws other inputs of the operation.
  std::vector<std::string> fixed_families{};
};

/// The operation that the problems of these texts ask for, forward without any. Throws InvalidInput
/// where they ask for several.
[[nodiscard]] const Operation& operation_of(const std::vector<std::string>& problems);

/// One device an executor, made when it is first needed.
class Devices {
 public:
  Device& of(const KernelInfo& kernel);

 private:
  std::map<Executor, std::unique_ptr<Device>> devices_;
};

/// The rows to measure, in the order of the table; `left_out` says why one cannot be. Throws
/// InvalidInput for a text that names nothing, and when no row is left.
[[nodiscard]] std::vector<ErrorsRow> rows_of(const ErrorsAxes& axes,
                                             const std::vector<const KernelInfo*>& kernels,
                                             Devices& devices);

}  // namespace attest
