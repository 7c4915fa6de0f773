#pragma once

#include <cstddef>
#include <cstdint>

#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"

namespace attest {

/// Scores, then weights, of standard attention in the workspace: rows of [batch * query_heads *
/// query_len, key_len], 16 bytes apart at least in any format.
struct ScoreMatrix {
  std::int64_t pitch = 0;            ///< elements from a row to the next
  std::size_t weights_at_bytes = 0;  ///< where P begins; fp32 weights overwrite the scores
  std::size_t bytes = 0;             ///< of the workspace
};
[[nodiscard]] ScoreMatrix score_matrix_of(const Problem& problem);

/// Longest chain of additions in a row's normaliser.
[[nodiscard]] std::int64_t softmax_chain(const Problem& problem);

/// One launch: reads Q K^T in fp32, scales it, writes P in the problem's element type (0 where a
/// row does not see the key) and LSE. A row without keys gets weights of 0 and -infinity.
void launch_standard_softmax(const ForwardArguments& arguments, Device& device);

}  // namespace attest
