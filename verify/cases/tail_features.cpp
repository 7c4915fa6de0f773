// What the heavy tail, whole square tiles and Plans without tiles are drawn for.
#include <algorithm>

#include "core/attention/storage.hpp"
#include "verify/cases/feature_list.hpp"
#include "verify/cases/lengths.hpp"

namespace attest {
namespace {

/// Some query of the first entry sees more than `keys` keys, but not all.
bool has_window_above(const Problem& p, std::int64_t keys) {
  if (!is_window(p.mask)) return false;
  for (std::int64_t query = 0; query < p.query_len_of(0); ++query) {
    const std::int64_t seen = p.visible_range(0, query).size();
    if (seen > keys && seen < p.key_len_of(0)) return true;
  }
  return false;
}

bool is_square_of_tiles(const Case& c) {
  const Problem& p = c.problem;
  const std::int64_t rows = tile_or_usual(c.plan.query_tile), keys = tile_or_usual(c.plan.key_tile);
  const bool is_causal = p.mask == Mask::causal_top_left || p.mask == Mask::causal_bottom_right;
  return is_causal && p.length_seed == 0 && p.query_len == p.key_len && p.query_len >= 2 * rows &&
         p.key_len >= 2 * keys && p.query_len % rows == 0 && p.key_len % keys == 0;
}

/// Whole key tiles and more, around what most kernels have where the Plan names none.
bool has_key_tiles(const Case& c, std::int64_t tiles) {
  return c.problem.key_len > tiles * tile_or_usual(c.plan.key_tile);
}

/// True if some entry of a packed batch has more keys than a tile.
bool has_long_packed_entry(const Case& c) {
  return c.problem.length_seed != 0 && any_entry(c, [&](std::int64_t, std::int64_t keys) {
           return keys > tile_or_usual(c.plan.key_tile);
         });
}

/// True if some tensor spans more elements.
bool spans_more_than(const Case& c, std::int64_t elements) {
  std::int64_t longest = 0;
  for_each_tensor(*c.problem.operation, [&](const TensorSpec& tensor, auto index) {
    if (!tensor.is_strided) return;
    longest = std::max(longest,
                       span_of(stored_shape(c.problem, index, c.layouts.paging), c.layouts[index]));
  });
  return longest > elements;
}

}  // namespace

void add_tail_features(std::vector<Feature>& list) {
  const auto add = [&](std::string name, std::vector<int> zoo, Predicate holds,
                       std::string needs = {}) {
    list.push_back(feature(std::move(name), std::move(zoo), std::move(holds)));
    list.back().needs = std::move(needs);
  };
  add("over 256 queries", {}, [](const Case& c) { return c.problem.query_len > 256; });
  add("over 1,024 queries", {}, [](const Case& c) { return c.problem.query_len > 1024; });
  add("over 1,024 keys", {}, [](const Case& c) { return c.problem.key_len > 1024; });
  add("over 2,048 keys", {}, [](const Case& c) { return c.problem.key_len > 2048; });
  add("over eight key tiles", {},
      [](const Case& c) { return c.plan.key_tile > 1 && c.problem.key_len > 8 * c.plan.key_tile; });
  add("key splits of over 2,048 keys", {8, 34},
      [](const Case& c) { return c.plan.key_splits > 1 && c.problem.key_len > 2048; });
  add("one query, an odd number of keys above 256", {10}, [](const Case& c) {
    return c.problem.query_len == 1 && c.problem.key_len > 256 && c.problem.key_len % 2 == 1;
  });
  add("causal, as many queries as keys, several whole tiles", {6, 9}, is_square_of_tiles);
  add(
      "window of over 1,024 keys, not all", {42},
      [](const Case& c) { return has_window_above(c.problem, 1024); }, "a kernel with windows");
  add("more than 32 query heads", {30}, [](const Case& c) { return c.problem.query_heads > 32; });
  add("group above 8", {30, 31},
      [](const Case& c) { return c.problem.query_heads > 8 * c.problem.kv_heads; });
  add("batch above 8", {36}, [](const Case& c) { return c.problem.batch > 8; });
  add("batch above 256", {36}, [](const Case& c) { return c.problem.batch > 256; });
  const std::string wide = "a kernel with head dims above 128";
  add(
      "head_dim above 128", {43}, [](const Case& c) { return c.problem.head_dim > 128; }, wide);
  // Large in two dimensions: flash-attention#2698, TensorRT-LLM#17964 and what lies beside them.
  add(
      "head_dim above 128, several key tiles", {43},
      [](const Case& c) { return c.problem.head_dim > 128 && has_key_tiles(c, 1); }, wide);
  add(
      "head_dim above 128, three entries or more", {36, 43},
      [](const Case& c) { return c.problem.head_dim > 128 && c.problem.batch > 2; }, wide);
  add("over 256 keys, three entries or more", {36},
      [](const Case& c) { return c.problem.key_len > 256 && c.problem.batch > 2; });
  add("over 256 keys, more than 16 query heads", {30},
      [](const Case& c) { return c.problem.key_len > 256 && c.problem.query_heads > 16; });
  add("2 to 8 queries over 256 keys", {10}, [](const Case& c) {
    return c.problem.query_len > 1 && c.problem.query_len <= 8 && c.problem.key_len > 256;
  });
  add("8 or 16 query heads over one KV head", {30, 31}, [](const Case& c) {
    return c.problem.kv_heads == 1 && (c.problem.query_heads == 8 || c.problem.query_heads == 16);
  });
  add(
      "a packed entry of several key tiles, head_dim no multiple of 32", {40, 43},
      [](const Case& c) { return c.problem.head_dim % 32 != 0 && has_long_packed_entry(c); },
      "a kernel with lengths");
  // Where 16 bits end, and the second dimension of a grid.
  const std::string far = "a kernel off the SIMT executor";
  constexpr std::int64_t end = 1 << 16;
  add(
      "over 65,536 keys", {}, [=](const Case& c) { return c.problem.key_len > end; }, far);
  add(
      "over 65,536 queries", {}, [=](const Case& c) { return c.problem.query_len > end; }, far);
  add(
      "over 65,536 entries", {36}, [=](const Case& c) { return c.problem.batch > end; }, far);
  add(
      "over 65,536 query heads", {30}, [=](const Case& c) { return c.problem.query_heads > end; },
      far);
  const auto has_no_tile = [](const Case& c) {
    return c.plan.query_tile == 0 && c.plan.key_tile == 0;
  };
  const std::string no_tile = "a kernel with plans that name no tile";
  add(
      "over 256 keys, no tile in the plan", {},
      [=](const Case& c) { return has_no_tile(c) && c.problem.key_len > 256; }, no_tile);
  add(
      "one key past, or short of, a multiple of 64, no tile in the plan", {},
      [=](const Case& c) {
        const std::int64_t past = c.problem.key_len % usual_tile;
        return has_no_tile(c) && c.problem.key_len >= usual_tile - 1 &&
               (past == 1 || past == usual_tile - 1);
      },
      no_tile);
  add("elements beyond 2^32", {21, 22},
      [](const Case& c) { return spans_more_than(c, 2 * far_elements); });
}

}  // namespace attest
