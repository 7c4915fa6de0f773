// The kernel as one under test: which Plans it offers, what it cannot run, which roundings it
// performs. The algorithm is in consumer.cuh and loader.cuh; the README says what was measured.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

#include "core/run/card.hpp"
#include "core/run/registry.hpp"
#include "gpu/kernels/decode_mma/key_cut.cuh"
#include "gpu/kernels/decode_mma/merge.cuh"
#include "gpu/kernels/mla_wgmma/consumer.cuh"
#include "gpu/kernels/mla_wgmma/gather.cuh"
#include "gpu/kernels/mla_wgmma/loader.cuh"
#include "gpu/primitives/cuda_type.cuh"
#include "gpu/primitives/elementary_error.hpp"
#include "gpu/primitives/tensor_map.cuh"

namespace attest {

/// One block: two warpgroups that multiply, a warp that loads and one that finds units.
template <Executor home, typename T>
__global__ void __launch_bounds__(MlaShape<T>::threads, 1)
    mla_wgmma(const __grid_constant__ MlaParameters p) {
  using Shape = MlaShape<T>;
  let_successor_begin();  // it waits for all of this launch
  const MlaShared<Shape> shared(dynamic_shared<unsigned char>());
  if (threadIdx.x == 0) shared.init();
  __syncthreads();
  // Uniform over the warp, and known to be.
  const int group = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / warpgroup_threads, 0);
  if (group == Shape::consumers) {
    release_registers<Shape::loader_registers>();
    const auto warp = static_cast<int>(threadIdx.x % warpgroup_threads / 32);
    if (warp < Shape::parts) {
      MlaLoader<Shape>(p, shared, warp).run();
    } else {
      find_mla_units(p, shared);
    }
  } else if (group == 0) {
    take_registers<Shape::consumer_registers>();
    MlaConsumer<Shape, 0>(p, shared).run();
  } else {
    take_registers<Shape::consumer_registers>();
    MlaConsumer<Shape, 1>(p, shared).run();
  }
}

/// One block where lists say which keys a query sees: warps gather keys instead.
template <Executor home, typename T>
__global__ void __launch_bounds__(MlaListedShape<T>::threads, 1)
    mla_listed(const __grid_constant__ MlaParameters p) {
  using Shape = MlaListedShape<T>;
  let_successor_begin();
  const MlaShared<Shape> shared(dynamic_shared<unsigned char>());
  if (threadIdx.x == 0) shared.init();
  __syncthreads();
  const int group = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / warpgroup_threads, 0);
  if (group == Shape::consumers) {
    release_registers<Shape::loader_registers>();
    const auto warp = static_cast<int>(threadIdx.x % warpgroup_threads / 32);
    if (warp < Shape::no_values) {
      MlaGatherer<Shape, Shape::group_panels>(p, shared, warp).run();
    } else if (warp == Shape::no_values) {
      MlaGatherer<Shape, 1>(p, shared, Shape::no_values).run();
    } else {
      find_listed_units(p, shared);
    }
  } else if (group == 0) {
    take_registers<Shape::consumer_registers>();
    MlaConsumer<Shape, 0>(p, shared).run();
  } else {
    take_registers<Shape::consumer_registers>();
    MlaConsumer<Shape, 1>(p, shared).run();
  }
}

namespace {

constexpr float log2_e = 1.44269504088896340736F;

using AnyShape = MlaShape<__half>;  // sizes are the same for both formats

DecodeSizes sizes_of(const Problem& problem, const Plan& plan) {
  return problem.list_seed != 0 ? listed_sizes(problem, plan) : DecodeSizes::of(problem, plan);
}

/// Units at the most.
std::int64_t most_units(const Problem& problem, const DecodeSizes& sizes) {
  return sizes.most_units() * (problem.list_seed != 0 ? problem.query_len : 1);
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  if (problem.head_dim != AnyShape::D) {
    return outside("head_dim", problem.head_dim, std::to_string(AnyShape::D));
  }
  if (problem.values != Values::in_keys || problem.output_dim() != AnyShape::columns) {
    return "V must be the first " + std::to_string(AnyShape::columns) + " columns of K";
  }
  Plan tiles = plan;
  tiles.key_split_rule = tiles.split_keys = tiles.key_splits = 0;
  const Plan compiled{.query_tile = AnyShape::rows,
                      .key_tile = AnyShape::tile_keys,
                      .warps = AnyShape::threads / 32,
                      .stages = AnyShape::stages,
                      .pack_gqa = PackGqa::yes,
                      .combine = Combine::second_kernel};
  if (tiles != compiled) {
    return "the plan is " + to_string(plan) + "; compiled: " + to_string(compiled) +
           ", with any key splits";
  }
  if (plan.key_split_rule < KeySplitRule::fixed_keys || plan.key_split_rule > KeySplitRule::even) {
    return outside("key_split_rule", plan.key_split_rule, "fixed_keys, own, even");
  }
  if (const auto reason = why_not_cut(problem, plan)) return reason;
  constexpr std::int64_t largest_count = std::int64_t{1} << 30;  // it has 32 bits
  if (const std::int64_t units = most_units(problem, sizes_of(problem, plan));
      units >= largest_count) {
    return outside("the number of units", units, "below " + std::to_string(largest_count));
  }
  return std::nullopt;
}

Plan plan_of(KeySplitRule::Value rule, std::int64_t size) {
  Plan plan{.query_tile = AnyShape::rows,
            .key_tile = AnyShape::tile_keys,
            .warps = AnyShape::threads / 32,
            .stages = AnyShape::stages,
            .pack_gqa = PackGqa::yes,
            .key_split_rule = rule,
            .combine = Combine::second_kernel};
  (rule == KeySplitRule::even ? plan.key_splits : plan.split_keys) =
      rule == KeySplitRule::own ? 0 : size;
  return plan;
}

/// Plan to take without a table: the number of chunks that is done soonest, where a unit has a
/// beginning and an end as long as some tiles, and what is cut must be merged. How long lists are
/// the device alone knows: each is cut into as many chunks as leave no SM without a unit.
Plan preferred_plan(const Problem& problem) {
  constexpr std::int64_t blocks = sms_of_rules, most = 64;
  if (problem.list_seed != 0) {
    const std::int64_t group = problem.query_heads / problem.kv_heads;
    const std::int64_t units = std::max<std::int64_t>(1, problem.batch * problem.query_len) *
                               problem.kv_heads * ceil_div(group, AnyShape::rows);
    return plan_of(KeySplitRule::even, std::clamp<std::int64_t>(blocks / units, 1, most));
  }
  constexpr std::int64_t unit_tiles = 4, merge_tiles = 6;
  const std::int64_t rows = problem.query_len * (problem.query_heads / problem.kv_heads);
  const std::int64_t pairs =
      problem.batch * problem.kv_heads * std::max<std::int64_t>(1, ceil_div(rows, AnyShape::rows));
  const std::int64_t tiles =
      std::max<std::int64_t>(1, ceil_div(problem.key_len, AnyShape::tile_keys));
  std::int64_t best = tiles, least = 0;
  for (std::int64_t chunks = 1; chunks <= std::min(most, tiles); ++chunks) {
    const std::int64_t each = ceil_div(tiles, chunks);
    const std::int64_t time =
        ceil_div(pairs * ceil_div(tiles, each), blocks) * (each + unit_tiles) +
        (chunks > 1 ? merge_tiles : 0);
    if (chunks > 1 && time >= least) continue;
    best = each;
    least = time;
  }
  return plan_of(KeySplitRule::fixed_keys, best * AnyShape::tile_keys);
}

std::vector<Plan> plans(const Problem& problem) {
  if (problem.head_dim != AnyShape::D) return {};
  std::vector<Plan> all{preferred_plan(problem)};
  const auto add = [&](KeySplitRule::Value rule, std::int64_t size) {
    const Plan plan = plan_of(rule, size);
    if (std::ranges::find(all, plan) == all.end()) all.push_back(plan);
  };
  for (const std::int64_t keys : {64, 128, 192, 512, 1024, 2048, 4096, 8192}) {
    if (keys <= 512 || problem.key_len > keys / 2) add(KeySplitRule::fixed_keys, keys);
  }
  add(KeySplitRule::own, 0);
  for (const std::int64_t splits : {1, 2, 3, 7}) add(KeySplitRule::even, splits);
  return all;
}

std::size_t workspace_bytes(const Problem& problem, const Plan& plan) {
  const DecodeSizes sizes = sizes_of(problem, plan);
  return sizes.most_chunks > 1 ? decode_partial_bytes(problem, sizes) : 0;
}

/// All but the maps, which lists need not.
MlaParameters parameters(const ForwardArguments& a) {
  MlaParameters p{};
  p.a = a;
  p.sizes = sizes_of(a.problem, a.plan);
  const float c = a.problem.scale * log2_e;
  p.c = c > 0.0F ? c : 1.0F;
  p.factor = c > 0.0F ? 1.0F : c;
  if (!a.key_lists.is_used()) return p;
  p.by_item = Divisor(static_cast<int>(a.key_lists.keys));
  p.sizes.by_page = Divisor(std::max(1, static_cast<int>(a.page_table.page_size)));
  return p;
}
void add_maps(MlaParameters& p) {
  const ForwardArguments& a = p.a;
  const Problem& problem = a.problem;
  const bool is_paged = a.page_table.page_size > 0, is_packed = a.key_starts != nullptr;
  BoxedTensor k{.first = a.k,
                .type = problem.element_type,
                .batch = problem.batch,
                .heads = problem.kv_heads,
                .rows = problem.key_len,
                .columns = problem.head_dim,
                .strides = a.k_strides,
                .box_rows = AnyShape::tile_keys};
  if (is_paged) {
    k.batch = a.page_table.pool_pages;
    k.rows = a.page_table.page_size;
    k.box_rows = std::gcd<std::int64_t>(a.page_table.page_size, AnyShape::tile_keys);
  } else if (is_packed) {  // how many keys there are the device knows; no box leaves them
    k.batch = 1;
    // Where there is one its stride may be anything.
    k.rows = k.strides.row % 8 == 0 ? problem.batch * problem.key_len : 1;
  }
  if (k.batch * k.rows == 0) {  // nothing is read, but the map must be one
    k.first = a.q;
    k.batch = k.heads = k.rows = 1;
  }
  p.k = tensor_map(k);
  p.box_rows = static_cast<int>(k.box_rows);
  k.box_rows = 8;
  p.k_eights = tensor_map(k);
}

/// Launches blocks of a Shape, and the merge of chunks if there may be several.
template <typename Shape>
void launch_blocks(void (*kernel)(MlaParameters), void (*merge)(ForwardArguments, DecodeSizes),
                   const MlaParameters& p, Device& device) {
  const dim3 block(Shape::threads);
  const std::int64_t blocks = std::min(most_units(p.a.problem, p.sizes),
                                       resident_blocks(kernel, block, Shape::shared_bytes, device));
  launch(kernel, dim3(static_cast<unsigned>(blocks)), block, Shape::shared_bytes, device, p);
  if (p.sizes.most_chunks < 2) return;
  launch_dependent(merge, dim3(static_cast<unsigned>(ceil_div(p.a.problem.rows(), 4))), dim3(128),
                   0, device, p.a, p.sizes);
}

template <typename T>
void launch_units(const MlaParameters& p, Device& device) {
  if (p.a.key_lists.is_used()) {
    launch_blocks<MlaListedShape<T>>(mla_listed<this_executor, T>,
                                     mla_listed_merge<this_executor, T, AnyShape::columns>, p,
                                     device);
    return;
  }
  launch_blocks<MlaShape<T>>(
      mla_wgmma<this_executor, T>,
      decode_merge<this_executor, DecodeRow<T>, AnyShape::columns, ForwardArguments>, p, device);
}

void run(const ForwardArguments& a, Device& device) {
  MlaParameters p = parameters(a);
  if (most_units(a.problem, p.sizes) == 0) return;  // no row
  if (!a.key_lists.is_used()) add_maps(p);
  with_sixteen_bits(a.problem.element_type,
                    [&]<typename T>(std::type_identity<T>) { launch_units<T>(p, device); });
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  // Two groups weigh every other tile of a chunk. Of a tile a lane adds two of every eight weights
  // of a row, then the tiles; then four lanes meet, the groups, and the chunks.
  const DecodeSizes sizes = sizes_of(problem, plan);
  const std::int64_t keys = std::min(sizes.keys_of_chunk(sizes.keys), sizes.keys);
  const std::int64_t tiles = std::max<std::int64_t>(1, ceil_div(keys, AnyShape::tile_keys));
  return {.score = hopper(),
          .value = hopper(),
          // A positive scale is part of the exponent's fused product; others multiply before.
          .scale_after_dot = !(problem.scale > 0.0F),
          .exp = ex2_approx(),
          .reference_lag = mla_reference_lag,
          .weight_format = problem.element_type,
          .rescale = Rescale::deferred,
          .blocks = tiles,
          .splits = sizes.most_chunks,
          .normaliser_chain = AnyShape::tile_keys / 4 + tiles + 3 + sizes.most_chunks,
          .division_error = 0x1p-23,  // the reciprocal and the product
          .log_error = ln_error,
          .lse = LseForm::log2,
          .flushes_subnormals = true};
}

const KernelRegistration registration{
    {.name = "mla_wgmma",
     .summary = "multi-head latent attention on Hopper: V is the first 512 of K's 576 columns",
     .source = "FlashMLA's seesaw scheduling",
     .executor = this_executor,
     .dataflow = Dataflow::queries_outside,
     .element_types = {ElementType::fp16, ElementType::bf16},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
     .head_dims = {AnyShape::D},
     .features = {.no_queries = true,
                  .value_dim = true,
                  .values_in_keys = true,
                  .lengths = true,
                  .lists = true},
     .is_query_invariant = true,
     .plan_depends_on_queries =
         [](const Plan& plan) { return plan.key_split_rule != KeySplitRule::fixed_keys; },
     .reads_lengths = true,
     .ignores_hidden_nan = false,
     .layout_needs = {.pointer_alignment_bytes = 16,
                      .stride_alignment_bytes = 16,
                      .pages = Pages::also,
                      .page_sizes = {8, 16, 24, 32, 48, 64, 128, 192, 256}},
     .values_in_keys_dim = AnyShape::columns,
     .unavailable = [] { return why_not_hopper(); },
     .compute_capabilities = hopper_alone,
     .precision = precision,
     .plans = plans,
     .has_plan_rule = true,
     .unsupported = unsupported,
     .workspace_bytes = workspace_bytes,
     .launch = run}};

}  // namespace
}  // namespace attest
