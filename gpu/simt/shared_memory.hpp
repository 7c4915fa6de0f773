#pragma once

#include <cstddef>

#include "gpu/simt/running_thread.hpp"

namespace attest::simt {

inline constexpr std::size_t max_shared_bytes = 227 * 1024;  ///< of a block, on Hopper

/// The shared memory of the blocks that one OS thread runs, with its shadow.
class SharedMemory {
 public:
  SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  /// The dynamic part, [0, size_bytes), filled with NaN.
  [[nodiscard]] ShadowedMemory dynamic(std::size_t size_bytes);
  /// Shared memory with guards on both sides, as large as it can be.
  [[nodiscard]] ShadowedMemory with_guards() const { return all_; }
  /// The calling OS thread's thread-local variables: static __shared__ arrays are among them.
  [[nodiscard]] ShadowedMemory static_part();
  /// Drops every stamp, because serials start anew.
  void forget();

 private:
  ShadowedMemory all_;
  ShadowedMemory static_;
};

/// Shadow for `size_bytes` at `base`, mapped when touched. Throws MachineError.
[[nodiscard]] ShadowedMemory map_shadow(std::uintptr_t base, std::size_t size_bytes);
void unmap_shadow(const ShadowedMemory& memory) noexcept;
/// Zero pages, mapped when touched. Throws MachineError.
[[nodiscard]] void* map_lazily(std::size_t size_bytes);

}  // namespace attest::simt
