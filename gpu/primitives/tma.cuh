#pragma once

#ifdef __CUDACC__
#include <cuda.h>
#endif

#include <cstdint>

#include "gpu/primitives/mbarrier.cuh"
#include "gpu/primitives/shared_address.cuh"

namespace attest {

// The tensor memory accelerator: copies of boxes between a tensor of rank 4, described by a
// TensorMap (tensor_map.cuh), and shared memory [PTX ISA, cp.async.bulk.tensor]. One
// thread asks for a whole box. Elements outside the tensor arrive as 0 and are not stored. A map is
// a `const __grid_constant__` parameter of the kernel.

/// Element (column, row, head, entry) of the tensor is the first of the box.
struct BoxStart {
  int column = 0, row = 0, head = 0, entry = 0;
};

#ifdef __CUDACC__
using TensorMap = CUtensorMap;
#endif

/// Hint to the L2 cache about the lines.
enum class L2Hint : unsigned long long {
  evict_first = 0x12F0000000000000,  ///< read once
  evict_last = 0x14F0000000000000    ///< read by many blocks
};

__device__ __forceinline__ void prefetch_map(const TensorMap& map) {
#ifdef __CUDACC__
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
#else
  (void)map;
#endif
}

/// Starts the copy of a box to `target`; its bytes, those outside the tensor included, complete on
/// `barrier`. `target` is aligned to 128 bytes, to 1024 with the 128-byte swizzle.
__device__ __forceinline__ void load_box(SharedAddress target, const TensorMap& map,
                                         const BoxStart& at, Mbarrier barrier, L2Hint hint) {
#ifdef __CUDACC__
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(target.value()),
      "l"(&map), "r"(barrier.address()), "r"(at.column), "r"(at.row), "r"(at.head), "r"(at.entry),
      "l"(static_cast<unsigned long long>(hint))
      : "memory");
#else
  const int start[4] = {at.column, at.row, at.head, at.entry};
  (void)hint;
  simt::load_box(target.value(), map, start, barrier.address());
#endif
}

/// Asks for a box to come into the L2 cache.
__device__ __forceinline__ void prefetch_box(const TensorMap& map, const BoxStart& at) {
#ifdef __CUDACC__
  asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global [%0, {%1, %2, %3, %4}];" ::"l"(&map),
               "r"(at.column), "r"(at.row), "r"(at.head), "r"(at.entry)
               : "memory");
#else
  (void)map, (void)at;  // no cache is modelled there
#endif
}

#ifdef __CUDACC__
/// Loads a box as load_box() does, to the same place of every block of the cluster whose bit is set
/// in `blocks`; the bytes complete on each one's own barrier.
__device__ __forceinline__ void load_box_to(unsigned short blocks, SharedAddress target,
                                            const TensorMap& map, const BoxStart& at,
                                            Mbarrier barrier, L2Hint hint) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster.L2::cache_hint [%0], [%1, {%3, %4, %5, %6}], [%2], %7, %8;" ::"r"(
          target.value()),
      "l"(&map), "r"(barrier.address()), "r"(at.column), "r"(at.row), "r"(at.head), "r"(at.entry),
      "h"(blocks), "l"(static_cast<unsigned long long>(hint))
      : "memory");
}
#endif

/// Starts the copy of a box from `source`, which this thread or, before a barrier, others wrote and
/// made visible (fence_async_shared()). Two things that an H200 does otherwise than with loads: no
/// coordinate may be negative (an illegal instruction), and columns are clipped in units of 16
/// bytes, so a tensor whose rows are no multiple of that gets the box's elements up to the next
/// one.
__device__ __forceinline__ void store_box(const TensorMap& map, const BoxStart& at,
                                          SharedAddress source) {
#ifdef __CUDACC__
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(
          &map),
      "r"(source.value()), "r"(at.column), "r"(at.row), "r"(at.head), "r"(at.entry)
      : "memory");
#else
  const int start[4] = {at.column, at.row, at.head, at.entry};
  simt::store_box(map, start, source.value());
#endif
}
/// Starts the copy of `bytes` bytes that lie side by side; addresses and size are multiples of 16.
__device__ __forceinline__ void load_bytes(SharedAddress target, const void* source, int bytes,
                                           Mbarrier barrier) {
#ifdef __CUDACC__
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(target.value()),
      "l"(source), "r"(bytes), "r"(barrier.address())
      : "memory");
#else
  simt::load_bytes(target.value(), source, static_cast<unsigned>(bytes), barrier.address());
#endif
}

/// Starts to add the fp32 numbers in `bytes` bytes from `source` on to those from `target` on. Each
/// sum is formed in one step, in the order in which blocks come; results below 2^-126 become 0.
__device__ __forceinline__ void add_bytes(float* target, SharedAddress source, int bytes) {
#ifdef __CUDACC__
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.add.f32 [%0], [%1], %2, "
      "%3;" ::"l"(target),
      "r"(source.value()), "r"(bytes), "l"(static_cast<unsigned long long>(L2Hint::evict_last))
      : "memory");
#else
  simt::add_bytes(target, source.value(), static_cast<unsigned>(bytes));
#endif
}

/// Adds 32-bit integers, modulo 2^32, otherwise as above: their sums do not depend on the order.
__device__ __forceinline__ void add_bytes(std::int32_t* target, SharedAddress source, int bytes) {
#ifdef __CUDACC__
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.add.s32 [%0], [%1], %2, "
      "%3;" ::"l"(target),
      "r"(source.value()), "r"(bytes), "l"(static_cast<unsigned long long>(L2Hint::evict_last))
      : "memory");
#else
  simt::add_bytes(target, source.value(), static_cast<unsigned>(bytes));
#endif
}

/// Ends a group of this thread's stores and sums.
__device__ __forceinline__ void commit_stores() {
#ifdef __CUDACC__
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#else
  simt::commit_bulk();  // boxes are stored when they are asked for
#endif
}
/// Waits until all groups of this thread's stores and sums but the `newest` last ones have read
/// their shared memory.
template <int newest = 0>
__device__ __forceinline__ void wait_until_stores_have_read() {
#ifdef __CUDACC__
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(newest) : "memory");
#else
  simt::wait_for_bulk(true, newest);
#endif
}
/// Waits until they are in memory, where others may read them.
__device__ __forceinline__ void wait_until_stores_are_done() {
#ifdef __CUDACC__
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#else
  simt::wait_for_bulk(false, 0);
#endif
}

}  // namespace attest
