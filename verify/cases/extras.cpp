#include "verify/cases/extras.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <vector>

#include "verify/cases/lengths.hpp"

namespace attest {
namespace {

namespace gen = rc::gen;

bool one_of(int count) {
  return *gen::inRange(0, count) == 0;
}

/// Sides of sliding windows in use are powers of two from here on.
constexpr std::int64_t long_side = 1024;

std::int64_t draw_side(std::int64_t tile, std::int64_t key_len) {
  const std::int64_t any = *gen::inRange<std::int64_t>(0, key_len + 1);
  if (key_len > long_side && one_of(3)) return long_side + *gen::inRange<std::int64_t>(-1, 3);
  return *gen::weightedElement<std::int64_t>(
      {{2, 0}, {1, 1}, {1, tile - 1}, {1, tile}, {1, tile + 1}, {1, key_len}, {2, -1}, {3, any}});
}

std::int64_t draw_value_dim(const KernelInfo& kernel, std::int64_t max_head_dim,
                            std::int64_t head_dim) {
  std::vector<std::int64_t> dims = kernel.head_dims;
  if (dims.empty()) dims = {8, 16, 24, 32, 40, 64, 72, 80, 96, 128, 1, 17, 59};
  std::erase_if(dims, [&](std::int64_t dim) { return dim > max_head_dim || dim == head_dim; });
  return dims.empty() ? 0 : *gen::elementOf(dims);
}

std::uint64_t draw_seed() {
  return std::max<std::uint64_t>(1, *gen::arbitrary<std::uint64_t>());
}

}  // namespace

// What users have most is causal: no key past the diagonal. Without an end on the right there are
// tiles in which a window begins and nothing ends.
Window draw_window(std::int64_t key_tile, std::int64_t key_len) {
  const std::int64_t tile = tile_or_usual(key_tile);
  Window window{.left = draw_side(tile, key_len), .right = draw_side(tile, key_len)};
  const int kind = *gen::inRange(0, 6);
  if (kind < 2) window.right = 0;
  if (kind == 2) window.right = -1;
  return window;
}

Extras draw_extras(const KernelInfo& kernel) {
  const Features& has = kernel.features;
  const bool has_window = std::ranges::any_of(kernel.masks, is_window);
  Extras extras;
  if (!has_window && !has.softcap && !has.value_dim && !has.lengths && !has.padding &&
      !has.no_queries) {
    return extras;
  }
  if (one_of(2)) return extras;
  extras.window = has_window && one_of(2);
  extras.softcap = has.softcap && one_of(4);
  extras.value_dim = has.value_dim && one_of(4);
  extras.lengths = has.lengths && one_of(3);
  extras.padding = has.padding && one_of(3);
  extras.no_queries = has.no_queries;
  return extras;
}

void draw_extra_shapes(const Extras& extras, const KernelInfo& kernel, std::int64_t key_tile,
                       std::int64_t max_head_dim, Problem& problem) {
  if (extras.lengths) {
    problem.length_seed = draw_seed();
    // Self-attention of packed sequences is what users have most.
    if (one_of(2)) problem.key_len = problem.query_len;
  }
  if (extras.window) {
    std::vector<Mask> masks = kernel.masks;
    std::erase_if(masks, [](Mask mask) { return !is_window(mask); });
    problem.mask = *gen::elementOf(masks);
    problem.window = draw_window(key_tile, problem.key_len);
  }
  if (extras.value_dim) problem.value_dim = draw_value_dim(kernel, max_head_dim, problem.head_dim);
  if (extras.padding) {
    problem.padding_seed = draw_seed();
    // Only there does the law padding_equals_removal apply.
    const bool has_none = std::ranges::find(kernel.masks, Mask::none) != kernel.masks.end();
    if (!extras.window && has_none && one_of(2)) problem.mask = Mask::none;
  }
}

float draw_softcap(double magnitude) {
  const auto size = static_cast<float>(std::clamp(magnitude, 1.0, 1e6));
  return *gen::weightedElement<float>(
      {{2, 30.0F}, {1, 50.0F}, {2, 1.0F}, {1, 0.0625F}, {3, size * 0.5F}, {1, size * 100.0F}});
}

}  // namespace attest
