#include "gpu/runtime/test_kernels.hpp"

namespace attest {
namespace {

__global__ void with_static_shared_memory(int* out) {
  __shared__ int values[160];
  values[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values[159 - threadIdx.x];
}

template <int size>
__global__ void with_stack(int* out, const int* order) {
  int values[size];
  for (int i = 0; i < size; ++i) values[order[i]] = i;
  out[threadIdx.x] = values[order[threadIdx.x]];
}

}  // namespace

const void* with_static_shared_memory_address() {
  return reinterpret_cast<const void*>(with_static_shared_memory);
}

const void* with_stack_address() {
  return reinterpret_cast<const void*>(with_stack<200>);
}

}  // namespace attest
