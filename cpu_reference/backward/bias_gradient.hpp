#pragma once

#include "cpu_reference/backward/exact_gradient.hpp"

namespace attest {

/// dbias of backward_operation, in double, with the bound of a kernel with the constants `kernel`
/// and the reference's own error; of no columns without a bias.
[[nodiscard]] OutputAnswer bias_gradient(const Problem& problem, const Inputs& inputs,
                                         const GradientConstants& kernel, const SavedRowOf& row_of);

}  // namespace attest
