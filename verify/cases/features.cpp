// The table of features.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string_view>

#include "core/attention/storage.hpp"
#include "core/operations/forward.hpp"
#include "verify/cases/feature_list.hpp"

namespace attest {
namespace {

bool is_prime(std::int64_t n) {
  if (n < 2) return false;
  for (std::int64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return true;
}

/// Distance to the nearest multiple of `unit`, `unit` >= 1.
std::int64_t distance_to_multiple(std::int64_t length, std::int64_t unit) {
  return std::min(length % unit, unit - length % unit);
}

bool is_causal(const Case& c) {
  return c.problem.mask == Mask::causal_top_left || c.problem.mask == Mask::causal_bottom_right;
}

std::int64_t group(const Case& c) {
  return c.problem.query_heads / c.problem.kv_heads;
}

/// True if the layout of any strided tensor satisfies the predicate.
template <typename Holds>
bool any_layout(const Case& c, const Holds& holds) {
  bool found = false;
  for_each_tensor(*c.problem.operation, [&](const TensorSpec& tensor, auto index) {
    found = found || (tensor.is_strided &&
                      holds(c.layouts[index], stored_shape(c.problem, index, c.layouts.paging)));
  });
  return found;
}

std::int64_t base_offset_bytes(const Case& c, const TensorLayout& layout) {
  return layout.base_offset *
         static_cast<std::int64_t>(format_of(c.problem.element_type).size_bytes);
}

/// The base pointer of some tensor lies `bytes` past a multiple of twice as many, so that an access
/// of that size is aligned and a wider one is not.
Predicate base_at(std::int64_t bytes) {
  return [bytes](const Case& c) {
    return any_layout(c, [&](const TensorLayout& layout, const Shape&) {
      return base_offset_bytes(c, layout) % (2 * bytes) == bytes;
    });
  };
}

bool is_contiguous(const Shape& shape, const TensorLayout& layout) {
  const Strides have = strides_of(shape, layout), want = strides_of(shape, {});
  return have.batch == want.batch && have.head == want.head && have.row == want.row;
}

/// Lengths and where tiles cut them.
void add_lengths(std::vector<Feature>& list) {
  const auto add = [&](std::string name, std::vector<int> zoo, Predicate holds) {
    list.push_back(feature(std::move(name), std::move(zoo), std::move(holds)));
  };
  add("one query", {10}, [](const Case& c) { return c.problem.query_len == 1; });
  add("one key", {17}, [](const Case& c) { return c.problem.key_len == 1; });
  add("no key", {25, 37}, [](const Case& c) { return c.problem.key_len == 0; });
  add("two keys", {}, [](const Case& c) { return c.problem.key_len == 2; });
  add("key tail without a mask", {1, 4, 6}, [](const Case& c) {
    return c.problem.mask == Mask::none && c.plan.key_tile > 1 &&
           c.problem.key_len % c.plan.key_tile != 0;
  });
  add("key tail under a causal mask", {4, 6}, [](const Case& c) {
    return is_causal(c) && c.plan.key_tile > 1 && c.problem.key_len % c.plan.key_tile != 0;
  });
  add("whole key tiles", {6}, [](const Case& c) {
    return c.plan.key_tile > 1 && c.problem.key_len > 0 && c.problem.key_len % c.plan.key_tile == 0;
  });
  add("one key past a tile", {1, 4}, [](const Case& c) {
    return c.plan.key_tile > 1 && c.problem.key_len > 1 && c.problem.key_len % c.plan.key_tile == 1;
  });
  add("one key short of a tile", {1}, [](const Case& c) {
    return c.plan.key_tile > 1 && c.problem.key_len % c.plan.key_tile == c.plan.key_tile - 1;
  });
  add("fewer keys than a tile", {4},
      [](const Case& c) { return c.problem.key_len > 0 && c.problem.key_len < c.plan.key_tile; });
  add("over three key tiles", {15},
      [](const Case& c) { return c.plan.key_tile > 0 && c.problem.key_len > 3 * c.plan.key_tile; });
  add("query tail", {3}, [](const Case& c) {
    return c.plan.query_tile > 1 && c.problem.query_len % c.plan.query_tile != 0;
  });
  add("one query past a tile", {3}, [](const Case& c) {
    return c.plan.query_tile > 1 && c.problem.query_len > 1 &&
           c.problem.query_len % c.plan.query_tile == 1;
  });
  add("prime length", {},
      [](const Case& c) { return c.problem.key_len > 10 && is_prime(c.problem.key_len); });
  add("length of 64 mod 128", {7}, [](const Case& c) { return c.problem.key_len % 128 == 64; });
  add("length just beside a multiple of 128", {2}, [](const Case& c) {
    const std::int64_t distance = distance_to_multiple(c.problem.key_len, 128);
    return c.problem.key_len > 64 && distance >= 1 && distance <= 8;
  });
  add("tiles of unequal size", {}, [](const Case& c) {
    return c.plan.query_tile > 0 && c.plan.key_tile > 0 && c.plan.query_tile != c.plan.key_tile;
  });
  add("key splits, the last with a tail", {8, 28, 34}, [](const Case& c) {
    return c.plan.key_splits > 1 && c.plan.key_tile > 1 && c.problem.key_len > c.plan.key_tile &&
           c.problem.key_len % c.plan.key_tile != 0;
  });
  add("more key splits than tiles", {14}, [](const Case& c) {
    return c.plan.key_splits > 1 && c.problem.key_len <= (c.plan.key_splits - 1) * c.plan.key_tile;
  });
}

/// Masks and what they leave visible.
void add_masks(std::vector<Feature>& list) {
  const auto add = [&](std::string name, std::vector<int> zoo, Predicate holds) {
    list.push_back(feature(std::move(name), std::move(zoo), std::move(holds)));
  };
  for (const Mask mask : {Mask::causal_top_left, Mask::causal_bottom_right}) {
    add(fmt::format("{}, more queries than keys", name_of(mask)), {9, 12}, [mask](const Case& c) {
      return c.problem.mask == mask && c.problem.query_len > c.problem.key_len;
    });
    add(fmt::format("{}, fewer queries than keys", name_of(mask)), {9, 10}, [mask](const Case& c) {
      return c.problem.mask == mask && c.problem.query_len < c.problem.key_len;
    });
  }
  add("causal, grouped heads, several rows", {11},
      [](const Case& c) { return is_causal(c) && group(c) > 1 && c.problem.query_len > 1; });
  add("rows that see no key", {13, 32}, [](const Case& c) { return empty_rows(c) > 0; });
  add("a whole query tile that sees no key", {12, 15, 16, 25}, [](const Case& c) {
    return empty_rows(c) >= std::max<std::int64_t>(1, c.plan.query_tile) && c.plan.query_tile > 0;
  });
  add("key splits that a row sees nothing of", {14, 33}, [](const Case& c) {
    const KeyRange first = c.problem.visible_range(0, 0);
    return is_causal(c) && c.plan.key_splits > 1 && first.end <= c.plan.key_tile &&
           c.problem.key_len > c.plan.key_tile;
  });
}

/// Heads, batch, head dims and scale.
void add_shapes(std::vector<Feature>& list) {
  const auto add = [&](std::string name, std::vector<int> zoo, Predicate holds) {
    list.push_back(feature(std::move(name), std::move(zoo), std::move(holds)));
  };
  add("several batches", {36}, [](const Case& c) { return c.problem.batch > 1; });
  add("several batches of 5 or more queries", {36},
      [](const Case& c) { return c.problem.batch > 1 && c.problem.query_len >= 5; });
  add("heads without groups", {},
      [](const Case& c) { return c.problem.query_heads > 1 && group(c) == 1; });
  add("group of 3", {30}, [](const Case& c) { return group(c) == 3; });
  add("group of 5 or 7", {31}, [](const Case& c) { return group(c) == 5 || group(c) == 7; });
  add("several groups, their number unlike their size", {30}, [](const Case& c) {
    return c.problem.kv_heads > 1 && group(c) > 1 && group(c) != c.problem.kv_heads;
  });
  add("more than 8 heads", {30}, [](const Case& c) { return c.problem.query_heads > 8; });
  add("head_dim not a multiple of 8", {29, 43},
      [](const Case& c) { return c.problem.head_dim % 8 != 0; });
  add("head_dim below 8", {43}, [](const Case& c) { return c.problem.head_dim < 8; });
  add("head_dim above 64", {29, 43}, [](const Case& c) { return c.problem.head_dim > 64; });
  add("energy only in head dims past 64", {43},
      [](const Case& c) { return c.problem.head_dim >= 80 && family_is(c, {"late_dims"}); });
  add("scale 0", {47}, [](const Case& c) { return c.problem.scale == 0.0F; });
  add("negative scale", {47}, [](const Case& c) { return c.problem.scale < 0.0F; });
  add("denormal scale", {47},
      [](const Case& c) { return std::fpclassify(c.problem.scale) == FP_SUBNORMAL; });
  add("scale that is not 1 / sqrt(head_dim)", {44},
      [](const Case& c) { return c.problem.scale != default_scale(c.problem.head_dim); });
}

/// Adds features of where the tensors lie.
void add_memory(std::vector<Feature>& list) {
  const auto add = [&](std::string name, std::vector<int> zoo, Predicate holds) {
    list.push_back(feature(std::move(name), std::move(zoo), std::move(holds)));
  };
  add("Q, K, V and O in four different layouts", {26}, [](const Case& c) {
    const std::array<TensorLayout, 4> l{c.layouts[forward::q], c.layouts[forward::k],
                                        c.layouts[forward::v], c.layouts[forward::o]};
    for (std::size_t i = 0; i < l.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (l[i] == l[j]) return false;
      }
    }
    return true;
  });
  add("K and V with different strides", {26}, [](const Case& c) {
    const Strides k =
        strides_of(stored_shape(c.problem, forward::k, c.layouts.paging), c.layouts[forward::k]);
    const Strides v =
        strides_of(stored_shape(c.problem, forward::v, c.layouts.paging), c.layouts[forward::v]);
    return c.problem.key_len > 1 && k.row != v.row;
  });
  add("V is not contiguous", {27}, [](const Case& c) {
    return c.problem.key_len > 0 &&
           !is_contiguous(stored_shape(c.problem, forward::v, c.layouts.paging),
                          c.layouts[forward::v]);
  });
  add("O is not contiguous", {28}, [](const Case& c) {
    return !is_contiguous(stored_shape(c.problem, forward::o, c.layouts.paging),
                          c.layouts[forward::o]);
  });
  const auto add_of_any = [&](std::string name, std::vector<int> zoo, Predicate holds) {
    add(std::move(name), std::move(zoo), std::move(holds));
    list.back().operations = {};
  };
  add_of_any("gaps between rows", {27}, [](const Case& c) {
    return any_layout(c, [](const auto& layout, const Shape&) { return layout.row_gap > 0; });
  });
  add_of_any("gaps between heads and between batches", {27}, [](const Case& c) {
    return any_layout(c, [](const auto& layout, const Shape& shape) {
      return layout.order == DimOrder::bhnd && shape[0] > 1 && shape[1] > 1 &&
             layout.plane_gap > 0 && layout.outer_gap > 0;
    });
  });
  add_of_any("rows are the slowest dimension", {27}, [](const Case& c) {
    return any_layout(c, [](const auto& layout, const Shape& shape) {
      return slowest_dim(layout.order) == 2 && shape[2] > 1;
    });
  });
  add_of_any("row stride not a multiple of 8 elements", {29}, [](const Case& c) {
    return any_layout(c, [](const auto& layout, const Shape& shape) {
      return shape[2] > 1 && strides_of(shape, layout).row % 8 != 0;
    });
  });
  add_of_any("base pointer aligned to 2 bytes", {29}, base_at(2));
  add_of_any("base pointer aligned to 4 bytes", {29}, base_at(4));
  add_of_any("base pointer aligned to 8 bytes", {29}, base_at(8));
  add_of_any("base pointer aligned to 16 bytes", {29}, base_at(16));
  add_of_any("a dimension of size 1 with a stride of 2^33", {21}, [](const Case& c) {
    return any_layout(c, [](const auto& layout, const Shape& shape) {
      return layout.lone_stride >= far_elements &&
             (shape[0] == 1 || shape[1] == 1 || shape[2] == 1);
    });
  });
  add_of_any("elements beyond 2^31", {21, 22}, [](const Case& c) {
    return any_layout(c, [](const auto& layout, const Shape& shape) {
      return span_of(shape, layout) > far_elements;
    });
  });
  add_of_any("everything unwritten holds NaN", {4, 5}, [](const Case&) { return true; });
  list.push_back({.name = "shared memory of a GPU holds NaN",
                  .zoo = {4, 5},
                  .holds = [](const KernelInfo& kernel,
                              const Case&) { return kernel.executor == Executor::gpu; },
                  .needs = "a GPU; the executor reports every read of shared memory that nothing "
                           "wrote instead"});
}

}  // namespace

const std::vector<Feature>& all_features() {
  static const std::vector<Feature> features = [] {
    std::vector<Feature> list;
    add_lengths(list);
    add_masks(list);
    add_shapes(list);
    add_memory(list);
    add_value_features(list);
    add_extra_features(list);
    add_tail_features(list);
    add_paging_features(list);
    add_own_features(list);
    return list;
  }();
  return features;
}

}  // namespace attest
