#pragma once

#include <cstdint>
#include <optional>

#include "core/records/case.hpp"
#include "core/run/device.hpp"
#include "core/run/kernel.hpp"
#include "cpu_reference/tensor_errors.hpp"
#include "verify/cases/key_order.hpp"

namespace attest {

/// How large the errors of one output are.
struct OutputErrors {
  std::string label;  ///< `O`
  TensorErrors errors;
};

/// How large the errors of a kernel are on data sets of one kind, all outputs alike.
struct ErrorStudy {
  /// Errors of the outputs that the kernel gives, over all data sets together: the batch axis of
  /// `largest_at` counts through them, set s holding the entries from s * batch on.
  std::vector<OutputErrors> outputs;
  std::int64_t certified_rows = 0;  ///< rows of the reference that the oracle computed again
};

/// What a study may do beside measuring outputs as wholes.
struct ErrorStudyOptions {
  KeyOrder key_order = KeyOrder::drawn;
  ErrorDetail detail{};  ///< a map is made of the first output alone
  /// The exact answer is that of the inputs before they were rounded to the element type: what a
  /// user who starts from fp32 gets. No bound then: none holds for inputs that a kernel did not
  /// see.
  bool of_unrounded_inputs = false;
};

/// Runs `c` on `sets` >= 1 data sets with the input seeds c.inputs.seed, c.inputs.seed + 1, ... and
/// compares with the f64 reference, of which one row a set is certified by the oracle. Throws
/// InvalidInput when the family or the order of keys does not fit the problem, KernelFault for a
/// launch that fails or in which the executor saw a defect, std::logic_error if the reference errs
/// more than it says.
[[nodiscard]] ErrorStudy study_errors(const KernelInfo& kernel, const Case& c, std::int64_t sets,
                                      Device& device, const ErrorStudyOptions& options = {});

}  // namespace attest
