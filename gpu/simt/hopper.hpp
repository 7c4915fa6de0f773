#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/attention/element_type.hpp"
#include "gpu/simt/execution.hpp"
#include "gpu/simt/tensor_map.hpp"

// What kernels for sm_90 ask of the executor: barriers in shared memory, named barriers, copies of
// boxes, products of a warpgroup. On a GPU a copy or a product is done at some time between its
// start and the wait that guarantees it; here it is done at that wait (in half of the
// blocks copies are done at their start, the other extreme), and until then its target holds NaN,
// so that reading too early shows in the answer. Also found: threads that wait for each other for
// ever, wrong phases and byte counts, wrong addresses, races of ordinary accesses.
namespace attest::simt {

// Barriers that count arrivals and bytes [PTX ISA, mbarrier], by their address.
void init_mbarrier(void* barrier, unsigned arrivals);
void arrive_mbarrier(void* barrier, unsigned bytes);  ///< announces `bytes`, then arrives
void wait_mbarrier(void* barrier, unsigned parity, const char* file, int line);

/// Named barrier `id`: `threads` threads come, those that `wait` until all are there.
void meet_named_barrier(int id, unsigned threads, bool waits, const char* file, int line);

/// Copies of a box that begins at element (column, row, head, entry), as tma.cuh says.
void load_box(void* target, const TensorMap& map, const int (&at)[4], void* barrier);
void store_box(const TensorMap& map, const int (&at)[4], const void* source);

/// Copies `bytes` bytes that lie side by side [PTX ISA, cp.async.bulk].
void load_bytes(void* target, const void* source, unsigned bytes, void* barrier);

/// A copy that was asked for and has not arrived.
struct BulkCopy {
  void* target;
  std::size_t bytes;   ///< that complete on the barrier
  const void* source;  ///< of bytes side by side; null: a box
  BoxedTensor tensor;  ///< not the map, which may end with the thread that asked
  int at[4];
  const void* barrier;
  std::uint32_t point;      ///< in the program where it was asked for, as races are reported
  bool has_waited = false;  ///< for the launch before: who asked for it had
};
/// Lets a copy arrive.
void deliver(const BulkCopy& copy);

/// Adds `bytes` bytes of fp32 numbers in shared memory to those at `target` [PTX ISA,
/// cp.reduce.async.bulk, .add.f32]; results below 2^-126 become 0. On a GPU shared memory is read
/// at some time before wait_for_bulk(true) returns and the sums are there before
/// wait_for_bulk(false) does, or when the launch has ended; here either both at once, or at the
/// last moment. A block that ends before its shared memory was read adds NaN.
void add_bytes(float* target, const void* source, unsigned bytes);
/// Adds 32-bit integers, modulo 2^32, otherwise as above [.add.s32].
void add_bytes(std::int32_t* target, const void* source, unsigned bytes);
/// Makes a group of the sums that the thread asked for since it made the last one.
void commit_bulk();
/// Waits for all groups of the thread but the `newest` last ones: until they have read shared
/// memory, or until they are done.
void wait_for_bulk(bool until_read, unsigned newest);

/// Sums that were asked for and are not there.
struct BulkSum {
  std::uint32_t* target;
  const void* source;
  std::vector<std::uint32_t> terms;  ///< once they have been read
  std::size_t count;
  unsigned thread;
  unsigned group;  ///< of the thread's, from 1 on; 0: none yet
  bool of_integers, is_read;
  std::uint32_t point;
};
/// Reads the terms of a sum; add_terms() adds them.
void read_terms(BulkSum& sum);
void add_terms(const BulkSum& sum);

/// An operand in shared memory: what a matrix descriptor says on the GPU, with an address.
struct MatrixDescriptor {
  const void* address = nullptr;
  unsigned leading_bytes = 0;  ///< to the next 64 columns, where the sum runs over the rows

  /// `units` of 16 bytes further on.
  MatrixDescriptor operator+(std::uint64_t units) const {
    return {static_cast<const char*>(address) + 16 * units, leading_bytes};
  }
};

/// wgmma: d [64, n] (+)= A [64, 16] B [16, n], by all 128 threads of a warpgroup. `a_registers`:
/// this thread's four, or null where A lies in shared memory. Majors: true where contiguous along M
/// or N.
struct GroupProduct {
  ElementType type;
  float* d;
  int n;
  const std::uint32_t* a_registers;
  MatrixDescriptor a, b;
  bool is_a_mn, is_b_mn, adds;
};
void multiply_group(const GroupProduct& mine, const char* file, int line);
/// Makes a group of the products that the thread issued since it made the last one.
void commit_products();
/// Products of all groups of the thread but the `newest` last ones arrive in their d.
void wait_for_products(unsigned newest);

}  // namespace attest::simt
