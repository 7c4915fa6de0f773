#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/run/device.hpp"

namespace attest {
inline namespace on_gpu {

/// GPUs of the ranks of a group: rank r has GPU r modulo those there are, and two queues of its
/// own, for launches and for copies, which copy engines make beside them. One process and one host
/// thread drive all of them, so a rank's kernels may read the memory of any other. Work of a queue
/// is done in order; of two queues, as wait() says.
class RankDevices {
 public:
  enum class Queue { launches, copies };
  /// A moment in a queue of a rank, until synchronize().
  struct Mark {
    std::int64_t rank = 0;
    std::size_t number = 0;
  };

  /// Place of the ranks: the caller's device.
  using Place = Device;
  /// Memory that ranks share may begin anywhere.
  static constexpr std::size_t shared_page_bytes = 1;

  /// `device`: the caller's, whose memory all ranks can read and write. Throws MachineError where
  /// two GPUs have no access to each other.
  RankDevices(std::int64_t ranks, Device& device);
  RankDevices(const RankDevices&) = delete;
  RankDevices& operator=(const RankDevices&) = delete;
  /// Waits for all work.
  ~RankDevices();

  /// GPUs of this machine: with more ranks some share one.
  [[nodiscard]] static std::int64_t gpus();

  /// True if the rank is one of this process: all are.
  [[nodiscard]] static bool has(std::int64_t /*rank*/) { return true; }
  /// Device of a rank. Its GPU is the thread's current one until another rank's is.
  [[nodiscard]] Device& of(std::int64_t rank);

  /// Fills memory of the rank with NaN, of whatever format, in its queue of launches.
  void poison(std::int64_t rank, std::byte* memory, std::size_t bytes);

  /// Calls work(device of the rank), which launches in the rank's queue of launches.
  template <typename Work>
  void launch(std::int64_t rank, const Work& work) {
    work(of(rank));
  }

  /// In the queue of copies of `rank`: `rows` pieces of `bytes` bytes, `to_pitch` and `from_pitch`
  /// bytes apart, from any rank's memory into any rank's.
  void copy(std::int64_t rank, std::byte* to, std::size_t to_pitch, const std::byte* from,
            std::size_t from_pitch, std::size_t bytes, std::size_t rows);

  /// Address by which all ranks reach memory of one of them.
  [[nodiscard]] static std::byte* shared(std::int64_t /*rank*/, std::byte* memory) {
    return memory;
  }

  /// A mark that the rank itself waits for.
  [[nodiscard]] Mark mark(std::int64_t rank, Queue queue);
  /// One that the other ranks may wait for, too.
  [[nodiscard]] Mark announce(std::int64_t rank, Queue queue) { return mark(rank, queue); }
  /// One that, of the others, only `reader` may wait for.
  [[nodiscard]] Mark announce_to(std::int64_t /*reader*/, std::int64_t rank, Queue queue) {
    return mark(rank, queue);
  }
  /// Holds back later work of the queue until the mark was passed, whichever rank made it.
  void wait(std::int64_t rank, Queue queue, Mark mark);

  /// Waits for all work of all ranks. Marks are void then.
  void synchronize();
  /// Milliseconds from a barrier of all ranks to the end of `work`, of the rank that takes longest.
  [[nodiscard]] double slowest_ms(const std::function<void()>& work);

 private:
  struct Member;
  [[nodiscard]] Member& select(std::int64_t rank);

  int callers_gpu_ = 0;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace on_gpu
}  // namespace attest
