#include "gpu/primitives/dependent_launch.cuh"
#include "gpu/primitives/launch.cuh"
#include "gpu/simt/test_kernels.hpp"

namespace attest {

/// Outside the namespace without a name, in which a compiler notes no names of copy constructors.
struct NumberByValue {
  float x;
};

namespace {

// Comments of the form `mark: name` are how the test finds the lines that a finding must name.

__device__ int id() {
  return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}
__device__ int thread() {
  return static_cast<int>(threadIdx.x);
}
__device__ int size() {
  return static_cast<int>(blockDim.x);
}

__global__ void write_then_read(float* values, unsigned*, bool planted) {
  float* tile = dynamic_shared<float>();
  tile[thread()] = 0.0F;
  __syncthreads();
  tile[thread()] = 1.0F;  // mark: write_then_read_writes
  if (!planted) __syncthreads();
  values[id()] = tile[(thread() + 1) % size()];  // mark: write_then_read_reads
}

__global__ void read_then_write(float* values, unsigned*, bool planted) {
  float* tile = dynamic_shared<float>();
  tile[thread()] = 1.0F;
  __syncthreads();
  values[id()] = tile[(thread() + 1) % size()];  // mark: read_then_write_reads
  if (!planted) __syncthreads();
  tile[thread()] = 2.0F;  // mark: read_then_write_writes
}

/// All threads read the word that thread 0 then writes.
__global__ void broadcast_then_write(float* values, unsigned*, bool planted) {
  float* tile = dynamic_shared<float>();
  if (thread() == 0) tile[0] = 1.0F;
  __syncthreads();
  values[id()] = tile[0];
  if (!planted) __syncthreads();
  if (thread() == 0) tile[0] = 2.0F;
}

// A store of what a call returns, and a load of what a call is given, where no call is inlined.
[[gnu::noinline]] __device__ NumberByValue number(float x) {
  return {x};
}
[[gnu::noinline]] __device__ float twice(NumberByValue number) {
  return 2 * number.x;
}

__global__ void struct_of_a_call(float* values, unsigned*, bool planted) {
  NumberByValue* tile = dynamic_shared<NumberByValue>();
  tile[thread()].x = 0.0F;
  __syncthreads();
  tile[thread()] = number(1.0F);  // mark: struct_of_a_call_writes
  if (!planted) __syncthreads();
  values[id()] = tile[(thread() + 1) % size()].x;
}

__global__ void struct_for_a_call(float* values, unsigned*, bool planted) {
  NumberByValue* tile = dynamic_shared<NumberByValue>();
  tile[thread()].x = 1.0F;
  __syncthreads();
  values[id()] = twice(tile[(thread() + 1) % size()]);  // mark: struct_for_a_call_reads
  if (!planted) __syncthreads();
  tile[thread()].x = 2.0F;
}

__global__ void two_writers(float* values, unsigned*, bool planted) {
  float* tile = dynamic_shared<float>();
  tile[planted ? thread() / 2 : thread()] = 1.0F;  // mark: two_writers
  __syncthreads();
  values[id()] = tile[0];
}

__global__ void neighbour_lanes(float* values, unsigned*, bool planted) {
  float* tile = dynamic_shared<float>();
  tile[thread()] = 0.0F;
  __syncthreads();
  tile[thread()] = 1.0F;
  // A shuffle meets, but orders no memory.
  const float other = __shfl_xor_sync(0xffffffffU, 1.0F, 1);
  if (!planted) __syncwarp();
  values[id()] = other + tile[thread() ^ 1];  // mark: neighbour_lanes
}

/// Two lanes read what one of them then changes; the shuffle between makes both reads come first.
template <bool after_barrier>  // which decides whether the hook or the full check handles the reads
__global__ void lane_overwrites(float* values, unsigned*, bool planted) {
  float* tile = dynamic_shared<float>();
  if (thread() == 0) tile[0] = 1.0F;
  if (after_barrier)
    __syncthreads();
  else
    __syncwarp();
  const float read = tile[0];
  values[id()] = __shfl_xor_sync(0xffffffffU, read, 1);
  if (!planted) __syncwarp();
  if (thread() == 0) tile[0] = 2.0F;  // mark: lane_overwrites
}

__global__ void static_tile(float* values, unsigned*, bool planted) {
  __shared__ float tile[1024];
  tile[thread()] = 0.0F;
  __syncthreads();
  tile[thread()] = 1.0F;
  if (!planted) __syncthreads();
  values[id()] = tile[(thread() + 1) % size()];  // mark: static_tile
}

__global__ void static_never_written(float* values, unsigned*, bool planted) {
  __shared__ float tile[1024];
  if (!planted) tile[thread()] = 1.0F;
  values[id()] = tile[thread()];  // mark: static_never_written
}

__global__ void blocks_meet(float* values, unsigned*, bool planted) {
  if (thread() == 0) values[planted ? 0 : blockIdx.x] = 1.0F;  // mark: blocks_meet
}

/// Every block reads what block 0 changes; all of them write somewhere.
__global__ void blocks_read_and_write(float* values, unsigned*, bool planted) {
  const float read = values[planted ? 0 : id()];
  if (blockIdx.x == 0 || !planted) values[id()] = read + 1.0F;
}

__global__ void past_the_end(float* values, unsigned*, bool planted) {
  const int count = 2 * size() * static_cast<int>(gridDim.x);
  float sum = 0.0F;
  for (int i = thread(); i < count + (planted ? 1 : 0); i += size())
    sum += values[i];  // mark: past_the_end
  if (sum < 0.0F) values[id()] = sum;
}

__global__ void write_before_start(float* values, unsigned*, bool planted) {
  if (id() == 0) values[planted ? -1 : 0] = 1.0F;  // mark: write_before_start
}

__global__ void past_shared(float* values, unsigned*, bool planted) {
  float* tile = dynamic_shared<float>();
  tile[thread() + (planted ? 1 : 0)] = 1.0F;  // mark: past_shared
  __syncthreads();
  if (thread() > 0) values[id()] = tile[thread()];
}

__global__ void never_written(float* values, unsigned*, bool planted) {
  float* tile = dynamic_shared<float>();
  if (!planted || thread() + 1 != size()) tile[thread()] = 1.0F;
  __syncthreads();
  values[id()] = tile[(thread() + 1) % size()];  // mark: never_written
}

/// Only the first block writes shared memory: another block's copy is not its own.
__global__ void other_blocks_tile(float* values, unsigned*, bool planted) {
  float* tile = dynamic_shared<float>();
  if (!planted || blockIdx.x == 0) tile[thread()] = 1.0F;
  values[id()] = tile[thread()];  // mark: other_blocks_tile
}

__global__ void plain_sum(float*, unsigned* counter, bool planted) {
  if (planted)
    *counter += 1;  // mark: plain_sum
  else
    atomicAdd(counter, 1U);
}

/// Blocks leave partial results; the one that comes last adds them up.
__global__ void last_block_adds(float* values, unsigned* counter, bool planted) {
  bool* is_last = dynamic_shared<bool>();
  values[id()] = 1.0F;
  if (!planted) __threadfence();
  __syncthreads();
  if (thread() == 0) *is_last = atomicAdd(counter, 1U) + 1 == gridDim.x;
  __syncthreads();
  if (!*is_last) return;
  float sum = 0.0F;
  for (int b = 0; b < static_cast<int>(gridDim.x); ++b)
    sum += values[b * size() + thread()];  // mark: last_block_adds
  values[size() * static_cast<int>(gridDim.x) + thread()] = sum;
}

__global__ void half_a_barrier(float* values, unsigned*, bool planted) {
  if (!planted || thread() < size() / 2) __syncthreads();  // mark: half_a_barrier
  values[id()] = 1.0F;
}

__global__ void two_barriers(float* values, unsigned*, bool planted) {
  if (planted && thread() % 2 == 1)
    __syncthreads();  // mark: two_barriers_odd
  else
    __syncthreads();  // mark: two_barriers_even
  values[id()] = 1.0F;
}

__global__ void early_exit(float* values, unsigned*, bool planted) {
  if (planted && thread() + 1 == size()) return;
  values[id()] = 1.0F;
  __syncthreads();  // mark: early_exit
}

__global__ void missing_lane(float* values, unsigned*, bool planted) {
  float x = 1.0F;
  if (!planted || thread() % 32 != 5)
    x = __shfl_down_sync(0xffffffffU, x, 1);  // mark: missing_lane
  __syncthreads();
  values[id()] = x;
}

__global__ void misaligned(float* values, unsigned*, bool planted) {
  if (id() == 0) *reinterpret_cast<long long*>(values + (planted ? 1 : 0)) = 0;  // mark: misaligned
}

__global__ void misaligned_vector(float* values, unsigned*, bool planted) {
  if (id() != 0) return;
  const float* const from = values + (planted ? 2 : 0);
  const float4 four = *reinterpret_cast<const float4*>(from);  // mark: misaligned_vector
  values[0] = four.x + four.w;
}

__global__ void write_all(float* values) {
  values[id()] = 1.0F;
}

/// Reads what the launch before wrote.
__global__ void before_the_wait(float* values, unsigned*, bool planted) {
  if (!planted || id() % 2 == 0) wait_for_predecessor();
  values[id() + static_cast<int>(gridDim.x) * size()] = values[id()];  // mark: before_the_wait
}

/// Writes over what the launch before read.
__global__ void over_what_is_read(float* values, unsigned*, bool planted) {
  if (!planted) wait_for_predecessor();
  values[id()] = 2.0F;  // mark: over_what_is_read
}

/// The kernel, launched so that it may begin before another one has ended.
template <void (*kernel)(float*, unsigned*, bool)>
void run_behind(Device& device, float* values, unsigned* counter, bool planted, int blocks,
                int threads) {
  const dim3 grid(static_cast<unsigned>(blocks)), block(static_cast<unsigned>(threads));
  launch(write_all, grid, block, 0, device, values);
  launch_dependent(kernel, grid, block, 0, device, values, counter, planted);
}

template <void (*kernel)(float*, unsigned*, bool)>
void run(Device& device, float* values, unsigned* counter, bool planted, int blocks, int threads) {
  launch(kernel, dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)),
         static_cast<std::size_t>(threads) * sizeof(float), device, values, counter, planted);
}

__global__ void halves(unsigned short* values, bool overlap) {
  const unsigned t = threadIdx.x;
  values[overlap ? t & ~1U : t] = 1;
}

__global__ void copy_half(unsigned short* values, int from, int to) {
  values[to] = values[from];
}

__global__ void copy_float(float* to, const float* from) {
  if (threadIdx.x == 33) *to = *from;  // mark: copy_float
  __syncthreads();
}

__global__ void divide(int* values, int by) {
  values[0] = values[1] / by;  // mark: divide
}

}  // namespace

const std::vector<DetectionCase>& detection_cases() {
  static const char* const race = "data race";
  static const char* const unwritten = "uninitialised read";
  static const char* const outside = "out of bounds";
  static const char* const barrier = "divergent barrier";
  static const std::vector<DetectionCase> cases = {
      {"write_then_read", race, {}, 2, 65, run<write_then_read>},
      {"read_then_write", race, {}, 2, 65, run<read_then_write>},
      {"broadcast_then_write", race, {}, 1, 128, run<broadcast_then_write>},
      {"broadcast_in_a_warp", race, {}, 1, 32, run<broadcast_then_write>},
      {"struct_of_a_call", race, {"struct_of_a_call_writes"}, 2, 65, run<struct_of_a_call>},
      {"struct_for_a_call", race, {"struct_for_a_call_reads"}, 2, 65, run<struct_for_a_call>},
      {"two_writers", race, {"two_writers"}, 1, 64, run<two_writers>},
      {"neighbour_lanes", race, {}, 1, 64, run<neighbour_lanes>},
      {"lane_overwrites_after_barrier",
       race,
       {"lane_overwrites"},
       1,
       2,
       run<lane_overwrites<true>>},
      {"lane_overwrites_after_syncwarp",
       race,
       {"lane_overwrites"},
       1,
       2,
       run<lane_overwrites<false>>},
      {"static_tile", race, {}, 1, 65, run<static_tile>},
      {"static_never_written",
       unwritten,
       {"static_never_written"},
       2,
       33,
       run<static_never_written>},
      {"blocks_meet", race, {"blocks_meet"}, 5, 32, run<blocks_meet>},
      {"blocks_read_and_write", race, {}, 4, 33, run<blocks_read_and_write>},
      {"past_the_end", outside, {"past_the_end"}, 2, 33, run<past_the_end>},
      {"write_before_start", outside, {"write_before_start"}, 2, 33, run<write_before_start>},
      {"past_shared", outside, {"past_shared"}, 2, 33, run<past_shared>},
      {"never_written", unwritten, {"never_written"}, 2, 33, run<never_written>},
      {"other_blocks_tile", unwritten, {"other_blocks_tile"}, 4, 33, run<other_blocks_tile>},
      {"plain_sum", race, {"plain_sum"}, 1, 64, run<plain_sum>},
      {"plain_sum_of_blocks", race, {"plain_sum"}, 3, 1, run<plain_sum>},
      {"last_block_adds", race, {"last_block_adds"}, 5, 33, run<last_block_adds>},
      {"before_the_wait", race, {"before_the_wait"}, 2, 33, run_behind<before_the_wait>},
      {"over_what_is_read", race, {"over_what_is_read"}, 2, 33, run_behind<over_what_is_read>},
      {"half_a_barrier", barrier, {"half_a_barrier"}, 2, 64, run<half_a_barrier>},
      {"two_barriers",
       barrier,
       {"two_barriers_odd", "two_barriers_even"},
       2,
       64,
       run<two_barriers>},
      {"early_exit", barrier, {"early_exit"}, 2, 33, run<early_exit>},
      {"missing_lane", barrier, {"missing_lane"}, 2, 64, run<missing_lane>},
      {"misaligned", "misaligned access", {"misaligned"}, 1, 32, run<misaligned>},
      {"misaligned_vector",
       "misaligned access",
       {"misaligned_vector"},
       1,
       32,
       run<misaligned_vector>},
  };
  return cases;
}

void launch_halves(Device& device, unsigned short* values, int words, bool overlap) {
  launch(halves, dim3(1), dim3(static_cast<unsigned>(2 * words)), 0, device, values, overlap);
}
void launch_copy_half(Device& device, unsigned short* values, int from, int to) {
  launch(copy_half, dim3(1), dim3(1), 0, device, values, from, to);
}

void launch_copy_float(Device& device, float* to, const float* from) {
  launch(copy_float, dim3(3), dim3(64), 0, device, to, from);
}

void launch_divide(Device& device, int* values, int by) {
  launch(divide, dim3(1), dim3(1), 0, device, values, by);
}

}  // namespace attest
