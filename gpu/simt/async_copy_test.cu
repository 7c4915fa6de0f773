#include "gpu/primitives/async_copy.cuh"
#include "gpu/primitives/copy_arrival.cuh"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

__device__ int thread() {
  return static_cast<int>(threadIdx.x);
}
__device__ int id() {
  return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}
__device__ int neighbour() {
  return (thread() + 1) % static_cast<int>(blockDim.x);
}

__global__ void reads_before_wait(float* values, unsigned*, bool planted) {
  float* tile = dynamic_shared<float>();
  AsyncCopies::copy<4>(tile + thread(), values + id());
  AsyncCopies::commit();
  if (!planted) AsyncCopies::wait<0>();
  values[id()] = tile[thread()];
}

/// Waits for groups, but the copy is in none.
__global__ void never_commits(float* values, unsigned*, bool planted) {
  float* tile = dynamic_shared<float>();
  AsyncCopies::copy<4>(tile + thread(), values + id());
  if (!planted) AsyncCopies::commit();
  AsyncCopies::wait<0>();
  values[id()] = tile[thread()];
}

/// Two groups; the newer one is read while it may fly.
__global__ void lets_the_newest_fly(float* values, unsigned*, bool planted) {
  float* tile = dynamic_shared<float>();
  const int half = static_cast<int>(blockDim.x) / 2;
  if (thread() >= half) return;
  AsyncCopies::copy<4>(tile + thread(), values + id());
  AsyncCopies::commit();
  AsyncCopies::copy<4>(tile + half + thread(), values + id());
  AsyncCopies::commit();
  AsyncCopies::wait<1>();
  values[id()] = tile[thread()];
  if (!planted) AsyncCopies::wait<0>();
  values[id()] = tile[half + thread()];
}

/// A thread's wait says nothing about the copies of others.
__global__ void reads_anothers_copy(float* values, unsigned*, bool planted) {
  float* tile = dynamic_shared<float>();
  AsyncCopies::copy<4>(tile + thread(), values + id());
  AsyncCopies::commit();
  AsyncCopies::wait<0>();
  __syncthreads();
  values[id()] = tile[neighbour()];
  __syncthreads();
  AsyncCopies::copy<4>(tile + thread(), values + id());
  AsyncCopies::commit();
  AsyncCopies::wait<0>();
  if (!planted) __syncthreads();
  values[id()] = tile[neighbour()];
}

/// The next tile is sent for while others still read this one.
__global__ void overwrites_what_others_read(float* values, unsigned*, bool planted) {
  float* tile = dynamic_shared<float>();
  tile[thread()] = 1.0F;
  __syncthreads();
  const float read = tile[neighbour()];
  if (!planted) __syncthreads();
  AsyncCopies::copy<4>(tile + thread(), values + id());
  AsyncCopies::commit();
  __syncthreads();
  AsyncCopies::wait<0>();
  values[id()] = read;
}

/// Begins with a barrier at which every thread of the block arrives once a phase, behind a tile of
/// a number a thread.
__device__ Mbarrier barrier_of_all() {
  const Mbarrier all(dynamic_shared<float>() + blockDim.x);
  if (thread() == 0) {
    all.init(blockDim.x);
    fence_barrier_init();
  }
  __syncthreads();
  return all;
}

/// Arrives behind its copy; its neighbour reads without having waited.
__global__ void does_not_wait_for_arrivals(float* values, unsigned*, bool planted) {
  float* tile = dynamic_shared<float>();
  const Mbarrier all = barrier_of_all();
  for (unsigned phase = 0; phase < 3; ++phase) {
    AsyncCopies::copy<4>(tile + thread(), values + id());
    arrive_after_copies(all);
    if (!planted) all.wait(phase % 2);
    values[id()] = tile[neighbour()];
    __syncthreads();
  }
}

/// Arrives at once, and not behind its copy.
__global__ void arrives_before_its_copy(float* values, unsigned*, bool planted) {
  float* tile = dynamic_shared<float>();
  const Mbarrier all = barrier_of_all();
  AsyncCopies::copy<4>(tile + thread(), values + id());
  if (planted) {
    all.arrive();
  } else {
    arrive_after_copies(all);
  }
  all.wait(0);
  values[id()] = tile[neighbour()];
}

/// An arrival says nothing about a copy that was started after it.
__global__ void copies_after_it_arrives(float* values, unsigned*, bool planted) {
  float* tile = dynamic_shared<float>();
  const Mbarrier all = barrier_of_all();
  if (planted) arrive_after_copies(all);
  AsyncCopies::copy<4>(tile + thread(), values + id());
  if (!planted) arrive_after_copies(all);
  all.wait(0);
  values[id()] = tile[neighbour()];
}

__global__ void copies_past_the_end(float* values, unsigned*, bool planted) {
  float* tile = dynamic_shared<float>();
  const int count = 2 * static_cast<int>(blockDim.x * gridDim.x);
  const bool exists = planted || thread() > 0;
  AsyncCopies::copy_or_zero<4>(tile + thread(), values + (thread() == 0 ? count : id()), exists);
  AsyncCopies::commit();
  AsyncCopies::wait<0>();
  if (tile[thread()] < 0.0F) values[id()] = 0.0F;
}

__global__ void copies_from_an_odd_address(float* values, unsigned*, bool planted) {
  float* tile = dynamic_shared<float>();
  if (thread() == 0) AsyncCopies::copy<16>(tile, values + (planted ? 1 : 0));
  AsyncCopies::commit();
  AsyncCopies::wait<0>();
}

template <void (*kernel)(float*, unsigned*, bool)>
void run(Device& device, float* values, unsigned* counter, bool planted, int blocks, int threads) {
  launch(kernel, dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)),
         static_cast<std::size_t>(threads + 2) * sizeof(float), device, values, counter, planted);
}

template <typename T>
__global__ void through_a_tile(const T* from, int stride, int existing, int rows, int columns,
                               int pitch, T* to) {
  T* const tile = dynamic_shared<T>();
  // The rows that exist are the last ones of the view.
  const RowView<const T> view{from - stride, stride, existing + 1};
  load_tile_async(view, 1, rows, columns, tile, pitch);
  AsyncCopies::commit();
  AsyncCopies::wait<0>();
  __syncthreads();
  for (int i = thread(); i < rows * columns; i += static_cast<int>(blockDim.x))
    to[i] = tile[i / columns * pitch + i % columns];
}

template <typename T>
void launch_through_a_tile(Device& device, const T* from, int stride, int existing, int rows,
                           int columns, int pitch, T* to) {
  launch(through_a_tile<T>, dim3(1), dim3(33), static_cast<std::size_t>(rows * pitch) * sizeof(T),
         device, from, stride, existing, rows, columns, pitch, to);
}

}  // namespace

const std::vector<DetectionCase>& async_copy_cases() {
  static const char* const race = "data race";
  static const char* const unwritten = "uninitialised read";
  static const std::vector<DetectionCase> cases = {
      {"reads_before_wait", unwritten, {}, 2, 33, run<reads_before_wait>},
      {"never_commits", unwritten, {}, 2, 33, run<never_commits>},
      {"lets_the_newest_fly", unwritten, {}, 2, 64, run<lets_the_newest_fly>},
      {"reads_anothers_copy", race, {}, 1, 64, run<reads_anothers_copy>},
      {"overwrites_what_others_read", race, {}, 1, 64, run<overwrites_what_others_read>},
      {"does_not_wait_for_arrivals", race, {}, 1, 64, run<does_not_wait_for_arrivals>},
      {"arrives_before_its_copy", unwritten, {}, 1, 64, run<arrives_before_its_copy>},
      {"copies_after_it_arrives", unwritten, {}, 1, 64, run<copies_after_it_arrives>},
      {"copies_past_the_end", "out of bounds", {}, 2, 33, run<copies_past_the_end>},
      {"copies_from_an_odd_address",
       "misaligned access",
       {},
       1,
       32,
       run<copies_from_an_odd_address>},
  };
  return cases;
}

void launch_load_tile(Device& device, const float* from, int stride, int existing, int rows,
                      int columns, int pitch, float* to) {
  launch_through_a_tile(device, from, stride, existing, rows, columns, pitch, to);
}
void launch_load_tile(Device& device, const unsigned short* from, int stride, int existing,
                      int rows, int columns, int pitch, unsigned short* to) {
  launch_through_a_tile(device, from, stride, existing, rows, columns, pitch, to);
}

}  // namespace attest
