#include "gpu/primitives/visible_bits.hpp"

#include <gtest/gtest.h>

namespace attest {
namespace {

TEST(VisibleBits, AreSetFromTheFirstKeyToBeforeTheEndWhereverBothLie) {
  for (int begin = -66; begin <= 130; ++begin) {
    for (int end = -66; end <= 130; ++end) {
      const std::uint64_t bits = bits_between(begin, end);
      for (int key = 0; key < 64; ++key) {
        EXPECT_EQ((bits >> key & 1U) != 0, begin <= key && key < end)
            << key << " of " << begin << " to " << end;
      }
    }
  }
}

}  // namespace
}  // namespace attest
