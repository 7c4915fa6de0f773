#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "core/attention/tensor_core_product.hpp"
#include "core/inputs/random.hpp"
#include "gpu/simt/cuda_half.hpp"
#include "gpu/simt/test_buffer.hpp"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

constexpr int schedules = 30;

/// Every word of what passes through is another.
struct Ring {
  static constexpr int boxes = 11;
  std::vector<unsigned> words = std::vector<unsigned>(boxes * 256);

  Ring() { std::iota(words.begin(), words.end(), 1); }

  std::vector<unsigned> run(simt::SimtDevice& device, WaitBug bug, int stages) const {
    const TestBuffer<unsigned> memory(device, "tensor", words);
    const TestBuffer<unsigned> out(device, "out", std::vector<unsigned>(words.size()));
    const BoxedTensor from{memory.data(), ElementType::fp32, 1, 1, 8 * boxes, 32, {0, 0, 32}, 8};
    launch_ring(device, bug, from, boxes, stages, out.data());
    return out.read();
  }
};

TEST(Mbarriers, PassEveryBoxThroughARingOnceUnderEverySchedule) {
  simt::SimtDevice device;
  const Ring ring;
  for (const int stages : {1, 2, 3}) {
    for (std::uint64_t seed = 0; seed < schedules; ++seed) {
      device.seed_schedule(seed);
      const std::vector<unsigned> got = ring.run(device, WaitBug::none, stages);
      ASSERT_EQ(text_of(device.take_findings()), "") << stages << " stages, seed " << seed;
      for (std::size_t i = 0; i < got.size(); ++i) {
        const std::size_t chunk = i / 4 % 8 ^ i / 32 % 8;  // swizzled
        ASSERT_EQ(got[i], ring.words[i / 32 * 32 + chunk * 4 + i % 4]) << "word " << i;
      }
    }
  }
}

TEST(Mbarriers, WhoWaitsForEverIsNamedWithWhatHeWaitsFor) {
  const std::string at_empty = marked_line("hopper_test.cu", "waits_for_empty");
  const std::string at_full = marked_line("hopper_test.cu", "waits_for_full");
  struct Planted {
    WaitBug bug;
    std::vector<std::string> parts;
  };
  const std::vector<Planted> all{
      {WaitBug::other_parity,
       {"phase 0 lacks 2 of 2 arrivals and 0 bytes, " + at_empty,
        "phase 0 lacks 1 of 1 arrivals and 0 bytes, " + at_full}},
      {WaitBug::too_many_bytes, {"phase 0 lacks 0 of 1 arrivals and 16 bytes, " + at_full}},
      {WaitBug::too_few_arrivals, {"phase 0 lacks 1 of 3 arrivals and 0 bytes, " + at_empty}}};
  simt::SimtDevice device;
  for (const auto& [bug, parts] : all) {
    for (std::uint64_t seed = 0; seed < schedules; ++seed) {
      device.seed_schedule(seed);
      (void)Ring().run(device, bug, 2);
      expect_one(device, "divergent barrier", parts);
      (void)Ring().run(device, WaitBug::none, 2);
      ASSERT_EQ(text_of(device.take_findings()), "");
    }
  }
}

TEST(Mbarriers, OrderWhatComesBeforeAndAfterAndNothingElse) {
  simt::SimtDevice device;
  const TestBuffer<unsigned> out(device, "out", {0});
  for (std::uint64_t seed = 0; seed < schedules; ++seed) {
    device.seed_schedule(seed);
    launch_handover(device, true, out.data());
    ASSERT_EQ(text_of(device.take_findings()), "") << "seed " << seed;
    ASSERT_EQ(out.read().front(), 1U);
    launch_handover(device, false, out.data());
    expect_one(device, "data race",
               {marked_line("hopper_test.cu", "handover_writes"),
                marked_line("hopper_test.cu", "handover_reads")});
  }
}

TEST(NamedBarriers, GiveTurnsOneAfterTheOtherUnderEverySchedule) {
  constexpr int turns = 5;
  simt::SimtDevice device;
  const TestBuffer<unsigned> out(device, "out", std::vector<unsigned>(2 * turns));
  for (std::uint64_t seed = 0; seed < schedules; ++seed) {
    device.seed_schedule(seed);
    launch_turns(device, WaitBug::none, turns, out.data());
    ASSERT_EQ(text_of(device.take_findings()), "") << "seed " << seed;
    const std::vector<unsigned> got = out.read();
    for (unsigned i = 0; i < 2 * turns; ++i) ASSERT_EQ(got[i], i % 2);
  }
}

TEST(NamedBarriers, AMissingTurnIsNamed) {
  simt::SimtDevice device;
  const TestBuffer<unsigned> out(device, "out", std::vector<unsigned>(10));
  for (std::uint64_t seed = 0; seed < schedules; ++seed) {
    device.seed_schedule(seed);
    launch_turns(device, WaitBug::missing_turn, 5, out.data());
    expect_one(device, "divergent barrier",
               {"named barrier 2, where 64 threads are, gpu/primitives/warpgroup.cuh:"});
  }
}

TEST(Products, AWarpThatDoesNotComeIsMissed) {
  simt::SimtDevice device;
  launch_lonely_product(device, WaitBug::none);
  EXPECT_EQ(text_of(device.take_findings()), "");
  launch_lonely_product(device, WaitBug::missing_warp);
  expect_one(device, "divergent barrier",
             {"(one of 96) waits at a product of the warpgroup, gpu/primitives/wgmma.cuh:",
              "(one of 32) has exited"});
}

/// Bits of finite numbers, signs and zeros among them; of bf16 no large ones, for finite sums.
std::vector<std::uint16_t> numbers(std::uint64_t stream, std::size_t count, bool is_half) {
  std::vector<std::uint16_t> bits(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto drawn = static_cast<std::uint16_t>(random_bits(23, stream, i));
    const bool is_finite = (drawn & 0x7c00U) != 0x7c00U;
    bits[i] = !is_half ? static_cast<std::uint16_t>((drawn & 0x8fffU) | 0x3000U)
                       : static_cast<std::uint16_t>(is_finite ? drawn : 0);
  }
  return bits;
}

std::vector<float> values_of(const std::vector<std::uint16_t>& bits, bool is_half) {
  std::vector<float> values;
  for (const std::uint16_t b : bits)
    values.push_back(is_half ? simt::half_value(b) : simt::bfloat16_value(b));
  return values;
}

TEST(Products, OfEveryWidthAndFormAreTheTensorCoresBitForBit) {
  simt::SimtDevice device;
  constexpr std::size_t depth = product_depth;
  for (const bool is_half : {true, false}) {
    const ElementType type = is_half ? ElementType::fp16 : ElementType::bf16;
    const auto left = numbers(1, 64 * depth, is_half);
    const TestBuffer<std::uint16_t> a(device, "a", left);
    const std::vector<float> rows = values_of(left, is_half);
    for (const int n : {64, 80, 96, 112, 128, 160, 176, 192, 256}) {
      const auto width = static_cast<std::size_t>(n);
      const auto right = numbers(2, depth * width, is_half);
      const TestBuffer<std::uint16_t> b(device, "b", right);
      const ProductOperand operand(values_of(right, is_half), n, type);
      const std::vector<float> c = values_of(numbers(3, 64 * width, is_half), is_half);
      for (const bool adds : {false, true}) {
        std::vector<float> want = adds ? c : std::vector<float>(64 * width);
        for (std::size_t row = 0; row < 64; ++row)
          accumulate_tensor_core(hopper(), std::span(rows).subspan(row * depth, depth), type,
                                 operand, 0, std::span(want).subspan(row * width, width));
        for (int form = 0; form < 6; ++form) {
          const ProductCase p{is_half, n, form / 2 == 0, form / 2 == 1, form % 2 == 1};
          const TestBuffer<float> d(device, "d", c);
          launch_product(device, p, a.data(), b.data(), d.data(), adds);
          const std::vector<float> got = d.read();
          const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
          const auto differs = std::ranges::mismatch(got, want, {}, bits, bits).in1 - got.begin();
          ASSERT_EQ(differs, static_cast<std::ptrdiff_t>(want.size()))
              << fmt::format("half {} N {} adds {} A in registers {} mn {}, B mn {}", is_half, n,
                             adds, p.a_in_registers, p.is_a_mn, p.is_b_mn);
          ASSERT_EQ(text_of(device.take_findings()), "");
        }
      }
    }
  }
}

TEST(Products, ThatNobodyWaitsForLeaveNoNumberBehind) {
  simt::SimtDevice device;
  const TestBuffer<std::uint16_t> a(device, "a", numbers(1, 64 * product_depth, true));
  const TestBuffer<std::uint16_t> b(device, "b", numbers(2, product_depth * 64, true));
  const TestBuffer<float> d(device, "d", std::vector<float>(64 * 64, 1.0F));
  const ProductCase p{.is_half = true,
                      .n = 64,
                      .a_in_registers = false,
                      .is_a_mn = false,
                      .is_b_mn = false,
                      .is_awaited = false};
  launch_product(device, p, a.data(), b.data(), d.data(), true);
  for (const float x : d.read()) ASSERT_TRUE(std::isnan(x));
}

}  // namespace
}  // namespace attest
