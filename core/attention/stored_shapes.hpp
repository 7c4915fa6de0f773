#pragma once

#include "core/attention/problem.hpp"

namespace attest {

/// Shapes of the tensors in memory: packed along the sequence where the problem has lengths, else
/// the problem's own.
struct StoredShapes {
  Shape q{}, k{}, v{}, o{}, lse{};
};
[[nodiscard]] StoredShapes stored_shapes(const Problem& problem);

}  // namespace attest
