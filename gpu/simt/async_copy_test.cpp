#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "gpu/simt/simt_device.hpp"
#include "gpu/simt/test_buffer.hpp"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

std::vector<Finding> run_copies(simt::SimtDevice& device, const DetectionCase& c, bool planted,
                                std::uint64_t seed) {
  const auto count = static_cast<std::size_t>(2 * c.blocks * c.threads);
  const TestBuffer<float> values(device, "values", std::vector<float>(count, 1.0F));
  device.seed_schedule(seed);
  c.launch(device, values.data(), nullptr, planted, c.blocks, c.threads);
  return device.take_findings();
}

class AsyncCopy : public testing::TestWithParam<DetectionCase> {};

TEST_P(AsyncCopy, whatIsForgottenIsFoundUnderEverySchedule) {
  simt::SimtDevice device;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<Finding> findings = run_copies(device, GetParam(), true, seed);
    // A copy that comes first makes its target unwritten besides.
    EXPECT_TRUE(std::any_of(findings.begin(), findings.end(),
                            [](const Finding& f) { return f.kind == GetParam().kind; }))
        << "seed " << seed << ", findings: " << findings.size();
  }
}

TEST_P(AsyncCopy, correctTwinIsSilentUnderEverySchedule) {
  simt::SimtDevice device;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<Finding> findings = run_copies(device, GetParam(), false, seed);
    ASSERT_TRUE(findings.empty()) << findings.front().kind << ": " << findings.front().message;
  }
}

INSTANTIATE_TEST_SUITE_P(Planted, AsyncCopy, testing::ValuesIn(async_copy_cases()),
                         [](const auto& instance) { return instance.param.name; });

/// Every number once, so that a misplaced element shows; none is 0, which is what padding is.
template <typename T>
void expect_that_tiles_arrive() {
  simt::SimtDevice device;
  std::vector<T> numbers(400);
  std::iota(numbers.begin(), numbers.end(), T{1});
  const TestBuffer<T> from(device, "from", numbers);
  for (const int columns : {1, 2, 3, 4, 8, 13, 16}) {
    for (const int stride : {columns, columns + 1, columns + 2, 32}) {
      for (const int start : {0, 1, 2, 4}) {
        for (const int pitch : {columns, columns + 3, 36}) {
          constexpr int rows = 5;
          for (const int existing : {0, 1, 4, 5}) {
            const TestBuffer<T> to(device, "to", std::vector<T>(rows * columns),
                                   TestBuffer<T>::Contents::unwritten);
            launch_load_tile(device, from.data() + 40 + start, stride, existing, rows, columns,
                             pitch, to.data());
            std::vector<T> want(rows * columns);
            for (int i = 0; i < existing * columns; ++i)
              want[i] = numbers[40 + start + i / columns * stride + i % columns];
            ASSERT_EQ(to.read(), want) << columns << " columns, stride " << stride << ", start "
                                       << start << ", pitch " << pitch << ", " << existing;
            const std::vector<Finding> findings = device.take_findings();
            ASSERT_TRUE(findings.empty()) << findings.front().message;
          }
        }
      }
    }
  }
}

TEST(LoadTileAsync, bringsRowsOfAnyAlignmentAndZerosPastTheEnd) {
  expect_that_tiles_arrive<float>();
}
TEST(LoadTileAsync, copiesElementsOfTwoBytesWithPlainLoadsWhereACopyCannotBegin) {
  expect_that_tiles_arrive<unsigned short>();
}

}  // namespace
}  // namespace attest
