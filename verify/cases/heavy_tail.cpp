#include "verify/cases/heavy_tail.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "verify/cases/extras.hpp"
#include "verify/cases/lengths.hpp"
#include "verify/cases/shrinking.hpp"

namespace attest {
namespace {

namespace gen = rc::gen;

/// Draws of a large dimension until one is supported and not too dear.
constexpr int most_tries = 30;

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// How one dimension is made large. `enlarge` draws it and says whether it is within the limits.
struct Enlargement {
  bool (*enlarge)(const KernelInfo& kernel, const Plan& plan, const SizeLimits& most, Problem& p);
  bool splits_keys = false;  ///< under a Plan that splits the keys
};

/// Every order from 256 to 4,096, beside powers of two and edges of tiles as often as anywhere.
std::int64_t draw_long(std::int64_t tile) {
  const auto power = *gen::element<std::int64_t>(256, 512, 1024, 2048, 2048);
  const std::int64_t any = *gen::inRange(power, 2 * power + 1);
  const std::int64_t beside = *gen::inRange<std::int64_t>(-1, 2);
  return *gen::element(any, power + beside, 2 * power + beside,
                       round_up(any, tile_or_usual(tile)) + beside);
}

/// Decode is one query and thousands of keys.
bool enlarge_keys(const KernelInfo& /*kernel*/, const Plan& plan, const SizeLimits& most,
                  Problem& p) {
  p.key_len = draw_long(plan.key_tile);
  if (*gen::inRange(0, 3) == 0) p.query_len = 1;
  return p.key_len <= most.len;
}

bool enlarge_queries(const KernelInfo& /*kernel*/, const Plan& plan, const SizeLimits& most,
                     Problem& p) {
  p.query_len = draw_long(plan.query_tile);
  return p.query_len <= most.len;
}

bool enlarge_both_lengths(const KernelInfo& kernel, const Plan& plan, const SizeLimits& most,
                          Problem& p) {
  if (!enlarge_queries(kernel, plan, most, p)) return false;
  p.key_len = p.query_len;
  return true;
}

/// Large groups, many heads without groups, and both: 71/1 and 128/1, 33/33, 64/8 and 40/8.
bool enlarge_heads(const KernelInfo& /*kernel*/, const Plan& /*plan*/, const SizeLimits& most,
                   Problem& p) {
  const int kind = *gen::inRange(0, 3);
  std::int64_t group = 1;
  if (kind == 0) {
    p.kv_heads = *gen::element<std::int64_t>(1, 1, 2, 3);
    group = *gen::element<std::int64_t>(9, 12, 16, 17, 32, 37, 64, 71, 128);
  } else if (kind == 1) {
    p.kv_heads = *gen::element<std::int64_t>(31, 32, 33, 40, 61, 64, 71, 128);
  } else {
    p.kv_heads = *gen::element<std::int64_t>(3, 5, 8, 8, 16, 17, 32);
    group = *gen::element<std::int64_t>(2, 3, 4, 5, 8, 8, 12);
  }
  p.query_heads = group * p.kv_heads;
  const bool is_large = p.query_heads > usual_sizes.query_heads || group > 8;
  return is_large && p.query_heads <= most.query_heads;
}

bool enlarge_batch(const KernelInfo& /*kernel*/, const Plan& /*plan*/, const SizeLimits& most,
                   Problem& p) {
  p.batch = *gen::element<std::int64_t>(4, 5, 7, 9, 17, 33, 65, 128, 129, 256, 257, 288, 300);
  return p.batch <= most.batch;
}

/// All that the kernel lists, or widths in use and their neighbours.
bool enlarge_head_dim(const KernelInfo& kernel, const Plan& /*plan*/, const SizeLimits& most,
                      Problem& p) {
  std::vector<std::int64_t> dims = kernel.head_dims;
  if (dims.empty()) {
    dims = {129, 136, 144, 160, 176, 191, 192, 200, 224, 240, 255, 256, 257, 320, 512, 576, 1024};
  }
  std::erase_if(dims, [&](auto dim) { return dim <= usual_sizes.head_dim || dim > most.head_dim; });
  if (dims.empty()) return false;
  const bool is_default = p.scale == default_scale(p.head_dim);
  p.head_dim = *gen::elementOf(dims);
  if (is_default) p.scale = default_scale(p.head_dim);
  return true;
}

/// Whole tiles of queries and of keys where their least common multiple is small, of the larger of
/// them otherwise.
bool make_square(const KernelInfo& kernel, const Plan& plan, const SizeLimits& most, Problem& p) {
  std::vector<Mask> masks = kernel.masks;
  std::erase_if(masks, [](Mask mask) { return mask == Mask::none || is_window(mask); });
  if (masks.empty()) return false;
  const std::int64_t rows = tile_or_usual(plan.query_tile), keys = tile_or_usual(plan.key_tile);
  const std::int64_t larger = std::max(rows, keys), both = std::lcm(rows, keys);
  p.mask = *gen::elementOf(masks);
  p.window = {};
  p.length_seed = 0;
  p.query_len = *gen::inRange<std::int64_t>(2, 5) * (both <= 2 * larger ? both : larger);
  p.key_len = p.query_len;
  return p.query_len <= most.len;
}

constexpr std::array<Enlargement, 4> of_lengths{{{enlarge_keys},
                                                 {enlarge_queries},
                                                 {enlarge_both_lengths},
                                                 {enlarge_keys, /*splits_keys=*/true}}};
constexpr std::array<Enlargement, 3> of_shape{
    {{enlarge_heads}, {enlarge_batch}, {enlarge_head_dim}}};
constexpr std::array<Enlargement, 1> of_square{{{make_square}}};

std::span<const Enlargement> enlargements(Tail tail) {
  switch (tail) {
    case Tail::lengths:
      return of_lengths;
    case Tail::shape:
      return of_shape;
    case Tail::square_tiles:
      return of_square;
  }
  return {};
}

/// The Plan of the case where it is one for the enlarged problem, another one otherwise.
std::optional<Plan> draw_plan(const KernelInfo& kernel, const Case& c, bool splits_keys) {
  std::vector<Plan> plans = kernel.plans(c.problem);
  if (splits_keys) std::erase_if(plans, [](const Plan& plan) { return plan.key_splits < 2; });
  if (plans.empty()) return std::nullopt;
  if (std::ranges::find(plans, c.plan) != plans.end()) return c.plan;
  return *gen::elementOf(plans);
}

/// Only among thousands of keys a window can be longer than what a kernel keeps of them.
void draw_long_window(const KernelInfo& kernel, Case& c) {
  std::vector<Mask> windows = kernel.masks;
  std::erase_if(windows, [](Mask mask) { return !is_window(mask); });
  if (!windows.empty() && *gen::inRange(0, 3) == 0) c.problem.mask = *gen::elementOf(windows);
  if (!is_window(c.problem.mask)) return;
  c.problem.window = draw_window(c.plan.key_tile, c.problem.key_len);
}

}  // namespace

std::int64_t work_of(const Problem& p, const Plan& plan) {
  const std::int64_t rows = round_up(p.query_len, std::max<std::int64_t>(plan.query_tile, 1));
  const std::int64_t keys = round_up(p.key_len, std::max<std::int64_t>(plan.key_tile, 1));
  return p.batch * p.query_heads * rows * keys * std::max(p.head_dim, p.output_dim());
}

std::int64_t most_work(const Plan& plan) {
  return work_of({.query_heads = 4,
                  .kv_heads = 4,
                  .query_len = usual_tile,
                  .key_len = 4 * usual_sizes.len,
                  .head_dim = 64},
                 plan);
}

SizeLimits sizes_beside(Tail tail) {
  SizeLimits sizes{.len = 24, .head_dim = 32, .batch = 2, .query_heads = 2};
  if (tail == Tail::lengths) sizes.batch = 1;
  // Two to four tiles leave room for every usual head_dim.
  if (tail == Tail::square_tiles) sizes.head_dim = usual_sizes.head_dim;
  return sizes;
}

std::optional<Case> draw_from_tail(Tail tail, const KernelInfo& kernel,
                                   const GeneratorOptions& options, const Case& small) {
  const std::span<const Enlargement> all = enlargements(tail);
  const SizeLimits most = options.limits(tail_sizes);
  for (int i = 0; i < most_tries; ++i) {
    const Enlargement& how = all[*gen::inRange<std::size_t>(0, all.size())];
    Case c = small;
    if (!how.enlarge(kernel, c.plan, most, c.problem)) continue;
    const std::optional<Plan> plan = draw_plan(kernel, c, how.splits_keys);
    if (!plan) continue;
    c.plan = *plan;
    if (tail == Tail::lengths) draw_long_window(kernel, c);
    if (work_of(c.problem, c.plan) <= most_work(c.plan) && can_run(kernel, c)) return c;
  }
  return std::nullopt;
}

}  // namespace attest
