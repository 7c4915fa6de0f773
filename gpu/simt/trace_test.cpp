#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "core/run/launch_trace.hpp"
#include "gpu/simt/simt_device.hpp"
#include "gpu/simt/test_buffer.hpp"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

/// Trace of what `launch` does; its values lie at a multiple of 64 bytes.
KernelTrace traced(const std::function<void(Device&, float*)>& launch,
                   simt::TraceOptions options = {}) {
  simt::SimtDevice device(std::move(options));
  const TestBuffer<float> values(device, "values", std::vector<float>(4096, 1.0F));
  launch(device, values.data());
  return device.tracer()->traces().front();
}

AccessCounts shared_reads(const KernelTrace& trace) {
  return trace.total(MemorySpace::shared, AccessKind::read);
}

TEST(TraceOfSharedMemory, aStrideOfSWordsIsAConflictOfGcdSAnd32Ways) {
  for (int stride = 1; stride <= 33; ++stride) {
    const KernelTrace trace =
        traced([&](Device& d, float* v) { launch_read_shared(d, v, 32, stride); });
    const AccessCounts reads = shared_reads(trace);
    EXPECT_EQ(reads.requests, 1) << stride;
    EXPECT_EQ(reads.passes, std::gcd(stride, 32)) << stride;
    EXPECT_EQ(reads.ideal_passes, 1) << stride;
    EXPECT_EQ(reads.broadcasts, 0) << stride;
    EXPECT_EQ(reads.bytes, 32 * 4) << stride;
  }
}

TEST(TraceOfSharedMemory, oneWordForAllLanesIsABroadcastInOnePass) {
  const AccessCounts reads =
      shared_reads(traced([](Device& d, float* v) { launch_read_shared(d, v, 32, 0); }));
  EXPECT_EQ(reads.passes, 1);
  EXPECT_EQ(reads.broadcasts, 1);
  EXPECT_EQ(reads.distinct_bytes, 4);
}

TEST(TraceOfSharedMemory, everyWarpMakesARequestOfItsOwn) {
  for (const int threads : {31, 32, 33, 96, 1024}) {
    const KernelTrace trace =
        traced([&](Device& d, float* v) { launch_read_shared(d, v, threads, 2); });
    const int whole = threads / 32, rest = threads % 32;
    EXPECT_EQ(trace.warps, whole + (rest > 0)) << threads;
    EXPECT_EQ(shared_reads(trace).requests, trace.warps) << threads;
    EXPECT_EQ(shared_reads(trace).lane_accesses, threads);
    EXPECT_EQ(shared_reads(trace).partial_requests, 0) << "lanes that do not exist are not missed";
    EXPECT_EQ(shared_reads(trace).passes, 2 * whole + (rest > 16 ? 2 : rest > 0 ? 1 : 0));
  }
}

TEST(TraceOfSharedMemory, rowsOfFloat4AreReadInFourPassesOfEightLanes) {
  // 65 and 33 words would not be aligned: S3 pads with one word and pays with scalar stores.
  for (const auto& [stride, ways] :
       std::vector<std::pair<int, int>>{{4, 1}, {64, 8}, {32, 8}, {68, 1}, {36, 1}, {72, 2}}) {
    const KernelTrace trace =
        traced([&](Device& d, float* v) { launch_read_shared_vectors(d, v, 4, stride, 1); });
    const AccessCounts reads = shared_reads(trace);
    EXPECT_EQ(reads.requests, 1) << stride;
    EXPECT_EQ(reads.bytes, 32 * 16) << stride;
    EXPECT_EQ(reads.ideal_passes, 4) << stride;
    EXPECT_EQ(reads.passes, 4 * ways) << stride;
    EXPECT_EQ(trace.sites.front().worst_ways, ways) << stride;
  }
}

TEST(TraceOfSharedMemory, rowsOfFloat2AreReadInTwoPassesOfSixteenLanes) {
  for (const auto& [stride, ways] : std::vector<std::pair<int, int>>{{2, 1}, {64, 16}, {66, 1}}) {
    const AccessCounts reads = shared_reads(
        traced([&](Device& d, float* v) { launch_read_shared_vectors(d, v, 2, stride, 1); }));
    EXPECT_EQ(reads.ideal_passes, 2) << stride;
    EXPECT_EQ(reads.passes, 2 * ways) << stride;
  }
}

TEST(TraceOfSharedMemory, vectorsThatNeighboursShareTakeHalfThePasses) {
  for (const int share : {2, 32}) {
    EXPECT_EQ(shared_reads(traced([&](Device& d, float* v) {
                launch_read_shared_vectors(d, v, 4, 4, share);
              })).passes,
              2);
    EXPECT_EQ(shared_reads(traced([&](Device& d, float* v) {
                launch_read_shared_vectors(d, v, 2, 2, share);
              })).passes,
              1);
  }
}

TEST(TraceOfGlobalMemory, aRequestTouchesTheSectorsThatItsWordsLieIn) {
  struct Expected {
    int stride, offset, sectors;
  };
  for (const auto& [stride, offset, sectors] : std::vector<Expected>{
           {1, 0, 4}, {1, 1, 5}, {1, 8, 4}, {2, 0, 8}, {8, 0, 32}, {64, 0, 32}, {0, 3, 1}}) {
    const AccessCounts reads = traced([&](Device& d, float* v) {
                                 launch_read_global(d, v, 32, stride, offset);
                               }).total(MemorySpace::global, AccessKind::read);
    EXPECT_EQ(reads.requests, 1);
    EXPECT_EQ(reads.sectors, sectors) << stride << " " << offset;
    const int words = stride == 0 ? 1 : 32;
    EXPECT_EQ(reads.coalescing_efficiency(), words * 4 / (32.0 * sectors));
  }
}

TEST(TraceOfGlobalMemory, namesTheBufferAndTheBytes) {
  const KernelTrace trace = traced([](Device& d, float* v) { launch_read_global(d, v, 32, 2, 5); });
  const auto site = std::ranges::find(trace.sites, MemorySpace::global, &AccessSite::space);
  ASSERT_NE(site, trace.sites.end());
  EXPECT_EQ(site->memory, "values");
  EXPECT_EQ(site->range.begin, 5U * 4);
  EXPECT_EQ(site->range.end, (5U + 31 * 2 + 1) * 4);
  EXPECT_EQ(site->line.substr(0, site->line.find(':')), "gpu/simt/trace_test.cu");
}

TEST(TraceOfVectors, aFloat4IsOneAccessAndFourFloatsAreFour) {
  for (const Move move : {Move::parts, Move::whole, Move::scalars}) {
    const KernelTrace trace = traced([&](Device& d, float* v) { launch_move(d, v, move); });
    const AccessCounts reads = trace.total(MemorySpace::global, AccessKind::read);
    const AccessCounts writes = trace.total(MemorySpace::shared, AccessKind::write);
    EXPECT_EQ(reads.requests, move == Move::scalars ? 4 : 1);
    EXPECT_EQ(writes.requests, move == Move::whole ? 1 : 4);
    EXPECT_EQ(reads.bytes, 32 * 16);
    EXPECT_EQ(writes.bytes, 32 * 16);
    // Four words apart: eight lanes at a time as a vector, eight banks' worth one by one.
    EXPECT_EQ(writes.passes, move == Move::whole ? 4 : 4 * 4);
  }
}

TEST(TraceOfBranches, requestsWithoutSomeLanesArePartial) {
  for (const int lanes : {1, 31, 32}) {
    const KernelTrace trace = traced([&](Device& d, float* v) { launch_branch(d, v, 64, lanes); });
    EXPECT_EQ(shared_reads(trace).requests, 2) << lanes;
    EXPECT_EQ(shared_reads(trace).partial_requests, lanes == 32 ? 0 : 2) << lanes;
    const AccessCounts writes = trace.total(MemorySpace::global, AccessKind::write);
    EXPECT_EQ(writes.partial_requests, 0) << "lanes are together again after the branch";
    EXPECT_EQ(writes.requests, 2);
  }
}

TEST(TraceOfBranches, lanesWaitForEachOtherAfterLoopsOfDifferentLength) {
  for (const int rounds : {1, 2, 7}) {
    const KernelTrace trace =
        traced([&](Device& d, float* v) { launch_ragged_loops(d, v, rounds); });
    EXPECT_EQ(shared_reads(trace).requests, rounds * 32);
    EXPECT_EQ(shared_reads(trace).lane_accesses, rounds * 32 * 33 / 2);
    EXPECT_EQ(shared_reads(trace).passes, rounds * 32) << "all lanes read the same word";
    const AccessCounts writes = trace.total(MemorySpace::shared, AccessKind::write);
    EXPECT_EQ(writes.requests, rounds);
    EXPECT_EQ(writes.partial_requests, 0);
  }
}

TEST(TraceOfBranches, lanesWaitForEachOtherAfterABranchAtTheEndOfALoop) {
  const KernelTrace trace = traced([](Device& d, float* v) { launch_branch_at_loop_end(d, v, 5); });
  ASSERT_EQ(trace.sites.size(), 3U);
  EXPECT_EQ(shared_reads(trace).requests, 10);
  EXPECT_EQ(shared_reads(trace).partial_requests, 5);
  EXPECT_EQ(shared_reads(trace).passes, 10);
}

TEST(TraceOfBarriers, countsBarriersOnceABlockAndFmasOfAllThreads) {
  for (const int threads : {32, 96}) {
    const KernelTrace trace =
        traced([&](Device& d, float* v) { launch_barriers(d, v, threads, 7); });
    EXPECT_EQ(trace.barriers, 7);
    EXPECT_EQ(trace.fmas, 7 * threads);
    EXPECT_EQ(trace.warp_operations, threads / 32);
  }
}

TEST(TraceOfLaunches, runsTheBlocksThatAreAskedFor) {
  const auto launch = [](Device& d, float* v) { launch_blocks(d, v, 100); };
  EXPECT_EQ(shared_reads(traced(launch)).requests, 5050);
  const KernelTrace some =
      traced(launch, {.sample = [](std::uint64_t block) { return block == 9 || block == 99; }});
  EXPECT_EQ(some.blocks, 2);
  EXPECT_EQ(some.configuration.grid, (Extent3{100, 1, 1}));
  EXPECT_EQ(shared_reads(some).requests, 110);
}

TEST(TraceOfLaunches, notesADryLaunchAndRunsNothing) {
  simt::SimtDevice device(simt::TraceOptions{.is_dry = true});
  launch_read_shared_vectors(device, nullptr, 4, 64, 1);
  launch_blocks(device, nullptr, 1 << 30);
  ASSERT_EQ(device.tracer()->launches().size(), 2U);
  const LaunchConfiguration first{"read_shared_vectors<float4>", {1, 1, 1}, {32, 1, 1}, 64 * 1024};
  EXPECT_EQ(device.tracer()->launches()[0], first);
  EXPECT_EQ(device.tracer()->launches()[1].grid.count(), 1 << 30);
  EXPECT_EQ(device.tracer()->traces()[0].blocks, 0);
}

TEST(TraceOfLaunches, aTracedLaunchComputesWhatACheckedOneDoes) {
  simt::SimtDevice checked, traced(simt::TraceOptions{});
  std::vector<float> results[2];
  int i = 0;
  for (simt::SimtDevice* device : {&checked, &traced}) {
    const TestBuffer<float> values(*device, "values", std::vector<float>(4096, 1.0F));
    launch_barriers(*device, values.data(), 64, 9);
    results[i++] = values.read();
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_TRUE(checked.take_findings().empty());
}

}  // namespace
}  // namespace attest
