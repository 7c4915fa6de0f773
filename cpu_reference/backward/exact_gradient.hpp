#pragma once

#include <cstdint>
#include <functional>

#include "core/attention/backward_roundings.hpp"
#include "core/attention/problem.hpp"
#include "core/attention/tensor_list.hpp"
#include "cpu_reference/answer.hpp"
#include "cpu_reference/backward/oracle.hpp"

namespace attest {

/// LSE and delta that a row's pairs are formed with.
using SavedRowOf =
    std::function<SavedRow<double>(std::int64_t b, std::int64_t h, std::int64_t query)>;

/// LSE and delta of a row as double knows them of its exact forward pass. `inputs` in the order of
/// backward_operation, of which dO and dLSE are looked at.
[[nodiscard]] SavedRow<double> exact_row(const Inputs& inputs, const Answer& forward,
                                         std::int64_t b, std::int64_t h, std::int64_t query);

/// dQ, dK and dV of backward_operation, in double, with the bound of a kernel that performs the
/// roundings, and the reference's own error.
[[nodiscard]] Answer mapped_gradients(const Problem& problem, const Inputs& inputs,
                                      const BackwardRoundings& how, const SavedRowOf& row_of);
/// dQ, dK and dV of backward_operation, in double, with the bound of a kernel with the constants
/// `kernel`, which more may have entered than roundings, and the reference's own error. `inputs` in
/// the order of backward_operation; those that `row_of` stands for are not looked at.
[[nodiscard]] Answer mapped_gradients(const Problem& problem, const Inputs& inputs,
                                      const GradientConstants& kernel, const SavedRowOf& row_of);

/// All outputs of backward_operation, likewise: dsinks and dbias, too, of no columns where there
/// are none.
[[nodiscard]] Answer all_gradients(const Problem& problem, const Inputs& inputs,
                                   const GradientConstants& kernel, const SavedRowOf& row_of);

/// The gradient of attention itself, of Q, K, V, dO and dLSE, and how far from it a backward kernel
/// may be that is given the O and LSE of a forward kernel: both passes are judged at once, and
/// neither may take for its own what the other one leaves to it.
///
/// `inputs` holds that O and LSE; `forward` is the forward pass's exact answer with the bounds of
/// the kernel that they are of. With |LSE_given - LSE| <= e and |dO.(O_given - O)| <= d, which is
/// sum |dO_c| times the bound of O_c, and p, r, chi and tau of the exact O and LSE,
///   |p_given - p| <= p (e^e - 1),   |tau_given - tau| <= p chi [(e^e - 1) |r| + e^e d],
/// of a sink's term p delta p [(e^e - 1) |delta| + e^e d], of a bias's p r that of tau without chi,
/// so that the map of what is given lies from the gradient by no more than these times |dO|, |k|
/// and |q|, summed. A backward kernel's bound against that map is added. Infinite where either pass
/// has no bound.
[[nodiscard]] Answer exact_gradient(const Problem& problem, const Inputs& inputs,
                                    const BackwardRoundings& how, const Answer& forward);

}  // namespace attest
