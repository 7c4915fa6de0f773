#pragma once

#include "core/attention/element_type.hpp"
#include "core/attention/exp_method.hpp"

namespace attest {

/// Roundings of a kernel that merges finished partial results (O_p, LSE_p) into (O, LSE), in fp32:
/// weights exp(LSE_p - M) for the largest LSE_p M, their sum L, the sum of weights times O_p, the
/// quotient, and LSE = M + ln L. Sums are of any order, with or without fused multiply-adds. A part
/// whose LSE_p is -infinity is left out, whatever O_p holds.
struct MergeRoundings {
  ExpMethod exp = library_expf();
  double division_error = 0;     ///< relative error of a quotient
  double log_error = 0;          ///< relative error of ln L
  bool divides_weights = false;  ///< weights are divided by L, not the sum of weights times O_p
  ElementType output = ElementType::fp32;  ///< of O; LSE is fp32
  bool flushes_subnormals = false;         ///< fp32 results and inputs below 2^-126 become 0 (ftz)
};

}  // namespace attest
