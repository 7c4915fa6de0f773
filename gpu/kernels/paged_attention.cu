// Paged attention as serving systems first had it [vLLM: PagedAttention V1 and V2; Kwon et al.,
// SOSP 2023]: one query a block, its scores in shared memory, two passes over them.
//
// Idea
//   V1: a block has one query row of one head, and all of its keys. Groups of 8 lanes make one
//   score
//       each, 16 bytes of K a lane at a time. When all scores are there the block takes their
//       maximum, turns them into weights in place and sums those. Then threads have columns instead
//       of keys: each adds weight times V over every n-th key, and the sums meet in shared memory.
//   V2: the keys are cut into partitions of split_keys, a block each. A partition leaves its O,
//       divided by its own sum and rounded to O's format, its maximum m and its sum l; a second
//       launch merges them. Partitions that hold no key of the row end at once.
//   Nothing is online: the maximum is known before the first weight is made.
// Resident
//   shared     q in fp32 [D]; scores, then weights, of the keys of a partition; sums of V's columns
//              [n, D of V], n = the threads that share a column; one number a warp
//   global     V2: partial O [partitions, rows, D of V], (m, l) [partitions, rows]
// Legend
//   D head_dim; T the type of Q, K, V and O; all arithmetic is fp32.
// Barriers
//   (1) q is complete before scores are made
//   (2) scores are complete before weights are made of them: in the reduction of the maximum
//   (3) weights are complete before V is added: in the reduction of their sum
//   (4) the sums of all threads are there before they are added
// Limits
//   head dims of whole 16 bytes, to 256; V1: the scores of key_len keys fit into 99 KiB.
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include <algorithm>
#include <string>

#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "gpu/kernels/visible_keys.cuh"
#include "gpu/primitives/cuda_type.cuh"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/online_softmax.cuh"
#include "gpu/primitives/tile_plan.hpp"

namespace attest {
namespace {

constexpr int threads = 128, lanes = 32, warps = threads / lanes;
constexpr int group_lanes = 8;  ///< that make a score together
constexpr int groups = threads / group_lanes;
constexpr std::int64_t largest_dim = 256;
constexpr std::int64_t most_partitions = 4096;  // their weights lie in the merge's shared memory

/// 16 bytes of a row: what a thread loads at once.
template <typename T>
struct alignas(16) Chunk {
  static constexpr int size = 16 / static_cast<int>(sizeof(T));
  T x[size];
};

/// Keys of a partition, and partitions of a row at the most. V1 has one.
struct Partitions {
  std::int64_t keys = 0, count = 1;

  static Partitions of(const Problem& problem, const Plan& plan) {
    const std::int64_t all = std::max<std::int64_t>(1, problem.key_len);
    if (plan.split_keys == 0 || plan.split_keys >= all) return {all, 1};
    return {plan.split_keys, std::max<std::int64_t>(1, ceil_div(problem.key_len, plan.split_keys))};
  }
};

/// Rows that the partitions of V2 leave in the workspace: those of full lengths.
template <typename T>
struct PartialRows {
  float2* sums;  ///< m and l
  T* o;
  std::int64_t rows;
  int columns;

  static __device__ PartialRows of(const ForwardArguments& a, const Partitions& partitions) {
    const std::int64_t rows = a.problem.rows();
    auto* const sums = static_cast<float2*>(a.workspace);
    return {sums, reinterpret_cast<T*>(sums + partitions.count * rows), rows,
            static_cast<int>(a.problem.output_dim())};
  }
  __device__ float2& sums_of(std::int64_t partition, std::int64_t row) const {
    return sums[partition * rows + row];
  }
  __device__ T* o_of(std::int64_t partition, std::int64_t row) const {
    return o + (partition * rows + row) * columns;
  }
};

/// The row of a block: blockIdx.x is its head, blockIdx.y its entry and query.
template <typename T>
struct Row {
  int head = 0, entry = 0, query = 0;
  bool exists = false;
  int first = 0, past = 0;                           ///< keys that it sees
  float slope = 0.0F;                                ///< of ALiBi
  int distance = 0;                                  ///< of key 0, as ALiBi counts it
  std::int64_t number = 0;                           ///< among rows of full lengths
  const T *q = nullptr, *k = nullptr, *v = nullptr;  ///< of k and v key 0, or slot 0 of page 0
  T* o = nullptr;
  float* lse = nullptr;

  __device__ explicit Row(const ForwardArguments& a) {
    const Problem& problem = a.problem;
    head = static_cast<int>(blockIdx.x);
    const int most_queries = static_cast<int>(problem.query_len);
    entry = static_cast<int>(blockIdx.y) / most_queries;
    query = static_cast<int>(blockIdx.y) % most_queries;
    const bool has_lengths = a.query_starts != nullptr;
    const bool is_paged = a.page_table.page_size > 0;
    const std::int64_t q_start = has_lengths ? a.query_starts[entry] : 0;
    const int queries =
        has_lengths ? static_cast<int>(a.query_starts[entry + 1] - q_start) : most_queries;
    exists = query < queries;
    if (!exists) return;
    const bool packs_keys = !is_paged && a.key_starts != nullptr;
    const std::int64_t k_start = packs_keys ? a.key_starts[entry] : 0;
    const std::int64_t keys = is_paged     ? a.page_table.key_len(entry)
                              : packs_keys ? a.key_starts[entry + 1] - k_start
                                           : problem.key_len;
    const KeyReach reach(problem, queries, static_cast<int>(keys));
    first = reach.first_key(query);
    past = reach.past_key(query);
    if (a.slopes != nullptr) {
      slope = a.slopes[head];
      distance = static_cast<int>(key_distance(problem.mask, queries, keys, query, 0));
    }
    const std::int64_t q_batch = has_lengths ? 0 : entry;
    const std::int64_t k_batch = is_paged || packs_keys ? 0 : entry;
    const std::int64_t kv_head = problem.kv_head_of(head);
    q = static_cast<const T*>(a.q) + a.q_strides.offset(q_batch, head, q_start + query);
    k = static_cast<const T*>(a.k) + a.k_strides.offset(k_batch, kv_head, k_start);
    v = static_cast<const T*>(a.v) + a.v_strides.offset(k_batch, kv_head, k_start);
    o = static_cast<T*>(a.o) + a.o_strides.offset(q_batch, head, q_start + query);
    number = (std::int64_t{entry} * problem.query_heads + head) * problem.query_len + query;
    lse =
        a.lse + (has_lengths ? std::int64_t{head} * a.query_starts[problem.batch] + q_start + query
                             : number);
  }
};

/// Offset of key `key` of an entry from its first one, or from slot 0 of page 0.
inline __device__ std::int64_t offset_of(const PageTable& table, const std::int32_t* pages,
                                         const Strides& strides, int key) {
  if (pages == nullptr) return key * strides.row;
  const int page_size = static_cast<int>(table.page_size);
  return pages[key / page_size] * strides.batch + key % page_size * strides.row;
}

struct Largest {
  static __device__ float of(float a, float b) { return fmaxf(a, b); }
};
struct Sum {
  static __device__ float of(float a, float b) { return a + b; }
};
/// Over all threads of the block, which get the same bits; what they wrote before is visible to all
/// behind it. `scratch` has a number for each warp.
template <typename Op>
__device__ float over_block(float x, float* scratch) {
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    x = Op::of(x, __shfl_xor_sync(0xffffffffU, x, distance));
  }
  if (threadIdx.x % lanes == 0) scratch[threadIdx.x / lanes] = x;
  __syncthreads();
  float all = scratch[0];
  for (int w = 1; w < warps; ++w) all = Op::of(all, scratch[w]);
  __syncthreads();  // before scratch is written again
  return all;
}

template <typename T, bool is_partitioned>
__global__ void __launch_bounds__(threads)
    paged_attention(ForwardArguments a, Partitions partitions) {
  const Problem& problem = a.problem;
  const Row<T> row(a);
  if (!row.exists) return;
  const int partition = static_cast<int>(blockIdx.z);
  const int begin = partition * static_cast<int>(partitions.keys);
  const int first = max(row.first, begin);
  const int past = min(row.past, begin + static_cast<int>(partitions.keys));
  if (is_partitioned && first >= past) return;

  constexpr int chunk = Chunk<T>::size;
  const int D = static_cast<int>(problem.head_dim),
            columns = static_cast<int>(problem.output_dim());
  const int thread = static_cast<int>(threadIdx.x);
  float* const scratch = dynamic_shared<float>();
  float* const q = scratch + warps;
  float* const column_sums = q + D;
  float* const scores = column_sums + threads * chunk;

  for (int d = thread; d < D; d += threads) q[d] = to_float(row.q[d]);
  __syncthreads();  // (1)

  const std::int32_t* const pages =
      a.page_table.page_size > 0 ? a.page_table.of(row.entry) : nullptr;
  const int lane = thread % group_lanes;
  float m = -INFINITY;
  for (int base = first; base < past; base += groups) {
    const int key = base + thread / group_lanes;
    float sum = 0.0F;
    if (key < past) {
      const T* const k = row.k + offset_of(a.page_table, pages, a.k_strides, key);
      for (int d = lane * chunk; d < D; d += group_lanes * chunk) {
        const auto part = *reinterpret_cast<const Chunk<T>*>(k + d);
#pragma unroll
        for (int i = 0; i < chunk; ++i) sum = fmaf(q[d + i], to_float(part.x[i]), sum);
      }
    }
    for (int distance = group_lanes / 2; distance > 0; distance /= 2) {
      sum += __shfl_xor_sync(0xffffffffU, sum, distance);
    }
    if (key < past) {
      // Without slopes, and with slopes of 0, no bit changes.
      const float steps = fabsf(static_cast<float>(row.distance + key));
      const float score = fmaf(-row.slope, steps, problem.scale * sum);
      m = fmaxf(m, score);
      if (lane == 0) scores[key - first] = score;
    }
  }
  m = over_block<Largest>(m, scratch);  // (2)

  float* const weights = scores;
  float l = 0.0F;
  for (int j = thread; j < past - first; j += threads) {
    weights[j] = exp_below<LibraryExp>(scores[j], m);
    l += weights[j];
  }
  l = over_block<Sum>(l, scratch);  // (3)

  const int chunks = columns / chunk, sharers = threads / chunks;
  const int column = thread % chunks * chunk, sharer = thread / chunks;
  if (sharer < sharers) {
    float o[chunk] = {};
    for (int key = first + sharer; key < past; key += sharers) {
      const T* const v = row.v + offset_of(a.page_table, pages, a.v_strides, key) + column;
      const auto part = *reinterpret_cast<const Chunk<T>*>(v);
      const float weight = weights[key - first];
#pragma unroll
      for (int i = 0; i < chunk; ++i) o[i] = fmaf(weight, to_float(part.x[i]), o[i]);
    }
#pragma unroll
    for (int i = 0; i < chunk; ++i) column_sums[sharer * columns + column + i] = o[i];
  }
  __syncthreads();  // (4)

  const auto partials = PartialRows<T>::of(a, partitions);
  T* const to = is_partitioned ? partials.o_of(partition, row.number) : row.o;
  for (int c = thread; c < columns; c += threads) {
    float sum = column_sums[c];
    for (int s = 1; s < sharers; ++s) sum += column_sums[s * columns + c];
    to[c] = from_float<T>(sum / divisor_of(l));
  }
  if (thread != 0) return;
  if constexpr (is_partitioned) {
    partials.sums_of(partition, row.number) = {m, l};
  } else {
    *row.lse = log_sum_exp(m, l);
  }
}

/// V2's second launch: a block a row.
template <typename T>
__global__ void __launch_bounds__(threads)
    paged_attention_merge(ForwardArguments a, Partitions partitions) {
  const Row<T> row(a);
  if (!row.exists) return;
  const auto partials = PartialRows<T>::of(a, partitions);
  const int keys = static_cast<int>(partitions.keys);
  const int first = row.first / keys;  // with keys that the row sees
  const int count = row.first < row.past ? (row.past - 1) / keys - first + 1 : 0;
  const int thread = static_cast<int>(threadIdx.x);
  float* const scratch = dynamic_shared<float>();
  float* const weights = scratch + warps;

  float m = -INFINITY;
  for (int p = thread; p < count; p += threads) {
    m = fmaxf(m, partials.sums_of(first + p, row.number).x);
  }
  m = over_block<Largest>(m, scratch);
  float l = 0.0F;
  for (int p = thread; p < count; p += threads) {
    const float2 sums = partials.sums_of(first + p, row.number);
    weights[p] = sums.y * exp_below<LibraryExp>(sums.x, m);
    l += weights[p];
  }
  l = over_block<Sum>(l, scratch);
  for (int c = thread; c < partials.columns; c += threads) {
    float sum = 0.0F;
    for (int p = 0; p < count; ++p) {
      sum = fmaf(weights[p], to_float(partials.o_of(first + p, row.number)[c]), sum);
    }
    row.o[c] = from_float<T>(sum / divisor_of(l));
  }
  if (thread == 0) *row.lse = log_sum_exp(m, l);
}

std::int64_t chunk_of(const Problem& problem) {
  return 16 / static_cast<std::int64_t>(format_of(problem.element_type).size_bytes);
}

std::int64_t shared_floats(const Problem& problem, const Plan& plan) {
  const std::int64_t scores = std::min(Partitions::of(problem, plan).keys, problem.key_len);
  return warps + problem.head_dim + threads * chunk_of(problem) + scores;
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  const auto outside = [](const std::string& what, std::int64_t got, const std::string& allowed) {
    return what + " is " + std::to_string(got) + "; allowed: " + allowed;
  };
  for (const auto& [name, dim] :
       {std::pair("head_dim", problem.head_dim), std::pair("value_dim", problem.output_dim())}) {
    if (dim > largest_dim || dim % chunk_of(problem) != 0) {
      return outside(name, dim,
                     "multiples of " + std::to_string(chunk_of(problem)) + " to " +
                         std::to_string(largest_dim));
    }
  }
  if (plan.warps != warps) return outside("warps", plan.warps, std::to_string(warps));
  const bool is_partitioned = plan.split_keys != 0;
  if (is_partitioned && (plan.key_split_rule != KeySplitRule::fixed_keys ||
                         plan.combine != Combine::second_kernel || plan.split_keys < 1)) {
    return "the plan is " + to_string(plan) +
           "; allowed with split_keys: key_split_rule fixed_keys and combine second_kernel";
  }
  const std::int64_t partitions = Partitions::of(problem, plan).count;
  if (partitions > most_partitions) {
    return outside("the number of partitions", partitions,
                   "1 to " + std::to_string(most_partitions));
  }
  if (problem.batch * problem.query_len > max_grid_y) {
    return outside("batch times query_len", problem.batch * problem.query_len,
                   "1 to " + std::to_string(max_grid_y));
  }
  const std::int64_t shared =
      shared_floats(problem, plan) * static_cast<std::int64_t>(sizeof(float));
  if (shared > portable_shared_bytes) {
    return outside("shared memory of a block in bytes", shared,
                   "0 to " + std::to_string(portable_shared_bytes));
  }
  return std::nullopt;
}

constexpr Plan v1{.warps = warps};
constexpr Plan v2(std::int64_t split_keys) {
  return {.warps = warps,
          .split_keys = split_keys,
          .key_split_rule = KeySplitRule::fixed_keys,
          .combine = Combine::second_kernel};
}

/// vLLM's choice first: V1 where keys are one partition of 512, or where it has blocks enough.
std::vector<Plan> plans(const Problem& problem) {
  constexpr std::int64_t usual = 512, longest_v1 = 8192, enough_blocks = 512;
  const bool takes_v1 =
      problem.key_len <= longest_v1 &&
      (problem.key_len <= usual || problem.batch * problem.query_heads > enough_blocks);
  std::vector<Plan> all;
  for (const Plan& plan :
       {takes_v1 ? v1 : v2(usual), takes_v1 ? v2(usual) : v1, v2(16), v2(48), v2(2048)}) {
    if (!unsupported(problem, plan)) all.push_back(plan);
  }
  return all;
}

std::size_t workspace_bytes(const Problem& problem, const Plan& plan) {
  if (plan.split_keys == 0) return 0;
  const auto row =
      static_cast<std::size_t>(problem.output_dim()) * format_of(problem.element_type).size_bytes +
      sizeof(float2);
  return static_cast<std::size_t>(Partitions::of(problem, plan).count * problem.rows()) * row;
}

void run(const ForwardArguments& a, Device& device) {
  const Problem& problem = a.problem;
  if (problem.rows() == 0) return;
  const Partitions partitions = Partitions::of(problem, a.plan);
  const auto heads = static_cast<unsigned>(problem.query_heads);
  const auto rows = static_cast<unsigned>(problem.batch * problem.query_len);
  const auto shared = static_cast<std::size_t>(shared_floats(problem, a.plan)) * sizeof(float);
  with_cuda_type(problem.element_type, [&]<typename T>(std::type_identity<T>) {
    if (a.plan.split_keys == 0) {
      launch(paged_attention<T, false>, dim3(heads, rows), dim3(threads), shared, device, a,
             partitions);
      return;
    }
    launch(paged_attention<T, true>, dim3(heads, rows, static_cast<unsigned>(partitions.count)),
           dim3(threads), shared, device, a, partitions);
    // The compiler reads up to four weights at once, also those that no partition has.
    const auto weights =
        static_cast<std::size_t>(warps + 4 * ceil_div(partitions.count, 4)) * sizeof(float);
    launch(paged_attention_merge<T>, dim3(heads, rows), dim3(threads), weights, device, a,
           partitions);
  });
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  const Partitions partitions = Partitions::of(problem, plan);
  // A thread's own, five exchanges, the warps; then the partitions, likewise.
  const auto chain = [](std::int64_t terms) { return ceil_div(terms, threads) + 5 + warps; };
  PrecisionPlan result{.scale_after_dot = true,
                       .exp = library_expf(),
                       .rescale = Rescale::none,
                       .normaliser_chain = chain(std::min(partitions.keys, problem.key_len)),
                       .division_error = 0x1p-24,  // one IEEE division
                       .log_error = 0x1p-23};      // logf: 1 ulp
  if (plan.split_keys != 0) {
    result.splits = partitions.count;
    result.normaliser_chain += chain(partitions.count);
    result.merge = Merge::normalised_sums;
    result.partial_format = problem.element_type;
  }
  return result;
}

const KernelRegistration registration{
    {.name = "paged_attention",
     .summary =
         "one query a block, its scores in shared memory, K and V in pages: vLLM's V1 and V2",
     .source = "V1, V2, V3, V4, V5 [vLLM; Kwon et al. 2023]",
     .executor = this_executor,
     .dataflow = Dataflow::queries_outside,
     .element_types = {ElementType::fp32, ElementType::fp16, ElementType::bf16},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right, Mask::window_top_left,
               Mask::window_bottom_right},
     .features = {.no_queries = true, .value_dim = true, .lengths = true, .slopes = true},
     .is_query_invariant = true,
     .reads_lengths = true,
     .layout_needs = {.pointer_alignment_bytes = 16,
                      .stride_alignment_bytes = 16,
                      .pages = Pages::also},
     .precision = precision,
     .plans = plans,
     .unsupported = unsupported,
     .workspace_bytes = workspace_bytes,
     .launch = run}};

}  // namespace
}  // namespace attest
