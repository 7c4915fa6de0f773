#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

#include "gpu/simt/simt_device.hpp"
#include "gpu/simt/test_buffer.hpp"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

std::vector<Finding> run_case(simt::SimtDevice& device, const DetectionCase& c, bool planted,
                              std::uint64_t seed) {
  const auto count = static_cast<std::size_t>(2 * c.blocks * c.threads);
  const TestBuffer<float> values(device, "values", std::vector<float>(count, 1.0F));
  const TestBuffer<unsigned> counter(device, "counter", {0});
  device.seed_schedule(seed);
  c.launch(device, values.data(), counter.data(), planted, c.blocks, c.threads);
  return device.take_findings();
}

class Detection : public testing::TestWithParam<DetectionCase> {};

TEST_P(Detection, plantedBugIsFoundUnderEverySchedule) {
  simt::SimtDevice device;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<Finding> findings = run_case(device, GetParam(), true, seed);
    ASSERT_FALSE(findings.empty()) << "seed " << seed;
    for (const Finding& f : findings) {
      EXPECT_EQ(f.kind, GetParam().kind) << f.message;
      for (const std::string& mark : GetParam().lines)
        EXPECT_NE(f.message.find(marked_line("detection_test.cu", mark)), std::string::npos)
            << f.message << "\nlacks " << marked_line("detection_test.cu", mark);
    }
  }
}

TEST_P(Detection, correctTwinIsSilentUnderEverySchedule) {
  for (const int os_threads : {1, 3}) {
    simt::SimtDevice device(os_threads);
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const std::vector<Finding> findings = run_case(device, GetParam(), false, seed);
      ASSERT_TRUE(findings.empty()) << "seed " << seed << "\n" << text_of(findings);
    }
  }
}

TEST_P(Detection, correctLaunchAfterAPlantedBugIsSilent) {
  simt::SimtDevice device;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    ASSERT_FALSE(run_case(device, GetParam(), true, seed).empty());
    const std::vector<Finding> findings = run_case(device, GetParam(), false, seed);
    ASSERT_TRUE(findings.empty()) << text_of(findings);
  }
}

INSTANTIATE_TEST_SUITE_P(Planted, Detection, testing::ValuesIn(detection_cases()),
                         [](const auto& instance) { return instance.param.name; });

const DetectionCase& named(const std::string& name) {
  for (const DetectionCase& c : detection_cases())
    if (c.name == name) return c;
  throw std::logic_error(name);
}

TEST(RaceReport, namesKernelBothLinesBothThreadsAndThePlace) {
  for (const std::string name : {"write_then_read", "read_then_write"}) {
    simt::SimtDevice device;
    const std::vector<Finding> findings = run_case(device, named(name), true, 3);
    // Which of the two lines comes second depends on the schedule; both are named.
    for (const Finding& f : findings) {
      EXPECT_NE(f.message.find(name + ", block ("), std::string::npos) << f.message;
      EXPECT_NE(f.message.find(marked_line("detection_test.cu", name + "_reads")),
                std::string::npos)
          << f.message;
      EXPECT_NE(f.message.find(marked_line("detection_test.cu", name + "_writes")),
                std::string::npos)
          << f.message;
      EXPECT_NE(f.message.find("shared memory, byte "), std::string::npos) << f.message;
      const std::size_t first = f.message.find("thread (");
      EXPECT_NE(f.message.find("thread (", first + 1), std::string::npos) << f.message;
    }
  }
}

TEST(OutOfBounds, byOneElementNamesTheBufferAndTheByte) {
  simt::SimtDevice device;
  const std::vector<Finding> findings = run_case(device, named("past_the_end"), true, 0);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].message.find("buffer values, byte 528 of 528"), std::string::npos)
      << findings[0].message;
}

TEST(Findings, sameSeedGivesTheSameReport) {
  for (const DetectionCase& c : detection_cases()) {
    simt::SimtDevice first, second;
    EXPECT_EQ(text_of(run_case(first, c, true, 11)), text_of(run_case(second, c, true, 11)))
        << c.name;
  }
}

TEST(Findings, areHandedOutOnce) {
  simt::SimtDevice device;
  EXPECT_FALSE(run_case(device, named("two_writers"), true, 0).empty());
  EXPECT_TRUE(device.take_findings().empty());
}

using Halves = TestBuffer<unsigned short>;

TEST(HalfWords, twoThreadsMayWriteTheHalvesOfAWordButNotTheSameHalf) {
  simt::SimtDevice device;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Halves values(device, "values", std::vector<unsigned short>(64),
                        Halves::Contents::unwritten);
    device.seed_schedule(seed);
    launch_halves(device, values.data(), 32, false);
    EXPECT_EQ(text_of(device.take_findings()), "");
    EXPECT_EQ(values.read(), std::vector<unsigned short>(64, 1));
    launch_halves(device, values.data(), 32, true);
    EXPECT_EQ(text_of(device.take_findings()).substr(0, 9), "data race");
  }
}

/// Elements 1, 2, 4, 5, 7 of 9 hold values, and the first one starts in the middle of a word.
struct Gaps {
  explicit Gaps(Device& d) : device(d) {
    BufferImage::Piece piece;
    piece.bytes.resize(64);
    piece.accessible = {10, 28};
    piece.initialised = {{12, 16}, {18, 22}, {24, 26}};
    start = device.upload({.name = "k", .pieces = {piece}});
  }
  ~Gaps() { device.release(start); }
  [[nodiscard]] unsigned short* element(int i) const {
    return reinterpret_cast<unsigned short*>(start + 10) + i;
  }
  Device& device;
  std::byte* start;
};

TEST(Gaps, readingOneIsFoundToTheHalfWordAndReadingBesideItIsNot) {
  simt::SimtDevice device;
  for (int i = -1; i <= 9; ++i) {
    const Gaps gaps(device);
    launch_copy_half(device, gaps.element(0), i, 8);
    const bool holds = i == 1 || i == 2 || i == 4 || i == 5 || i == 7;
    const std::string want = i < 0 || i > 8 ? "out of bounds" : holds ? "" : "uninitialised read";
    const std::vector<Finding> findings = device.take_findings();
    EXPECT_EQ(findings.empty() ? "" : findings[0].kind, want) << i << " " << text_of(findings);
  }
}

TEST(Gaps, whatAKernelWroteMayBeRead) {
  simt::SimtDevice device;
  for (int i = 0; i <= 8; ++i) {
    const Gaps gaps(device);
    launch_copy_half(device, gaps.element(0), 1, i);
    launch_copy_half(device, gaps.element(0), i, i);
    EXPECT_EQ(text_of(device.take_findings()), "") << i;
  }
}

// Numbers of 2 bytes that the host wrote beside gaps: of most words one half, or none.
TEST(LargeBuffers, KnowWhatTheHostWroteOfAWord) {
  simt::SimtDevice device;
  for (const std::size_t count : {std::size_t{1} << 10, std::size_t{1} << 20}) {
    BufferImage::Piece piece{.bytes = std::vector<std::byte>(2 * count),
                             .accessible = {0, 2 * count}};
    for (std::size_t i = 0; i < 60; i += 3) piece.initialised.push_back({2 * i, 2 * i + 2});
    std::byte* const buffer = device.upload({.name = "values", .pieces = {std::move(piece)}});
    auto* const values = reinterpret_cast<unsigned short*>(buffer);
    for (int i = 0; i < 60; ++i) {
      launch_copy_half(device, values, i, static_cast<int>(count) - 1);
      EXPECT_EQ(device.take_findings().empty(), i % 3 == 0) << i << " of " << count;
    }
    device.release(buffer);
  }
}

// Words of large buffers have no stamp before they are touched.
TEST(LargeBuffers, areCheckedLikeSmallOnes) {
  constexpr int count = 1 << 20;  // 2 MiB
  simt::SimtDevice device;
  const auto kinds = [&] {
    std::string all;
    for (const Finding& finding : device.take_findings()) all += finding.kind + ";";
    return all;
  };
  for (int round = 0; round < 3; ++round) {  // each time at the same place
    const Halves values(device, "values", std::vector<unsigned short>(count),
                        Halves::Contents::unwritten);
    launch_copy_half(device, values.data(), count / 2, 7);
    EXPECT_EQ(kinds(), "uninitialised read;") << round;
    launch_copy_half(device, values.data(), 7, count / 2);
    EXPECT_EQ(kinds(), "") << round;
    launch_copy_half(device, values.data(), count / 2 + 1, 9);
    EXPECT_EQ(kinds(), "uninitialised read;") << round;
    launch_copy_half(device, values.data(), count / 2, count - 1);
    EXPECT_EQ(kinds(), "") << round;
    for (const int outside : {-1, count}) {
      launch_copy_half(device, values.data(), 7, outside);
      EXPECT_EQ(kinds(), "out of bounds;") << round << " " << outside;
    }
    launch_halves(device, values.data() + count / 4, 32, false);
    EXPECT_EQ(kinds(), "");
    launch_halves(device, values.data() + count / 4 + 64, 32, true);
    EXPECT_EQ(kinds().substr(0, 9), "data race");
  }
}

// A page number that was read out of bounds leads anywhere; on a GPU that is an illegal address.
TEST(Faults, WhatTheProcessorRefusesIsAFindingAndTheDeviceStaysUsable) {
  simt::SimtDevice device(2);
  const TestBuffer<float> values(device, "values", {1, 2});
  const TestBuffer<int> numbers(device, "numbers", {7, 6});
  float* const unmapped = nullptr;
  const std::string copy = marked_line("detection_test.cu", "copy_float");
  for (int round = 0; round < 2; ++round) {
    launch_copy_float(device, values.data(), unmapped + 4);
    expect_one(device, "out of bounds",
               {copy, "thread (33, 0, 0) reads address 0x10, which is no"});
    launch_copy_float(device, unmapped, values.data());
    expect_one(device, "out of bounds",
               {copy, "thread (33, 0, 0) writes address 0x0, which is no"});
    launch_divide(device, numbers.data(), 0);
    expect_one(device, "division by zero",
               {marked_line("detection_test.cu", "divide"), "thread (0, 0, 0) divides by zero"});
    launch_divide(device, numbers.data(), 3);
    EXPECT_TRUE(device.take_findings().empty());
    EXPECT_EQ(numbers.read()[0], 2);
  }
}

TEST(Faults, OfOtherCodeGoToWhoeverHandledThemBefore) {
  EXPECT_EXIT(
      {
        std::signal(SIGSEGV, [](int) { std::_Exit(42); });
        const simt::SimtDevice device;
        *reinterpret_cast<volatile int*>(16) = 1;
      },
      testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace attest
