#pragma once

#include <cstdint>

#include "core/base/host_device.hpp"

namespace attest {

/// Divides by a number that the host knows, 1 to 2^31 - 1, without the thirty dependent
/// instructions that a division takes on a GPU [Granlund and Montgomery, PLDI 1994]: with
/// 2^(shift - 1) < d <= 2^shift and m = floor(2^(31 + shift) / d) + 1, n / d is n m / 2^(31 +
/// shift) rounded down for every n below 2^31.
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(std::int64_t divisor) : divisor_(static_cast<unsigned>(divisor)) {
    while ((std::uint64_t{1} << shift_) < divisor_) ++shift_;
    multiplier_ = static_cast<unsigned>((std::uint64_t{1} << (31 + shift_)) / divisor_ + 1);
  }
  /// Quotient n / d, rounded down, for 0 <= n < 2^31.
  [[nodiscard]] ATTEST_HOST_DEVICE int quotient(int n) const {
    const std::uint64_t product = std::uint64_t{2U * static_cast<unsigned>(n)} * multiplier_;
    return static_cast<int>(static_cast<unsigned>(product >> 32) >> shift_);
  }
  [[nodiscard]] ATTEST_HOST_DEVICE int remainder(int n) const {
    return n - quotient(n) * static_cast<int>(divisor_);
  }

 private:
  unsigned divisor_ = 1, multiplier_ = 0x80000001U, shift_ = 0;
};

}  // namespace attest
