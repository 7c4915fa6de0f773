#include "gpu/runtime/process_devices.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <vector>

#include "gpu/runtime/cuda_device.hpp"
#include "gpu/runtime/device_buffer.hpp"
#include "gpu/runtime/pitched_copy.hpp"
#include "gpu/runtime/stream.hpp"
#include "gpu/runtime/stream_values.hpp"

namespace attest {
inline namespace on_gpu {
namespace {

/// Place, among the counts of what others announce to a rank, of one queue's.
std::uint32_t* count_of(std::uint32_t* counts, std::int64_t announcer,
                        ProcessDevices::Queue queue) {
  return counts + 2 * announcer + (queue == ProcessDevices::Queue::copies ? 1 : 0);
}

}  // namespace

struct ProcessDevices::Queues {
  // More than a ring of most_ring_parts ranks makes.
  static constexpr std::uint32_t kept_marks = 512;

  Queues(std::int64_t ranks, CudaDevice& device)
      : launches(device.stream()),
        announced(2 * static_cast<std::size_t>(ranks)),
        counts(ipc_page_bytes / sizeof(std::uint32_t)),
        others(static_cast<std::size_t>(ranks)) {
    for (std::uint32_t i = 0; i < kept_marks; ++i) {
      events.push_back(nullptr);
      ATTEST_CUDA_CHECK(cudaEventCreateWithFlags(&events.back(), cudaEventDisableTiming));
    }
  }
  Queues(const Queues&) = delete;
  Queues& operator=(const Queues&) = delete;
  /// Waits for all work.
  ~Queues() {
    log_cuda_failure(cudaStreamSynchronize(launches.get()), "cudaStreamSynchronize");
    log_cuda_failure(cudaStreamSynchronize(copies.get()), "cudaStreamSynchronize");
    for (const cudaEvent_t event : events) {
      log_cuda_failure(cudaEventDestroy(event), "cudaEventDestroy");
    }
  }
  [[nodiscard]] cudaStream_t stream(Queue queue) const {
    return queue == Queue::copies ? copies.get() : launches.get();
  }

  const Stream& launches;
  Stream copies;
  std::vector<cudaEvent_t> events;
  std::uint32_t marks = 0;               ///< of this process's rank
  std::vector<std::uint32_t> announced;  ///< of every rank, as count_of() says
  DeviceBuffer<std::uint32_t> counts;    ///< that the others write
  std::vector<std::uint32_t*> others;    ///< counts of every rank; null: this process's
  std::vector<OpenedMemory> opened;
};

ProcessDevices::ProcessDevices(std::int64_t ranks, RankPlace& place)
    : ranks_(ranks), place_(place), queues_(std::make_unique<Queues>(ranks, place.device)) {
  const cudaStream_t launches = queues_->stream(Queue::launches);
  std::uint32_t* const counts = queues_->counts.data();
  // A GPU without these operations says so here, and not in the midst of a ring.
  place_.channel.at("it tried memory operations of streams");
  std::uint32_t* const own = count_of(counts, place_.channel.rank(), Queue::launches);
  ATTEST_CUDA_CHECK(cudaMemsetAsync(counts, 0, ipc_page_bytes, launches));
  write_value(launches, own, 1);
  wait_for_value(launches, own, 1);
  ATTEST_CUDA_CHECK(cudaStreamSynchronize(launches));
  place_.channel.at("it opened the counts of the other ranks");
  for (std::int64_t rank = 0; rank < ranks_; ++rank) {
    std::byte* const there = shared(rank, reinterpret_cast<std::byte*>(counts));
    if (has(rank)) continue;
    queues_->others[static_cast<std::size_t>(rank)] = reinterpret_cast<std::uint32_t*>(there);
  }
}

ProcessDevices::~ProcessDevices() = default;

Device& ProcessDevices::of(std::int64_t /*own*/) {
  return place_.device;
}

void ProcessDevices::poison(std::int64_t rank, std::byte* memory, std::size_t bytes) {
  if (!has(rank)) return;
  constexpr int all_bits = 0xff;
  ATTEST_CUDA_CHECK(cudaMemsetAsync(memory, all_bits, bytes, queues_->stream(Queue::launches)));
}

void ProcessDevices::copy(std::int64_t rank, std::byte* to, std::size_t to_pitch,
                          const std::byte* from, std::size_t from_pitch, std::size_t bytes,
                          std::size_t rows) {
  if (!has(rank)) return;
  copy_pitched(queues_->stream(Queue::copies), to, to_pitch, from, from_pitch, bytes, rows);
}

ProcessDevices::Mark ProcessDevices::mark(std::int64_t rank, Queue queue) {
  if (!has(rank)) return {rank, queue, 0};
  Queues& q = *queues_;
  ++q.marks;
  ATTEST_CUDA_CHECK(cudaEventRecord(q.events[q.marks % Queues::kept_marks], q.stream(queue)));
  return {rank, queue, q.marks};
}

template <typename Reads>
ProcessDevices::Mark ProcessDevices::announce_if(std::int64_t rank, Queue queue,
                                                 const Reads& reads) {
  Queues& q = *queues_;
  const std::uint32_t count = ++*count_of(q.announced.data(), rank, queue);
  if (!has(rank)) return {rank, queue, count};
  const Mark made = mark(rank, queue);  // before the counts, which it need not wait for
  for (std::int64_t other = 0; other < ranks_; ++other) {
    if (has(other) || !reads(other)) continue;
    write_value(q.stream(queue), count_of(q.others[static_cast<std::size_t>(other)], rank, queue),
                count);
  }
  return made;
}

ProcessDevices::Mark ProcessDevices::announce(std::int64_t rank, Queue queue) {
  return announce_if(rank, queue, [](std::int64_t) { return true; });
}

ProcessDevices::Mark ProcessDevices::announce_to(std::int64_t reader, std::int64_t rank,
                                                 Queue queue) {
  return announce_if(rank, queue, [&](std::int64_t other) { return other == reader; });
}

void ProcessDevices::wait(std::int64_t rank, Queue queue, Mark mark) {
  if (!has(rank)) return;
  Queues& q = *queues_;
  if (!has(mark.rank)) {
    wait_for_value(q.stream(queue), count_of(q.counts.data(), mark.rank, mark.queue), mark.number);
    return;
  }
  if (q.marks - mark.number >= Queues::kept_marks) {
    throw std::logic_error(fmt::format("rank {} waits for a mark that {} others followed", rank,
                                       q.marks - mark.number));
  }
  const cudaEvent_t event = q.events[mark.number % Queues::kept_marks];
  ATTEST_CUDA_CHECK(cudaStreamWaitEvent(q.stream(queue), event, 0));
}

std::byte* ProcessDevices::shared(std::int64_t rank, std::byte* memory) {
  if (ranks_ == 1) return memory;
  if (has(rank)) {
    place_.channel.tell(exported(memory));
    return memory;
  }
  queues_->opened.emplace_back(place_.channel.hear(rank));
  return queues_->opened.back().data();
}

void ProcessDevices::let_go() {
  synchronize();
  queues_->opened.clear();
  place_.channel.meet();
}

void ProcessDevices::synchronize() {
  place_.device.synchronize();
  queues_->copies.synchronize();
}

double ProcessDevices::slowest_ms(const std::function<void()>& work) {
  synchronize();
  std::vector<Mark> here;
  for (std::int64_t rank = 0; rank < ranks_; ++rank) {
    here.push_back(announce(rank, Queue::launches));
  }
  for (const Mark& one : here) {
    if (!has(one.rank)) wait(place_.channel.rank(), Queue::launches, one);
  }
  Event begin, end;
  begin.record(place_.device.stream());
  work();
  end.record(place_.device.stream());
  synchronize();
  return end.ms_since(begin);
}

}  // namespace on_gpu
}  // namespace attest
