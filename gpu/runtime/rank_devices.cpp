#include "gpu/runtime/rank_devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "gpu/runtime/cuda_device.hpp"
#include "gpu/runtime/pitched_copy.hpp"

namespace attest {
inline namespace on_gpu {

struct RankDevices::Member {
  explicit Member(int gpu) : device(gpu) {}

  CudaDevice device;  ///< its GPU is the current one from then on
  Stream copies;
  std::vector<cudaEvent_t> events;  ///< of its GPU, of which the first `marks` are marks
  std::size_t marks = 0;

  [[nodiscard]] cudaStream_t stream(Queue queue) const {
    return queue == Queue::copies ? copies.get() : device.stream().get();
  }
};

namespace {

/// Lets kernels and copies of the current GPU reach the memory of another one. Asked for once in a
/// process: compute-sanitizer counts a second time as an error.
void enable_access(int gpu, int other) {
  static std::mutex mutex;
  static std::set<std::pair<int, int>> enabled;
  const std::lock_guard lock(mutex);
  if (enabled.contains({gpu, other})) return;
  int can_access = 0;
  ATTEST_CUDA_CHECK(cudaDeviceCanAccessPeer(&can_access, gpu, other));
  if (can_access == 0) {
    throw MachineError(fmt::format(
        "GPU {} has no access to the memory of GPU {}; ranks need it, by NVLink or PCIe", gpu,
        other));
  }
  const cudaError_t code = cudaDeviceEnablePeerAccess(other, 0);
  if (code == cudaErrorPeerAccessAlreadyEnabled) {
    (void)cudaGetLastError();
  } else {
    ATTEST_CUDA_CHECK(code);
  }
  enabled.insert({gpu, other});
}

}  // namespace

std::int64_t RankDevices::gpus() {
  int count = 0;
  ATTEST_CUDA_CHECK(cudaGetDeviceCount(&count));
  return count;
}

RankDevices::RankDevices(std::int64_t ranks, Device& device) {
  ATTEST_CUDA_CHECK(cudaGetDevice(&callers_gpu_));
  const int gpus = static_cast<int>(RankDevices::gpus());
  device.synchronize();
  const auto gpu_of = [&](std::int64_t rank) {
    return (callers_gpu_ + static_cast<int>(rank % gpus)) % gpus;
  };
  const int used = static_cast<int>(std::min<std::int64_t>(ranks, gpus));
  for (int i = 0; i < used; ++i) {
    ATTEST_CUDA_CHECK(cudaSetDevice(gpu_of(i)));
    for (int j = 0; j < used; ++j) {
      if (i != j) enable_access(gpu_of(i), gpu_of(j));
    }
  }
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    members_.push_back(std::make_unique<Member>(gpu_of(rank)));
  }
  ATTEST_CUDA_CHECK(cudaSetDevice(callers_gpu_));
}

RankDevices::~RankDevices() {
  for (const auto& member : members_) {
    for (const cudaStream_t queue :
         {member->stream(Queue::launches), member->stream(Queue::copies)}) {
      log_cuda_failure(cudaStreamSynchronize(queue), "cudaStreamSynchronize");
    }
    for (const cudaEvent_t event : member->events) {
      log_cuda_failure(cudaEventDestroy(event), "cudaEventDestroy");
    }
  }
  log_cuda_failure(cudaSetDevice(callers_gpu_), "cudaSetDevice");
}

RankDevices::Member& RankDevices::select(std::int64_t rank) {
  Member& member = *members_.at(static_cast<std::size_t>(rank));
  ATTEST_CUDA_CHECK(cudaSetDevice(member.device.ordinal()));
  return member;
}

Device& RankDevices::of(std::int64_t rank) {
  return select(rank).device;
}

void RankDevices::poison(std::int64_t rank, std::byte* memory, std::size_t bytes) {
  constexpr int all_bits = 0xff;
  ATTEST_CUDA_CHECK(cudaMemsetAsync(memory, all_bits, bytes, select(rank).stream(Queue::launches)));
}

void RankDevices::copy(std::int64_t rank, std::byte* to, std::size_t to_pitch,
                       const std::byte* from, std::size_t from_pitch, std::size_t bytes,
                       std::size_t rows) {
  copy_pitched(select(rank).stream(Queue::copies), to, to_pitch, from, from_pitch, bytes, rows);
}

RankDevices::Mark RankDevices::mark(std::int64_t rank, Queue queue) {
  Member& member = select(rank);
  if (member.marks == member.events.size()) {
    member.events.push_back(nullptr);
    ATTEST_CUDA_CHECK(cudaEventCreateWithFlags(&member.events.back(), cudaEventDisableTiming));
  }
  ATTEST_CUDA_CHECK(cudaEventRecord(member.events[member.marks], member.stream(queue)));
  return {rank, member.marks++};
}

void RankDevices::wait(std::int64_t rank, Queue queue, Mark mark) {
  const cudaEvent_t event =
      members_.at(static_cast<std::size_t>(mark.rank))->events.at(mark.number);
  ATTEST_CUDA_CHECK(cudaStreamWaitEvent(select(rank).stream(queue), event, 0));
}

void RankDevices::synchronize() {
  for (const auto& member : members_) {
    member->device.synchronize();
    member->copies.synchronize();
    member->marks = 0;
  }
}

double RankDevices::slowest_ms(const std::function<void()>& work) {
  struct Times {
    Event begin, end;
  };
  synchronize();
  std::vector<Times> times;
  const Mark barrier = mark(0, Queue::launches);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const auto rank = static_cast<std::int64_t>(i);
    wait(rank, Queue::launches, barrier);
    times.emplace_back();
    times[i].begin.record(members_[i]->device.stream());
  }
  work();
  double slowest = 0;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    times[i].end.record(select(static_cast<std::int64_t>(i)).device.stream());
  }
  synchronize();
  for (const Times& one : times) slowest = std::max(slowest, one.end.ms_since(one.begin));
  return slowest;
}

}  // namespace on_gpu
}  // namespace attest
