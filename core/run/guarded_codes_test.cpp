// Codes of 4 bits in a buffer between guards.
#include <gtest/gtest.h>

#include "core/run/guarded_buffer.hpp"

namespace attest {
namespace {

/// Rows of five codes, three bytes each, and a byte of nobody's between rows.
constexpr Shape shape{2, 1, 3, 5};
constexpr TensorLayout layout{.row_gap = 1};

GuardedBuffer buffer_of(GuardedBuffer::Use use, ElementType type, const Tensor<float>* values) {
  return {"X", use, shape, layout, type, values};
}

MemoryReport report_of(const GuardedBuffer& buffer, const GuardedBuffer::Contents& now) {
  MemoryReport report;
  buffer.check(now, report);
  return report;
}

GuardedBuffer::Contents contents_of(const GuardedBuffer& buffer) {
  return {buffer.image().pieces.front().bytes};
}

TEST(GuardedCodes, LieTwoAByteAndTheirStridesCountBytes) {
  Tensor<float> values(shape);
  float number = -7;
  for (float& x : values.values()) x = number = number == 7 ? -7 : number + 1;
  const GuardedBuffer buffer = buffer_of(GuardedBuffer::Use::input, ElementType::int4, &values);
  EXPECT_EQ(buffer.strides().row, 4);
  EXPECT_EQ(buffer.strides().batch, 12);
  const GuardedBuffer::Contents now = contents_of(buffer);
  const auto byte = [&](std::size_t at) {
    return std::to_integer<unsigned>(now[0][buffer.first_byte() + at]);
  };
  EXPECT_EQ(byte(0), 0xbaU);  // -6, -5
  EXPECT_EQ(byte(2), 0x8eU);  // -2, and nobody's
  EXPECT_EQ(byte(3), 0x88U);  // nobody's
  const Tensor<float> back = buffer.values(now);
  EXPECT_TRUE(std::ranges::equal(back.values(), values.values()));
  EXPECT_TRUE(report_of(buffer, now).damaged_guards.empty());
  EXPECT_TRUE(report_of(buffer, now).modified_inputs.empty());
}

TEST(GuardedCodes, ChangedInAnInputOrBesideRowsAreSeen) {
  const Tensor<float> ones(shape, 1);
  const GuardedBuffer buffer = buffer_of(GuardedBuffer::Use::input, ElementType::e2m1, &ones);
  GuardedBuffer::Contents now = contents_of(buffer);
  now[0][buffer.first_byte() + 1] ^= std::byte{0x10};  // column 3 of the first row
  EXPECT_EQ(report_of(buffer, now).modified_inputs,
            (std::vector<std::string>{"1 elements of X were changed, the first is X[0, 0, 0, 2]"}));
  now = contents_of(buffer);
  now[0][buffer.first_byte() + 3] ^= std::byte{1};
  EXPECT_EQ(report_of(buffer, now).damaged_guards.size(), 1U);
}

TEST(GuardedCodes, TheHalfByteThatAnOddRowLeavesIsNobodys) {
  for (const ElementType type : {ElementType::int4, ElementType::e2m1}) {
    const GuardedBuffer buffer = buffer_of(GuardedBuffer::Use::output, type, nullptr);
    GuardedBuffer::Contents now = contents_of(buffer);
    for (std::size_t row = 0; row < 24; row += 4) {
      for (std::size_t at = 0; at < 3; ++at) {
        now[0][buffer.first_byte() + row + at] = std::byte{0x21};
      }
    }
    EXPECT_TRUE(report_of(buffer, now).damaged_guards.empty());
    const Tensor<float> written = buffer.values(now);
    for (const float x : written.row(1, 0, 2)) EXPECT_NE(x, 0);
    now[0][buffer.first_byte() + 3] = std::byte{0x21};
    EXPECT_EQ(report_of(buffer, now).damaged_guards.size(), 1U);
  }
}

}  // namespace
}  // namespace attest
