#include "gpu/model/cost_model_test.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <vector>

namespace attest {
namespace {

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

TEST(CostModel, AMaskSavesReadingScoresAndNotWritingThem) {
  const Problem p = problem("n4096 d128 fp16 causal_top_left");
  const Traffic t =
      traffic_without_cache(Dataflow::standard, p, {.query_tile = 64, .key_tile = 64});
  EXPECT_EQ(t.s_written, 32 * mib);
  EXPECT_EQ(t.p_written, 32 * mib);
  EXPECT_EQ(t.s_read, 32 * mib * 2080 / 4096);
  EXPECT_EQ(t.p_read, t.s_read);
  EXPECT_EQ(t.v / t.k, 2080.0 / 4096);
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

// Q1.13: K and V out of the L2 cost a byte for each Br operations in fp16, whatever the length.
TEST(CostModel, IntensityAgainstTheL2IsTheQueryTile) {
  for (const std::int64_t n : {1024, 8192}) {
    for (const std::int64_t tile : {64, 128}) {
      const Problem p = problem(fmt::format("n{} d64 fp16", n));
      const Traffic t = traffic_without_cache(Dataflow::queries_outside, p,
                                              {.query_tile = tile, .key_tile = tile});
      EXPECT_EQ(full_flops(p) / (t.k + t.v), static_cast<double>(tile));
    }
  }
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
  // Q1.8: what fits.
  EXPECT_EQ(2 * footprint_of(problem("h24 d64 fp16 n8192")).matrix, 6 * gib);
  EXPECT_EQ(2 * footprint_of(problem("h24 d64 fp16 n16384")).matrix, 24 * gib);
  EXPECT_EQ(rounded(2 * footprint_of(problem("h32 d64 fp16 n32768")).matrix, 3), 137);
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
  Tiling tiles{.query_tile = size(70), .key_tile = size(70)};
  tiles.first_row = -*rc::gen::inRange<std::int64_t>(0, tiles.query_tile);
  for (const Dataflow dataflow :
       {Dataflow::standard, Dataflow::keys_outside, Dataflow::queries_outside}) {
    RC_ASSERT(traffic_without_cache(dataflow, p, tiles).total() >= compulsory_traffic(p).total());
  }
}

RC_GTEST_PROP(CostModel, AKeyTileIsVisitedWhenSomeRowOfTheQueryTileSeesSomeOfIt, ()) {
  const auto size = [](std::int64_t limit) { return *rc::gen::inRange<std::int64_t>(1, limit); };
  Problem p{.query_len = size(50),
            .key_len = size(50),
            .mask = *rc::gen::elementOf(std::vector<Mask>(all_masks().begin(), all_masks().end()))};
  if (is_window(p.mask)) p.window = {.left = size(60) - 2, .right = size(60) - 2};
  Tiling tiles{.query_tile = size(20), .key_tile = size(20)};
  tiles.first_row = -*rc::gen::inRange<std::int64_t>(0, tiles.query_tile);
  std::int64_t pairs = 0, queries = 0;
  for (std::int64_t i = 0; i < query_tiles(p, tiles); ++i) {
    std::int64_t first = -1, last = -1;
    for (std::int64_t j = 0; j < key_tiles(p, tiles); ++j) {
      bool is_seen = false;
      for (std::int64_t row = 0; row < tiles.query_tile; ++row) {
        const std::int64_t q = tiles.first_row + i * tiles.query_tile + row;
        if (q < 0 || q >= p.query_len) continue;
        const KeyRange range = p.visible_range(0, q);
        is_seen |= std::max(range.begin, j * tiles.key_tile) <
                   std::min(range.end, (j + 1) * tiles.key_tile);
      }
      if (is_seen && first < 0) first = j;
      if (is_seen) last = j;
    }
    const KeyRange visited = visited_key_tiles(p, tiles, i);
    RC_ASSERT(visited == (first < 0 ? KeyRange{} : KeyRange{first, last + 1}));
    pairs += visited.size();
    RC_ASSERT(queries_of(p, tiles, i).begin == queries);
    queries = queries_of(p, tiles, i).end;
  }
  RC_ASSERT(queries == p.query_len);
  RC_ASSERT(visited_tile_pairs(p, tiles) == pairs);
}

TEST(CostModel, ColumnsOfVAndOAreCountedApartFromThoseOfQAndK) {
  const Problem p = problem("b2 h6/2 q96 k128 d64 dv16 fp16");
  EXPECT_EQ(full_flops(p), 2.0 * 2 * 6 * 96 * 128 * (64 + 16));
  EXPECT_EQ(exponentials(p), 2.0 * 6 * 96 * 128);
  const Traffic once = compulsory_traffic(p);
  EXPECT_EQ(once.q, 2.0 * 2 * 6 * 96 * 64);
  EXPECT_EQ(once.k, 2.0 * 2 * 2 * 128 * 64);
  EXPECT_EQ(once.v, 2.0 * 2 * 2 * 128 * 16);
  EXPECT_EQ(once.o_written, 2.0 * 2 * 6 * 96 * 16);
}

TEST(CostModel, RowsThatDoNotExistAreNotCounted) {
  const Problem p = problem("b5 h2 n70 d32 lengths9");
  EXPECT_EQ(compulsory_traffic(p).q, 4.0 * 2 * query_starts(p).back() * 32);
  EXPECT_EQ(compulsory_traffic(p).v, 4.0 * 2 * key_starts(p).back() * 32);
}

TEST(CostModel, NothingIsVisitedWithoutKeys) {
  const Problem p = problem("q64 k0");
  EXPECT_EQ(visited_tile_pairs(p, {.query_tile = 32, .key_tile = 32}), 0);
  EXPECT_EQ(tiled_flops(p, {.query_tile = 32, .key_tile = 32}), 0);
}

}  // namespace
}  // namespace attest
