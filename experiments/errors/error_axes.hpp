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

/// What `attest errors` varies. Every text may hold lists in braces; every combination is measured.
struct ErrorsAxes {
  std::vector<std::string> problems{"b1 h4 n512 d64"};
  std::vector<std::string> families{"normal", "outliers", "real"};  ///< NAME or NAME:MAGNITUDE
  std::vector<std::string> plans{};  ///< empty: each kernel's default
  std::vector<std::string> key_orders{"drawn"};
  bool of_unrounded_inputs = false;  ///< of 16-bit kernels alone
  std::int64_t sets = 4;
  std::uint64_t seed = 0;
  std::vector<std::string> fixed_families{};  ///< those that a seed does not change: one set
};

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
