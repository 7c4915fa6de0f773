#include "gpu/primitives/divisor.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace attest {
namespace {

constexpr std::int64_t largest = (std::int64_t{1} << 31) - 1;

/// Numbers at which a quotient changes, and the largest there are.
std::vector<std::int64_t> edges_of(std::int64_t divisor) {
  std::vector<std::int64_t> edges{0, 1, 2, largest - 1, largest};
  const std::int64_t last = largest / divisor;
  for (const std::int64_t quotient : {std::int64_t{1}, std::int64_t{2}, last / 2, last - 1, last}) {
    for (const std::int64_t n : {quotient * divisor - 1, quotient * divisor}) {
      if (n >= 0 && n <= largest) edges.push_back(n);
    }
  }
  return edges;
}

void expect_divides(std::int64_t divisor) {
  const Divisor by(divisor);
  for (const std::int64_t n : edges_of(divisor)) {
    ASSERT_EQ(by.quotient(static_cast<int>(n)), n / divisor) << n << " / " << divisor;
    ASSERT_EQ(by.remainder(static_cast<int>(n)), n % divisor) << n << " % " << divisor;
  }
}

TEST(Divisor, DividesBySmallNumbersAndByThoseAroundPowersOfTwo) {
  for (std::int64_t divisor = 1; divisor < 5000; ++divisor) expect_divides(divisor);
  for (int power = 1; power < 31; ++power) {
    for (const std::int64_t off : {-1, 0, 1}) expect_divides((std::int64_t{1} << power) + off);
  }
  expect_divides(largest - 1);
  expect_divides(largest);
}

TEST(Divisor, IsByOneWhereNothingWasSaid) {
  EXPECT_EQ(Divisor{}.quotient(static_cast<int>(largest)), largest);
}

}  // namespace
}  // namespace attest
