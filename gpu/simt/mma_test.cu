#include "gpu/primitives/mma.cuh"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

template <typename T, bool b_by_rows>
__global__ void multiply(const std::uint16_t* a, const std::uint16_t* b, float* d) {
  const int lane = static_cast<int>(threadIdx.x), g = lane / 4, t = lane % 4;
  const int block = static_cast<int>(blockIdx.x);
  auto* const A = dynamic_shared<std::uint16_t>();
  std::uint16_t* const B = A + 256;
  for (int i = lane; i < 256; i += 32) A[i] = a[block * 256 + i];
  for (int i = lane; i < 128; i += 32) B[i] = b[block * 128 + i];
  __syncwarp();
  unsigned af[4], bf[2];
  load_matrices(af, A + lane % 16 * 16 + lane / 16 * 8);
  if constexpr (b_by_rows)
    load_matrices_transposed(bf, B + lane % 16 * 8);
  else
    load_matrices(bf, B + lane % 8 * 16 + lane / 8 % 2 * 8);
  float df[4];
  float* const mine = d + block * 128 + g * 8 + 2 * t;
  for (int i = 0; i < 4; ++i) df[i] = mine[i / 2 * 64 + i % 2];
  mma_16x8x16<T>(df, af, bf);
  for (int i = 0; i < 4; ++i) mine[i / 2 * 64 + i % 2] = df[i];
}

__global__ void load(MatrixLoadBug bug, unsigned* out) {
  const int lane = static_cast<int>(threadIdx.x);
  auto* const rows = dynamic_shared<std::uint16_t>();
  for (int i = lane; i < 8 * 8; i += 32) {
    if (bug != MatrixLoadBug::unwritten_row || i / 8 != 5) {
      rows[i] = static_cast<std::uint16_t>(i);
    }
  }
  __syncwarp();
  if (bug == MatrixLoadBug::lane_has_exited && lane == 7) return;
  unsigned r[1];
  load_matrices(r,
                rows + lane % 8 * 8 + (bug == MatrixLoadBug::unaligned_row && lane == 3 ? 4 : 0));
  out[lane] = r[0];
}

__global__ void round_all(const float* from, float* to) {
  to[threadIdx.x] = rounded_to_tf32(from[threadIdx.x]);
}

}  // namespace

void launch_rounding(Device& device, const float* from, float* to) {
  launch(round_all, dim3(1), dim3(32), 0, device, from, to);
}

void launch_mma(Device& device, bool is_half, bool b_by_rows, const std::uint16_t* a,
                const std::uint16_t* b, float* d, int blocks) {
  const auto kernel =
      is_half ? (b_by_rows ? multiply<__half, true> : multiply<__half, false>)
              : (b_by_rows ? multiply<__nv_bfloat16, true> : multiply<__nv_bfloat16, false>);
  launch(kernel, dim3(static_cast<unsigned>(blocks)), dim3(32), 384 * sizeof(std::uint16_t), device,
         a, b, d);
}

void launch_matrix_load(Device& device, MatrixLoadBug bug, unsigned* out) {
  launch(load, dim3(1), dim3(32), 64 * sizeof(std::uint16_t) + 16, device, bug, out);
}

}  // namespace attest
