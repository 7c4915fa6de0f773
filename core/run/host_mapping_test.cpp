#include "core/run/host_mapping.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace attest {
namespace {

BufferImage image_of(std::string name, bool is_input) {
  return {
      .name = std::move(name),
      .pieces = {{.bytes = std::vector<std::byte>(5000, std::byte{7}), .accessible = {1000, 4000}}},
      .is_input = is_input};
}

std::string fault_at(const std::byte* address, bool is_write) {
  std::array<char, 60> text{};
  const bool is_known = describe_fault(address, is_write, text);
  EXPECT_EQ(is_known, text[0] != '\0');
  return text.data();
}

TEST(HostMapping, AFaultIsToldByTheBufferBesideIt) {
  const HostMapping v(image_of("V", true)), o(image_of("O", false));
  EXPECT_EQ(fault_at(v.address() + 1000, true), "wrote to V, which is an input");
  EXPECT_EQ(fault_at(v.address() + 3999, true), "wrote to V, which is an input");
  EXPECT_EQ(fault_at(v.address() + 4000, true), "wrote past the end of V");
  EXPECT_EQ(fault_at(v.address() + 9000, false), "read past the end of V");
  EXPECT_EQ(fault_at(o.address() + 100'000, true), "wrote past the end of O");
  EXPECT_EQ(fault_at(o.address() - 100'000, false), "read before the start of O");
}

TEST(HostMapping, AnAddressOfNobodyOrOfABufferThatIsGoneIsNotTold) {
  const std::byte* gone = nullptr;
  {
    const HostMapping q(image_of("Q", true));
    HostMapping moved_from(image_of("K", true));
    const HostMapping moved(std::move(moved_from));
    gone = q.address();
    EXPECT_EQ(fault_at(moved.address() - 1, true), "wrote before the start of K");
    EXPECT_NE(fault_at(gone, true), "");
  }
  EXPECT_EQ(fault_at(gone, true), "");
  EXPECT_EQ(fault_at(nullptr, false), "");
}

TEST(HostMappingDeathTest, PagesOfABufferThatIsGoneCannotBeTouchedUntilAnotherOneHasThem) {
  HostMapping mapping(image_of("Q", true));
  auto* const byte = reinterpret_cast<volatile unsigned char*>(mapping.address());
  EXPECT_EQ(byte[1000], 7);
  ASSERT_TRUE(mapping.retire());
  EXPECT_DEATH((void)byte[1000], "");
  EXPECT_EQ(fault_at(mapping.address() + 1000, true), "");
  BufferImage smaller = image_of("K", true);
  smaller.pieces[0].bytes.assign(4500, std::byte{9});
  ASSERT_TRUE(mapping.fits(smaller));
  mapping.reuse(smaller);
  EXPECT_EQ(byte[4499], 9);
  EXPECT_EQ(byte[4500], 0xff) << "no bytes of the earlier buffer";
  EXPECT_DEATH(byte[1000] = 1, "");
  EXPECT_EQ(fault_at(mapping.address() + 1000, true), "wrote to K, which is an input");
  smaller.pieces[0].bytes.resize(4096);
  EXPECT_FALSE(mapping.fits(smaller)) << "one page";
}

TEST(HostMapping, ATextThatIsTooLongIsCut) {
  const HostMapping q(image_of("Q", true));
  std::array<char, 12> text{};
  EXPECT_TRUE(describe_fault(q.address() + 2000, true, text));
  EXPECT_STREQ(text.data(), "wrote to Q,");
}

}  // namespace
}  // namespace attest
