#include "core/operations/gradient.hpp"

#include <array>

#include "core/operations/gradient_tensors.hpp"

namespace attest {
namespace {

/// Six products: S, O, dP and the three uses of P and dS. What is formed twice counts once.
double flops(const Problem& problem) {
  return product_flops(problem, 3, 3);
}

constexpr std::array<TensorSpec, 7> tensors{
    {q_tensor, k_tensor, v_tensor, do_tensor, dq_tensor, dk_tensor, dv_tensor}};

}  // namespace

constinit const Operation gradient_operation{
    .name = "gradient",
    .summary = "dQ, dK and dV of attention from Q, K, V and dO: forward and backward pass in one",
    .tensors = tensors,
    .extends = &forward_operation,
    .flops = flops,
    .bytes = tensor_bytes};

namespace {
const OperationRegistration registration{gradient_operation};
}  // namespace

}  // namespace attest
