#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/inputs/random.hpp"
#include "gpu/simt/launch.hpp"
#include "gpu/simt/traces_launches.hpp"

namespace attest {
inline namespace on_simt {

/// Copies rows of bytes, an even number of them: a thread two bytes.
inline void copy_bytes(unsigned short* to, std::int64_t to_pitch, const unsigned short* from,
                       std::int64_t from_pitch, std::int64_t units, std::int64_t rows) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < units * rows;
       i += step) {
    to[i / units * to_pitch + i % units] = from[i / units * from_pitch + i % units];
  }
}

/// Ranks of a group on the executor, all on the caller's device. Each rank has the queues that it
/// has on a GPU; synchronize() does what is in them in an order of its own, in which queues keep
/// theirs and wait for what they were told to: who relies on anything else finds it undone. Copies
/// are launches, whose accesses are checked; where launches are traced they are none, as on a GPU.
class RankDevices {
 public:
  enum class Queue { launches, copies };
  using Mark = std::size_t;
  using Place = Device;
  static constexpr std::size_t shared_page_bytes = 1;

  RankDevices(std::int64_t ranks, Device& device)
      : device_(device), queues_(2 * static_cast<std::size_t>(ranks)) {}

  /// As many as are asked for: nothing is shared that has its own clock.
  [[nodiscard]] static std::int64_t gpus() { return std::numeric_limits<std::int64_t>::max(); }

  [[nodiscard]] static bool has(std::int64_t /*rank*/) { return true; }
  [[nodiscard]] Device& of(std::int64_t /*rank*/) { return device_; }
  [[nodiscard]] static std::byte* shared(std::int64_t /*rank*/, std::byte* memory) {
    return memory;
  }

  /// Does nothing: unwritten memory is known here, whatever it holds.
  void poison(std::int64_t /*rank*/, std::byte* /*memory*/, std::size_t /*bytes*/) {}

  template <typename Work>
  void launch(std::int64_t rank, Work work) {
    queue(rank, Queue::launches).push_back({.work = [this, work] { work(device_); }});
  }
  void copy(std::int64_t rank, std::byte* to, std::size_t to_pitch, const std::byte* from,
            std::size_t from_pitch, std::size_t bytes, std::size_t rows) {
    if (bytes == 0 || rows == 0) return;
    queue(rank, Queue::copies).push_back({.work = [=, this] {
      if (simt::traces_launches(device_)) {
        for (std::size_t row = 0; row < rows; ++row) {
          std::memcpy(to + row * to_pitch, from + row * from_pitch, bytes);
        }
        return;
      }
      const auto units = [](std::size_t count) { return static_cast<std::int64_t>(count / 2); };
      attest::launch(copy_bytes, dim3(4), dim3(64), 0, device_,
                     reinterpret_cast<unsigned short*>(to), units(to_pitch),
                     reinterpret_cast<const unsigned short*>(from), units(from_pitch), units(bytes),
                     static_cast<std::int64_t>(rows));
    }});
  }

  [[nodiscard]] Mark mark(std::int64_t rank, Queue queue_of_it) {
    return add_mark(rank, queue_of_it, [rank](std::int64_t waiting) { return waiting == rank; });
  }
  [[nodiscard]] Mark announce(std::int64_t rank, Queue queue_of_it) {
    return add_mark(rank, queue_of_it, [](std::int64_t) { return true; });
  }
  [[nodiscard]] Mark announce_to(std::int64_t reader, std::int64_t rank, Queue queue_of_it) {
    return add_mark(rank, queue_of_it, [reader, rank](std::int64_t waiting) {
      return waiting == rank || waiting == reader;
    });
  }
  /// Throws KernelError where a rank waits for what it is not told: ranks in processes of their own
  /// would wait for ever.
  void wait(std::int64_t rank, Queue queue_of_it, Mark mark) {
    if (mark >= marks_.size() || !marks_[mark].is_told(rank)) {
      throw KernelError("rank " + std::to_string(rank) +
                        " waits for what another rank does not announce to it");
    }
    queue(rank, queue_of_it).push_back({.waits_for = mark});
  }

  /// Throws KernelError where queues wait for each other.
  void synchronize() {
    for (std::size_t left = 1; left > 0; ++steps_) {
      std::vector<Tasks*> ready;
      left = 0;
      for (Tasks& tasks : queues_) {
        left += tasks.size();
        const bool waits = !tasks.empty() && tasks.front().waits_for &&
                           !marks_[*tasks.front().waits_for].is_passed;
        if (!tasks.empty() && !waits) ready.push_back(&tasks);
      }
      if (left == 0) break;
      if (ready.empty()) throw KernelError("the queues of the ranks wait for each other");
      Tasks& chosen = *ready[random_bits(queues_.size(), steps_, 0) % ready.size()];
      const Task task = std::move(chosen.front());
      chosen.pop_front();
      if (task.work) task.work();
    }
    marks_.clear();
  }
  [[nodiscard]] double slowest_ms(const std::function<void()>& work) {
    return device_.time_ms([&] {
      work();
      synchronize();
    });
  }

 private:
  struct Task {
    std::function<void()> work{};
    std::optional<Mark> waits_for{};
  };
  using Tasks = std::deque<Task>;
  struct Passing {
    std::function<bool(std::int64_t)> is_told;  ///< the rank may wait for it
    bool is_passed = false;
  };
  [[nodiscard]] Mark add_mark(std::int64_t rank, Queue queue_of_it,
                              std::function<bool(std::int64_t)> is_told) {
    const Mark made = marks_.size();
    marks_.push_back({.is_told = std::move(is_told)});
    queue(rank, queue_of_it).push_back({.work = [this, made] { marks_[made].is_passed = true; }});
    return made;
  }
  [[nodiscard]] Tasks& queue(std::int64_t rank, Queue which) {
    return queues_[2 * static_cast<std::size_t>(rank) + (which == Queue::copies ? 1 : 0)];
  }

  Device& device_;
  std::vector<Tasks> queues_;
  std::vector<Passing> marks_;
  std::uint64_t steps_ = 0;
};

}  // namespace on_simt
}  // namespace attest
