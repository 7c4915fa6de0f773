#include <utility>

#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/tensor_map.cuh"
#include "gpu/primitives/warpgroup.cuh"
#include "gpu/primitives/wgmma.cuh"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

// Comments of the form `mark: name` are how the test finds the lines that a finding must name.

__device__ int thread() {
  return static_cast<int>(threadIdx.x);
}
__device__ BoxStart start_of(const BoxAt& at) {
  return {at[0], at[1], at[2], at[3]};
}
__device__ void copy_words(unsigned* to, const unsigned* from, int words, int threads) {
  for (int i = thread() % threads; i < words; i += threads) to[i] = from[i];
}

__global__ void ring(WaitBug bug, const __grid_constant__ TensorMap map, int boxes, int stages,
                     unsigned* out) {
  constexpr int consumers = 64, box_bytes = 1024;
  auto* const shared = dynamic_shared<unsigned char>();
  const auto full = [&](int i) { return Mbarrier(shared + stages * box_bytes + 16 * i); };
  const auto empty = [&](int i) { return Mbarrier(shared + stages * box_bytes + 16 * i + 8); };
  if (thread() == 0) {
    for (int i = 0; i < stages; ++i) {
      full(i).init(1);
      empty(i).init(bug == WaitBug::too_few_arrivals ? 3 : 2);
    }
    fence_barrier_init();
  }
  __syncthreads();
  const unsigned wrong = bug == WaitBug::other_parity ? 1 : 0;
  const unsigned more = bug == WaitBug::too_many_bytes ? 16 : 0;
  for (int box = 0; box < boxes; ++box) {
    const int stage = box % stages;
    const auto parity = static_cast<unsigned>(box / stages % 2);
    if (thread() == consumers) {
      empty(stage).wait(parity ^ 1U ^ wrong);  // mark: waits_for_empty
      full(stage).arrive_expecting(box_bytes + more);
      load_box(shared + stage * box_bytes, map, {.row = 8 * box}, full(stage), L2Hint::evict_first);
    } else if (thread() < consumers) {
      full(stage).wait(parity);  // mark: waits_for_full
      copy_words(out + box * box_bytes / 4, reinterpret_cast<unsigned*>(shared + stage * box_bytes),
                 box_bytes / 4, consumers);
      __syncwarp();
      if (thread() % 32 == 0) empty(stage).arrive();
    }
  }
}

__global__ void turns(WaitBug bug, int count, unsigned* out) {
  auto* const taken = dynamic_shared<unsigned>();
  if (thread() == 0) *taken = 0;
  __syncthreads();
  const int group = thread() / 64, first_turn = 1;
  if (group == 1) arrive_named(first_turn, 128);
  for (int turn = 0; turn < count; ++turn) {
    sync_named(first_turn + group, 128);
    if (thread() % 64 == 0) {
      out[*taken] = static_cast<unsigned>(group);
      *taken += 1;
    }
    if (bug != WaitBug::missing_turn || turn != 1 || group != 0)
      arrive_named(first_turn + 1 - group, 128);
  }
}

__global__ void lonely_product(WaitBug bug) {
  auto* const shared = dynamic_shared<unsigned>();
  for (int i = thread(); i < 64 * 32; i += 128) shared[i] = 0;
  __syncthreads();
  if (bug == WaitBug::missing_warp && thread() / 32 == 2) return;
  float d[32];
  issue_product<__half, Major::k, Major::k>(d, k_major_at(shared), k_major_at(shared), false);
}

__global__ void handover(bool is_ordered, unsigned* out) {
  auto* const shared = dynamic_shared<unsigned>();
  const Mbarrier both(shared + 32), written(shared + 34);
  if (thread() == 0) {
    shared[0] = 0;
    both.init(64);
    written.init(32);
  }
  __syncthreads();
  both.arrive();
  both.wait(0);
  if (thread() < 32) {
    if (thread() == 0) shared[0] = 1;  // mark: handover_writes
    if (is_ordered) written.arrive();
  } else {
    if (is_ordered) written.wait(0);
    if (thread() == 40) *out = shared[0];  // mark: handover_reads
  }
}

__global__ void load(const __grid_constant__ TensorMap map, BoxAt at, int misplaced, int bytes,
                     unsigned* out) {
  auto* const shared = dynamic_shared<unsigned char>();
  auto* const words = reinterpret_cast<unsigned*>(shared);
  const Mbarrier arrived(shared + bytes);
  for (int i = thread(); i < bytes / 4; i += 32) words[i] = ~0U;
  if (thread() == 0) arrived.init(1);
  __syncthreads();
  if (thread() == 0) {
    arrived.arrive_expecting(static_cast<unsigned>(map.tensor.box_rows * panel_row_bytes));
    load_box(shared + misplaced, map, start_of(at), arrived, L2Hint::evict_first);
  }
  if (misplaced != 0) return;  // nothing arrives
  arrived.wait(0);
  copy_words(out, words, bytes / 4, 32);
}

__global__ void store(const __grid_constant__ TensorMap map, BoxAt at, const unsigned* in) {
  auto* const shared = dynamic_shared<unsigned>();
  copy_words(shared, in, static_cast<int>(map.tensor.box_rows) * panel_row_bytes / 4, 32);
  fence_async_shared();
  __syncthreads();
  if (thread() != 0) return;
  store_box(map, start_of(at), shared);
  commit_stores();
  wait_until_stores_have_read();
}

/// Element (r, c) of a tile of `rows` rows.
__device__ std::uint16_t& place(unsigned char* tile, int rows, int r, int c) {
  return *reinterpret_cast<std::uint16_t*>(tile + c / 64 * rows * panel_row_bytes +
                                           swizzled_chunk(r, c % 64 / 8) + c % 8 * 2);
}

template <typename T, int N>
__global__ void product(ProductCase form, const std::uint16_t* a, const std::uint16_t* b,
                        float* out, bool adds) {
  constexpr int depth = product_depth, left_bytes = 64 * 2 * panel_row_bytes;
  unsigned char* const left = dynamic_shared<unsigned char>();
  unsigned char* const right = left + left_bytes;
  for (int i = thread(); i < 64 * depth; i += 128) {
    const int m = i / depth, k = i % depth;
    (form.is_a_mn ? place(left, depth, k, m) : place(left, 64, m, k)) = a[i];
  }
  for (int i = thread(); i < depth * N; i += 128) {
    const int k = i / N, n = i % N;
    (form.is_b_mn ? place(right, depth, k, n) : place(right, N, n, k)) = b[i];
  }
  fence_async_shared();
  __syncthreads();

  const int row = thread() / 32 * 16 + thread() % 32 / 4, column = thread() % 4 * 2;
  float d[N / 2];
  for (int i = 0; i < N / 2; ++i)
    d[i] = adds ? out[(row + i / 2 % 2 * 8) * N + i / 4 * 8 + column + i % 2] : NAN;
  const MatrixDescriptor of_a = form.is_a_mn ? mn_major_at(left, depth) : k_major_at(left);
  const MatrixDescriptor of_b = form.is_b_mn ? mn_major_at(right, depth) : k_major_at(right);
  for (int k = 0; k < depth / 16; ++k) {
    const MatrixDescriptor a_k = of_a + (form.is_a_mn ? mn_major_step(k) : k_major_step(k, 64));
    const MatrixDescriptor b_k = of_b + (form.is_b_mn ? mn_major_step(k) : k_major_step(k, N));
    unsigned r[4];
    for (int i = 0; i < 4; ++i) {
      const std::uint16_t* const pair = a + (row + i % 2 * 8) * depth + 16 * k + column + i / 2 * 8;
      r[i] = pair[0] | unsigned{pair[1]} << 16;
    }
    const bool adds_k = adds || k > 0;
    if (form.a_in_registers) {
      if (form.is_b_mn)
        issue_product<T, Major::mn>(d, r, b_k, adds_k);
      else
        issue_product<T, Major::k>(d, r, b_k, adds_k);
    } else if (form.is_a_mn) {
      if (form.is_b_mn)
        issue_product<T, Major::mn, Major::mn>(d, a_k, b_k, adds_k);
      else
        issue_product<T, Major::mn, Major::k>(d, a_k, b_k, adds_k);
    } else {
      if (form.is_b_mn)
        issue_product<T, Major::k, Major::mn>(d, a_k, b_k, adds_k);
      else
        issue_product<T, Major::k, Major::k>(d, a_k, b_k, adds_k);
    }
  }
  commit_products();
  if (form.is_awaited) wait_for_products<0>();
  for (int i = 0; i < N / 2; ++i)
    out[(row + i / 2 % 2 * 8) * N + i / 4 * 8 + column + i % 2] = d[i];
}

template <typename T, int... N>
auto kernel_of(int n, std::integer_sequence<int, N...>) {
  void (*kernel)(ProductCase, const std::uint16_t*, const std::uint16_t*, float*, bool) = nullptr;
  ((n == N ? void(kernel = product<T, N>) : void()), ...);
  return kernel;
}

}  // namespace

void launch_ring(Device& device, WaitBug bug, const BoxedTensor& from, int boxes, int stages,
                 unsigned* out) {
  launch(ring, dim3(1), dim3(96), static_cast<std::size_t>(stages) * 1040, device, bug,
         tensor_map(from), boxes, stages, out);
}
void launch_turns(Device& device, WaitBug bug, int count, unsigned* out) {
  launch(turns, dim3(1), dim3(128), sizeof(unsigned), device, bug, count, out);
}
void launch_lonely_product(Device& device, WaitBug bug) {
  launch(lonely_product, dim3(1), dim3(128), 64 * 128, device, bug);
}
void launch_handover(Device& device, bool is_ordered, unsigned* out) {
  launch(handover, dim3(1), dim3(64), 36 * sizeof(unsigned), device, is_ordered, out);
}
void launch_load_box(Device& device, const BoxedTensor& from, const BoxAt& at, int misplaced,
                     int bytes, unsigned* out) {
  launch(load, dim3(1), dim3(32), static_cast<std::size_t>(bytes) + 8, device, tensor_map(from), at,
         misplaced, bytes, out);
}
void launch_store_box(Device& device, const BoxedTensor& to, const BoxAt& at, const unsigned* in) {
  launch(store, dim3(1), dim3(32), static_cast<std::size_t>(to.box_rows) * panel_row_bytes, device,
         tensor_map(to), at, in);
}
void launch_product(Device& device, const ProductCase& c, const std::uint16_t* a,
                    const std::uint16_t* b, float* d, bool adds) {
  constexpr std::integer_sequence<int, 64, 80, 96, 112, 128, 160, 176, 192, 256> widths{};
  const auto kernel =
      c.is_half ? kernel_of<__half>(c.n, widths) : kernel_of<__nv_bfloat16>(c.n, widths);
  const auto right_bytes = static_cast<std::size_t>(c.n) * 2 * panel_row_bytes;
  launch(kernel, dim3(1), dim3(128), 64 * 2 * panel_row_bytes + right_bytes, device, c, a, b, d,
         adds);
}

}  // namespace attest
