// radix_select: an indexer and its top-k in two launches, scores and the largest of them
// [DeepSeek-V3.2-Exp's lightning indexer].
//
// Idea
//   Scores of all keys go to the workspace, tile by tile (scores.cuh), so that one query of a long
//   sequence has the whole GPU. Then a block a query chooses (largest.cuh): its scores are read
//   five times, from the L2 at usual lengths.
// Limits
//   The workspace holds a number a query and key; tiles times queries are fewer than 2^31.
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include <algorithm>

#include "core/attention/select_roundings.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "gpu/kernels/radix_select/largest.cuh"
#include "gpu/kernels/radix_select/scores.cuh"

namespace attest {
namespace {

using namespace radix_select;

constexpr std::int64_t most_blocks = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t widest_of_mma = 256;

bool takes_mma(const Problem& problem) {
  return problem.element_type != ElementType::fp32 && problem.head_dim <= widest_of_mma;
}

/// 16 columns each that fragments hold.
int steps_of(const Problem& problem) {
  return problem.head_dim <= 64 ? 4 : problem.head_dim <= 128 ? 8 : 16;
}

std::int64_t tile_keys(const Problem& problem) {
  return takes_mma(problem) ? keys_of_tile(steps_of(problem)) : score_threads;
}

std::int64_t lists(const Problem& problem) {
  return problem.batch * problem.query_len;
}

std::int64_t score_blocks(const Problem& problem) {
  return lists(problem) * ((problem.key_len + tile_keys(problem) - 1) / tile_keys(problem));
}

using Kernel = void (*)(SelectArguments);

template <typename T>
Kernel mma_kernel(int steps) {
  return steps == 4   ? score_by_mma<this_executor, T, 4>
         : steps == 8 ? score_by_mma<this_executor, T, 8>
                      : score_by_mma<this_executor, T, 16>;
}

Kernel score_kernel(const Problem& problem) {
  if (takes_mma(problem)) {
    return with_sixteen_bits(problem.element_type, [&]<typename T>(std::type_identity<T>) {
      return mma_kernel<T>(steps_of(problem));
    });
  }
  return with_cuda_type(problem.element_type, []<typename T>(std::type_identity<T>) -> Kernel {
    return score_by_fmas<this_executor, T>;
  });
}

void run(const SelectArguments& a, Device& device) {
  const Problem& problem = a.problem;
  if (lists(problem) == 0) return;
  if (problem.key_len > 0 && problem.top_k > 0) {
    const std::int64_t shared =
        takes_mma(problem) ? 0 : problem.head_dim * heads_of_chunk * std::int64_t{sizeof(float)};
    launch(score_kernel(problem), dim3(static_cast<unsigned>(score_blocks(problem))),
           dim3(score_threads), static_cast<std::size_t>(shared), device, a);
  }
  launch(choose_largest<this_executor>, dim3(static_cast<unsigned>(lists(problem))),
         dim3(static_cast<unsigned>(a.plan.warps) * lanes), 0, device, a);
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& /*plan*/) {
  if (score_blocks(problem) <= most_blocks && lists(problem) <= most_blocks) return std::nullopt;
  return "tiles of keys times queries are " + std::to_string(score_blocks(problem)) +
         " blocks; allowed: " + std::to_string(most_blocks);
}

/// Few warps where rows are short: they meet at barriers more often than they read.
std::vector<Plan> plans(const Problem& problem) {
  const std::int64_t tile = tile_keys(problem);
  const Plan few{.key_tile = tile, .warps = 4}, many{.key_tile = tile, .warps = 32};
  constexpr std::int64_t short_row = 4096;
  if (problem.key_len <= short_row) return {few, many};
  return {many, few};
}

const KernelRegistration registration{
    {.operation = &select_operation,
     .name = "radix_select",
     .summary = "scores by tensor cores, the largest by radix selection",
     .source = "DeepSeek-V3.2-Exp",
     .executor = this_executor,
     .element_types = {ElementType::fp32, ElementType::fp16, ElementType::bf16},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right, Mask::window_top_left,
               Mask::window_bottom_right},
     .features = {.no_queries = true, .lengths = true, .padding = true},
     .layout_needs = {.takes_entry_gaps = true, .takes_broadcast = true},
     .compute_capabilities = {.least = 80},
     .precision =
         [](const Problem& problem, const Plan&) {
           return SelectRoundings{takes_mma(problem) ? hopper() : Accumulation{}};
         },
     .plans = plans,
     .has_plan_rule = true,
     .unsupported = unsupported,
     .workspace_bytes =
         [](const Problem& problem, const Plan&) {
           return static_cast<std::size_t>(lists(problem) * problem.key_len) * sizeof(unsigned);
         },
     .launch = run}};

}  // namespace
}  // namespace attest
