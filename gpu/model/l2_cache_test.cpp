#include "gpu/model/l2_cache.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <set>
#include <vector>

#include "core/base/error.hpp"

namespace attest {
namespace {

struct Access {
  std::int64_t address, bytes;
  bool is_write;
};

L2Counts run(const L2Shape& shape, const std::vector<Access>& accesses) {
  L2Cache cache(shape);
  for (const Access& a : accesses) {
    a.is_write ? cache.write(a.address, a.bytes) : cache.read(a.address, a.bytes);
  }
  cache.flush();
  return cache.counts();
}

std::vector<Access> random_accesses(std::int64_t range) {
  std::vector<Access> accesses;
  const int count = *rc::gen::inRange(0, 300);
  for (int i = 0; i < count; ++i) {
    accesses.push_back({*rc::gen::inRange<std::int64_t>(0, range),
                        *rc::gen::inRange<std::int64_t>(0, 400), *rc::gen::arbitrary<bool>()});
  }
  return accesses;
}

/// Sectors [first, last] of an access.
std::pair<std::int64_t, std::int64_t> sectors_of(const Access& a) {
  return {a.address / 32, (a.address + a.bytes + 31) / 32};
}

RC_GTEST_PROP(L2Cache, WithoutACacheEverythingGoesToMemory, ()) {
  const std::vector<Access> accesses = random_accesses(4096);
  const L2Counts c = run({.bytes = 0}, accesses);
  std::int64_t read = 0, written = 0;
  for (const Access& a : accesses) {
    const auto [first, last] = sectors_of(a);
    if (a.bytes > 0) (a.is_write ? written : read) += (last - first) * 32;
  }
  RC_ASSERT(c.dram_read == read && c.requested_read == read);
  RC_ASSERT(c.dram_written == written && c.requested_written == written);
}

RC_GTEST_PROP(L2Cache, ACacheThatHoldsEverythingMovesEachSectorOnce, ()) {
  const std::vector<Access> accesses = random_accesses(4096);
  // As many ways as there can be lines: whatever the hash does, none is replaced.
  const L2Counts c = run({.bytes = 64 * 128 * 4, .ways = 64}, accesses);
  std::set<std::int64_t> known, written;
  std::int64_t fetched = 0;
  for (const Access& a : accesses) {
    for (auto [s, last] = sectors_of(a); a.bytes > 0 && s < last; ++s) {
      const bool is_new = known.insert(s).second;
      if (is_new && !a.is_write) fetched += 32;
      if (a.is_write) written.insert(s);
    }
  }
  RC_ASSERT(c.dram_read == fetched);
  RC_ASSERT(c.dram_written == static_cast<std::int64_t>(written.size()) * 32);
}

// With one set there is no hash: the definition of least recently used, in a list.
RC_GTEST_PROP(L2Cache, OneSetReplacesTheLeastRecentlyUsedLine, ()) {
  const int ways = *rc::gen::inRange(1, 6);
  const std::vector<Access> accesses = random_accesses(2048);
  const L2Counts c = run({.bytes = ways * 128, .ways = ways}, accesses);
  std::list<std::int64_t> recent;  // lines, latest first
  std::map<std::int64_t, std::pair<std::set<std::int64_t>, std::set<std::int64_t>>> lines;
  std::int64_t read = 0, written = 0;
  const auto drop = [&](std::int64_t line) {
    written += static_cast<std::int64_t>(lines[line].second.size()) * 32;
    lines.erase(line);
  };
  for (const Access& a : accesses) {
    for (auto [s, last] = sectors_of(a); a.bytes > 0 && s < last; ++s) {
      const std::int64_t line = s / 4;
      recent.remove(line);
      recent.push_front(line);
      if (static_cast<int>(recent.size()) > ways) {
        drop(recent.back());
        recent.pop_back();
      }
      auto& [valid, changed] = lines[line];
      if (valid.insert(s).second && !a.is_write) read += 32;
      if (a.is_write) changed.insert(s);
    }
  }
  for (const std::int64_t line : recent)
    written += static_cast<std::int64_t>(lines[line].second.size()) * 32;
  RC_ASSERT(c.dram_read == read);
  RC_ASSERT(c.dram_written == written);
}

TEST(L2Cache, AWriteFetchesNothingAndIsReadBackFromTheCache) {
  const L2Counts c = run({.bytes = 4096}, {{0, 128, true}, {0, 128, false}, {0, 128, true}});
  EXPECT_EQ(c.dram_read, 0);
  EXPECT_EQ(c.dram_written, 128);
  EXPECT_EQ(c.read_hit_rate(), 1);
  EXPECT_EQ(c.hit_rate(), 1);
}

TEST(L2Cache, OneByteMovesASectorAndNotALine) {
  EXPECT_EQ(run({.bytes = 4096}, {{100, 1, false}}).dram_read, 32);
  EXPECT_EQ(run({.bytes = 4096}, {{95, 2, false}}).dram_read, 64);
}

TEST(L2Cache, ShapesThatAreNoneAreRefused) {
  EXPECT_THROW(L2Cache({.bytes = -1}), InvalidInput);
  EXPECT_THROW(L2Cache({.bytes = 4096, .ways = 0}), InvalidInput);
  EXPECT_THROW(L2Cache({.bytes = 4096, .line_bytes = 100}), InvalidInput);
  EXPECT_THROW(L2Cache({.bytes = 4096, .line_bytes = 4096, .sector_bytes = 32}), InvalidInput);
}

}  // namespace
}  // namespace attest
