// Features of cases whose K and V lie in pages, or whose queries are few.
#include <fmt/format.h>

#include <algorithm>

#include "core/attention/storage.hpp"
#include "core/operations/forward.hpp"
#include "verify/cases/feature_list.hpp"

namespace attest {
namespace {

const Paging& paging_of(const Case& c) {
  return c.layouts.paging;
}

/// Keys from the multiple of `unit` before or at the first visible key of the last row.
bool begins_inside(const Case& c, std::int64_t unit) {
  if (!is_window(c.problem.mask) || unit < 2) return false;
  return any_entry(c, [&](std::int64_t entry, std::int64_t) {
    const std::int64_t queries = c.problem.query_len_of(entry);
    if (queries == 0) return false;
    const KeyRange range = c.problem.visible_range(entry, queries - 1);
    return range.size() > 0 && range.begin % unit != 0;
  });
}

void add_pages(std::vector<Feature>& list) {
  const auto add = [&](std::string name, std::vector<int> zoo, Predicate holds) {
    list.push_back(feature(
        std::move(name), std::move(zoo),
        [holds = std::move(holds)](const Case& c) { return paging_of(c).is_used() && holds(c); }));
    list.back().needs = "a kernel that takes pages";
  };
  add("pages in shuffled order", {48},
      [](const Case& c) { return paging_of(c).shuffle_seed != 0; });
  add("gaps between pages", {49}, [](const Case& c) {
    const TensorLayout& k = c.layouts[forward::k];
    return k.order == DimOrder::bhnd && k.outer_gap > 0;
  });
  add("K and V in one pool", {49}, [](const Case& c) { return paging_of(c).joins_kv; });
  add("a last page that is not full, of an entry past the first", {50}, [](const Case& c) {
    return any_entry(c, [&](std::int64_t entry, std::int64_t keys) {
      return entry > 0 && keys % paging_of(c).page_size != 0;
    });
  });
  for (const std::int64_t beside : {-1, 0, 1}) {
    add(fmt::format("an entry of whole pages{}", beside == 0  ? ""
                                                 : beside < 0 ? " less one key"
                                                              : " and one key"),
        {51, 56}, [beside](const Case& c) {
          return any_entry(c, [&](std::int64_t, std::int64_t keys) {
            const std::int64_t size = paging_of(c).page_size;
            return keys > 1 && (keys - beside) % size == 0;
          });
        });
  }
  add("page size unlike the number of heads, heads outside of slots", {52}, [](const Case& c) {
    return c.layouts[forward::k].order == DimOrder::bhnd && c.problem.kv_heads > 1 &&
           paging_of(c).page_size != c.problem.kv_heads;
  });
  add("page size unlike the number of heads, slots outside of heads", {52}, [](const Case& c) {
    return c.layouts[forward::k].order == DimOrder::bnhd && c.problem.kv_heads > 1 &&
           paging_of(c).page_size != c.problem.kv_heads;
  });
  add("pages and several queries", {53}, [](const Case& c) { return c.problem.query_len > 1; });
  add("a window that begins inside a page", {54},
      [](const Case& c) { return begins_inside(c, paging_of(c).page_size); });
  add("a number of a page past 65,535", {55}, [](const Case& c) {
    const PageMap map = page_map(c.problem, paging_of(c));
    return std::ranges::any_of(map.pages, [](const auto& pages) {
      return std::ranges::any_of(pages, [](std::int32_t page) { return page > 0xffff; });
    });
  });
  add("pages beyond 2^31 elements", {55}, [](const Case& c) {
    const Shape shape = stored_shape(c.problem, forward::k, paging_of(c));
    return span_of(shape, c.layouts[forward::k]) > far_elements ||
           span_of(stored_shape(c.problem, forward::v, paging_of(c)), c.layouts[forward::v]) >
               far_elements;
  });
  add("pages of 32 keys", {56}, [](const Case& c) { return paging_of(c).page_size == 32; });
  add("over 2,048 keys in pages", {50}, [](const Case& c) { return c.problem.key_len > 2048; });
  add("several pages of at most 32 keys, head_dim above 128", {43, 56}, [](const Case& c) {
    return c.problem.head_dim > 128 && paging_of(c).page_size <= 32 &&
           c.problem.key_len > paging_of(c).page_size;
  });
  add("pages shorter than a product of tensor cores", {56},
      [](const Case& c) { return paging_of(c).page_size < 16; });
  add("pages whose size is no power of two", {56}, [](const Case& c) {
    const std::int64_t size = paging_of(c).page_size;
    return (size & (size - 1)) != 0;
  });
  for (const Unused unused : {Unused::nan, Unused::infinity, Unused::large}) {
    add(fmt::format("unused slots hold {}", unused_names()[static_cast<std::size_t>(unused)]),
        {58, 54}, [unused](const Case& c) {
          return paging_of(c).unused == unused &&
                 any_entry(c, [&](std::int64_t, std::int64_t keys) {
                   return keys % paging_of(c).page_size != 0;
                 });
        });
  }
  add("pages that no entry has", {50, 58},
      [](const Case& c) { return paging_of(c).spare_pages > 0; });
  add("table entries past the longest entry", {54, 65},
      [](const Case& c) { return paging_of(c).spare_columns > 0; });
  add("a dense page table", {50},
      [](const Case& c) { return paging_of(c).table == TableForm::dense && c.problem.batch > 1; });
  add("a page table in CSR", {50, 51},
      [](const Case& c) { return paging_of(c).table == TableForm::csr && c.problem.batch > 1; });
  add("entries that share pages", {74}, [](const Case& c) {
    return paging_of(c).shares_prefix && c.problem.batch > 1 &&
           c.problem.shared_keys >= paging_of(c).page_size;
  });
  add("pages and an entry without keys", {62, 69}, [](const Case& c) {
    return c.problem.batch > 1 && c.problem.key_len > 0 &&
           any_entry(c, [](std::int64_t, std::int64_t keys) { return keys == 0; });
  });
  add("pages and lengths", {50, 60},
      [](const Case& c) { return c.problem.length_seed != 0 && c.problem.batch > 1; });
}

void add_splits(std::vector<Feature>& list) {
  const auto add = [&](std::string name, std::vector<int> zoo, Predicate holds) {
    list.push_back(feature(std::move(name), std::move(zoo), std::move(holds)));
    list.back().needs = "a kernel with key_split_rule";
  };
  const auto has_chunks = [](const Case& c) {
    return c.plan.split_keys > 0 && c.problem.key_len > c.plan.split_keys;
  };
  add("several chunks of fixed keys", {59, 75}, has_chunks);
  add("over 8 chunks", {59}, [](const Case& c) {
    return c.plan.split_keys > 0 && c.problem.key_len > 8 * c.plan.split_keys;
  });
  add("chunks merged by the last block", {61},
      [=](const Case& c) { return has_chunks(c) && c.plan.combine == Combine::last_block; });
  add("chunks merged by a second kernel", {61, 68},
      [=](const Case& c) { return has_chunks(c) && c.plan.combine == Combine::second_kernel; });
  add("chunks merged in a cluster", {61},
      [=](const Case& c) { return has_chunks(c) && c.plan.combine == Combine::cluster; });
  add("blocks of a cluster that have no chunk", {61, 66}, [=](const Case& c) {
    return has_chunks(c) && c.plan.combine == Combine::cluster &&
           any_entry(c, [&](std::int64_t, std::int64_t keys) { return keys <= c.plan.split_keys; });
  });
  add("a launch that begins while the one before ends", {68},
      [](const Case& c) { return c.plan.dependent_launch == DependentLaunch::yes; });
  add("chunks of a prefix that entries share", {69, 74}, [](const Case& c) {
    const Paging& paging = paging_of(c);
    if (c.plan.cascade != Cascade::yes || !paging.shares_prefix || c.plan.split_keys == 0) {
      return false;
    }
    const std::int64_t shared = c.problem.shared_keys / paging.page_size * paging.page_size;
    return c.problem.batch > 1 && shared >= c.plan.split_keys &&
           c.problem.key_len > shared / c.plan.split_keys * c.plan.split_keys;
  });
  for (const auto& [name, rule] :
       {std::pair("own", KeySplitRule::own), std::pair("even", KeySplitRule::even)}) {
    add(fmt::format("chunks by rule {}", name), {65, 75}, [rule = rule](const Case& c) {
      return c.plan.key_split_rule == rule && c.problem.key_len > 64;
    });
  }
  add("one key past a chunk", {62}, [](const Case& c) {
    return c.plan.split_keys > 0 && any_entry(c, [&](std::int64_t, std::int64_t keys) {
             return keys > 1 && (keys - 1) % c.plan.split_keys == 0;
           });
  });
  add("a window that begins inside a chunk", {63},
      [](const Case& c) { return begins_inside(c, c.plan.split_keys); });
  add("a window that leaves whole chunks behind", {63}, [](const Case& c) {
    const Problem& p = c.problem;
    return is_window(p.mask) && c.plan.split_keys > 0 &&
           any_entry(c, [&](std::int64_t entry, std::int64_t) {
             return p.query_len_of(entry) > 0 &&
                    p.visible_range(entry, 0).begin >= c.plan.split_keys;
           });
  });
  add("one query of each head, chunks, grouped heads", {70, 73}, [=](const Case& c) {
    return has_chunks(c) && c.problem.query_len == 1 && c.problem.query_heads > c.problem.kv_heads;
  });
  add("2 to 16 queries under a causal mask that ends at the last key", {70, 71}, [](const Case& c) {
    return c.problem.query_len > 1 && c.problem.query_len <= 16 &&
           c.problem.mask == Mask::causal_bottom_right && c.problem.key_len > c.problem.query_len;
  });
  add("a window over one query", {72}, [](const Case& c) {
    return is_window(c.problem.mask) && c.problem.query_len == 1 && c.problem.window.left >= 0 &&
           c.problem.key_len > c.problem.window.left + 1;
  });
  add("lengths with and without chunks in one batch", {66, 75}, [](const Case& c) {
    const auto longer = [&](std::int64_t, std::int64_t keys) { return keys > c.plan.split_keys; };
    const auto shorter = [&](std::int64_t, std::int64_t keys) {
      return keys > 0 && keys <= c.plan.split_keys;
    };
    return c.plan.split_keys > 0 && any_entry(c, longer) && any_entry(c, shorter);
  });
}

}  // namespace

void add_paging_features(std::vector<Feature>& list) {
  add_pages(list);
  add_splits(list);
}

}  // namespace attest
