#pragma once

#include "core/operations/combine.hpp"
#include "core/run/arguments.hpp"

namespace attest {

/// Arguments of a launch of a merge, with the tensors by name. O_p holds the problem's
/// partial_type, O its element_type; LSE_p [batch, query_heads, parts, query_len] and LSE [batch,
/// query_heads, query_len] are contiguous.
struct CombineArguments {
  Problem problem;
  Plan plan;
  const void* partial_o = nullptr;
  const float* partial_lse = nullptr;
  void* o = nullptr;
  float* lse = nullptr;
  Strides partial_strides, o_strides;

  /// Names the tensors of `all`. Implicit: a kernel's launch function takes these where
  /// KernelInfo::launch hands over Arguments.
  CombineArguments(const Arguments& all)
      : problem(all.problem),
        plan(all.plan),
        partial_o(all[combine::partial_o].data),
        partial_lse(static_cast<const float*>(all[combine::partial_lse].data)),
        o(all[combine::o].data),
        lse(static_cast<float*>(all[combine::lse].data)),
        partial_strides(all[combine::partial_o].strides),
        o_strides(all[combine::o].strides) {}
};

}  // namespace attest
