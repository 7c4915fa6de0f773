// Kernels for ptxas_test.sh: correct as they stand; each macro plants what cmake/check_ptxas must
// refuse.
#include <cstdint>

// One product of 64 x 8 x 16 and its four sums a thread, for one warpgroup.
__global__ void __launch_bounds__(128) product(float* sums, std::uint64_t a, std::uint64_t b) {
  float d[4] = {0, 0, 0, 0};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(a), "l"(b));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#ifdef READ_BEFORE_THE_WAIT
  sums[threadIdx.x + 512] = d[0];
#endif
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; ++i) sums[threadIdx.x + 128 * i] = d[i];
}

// Without launch bounds nobody knows how many registers a thread starts with.
#ifdef UNKNOWN_REGISTERS
__global__ void give_registers_back(float* x) {
#else
__global__ void __launch_bounds__(128, 1) give_registers_back(float* x) {
#endif
  asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  x[threadIdx.x] = 1;
}

// 64 values that are alive at once; 1,024 threads leave 64 registers, two such blocks 32.
#ifdef TOO_FEW_REGISTERS
__global__ void __launch_bounds__(1024, 2) polynomials(float* x, int steps) {
#else
__global__ void __launch_bounds__(128, 1) polynomials(float* x, int steps) {
#endif
  float v[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) v[i] = x[i * 1024 + threadIdx.x];
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int i = 0; i < 64; ++i) v[i] = v[i] * v[(i + 7) % 64] + 1.0f;
  }
#pragma unroll
  for (int i = 0; i < 64; ++i) x[i * 1024 + threadIdx.x] = v[i];
}

// An array can be in registers only if every index is known when it is compiled.
__global__ void __launch_bounds__(128, 1) look_up(float* x, int row) {
  float v[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) v[i] = x[i * 128 + threadIdx.x];
#ifndef UNKNOWN_INDEX
  row = 7;
#endif
  v[row % 96] = 1;
  x[threadIdx.x] = v[(row * row) % 96];
}
