#pragma once

#include <cstdint>
#include <vector>

#include "core/attention/plan.hpp"

namespace attest {

/// Tokens first, first + stride, ..., `count` of them.
struct TokenPiece {
  std::int64_t first = 0, count = 0, stride = 1;
};

/// Tokens of tokens_of_rank(), in its order, as at most two pieces, none of them empty.
[[nodiscard]] std::vector<TokenPiece> pieces_of_rank(std::int64_t distribution, std::int64_t length,
                                                     std::int64_t ranks, std::int64_t rank);
/// Positions of the tokens of a sequence that rank `rank` of `ranks` has, in the order in which it
/// has them; every token is at one rank. `length` may be any, below `ranks` too: some have none
/// then. Pieces have ceil(length / pieces) tokens, the last ones fewer or none.
/// `distribution`: Distribution. Zigzag gives rank r pieces r and 2 P - 1 - r of 2 P, so that under
/// a causal mask all have as much work [Zhu, ring-flash-attention]; stripe tokens r, r + P, ...
/// [Brandon et al. 2023, arXiv 2311.09431].
[[nodiscard]] std::vector<std::int64_t> tokens_of_rank(std::int64_t distribution,
                                                       std::int64_t length, std::int64_t ranks,
                                                       std::int64_t rank);
/// The largest number of tokens that a rank can have.
[[nodiscard]] std::int64_t most_tokens(std::int64_t length, std::int64_t ranks);

}  // namespace attest
