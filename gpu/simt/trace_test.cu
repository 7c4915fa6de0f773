#include "gpu/primitives/launch.cuh"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

constexpr std::size_t shared_bytes = 64 * 1024;

__global__ void read_shared(float* out, int stride) {
  const float* shared = dynamic_shared<float>();
  out[threadIdx.x] = shared[static_cast<int>(threadIdx.x) * stride];
}

template <typename Vector>
__global__ void read_shared_vectors(float* out, int stride, int share) {
  const float* shared = dynamic_shared<float>();
  const int t = static_cast<int>(threadIdx.x);
  const Vector v = *reinterpret_cast<const Vector*>(shared + t / share * stride);
  out[threadIdx.x] = v.x + v.y;
}

__global__ void read_global(float* values, int stride, int offset) {
  float* shared = dynamic_shared<float>();
  shared[threadIdx.x] = values[offset + static_cast<int>(threadIdx.x) * stride];
}

__global__ void move_vectors(const float* values, Move move) {
  const int t = static_cast<int>(threadIdx.x);
  const float* from = values + 4 * t;
  float* to = dynamic_shared<float>() + 4 * t;
  if (move == Move::parts) {
    const float4 v = *reinterpret_cast<const float4*>(from);
    to[0] = v.x;
    to[1] = v.y;
    to[2] = v.z;
    to[3] = v.w;
  } else if (move == Move::whole) {
    *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from);
  } else {
    for (int i = 0; i < 4; ++i) to[i] = from[i];
  }
}

__global__ void branch(float* out, int lanes) {
  const float* shared = dynamic_shared<float>();
  const int t = static_cast<int>(threadIdx.x);
  float value = 0.0F;
  if (t % 32 < lanes) value = shared[t];
  out[t] = value;
}

__global__ void ragged_loops(float* out, int rounds) {
  float* shared = dynamic_shared<float>();
  const int t = static_cast<int>(threadIdx.x);
  float sum = 0.0F;
  for (int r = 0; r < rounds; ++r) {
    for (int k = 0; k <= t; ++k) sum += shared[r * 32 + k];
    shared[1024 + r * 32 + t] = sum;
  }
  out[t] = sum;
}

__global__ void branch_at_loop_end(float* out, int rounds) {
  const float* shared = dynamic_shared<float>();
  const int t = static_cast<int>(threadIdx.x);
  float sum = 0.0F;
  for (int r = 0; r < rounds; ++r) {
    sum += shared[r * 32 + t];
    if (t % 2 != 0) sum *= shared[1024 + r];
  }
  out[t] = sum;
}

__global__ void barriers(float* out, int rounds) {
  float x = 1.0F;
  for (int r = 0; r < rounds; ++r) {
    __syncthreads();
    x = fmaf(x, 0.5F, 1.0F);
  }
  out[threadIdx.x] = __shfl_xor_sync(0xffffffffU, x, 1);
}

__global__ void read_by_block(float* out) {
  const float* shared = dynamic_shared<float>();
  float sum = 0.0F;
  for (unsigned k = 0; k <= blockIdx.x; ++k) sum += shared[k * 32 + threadIdx.x];
  out[blockIdx.x * 32 + threadIdx.x] = sum;
}

}  // namespace

void launch_read_shared(Device& device, float* values, int threads, int stride) {
  launch(read_shared, dim3(1), dim3(static_cast<unsigned>(threads)), shared_bytes, device, values,
         stride);
}
void launch_read_shared_vectors(Device& device, float* values, int width, int stride, int share) {
  launch(width == 2 ? read_shared_vectors<float2> : read_shared_vectors<float4>, dim3(1), dim3(32),
         shared_bytes, device, values, stride, share);
}
void launch_read_global(Device& device, float* values, int threads, int stride, int offset) {
  launch(read_global, dim3(1), dim3(static_cast<unsigned>(threads)), shared_bytes, device, values,
         stride, offset);
}
void launch_move(Device& device, float* values, Move move) {
  launch(move_vectors, dim3(1), dim3(32), shared_bytes, device, values, move);
}
void launch_branch(Device& device, float* values, int threads, int lanes) {
  launch(branch, dim3(1), dim3(static_cast<unsigned>(threads)), shared_bytes, device, values,
         lanes);
}
void launch_ragged_loops(Device& device, float* values, int rounds) {
  launch(ragged_loops, dim3(1), dim3(32), shared_bytes, device, values, rounds);
}
void launch_branch_at_loop_end(Device& device, float* values, int rounds) {
  launch(branch_at_loop_end, dim3(1), dim3(32), shared_bytes, device, values, rounds);
}
void launch_barriers(Device& device, float* values, int threads, int rounds) {
  launch(barriers, dim3(1), dim3(static_cast<unsigned>(threads)), shared_bytes, device, values,
         rounds);
}
void launch_blocks(Device& device, float* values, int blocks) {
  launch(read_by_block, dim3(static_cast<unsigned>(blocks)), dim3(32), shared_bytes, device,
         values);
}

}  // namespace attest
