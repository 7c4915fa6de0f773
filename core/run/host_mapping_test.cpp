#include "core/run/host_mapping.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "core/base/json_worker.hpp"
#include "core/run/host_memory_device.hpp"

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

TEST(HostMappingDeathTest, PagesOfAFileAreABufferLikeTheOneThere) {
  const OwnedFd file = memory_file(std::string(3 * 8192, '\7'));
  BufferImage image = image_of("Q", true);
  image.ends_at_page = true;
  image.alignment = 16;
  const HostMapping here(image), there(here.place(), file.get(), 8192);
  EXPECT_EQ(fault_at(there.address() + 1000, true), "wrote to Q, which is an input");
  const auto in_page = [](const HostMapping& mapping) {
    return reinterpret_cast<std::uintptr_t>(mapping.address()) % 4096;
  };
  EXPECT_EQ(in_page(there), in_page(here));
  auto* const byte = reinterpret_cast<volatile unsigned char*>(there.address());
  EXPECT_EQ(byte[4999], 7);
  EXPECT_DEATH(byte[0] = 1, "");
  EXPECT_DEATH((void)byte[5008], "");
  HostMapping output(HostMapping(image_of("O", false)).place(), file.get(), 8192);
  output.address()[0] = std::byte{9};
  EXPECT_EQ(byte[-static_cast<std::ptrdiff_t>(in_page(there))], 9) << "who maps it sees it";
}

TEST(HostMemoryDevice, KnowsWhichBufferHoldsAnAddress) {
  HostMemoryDevice device;
  std::byte* const q = device.upload(image_of("Q", true));
  std::byte* const o = device.upload(image_of("O", false));
  for (const std::byte* inside : {q, q + 4999, q + 5000}) {
    ASSERT_NE(device.buffer_at(inside), nullptr);
    EXPECT_EQ(device.buffer_at(inside)->name, "Q");
  }
  EXPECT_EQ(device.buffer_at(o + 17)->address, o);
  EXPECT_TRUE(device.buffer_at(q)->is_input && !device.buffer_at(o)->is_input);
  EXPECT_EQ(device.buffer_at(q - 1), nullptr);
  EXPECT_EQ(device.buffer_at(q + 5001), nullptr);
  EXPECT_EQ(device.buffer_at(nullptr), nullptr);
  device.release(q);
  EXPECT_EQ(device.buffer_at(q + 1), nullptr);
}

TEST(HostMapping, ATextThatIsTooLongIsCut) {
  const HostMapping q(image_of("Q", true));
  std::array<char, 12> text{};
  EXPECT_TRUE(describe_fault(q.address() + 2000, true, text));
  EXPECT_STREQ(text.data(), "wrote to Q,");
}

}  // namespace
}  // namespace attest
