#pragma once

#include <cstdint>

#include "core/attention/accumulation.hpp"
#include "core/attention/element_type.hpp"
#include "core/attention/exp_method.hpp"

namespace attest {

/// Roundings that a backward kernel performs for one problem and plan. The bound of its gradients
/// follows from them (cpu_reference/backward/gradient_bound.hpp). All arithmetic between the points
/// named here is fp32. delta_i is dO_i.O_i - dLSE_i, formed from the O that the kernel is given;
/// dLSE is added once more than the terms of dO_i.O_i, first or last.
struct BackwardRoundings {
  Accumulation score{};            ///< Q K^T, chain of head_dim
  Accumulation product{};          ///< dO V^T, chain of the value columns
  Accumulation sums{};             ///< of dQ, dK and dV
  bool scale_after_dot = true;     ///< s = fl(scale * dot), one more rounding of the score
  double softcap_error = 0;        ///< |computed - c tanh(x / c)| <= softcap_error * c
  ExpMethod exp = library_expf();  ///< of s - LSE
  /// natural: the exponent is fl(s - LSE). log2: it is formed from fl(scale log2 e) times the dot
  /// product and fl(LSE log2 e), whose roundings do not cancel.
  LseForm lse = LseForm::natural;
  ElementType lse_format = ElementType::fp32;  ///< LSE as it enters the exponent
  std::int64_t delta_chain = 1;  ///< additions that a term of delta passes through at the most
  ElementType delta_format = ElementType::fp32;   ///< delta as it is taken from dO V^T
  ElementType weight_format = ElementType::fp32;  ///< P before P^T dO
  ElementType dscore_format = ElementType::fp32;  ///< dS before dS K and dS^T Q
  /// dS is formed from P as it was rounded to weight_format, not from P in fp32.
  bool dscore_of_rounded_weights = false;
  /// dS is multiplied by the scale before it is rounded to dscore_format, dQ and dK are not.
  bool scales_dscore = false;
  std::int64_t dq_chain = 1;  ///< keys in one chain of dQ, those of whole tiles counted
  std::int64_t dq_parts = 1;  ///< chains of dQ, which are added in fp32
  /// Format to which the sum over dq_parts chains is rounded after each addition, before the scale.
  ElementType dq_sum_format = ElementType::fp32;
  /// Format to which sums of some of the dq_parts chains, with the scale, are rounded before they
  /// are added: those of the keys of one rank, say.
  ElementType dq_part_format = ElementType::fp32;
  /// The dq_parts chains are rounded and added as integers, not in fp32
  /// (core/attention/dq_units.hpp).
  bool sums_dq_in_units = false;
  std::int64_t kv_chain = 1;  ///< rows in one chain of dK and dV, those of whole tiles counted
  std::int64_t kv_tiles =
      1;  ///< row tiles of such a chain, each of which begins a step of a product
  std::int64_t kv_parts = 1;  ///< chains of dK and dV, which are added in fp32
  /// Format to which each of the kv_parts chains is rounded before it is added: the sum of one
  /// query head of a group, say.
  ElementType kv_part_format = ElementType::fp32;
  ElementType output = ElementType::fp32;  ///< of dQ, dK and dV
  bool flushes_subnormals = false;         ///< fp32 results below 2^-126 become 0 (ftz)
};

}  // namespace attest
