#include "core/run/default_problem.hpp"

#include <algorithm>

namespace attest {
namespace {

template <typename Value>
Value taken(const std::vector<Value>& allowed, Value usual) {
  const bool is_taken = allowed.empty() || std::ranges::find(allowed, usual) != allowed.end();
  return is_taken ? usual : allowed.front();
}

}  // namespace

Problem default_problem(const KernelInfo& kernel, Problem usual) {
  usual.operation = kernel.operation;
  usual.element_type = taken(kernel.element_types, usual.element_type);
  usual.mask = taken(kernel.masks, usual.mask);
  usual.head_dim = taken(kernel.head_dims, usual.head_dim);
  usual.scale = default_scale(usual.head_dim);
  Codes& codes = usual.codes;
  const CodesTaken& allowed = kernel.codes;
  codes.q = taken(allowed.q, codes.q);
  codes.k = taken(allowed.k, codes.k);
  codes.v = taken(allowed.v, codes.v);
  codes.q_scales = taken(allowed.q_scales, codes.q_scales);
  codes.k_scales = taken(allowed.k_scales, codes.k_scales);
  codes.v_scales = taken(allowed.v_scales, codes.v_scales);
  return with_needs_of(kernel, usual);
}

}  // namespace attest
