// Numbers of the founding documents, right or corrected (claims B and D).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "gpu/model/cost_model_test.hpp"

namespace attest {
namespace {

// S2 exercise 2: one head, D = 64, fp16, tiles of 64.
TEST(CostModelAnswers, TheBenchmarkTableOfTheCourse) {
  struct Row {
    std::int64_t n;
    double mflop, scores_and_weights, tensors;
    std::int64_t tiles, causal_tiles;
    double share;
  };
  constexpr std::array rows{
      Row{256, 16.8, 0.25, 0.125, 16, 10, 62.5}, Row{512, 67.1, 1, 0.25, 64, 36, 56.3},
      Row{1024, 268.4, 4, 0.5, 256, 136, 53.1}, Row{2048, 1073.7, 16, 1, 1024, 528, 51.6},
      Row{4096, 4295.0, 64, 2, 4096, 2080, 50.8}};
  const Tiling tiles{.query_tile = 64, .key_tile = 64};
  for (const Row& row : rows) {
    Problem p = problem(fmt::format("n{} d64 fp16", row.n));
    EXPECT_EQ(std::llround(full_flops(p) / 1e5), std::llround(row.mflop * 10));
    EXPECT_EQ(2 * footprint_of(p).matrix, row.scores_and_weights * mib);
    EXPECT_EQ(footprint_of(p).tensors, row.tensors * mib);
    EXPECT_EQ(visited_tile_pairs(p, tiles), row.tiles);
    p.mask = Mask::causal_top_left;
    EXPECT_EQ(visited_tile_pairs(p, tiles), row.causal_tiles);
    EXPECT_EQ(std::llround(1000.0 * static_cast<double>(row.causal_tiles) /
                           static_cast<double>(row.tiles)),
              std::llround(row.share * 10));
  }
}

// The shape of S3: B = 8, H = 12, N = 4,096, D = 64, fp32.
TEST(CostModelAnswers, TheLaddersShapeOnAnH200) {
  const GpuModel& h200 = gpu_model_from_name("h200");
  const Problem full = problem("b8 h12 n4096 d64");
  const Problem causal = problem("b8 h12 n4096 d64 causal_top_left");
  const Tiling tiles{.query_tile = 32, .key_tile = 32};
  EXPECT_EQ(rounded(full_flops(full), 4), 4123);
  EXPECT_EQ(forward_flops(full), full_flops(full));
  EXPECT_EQ(rounded(forward_flops(causal), 4), 2062);
  EXPECT_EQ(rounded(tiled_flops(causal, tiles), 4), 2078);
  EXPECT_EQ(visited_tile_pairs(causal, tiles) * 96, 792576);
  EXPECT_EQ(rounded(exponentials(full), 3), 161);

  const TimeFloors floors = time_floors(
      h200, ElementType::fp32, {.flops = full_flops(full), .exponentials = exponentials(full)});
  EXPECT_EQ(rounded(floors.flops, 3), 616);
  EXPECT_EQ(rounded(floors.exponentials, 2), 39);
  EXPECT_EQ(
      rounded(time_floors(h200, ElementType::fp32, {.flops = forward_flops(causal)}).flops, 2), 31);

  // K3 reads K and V out of L2: 12,288 blocks, 2 MiB each.
  const Traffic k3 = traffic_without_cache(Dataflow::queries_outside, full, tiles);
  EXPECT_EQ(k3.k + k3.v, 12288 * 2 * mib);
  EXPECT_EQ(rounded(k3.k + k3.v, 3), 258);
}

// Q3.11: the K1 of S3 moved 14.7 GB; Q, K, V and O are 13.2 read and 19.7 in all when the loop is
// causal, 38.9 when it is not. m and l come on top.
TEST(CostModelAnswers, KeysOutsideOfTheLadderIsCausal) {
  const Tiling tiles{.query_tile = 32, .key_tile = 32};
  const Traffic causal = traffic_without_cache(Dataflow::keys_outside,
                                               problem("b8 h12 n4096 d64 causal_top_left"), tiles);
  EXPECT_EQ(rounded(causal.q + causal.k + causal.v + causal.o_read, 3), 132);
  EXPECT_EQ(rounded(without_lse(causal) - causal.statistics, 3), 197);
  const Traffic full =
      traffic_without_cache(Dataflow::keys_outside, problem("b8 h12 n4096 d64"), tiles);
  EXPECT_EQ(rounded(without_lse(full) - full.statistics, 3), 389);
}

// The shape of S0: 8 x 32 heads, N = 8,192, D = 128, fp16.
TEST(CostModelAnswers, TheTritonPostsShape) {
  const Problem p = problem("b8 h32 n8192 d128 fp16");
  EXPECT_EQ(rounded(full_flops(p), 4), 8796);
  EXPECT_EQ(rounded(full_flops(p) / 650e12, 3), 135);
  const auto reads = [&](std::int64_t tile) {
    return traffic_without_cache(Dataflow::queries_outside, p,
                                 {.query_tile = tile, .key_tile = tile})
        .read();
  };
  EXPECT_EQ(reads(64), 128.5 * gib);
  EXPECT_EQ(reads(128), 64.5 * gib);
  EXPECT_EQ(compulsory_traffic(p).read(), 1.5 * gib);
  EXPECT_EQ(std::llround(1000 * (1 - compulsory_traffic(p).read() / reads(128))), 977);  // hits
  // K and V of a head, and how many heads fit half of 50 MB.
  const double kv = (compulsory_traffic(p).k + compulsory_traffic(p).v) / 256;
  EXPECT_EQ(kv, 4 * mib);
  EXPECT_EQ(std::floor(50e6 / 2 / kv), 5);
}

// Q0.2 to Q0.7: the post's times on its H100, and what they would be on an H200.
TEST(CostModelAnswers, TheRatesBehindTheTritonPostsTimes) {
  const Problem p = problem("b8 h32 n8192 d128 fp16");
  const GpuModel& h100 = gpu_model_from_name("h100");
  const auto tflops = [&](double ms) { return full_flops(p) / (ms * 1e-3) / 1e12; };
  EXPECT_EQ(std::llround(tflops(26.9)), 327);
  EXPECT_EQ(std::llround(tflops(28.0)), 314);
  EXPECT_EQ(std::llround(tflops(134.75)), 65);
  EXPECT_EQ(std::llround(1000 * tflops(134.75) * 1e12 / h100.fp16_flops), 66);
  EXPECT_EQ(std::llround(tflops(33.86)), 260);
  // Far from the memory's bandwidth: traffic was not the bottleneck.
  EXPECT_EQ(std::llround(100 * 64.5 * gib / 88.38e-3 / h100.dram_bytes_per_s), 23);
  EXPECT_EQ(std::llround(100 * 129.45 * gib / 134.75e-3 / h100.dram_bytes_per_s), 31);

  const GpuModel& h200 = gpu_model_from_name("h200");
  const auto memory_ms = [&](double gibibytes) {
    return 1e3 * time_floors(h200, p.element_type, {.dram_bytes = gibibytes * gib}).dram;
  };
  EXPECT_EQ(std::llround(10 * memory_ms(64.5)), 144);
  EXPECT_EQ(std::llround(10 * memory_ms(128.5)), 287);
  EXPECT_EQ(rounded(64.5 * gib / 13.5e-3, 2), 51);  // 5.1 TB/s out of the L2
}

// Q1.4, Q2.9, Q3.1: the rates of the other documents, with every pair counted.
TEST(CostModelAnswers, TheRatesBehindTheOtherDocumentsTimes) {
  const auto tenths = [](std::string_view text, double ms) {
    return std::llround(full_flops(problem(text)) / (ms * 1e-3) / 1e11);
  };
  EXPECT_EQ(tenths("b4 h8 n1024 d64 fp16", 0.45), 191);
  EXPECT_EQ(tenths("b4 h8 n2048 d64 fp16", 1.21), 284);
  EXPECT_EQ(tenths("b4 h8 n4096 d64 fp16", 4.52), 304);
  EXPECT_EQ(tenths("b2 h8 n8192 d64 fp16", 8.91), 309);
  EXPECT_EQ(tenths("b8 h12 n16384 d64 fp16", 21.3), 3097);  // 99 % of an A100: not that shape
  const std::string_view ladder = "b8 h12 n4096 d64";
  EXPECT_EQ(tenths(ladder, 37.28), 111);
  EXPECT_EQ(tenths(ladder, 20.51), 201);
  EXPECT_EQ(tenths(ladder, 12.06), 342);  // the document has 17.09: half of the pairs
}

// Q0.1, Q1.1, Q2.1, Q2.4, Q3.22, Q4.2: what the quadratic matrices take.
TEST(CostModelAnswers, MatricesOfScores) {
  EXPECT_EQ(rounded(footprint_of(problem("n4096")).matrix, 3), 671);      // 67.1 MB
  EXPECT_EQ(rounded(footprint_of(problem("h32 n4096")).matrix, 3), 215);  // 2.15 GB
  EXPECT_EQ(footprint_of(problem("n16384 fp16")).matrix, 512 * mib);
  EXPECT_EQ(footprint_of(problem("h32 n16384 fp16")).matrix, 16 * gib);
  EXPECT_EQ(2 * footprint_of(problem("h32 n16384 fp16")).matrix, 32 * gib);
  EXPECT_EQ(footprint_of(problem("b8 h12 n8192")).matrix, 24 * gib);
  EXPECT_EQ(2 * footprint_of(problem("b8 h12 n8192 fp16")).matrix, 24 * gib);
  EXPECT_EQ(2 * footprint_of(problem("b8 h12 n8192")).matrix, 48 * gib);
  EXPECT_EQ(footprint_of(problem("n4096")).matrix, 64 * mib);
  EXPECT_EQ(rounded(footprint_of(problem("n4096 bf16")).matrix, 3), 336);   // 33.6 MB
  EXPECT_EQ(rounded(footprint_of(problem("n16384 bf16")).matrix, 3), 537);  // 537 MB
  EXPECT_EQ(footprint_of(problem("n65536 bf16")).matrix, 8 * gib);
  EXPECT_EQ(rounded(footprint_of(problem("n2048 bf16")).matrix, 3), 839);  // 8.39 MB
  EXPECT_EQ(footprint_of(problem("n1024")).matrix, 4 * mib);
  EXPECT_EQ(rounded(standard_law(problem("n1024 d64")), 3), 178);  // 17.8 MB
}

// Q4.3 to Q4.6: the tutorial counts one product and one tensor.
TEST(CostModelAnswers, TheTutorialsShortExample) {
  const GpuModel& a100 = gpu_model_from_name("a100");
  const Problem p = problem("n1024 d64");
  EXPECT_EQ(rounded(full_flops(p), 4), 2684);
  EXPECT_EQ(rounded(full_flops(p) / a100.fp16_flops, 2), 86);  // 0.86 us
  EXPECT_EQ(rounded(time_floors(a100, p.element_type, {.flops = full_flops(p)}).flops, 3), 138);
  EXPECT_EQ(without_lse(compulsory_traffic(p)), 1 * mib);
  EXPECT_EQ(without_lse(traffic_without_cache(Dataflow::queries_outside, p,
                                              {.query_tile = 128, .key_tile = 128})),
            4.5 * mib);
}

TEST(CostModelAnswers, TheRidgeOfTheH200InFp16Is206) {
  EXPECT_EQ(std::llround(ridge(gpu_model_from_name("h200"), ElementType::fp16)), 206);
}

// Q1.6: what flash attention must move is a twentieth of what the T4 can.
TEST(CostModelAnswers, FlashAttentionIsNotBoundByTheT4sMemory) {
  const Problem p = problem("b4 h8 n4096 d64 fp16");
  EXPECT_EQ(rounded(without_lse(compulsory_traffic(p)), 2), 67);
  EXPECT_EQ(rounded(without_lse(compulsory_traffic(p)) / 4.52e-3, 3), 148);  // 14.8 GB/s
}

}  // namespace
}  // namespace attest
