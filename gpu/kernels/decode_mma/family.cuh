#pragma once

// Which Plans a kernel of the family offers, what it cannot run, which roundings it performs and
// how it is launched. The algorithm is in tile.cuh; what is compiled, in a file for each head dim.
// A Family says that:
//
// - Arguments and Variant, of its kernels
// - variants(problem): the first is the one to take without a reason; none: no such head_dim
// - head_dims: those that it has, in words
// - wide_prefix(problem): the launch of shared chunks under Overlap::yes, or nullptr

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/run/card.hpp"
#include "gpu/kernels/decode_mma/cascade_share.hpp"
#include "gpu/kernels/decode_mma/key_cut.cuh"
#include "gpu/kernels/decode_mma/variant.cuh"
#include "gpu/primitives/elementary_error.hpp"
#include "gpu/primitives/tensor_map.cuh"

namespace attest {
namespace decode_family {

template <typename Family>
const typename Family::Variant* find_variant(const Problem& problem, const Plan& plan) {
  for (const auto& v : Family::variants(problem)) {
    if (v.query_tile == plan.query_tile && v.key_tile == plan.key_tile && v.warps == plan.warps &&
        v.stages == plan.stages) {
      return &v;
    }
  }
  return nullptr;
}

template <typename Family>
std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  if (Family::variants(problem).empty()) {
    return outside("head_dim", problem.head_dim, Family::head_dims);
  }
  const auto* const variant = find_variant<Family>(problem, plan);
  if (variant == nullptr) {
    return "the plan is " + to_string(plan) +
           "; query_tile, key_tile, warps and stages are none "
           "that is compiled for this head_dim";
  }
  if (plan.pack_gqa != PackGqa::yes) return outside("pack_gqa", plan.pack_gqa, "yes");
  if (plan.combine < Combine::last_block || plan.combine > Combine::cluster) {
    return outside("combine", plan.combine, "last_block, second_kernel, cluster");
  }
  if (plan.dependent_launch < 0 || plan.dependent_launch > DependentLaunch::yes ||
      (plan.dependent_launch == DependentLaunch::yes && plan.combine == Combine::cluster)) {
    return "the plan is " + to_string(plan) +
           "; dependent_launch is no, yes or none, and no or none with combine cluster";
  }
  const bool is_cascade = plan.cascade == Cascade::yes;
  if (plan.cascade != 0 && !is_cascade) return outside("cascade", plan.cascade, "yes, or none");
  const bool is_wide = plan.overlap == Overlap::yes;
  if (plan.overlap != 0 && !(is_wide && is_cascade)) {
    return outside("overlap", plan.overlap, "yes, with a cascade, or none");
  }
  if (is_cascade &&
      (plan.key_split_rule != KeySplitRule::fixed_keys || plan.combine != Combine::second_kernel ||
       plan.dependent_launch == DependentLaunch::yes || (!is_wide && variant->prefix == nullptr))) {
    return "the plan is " + to_string(plan) +
           "; cascade takes key_split_rule fixed_keys, combine second_kernel, no "
           "dependent_launch and, without overlap, the longest query_tile";
  }
  if (is_wide) {
    if (Family::wide_prefix(problem) == nullptr) {
      return "overlap is yes and head_dim is " + std::to_string(problem.head_dim) +
             "; allowed: 64, 128";
    }
    if (problem.softcap != 0.0F) return "overlap is yes, which takes no softcap";
    if (plan.split_keys % prefix_tile_keys != 0) {
      return "overlap is yes and " + outside("split_keys", plan.split_keys, "multiples of 128");
    }
    if (const std::string reason = why_not_hopper(); !reason.empty()) {
      return "overlap is yes: " + reason;
    }
  }
  const bool is_stream = plan.key_split_rule == KeySplitRule::stream;
  if (plan.key_split_rule < KeySplitRule::fixed_keys ||
      plan.key_split_rule > KeySplitRule::stream) {
    return outside("key_split_rule", plan.key_split_rule, "fixed_keys, own, even, stream");
  }
  if (is_stream && plan.combine != Combine::last_block) {
    return "the plan is " + to_string(plan) + "; key_split_rule stream takes combine last_block";
  }
  if (auto reason = why_not_cut(problem, plan)) return reason;
  if (plan.combine == Combine::cluster) {
    const std::int64_t chunks = DecodeSizes::of(problem, plan).most_chunks;
    if (chunks > most_in_cluster) {
      return outside("the number of chunks of a row in a cluster", chunks,
                     "1 to " + std::to_string(most_in_cluster));
    }
    if (const std::string reason = why_no_clusters(); !reason.empty()) {
      return "combine is cluster: " + reason;
    }
  }
  return std::nullopt;
}

template <typename Variant>
Plan plan_of(const Variant& v) {
  return {.query_tile = v.query_tile,
          .key_tile = v.key_tile,
          .warps = v.warps,
          .stages = v.stages,
          .pack_gqa = PackGqa::yes};
}

/// The variant for so many rows of a kv head: tiles of 32 rows where 16 would read the keys twice,
/// and for long chunks the block of most warps, which has an SM's shared memory for itself.
template <typename Family>
const typename Family::Variant& variant_for(const Problem& problem, std::int64_t rows,
                                            bool has_long_chunks) {
  const auto all = Family::variants(problem);
  const auto fits = [&](const auto& v) {
    if (rows > 16) return v.query_tile > 16;
    return v.query_tile == 16 && (v.warps > 4) == has_long_chunks;
  };
  const auto found = std::ranges::find_if(all, fits);
  return found == all.end() ? all.front() : *found;
}

/// Rows of the batch in tiles, each of which reads keys of its own.
template <typename Family>
std::int64_t row_tiles_of(const Problem& problem, std::int64_t rows) {
  const std::int64_t tile = variant_for<Family>(problem, rows, false).query_tile;
  return problem.batch * problem.kv_heads * std::max<std::int64_t>(1, ceil_div(rows, tile));
}

/// Plan for few rows whose chunks are merged in clusters: as many chunks as give every other SM
/// one, which is as many as there is room for where clusters are large. Nothing where that leaves
/// most SMs idle for long.
template <typename Family>
std::optional<Plan> cluster_plan(const Problem& problem, std::int64_t rows) {
  constexpr std::int64_t blocks = 64, least_keys = 2 * chunk_step, long_chunk = 256,
                         short_chunk = 512, longest_chunk = 16384;
  const std::int64_t tiles = row_tiles_of<Family>(problem, rows);
  if (tiles > blocks) return std::nullopt;
  const std::int64_t chunks =
      std::clamp<std::int64_t>(blocks / std::max<std::int64_t>(1, tiles), 2, most_in_cluster);
  const std::int64_t keys =
      std::max(least_keys, chunk_step * ceil_div(problem.key_len, chunks * chunk_step));
  const bool fills = 2 * tiles * chunks > blocks;
  if (keys > (fills ? longest_chunk : short_chunk)) return std::nullopt;
  Plan plan = plan_of(variant_for<Family>(problem, rows, keys >= long_chunk));
  plan.key_split_rule = KeySplitRule::fixed_keys;
  plan.split_keys = keys;
  plan.combine = Combine::cluster;
  return plan;
}

/// Plan to take without a table. Few rows go to clusters, and where their keys are too many for
/// that about one chunk to every SM: fewer leave SMs idle, and each more costs a beginning, an end
/// and a part of a merge. Many rows are work for all SMs, whole where they are equally long. Where
/// entries have lengths of their own, long rows are cut, so that nobody waits for the longest;
/// chunks are then many more than blocks, and a second kernel merges them, for which no block waits
/// at a chunk's end.
template <typename Family>
Plan preferred_plan(const Problem& problem) {
  constexpr std::int64_t units = 128, least_keys = 2 * chunk_step, unequal_keys = 2048;
  const std::int64_t rows = problem.query_len * (problem.query_heads / problem.kv_heads);
  if (const auto plan = cluster_plan<Family>(problem, rows);
      plan && !unsupported<Family>(problem, *plan)) {
    return *plan;
  }
  const std::int64_t tiles = row_tiles_of<Family>(problem, rows);
  const std::int64_t chunks = std::max<std::int64_t>(1, units / std::max<std::int64_t>(1, tiles));
  const std::int64_t keys =
      std::max(least_keys, chunk_step * ceil_div(problem.key_len, chunks * chunk_step));
  const bool has_many_rows = tiles > units;
  const bool cuts_unequal = has_many_rows && problem.length_seed != 0 && keys > unequal_keys;
  const std::int64_t long_chunk = has_many_rows ? 1024 : 256;
  Plan plan = plan_of(variant_for<Family>(problem, rows, keys >= long_chunk && !cuts_unequal));
  plan.key_split_rule = KeySplitRule::fixed_keys;
  plan.split_keys = cuts_unequal ? unequal_keys : keys;
  plan.combine = cuts_unequal ? Combine::second_kernel : Combine::last_block;
  plan.dependent_launch = DependentLaunch::yes;
  return plan;
}

inline CascadeWork cascade_work(const Problem& problem, std::int64_t shared_keys) {
  constexpr std::int64_t rows = 128;
  const std::int64_t all = problem.batch * problem.query_len * problem.query_heads;
  return {.pairs = problem.kv_heads * ceil_div(all / problem.kv_heads, rows),
          .shared_tiles = ceil_div(shared_keys, prefix_tile_keys),
          .own_bytes = 2.0 * static_cast<double>(problem.batch * problem.kv_heads *
                                                 (problem.key_len - shared_keys) *
                                                 (problem.head_dim + problem.output_dim()))};
}

/// Plan to take where entries begin with the same keys, which may lie in memory once, and have rows
/// for half a tile of wgmma: about one shared chunk for every SM.
template <typename Family>
std::optional<Plan> preferred_cascade(const Problem& problem) {
  constexpr std::int64_t least_keys = 1024, tile = 128;
  const std::int64_t rows =
      problem.batch * problem.query_len * (problem.query_heads / problem.kv_heads);
  if (problem.batch < 2 || is_window(problem.mask) || rows < tile / 2 ||
      problem.shared_keys < 2 * least_keys) {
    return std::nullopt;
  }
  const std::int64_t chunks = cascade_work(problem, problem.shared_keys).best_chunks(sms_of_rules);
  Plan plan = plan_of(variant_for<Family>(problem, rows / problem.batch, false));
  plan.key_split_rule = KeySplitRule::fixed_keys;
  plan.split_keys = std::max(
      least_keys, prefix_tile_keys * ceil_div(problem.shared_keys, chunks * prefix_tile_keys));
  plan.combine = Combine::second_kernel;
  plan.cascade = Cascade::yes;
  plan.overlap = Overlap::yes;
  if (unsupported<Family>(problem, plan)) return std::nullopt;
  return plan;
}

template <typename Family>
std::vector<Plan> plans(const Problem& problem) {
  std::vector<Plan> all;
  if (Family::variants(problem).empty()) return all;
  if (const auto plan = preferred_cascade<Family>(problem)) all.push_back(*plan);
  Plan preferred = preferred_plan<Family>(problem);
  if (!unsupported<Family>(problem, preferred)) all.push_back(preferred);
  if (preferred.dependent_launch == DependentLaunch::yes) {
    preferred.dependent_launch = DependentLaunch::no;
    if (!unsupported<Family>(problem, preferred)) all.push_back(preferred);
  }
  const auto add = [&](Plan plan, KeySplitRule::Value rule, std::int64_t size, Combine::Value who) {
    plan.key_split_rule = rule;
    (rule == KeySplitRule::even ? plan.key_splits : plan.split_keys) = size;
    plan.combine = who;
    const bool is_new = std::ranges::find(all, plan) == all.end();
    if (is_new && !unsupported<Family>(problem, plan)) all.push_back(plan);
  };
  for (const auto& v : Family::variants(problem)) {
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
    add(plan, KeySplitRule::even, 3, Combine::cluster);
    for (const std::int64_t keys : {64, 256, 512, 1024, 2048}) {
      if (keys > chunk_step && problem.key_len <= keys) continue;
      add(plan, KeySplitRule::fixed_keys, keys, Combine::cluster);
    }
    Plan dependent = plan;
    dependent.dependent_launch = DependentLaunch::yes;
    add(dependent, KeySplitRule::fixed_keys, 256, Combine::last_block);
    add(dependent, KeySplitRule::fixed_keys, 64, Combine::second_kernel);
    Plan cascade = plan;
    cascade.cascade = Cascade::yes;
    if (v.prefix != nullptr) {
      for (const std::int64_t keys : {64, 128, 256, 512}) {
        add(cascade, KeySplitRule::fixed_keys, keys, Combine::second_kernel);
      }
    }
    cascade.overlap = Overlap::yes;
    for (const std::int64_t keys : {128, 384, 1024, 2048, 4096}) {
      if (keys > 512 && problem.key_len <= keys) continue;
      add(cascade, KeySplitRule::fixed_keys, keys, Combine::second_kernel);
    }
    for (const std::int64_t keys : {256, 1024, 2048, 4096, 8192}) {
      if (problem.key_len > keys / 2) {
        add(plan, KeySplitRule::fixed_keys, keys, Combine::last_block);
      }
    }
  }
  return all;
}

inline std::size_t workspace_bytes(const Problem& problem, const Plan& plan) {
  if (plan.combine == Combine::cluster) return 0;
  return decode_partial_bytes(problem, DecodeSizes::of(problem, plan));
}

inline std::size_t counter_bytes(const Problem& problem, const Plan& plan) {
  if (plan.combine != Combine::last_block) return 0;
  return static_cast<std::size_t>(problem.batch * problem.kv_heads *
                                  DecodeSizes::of(problem, plan).most_row_tiles) *
         sizeof(unsigned);
}

template <typename Family>
void run(const typename Family::Arguments& a, Device& device) {
  const Problem& problem = a.problem;
  DecodeSizes sizes = DecodeSizes::of(problem, a.plan);
  if (sizes.most_units() == 0) return;  // no row
  const auto& v = *find_variant<Family>(problem, a.plan);
  const bool is_paged = a.page_table.page_size > 0;
  if (is_paged) sizes.by_page = Divisor(a.page_table.page_size);
  if (a.plan.combine == Combine::cluster) {
    launch_clusters(
        is_paged ? v.paged_cluster : v.contiguous_cluster, static_cast<unsigned>(sizes.most_chunks),
        dim3(static_cast<unsigned>(sizes.most_units())), dim3(static_cast<unsigned>(32 * v.warps)),
        static_cast<std::size_t>(v.shared_bytes), device, a, sizes);
    return;
  }
  const dim3 block(static_cast<unsigned>(32 * v.warps));
  const auto shared = static_cast<std::size_t>(v.shared_bytes);
  const auto blocks_for = [&](auto kernel, std::int64_t units) {
    const std::int64_t most = sizes.is_stream ? most_blocks : units;
    return std::min({units, most, resident_blocks(kernel, block, shared, device)});
  };
  const auto grid = [](std::int64_t blocks) { return dim3(static_cast<unsigned>(blocks)); };
  if (a.plan.cascade != 0 && !is_window(problem.mask)) {  // windows pass a prefix by
    sizes.share(a.page_table.shared_keys, a.plan);
  }
  const auto kernel = is_paged ? v.paged : v.contiguous;
  const std::int64_t blocks = blocks_for(kernel, sizes.most_units());
  if (sizes.prefix_chunks > 0 && a.plan.overlap == Overlap::yes) {
    // Whose end the entries' own keys need not wait for.
    const std::int64_t sms = Family::wide_prefix(problem)(a, sizes, device);
    const CascadeWork work = cascade_work(problem, sizes.prefix_keys);
    const std::int64_t left = sms - work.pairs * sizes.prefix_chunks;
    const bool are_beside =
        left > 0 && work.beside(sizes.prefix_chunks, sms) < work.after(sizes.prefix_chunks, sms);
    launch_dependent(kernel,
                     grid(are_beside ? std::max<std::int64_t>(1, blocks * left / sms) : blocks),
                     block, shared, device, a, sizes);
  } else {
    if (sizes.prefix_chunks > 0) {
      launch(v.prefix, grid(blocks_for(v.prefix, sizes.prefix_units(sizes.tile_rows))), block,
             shared, device, a, sizes);
    }
    if (a.plan.dependent_launch == DependentLaunch::yes) {
      launch_dependent(kernel, grid(blocks), block, shared, device, a, sizes);
    } else {
      launch(kernel, grid(blocks), block, shared, device, a, sizes);
    }
  }
  if (a.plan.combine != Combine::second_kernel || sizes.most_chunks < 2) return;
  launch_dependent(v.merge, dim3(static_cast<unsigned>(ceil_div(problem.rows(), 4))), dim3(128), 0,
                   device, a, sizes);
}

inline PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  // A warp adds its keys of a chunk tile by tile; then warps meet, then chunks. Of a row's weights
  // a lane adds two of every eight, then four lanes meet.
  const DecodeSizes sizes = DecodeSizes::of(problem, plan);
  const std::int64_t chunks = sizes.most_chunks;
  const std::int64_t keys =
      sizes.is_stream ? sizes.keys : std::min(sizes.keys_of_chunk(sizes.keys), sizes.keys);
  // Under Overlap::yes a warp has all keys of a shared chunk, 64 at a time.
  const bool is_wide = plan.overlap == Overlap::yes;
  const std::int64_t tile = is_wide ? chunk_step : plan.key_tile;
  const std::int64_t steps = ceil_div(keys, tile) + 1;  // a window begins within a step
  const std::int64_t warp_keys = is_wide ? tile : plan.key_tile / plan.warps;
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

}  // namespace decode_family
}  // namespace attest
