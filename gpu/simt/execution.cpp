#include "gpu/simt/execution.hpp"

#include <cmath>

#include "gpu/simt/access_check.hpp"
#include "gpu/simt/block_runner.hpp"
#include "gpu/simt/running_thread.hpp"

namespace attest::simt {
namespace {

// Kernels spend much of their time in fmaf: the instruction is called directly where there is one,
// which pays for the counting.
[[gnu::target("fma")]] float fma_of_the_machine(float a, float b, float c) noexcept {
  return __builtin_fmaf(a, b, c);
}
const bool machine_has_fma = __builtin_cpu_supports("fma") != 0;

}  // namespace

uint3 thread_index() noexcept {
  return running_thread.thread;
}
uint3 block_index() noexcept {
  return running_thread.block;
}
dim3 block_size() noexcept {
  return running_thread.block_size;
}
dim3 grid_size() noexcept {
  return running_thread.grid_size;
}
void* dynamic_shared_memory() noexcept {
  return reinterpret_cast<void*>(running_thread.shared.base);
}
unsigned lane_index() noexcept {
  return running_thread.runner->lane();
}
unsigned active_mask() noexcept {
  return 1U << running_thread.runner->lane();
}

float fused_multiply_add(float a, float b, float c) noexcept {
  ++running_thread.fmas;
  return machine_has_fma ? fma_of_the_machine(a, b, c) : std::fma(a, b, c);
}

void memory_fence() noexcept {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  running_thread.runner->note_fence();
}

void wait_for_predecessor() noexcept {
  running_thread.runner->wait_for_predecessor();
}

void start_async_copy(void* shared, const void* global, std::size_t bytes,
                      std::size_t source_bytes) {
  running_thread.runner->async_copies().start(shared, global, bytes, source_bytes,
                                              point_of(__builtin_return_address(0)));
}
void commit_async_copies() {
  running_thread.runner->async_copies().commit();
}
void wait_async_copies(unsigned newest) {
  running_thread.runner->async_copies().wait(newest);
}

void sync_block(const char* file, int line) {
  running_thread.runner->sync_block(0, file, line);
}
int sync_block_count(int predicate, const char* file, int line) {
  return running_thread.runner->sync_block(predicate, file, line);
}
void warp_collective(Collective& mine, const char* file, int line) {
  (void)warp_exchange(WarpOperation::collective, 0xffffffffU,
                      reinterpret_cast<std::uintptr_t>(&mine), 0, file, line);
}
std::uint64_t warp_exchange(WarpOperation operation, unsigned mask, std::uint64_t value,
                            unsigned source, const char* file, int line) {
  return running_thread.runner->warp_exchange(operation, mask, value, source, file, line);
}

}  // namespace attest::simt
