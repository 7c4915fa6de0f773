#include "verify/cases/generators.hpp"

#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <mutex>
#include <string_view>

#include "core/attention/storage.hpp"
#include "core/base/error.hpp"
#include "core/base/fnv1a.hpp"
#include "core/base/glob.hpp"
#include "core/inputs/input_family.hpp"
#include "core/run/registry.hpp"
#include "verify/cases/extras.hpp"
#include "verify/cases/heavy_tail.hpp"
#include "verify/cases/paging.hpp"
#include "verify/cases/plain.hpp"
#include "verify/cases/rounding.hpp"
#include "verify/cases/shrinking.hpp"

namespace attest {
namespace {

namespace gen = rc::gen;

struct HeadCounts {
  std::int64_t query, kv;
};

/// GQA ratios that are not powers of two, and groups unlike the number of KV heads, are the ones
/// that find index errors (HipKittens#22, FlashInfer#4525).
constexpr std::array<HeadCounts, 23> head_counts{{{1, 1}, {1, 1},  {2, 1},  {2, 1},  {2, 2}, {2, 2},
                                                  {3, 1}, {3, 1},  {3, 3},  {4, 1},  {4, 2}, {4, 4},
                                                  {5, 1}, {5, 1},  {6, 2},  {6, 3},  {7, 1}, {8, 1},
                                                  {8, 1}, {16, 1}, {10, 2}, {12, 4}, {28, 4}}};

/// Half of the cases with packed entries have few heads, so that entries are as long as elsewhere.
constexpr std::array<HeadCounts, 4> few_heads{{{1, 1}, {2, 1}, {2, 2}, {3, 1}}};

/// Head counts for plans that pack the query heads of a group into the rows of a tile: as many rows
/// as users have, and ratios that divide no tile.
constexpr std::array<HeadCounts, 8> packed_head_counts{
    {{8, 1}, {8, 1}, {16, 2}, {5, 1}, {10, 2}, {6, 2}, {7, 1}, {12, 4}}};

/// Head counts for kernels of latent attention, whose heads share one cache: half a tile of rows
/// and less, and with several queries tiles of rows that are not full.
constexpr std::array<HeadCounts, 6> latent_head_counts{
    {{16, 1}, {16, 1}, {20, 1}, {12, 1}, {5, 1}, {6, 2}}};

std::vector<const InputFamily*> matching_families(const Operation& operation,
                                                  const std::string& glob) {
  std::vector<const InputFamily*> matching = families_of(operation);
  std::erase_if(matching,
                [&](const InputFamily* family) { return !matches_glob(family->name, glob); });
  if (matching.empty()) {
    throw InvalidInput(
        fmt::format("--family '{}' matches no input family; see attest list inputs", glob));
  }
  return matching;
}

std::int64_t draw_head_dim(const KernelInfo& kernel, const InputFamily& family, std::int64_t most) {
  if (!family.head_dims.empty()) return *gen::elementOf(family.head_dims);
  const auto common = *gen::element<std::int64_t>(16, 32, 64);
  const auto odd = *gen::element<std::int64_t>(1, 7, 16, 17, 24, 40, 48, 59, 63);
  std::vector<std::int64_t> wide{65, 80, 96, 111, 128, 129, 160, 192, 255, 256, 512, 1024};
  std::erase_if(wide, [&](std::int64_t dim) { return dim > std::max(most, usual_sizes.head_dim); });
  const auto drawn = *gen::weightedOneOf<std::int64_t>(
      {{5, gen::just(common)}, {3, gen::just(odd)}, {2, gen::elementOf(wide)}});
  const std::int64_t usual = std::min(drawn, most);
  const std::vector<std::int64_t>& own = kernel.head_dims;
  if (own.empty() || std::ranges::find(own, usual) != own.end()) return usual;
  std::vector<std::int64_t> within;
  for (const std::int64_t dim : own) {
    if (dim <= most) within.push_back(dim);
  }
  return within.empty() ? own.front() : *gen::elementOf(within);
}

/// fp32 factors of the dot products; denormal, negative and 0 ones turn masks into NaN in kernels
/// that multiply -infinity by them (FlashAttention#1461).
float draw_scale(std::int64_t head_dim) {
  const float usual = default_scale(head_dim);
  return *gen::weightedElement<float>(
      {{16, usual}, {2, 1.0F}, {2, 0.3F}, {2, -usual}, {2, 0.0F}, {1, 1e-40F}});
}

/// The base moves by 2 to 32 bytes, whatever the format.
TensorLayout draw_layout() {
  return {.order = *gen::element(DimOrder::bhnd, DimOrder::bhnd, DimOrder::bnhd, DimOrder::bnhd,
                                 DimOrder::hbnd, DimOrder::hnbd, DimOrder::nbhd, DimOrder::nhbd),
          .row_gap = *gen::element<std::int64_t>(0, 0, 0, 1, 3, 8),
          .base_offset = *gen::element<std::int64_t>(0, 0, 0, 1, 2, 4, 7, 8),
          .plane_gap = *gen::element<std::int64_t>(0, 0, 0, 2, 5, 16),
          .outer_gap = *gen::element<std::int64_t>(0, 0, 0, 1, 24),
          .lone_stride = *gen::element<std::int64_t>(0, 0, 0, 1, std::int64_t{1} << 33)};
}

/// Each of the steps that lie far apart is a piece of memory of its own; where there are more, the
/// gaps between them are too short for that and would be filled.
constexpr std::int64_t most_far_steps = 512;

/// Moves the steps of the slowest dimension so far apart that the last element lies beyond
/// `distance` elements, if any order has two steps.
void move_far(TensorLayout& layout, const Shape& shape, std::int64_t distance) {
  std::vector<DimOrder> orders;
  for (const DimOrder order : all_dim_orders()) {
    const std::int64_t steps = shape[static_cast<std::size_t>(slowest_dim(order))];
    if (steps > 1 && steps <= most_far_steps) orders.push_back(order);
  }
  if (orders.empty()) return;
  layout.order = *gen::elementOf(orders);
  const std::int64_t steps = shape[static_cast<std::size_t>(slowest_dim(layout.order))] - 1;
  layout.outer_gap = (distance + steps - 1) / steps;
}

/// Draws the distance of the last element from the first, in elements: beyond what signed and what
/// unsigned 32-bit offsets reach. Memory of a GPU is taken, address space of the host is not.
std::int64_t draw_distance(const KernelInfo& kernel, ElementType type) {
  const auto distance = *gen::element(far_elements, 2 * far_elements);
  const bool fits = kernel.executor != Executor::gpu || format_of(type).size_bytes == 2;
  return fits ? distance : far_elements;
}

Layouts draw_layouts(const KernelInfo& kernel, const Plan& plan, Problem& problem,
                     bool may_be_far) {
  Layouts layouts;
  layouts.paging = draw_paging(kernel, plan, problem);
  if (*gen::inRange(0, 4) == 0) return layouts;
  for_each_tensor(*problem.operation, [&](const TensorSpec& tensor, auto index) {
    if (tensor.is_strided) layouts[index] = draw_layout();
  });
  const int far = *gen::inRange(0, 100);
  if (!may_be_far || problem.key_len == 0) return layouts;
  const std::int64_t distance = draw_distance(kernel, problem.element_type);
  // One tensor at a time: each takes 8 or 16 GiB of address space.
  int number = 0;
  for_each_tensor(*problem.operation, [&](const TensorSpec& tensor, auto index) {
    if (!tensor.is_strided || number++ != far) return;
    move_far(layouts[index], stored_shape(problem, index, layouts.paging), distance);
  });
  return layouts;
}

/// Largest length: what is left of max_len when batch, heads and wide heads multiply the work.
std::int64_t len_limit(const Problem& p, std::int64_t max_len) {
  const double share = std::sqrt(
      2.0 * usual_head_dim /
      static_cast<double>(p.batch * p.query_heads * std::max(p.head_dim, usual_head_dim)));
  return std::max<std::int64_t>(1,
                                std::llround(std::min(1.0, share) * static_cast<double>(max_len)));
}

/// Windows come with the extras, which leave half of the cases alone.
Mask draw_prefix_mask(const KernelInfo& kernel) {
  std::vector<Mask> masks = kernel.masks;
  std::erase_if(masks, is_window);
  return masks.empty() ? kernel.masks.front() : *gen::elementOf(masks);
}

std::int64_t draw_batch(const Extras& extras, std::int64_t most) {
  most = std::min(most, usual_sizes.batch);
  if (extras.lengths) return *gen::inRange<std::int64_t>(1, most + 1);
  return std::min(*gen::weightedElement<std::int64_t>({{4, 1}, {2, 2}, {1, 3}}), most);
}

/// Families whose maxima move while a kernel walks along the keys, from whichever end it starts.
constexpr std::array<std::string_view, 4> late_maxima{"ascending_maxima", "descending_maxima",
                                                      "dominant_key", "sink"};

bool has_late_maxima(const InputFamily* family) {
  return std::ranges::find(late_maxima, family->name) != late_maxima.end();
}

const InputFamily& draw_family(const Operation& operation, const GeneratorOptions& options,
                               bool late) {
  std::vector<const InputFamily*> families = matching_families(operation, options.families);
  if (late && std::ranges::any_of(families, has_late_maxima)) {
    std::erase_if(families, std::not_fn(has_late_maxima));
  }
  return **gen::elementOf(families);
}

/// Shapes a problem whose loop over keys is long: one query tile, whose rows are as many loops at a
/// time, or a part of one, whose other warps run ahead; no mask that leaves few queries few keys;
/// but heads enough for a block that stays to take several tiles, one after the other.
void shape_for_many_tiles(const KernelInfo& kernel, const SizeLimits& most, const Plan& plan,
                          Problem& p) {
  const auto rows = *gen::element<std::int64_t>(1, 16, 40, plan.query_tile);
  p.query_len = std::min(p.query_len, std::max<std::int64_t>(1, rows));
  if (p.mask == Mask::causal_top_left) p.mask = kernel.masks.front();
  p.batch = 1;
  const HeadCounts heads = *gen::element(HeadCounts{4, 1}, HeadCounts{4, 2}, HeadCounts{5, 5});
  if (plan.pack_gqa == PackGqa::yes || heads.query > most.query_heads) return;
  p.query_heads = heads.query;
  p.kv_heads = heads.kv;
}

/// True if the Plan is one of a kernel for decoding. Others that read lengths do not split keys by
/// a rule.
bool decodes(const KernelInfo& kernel, const Plan& plan) {
  return kernel.reads_lengths && plan.key_split_rule != 0;
}

/// Gives every other case of a kernel for decoding few queries, and keys that end beside a chunk:
/// one query among 9 chunks is what it is for, and requests of all lengths in one batch.
void shape_for_decoding(const KernelInfo& kernel, const SizeLimits& most, const Plan& plan,
                        Extras& extras, Problem& p) {
  if (plan.cascade != Cascade::yes && *gen::inRange(0, 2) == 0) return;
  const std::int64_t chunk = plan.split_keys > 0 ? plan.split_keys : 64;
  p.query_len = *gen::element<std::int64_t>(1, 1, 1, 2, 5, 16);
  const std::int64_t chunks = *gen::element<std::int64_t>(1, 2, 3, 9);
  const std::int64_t beside = *gen::element<std::int64_t>(-1, 0, 1, 33);
  p.key_len = std::min(chunk * chunks + beside, 8 * most.len);
  // Which entries have the whole of a shared prefix is a matter of lengths.
  const int one_in = plan.cascade == Cascade::yes ? 2 : 4;
  if (!kernel.features.lengths || *gen::inRange(0, one_in) != 0) return;
  extras.lengths = true;
  p.batch = std::max(p.batch, *gen::element<std::int64_t>(2, 3, 5));
}

/// Plans that a kernel made for many queries offers for one alone: how it decodes.
std::vector<Plan> plans_of_one_query(const KernelInfo& kernel, Problem problem,
                                     const std::vector<Plan>& of_many) {
  if (decodes(kernel, of_many.front())) return {};  // made for few: see shape_for_decoding
  problem.query_len = 1;
  std::vector<Plan> plans = kernel.plans(problem);
  std::erase_if(plans, [&](const Plan& plan) { return std::ranges::count(of_many, plan) > 0; });
  return plans;
}

/// Keeps, in every third case, only Plans that take pages, where not all do: a draw from all would
/// hardly meet any.
void keep_plans_for_pages(const KernelInfo& kernel, const Problem& problem,
                          std::vector<Plan>& plans) {
  if (!kernel.unsupported_in_pages || *gen::inRange(0, 3) != 0) return;
  std::vector<Plan> kept = plans;
  std::erase_if(kept, [&](const Plan& plan) {
    return kernel.unsupported_in_pages(problem, plan).has_value();
  });
  if (!kept.empty()) plans = kept;
}

/// A case but for its layouts, of sizes up to `most`.
Case draw_within(const KernelInfo& kernel, const GeneratorOptions& options, const SizeLimits& most,
                 bool many_tiles) {
  Case c;
  c.kernel = kernel.name;
  const InputFamily& family = draw_family(*kernel.operation, options, many_tiles);
  Problem& p = c.problem;
  p.operation = kernel.operation;
  p.element_type = *gen::elementOf(kernel.element_types);
  p.mask = draw_prefix_mask(kernel);
  p.head_dim = draw_head_dim(kernel, family, most.head_dim);
  p.scale = family.head_dims.empty() ? draw_scale(p.head_dim) : default_scale(p.head_dim);
  const HeadCounts heads = *gen::elementOf(head_counts);
  p.query_heads = heads.query;
  p.kv_heads = heads.kv;
  if (p.query_heads > most.query_heads) p.query_heads = p.kv_heads = 1;
  Extras extras = draw_extras(kernel);
  p.batch = draw_batch(extras, most.batch);

  // Plans of the largest problem of this kind: the lengths are then drawn around one plan's tiles.
  Problem largest = p;
  largest.query_len = largest.key_len = most.len;
  if (extras.lengths) largest.length_seed = 1;
  std::vector<Plan> plans = kernel.plans(largest);
  if (plans.empty() && extras.lengths) {  // not of this head dim, say
    extras.lengths = false;
    largest.length_seed = 0;
    plans = kernel.plans(largest);
  }
  keep_plans_for_pages(kernel, largest, plans);
  if (plans.empty()) return c;
  const std::vector<Plan> of_one = plans_of_one_query(kernel, largest, plans);
  const bool is_one_query = !of_one.empty() && *gen::inRange(0, 6) == 0;
  c.plan = *gen::elementOf(is_one_query ? of_one : plans);
  if (c.plan.pack_gqa == PackGqa::yes) {
    const HeadCounts packed = kernel.values_in_keys_dim > 0 ? *gen::elementOf(latent_head_counts)
                                                            : *gen::elementOf(packed_head_counts);
    if (packed.query <= most.query_heads) {
      p.query_heads = packed.query;
      p.kv_heads = packed.kv;
    }
  }
  const bool has_long_entries =
      extras.lengths && c.plan.pack_gqa != PackGqa::yes && *gen::inRange(0, 2) == 0;
  if (has_long_entries) {
    const HeadCounts few = *gen::elementOf(few_heads);
    if (few.query <= most.query_heads) {
      p.query_heads = few.query;
      p.kv_heads = few.kv;
    }
  }
  const std::int64_t max_len = has_long_entries ? most.len : len_limit(p, most.len);
  LengthWeights of_queries = options.lengths;
  if (!extras.no_queries) of_queries.zero = 0;
  p.query_len = draw_length(of_queries, c.plan.query_tile, max_len);
  p.key_len = draw_length(options.lengths, c.plan.key_tile, max_len);
  if (*gen::inRange(0, 6) == 0) p.key_len = p.query_len;
  if (decodes(kernel, c.plan)) shape_for_decoding(kernel, most, c.plan, extras, p);
  if (many_tiles) {
    p.key_len = draw_many_tiles(c.plan.key_tile, most.len);
    shape_for_many_tiles(kernel, most, c.plan, p);
  }
  if (is_one_query) p.query_len = 1;
  // A row with one key has nothing beside a logit below the sentinel (FlashInfer#4267).
  if (family.name == "negative_shift" && *gen::inRange(0, 3) == 0) p.key_len = 1;
  draw_extra_shapes(extras, kernel, c.plan.key_tile, most.head_dim, p);
  p = with_needs_of(kernel, p);
  c.inputs = {.family = family.name,
              .seed = *gen::arbitrary<std::uint64_t>(),
              .magnitude = *gen::elementOf(family.magnitudes),
              .round_to_integers = false};
  c.schedule_seed = *gen::arbitrary<std::uint64_t>();
  if (extras.softcap) p.softcap = draw_softcap(c.inputs.magnitude);
  return c;
}

/// Number of cases of which one has a size past 2^16, which is dear: seldom in a default campaign,
/// and as often as it takes to meet all of them in a thorough one. Not for the executor, which
/// takes a second for what others do in milliseconds.
int far_one_in(std::uint64_t index) {
  return index < 100 ? 200 : 8;
}

/// Tail of a case that its lengths ask for; of other cases one in 13 is large in another dimension.
std::optional<Tail> draw_tail(const KernelInfo& kernel, std::uint64_t index,
                              const LengthKind* kind) {
  if (kind == nullptr) {
    if (*gen::inRange(0, 13) == 0) return Tail::shape;
    const bool is_far =
        kernel.executor != Executor::simt && *gen::inRange(0, far_one_in(index)) == 0;
    return is_far ? std::optional(Tail::past_16_bits) : std::nullopt;
  }
  if (kind->weight == &LengthWeights::heavy_tail) return Tail::lengths;
  if (kind->weight == &LengthWeights::few_queries) return Tail::few_queries;
  if (kind->weight == &LengthWeights::square_tiles) return Tail::square_tiles;
  return std::nullopt;
}

/// Another Plan where the drawn one cannot run with what was drawn after it.
void draw_plan_that_fits(const KernelInfo& kernel, Case& c) {
  if (!why_unsupported(kernel, c.problem, c.plan)) return;
  const std::vector<Plan> plans = kernel.plans(c.problem);
  if (!plans.empty()) c.plan = *gen::elementOf(plans);
}

/// Called inside gen::exec, where dereferencing a generator draws from it.
Case draw_any(const KernelInfo& kernel, const GeneratorOptions& options, std::uint64_t index) {
  SizeLimits usual = options.limits(usual_sizes);
  // Wide heads are dear on the executor; its tail has some.
  if (kernel.executor == Executor::simt)
    usual.head_dim = options.max_head_dim.value_or(usual_head_dim);
  const LengthKind* kind = draw_kind_of_case(options.lengths);
  std::optional<Case> c;
  if (const std::optional<Tail> tail = draw_tail(kernel, index, kind)) {
    c = draw_from_tail(*tail, kernel, options, draw_within(kernel, options, usual, false));
  }
  if (!c) {
    const bool many_tiles = kind != nullptr && kind->weight == &LengthWeights::many_tiles;
    c = draw_within(kernel, options, usual, many_tiles);
  }
  // A Plan of warps without a query tile has a block for each row and part: dear on the executor,
  // however few the keys.
  constexpr std::int64_t most_rows_of_blocks = 64;
  if (kernel.executor == Executor::simt && c->plan.warps > 0 && c->plan.query_tile == 0)
    c->problem.query_len = std::min(c->problem.query_len, most_rows_of_blocks);
  draw_own_fields(kernel, c->problem);
  c->problem = with_needs_of(kernel, c->problem);  // a large head_dim or value_dim came later
  const bool may_be_far = kernel.executor != Executor::gpu || options.far_elements_on_gpu;
  const Layouts layouts = draw_layouts(kernel, c->plan, c->problem, may_be_far);
  c->layouts = fitted(kernel.layout_needs, c->problem, layouts);
  c->problem.lse_gradient = draw_lse_gradient(kernel);
  const Problem plain = c->problem;
  draw_score_modifications(kernel, c->problem);
  draw_epilogue(kernel, c->problem);
  if (c->problem != plain) draw_plan_that_fits(kernel, *c);
  return *c;
}

/// Kernels draw cases of their own, so that a campaign of many reaches what few cases of each do
/// not; a planted bug those of the kernel that it was planted in.
std::uint64_t stream_of(const KernelInfo& kernel) {
  return fnv1a(kernel.planted_in.empty() ? kernel.name : kernel.planted_in);
}

}  // namespace

Case draw_attempt(const KernelInfo& kernel, const GeneratorOptions& options, std::uint64_t seed,
                  std::uint64_t index, std::int64_t attempt, std::int64_t refused) {
  const auto generator = gen::exec([&] { return draw_any(kernel, options, index); });
  // One independent stream a case: the key of RapidCheck's generator is hashed from all three.
  rc::Random random(seed * 0x9e3779b97f4a7c15ULL + index * 0xd1b54a32d192ed03ULL +
                    stream_of(kernel));
  for (std::int64_t before = 0; before < attempt; ++before) (void)random.split();
  // RapidCheck keeps the generator that `*` draws from in one variable for all threads.
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  return rounded_case(kernel, options, generator(random.split(), 100).value(), refused);
}

std::optional<Case> draw_case(const KernelInfo& kernel, const GeneratorOptions& options,
                              std::uint64_t seed, std::uint64_t index) {
  std::int64_t refused = 0;
  for (std::int64_t attempt = 0; attempt < draw_attempts; ++attempt) {
    const Case c = draw_attempt(kernel, options, seed, index, attempt, refused);
    if (!has_inputs(c)) continue;
    if (!why_refused(kernel, c)) return c;
    ++refused;
  }
  return std::nullopt;
}

}  // namespace attest
