#pragma once

#include <cstdint>

#include "core/base/host_device.hpp"

namespace attest {

/// Mixes one input of ex2 and its result, as bits [the finaliser of Vigna's SplitMix64], so that a
/// sum of marks is the same for every order and another one as soon as a bit differs.
[[nodiscard]] inline ATTEST_HOST_DEVICE std::uint64_t exp2_mark(std::uint32_t x, std::uint32_t y) {
  std::uint64_t z = (std::uint64_t{x} << 32U | y) + 0x9e3779b97f4a7c15U;
  z = (z ^ z >> 30U) * 0xbf58476d1ce4e5b9U;
  z = (z ^ z >> 27U) * 0x94d049bb133111ebU;
  return z ^ z >> 31U;
}

}  // namespace attest
