#include "core/attention/stored_row.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace attest {
namespace {

std::vector<float> read(const std::byte* row, ElementType type, std::size_t columns) {
  std::vector<float> numbers(columns);
  for_each_stored(row, type, columns,
                  [&](std::size_t c, std::uint32_t bits) { numbers[c] = decode(type, bits); });
  return numbers;
}

std::array<std::byte, 4> bytes_of(std::array<unsigned, 4> bytes) {
  std::array<std::byte, 4> result{};
  for (std::size_t i = 0; i < bytes.size(); ++i) result.at(i) = static_cast<std::byte>(bytes.at(i));
  return result;
}

TEST(StoredRow, Of4BitsHasTheEvenColumnInTheLowHalfOfAByte) {
  const std::array<float, 5> numbers{1, -2, 7, -7, -1};
  std::array<std::byte, 4> row = bytes_of({0xaa, 0xaa, 0xaa, 0xaa});
  store_row(
      row.data(), ElementType::int4, numbers.size(),
      [&](std::size_t c) { return encode(ElementType::int4, numbers.at(c)); }, 0x8);
  EXPECT_EQ(row, bytes_of({0xe1, 0x97, 0x8f, 0xaa}));
  EXPECT_EQ(read(row.data(), ElementType::int4, numbers.size()),
            std::vector<float>(numbers.begin(), numbers.end()));
}

TEST(StoredRow, OfE2m1ReadsBackWhatItWas) {
  const std::array<std::byte, 4> row = bytes_of({0x91, 0x7f, 0x08, 0});
  EXPECT_EQ(read(row.data(), ElementType::e2m1, 5), (std::vector<float>{0.5F, -0.5F, -6, 6, 0}));
}

TEST(StoredRow, OfBytesAndWordsHasThemOneAfterTheOther) {
  for (const ElementType type : {ElementType::fp32, ElementType::bf16, ElementType::ue8m0}) {
    const std::size_t columns = 4 / format_of(type).size_bytes;
    std::array<std::byte, 4> row{};
    store_row(row.data(), type, columns,
              [&](std::size_t c) { return encode(type, c % 2 == 0 ? 2.0F : 0.25F); });
    const std::vector<float> numbers = read(row.data(), type, columns);
    for (std::size_t c = 0; c < columns; ++c) EXPECT_EQ(numbers[c], c % 2 == 0 ? 2.0F : 0.25F);
  }
}

}  // namespace
}  // namespace attest
