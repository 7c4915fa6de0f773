// Lists of keys: the arrays that a launch gets say what Problem::sees says.
#include "core/attention/key_lists.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace attest {
namespace {

/// Every kind of list comes up among so many seeds.
template <typename Check>
void for_each_problem(const Check& check) {
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    for (const std::int64_t length_seed : {0, 3}) {
      Problem p{.batch = 3, .query_len = 11, .key_len = 29};
      p.length_seed = static_cast<std::uint64_t>(length_seed);
      p.list_seed = seed;
      p.list_rows = 1 + static_cast<std::int64_t>(seed % 5);
      p.list_keys = 1 + static_cast<std::int64_t>(seed % 8);
      check(p);
    }
  }
}

TEST(KeyLists, NameEachItemOnceAndLeaveAQueryTheKeysThatItSees) {
  std::set<bool> ascends;
  for_each_problem([&](const Problem& p) {
    const KeyListArrays arrays = key_list_arrays(p);
    const KeyLists lists{.rows = p.list_rows,
                         .keys = p.list_keys,
                         .lists = p.lists(),
                         .room = arrays.room,
                         .items = arrays.items.data(),
                         .counts = arrays.counts.data()};
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t n = 0; n < p.query_len_of(b); ++n) {
        const std::int64_t list = lists.list_of(b, n);
        const std::int32_t* const items = lists.items_of(list);
        const std::set<std::int32_t> named(items, items + lists.counts[list]);
        ASSERT_EQ(std::ssize(named), lists.counts[list]) << "each once";
        ascends.insert(std::is_sorted(items, items + lists.counts[list]));
        for (std::int64_t key = 0; key < p.key_len_of(b); ++key) {
          const auto item = static_cast<std::int32_t>(key / p.list_keys);
          ASSERT_EQ(named.contains(item), p.sees(b, n, key)) << to_string(p);
        }
      }
    }
  });
  EXPECT_EQ(ascends.size(), 2U) << "lists are in no order";
}

TEST(KeyLists, HoldNothingThatTheirListNamesPastItsCount) {
  for_each_problem([](const Problem& p) {
    const KeyListArrays arrays = key_list_arrays(p);
    for (std::size_t list = 0; list < arrays.counts.size(); ++list) {
      const std::int64_t b = static_cast<std::int64_t>(list) / p.lists();
      const std::int64_t of_entry = static_cast<std::int64_t>(list) % p.lists();
      for (std::int64_t i = arrays.counts[list]; i < arrays.room; ++i) {
        const std::int64_t item =
            arrays
                .items[list * static_cast<std::size_t>(arrays.room) + static_cast<std::size_t>(i)];
        const bool exists = item >= 0 && item < p.list_items(b);
        const bool has_queries = of_entry * p.list_rows < p.query_len_of(b);
        ASSERT_FALSE(exists && has_queries && p.names_item(b, of_entry, item)) << to_string(p);
      }
    }
  });
}

TEST(KeyLists, NameNoItemOrAllOrTheEndsOrSome) {
  std::set<std::string> kinds;
  for_each_problem([&](const Problem& p) {
    const std::int64_t items = p.list_items(0);
    std::int64_t named = 0;
    for (std::int64_t i = 0; i < items; ++i) named += p.names_item(0, 0, i) ? 1 : 0;
    if (items < 4) return;
    kinds.insert(named == 0 ? "none" : named == items ? "all" : "some");
    if (named == 2 && p.names_item(0, 0, 0) && p.names_item(0, 0, items - 1)) kinds.insert("ends");
  });
  EXPECT_EQ(kinds.size(), 4U);
}

TEST(KeyLists, OfASeedThatIsAMultipleOf2To32NameAboutAsManyKeysEach) {
  for (const std::uint64_t one_in : {1, 16, 64}) {
    Problem p{.batch = 20, .query_len = 3, .key_len = 32'768};
    p.list_seed = one_in << 32U;
    const double mean = 32'768.0 / static_cast<double>(one_in);
    // Five standard deviations of a binomial distribution.
    const double far = 5 * std::sqrt(mean * (1 - 1 / static_cast<double>(one_in)));
    std::set<std::int32_t> first_items;
    const KeyListArrays arrays = key_list_arrays(p);
    for (const std::int32_t count : arrays.counts) ASSERT_LE(std::fabs(count - mean), far);
    if (one_in == 1) continue;
    for (std::size_t list = 0; list < arrays.counts.size(); ++list) {
      first_items.insert(arrays.items[list * static_cast<std::size_t>(arrays.room)]);
    }
    EXPECT_GT(first_items.size(), 50U) << "each list has keys of its own";
  }
}

}  // namespace
}  // namespace attest
