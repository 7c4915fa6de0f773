#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "core/attention/tensor_core_product.hpp"
#include "core/inputs/random.hpp"
#include "gpu/simt/cuda_half.hpp"
#include "gpu/simt/simt_device.hpp"
#include "gpu/simt/test_buffer.hpp"
#include "gpu/simt/test_kernels.hpp"
#include "gpu/simt/warp_matrix.hpp"

namespace attest {
namespace {

constexpr int blocks = 40;

/// Bits of finite numbers of every size, signs and zeros among them.
std::vector<std::uint16_t> numbers(std::uint64_t stream, std::size_t count, ElementType type) {
  std::vector<std::uint16_t> bits(count);
  const std::uint16_t infinity = type == ElementType::fp16 ? 0x7c00 : 0x7f80;
  for (std::size_t i = 0; i < count; ++i) {
    const auto drawn = static_cast<std::uint16_t>(random_bits(11, stream, i));
    bits[i] = (drawn & infinity) == infinity ? 0 : drawn;
    // bf16 products reach beyond fp32: keep most small enough for finite sums.
    if (type == ElementType::bf16)
      bits[i] = static_cast<std::uint16_t>((bits[i] & 0x8fffU) | 0x3000U);
  }
  return bits;
}

float value_of(ElementType type, std::uint16_t bits) {
  return type == ElementType::fp16 ? simt::half_value(bits) : simt::bfloat16_value(bits);
}

void expect_the_definition(const Accumulation& tensor_core, ElementType type, bool b_by_rows) {
  simt::use_tensor_core(tensor_core);
  simt::SimtDevice device;
  const auto a_bits = numbers(1, blocks * 256, type), b_bits = numbers(2, blocks * 128, type);
  std::vector<float> c;
  for (const std::uint16_t bits : numbers(3, blocks * 128, type)) c.push_back(value_of(type, bits));
  const TestBuffer<std::uint16_t> a(device, "a", a_bits), b(device, "b", b_bits);
  const TestBuffer<float> d(device, "d", c);
  launch_mma(device, type == ElementType::fp16, b_by_rows, a.data(), b.data(), d.data(), blocks);
  EXPECT_TRUE(device.take_findings().empty());
  const std::vector<float> got = d.read();
  for (std::size_t block = 0; block < blocks; ++block) {
    std::vector<float> right(128);
    for (std::size_t k = 0; k < 16; ++k)
      for (std::size_t n = 0; n < 8; ++n)
        right[k * 8 + n] =
            value_of(type, b_bits[block * 128 + (b_by_rows ? k * 8 + n : n * 16 + k)]);
    const ProductOperand operand(right, 8, type);
    for (std::size_t row = 0; row < 16; ++row) {
      std::vector<float> left(16), sum(8);
      for (std::size_t k = 0; k < 16; ++k)
        left[k] = value_of(type, a_bits[block * 256 + row * 16 + k]);
      for (std::size_t n = 0; n < 8; ++n) sum[n] = c[block * 128 + row * 8 + n];
      accumulate_tensor_core(tensor_core, left, type, operand, 0, sum);
      for (std::size_t n = 0; n < 8; ++n)
        ASSERT_EQ(std::bit_cast<std::uint32_t>(got[block * 128 + row * 8 + n]),
                  std::bit_cast<std::uint32_t>(sum[n]))
            << "block " << block << " row " << row << " column " << n;
    }
  }
  simt::use_tensor_core(hopper());
}

TEST(Mma, IsTheProductOfTheDeclaredTensorCoreBitForBit) {
  for (const Accumulation& tensor_core : {ampere(), hopper()})
    for (const ElementType type : {ElementType::fp16, ElementType::bf16})
      for (const bool b_by_rows : {false, true})
        expect_the_definition(tensor_core, type, b_by_rows);
}

TEST(Mma, Tf32IsTheNearestNumberOfTenBitsTiesToEven) {
  struct Rounding {
    std::uint32_t from, to;
  };
  const std::vector<Rounding> known{
      {0x3f800000, 0x3f800000}, {0x3f800fff, 0x3f800000}, {0x3f801000, 0x3f800000},  // a tie
      {0x3f801001, 0x3f802000}, {0x3f803000, 0x3f804000}, {0xbf803000, 0xbf804000},  // ties
      {0x3ffff000, 0x40000000}, {0x00001001, 0x00002000}, {0x80001000, 0x80000000},
      {0x7f7fefff, 0x7f7fe000}, {0x7f7ff000, 0x7f800000}, {0xff800000, 0xff800000},
      {0x7fffffff, 0x7fffffff}, {0x7f800001, 0x7fffffff}};
  std::vector<float> numbers(32, 0);
  for (std::size_t i = 0; i < known.size(); ++i) numbers[i] = std::bit_cast<float>(known[i].from);
  simt::SimtDevice device;
  const TestBuffer<float> from(device, "from", numbers), to(device, "to", numbers);
  launch_rounding(device, from.data(), to.data());
  const std::vector<float> got = to.read();
  for (std::size_t i = 0; i < known.size(); ++i)
    EXPECT_EQ(std::bit_cast<std::uint32_t>(got[i]), known[i].to) << known[i].from;
}

TEST(MatrixLoad, EachLaneReceivesItsTwoElements) {
  simt::SimtDevice device;
  const TestBuffer<unsigned> out(device, "out", std::vector<unsigned>(32));
  launch_matrix_load(device, MatrixLoadBug::none, out.data());
  EXPECT_TRUE(device.take_findings().empty());
  const std::vector<unsigned> got = out.read();
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned low = lane / 4 * 8 + lane % 4 * 2;
    EXPECT_EQ(got[lane], low | (low + 1) << 16);
  }
}

TEST(MatrixLoad, WhatIsWrongIsFound) {
  const auto kinds = [](MatrixLoadBug bug) {
    simt::SimtDevice device;
    const TestBuffer<unsigned> out(device, "out", std::vector<unsigned>(32));
    launch_matrix_load(device, bug, out.data());
    std::vector<std::string> found;
    for (const Finding& finding : device.take_findings()) found.push_back(finding.kind);
    return found;
  };
  const auto holds = [](const std::vector<std::string>& found, const char* kind) {
    return std::ranges::find(found, kind) != found.end();
  };
  EXPECT_TRUE(holds(kinds(MatrixLoadBug::unaligned_row), "misaligned access"));
  EXPECT_TRUE(holds(kinds(MatrixLoadBug::unwritten_row), "uninitialised read"));
  EXPECT_TRUE(holds(kinds(MatrixLoadBug::lane_has_exited), "divergent barrier"));
}

}  // namespace
}  // namespace attest
