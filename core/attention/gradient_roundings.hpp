#pragma once

#include "core/attention/backward_roundings.hpp"
#include "core/attention/element_type.hpp"
#include "core/attention/precision_plan.hpp"

namespace attest {

/// Roundings of a kernel that forms O and LSE itself and goes back from them, in an order of work
/// that nobody chose: what a framework derives from a forward pass. The bound of its gradients
/// follows from them (cpu_reference/gradient).
struct GradientRoundings {
  PrecisionPlan forward;       ///< of the O and LSE, or weights, that it goes back from
  BackwardRoundings backward;  ///< of the way back
  /// dO V^T is stored in it, before weights multiply it and delta is formed.
  ElementType product_format = ElementType::fp32;
};

}  // namespace attest
