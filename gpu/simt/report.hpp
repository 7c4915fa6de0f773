#pragma once

#include <string>

#include "gpu/simt/cuda_vector_types.hpp"

namespace attest::simt {

/// `(1, 0, 2)`.
[[nodiscard]] std::string format_index(uint3 index);

}  // namespace attest::simt
