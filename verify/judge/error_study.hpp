#pragma once

#include <cstdint>
#include <optional>

#include "core/records/case.hpp"
#include "core/run/device.hpp"
#include "core/run/kernel.hpp"
#include "cpu_reference/tensor_errors.hpp"
#include "verify/cases/key_order.hpp"

namespace attest {

/// Errors of one output.
struct OutputErrors {
  std::string label;  ///< `O`
  TensorErrors errors;
};

/// Errors of a kernel on data sets of one kind, all outputs alike.
struct ErrorStudy {
  /// Errors of the outputs that the kernel gives, over all data sets together: the batch axis of
  /// `largest_at` counts through them, set s holding the entries from s * batch on.
  std::vector<OutputErrors> outputs;
  std::int64_t certified_rows = 0;  ///< rows of the reference that the oracle computed again
};

/// Inputs whose exact answer is the truth.
enum class Truth {
  given,  ///< the inputs as the kernel reads them
  /// The inputs as the kernel reads them, but exact ones where inputs follow from others
  /// (Operation::complete), of which a 16-bit kernel reads rounded ones. A backward pass is held
  /// against the gradient, and what rounding the O that it was given costs counts as its error.
  exact_saved,
  /// The inputs before they were rounded to the element type, or to codes: what a user who starts
  /// from fp32 gets. Inputs that follow from others follow from these.
  unrounded
};

/// Options of a study beside measuring outputs as wholes.
struct ErrorStudyOptions {
  KeyOrder key_order = KeyOrder::drawn;
  ErrorDetail detail{};  ///< maps are made of outputs with columns: not of LSE
  /// Inputs whose exact answer is the truth. With another than `given` there is no bound: none
  /// holds for inputs that a kernel did not see. What is exact is so to half an ulp of fp32.
  Truth truth = Truth::given;
  /// True: K loses the mean of each column of a head before it becomes codes (without_means), and
  /// the kernel's LSE gets Problem's scale times q.mean back, of unrounded q in double. The truth
  /// stays attention of the inputs as they were: only with `unrounded`, and of codes.
  bool smooths_keys = false;
};

/// Throws InvalidInput where the smoothing of keys means nothing: of numbers, against codes, under
/// a softcap, which is no shift.
void require_smoothing(const Problem& problem, Truth truth);

/// Throws InvalidInput for a truth whose rows an order of keys would exchange: that by mean scores
/// is another one where inputs were not rounded, and a gradient of keys has a row a key.
void require_same_keys(const Operation& operation, Truth truth, KeyOrder order);

/// Runs `c` on `sets` >= 1 data sets with the input seeds c.inputs.seed, c.inputs.seed + 1, ... and
/// compares with the f64 reference, of which one row a set is certified by the oracle. Throws
/// InvalidInput when the family or the order of keys does not fit, KernelFault for a
/// launch that fails or in which the executor saw a defect, std::logic_error if the reference errs
/// more than it says.
[[nodiscard]] ErrorStudy study_errors(const KernelInfo& kernel, const Case& c, std::int64_t sets,
                                      Device& device, const ErrorStudyOptions& options = {});

}  // namespace attest
