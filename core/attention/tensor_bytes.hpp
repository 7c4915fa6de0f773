#pragma once

#include "core/attention/operation.hpp"

namespace attest {

/// Bytes of the rows that there are of a tensor; 0 of one that is a part of another. tensor_bytes()
/// is the sum over the operation's.
[[nodiscard]] double bytes_of(const TensorSpec& tensor, const Problem& problem);

}  // namespace attest
