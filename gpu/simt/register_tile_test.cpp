#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "core/inputs/random.hpp"
#include "gpu/simt/simt_device.hpp"
#include "gpu/simt/test_buffer.hpp"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

std::vector<float> drawn(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(1 + random_below(seed, 0, i, 1000)) / 7.0F;
  return values;
}

RC_GTEST_PROP(SharedTiles, ALoadBringsExistingRowsAndZerosHoweverTheyAreAligned, ()) {
  LoadCase c{};
  c.count = *rc::gen::inRange(1, 12);
  c.begin = *rc::gen::inRange(0, c.count);
  c.rows = *rc::gen::inRange(1, 12);
  c.columns = *rc::gen::inRange(1, 24);
  c.stride = c.columns + *rc::gen::inRange(0, 6);
  c.filled = c.columns + *rc::gen::inRange(0, 6);
  c.pitch = c.filled + *rc::gen::inRange(0, 3);
  const auto offset = *rc::gen::inRange<std::size_t>(0, 5);
  const auto load = *rc::gen::element(TileLoad::scalar, TileLoad::widest);
  simt::SimtDevice device;
  const auto row = [&](int r) {
    return offset + static_cast<std::size_t>(r) * static_cast<std::size_t>(c.stride);
  };
  const std::vector<float> values = drawn(row(c.count), 1);
  const TestBuffer<float> from(device, "from", values);
  const TestBuffer<float> out(device, "out",
                              std::vector<float>(static_cast<std::size_t>(c.rows * c.filled)));
  launch_load(device, from.data() + offset, c, load, out.data(), *rc::gen::inRange(1, 70));

  const std::vector<float> got = out.read();
  for (int r = 0; r < c.rows; ++r) {
    for (int column = 0; column < c.filled; ++column) {
      const bool exists = c.begin + r < c.count && column < c.columns;
      const float want =
          exists ? values[row(c.begin + r) + static_cast<std::size_t>(column)] : 0.0F;
      RC_ASSERT(got[static_cast<std::size_t>(r * c.filled + column)] == want);
    }
  }
  RC_ASSERT(device.take_findings().empty());
}

RC_GTEST_PROP(SharedTiles, EveryElementIsVisitedOnceByAnyNumberOfThreads, ()) {
  const auto [rows, columns] = *rc::gen::pair(rc::gen::inRange(0, 20), rc::gen::inRange(1, 40));
  simt::SimtDevice device;
  const TestBuffer<int> counts(device, "counts",
                               std::vector<int>(static_cast<std::size_t>(rows * columns)));
  launch_visit(device, counts.data(), rows, columns, *rc::gen::inRange(1, 70));
  RC_ASSERT(std::ranges::all_of(counts.read(), [](int n) { return n == 1; }));
  RC_ASSERT(device.take_findings().empty());
}

/// The tree of exchanges: neighbours at half the row's length first.
float tree_sum(std::vector<float> row) {
  while (row.size() > 1) {
    const std::size_t half = row.size() / 2;
    for (std::size_t i = 0; i < half; ++i) row[i] += row[i + half];
    row.resize(half);
  }
  return row.front();
}

TEST(RowShuffle, EveryLaneOfARowHasTheSumOfItsRowBitForBit) {
  for (const int row_threads : {1, 2, 4, 8, 16, 32}) {
    for (const int rows : {1, 2, 3, 5}) {  // most of them end in a short warp
      const int threads = rows * row_threads;
      simt::SimtDevice device;
      const std::vector<float> values = drawn(static_cast<std::size_t>(threads), 2);
      const TestBuffer<float> in(device, "values", values);
      const TestBuffer<float> out(device, "sums", values);
      launch_row_sums(device, in.data(), out.data(), row_threads, threads);
      const std::vector<float> got = out.read();
      for (int t = 0; t < threads; ++t) {
        const auto first = values.begin() + t / row_threads * row_threads;
        EXPECT_EQ(got[static_cast<std::size_t>(t)], tree_sum({first, first + row_threads}))
            << row_threads << " threads a row, " << rows << " rows, thread " << t;
      }
      EXPECT_TRUE(device.take_findings().empty());
    }
  }
}

}  // namespace
}  // namespace attest
