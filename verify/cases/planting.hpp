#pragma once

#include <cstdint>

#include "verify/judge/run.hpp"

// What laws share that overwrite an element of a case's inputs by a NaN or an infinity.
namespace attest {

/// An element of Q, K or V.
struct Spot {
  enum class Where { query, key, value } where = Where::query;
  std::int64_t b = 0, head = 0, row = 0, d = 0;
};

/// Draws a spot by the case's seed and the law's own `stream`; the problem has queries and keys.
/// One spot in two of K and V belongs to the key to which some row that sees it gives its smallest
/// weight: where weights underflow, that one is 0, and a kernel that leaves out keys without weight
/// shows.
[[nodiscard]] Spot draw_spot(Run& run, std::uint64_t stream, Spot::Where where);

[[nodiscard]] float& element(Inputs& inputs, const Spot& spot);

/// True if the row (b, h, n) sees any key, and the spot is in its query, or in a key or value that
/// it sees.
[[nodiscard]] bool sees(const Problem& problem, const Spot& spot, std::int64_t b, std::int64_t h,
                        std::int64_t n);

}  // namespace attest
