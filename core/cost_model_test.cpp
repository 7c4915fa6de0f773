#include "core/cost_model.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace attest {
namespace {

constexpr double kib = 1024;
constexpr double mib = 1024 * kib;
constexpr double gib = 1024 * mib;

Problem problem(std::string_view text) {
  return problem_from_string(text);
}

/// The documents do not count LSE.
double without_lse(const Traffic& traffic) {
  return traffic.total() - traffic.lse;
}

double standard_law(const Problem& p) {
  return without_lse(traffic_without_cache(Dataflow::standard, p, {.query_tile = p.query_len}));
}

/// `value` to `digits` significant decimal digits, as documents quote it.
double rounded(double value, int digits) {
  const double unit = std::pow(10, std::floor(std::log10(value)) + 1 - digits);
  return static_cast<double>(std::llround(value / unit));
}

// S4 exercise 3, one head, N = 4,096, D = 128, fp16, tiles of 128.
TEST(CostModel, StandardAttentionMovesScoresAndWeightsTwiceEach) {
  const Problem p = problem("n4096 d128 fp16");
  const Traffic t = traffic_without_cache(Dataflow::standard, p, {.query_tile = p.query_len});
  EXPECT_EQ(t.s_written, 32 * mib);
  EXPECT_EQ(t.s_read, 32 * mib);
  EXPECT_EQ(t.p_written, 32 * mib);
  EXPECT_EQ(t.p_read, 32 * mib);
  EXPECT_EQ(t.q, 1 * mib);
  EXPECT_EQ(t.k + t.v, 2 * mib);
  EXPECT_EQ(t.o_written, 1 * mib);
  EXPECT_EQ(without_lse(t), 132 * mib);
  EXPECT_EQ(without_lse(t) - t.s_read, 100 * mib) << "the document's list forgets that S is read";
}

TEST(CostModel, QueriesOutsideMovesKAndVOnceAQueryTile) {
  const Problem p = problem("n4096 d128 fp16");
  const Tiling tiles{.query_tile = 128, .key_tile = 128};
  EXPECT_EQ(query_tiles(p, tiles), 32);
  EXPECT_EQ(visited_tile_pairs(p, tiles), 1024);
  const Traffic t = traffic_without_cache(Dataflow::queries_outside, p, tiles);
  EXPECT_EQ(t.q, 1 * mib);
  EXPECT_EQ(t.q / 32, 32 * kib);
  EXPECT_EQ((t.k + t.v) / 1024, 64 * kib);
  EXPECT_EQ((t.k + t.v) / 32, 2 * mib);
  EXPECT_EQ(t.k + t.v, 64 * mib);
  EXPECT_EQ(t.o_written, 1 * mib);
  EXPECT_EQ(without_lse(t), 66 * mib);
  EXPECT_EQ(standard_law(p) / without_lse(t), 2);
  EXPECT_EQ(without_lse(compulsory_traffic(p)), 4 * mib);
  EXPECT_EQ(standard_law(p) / without_lse(compulsory_traffic(p)), 33);
}

TEST(CostModel, TilesOf64WithoutACacheSaveNothing) {
  const Problem p = problem("n4096 d128 fp16");
  const double flash = without_lse(
      traffic_without_cache(Dataflow::queries_outside, p, {.query_tile = 64, .key_tile = 64}));
  EXPECT_EQ(flash, 130 * mib);
  EXPECT_EQ(rounded(standard_law(p) / flash, 3), 102);
}

TEST(CostModel, KeysOutsideMovesOAndItsStatisticsOnceAKeyTile) {
  const Problem p = problem("n4096 d128 fp16");
  const Traffic t =
      traffic_without_cache(Dataflow::keys_outside, p, {.query_tile = 128, .key_tile = 128});
  EXPECT_EQ(t.q, 32 * mib);
  EXPECT_EQ(t.k + t.v, 2 * mib);
  EXPECT_EQ(t.o_read + t.o_written, 64 * mib);
  EXPECT_EQ(t.statistics, 2 * mib);
  EXPECT_EQ(without_lse(t), 100 * mib);
  EXPECT_EQ(rounded(standard_law(p) / without_lse(t), 3), 132);
}

// S4 exercise 3: standard, F2 and F1 with tiles of 128, and a perfect cache, in MiB.
TEST(CostModel, TheOtherPointsOfTheTrafficTable) {
  struct Row {
    std::string_view text;
    double standard, f2, perfect, f1;
  };
  constexpr std::array rows{Row{"n4096 d64 fp16", 130, 33, 2, 51},
                            Row{"n1024 d64 fp32", 17, 4.5, 1, 6.625},
                            Row{"n16384 d128 fp16", 2064, 1032, 16, 1576}};
  const Tiling tiles{.query_tile = 128, .key_tile = 128};
  for (const Row& row : rows) {
    const Problem p = problem(row.text);
    EXPECT_EQ(standard_law(p), row.standard * mib) << row.text;
    EXPECT_EQ(without_lse(traffic_without_cache(Dataflow::queries_outside, p, tiles)),
              row.f2 * mib);
    EXPECT_EQ(without_lse(compulsory_traffic(p)), row.perfect * mib);
    EXPECT_EQ(without_lse(traffic_without_cache(Dataflow::keys_outside, p, tiles)), row.f1 * mib);
  }
}

RC_GTEST_PROP(CostModel, TheLawsAreTheFormulasOfTheDocuments, ()) {
  const auto size = [](std::int64_t limit) { return *rc::gen::inRange<std::int64_t>(1, limit); };
  Problem p{.query_len = size(3000), .head_dim = size(200)};
  p.key_len = p.query_len;
  p.element_type = *rc::gen::element(ElementType::fp32, ElementType::fp16);
  const Tiling tiles{.query_tile = size(300), .key_tile = size(300)};
  const auto n = static_cast<double>(p.query_len), d = static_cast<double>(p.head_dim);
  const double e = p.element_type == ElementType::fp32 ? 4 : 2;
  const auto tr = static_cast<double>(query_tiles(p, tiles));
  const auto tc = static_cast<double>(key_tiles(p, tiles));
  RC_ASSERT(without_lse(traffic_without_cache(Dataflow::queries_outside, p, tiles)) ==
            e * (2 * n * d + 2 * n * d * tr));
  RC_ASSERT(without_lse(traffic_without_cache(Dataflow::keys_outside, p, tiles)) ==
            e * (2 * n * d + 3 * n * d * tc) + 16 * n * tc);
  RC_ASSERT(without_lse(traffic_without_cache(Dataflow::standard, p, tiles)) ==
            e * (4 * n * n + 2 * n * d + 2 * n * d * tr));
  RC_ASSERT(standard_law(p) == e * (4 * n * n + 4 * n * d));
}

// Q1.12, Q1.13 and section D: FLOP per byte in fp16 at N = 4,096.
TEST(CostModel, ArithmeticIntensityCountsBytesAndReadingBack) {
  const Problem d128 = problem("n4096 d128 fp16");
  const Problem d64 = problem("n4096 d64 fp16");
  EXPECT_EQ(rounded(full_flops(d128) / standard_law(d128), 2), 62);
  EXPECT_EQ(rounded(full_flops(d64) / standard_law(d64), 3), 315);
  const Tiling tiles{.query_tile = 128, .key_tile = 128};
  EXPECT_EQ(rounded(full_flops(d128) /
                        without_lse(traffic_without_cache(Dataflow::queries_outside, d128, tiles)),
                    3),
            124);
  EXPECT_EQ(full_flops(d128) / without_lse(compulsory_traffic(d128)), 2048);
}

// Q1.15: 3 tiles instead of 2, and 6 N^2 D operations instead of 4.
TEST(CostModel, ASecondPassReadsKeysAgainAndNotValues) {
  const Problem p = problem("n4096 d64 fp16");
  const Tiling one{.query_tile = 64, .key_tile = 64};
  const Tiling two{.query_tile = 64, .key_tile = 64, .passes = 2};
  const Traffic a = traffic_without_cache(Dataflow::queries_outside, p, one);
  const Traffic b = traffic_without_cache(Dataflow::queries_outside, p, two);
  EXPECT_EQ((b.k + b.v) / (a.k + a.v), 1.5);
  EXPECT_EQ(tiled_flops(p, two) / tiled_flops(p, one), 1.5);
}

// S2 exercise 2: one head, D = 64, fp16, tiles of 64.
TEST(CostModel, TheBenchmarkTableOfTheCourse) {
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

// S2 exercise 3, Q1.9 and Q2.11.
TEST(CostModel, CausalSkipsLessThanHalfOfTheTiles) {
  for (const std::int64_t t : {1, 4, 16, 32, 64}) {
    Problem p = problem(fmt::format("n{} causal_top_left", 64 * t));
    const std::int64_t visited = visited_tile_pairs(p, {.query_tile = 64, .key_tile = 64});
    EXPECT_EQ(2 * t * visited, (t + 1) * t * t);
  }
  const auto speedup = [](double t) { return rounded(2 * t / (t + 1), 3); };
  EXPECT_EQ(speedup(16), 188);
  EXPECT_EQ(speedup(32), 194);
  EXPECT_EQ(speedup(64), 197);
  EXPECT_EQ(visited_tile_pairs(problem("n8 causal_top_left"), {.query_tile = 2, .key_tile = 2}),
            10);
}

// The shape of S3: B = 8, H = 12, N = 4,096, D = 64, fp32.
TEST(CostModel, TheLaddersShapeOnAnH200) {
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
TEST(CostModel, KeysOutsideOfTheLadderIsCausal) {
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
TEST(CostModel, TheTritonPostsShape) {
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

// Q0.1, Q1.1, Q2.1, Q2.4, Q3.22, Q4.2: what the quadratic matrices take.
TEST(CostModel, MatricesOfScores) {
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
TEST(CostModel, TheTutorialsShortExample) {
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

// Q1.7 and section D: N / 4D with one matrix against four tensors, N / 2D + 1 with both.
TEST(CostModel, MemoryGrowsByNOver4D) {
  for (const std::int64_t n : {1024, 4096}) {
    const Footprint f = footprint_of(problem(fmt::format("h24 d64 fp16 n{}", n)));
    EXPECT_EQ(f.matrix / f.tensors, static_cast<double>(n) / (4 * 64));
    EXPECT_EQ(f.standard() / f.tensors, static_cast<double>(n) / (2 * 64) + 1);
  }
  EXPECT_EQ(footprint_of(problem("h24 d64 fp16 n1024")).matrix, 48 * mib);
  EXPECT_EQ(footprint_of(problem("h24 d64 fp16 n4096")).matrix, 768 * mib);
  EXPECT_EQ(footprint_of(problem("h24 d64 fp16 n1024")).tensors, 12 * mib);
  EXPECT_EQ(footprint_of(problem("h24 d64 fp16 n16384")).tensors, 192 * mib);
  EXPECT_EQ(2 * footprint_of(problem("h24 d64 fp16 n8192")).matrix, 6 * gib);
}

TEST(CostModel, TheRidgeOfTheH200InFp16Is206) {
  EXPECT_EQ(std::llround(ridge(gpu_model_from_name("h200"), ElementType::fp16)), 206);
}

// Q1.6: what flash attention must move is a twentieth of what the T4 can.
TEST(CostModel, FlashAttentionIsNotBoundByTheT4sMemory) {
  const Problem p = problem("b4 h8 n4096 d64 fp16");
  EXPECT_EQ(rounded(without_lse(compulsory_traffic(p)), 2), 67);
  EXPECT_EQ(rounded(without_lse(compulsory_traffic(p)) / 4.52e-3, 3), 148);  // 14.8 GB/s
}

TEST(CostModel, SharedHeadsOfKAndVAreCompulsoryOnce) {
  const Traffic grouped = compulsory_traffic(problem("h8/2 n64 d32"));
  const Traffic apart = compulsory_traffic(problem("h8 n64 d32"));
  EXPECT_EQ(4 * grouped.k, apart.k);
  EXPECT_EQ(grouped.q, apart.q);
}

RC_GTEST_PROP(CostModel, NoDataflowMovesLessThanIsCompulsory, ()) {
  const auto size = [](std::int64_t limit) { return *rc::gen::inRange<std::int64_t>(1, limit); };
  const Problem p{.query_heads = 4,
                  .kv_heads = *rc::gen::element<std::int64_t>(1, 2, 4),
                  .query_len = size(200),
                  .key_len = size(200),
                  .head_dim = size(64)};
  const Tiling tiles{.query_tile = size(70), .key_tile = size(70)};
  for (const Dataflow dataflow :
       {Dataflow::standard, Dataflow::keys_outside, Dataflow::queries_outside}) {
    RC_ASSERT(traffic_without_cache(dataflow, p, tiles).total() >= compulsory_traffic(p).total());
  }
}

RC_GTEST_PROP(CostModel, AKeyTileIsVisitedWhenSomeRowOfTheQueryTileSeesSomeOfIt, ()) {
  const auto size = [](std::int64_t limit) { return *rc::gen::inRange<std::int64_t>(1, limit); };
  const Problem p{
      .query_len = size(50),
      .key_len = size(50),
      .mask = *rc::gen::elementOf(std::vector<Mask>(all_masks().begin(), all_masks().end()))};
  const Tiling tiles{.query_tile = size(20), .key_tile = size(20)};
  std::int64_t pairs = 0;
  for (std::int64_t i = 0; i < query_tiles(p, tiles); ++i) {
    std::int64_t visited = 0;
    for (std::int64_t j = 0; j < key_tiles(p, tiles); ++j) {
      bool is_seen = false;
      for (std::int64_t q = i * tiles.query_tile; q < (i + 1) * tiles.query_tile; ++q) {
        is_seen |= q < p.query_len && p.visible_keys(q) > j * tiles.key_tile;
      }
      visited += is_seen;
    }
    RC_ASSERT(visited_key_tiles(p, tiles, i) == visited);
    pairs += visited;
  }
  RC_ASSERT(visited_tile_pairs(p, tiles) == pairs);
}

TEST(CostModel, NothingIsVisitedWithoutKeys) {
  const Problem p = problem("q64 k0");
  EXPECT_EQ(visited_tile_pairs(p, {.query_tile = 32, .key_tile = 32}), 0);
  EXPECT_EQ(tiled_flops(p, {.query_tile = 32, .key_tile = 32}), 0);
}

}  // namespace
}  // namespace attest
