#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/attention/tensor.hpp"
#include "gpu/simt/launch_tracer.hpp"
#include "gpu/simt/simt_device.hpp"
#include "gpu/simt/test_buffer.hpp"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

constexpr std::int64_t box_rows = 8, row_bytes = 128, sector_bytes = 32;

/// Counts of a launch that copies the first box of a bf16 tensor with one head.
template <typename Launch>
KernelTrace traced(std::int64_t rows, std::int64_t columns, const Launch& launch) {
  simt::SimtDevice device(simt::TraceOptions{});
  const TestBuffer<std::uint16_t> memory(
      device, "tensor", std::vector<std::uint16_t>(static_cast<std::size_t>(rows * columns)));
  const TestBuffer<unsigned> box(device, "box", std::vector<unsigned>(box_rows * row_bytes / 4));
  const BoxedTensor tensor{.first = memory.data(),
                           .rows = rows,
                           .columns = columns,
                           .strides = strides_of({1, 1, rows, columns}, {}),
                           .box_rows = box_rows};
  launch(device, tensor, box.data());
  return device.tracer()->traces().at(0);
}
KernelTrace load(std::int64_t rows, std::int64_t columns) {
  return traced(rows, columns, [](Device& device, const BoxedTensor& tensor, unsigned* out) {
    launch_load_box(device, tensor, {0, 0, 0, 0}, 0, box_rows * row_bytes, out);
  });
}
KernelTrace store(std::int64_t rows, std::int64_t columns) {
  return traced(rows, columns, [](Device& device, const BoxedTensor& tensor, const unsigned* in) {
    launch_store_box(device, tensor, {0, 0, 0, 0}, in);
  });
}

/// Counts of the copy itself: what the kernels do beside it goes by words of 4 bytes.
AccessCounts copied(const KernelTrace& trace, MemorySpace space, AccessKind kind) {
  AccessCounts counts;
  for (const AccessSite& site : trace.sites) {
    if (site.access_bytes == 16 && site.space == space && site.kind == kind) counts += site.counts;
  }
  return counts;
}

/// Sectors that each row of the box touches, added up.
std::int64_t sectors_of_rows(std::int64_t rows, std::int64_t columns) {
  std::int64_t sectors = 0;
  for (std::int64_t r = 0; r < std::min(rows, box_rows); ++r) {
    std::set<std::int64_t> of_row;
    for (std::int64_t c = 0; c < std::min(2 * columns, row_bytes); ++c) {
      of_row.insert((r * 2 * columns + c) / sector_bytes);
    }
    sectors += std::ssize(of_row);
  }
  return sectors;
}

TEST(TraceOfBoxes, ARowOfALoadIsWrittenInOnePassWhereverTheTensorEnds) {
  for (const auto& [rows, columns] : {std::pair{9, 64}, {8, 128}, {5, 64}, {9, 40}}) {
    const KernelTrace trace = load(rows, columns);
    const AccessCounts written = copied(trace, MemorySpace::shared, AccessKind::write);
    EXPECT_EQ(written.requests, box_rows);
    EXPECT_EQ(written.passes, box_rows) << "128 bytes go through the banks at once";
    EXPECT_EQ(written.ideal_passes, box_rows);
    EXPECT_EQ(written.bytes, box_rows * row_bytes);
    EXPECT_EQ(written.partial_requests, 0);
  }
}

TEST(TraceOfBoxes, ALoadReadsTheSectorsOfRowsThatLieInTheTensor) {
  for (const auto& [rows, columns] : {std::pair{9, 64}, {8, 128}, {5, 64}, {9, 40}}) {
    const AccessCounts read = copied(load(rows, columns), MemorySpace::global, AccessKind::read);
    const std::int64_t inside = std::min<std::int64_t>(rows, box_rows);
    EXPECT_EQ(read.requests, inside);
    EXPECT_EQ(read.bytes, inside * std::min<std::int64_t>(2 * columns, row_bytes));
    EXPECT_EQ(read.sectors, sectors_of_rows(rows, columns)) << rows << " x " << columns;
  }
}

TEST(TraceOfBoxes, AStoreMovesWhatLiesInTheTensorOnBothSides) {
  for (const auto& [rows, columns] : {std::pair{9, 64}, {8, 128}, {5, 64}, {9, 40}}) {
    const KernelTrace trace = store(rows, columns);
    const AccessCounts read = copied(trace, MemorySpace::shared, AccessKind::read);
    const AccessCounts written = copied(trace, MemorySpace::global, AccessKind::write);
    const std::int64_t inside = std::min<std::int64_t>(rows, box_rows);
    EXPECT_EQ(read.passes, inside);
    EXPECT_EQ(read.bytes, inside * std::min<std::int64_t>(2 * columns, row_bytes));
    EXPECT_EQ(written.bytes, read.bytes);
    EXPECT_EQ(written.sectors, sectors_of_rows(rows, columns)) << rows << " x " << columns;
  }
}

}  // namespace
}  // namespace attest
