// The family as a kernel under test: which Plans it offers, what it cannot run, which roundings it
// performs. The algorithm is in tile.cuh; what is compiled, in a file for each head dim.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "core/run/registry.hpp"
#include "gpu/kernels/decode_mma/variant.cuh"
#include "gpu/primitives/cuda_type.cuh"
#include "gpu/primitives/elementary_error.hpp"

namespace attest {
namespace {

constexpr std::int64_t largest_count = std::int64_t{1} << 30;  // rows, keys and units have 32 bits
constexpr std::int64_t most_chunks = 4096;

template <typename T>
std::span<const DecodeVariant> variants_of(std::int64_t head_dim) {
  if (head_dim == 64) return decode_variants<this_executor, T, 64>();
  if (head_dim == 128) return decode_variants<this_executor, T, 128>();
  if (head_dim == 256) return decode_variants<this_executor, T, 256>();
  return {};
}

std::span<const DecodeVariant> variants(const Problem& problem) {
  return with_sixteen_bits(problem.element_type, [&]<typename T>(std::type_identity<T>) {
    return variants_of<T>(problem.head_dim);
  });
}

const DecodeVariant* find_variant(const Problem& problem, const Plan& plan) {
  for (const DecodeVariant& v : variants(problem)) {
    if (v.query_tile == plan.query_tile && v.key_tile == plan.key_tile && v.warps == plan.warps &&
        v.stages == plan.stages) {
      return &v;
    }
  }
  return nullptr;
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  const auto outside = [](const std::string& what, std::int64_t got, const std::string& allowed) {
    return what + " is " + std::to_string(got) + "; allowed: " + allowed;
  };
  if (variants(problem).empty()) return outside("head_dim", problem.head_dim, "64, 128, 256");
  if (find_variant(problem, plan) == nullptr) {
    return "the plan is " + to_string(plan) +
           "; query_tile, key_tile, warps and stages are none "
           "that is compiled for this head_dim";
  }
  if (plan.pack_gqa != PackGqa::yes) return outside("pack_gqa", plan.pack_gqa, "yes");
  if (plan.combine < Combine::last_block || plan.combine > Combine::second_kernel) {
    return outside("combine", plan.combine, "last_block, second_kernel");
  }
  const bool is_cascade = plan.cascade == Cascade::yes;
  if (plan.cascade != 0 && !is_cascade) return outside("cascade", plan.cascade, "yes, or none");
  if (is_cascade &&
      (find_variant(problem, plan)->prefix == nullptr ||
       plan.key_split_rule != KeySplitRule::fixed_keys || plan.combine != Combine::second_kernel)) {
    return "the plan is " + to_string(plan) +
           "; cascade takes the longest query_tile, key_split_rule fixed_keys and combine "
           "second_kernel";
  }
  switch (plan.key_split_rule) {
    case KeySplitRule::fixed_keys:
      if (plan.split_keys < chunk_step || plan.split_keys % chunk_step != 0) {
        return outside("split_keys", plan.split_keys, "multiples of " + std::to_string(chunk_step));
      }
      break;
    case KeySplitRule::even:
      if (plan.key_splits < 1) return outside("key_splits", plan.key_splits, "1 and more");
      break;
    case KeySplitRule::own:
      break;
    case KeySplitRule::stream:
      if (plan.combine == Combine::last_block) break;
      return "the plan is " + to_string(plan) + "; key_split_rule stream takes combine last_block";
    default:
      return outside("key_split_rule", plan.key_split_rule, "fixed_keys, own, even, stream");
  }
  const std::int64_t chunks = DecodeSizes::of(problem, plan).most_chunks;
  if (chunks > most_chunks) {
    return outside("the number of chunks of a row", chunks, "1 to " + std::to_string(most_chunks));
  }
  const std::int64_t rows = problem.query_len * (problem.query_heads / problem.kv_heads) *
                            (is_cascade ? problem.batch : 1);
  if (std::max({rows, problem.key_len, DecodeSizes::of(problem, plan).most_units()}) >=
      largest_count) {
    return "the problem has too many rows of a kv head, keys or blocks; allowed: below " +
           std::to_string(largest_count) + " of each";
  }
  return std::nullopt;
}

Plan plan_of(const DecodeVariant& v) {
  return {.query_tile = v.query_tile,
          .key_tile = v.key_tile,
          .warps = v.warps,
          .stages = v.stages,
          .pack_gqa = PackGqa::yes};
}

/// The variant for so many rows of a kv head: tiles of 32 rows where 16 would read the keys twice,
/// and for long chunks the block of most warps, which has an SM's shared memory for itself.
const DecodeVariant& variant_for(const Problem& problem, std::int64_t rows, bool has_long_chunks) {
  const std::span<const DecodeVariant> all = variants(problem);
  const auto fits = [&](const DecodeVariant& v) {
    if (rows > 16) return v.query_tile > 16;
    return v.query_tile == 16 && (v.warps > 4) == has_long_chunks;
  };
  const auto found = std::ranges::find_if(all, fits);
  return found == all.end() ? all.front() : *found;
}

/// What to take without a table. Of few rows about one chunk for every SM: fewer leave SMs idle,
/// and each more costs a beginning, an end and a part of a merge. Many rows are work for all SMs,
/// whole where they are equally long. Where entries have lengths of their own, long rows are cut,
/// so that nobody waits for the longest; chunks are then many more than blocks, and a second kernel
/// merges them, for which no block waits at a chunk's end.
Plan preferred_plan(const Problem& problem) {
  constexpr std::int64_t units = 128, least_keys = 2 * chunk_step, unequal_keys = 2048;
  const std::int64_t rows = problem.query_len * (problem.query_heads / problem.kv_heads);
  const std::int64_t tile = variant_for(problem, rows, false).query_tile;
  const std::int64_t pairs =
      problem.batch * problem.kv_heads * std::max<std::int64_t>(1, ceil_div(rows, tile));
  const std::int64_t chunks = std::max<std::int64_t>(1, units / pairs);
  const std::int64_t keys =
      std::max(least_keys, chunk_step * ceil_div(problem.key_len, chunks * chunk_step));
  const bool has_many_rows = pairs > units;
  const bool cuts_unequal = has_many_rows && problem.length_seed != 0 && keys > unequal_keys;
  const std::int64_t long_chunk = has_many_rows ? 1024 : 256;
  Plan plan = plan_of(variant_for(problem, rows, keys >= long_chunk && !cuts_unequal));
  plan.key_split_rule = KeySplitRule::fixed_keys;
  plan.split_keys = cuts_unequal ? unequal_keys : keys;
  plan.combine = cuts_unequal ? Combine::second_kernel : Combine::last_block;
  return plan;
}

std::vector<Plan> plans(const Problem& problem) {
  std::vector<Plan> all;
  if (variants(problem).empty()) return all;
  if (const Plan plan = preferred_plan(problem); !unsupported(problem, plan)) all.push_back(plan);
  const auto add = [&](Plan plan, KeySplitRule::Value rule, std::int64_t size, Combine::Value who) {
    plan.key_split_rule = rule;
    (rule == KeySplitRule::even ? plan.key_splits : plan.split_keys) = size;
    plan.combine = who;
    const bool is_new = std::ranges::find(all, plan) == all.end();
    if (is_new && !unsupported(problem, plan)) all.push_back(plan);
  };
  for (const DecodeVariant& v : variants(problem)) {
    const Plan plan = plan_of(v);
    add(plan, KeySplitRule::fixed_keys, 512, Combine::last_block);
    add(plan, KeySplitRule::fixed_keys, 64, Combine::last_block);
    add(plan, KeySplitRule::fixed_keys, 128, Combine::second_kernel);
    add(plan, KeySplitRule::own, 0, Combine::last_block);
    add(plan, KeySplitRule::own, 0, Combine::second_kernel);
    add(plan, KeySplitRule::stream, 0, Combine::last_block);
    add(plan, KeySplitRule::even, 1, Combine::last_block);
    add(plan, KeySplitRule::even, 3, Combine::second_kernel);
    add(plan, KeySplitRule::even, 7, Combine::last_block);
    if (v.prefix != nullptr) {
      Plan cascade = plan;
      cascade.cascade = Cascade::yes;
      for (const std::int64_t keys : {64, 128, 256, 512}) {
        add(cascade, KeySplitRule::fixed_keys, keys, Combine::second_kernel);
      }
    }
    for (const std::int64_t keys : {256, 1024, 2048, 4096, 8192}) {
      if (problem.key_len > keys / 2) {
        add(plan, KeySplitRule::fixed_keys, keys, Combine::last_block);
      }
    }
  }
  return all;
}

std::size_t workspace_bytes(const Problem& problem, const Plan& plan) {
  return decode_partial_bytes(problem, DecodeSizes::of(problem, plan));
}

std::size_t counter_bytes(const Problem& problem, const Plan& plan) {
  if (plan.combine != Combine::last_block) return 0;
  return static_cast<std::size_t>(problem.batch * problem.kv_heads *
                                  DecodeSizes::of(problem, plan).most_row_tiles) *
         sizeof(unsigned);
}

void run(const ForwardArguments& a, Device& device) {
  const Problem& problem = a.problem;
  DecodeSizes sizes = DecodeSizes::of(problem, a.plan);
  if (sizes.most_units() == 0) return;  // no row
  const DecodeVariant& v = *find_variant(problem, a.plan);
  const auto launch_units = [&](auto kernel, std::int64_t units) {
    const dim3 block(static_cast<unsigned>(32 * v.warps));
    const auto shared = static_cast<std::size_t>(v.shared_bytes);
    const std::int64_t most = sizes.is_stream ? most_blocks : units;
    const std::int64_t blocks =
        std::min({units, most, resident_blocks(kernel, block, shared, device)});
    launch(kernel, dim3(static_cast<unsigned>(blocks)), block, shared, device, a, sizes);
  };
  if (a.plan.cascade == Cascade::yes && !is_window(problem.mask)) {  // windows pass a prefix by
    sizes.prefix_chunks = static_cast<int>(a.page_table.shared_keys / sizes.chunk_keys);
  }
  if (sizes.prefix_chunks > 0) launch_units(v.prefix, sizes.prefix_units());
  launch_units(a.page_table.page_size > 0 ? v.paged : v.contiguous, sizes.most_units());
  if (a.plan.combine != Combine::second_kernel || sizes.most_chunks < 2) return;
  launch_dependent(v.merge, dim3(static_cast<unsigned>(ceil_div(problem.rows(), 4))), dim3(128), 0,
                   device, a, sizes);
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  // A warp adds its keys of a chunk tile by tile; then warps meet, then chunks. Of a row's weights
  // a lane adds two of every eight, then four lanes meet.
  const DecodeSizes sizes = DecodeSizes::of(problem, plan);
  const std::int64_t chunks = sizes.most_chunks;
  const std::int64_t keys =
      sizes.is_stream ? sizes.keys : std::min(sizes.keys_of_chunk(sizes.keys), sizes.keys);
  const std::int64_t steps = ceil_div(keys, plan.key_tile) + 1;  // a window begins within a step
  const std::int64_t warp_keys = plan.key_tile / plan.warps;
  return {.score = hopper(),
          .value = hopper(),
          .scale_after_dot = !(problem.scale > 0.0F) || problem.softcap != 0.0F,
          .softcap_error = tanh_error + 2 * 0x1p-24,
          .exp = ex2_approx(),
          .reference_lag = static_cast<double>(reference_lag),
          .weight_format = problem.element_type,
          .rescale = Rescale::deferred,
          .blocks = steps,
          .splits = chunks * plan.warps,
          .normaliser_chain = steps * warp_keys / 4 + 2 + plan.warps + chunks,
          .division_error = 0x1p-23,  // the reciprocal and the product
          .log_error = ln_error,
          .lse = LseForm::log2,
          .flushes_subnormals = true};
}

const KernelRegistration registration{
    {.name = "decode_mma",
     .summary = "few queries: keys split over blocks, contiguous or in pages, grouped heads packed",
     .source = "V1, V2, V4, V5 [Flash-Decoding]",
     .executor = this_executor,
     .dataflow = Dataflow::queries_outside,
     .element_types = {ElementType::fp16, ElementType::bf16},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right, Mask::window_top_left,
               Mask::window_bottom_right},
     .head_dims = {64, 128, 256},
     .features = {.no_queries = true, .softcap = true, .lengths = true},
     .plan_depends_on_batch =
         [](const Plan& plan) { return plan.key_split_rule == KeySplitRule::stream; },
     .is_query_invariant = true,
     .plan_depends_on_queries =
         [](const Plan& plan) { return plan.key_split_rule != KeySplitRule::fixed_keys; },
     .reads_lengths = true,
     .ignores_hidden_nan = false,
     .layout_needs = {.pointer_alignment_bytes = 16,
                      .stride_alignment_bytes = 16,
                      .pages = Pages::also},
     .compute_capabilities = {.least = 80},
     .precision = precision,
     .plans = plans,
     .unsupported = unsupported,
     .workspace_bytes = workspace_bytes,
     .counter_bytes = counter_bytes,
     .launch = run}};

}  // namespace
}  // namespace attest
