#pragma once

#include "gpu/microbench/sm_span.hpp"

namespace attest::microbench {

__device__ inline std::int64_t global_ns() {
  std::int64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
  return ns;
}
__device__ inline std::int64_t sm_clk() {
  std::int64_t clk;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(clk)::"memory");
  return clk;
}

/// Notes the begin of a block, end_span() its end. All threads of the block call both.
__device__ inline void begin_span(SmSpan& span) {
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    span.sm = sm;
    span.work = 0;
    span.begin_ns = global_ns();
    span.begin_clk = sm_clk();
  }
  __syncthreads();
}
__device__ inline void end_span(SmSpan& span) {
  __syncthreads();
  if (threadIdx.x == 0) {
    span.end_clk = sm_clk();
    span.end_ns = global_ns();
  }
}

}  // namespace attest::microbench
