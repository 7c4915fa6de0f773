#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "gpu/simt/launch.hpp"

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

/// Ranks of a group on the executor, all on the caller's device: what is launched is done at once,
/// so that nobody waits. Copies are launches, whose accesses are checked.
class RankDevices {
 public:
  enum class Queue { launches, copies };
  struct Mark {};

  RankDevices(std::int64_t /*ranks*/, Device& device) : device_(device) {}

  /// As many as are asked for: nothing is shared that has its own clock.
  [[nodiscard]] static std::int64_t gpus() { return 1; }

  [[nodiscard]] Device& of(std::int64_t /*rank*/) { return device_; }
  void release() noexcept {}

  void copy(std::int64_t /*rank*/, std::byte* to, std::size_t to_pitch, const std::byte* from,
            std::size_t from_pitch, std::size_t bytes, std::size_t rows) {
    if (bytes == 0 || rows == 0) return;
    const auto units = [](std::size_t count) { return static_cast<std::int64_t>(count / 2); };
    launch(copy_bytes, dim3(4), dim3(64), 0, device_, reinterpret_cast<unsigned short*>(to),
           units(to_pitch), reinterpret_cast<const unsigned short*>(from), units(from_pitch),
           units(bytes), static_cast<std::int64_t>(rows));
  }

  [[nodiscard]] Mark mark(std::int64_t /*rank*/, Queue /*queue*/) { return {}; }
  void wait(std::int64_t /*rank*/, Queue /*queue*/, Mark /*mark*/) {}
  void forget_marks() {}
  void synchronize() {}
  [[nodiscard]] double slowest_ms(const std::function<void()>& work) {
    return device_.time_ms(work);
  }

 private:
  Device& device_;
};

}  // namespace on_simt
}  // namespace attest
