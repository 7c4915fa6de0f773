// The softmax of cublas_standard: scale, mask, P and LSE in one launch.
//
// Idea
//   A warp has a row of up to 1,024 keys, a block of 256 threads a longer one. A thread takes four
//   neighbouring scores at a time. Three passes: maximum, sum, weights; after the first the row is
//   in the L1 cache or in L2. The division is one a weight, as in the eager form of a framework.
// Legend
//   S Q K^T, not yet scaled; m, l maximum and sum of exp(scale S - m) of a row.
// Barriers
//   Between a warp's part of a row and the block's: (1) all parts are written before they are
//   read, (2) all have read them before the next reduction overwrites them.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "core/operations/forward_arguments.hpp"
#include "gpu/peers/cublas_standard.hpp"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/online_softmax.cuh"

namespace attest {
namespace {

constexpr int threads = 256, warp = 32, group = 4;
constexpr std::int64_t longest_of_a_warp = 1024;
constexpr std::int64_t pitch_multiple = 8;  // 16 bytes of 16-bit elements

struct Max {
  static constexpr float neutral = -INFINITY;
  static __device__ float of(float a, float b) { return fmaxf(a, b); }
};
struct Sum {
  static constexpr float neutral = 0.0F;
  static __device__ float of(float a, float b) { return a + b; }
};

/// Reduces x over the `row_threads` threads that share a row: 32, or the whole block.
template <int row_threads, typename Operation>
__device__ float reduce(float x) {
  for (int step = warp / 2; step > 0; step /= 2) {
    x = Operation::of(x, __shfl_xor_sync(~0U, x, step));
  }
  if constexpr (row_threads > warp) {
    __shared__ float parts[row_threads / warp];
    if (threadIdx.x % warp == 0) parts[threadIdx.x / warp] = x;
    __syncthreads();  // (1)
    x = Operation::neutral;
    for (const float part : parts) x = Operation::of(x, part);
    __syncthreads();  // (2)
  }
  return x;
}

/// Four scores from key k on, scaled; -inf from key `visible` on.
__device__ void load(const float* row, std::int64_t k, std::int64_t visible, float scale,
                     float (&s)[group]) {
  const float4 four = *reinterpret_cast<const float4*>(row + k);
  const float raw[group] = {four.x, four.y, four.z, four.w};
#pragma unroll
  for (int i = 0; i < group; ++i) s[i] = k + i < visible ? scale * raw[i] : -INFINITY;
}

__device__ void store(float* to, const float (&p)[group]) {
  *reinterpret_cast<float4*>(to) = make_float4(p[0], p[1], p[2], p[3]);
}
__device__ void store(__half* to, const float (&p)[group]) {
  reinterpret_cast<__half2*>(to)[0] = __floats2half2_rn(p[0], p[1]);
  reinterpret_cast<__half2*>(to)[1] = __floats2half2_rn(p[2], p[3]);
}
__device__ void store(__nv_bfloat16* to, const float (&p)[group]) {
  reinterpret_cast<__nv_bfloat162*>(to)[0] = __floats2bfloat162_rn(p[0], p[1]);
  reinterpret_cast<__nv_bfloat162*>(to)[1] = __floats2bfloat162_rn(p[2], p[3]);
}

template <int row_threads, typename Weight>
__global__ void __launch_bounds__(threads)
    standard_softmax(ForwardArguments a, ScoreMatrix matrix) {
  const Problem& problem = a.problem;
  const std::int64_t n =
      std::int64_t{blockIdx.x} * (threads / row_threads) + threadIdx.x / row_threads;
  if (n >= problem.rows()) return;  // all threads of the row
  const std::int64_t first = group * (threadIdx.x % row_threads), step = group * row_threads;
  const float* const row = static_cast<const float*>(a.workspace) + n * matrix.pitch;
  Weight* const weights =
      reinterpret_cast<Weight*>(static_cast<char*>(a.workspace) + matrix.weights_at_bytes) +
      n * matrix.pitch;
  const std::int64_t visible = problem.visible_keys(n % problem.query_len);

  float s[group];
  float m = -INFINITY;
  for (std::int64_t k = first; k < visible; k += step) {
    load(row, k, visible, problem.scale, s);
#pragma unroll
    for (const float score : s) m = fmaxf(m, score);
  }
  m = reduce<row_threads, Max>(m);
  float l = 0.0F;
  for (std::int64_t k = first; k < visible; k += step) {
    load(row, k, visible, problem.scale, s);
#pragma unroll
    for (const float score : s) l += exp_below<LibraryExp>(score, m);
  }
  l = reduce<row_threads, Sum>(l);
  const float divisor = divisor_of(l);
  // Up to the pitch: what lies past key_len is never multiplied, but is no garbage either.
  for (std::int64_t k = first; k < matrix.pitch; k += step) {
    float p[group] = {};
    if (k < visible) {
      load(row, k, visible, problem.scale, s);
#pragma unroll
      for (int i = 0; i < group; ++i) p[i] = exp_below<LibraryExp>(s[i], m) / divisor;
    }
    store(weights + k, p);
  }
  if (threadIdx.x % row_threads == 0) a.lse[n] = log_sum_exp(m, l);
}

template <typename Weight>
void launch_of(const ForwardArguments& a, Device& device) {
  const ScoreMatrix matrix = score_matrix_of(a.problem);
  const bool is_short = a.problem.key_len <= longest_of_a_warp;
  const std::int64_t rows_of_block = is_short ? threads / warp : 1;
  const dim3 grid(static_cast<unsigned>((a.problem.rows() + rows_of_block - 1) / rows_of_block));
  launch(is_short ? standard_softmax<warp, Weight> : standard_softmax<threads, Weight>, grid,
         dim3(threads), 0, device, a, matrix);
}

}  // namespace

ScoreMatrix score_matrix_of(const Problem& problem) {
  ScoreMatrix matrix;
  matrix.pitch = (problem.key_len + pitch_multiple - 1) / pitch_multiple * pitch_multiple;
  const auto elements = static_cast<std::size_t>(problem.rows() * matrix.pitch);
  matrix.bytes = elements * sizeof(float);
  if (problem.element_type != ElementType::fp32) {
    matrix.weights_at_bytes = matrix.bytes;
    matrix.bytes += elements * format_of(problem.element_type).size_bytes;
  }
  return matrix;
}

std::int64_t softmax_chain(const Problem& problem) {
  const std::int64_t row_threads = problem.key_len <= longest_of_a_warp ? warp : threads;
  const std::int64_t own =
      (problem.key_len + group * row_threads - 1) / (group * row_threads) * group;
  return own + 5 + threads / warp;  // a thread's own, five exchanges, the warps of a block
}

void launch_standard_softmax(const ForwardArguments& arguments, Device& device) {
  switch (arguments.problem.element_type) {
    case ElementType::fp16:
      return launch_of<__half>(arguments, device);
    case ElementType::bf16:
      return launch_of<__nv_bfloat16>(arguments, device);
    default:
      return launch_of<float>(arguments, device);
  }
}

}  // namespace attest
