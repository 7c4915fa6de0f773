#include "core/attention/paging.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/attention/storage.hpp"
#include "core/base/error.hpp"
#include "core/operations/forward.hpp"

namespace attest {
namespace {

namespace gen = rc::gen;

Paging drawn_paging() {
  return {.page_size = *gen::element<std::int64_t>(1, 3, 8, 16),
          .table = *gen::element(TableForm::dense, TableForm::csr),
          .joins_kv = *gen::arbitrary<bool>(),
          .shares_prefix = *gen::arbitrary<bool>(),
          .spare_pages = *gen::inRange<std::int64_t>(0, 4),
          .spare_columns = *gen::inRange<std::int64_t>(0, 4),
          .shuffle_seed = *gen::inRange<std::uint64_t>(0, 9),
          .unused = *gen::element(Unused::nan, Unused::infinity, Unused::large)};
}

Problem drawn_problem() {
  Problem p = problem_from_string("b4 h2/1 q3 k20 d4");
  p.batch = *gen::inRange<std::int64_t>(1, 5);
  p.key_len = *gen::inRange<std::int64_t>(0, 40);
  p.length_seed = *gen::inRange<std::uint64_t>(0, 4);
  p.shared_keys = *gen::inRange<std::int64_t>(0, 20);
  return p;
}

TEST(Paging, ItsTextIsReadBack) {
  EXPECT_TRUE(rc::check([] {
    const Paging paging = drawn_paging();
    RC_ASSERT(paging_from_string(to_string(paging)) == paging);
  }));
  EXPECT_EQ(to_string(Paging{}), "");
}

TEST(Paging, BadTextIsRefusedWithWhatIsAllowed) {
  for (const char* const text :
       {"", "csr", "paged", "paged16/round", "paged-3/csr", "paged8/spare"}) {
    EXPECT_THROW((void)paging_from_string(text), InvalidInput) << text;
  }
  const Problem narrow = problem_from_string("h1 n4 d8 dv4");
  EXPECT_THROW(validate(paging_from_string("paged8/joined"), narrow), InvalidInput);
  EXPECT_THROW(validate(paging_from_string("paged70000"), narrow), InvalidInput);
  EXPECT_THROW(validate({.page_size = -1}, narrow), InvalidInput);
}

TEST(Paging, NoTwoKeysShareASlotButThoseOfASharedPrefix) {
  EXPECT_TRUE(rc::check([] {
    const Problem p = drawn_problem();
    const Paging paging = drawn_paging();
    const PageMap map = page_map(p, paging);
    std::set<std::int32_t> owned;
    for (std::int64_t b = 0; b < p.batch; ++b) {
      const auto& pages = map.pages[static_cast<std::size_t>(b)];
      RC_ASSERT(std::ssize(pages) == (p.key_len_of(b) + paging.page_size - 1) / paging.page_size);
      for (std::size_t i = 0; i < pages.size(); ++i) {
        RC_ASSERT(pages[i] >= 0 && pages[i] < map.pool_pages);
        const bool is_shared =
            static_cast<std::int64_t>(i + 1) * paging.page_size <= map.shared_keys;
        RC_ASSERT(owned.insert(pages[i]).second || is_shared);
      }
    }
    RC_ASSERT(map.shared_keys <= p.shared_keys);
    RC_ASSERT(paging.shares_prefix || map.shared_keys == 0);
  }));
}

TEST(Paging, StoredKeysAreRestoredAndUnusedSlotsHoldTheFill) {
  EXPECT_TRUE(rc::check([] {
    Problem p = drawn_problem();
    p.shared_keys = 0;
    const Paging paging = drawn_paging();
    const Storage storage = storage_of(forward_operation[forward::k], p, paging);
    Tensor<float> keys(key_shape(p));
    std::iota(keys.values().begin(), keys.values().end(), 1.0F);
    const Tensor<float> pool = stored(storage, keys, -7.0F);
    const Tensor<float> back = restored(storage, pool, key_shape(p), 0.0F);
    std::int64_t held = 0;
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t n = 0; n < p.key_len; ++n) {
        const bool exists = n < p.key_len_of(b);
        RC_ASSERT(back.at(b, 0, n, 0) == (exists ? keys.at(b, 0, n, 0) : 0.0F));
        held += exists ? p.head_dim : 0;
      }
    }
    RC_ASSERT(std::ranges::count(pool.values(), -7.0F) == pool.size() - held);
  }));
}

TEST(Paging, BothTablesNameThePagesOfEveryEntry) {
  EXPECT_TRUE(rc::check([] {
    const Problem p = drawn_problem();
    const Paging paging = drawn_paging();
    const PageMap map = page_map(p, paging);
    const PageTableArrays arrays = page_table_arrays(p, paging);
    for (std::int64_t b = 0; b < p.batch; ++b) {
      const auto entry = static_cast<std::size_t>(b);
      const std::int64_t first = arrays.starts.empty() ? b * arrays.columns : arrays.starts[entry];
      const auto& pages = map.pages[entry];
      for (std::size_t i = 0; i < pages.size(); ++i) {
        RC_ASSERT(arrays.pages[static_cast<std::size_t>(first) + i] == pages[i]);
      }
      if (arrays.starts.empty()) {
        RC_ASSERT(arrays.lengths[entry] == p.key_len_of(b));
      } else {
        // A full last page holds page_size keys, never 0.
        const std::int64_t before_last =
            pages.empty() ? 0 : (std::ssize(pages) - 1) * paging.page_size;
        RC_ASSERT(before_last + arrays.lengths[entry] == p.key_len_of(b));
      }
    }
  }));
}

TEST(Paging, AShuffledPoolUsesItsLastPage) {
  const Problem p = problem_from_string("b1 h1 q1 k3 d4");
  const PageMap map = page_map(p, {.page_size = 1, .spare_pages = 70000, .shuffle_seed = 3});
  EXPECT_EQ(map.pages[0][0], map.pool_pages - 1);
}

}  // namespace
}  // namespace attest
