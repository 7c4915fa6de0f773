#include "verify/cases/heavy_tail.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "core/inputs/input_family.hpp"
#include "verify/cases/extras.hpp"
#include "verify/cases/lengths.hpp"
#include "verify/cases/shrinking.hpp"

namespace attest {
namespace {

namespace gen = rc::gen;

/// Cost of an element for a judge, in multiply-adds, and of a row, in columns: m6_every_shape at
/// 65,537 entries of one key, with 1 and 16 columns.
constexpr std::int64_t work_of_element = 32, columns_of_row = 16;

/// A judge keeps a few copies of a workspace, and a worker has 8 GiB in all.
constexpr std::size_t most_workspace = std::size_t{1} << 29;

/// Draws of large sizes until some are supported and not too dear, and choices of which are large:
/// the dear ones would else be as rare as they are dear.
constexpr int most_tries = 12, most_choices = 4;

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Sizes of a problem, as a set of bits.
enum Size : unsigned { queries = 1, keys = 2, heads = 4, batch = 8, head_dim = 16 };

/// A way to make dimensions large.
struct Enlargement {
  unsigned sizes;  ///< which are drawn, and so not cut to make room
  /// Draws them and says whether they are within the limits.
  bool (*enlarge)(const KernelInfo& kernel, const Plan& plan, const SizeLimits& most, Problem& p);
  bool splits_keys = false;  ///< under a Plan that splits the keys
};

/// The least of what is called large.
constexpr std::int64_t least_length = 256, least_batch = 4, least_head_dim = usual_head_dim + 1;

bool enlarge_keys(const KernelInfo& /*kernel*/, const Plan& plan, const SizeLimits& most,
                  Problem& p) {
  p.key_len = draw_magnitude(least_length, most.len, tile_or_usual(plan.key_tile));
  return true;
}

bool enlarge_queries(const KernelInfo& /*kernel*/, const Plan& plan, const SizeLimits& most,
                     Problem& p) {
  p.query_len = draw_magnitude(least_length, most.len, tile_or_usual(plan.query_tile));
  return true;
}

/// Makes queries and keys equally many, up to what one head can have.
bool enlarge_both_lengths(const KernelInfo& /*kernel*/, const Plan& plan, const SizeLimits& most,
                          Problem& p) {
  p.query_len = draw_magnitude(least_length, std::min<std::int64_t>(most.len, 4096),
                               tile_or_usual(plan.query_tile));
  p.key_len = p.query_len;
  return true;
}

/// 2 to 8 queries are a speculation's, 16 half a tile's.
bool draw_few_queries(const KernelInfo& /*kernel*/, const Plan& plan, const SizeLimits& most,
                      Problem& p) {
  const std::int64_t few = *gen::inRange<std::int64_t>(2, 9),
                     any = *gen::inRange<std::int64_t>(9, 17);
  p.query_len = *gen::weightedElement<std::int64_t>({{4, 1}, {5, few}, {1, any}});
  p.key_len = draw_magnitude(usual_tile / 2, most.len, tile_or_usual(plan.key_tile));
  return p.query_len <= most.len;
}

/// Large groups, many heads without groups, and both: 71/1 and 128/1, 33/33, 64/8 and 40/8; and any
/// number of heads.
bool enlarge_heads(const KernelInfo& /*kernel*/, const Plan& /*plan*/, const SizeLimits& most,
                   Problem& p) {
  const int kind = *gen::inRange(0, 7);
  std::int64_t group = 1;
  if (kind == 6) {
    p.kv_heads = draw_magnitude(usual_sizes.query_heads, most.query_heads, 1);
  } else if (kind % 3 == 0) {
    p.kv_heads = *gen::element<std::int64_t>(1, 1, 2, 3);
    group = *gen::element<std::int64_t>(9, 12, 16, 17, 32, 37, 64, 71, 128);
  } else if (kind % 3 == 1) {
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
  p.batch = draw_magnitude(least_batch, most.batch, 1);
  return p.batch >= least_batch;
}

/// Draws a head dim from all that the kernel lists, or from widths in use and their neighbours.
bool enlarge_head_dim(const KernelInfo& kernel, const Plan& /*plan*/, const SizeLimits& most,
                      Problem& p) {
  std::vector<std::int64_t> dims = kernel.head_dims;
  if (dims.empty()) {
    dims = {129, 136, 144, 160, 176, 191, 192, 200, 224, 240, 255, 256, 257, 320, 512, 576, 1024};
  }
  std::erase_if(dims, [&](auto dim) { return dim < least_head_dim || dim > most.head_dim; });
  if (dims.empty()) return false;
  set_head_dim(*gen::elementOf(dims), p);
  return true;
}

/// One short of 2^16, the most blocks of a grid in its second and third dimension, and more.
std::int64_t draw_far() {
  const std::int64_t end = 1 << 16;
  const std::int64_t any = *gen::inRange(end, 2 * end + 1);
  return *gen::element(end - 1, end, end + 1, any);
}

template <std::int64_t Problem::*size, std::int64_t SizeLimits::*limit>
bool enlarge_far(const KernelInfo& /*kernel*/, const Plan& /*plan*/, const SizeLimits& most,
                 Problem& p) {
  p.*size = draw_far();
  return p.*size <= most.*limit;
}

bool enlarge_heads_far(const KernelInfo& /*kernel*/, const Plan& /*plan*/, const SizeLimits& most,
                       Problem& p) {
  p.query_heads = p.kv_heads = draw_far();
  return p.query_heads <= most.query_heads;
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

constexpr std::array<Enlargement, 4> of_lengths{{{keys, enlarge_keys},
                                                 {queries, enlarge_queries},
                                                 {queries | keys, enlarge_both_lengths},
                                                 {keys, enlarge_keys, /*splits_keys=*/true}}};
constexpr std::array<Enlargement, 3> of_shape{
    {{heads, enlarge_heads}, {batch, enlarge_batch}, {head_dim, enlarge_head_dim}}};
constexpr std::array<Enlargement, 4> past_16_bits{
    {{keys, enlarge_far<&Problem::key_len, &SizeLimits::len>},
     {queries, enlarge_far<&Problem::query_len, &SizeLimits::len>},
     {batch, enlarge_far<&Problem::batch, &SizeLimits::batch>},
     {heads, enlarge_heads_far}}};
constexpr std::array<Enlargement, 1> of_few{{{queries | keys, draw_few_queries}}};
constexpr std::array<Enlargement, 1> of_square{{{queries | keys, make_square}}};

std::span<const Enlargement> enlargements(Tail tail) {
  switch (tail) {
    case Tail::lengths:
      return of_lengths;
    case Tail::shape:
      return of_shape;
    case Tail::past_16_bits:
      return past_16_bits;
    case Tail::few_queries:
      return of_few;
    case Tail::square_tiles:
      return of_square;
  }
  return {};
}

/// The head dims below the case's that the kernel may have, where the family leaves a choice.
std::vector<std::int64_t> narrower(const KernelInfo& kernel, const Case& c) {
  if (!input_family(c.inputs.family).head_dims.empty()) return {};
  std::vector<std::int64_t> dims = kernel.head_dims;
  std::erase_if(dims, [&](std::int64_t dim) { return dim >= c.problem.head_dim; });
  if (kernel.head_dims.empty() && c.problem.head_dim > 1) dims.push_back(c.problem.head_dim / 2);
  return dims;
}

/// Makes one size smaller that is not among `kept`; false when all are as small as can be. Lengths
/// are drawn anew, so that they lie around tiles still.
bool cut_one(const KernelInfo& kernel, const GeneratorOptions& options, unsigned kept, Case& c) {
  Problem& p = c.problem;
  const std::vector<std::int64_t> dims = narrower(kernel, c);
  std::vector<Size> left;
  const auto add = [&](Size size, bool can_be_cut) {
    if (can_be_cut && (kept & size) == 0) left.push_back(size);
  };
  add(queries, p.query_len > 1);
  add(keys, p.key_len > 1);
  add(heads, p.query_heads > 1);
  add(batch, p.batch > 1);
  add(head_dim, !dims.empty());
  if (left.empty()) return false;
  LengthWeights lengths = options.lengths;
  lengths.zero = 0;
  switch (*gen::elementOf(left)) {
    case queries:
      p.query_len = draw_length(lengths, c.plan.query_tile, p.query_len / 2);
      break;
    case keys:
      p.key_len = draw_length(lengths, c.plan.key_tile, p.key_len / 2);
      break;
    case heads: {
      const std::int64_t group = p.query_heads / p.kv_heads;
      p.query_heads = p.kv_heads > 1 ? p.kv_heads / 2 * group : (group + 1) / 2;
      p.kv_heads = std::max<std::int64_t>(1, p.kv_heads / 2);
      break;
    }
    case batch:
      p.batch /= 2;
      break;
    case head_dim:
      set_head_dim(*gen::elementOf(dims), p);
      if (p.value_dim > p.head_dim) p.value_dim = 0;
      break;
  }
  return true;
}

/// Keeps the Plan where it is one for the problem, and draws another one otherwise; false: there is
/// none.
bool choose_plan(const KernelInfo& kernel, bool splits_keys, Case& c) {
  std::vector<Plan> plans = kernel.plans(c.problem);
  if (splits_keys) std::erase_if(plans, [](const Plan& plan) { return plan.key_splits < 2; });
  if (plans.empty()) return false;
  if (std::ranges::find(plans, c.plan) == plans.end()) c.plan = *gen::elementOf(plans);
  return true;
}

/// Only among thousands of keys a window can be longer than what a kernel keeps of them.
void draw_long_window(const KernelInfo& kernel, Case& c) {
  std::vector<Mask> windows = kernel.masks;
  std::erase_if(windows, [](Mask mask) { return !is_window(mask); });
  if (!windows.empty() && *gen::inRange(0, 3) == 0) c.problem.mask = *gen::elementOf(windows);
  if (!is_window(c.problem.mask)) return;
  c.problem.window = draw_window(c.plan.key_tile, c.problem.key_len);
}

/// Cost of 2^16 entries or keys, as a multiple of the dearest usual cases. Kernels of a GPU have
/// few head dims, and none is as small as 2.
std::int64_t far_times(const KernelInfo& kernel) {
  return kernel.executor == Executor::gpu ? 20 : 8;
}

/// Draws the cost that a case may have: a part of the most where one size is large, most of all on
/// the executor; two sizes take more.
std::int64_t draw_work(Tail tail, bool is_pair, const KernelInfo& kernel, const Plan& plan) {
  const std::int64_t most = most_work(kernel, plan);
  if (tail == Tail::past_16_bits) return far_times(kernel) * most;
  if (tail == Tail::square_tiles || is_pair) return most;
  const bool is_slow = kernel.executor == Executor::simt;
  return most >> *gen::inRange(is_slow ? 1 : 0, is_slow ? 5 : 3);
}

/// Draws what is enlarged: one dimension of the tail's, and where a case is to be large in two
/// another one of any tail.
std::vector<Enlargement> draw_enlargements(Tail tail, bool is_pair) {
  const std::span<const Enlargement> of_tail = enlargements(tail);
  const Enlargement first = of_tail[*gen::inRange<std::size_t>(0, of_tail.size())];
  if (!is_pair) return {first};
  std::vector<Enlargement> others;
  for (const Tail other_tail : {Tail::lengths, Tail::shape}) {
    for (const Enlargement& other : enlargements(other_tail)) {
      if ((other.sizes & first.sizes) == 0 && !other.splits_keys) others.push_back(other);
    }
  }
  return {first, *gen::elementOf(others)};
}

/// True if a GPU's kernel, whose blocks keep whole tiles of each entry there, needs a large
/// workspace; a plugin is asked by its worker alone.
bool has_large_workspace(const KernelInfo& kernel, const Case& c) {
  const bool is_asked =
      kernel.executor == Executor::gpu && kernel.plugin.empty() && kernel.workspace_bytes;
  return is_asked && kernel.workspace_bytes(c.problem, c.plan) > most_workspace;
}

/// The case with its sizes enlarged, and others cut until it costs no more than its kind may;
/// nullopt: these draws are too large, or the kernel does not take them.
std::optional<Case> enlarged(Tail tail, const std::vector<Enlargement>& how,
                             const KernelInfo& kernel, const GeneratorOptions& options, Case c) {
  const SizeLimits most = options.limits(tail_sizes);
  unsigned sizes = 0;
  for (const Enlargement& one : how) {
    if (!one.enlarge(kernel, c.plan, most, c.problem)) return std::nullopt;
    sizes |= one.sizes;
  }
  const bool splits_keys = how.front().splits_keys;
  if (!choose_plan(kernel, splits_keys, c)) return std::nullopt;
  const std::int64_t limit = draw_work(tail, how.size() > 1, kernel, c.plan);
  const auto is_dear = [&] {
    return work_of(kernel, c.problem, c.plan) > limit || has_large_workspace(kernel, c);
  };
  while (is_dear() && cut_one(kernel, options, sizes, c)) {
  }
  if (tail == Tail::lengths) draw_long_window(kernel, c);
  // A smaller problem may have other Plans.
  if (!choose_plan(kernel, splits_keys, c) || is_dear() || !can_run(kernel, c)) return std::nullopt;
  return c;
}

}  // namespace

std::int64_t work_of(const KernelInfo& kernel, const Problem& p, const Plan& plan) {
  const bool is_padded = kernel.executor == Executor::simt;
  const auto padded = [&](std::int64_t length, std::int64_t tile) {
    return is_padded ? round_up(length, std::max<std::int64_t>(tile, 1)) : length;
  };
  const std::int64_t rows = padded(p.query_len, plan.query_tile);
  // A block of the executor has its threads to start and its memory to fill before it sees a key.
  const std::int64_t keys =
      padded(is_padded ? std::max<std::int64_t>(p.key_len, 1) : p.key_len, plan.key_tile);
  const std::int64_t columns = std::max(p.head_dim, p.output_dim()) + columns_of_row;
  const std::int64_t products = p.query_heads * rows * keys;
  const std::int64_t elements = p.query_heads * p.query_len + p.kv_heads * p.key_len;
  return p.batch * columns * (products + work_of_element * elements);
}

std::int64_t most_work(const KernelInfo& kernel, const Plan& plan) {
  return work_of(kernel,
                 {.query_heads = 4,
                  .kv_heads = 4,
                  .query_len = usual_tile,
                  .key_len = 4 * usual_sizes.len,
                  .head_dim = 64},
                 plan);
}

std::optional<Case> draw_from_tail(Tail tail, const KernelInfo& kernel,
                                   const GeneratorOptions& options, const Case& usual) {
  const bool is_pair = (tail == Tail::lengths || tail == Tail::shape) && *gen::inRange(0, 2) == 0;
  for (int i = 0; i < most_choices; ++i) {
    const std::vector<Enlargement> how = draw_enlargements(tail, is_pair);
    for (int j = 0; j < most_tries; ++j) {
      if (auto c = enlarged(tail, how, kernel, options, usual)) return c;
    }
  }
  return std::nullopt;
}

}  // namespace attest
