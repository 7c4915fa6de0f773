// The family as a kernel under test: which Plans it offers, what it cannot run, which roundings it
// performs. The algorithm is in consumer.cuh and loader.cuh; what is compiled, in a file for each
// head dim; the README names the pieces and what was measured.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <span>
#include <string>

#include "core/operations/forward_arguments.hpp"
#include "core/run/card.hpp"
#include "core/run/registry.hpp"
#include "gpu/kernels/fa3_wgmma/ragged_launch.cuh"
#include "gpu/kernels/fa3_wgmma/row_ranges.cuh"
#include "gpu/kernels/fa3_wgmma/variant.cuh"
#include "gpu/kernels/few_queries.hpp"
#include "gpu/kernels/key_splits.cuh"
#include "gpu/primitives/cuda_type.cuh"
#include "gpu/primitives/elementary_error.hpp"
#include "gpu/primitives/grid_order_plan.hpp"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/tensor_map.cuh"

#ifdef __CUDACC__
#include "gpu/runtime/cuda_error.hpp"
#endif

namespace attest {
namespace {

constexpr std::int64_t largest_head_dim = 256;
constexpr std::int64_t largest_ragged_head_dim = 128;
constexpr std::int64_t largest_epilogue_head_dim = 128, largest_modified_head_dim = 128;
constexpr std::int64_t largest_ended_head_dim = 64;  // beyond, masked variants have the same tiles
constexpr std::int64_t largest_dim_of_narrow = 192, largest_narrow_dim = 128;  // of K, of V
constexpr std::int64_t largest_splits = 256;
constexpr std::int64_t largest_length = std::int64_t{1} << 30;  // lengths are in 32 bits
constexpr std::int64_t largest_tiles = std::int64_t{1} << 30;
constexpr int warpgroup_rows = 64;
constexpr float log2_e = 1.44269504088896340736F;

/// {tiles taken, blocks that ended} of the launches in flight; the last block of a launch leaves
/// them at 0 again, so that no launch needs another before it to clear them.
constexpr unsigned launches_in_flight = 4096;
__device__ unsigned tile_counters[launches_in_flight][2];

template <typename T>
std::span<const Fa3Variant> variants_of(std::int64_t head_dim) {
  if (head_dim <= 64) return fa3_variants<this_executor, T, 64>();
  if (head_dim <= 96) return fa3_variants<this_executor, T, 96>();
  if (head_dim <= 128) return fa3_variants<this_executor, T, 128>();
  if (head_dim <= 192) return fa3_variants<this_executor, T, 192>();
  return fa3_variants<this_executor, T, 256>();
}

std::span<const Fa3Variant> variants(const Problem& problem) {
  return with_sixteen_bits(problem.element_type, [&]<typename T>(std::type_identity<T>) {
    return variants_of<T>(problem.head_dim);
  });
}

/// Plan of a variant: the fields that choose it.
Plan plan_of(const Fa3Variant& v) {
  return {.query_tile = v.query_tile,
          .key_tile = v.choice.key_tile,
          .key_splits = v.choice.splits ? 2 : 0,
          .warps = v.threads / 32,
          .stages = v.choice.k_stages,
          .ping_pong = v.choice.ping_pong ? PingPong::yes : PingPong::no,
          .overlap = v.choice.overlap ? Overlap::yes : Overlap::no,
          .delays = v.choice.delays ? std::int64_t{Delays::random} : 0};
}

/// True of variants for dense problems.
bool is_dense(const Fa3Variant& v) {
  return !v.choice.ragged && !v.choice.lists && !v.choice.ended && !v.choice.masked &&
         v.choice.value_dim == 0;
}

/// True of problems whose V has not the head dim of K: there are variants of their own for them.
bool has_value_dim(const Problem& problem) {
  return problem.output_dim() != problem.head_dim;
}

/// True of problems whose rows' ranges of keys are found by a launch before the other.
bool has_ranges(const Problem& problem) {
  return problem.prefix_seed != 0 || problem.document_seed != 0;
}

/// True of problems that have, of those below, again variants of their own.
bool is_modified(const Problem& problem) {
  return problem.bias != Bias::none || problem.dropout > 0.0F;
}

/// True of problems whose rows end with more than a division.
bool is_ended(const Problem& problem) {
  return problem.sinks != Sinks::none || has_epilogue(problem);
}

/// True of problems that have what each key tile must be asked for.
bool has_terms(const Problem& problem) {
  return is_window(problem.mask) || problem.padding_seed != 0 || problem.softcap != 0.0F ||
         problem.slopes != Slopes::none || has_ranges(problem) || is_modified(problem);
}

/// True of problems for which there are variants of their own: for those of masked_problems.
bool is_masked(const Problem& problem) {
  return is_ended(problem) || has_terms(problem);
}
constexpr const char* masked_problems =
    "windows, padding, prefixes, documents, softcaps, sinks, slopes, biases, dropout, gates and "
    "residuals";

/// Positive scales by which slopes and biases are divided, in fp32: beyond, the quotient, or its
/// sum with a dot product, could leave fp32 where the score does not.
constexpr float least_divisor = 0x1p-64F, largest_divisor = 0x1p64F;

/// True of problems with either that have no such scale.
bool has_far_scale(const Problem& problem) {
  return (problem.slopes != Slopes::none || problem.bias != Bias::none) && problem.scale > 0.0F &&
         !(least_divisor <= problem.scale && problem.scale <= largest_divisor);
}

/// True of variants for what the problem has of all that.
bool is_for_kind_of(const Fa3Variant& v, const Problem& problem) {
  const bool is_ended_alone =
      is_ended(problem) && !has_terms(problem) && problem.head_dim <= largest_ended_head_dim;
  return v.choice.ended == is_ended_alone &&
         v.choice.masked == (is_masked(problem) && !is_ended_alone) &&
         v.choice.modified == is_modified(problem) &&
         v.choice.softcap == (problem.softcap != 0.0F) &&
         (v.choice.value_dim != 0) == has_value_dim(problem);
}

/// Variants that are compiled for fewer head dims: for lengths and pages, for lists of keys and, at
/// all of these, for masked problems; for V of another dim at one.
std::span<const Fa3Variant> special_variants(Problem problem) {
  if (has_value_dim(problem)) {
    problem.head_dim = largest_dim_of_narrow;
    return variants(problem);
  }
  problem.head_dim = problem.head_dim <= 64 ? 64 : problem.head_dim <= 128 ? 128 : largest_head_dim;
  return variants(problem);
}

/// `is_ragged`: among those for lengths and pages; with lists of keys among those for them.
const Fa3Variant* find_variant(const Problem& problem, const Plan& plan, bool is_ragged) {
  Plan tiles = plan;
  tiles.grid_order = tiles.group = tiles.scheduling = tiles.pack_gqa = tiles.reference = 0;
  tiles.key_splits = plan.key_splits > 1 ? 2 : 0;
  if (tiles.delays == Delays::none) tiles.delays = 0;
  const bool has_lists = problem.list_seed != 0;
  const bool is_special = is_ragged || has_lists || is_masked(problem) || has_value_dim(problem);
  for (const Fa3Variant& v : is_special ? special_variants(problem) : variants(problem)) {
    const bool is_meant =
        v.choice.ragged == is_ragged && v.choice.lists == has_lists && is_for_kind_of(v, problem);
    if (is_meant && plan_of(v) == tiles) return &v;
  }
  return nullptr;
}

/// Plans of the variants that hold, as a sentence's end.
template <typename Holds>
std::string plans_where(std::span<const Fa3Variant> variants, const Holds& holds) {
  std::string all;
  for (const Fa3Variant& v : variants) {
    if (!holds(v)) continue;
    if (!all.empty()) all += "; ";
    all += to_string(plan_of(v));
  }
  return all;
}

/// Why a Plan cannot run with lists of keys.
std::optional<std::string> why_no_lists(const Problem& problem, const Plan& plan) {
  if (problem.head_dim > largest_ragged_head_dim) {
    return "head_dim is " + std::to_string(problem.head_dim) +
           "; allowed with lists of keys: 1 to " + std::to_string(largest_ragged_head_dim);
  }
  if (problem.length_seed != 0) return "entries have lengths; allowed: without lists of keys";
  const Fa3Variant* const v = find_variant(problem, plan, false);
  if (v == nullptr || plan.pack_gqa != 0) {
    return "the plan is " + to_string(plan) +
           "; compiled for lists of keys and this head_dim, without pack_gqa: " +
           plans_where(special_variants(problem), [](const auto& one) { return one.choice.lists; });
  }
  const std::int64_t units = problem.list_keys / fa3_unit_keys;
  if (!std::has_single_bit(static_cast<std::uint64_t>(units))) {
    return "list_keys is " + std::to_string(problem.list_keys) +
           "; allowed: " + std::to_string(fa3_unit_keys) + " times a power of two";
  }
  return std::nullopt;
}

/// The problem and what it may not have beside that of masked_problems.
std::string masked_without(const Problem& problem, const std::string& what) {
  return "the problem is " + to_string(problem) + "; allowed with " + masked_problems + ": no " +
         what;
}

/// Why a Plan cannot run a masked problem.
std::optional<std::string> why_not_masked(const Problem& problem, const Plan& plan) {
  if (problem.list_seed != 0 || problem.length_seed != 0) {
    return masked_without(problem, "lengths and lists of keys");
  }
  if (has_epilogue(problem) && problem.head_dim > largest_epilogue_head_dim) {
    return "head_dim is " + std::to_string(problem.head_dim) +
           "; allowed with gates and residuals: 1 to " + std::to_string(largest_epilogue_head_dim);
  }
  if (has_far_scale(problem)) {
    return "the problem is " + to_string(problem) +
           "; allowed with slopes or a bias: scales up to 0, and from 2^-64 to 2^64";
  }
  if (is_modified(problem) && problem.head_dim > largest_modified_head_dim) {
    return "head_dim is " + std::to_string(problem.head_dim) +
           "; allowed with a bias or dropout: 1 to " + std::to_string(largest_modified_head_dim);
  }
  if (is_modified(problem) && problem.softcap != 0.0F) {
    return "the problem is " + to_string(problem) + "; allowed with a bias or dropout: no softcap";
  }
  if (find_variant(problem, plan, false) != nullptr && plan.pack_gqa == 0) return std::nullopt;
  return "the plan is " + to_string(plan) + "; compiled for " + masked_problems +
         " and this head_dim, without pack_gqa: " +
         plans_where(special_variants(problem),
                     [&](const auto& v) { return is_for_kind_of(v, problem); });
}

/// Why a Plan cannot run with V of another dim than K.
std::optional<std::string> why_no_value_dim(const Problem& problem, const Plan& plan) {
  if (problem.head_dim > largest_dim_of_narrow || problem.output_dim() > largest_narrow_dim) {
    return "head_dim is " + std::to_string(problem.head_dim) + ", value_dim " +
           std::to_string(problem.output_dim()) + "; allowed where they differ: to " +
           std::to_string(largest_dim_of_narrow) + " and " + std::to_string(largest_narrow_dim);
  }
  if (is_masked(problem) || problem.list_seed != 0 || problem.length_seed != 0) {
    return std::string(
               "value_dim differs from head_dim; allowed: without lengths, lists of keys, ") +
           masked_problems;
  }
  if (find_variant(problem, plan, false) != nullptr && plan.pack_gqa == 0) return std::nullopt;
  return "the plan is " + to_string(plan) +
         "; compiled for a value_dim that differs from head_dim, without pack_gqa: " +
         plans_where(special_variants(problem),
                     [](const auto& v) { return v.choice.value_dim != 0; });
}

/// Why a Plan cannot run where entries have lengths, or K and V lie in pages.
std::optional<std::string> why_not_ragged(const Problem& problem, const Plan& plan) {
  if (problem.list_seed != 0) return "there are lists of keys; allowed: without lengths and pages";
  if (has_value_dim(problem)) {
    return "value_dim differs from head_dim; allowed: without lengths and pages";
  }
  if (is_masked(problem)) {
    return masked_without(problem, "lengths and pages");
  }
  if (problem.head_dim > largest_ragged_head_dim) {
    return "head_dim is " + std::to_string(problem.head_dim) +
           "; allowed with lengths and pages: 1 to " + std::to_string(largest_ragged_head_dim);
  }
  if (find_variant(problem, plan, true) == nullptr) {
    return "the plan is " + to_string(plan) +
           "; compiled for lengths and pages and this head_dim: " +
           plans_where(special_variants(problem), [](const auto& v) { return v.choice.ragged; });
  }
  const bool is_listed = plan.scheduling == Scheduling::persistent && plan.pack_gqa == 0 &&
                         (plan.grid_order == 0 || plan.grid_order == GridOrder::longest_first);
  if (!is_listed) {
    return "the plan is " + to_string(plan) +
           "; allowed with lengths and pages: scheduling persistent, grid_order longest_first or "
           "none, no pack_gqa";
  }
  return std::nullopt;
}

std::int64_t splits_of(const Plan& plan) {
  return std::max<std::int64_t>(1, plan.key_splits);
}

/// One query that sees every key: only then may heads be packed.
bool is_one_seeing_query(const Problem& problem) {
  return problem.query_len == 1 && problem.mask != Mask::causal_top_left;
}

/// Problem as the kernel is told of it. Packed, the query heads of a kv head are the queries of one
/// head: they stand in one tile, and keys are read once for all of them.
Problem as_run(Problem problem, const Plan& plan) {
  if (plan.pack_gqa != PackGqa::yes) return problem;
  problem.query_len = problem.query_heads / problem.kv_heads;
  problem.query_heads = problem.kv_heads;
  problem.mask = Mask::none;
  return problem;
}
ForwardArguments as_run(ForwardArguments a) {
  if (a.plan.pack_gqa != PackGqa::yes) return a;
  a.problem = as_run(a.problem, a.plan);
  for (Strides* const strides : {&a.q_strides, &a.o_strides}) {
    strides->row = strides->head;
    strides->head *= a.problem.query_len;
  }
  return a;
}

/// Output tiles, those of each split beside each other.
TileGrid grid_of(const Problem& problem, const Plan& plan) {
  return {problem.batch * problem.query_heads,
          ceil_div(problem.query_len, plan.query_tile) * splits_of(plan)};
}

/// Fa3Parameters::first_row: less the rows of the tiles beyond the queries, in whole warpgroups.
std::int64_t first_row(const Problem& asked, const Plan& plan) {
  const Problem problem = as_run(asked, plan);
  if (problem.mask == Mask::none || problem.list_seed != 0) return 0;  // lists begin with query 0
  const std::int64_t rows = ceil_div(problem.query_len, plan.query_tile) * plan.query_tile;
  return (problem.query_len - rows) / warpgroup_rows * warpgroup_rows;
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  const auto outside = [](const char* what, std::int64_t got, const std::string& allowed) {
    return std::string(what) + " is " + std::to_string(got) + "; allowed: " + allowed;
  };
  if (problem.head_dim > largest_head_dim) {
    return outside("head_dim", problem.head_dim, "1 to " + std::to_string(largest_head_dim));
  }
  const std::int64_t longest = std::max(problem.query_len, problem.key_len);
  if (longest >= largest_length) {
    return outside("the number of queries or keys", longest,
                   "below " + std::to_string(largest_length));
  }
  if (plan.key_splits < 0 || plan.key_splits > largest_splits) {
    return outside("key_splits", plan.key_splits, "0 to " + std::to_string(largest_splits));
  }
  if (has_value_dim(problem)) {
    if (const auto reason = why_no_value_dim(problem, plan)) return reason;
  } else if (is_masked(problem)) {
    if (const auto reason = why_not_masked(problem, plan)) return reason;
  } else if (problem.list_seed != 0) {
    if (const auto reason = why_no_lists(problem, plan)) return reason;
  } else if (problem.length_seed != 0) {
    if (const auto reason = why_not_ragged(problem, plan)) return reason;
  } else if (find_variant(problem, plan, false) == nullptr) {
    return "the plan is " + to_string(plan) +
           "; compiled for this head_dim, with any key_splits from 2 on for 2: " +
           plans_where(variants(problem), is_dense);
  }
  if (plan.reference < 0 || plan.reference > WeightReference::maximum) {
    return outside("reference", plan.reference, "0 to " + std::to_string(WeightReference::maximum));
  }
  if (plan.pack_gqa < 0 || plan.pack_gqa > PackGqa::yes) {
    return outside("pack_gqa", plan.pack_gqa, "0 to " + std::to_string(PackGqa::yes));
  }
  if (plan.pack_gqa == PackGqa::yes && !is_one_seeing_query(problem)) {
    return "pack_gqa is yes; allowed: for one query, which sees every key";
  }
  const TileGrid grid = grid_of(as_run(problem, plan), plan);
  if (grid.size() >= largest_tiles) {
    return outside("the number of output tiles", grid.size(),
                   "below " + std::to_string(largest_tiles));
  }
  if (plan.grid_order == GridOrder::launch_per_head ||
      plan.grid_order == GridOrder::two_dimensional) {
    return "grid_order takes more than one launch or dimension; allowed: all but launch_per_head "
           "and two_dimensional";
  }
  return why_order_does_not_fit(plan);
}

/// Heads whose tiles are worked on side by side under a causal mask: long tiles last would leave
/// most of the GPU idle at the end, and K and V of few heads stay in the L2 cache. Which is best
/// hangs on the lengths; the first is the one to take without a reason.
constexpr std::int64_t sections[] = {32, 16, 64};

/// Plans for one query, the one to take without a table first. Blocks are then few, and what they
/// read is all that counts.
std::vector<Plan> plans_for_one_query(const Problem& problem) {
  constexpr std::int64_t slots = sms_of_rules;  // a block on each SM
  const bool is_grouped = problem.query_heads > problem.kv_heads;
  std::vector<Plan> all;
  if (!is_one_seeing_query(problem) || is_masked(problem) || has_value_dim(problem)) return all;
  const std::vector<std::int64_t> numbers =
      splits_to_try(problem.batch * problem.kv_heads, problem.key_len, slots);
  if (!is_grouped && numbers.front() == 1) return all;  // as for many queries
  for (const std::int64_t splits : numbers) {
    if (!is_grouped && splits == 1) continue;
    const auto variant = std::ranges::find_if(variants(problem), [&](const Fa3Variant& v) {
      return is_dense(v) && v.choice.splits == (splits > 1);
    });
    if (variant == variants(problem).end()) continue;
    Plan plan = plan_of(*variant);
    plan.key_splits = splits > 1 ? splits : 0;
    if (is_grouped) plan.pack_gqa = PackGqa::yes;
    if (!unsupported(problem, plan)) all.push_back(plan);
  }
  return all;
}

std::vector<Plan> plans_for_lengths(const Problem& problem) {
  std::vector<Plan> all;
  for (const Fa3Variant& v : special_variants(problem)) {
    if (!v.choice.ragged) continue;
    Plan plan = plan_of(v);
    plan.scheduling = Scheduling::persistent;
    plan.grid_order = GridOrder::longest_first;
    for (const std::int64_t heads : sections) {
      plan.group = heads;
      if (!unsupported(problem, plan)) all.push_back(plan);
    }
  }
  return all;
}

std::vector<Plan> plans_for_lists(const Problem& problem) {
  std::vector<Plan> all;
  for (const Fa3Variant& v : special_variants(problem)) {
    if (!v.choice.lists) continue;
    Plan plan = plan_of(v);
    for (const std::int64_t scheduling : {Scheduling::persistent, Scheduling::one_tile}) {
      plan.scheduling = scheduling;
      if (!unsupported(problem, plan)) all.push_back(plan);
    }
  }
  return all;
}

std::vector<Plan> plans(const Problem& problem) {
  if (problem.head_dim > largest_head_dim) return {};
  if (problem.list_seed != 0) return plans_for_lists(problem);
  if (problem.length_seed != 0) return plans_for_lengths(problem);
  std::vector<Plan> all = plans_for_one_query(problem);
  const std::size_t for_one_query = all.size();
  const auto add = [&](Plan plan) {
    if (!unsupported(problem, plan)) all.push_back(plan);
  };
  const bool is_special = is_masked(problem) || has_value_dim(problem);
  for (const Fa3Variant& v : is_special ? special_variants(problem) : variants(problem)) {
    if (v.choice.ragged || v.choice.lists || !is_for_kind_of(v, problem)) continue;
    Plan plan = plan_of(v);
    plan.scheduling = Scheduling::persistent;
    if (problem.mask != Mask::none) {
      plan.grid_order = GridOrder::longest_first;
      plan.group = sections[0];
    }
    add(plan);
  }
  if (all.size() == for_one_query) return all;
  Plan first = all[for_one_query];
  first.reference = WeightReference::maximum;
  add(first);
  first.reference = 0;
  if (problem.mask != Mask::none) {
    for (const std::int64_t heads : {sections[1], sections[2]}) {
      first.group = heads;
      add(first);
    }
  }
  first.group = 0;
  for (const std::int64_t order :
       {GridOrder::q_fastest, GridOrder::q_slowest, GridOrder::paired, GridOrder::longest_first}) {
    for (const std::int64_t scheduling : {Scheduling::one_tile, Scheduling::persistent}) {
      first.grid_order = order;
      first.scheduling = scheduling;
      add(first);
    }
  }
  for (const Fa3Variant& v : variants(problem)) {
    if (!v.choice.splits) continue;
    Plan plan = plan_of(v);
    plan.key_splits = 7;
    add(plan);
  }
  return all;
}

std::size_t workspace_bytes(const Problem& problem, const Plan& plan) {
  if (plan.key_splits > 1) return partial_result_bytes(problem, plan);
  if (has_ranges(problem)) {
    return sizeof(Fa3RowRange) * static_cast<std::size_t>(problem.batch * problem.query_len);
  }
  // K and V may lie in pages.
  return why_not_ragged(problem, plan)
             ? 0
             : Fa3WorkList::bytes(fa3_most_items(problem, plan.query_tile));
}

unsigned* next_counters() {
  static std::atomic<unsigned> launches = 0;
  void* first = tile_counters;
#ifdef __CUDACC__
  ATTEST_CUDA_CHECK(cudaGetSymbolAddress(&first, tile_counters));
#endif
  return static_cast<unsigned*>(first) + std::size_t{2} * (launches++ % launches_in_flight);
}

/// All but the maps.
Fa3Parameters parameters(const ForwardArguments& a) {
  const Problem& problem = a.problem;
  Fa3Parameters p{};
  p.columns = static_cast<int>(problem.output_dim());
  p.output = a.o;
  p.o_strides = a.o_strides;
  p.stores_boxes = p.columns % 8 == 0;  // a box's rows are clipped at multiples of 16 bytes
  p.lse = a.lse;
  p.partial = static_cast<float*>(a.workspace);
  p.heads = static_cast<int>(problem.query_heads);
  p.group = static_cast<int>(problem.query_heads / problem.kv_heads);
  p.queries = static_cast<int>(problem.query_len);
  p.keys = static_cast<int>(problem.key_len);
  p.first_row = static_cast<int>(first_row(problem, a.plan));
  p.reach = causal_reach(problem, p.queries, p.keys);
  const float c = problem.scale * log2_e;
  p.scales_first = !(c > 0.0F);
  p.searches_first = p.scales_first || a.plan.reference == WeightReference::maximum;
  p.c = p.scales_first ? 1.0F : c;
  p.factor = p.scales_first ? c : 1.0F;
  p.grid = grid_of(problem, a.plan);
  p.splits = static_cast<int>(splits_of(a.plan));
  p.tiles = static_cast<int>(p.grid.size());
  p.order = a.plan.grid_order;
  p.order_group = a.plan.group;
  return p;
}

/// Launches a kernel of one tile a block, or of so many blocks as there is room for, which take
/// tiles in turn.
template <typename Parameters>
void launch_tiles(void (*kernel)(Parameters), const Fa3Variant& v, Parameters p, const Plan& plan,
                  Device& device) {
  const dim3 threads(static_cast<unsigned>(v.threads));
  const auto shared_bytes = static_cast<std::size_t>(v.shared_bytes);
  std::int64_t blocks = p.tiles;
  if (plan.scheduling == Scheduling::persistent) {
    blocks = std::min(blocks, resident_blocks(kernel, threads, shared_bytes, device));
    p.counters = next_counters();
  }
  launch(kernel, dim3(static_cast<unsigned>(blocks)), threads, shared_bytes, device, p);
}

Fa3ListedParameters listed_parameters(const Fa3Parameters& dense, const KeyLists& lists) {
  Fa3ListedParameters p{};
  static_cast<Fa3Parameters&>(p) = dense;
  p.lists = lists;
  p.item_shift = std::countr_zero(static_cast<std::uint64_t>(lists.keys / fa3_unit_keys));
  return p;
}

Fa3EndedParameters ended_parameters(const Fa3Parameters& dense, const ForwardArguments& a) {
  Fa3EndedParameters p{};
  static_cast<Fa3Parameters&>(p) = dense;
  p.sinks = a.sinks;
  p.gate = a.gate;
  p.residual = a.residual;
  return p;
}

Fa3MaskedParameters masked_parameters(const Fa3Parameters& dense, const ForwardArguments& a) {
  const Problem& problem = a.problem;
  Fa3MaskedParameters p{};
  static_cast<Fa3EndedParameters&>(p) = ended_parameters(dense, a);
  const Window& window = problem.window;
  const int diagonal = diagonal_of(problem, p.queries, p.keys);
  const auto clipped = [](std::int64_t side) {
    return static_cast<int>(std::min<std::int64_t>(side, beyond_all_keys));
  };
  p.begin = window.left < 0 ? -beyond_all_keys : diagonal - clipped(window.left);
  if (is_window(problem.mask)) {
    p.reach = window.right < 0 ? beyond_all_keys : diagonal + clipped(window.right) + 1;
  }
  p.ranges = has_ranges(problem) ? static_cast<const Fa3RowRange*>(a.workspace) : nullptr;
  if (p.ranges != nullptr) {
    p.reach = beyond_all_keys;
    if (problem.document_seed != 0) p.begin = 0;
  }
  p.key_mask = a.key_mask;
  p.slopes = a.slopes;
  p.slope_unit = p.scales_first || problem.softcap != 0.0F ? log2_e : 1.0F / problem.scale;
  p.diagonal = -static_cast<int>(key_distance(problem.mask, p.queries, p.keys, 0, 0));
  p.softcap = problem.softcap;
  if (p.softcap == 0.0F) return p;
  p.per_softcap = problem.scale / p.softcap;
  p.c = 1.0F;
  p.factor = log2_e;
  return p;
}

Fa3ModifiedParameters modified_parameters(const Fa3Parameters& dense, const ForwardArguments& a) {
  const Problem& problem = a.problem;
  Fa3ModifiedParameters p{};
  static_cast<Fa3MaskedParameters&>(p) = masked_parameters(dense, a);
  p.bias = a.bias;
  p.bias_strides = a.bias_strides;
  const auto lies_in_pairs = [](std::int64_t x) { return x % 2 == 0; };
  p.bias_in_pairs = reinterpret_cast<std::uintptr_t>(a.bias) % (2 * sizeof(float)) == 0 &&
                    lies_in_pairs(p.keys) && lies_in_pairs(a.bias_strides.batch) &&
                    lies_in_pairs(a.bias_strides.head) && lies_in_pairs(a.bias_strides.row);
  p.drops = problem.dropout > 0.0F;
  p.last_fallen = static_cast<unsigned>(least_kept_word(problem) - 1);
  p.kept_scale = kept_scale(problem);
  p.dropout_seed = static_cast<std::uint64_t>(problem.dropout_seed);
  p.dropout_offset = static_cast<unsigned>(problem.dropout_offset);
  return p;
}

void launch_ranges(const ForwardArguments& a, Device& device) {
  const std::int64_t rows = a.problem.batch * a.problem.query_len;
  launch(fa3_find_ranges<this_executor>,
         dim3(static_cast<unsigned>(ceil_div(rows, fa3_ranges_threads))), dim3(fa3_ranges_threads),
         0, device, a, static_cast<Fa3RowRange*>(a.workspace));
}

void run(const ForwardArguments& a, Device& device) {
  const bool is_ragged = a.query_starts != nullptr || a.page_table.page_size > 0;
  const Fa3Variant& v = *find_variant(a.problem, a.plan, is_ragged);
  const ForwardArguments run = as_run(a);
  Fa3Parameters p = parameters(run);
  if (is_ragged) {
    p.counters = next_counters();
    fa3_launch_ragged<this_executor>(v, fa3_ragged_parameters(v, p, a), a, device);
    return;
  }
  const bool has_lists = a.key_lists.is_used();
  fa3_set_maps(p, run, query_shape(run.problem), key_shape(run.problem),
               has_lists ? fa3_unit_keys : v.choice.key_tile);
  if (has_lists) {
    launch_tiles(v.listed, v, listed_parameters(p, a.key_lists), a.plan, device);
    return;
  }
  if (v.choice.ended) {
    launch_tiles(v.ended, v, ended_parameters(p, a), a.plan, device);
    return;
  }
  if (v.choice.masked) {
    if (has_ranges(a.problem)) launch_ranges(a, device);
    if (v.choice.modified) {
      launch_tiles(v.modified, v, modified_parameters(p, a), a.plan, device);
    } else {
      launch_tiles(v.masked, v, masked_parameters(p, a), a.plan, device);
    }
    return;
  }
  launch_tiles(v.kernel, v, p, a.plan, device);
  if (p.splits > 1) launch_combine_splits<this_executor>(a, device);
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  // A lane adds two keys of every eight of a tile, then the tiles; at the end four lanes meet, and
  // the splits.
  const std::int64_t blocks = std::max<std::int64_t>(1, ceil_div(problem.key_len, plan.key_tile));
  const std::int64_t splits = splits_of(plan);
  return {.score = hopper(),
          .value = hopper(),
          // A positive scale is part of the exponent's fused product; others multiply before.
          .scale_after_dot = !(problem.scale > 0.0F) || problem.softcap != 0.0F,
          // tanh, the quotient in its argument, which tanh damps by half, and the product.
          .softcap_error = tanh_error + 2 * 0x1p-24,
          .exp = ex2_approx(),
          .reference_lag = plan.reference == WeightReference::maximum ? 0.0 : fa3_reference_lag,
          .weight_format = problem.element_type,
          .rescale = Rescale::deferred,
          .blocks = blocks,
          .splits = splits,
          .normaliser_chain = plan.key_tile / 4 + blocks + 2 + splits,
          .division_error = 0x1p-23,  // the reciprocal and the product
          .log_error = ln_error,
          .lse = LseForm::log2,
          .flushes_subnormals = true};
}

const KernelRegistration registration{
    {.name = "fa3_wgmma",
     .summary = "FA3 on Hopper: wgmma, TMA, warpgroups that load or multiply, persistent blocks",
     .source = "N4, N5, N7 [FA3 Alg. 1, 2]",
     .executor = this_executor,
     .dataflow = Dataflow::queries_outside,
     .element_types = {ElementType::fp16, ElementType::bf16},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right, Mask::window_top_left,
               Mask::window_bottom_right},
     .features = {.value_dim = true,
                  .softcap = true,
                  .lengths = true,
                  .padding = true,
                  .sinks = true,
                  .slopes = true,
                  .bias = true,
                  .prefix = true,
                  .documents = true,
                  .lists = true,
                  .dropout = true,
                  .gate = true,
                  .residual = true},
     .reads_lengths = true,
     .ignores_hidden_nan = false,
     .layout_needs = {.pointer_alignment_bytes = 16,
                      .stride_alignment_bytes = 16,
                      .pages = Pages::also},
     .list_rows_multiple = 128,
     .list_keys_multiple = 64,
     .unavailable = [] { return why_not_hopper(); },
     .compute_capabilities = hopper_alone,
     .precision = precision,
     .plans = plans,
     .unsupported = unsupported,
     .unsupported_in_pages = why_not_ragged,
     .first_row = first_row,
     .workspace_bytes = workspace_bytes,
     .launch = run}};

}  // namespace
}  // namespace attest
