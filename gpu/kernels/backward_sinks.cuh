#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "gpu/kernels/backward_entry.cuh"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/online_softmax.cuh"

namespace attest {

/// LSE in units of log2, and delta, of all rows: row (entry, head, query) at (entry query_heads +
/// head) head_stride + query.
struct SinkTerms {
  const float *lse2, *delta;
  std::int64_t head_stride;
};

inline constexpr int sink_gradient_threads = 128;

/// dsink of a head, -sum of P of the sink times delta over the rows of all entries, a block a head:
/// no atomics, the same bits at every launch. A thread sums every 128th row of an entry, entry
/// after entry; then the block's sums meet. Rows that see no key are among them: their LSE is the
/// sink, whose P is 1.
template <Executor home>
__global__ void __launch_bounds__(sink_gradient_threads)
    backward_sinks(BackwardArguments a, SinkTerms terms) {
  const std::int64_t head = blockIdx.x;
  const float sink = a.sinks[head];
  const auto thread = static_cast<int>(threadIdx.x);
  // Rounded as LSE2 is, so that their difference is 0 where the sink is all of LSE.
  const float sink2 = sink * std::numbers::log2e_v<float>;
  float sum = 0.0F;
  // A sink of -infinity is none, and so may LSE be: their difference would be NaN.
  const std::int64_t entries = sink == -INFINITY ? 0 : a.problem.batch;
  for (std::int64_t i = 0; i < entries; ++i) {
    const int rows = BackwardEntry(a, i).rows;
    const std::int64_t first = (i * a.problem.query_heads + head) * terms.head_stride;
    for (int row = thread; row < rows; row += sink_gradient_threads) {
      sum -= HardwareExp2::of(sink2 - terms.lse2[first + row]) * terms.delta[first + row];
    }
  }
  float* const sums = dynamic_shared<float>();
  sums[thread] = sum;
  for (int half = sink_gradient_threads / 2; half > 0; half /= 2) {
    __syncthreads();  // the sums of the step before are there
    if (thread < half) sums[thread] += sums[thread + half];
  }
  if (thread == 0) a.d_sinks[head] = sums[0];
}

/// Launches backward_sinks, if there are sinks.
template <Executor home>
void launch_sink_gradients(const BackwardArguments& a, const SinkTerms& terms, Device& device) {
  if (a.sinks == nullptr) return;
  launch(backward_sinks<home>, dim3(static_cast<unsigned>(a.problem.query_heads)),
         dim3(sink_gradient_threads), sink_gradient_threads * sizeof(float), device, a, terms);
}

}  // namespace attest
