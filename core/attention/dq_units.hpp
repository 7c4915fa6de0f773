#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace attest {

// dQ of a row in 32-bit integers, so that its bits do not depend on the order of additions. Each
// part that is added, what a tile of keys gives, is rounded to a multiple of the row's unit first.
//
// How large the sum may be follows from what is known before: |dO_i.v_j| <= sum_c |dO_ic| max |v|,
// so that with `size` = (sum_c |dO_ic| max |v| + |delta_i|) max |k|, the largest over the keys
// that the row sees alone, |sum_j p_ij (dO_i.v_j - delta_i) chi k_jc| <= size sum_j p_ij, a
// softcap's slope chi being at most 1. The weights sum to 1 where LSE is right. With a unit of
// 2^-30 times the power of two above the size, integers hold twice the size at least.
//
// LSE is given, so weights may sum to anything, and scores may err by more than log(2): a sum that
// has gone round would look like any other. So what each part may have used of the range, its
// largest number in the row in steps of 2^13 units rounded up, is added as well: a row that has
// used all of it is NaN. So is one that holds anything that is not finite, whose parts use all of
// it.

inline constexpr int dq_unit_bits = 30;
inline constexpr int least_dq_unit_exponent = -126;  ///< a unit is a normal number
inline constexpr int dq_range_step_bits = 13;        ///< of a step, in units
/// First step count that overflows a row; parts that are too large or not finite count as this
/// many.
inline constexpr std::uint32_t dq_range = std::uint32_t{1} << (31 - dq_range_step_bits);
/// Largest number of parts of a row of dQ. Up to it, what rounding up uses of the range stays
/// small, and the count of steps does not overflow.
inline constexpr std::int64_t most_dq_parts = std::int64_t{1} << 13;

/// The unit of a row of dQ whose `size` (above) is finite, a power of two.
[[nodiscard]] inline double dq_unit(double size) {
  constexpr double least = 0x1p-126;
  if (!(size > 0)) return least;
  return std::max(least, std::ldexp(1.0, std::ilogb(size) + 1 - dq_unit_bits));
}

}  // namespace attest
