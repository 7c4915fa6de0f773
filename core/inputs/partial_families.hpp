#pragma once

#include "core/attention/tensor_list.hpp"
#include "core/records/case.hpp"

// Partial results to be merged (core/operations/combine.hpp). O_p is N(0, 1) unless said otherwise;
// that of an empty part is 0.
namespace attest {

/// LSE_p N(0, magnitude).
[[nodiscard]] Inputs partial_normal(const Problem& problem, const InputSpec& spec);
/// Every part a multiple of `magnitude` above or below the others, in drawn order.
[[nodiscard]] Inputs partial_far_apart(const Problem& problem, const InputSpec& spec);
/// One part of each row lies `magnitude` above the others.
[[nodiscard]] Inputs partial_dominant(const Problem& problem, const InputSpec& spec);
/// A third of the parts are empty, the first and the last more often; LSE_p N(0, magnitude).
[[nodiscard]] Inputs partial_some_empty(const Problem& problem, const InputSpec& spec);
/// No part has seen a key.
[[nodiscard]] Inputs partial_all_empty(const Problem& problem, const InputSpec& spec);
/// All parts of a row are the same.
[[nodiscard]] Inputs partial_copies(const Problem& problem, const InputSpec& spec);
/// All LSE_p are `magnitude`, and O_p is near 1: errors of the weights' sum do not average out.
[[nodiscard]] Inputs partial_ties(const Problem& problem, const InputSpec& spec);

}  // namespace attest
