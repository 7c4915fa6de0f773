#pragma once

#include <cstdint>

namespace attest {

/// Counter-based randomness: a value is a pure function of (seed, stream, index), so it is the same
/// on every machine, for every thread count and in any order. Philox4x32-10 [Salmon et al., SC
/// 2011] through Random123. Only IEEE operations that round correctly are used, so no C library can
/// change a value.
[[nodiscard]] std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream,
                                        std::uint64_t index);
/// Uniform number in [0, 1), a multiple of 2^-53.
[[nodiscard]] double random_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);
/// Uniform whole number in [0, bound), bound >= 1. Bias below bound / 2^64.
[[nodiscard]] std::int64_t random_below(std::uint64_t seed, std::uint64_t stream,
                                        std::uint64_t index, std::int64_t bound);
/// N(0, 1) by inversion [Acklam 2003]; relative error of the quantile below 1.2e-9.
[[nodiscard]] double random_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

}  // namespace attest
