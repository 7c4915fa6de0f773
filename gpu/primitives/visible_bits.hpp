#pragma once

#include <cstdint>

#include "core/base/host_device.hpp"

namespace attest {

// Up to 64 keys that a row sees: bit i is set if it sees key i.

/// The first bits, as many as `bits` says: none below 1, all from 64 on.
ATTEST_HOST_DEVICE inline std::uint64_t first_bits(int bits) {
  if (bits <= 0) return 0;
  return ~std::uint64_t{0} >> (bits < 64 ? 64 - bits : 0);
}
/// Bits [begin, end). Either may lie outside of them; none where begin is not below end.
ATTEST_HOST_DEVICE inline std::uint64_t bits_between(int begin, int end) {
  return first_bits(end) & ~first_bits(begin);
}

}  // namespace attest
