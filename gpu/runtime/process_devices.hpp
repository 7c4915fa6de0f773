#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/run/device.hpp"
#include "core/run/rank_process.hpp"
#include "gpu/runtime/ipc_memory.hpp"
#include "gpu/runtime/rank_devices.hpp"

namespace attest {

class CudaDevice;

inline namespace on_gpu {

/// Home of a rank that has a process to itself: its GPU, and how it speaks to the others.
struct RankPlace {
  RankChannel& channel;
  CudaDevice& device;
};

/// RankDevices of a group whose ranks are processes: this one has the GPU and the queues of its own
/// rank. All processes run one program over all ranks; of the others each only counts what they
/// announce, and so knows by which number it will see it pass: in memory of its own GPU, where the
/// others' queues write how far they are. Keys come from memory that their processes share (CUDA
/// IPC).
class ProcessDevices {
 public:
  using Place = RankPlace;
  using Queue = RankDevices::Queue;
  /// A moment in a queue of a rank: of this process's own the number of an event, of another's the
  /// count of what its queue has announced by then.
  struct Mark {
    std::int64_t rank = 0;
    Queue queue = Queue::launches;
    std::uint32_t number = 0;
  };
  static constexpr std::size_t shared_page_bytes = ipc_page_bytes;

  /// Meets the other processes. Throws MachineError, and KernelError of the channel.
  ProcessDevices(std::int64_t ranks, RankPlace& place);
  ProcessDevices(const ProcessDevices&) = delete;
  ProcessDevices& operator=(const ProcessDevices&) = delete;
  ~ProcessDevices();

  [[nodiscard]] bool has(std::int64_t rank) const { return rank == place_.channel.rank(); }
  /// Device of the rank that this process is.
  [[nodiscard]] Device& of(std::int64_t own);

  void poison(std::int64_t rank, std::byte* memory, std::size_t bytes);
  template <typename Work>
  void launch(std::int64_t rank, const Work& work) {
    if (has(rank)) work(of(rank));
  }
  void copy(std::int64_t rank, std::byte* to, std::size_t to_pitch, const std::byte* from,
            std::size_t from_pitch, std::size_t bytes, std::size_t rows);

  /// Mark of this process's own rank; one that means nothing for others.
  [[nodiscard]] Mark mark(std::int64_t rank, Queue queue);
  [[nodiscard]] Mark announce(std::int64_t rank, Queue queue);
  [[nodiscard]] Mark announce_to(std::int64_t reader, std::int64_t rank, Queue queue);
  /// A mark of this process's rank must be one of its last few hundred.
  void wait(std::int64_t rank, Queue queue, Mark mark);

  /// Address of a rank's memory in this process. All processes call it for the same memory, in the
  /// same order.
  [[nodiscard]] std::byte* shared(std::int64_t rank, std::byte* memory);
  /// Gives back what is others', and waits until they have done so too: then a rank's memory may
  /// go.
  void let_go();

  /// Waits for all work of this process's rank.
  void synchronize();
  /// Milliseconds from a barrier of all ranks to the end of `work` of this process's.
  [[nodiscard]] double slowest_ms(const std::function<void()>& work);

 private:
  struct Queues;
  /// Counts an announcement; one of this process's is written to those whom `reads` names.
  template <typename Reads>
  [[nodiscard]] Mark announce_if(std::int64_t rank, Queue queue, const Reads& reads);

  std::int64_t ranks_;
  RankPlace& place_;
  std::unique_ptr<Queues> queues_;
};

}  // namespace on_gpu
}  // namespace attest
