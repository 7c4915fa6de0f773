#include "core/base/hex.hpp"

#include <gtest/gtest.h>

namespace attest {
namespace {

TEST(Hex, EveryByteComesBackFromItsTwoDigits) {
  std::vector<std::byte> all;
  for (int value = 0; value < 256; ++value) all.push_back(static_cast<std::byte>(value));
  EXPECT_EQ(from_hex(to_hex(all)), all);
  EXPECT_EQ(to_hex(std::vector{std::byte{0x0a}, std::byte{0xf1}}), "0af1");
}

TEST(Hex, ATextOfOtherLettersOrOfHalfAByteIsNoBytes) {
  for (const char* text : {"0", "0g", "0A", "abc", " 0"}) EXPECT_FALSE(from_hex(text)) << text;
  EXPECT_EQ(from_hex(""), std::vector<std::byte>());
}

}  // namespace
}  // namespace attest
