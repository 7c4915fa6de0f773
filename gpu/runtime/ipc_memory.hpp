#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace attest {

/// Smaller allocations share their pages with others, and so would their handles.
inline constexpr std::size_t ipc_page_bytes = std::size_t{2} << 20;

/// Allocation of cudaMalloc.
struct GpuAllocation {
  std::byte* first = nullptr;
  std::size_t bytes = 0;
};
/// The one that holds an address. Throws MachineError.
[[nodiscard]] GpuAllocation allocation_of(const void* address);

/// Text by which another process opens the memory at an address, which begins a multiple of
/// ipc_page_bytes and is not freed before that one has closed it. Throws MachineError.
[[nodiscard]] std::string exported(const void* address);

/// Memory of another process, opened on this thread's current GPU, whose kernels and copies reach
/// it then. Closed in the end.
class OpenedMemory {
 public:
  /// `text`: exported() there. Throws MachineError.
  explicit OpenedMemory(std::string_view text);
  OpenedMemory(OpenedMemory&& other) noexcept;
  OpenedMemory& operator=(OpenedMemory&&) = delete;
  ~OpenedMemory();

  /// The address that was exported, as this process sees it.
  [[nodiscard]] std::byte* data() const { return first_ + offset_; }

 private:
  std::byte* first_ = nullptr;
  std::size_t offset_ = 0;
};

}  // namespace attest
