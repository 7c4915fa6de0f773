#pragma once

#include "cpu_reference/backward/exact_gradient.hpp"

namespace attest {

/// dsinks of backward_operation, in double, with the bound of a kernel with the constants `kernel`
/// and the reference's own error; of no columns without sinks.
[[nodiscard]] OutputAnswer sink_gradients(const Problem& problem, const Inputs& inputs,
                                          const GradientConstants& kernel,
                                          const SavedRowOf& row_of);

}  // namespace attest
