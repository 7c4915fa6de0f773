#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/tma.cuh"
#include "gpu/primitives/warpgroup.cuh"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

/// Each block adds 1, then 2, to 64 numbers, and says what it then finds in the first of them.
__global__ void add_twice(BulkBug bug, float* sums, float* found) {
  auto* const numbers = dynamic_shared<float>();
  for (int step = 1; step <= 2; ++step) {
    for (int i = 0; i < 64; ++i) numbers[i] = static_cast<float>(step);
    fence_async_shared();
    add_bytes(sums, numbers, 256);
    if (bug != BulkBug::not_committed) commit_stores();
    if (step == 2 || bug != BulkBug::overwritten) wait_until_stores_have_read();
  }
  if (bug != BulkBug::waits_for_reads_alone) wait_until_stores_are_done();
  found[blockIdx.x] = atomicAdd(sums, 0.0F);
}

/// Each block adds all of 64 integers to 64 sums.
__global__ void add_integers(const int* terms, int* sums) {
  auto* const numbers = dynamic_shared<int>();
  for (int i = 0; i < 64; ++i) numbers[i] = terms[i];
  fence_async_shared();
  add_bytes(sums, numbers, 256);
  commit_stores();
  wait_until_stores_are_done();
}

__global__ void add_from_two_places(BulkBug bug, float* sums) {
  auto* const numbers = dynamic_shared<float>();
  for (int i = 0; i < 128; ++i) numbers[i] = i < 64 ? 1.0F : 2.0F;
  fence_async_shared();
  for (int place = 0; place < 2; ++place) {
    add_bytes(sums, numbers + 64 * place, 256);
    commit_stores();
  }
  wait_until_stores_have_read<1>();
  const int overwritten = bug == BulkBug::overwritten ? 64 : 0;
  for (int i = 0; i < 64; ++i) numbers[overwritten + i] = 100.0F;
  wait_until_stores_are_done();
}

/// Loads `words` words and copies them to `out`.
__global__ void load_words(BulkBug bug, const unsigned* from, int words, unsigned* out) {
  auto* const shared = dynamic_shared<unsigned char>();
  const Mbarrier full(shared + 4 * words);
  full.init(1);
  fence_barrier_init();
  full.arrive_expecting(static_cast<unsigned>(4 * words));
  load_bytes(shared, from, 4 * words, full);
  if (bug != BulkBug::not_waited_for) full.wait(0);
  for (int i = 0; i < words; ++i) out[i] = reinterpret_cast<const unsigned*>(shared)[i];
}

/// A warp stores four matrices [8, 8] with transposed rows side by side: [32 rows, 8].
__global__ void transpose(const unsigned* from, unsigned* out) {
  auto* const shared = dynamic_shared<unsigned char>();
  const auto lane = static_cast<int>(threadIdx.x);
  unsigned words[4];
  for (int i = 0; i < 4; ++i) words[i] = from[32 * i + lane];
  store_transposed(shared + 16 * lane, words);
  __syncwarp();
  for (int i = 0; i < 4; ++i)
    out[32 * i + lane] = reinterpret_cast<unsigned*>(shared)[32 * i + lane];
}

}  // namespace

void launch_add_twice(Device& device, BulkBug bug, int blocks, float* sums, float* found) {
  launch(add_twice, dim3(static_cast<unsigned>(blocks)), dim3(1), 256, device, bug, sums, found);
}
void launch_add_integers(Device& device, int blocks, const int* terms, int* sums) {
  launch(add_integers, dim3(static_cast<unsigned>(blocks)), dim3(1), 256, device, terms, sums);
}
void launch_add_from_two_places(Device& device, BulkBug bug, float* sums) {
  launch(add_from_two_places, dim3(1), dim3(1), 512, device, bug, sums);
}
void launch_load_words(Device& device, BulkBug bug, const unsigned* from, int words,
                       unsigned* out) {
  launch(load_words, dim3(1), dim3(1), static_cast<std::size_t>(4 * words + 16), device, bug, from,
         words, out);
}
void launch_transpose(Device& device, const unsigned* from, unsigned* out) {
  launch(transpose, dim3(1), dim3(32), 512, device, from, out);
}

}  // namespace attest
