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
  return with_needs_of(kernel, usual);
}

}  // namespace attest
