#pragma once

#include "core/operations/forward_arguments.hpp"
#include "core/operations/quantised.hpp"

namespace attest {

/// Arguments of a launch of a kernel of quantised attention: ForwardArguments, whose Q, K and V
/// hold codes, and their scales. A tensor without scales has a scale address that nobody may read.
struct QuantisedArguments : ForwardArguments {
  const float* q_scale = nullptr;  ///< element (0, 0, 0, 0) of [batch, heads, rows, columns]
  const float* k_scale = nullptr;
  const float* v_scale = nullptr;
  Strides q_scale_strides, k_scale_strides, v_scale_strides;

  QuantisedArguments() = default;
  /// Names the tensors of `all`. Implicit, as that of ForwardArguments, whose tensors have the same
  /// numbers.
  QuantisedArguments(const Arguments& all)
      : ForwardArguments(all),
        q_scale(static_cast<const float*>(all[quantised::q_scale].data)),
        k_scale(static_cast<const float*>(all[quantised::k_scale].data)),
        v_scale(static_cast<const float*>(all[quantised::v_scale].data)),
        q_scale_strides(all[quantised::q_scale].strides),
        k_scale_strides(all[quantised::k_scale].strides),
        v_scale_strides(all[quantised::v_scale].strides) {}
};

}  // namespace attest
