#pragma once

#include <cstddef>
#include <span>

#include "core/device.hpp"

namespace attest {

/// The pages of host memory that hold one buffer, between pages that nobody can touch. Once the
/// buffer is filled, pages of an input can only be read. While a mapping lives, describe_fault
/// knows it.
class HostMapping {
 public:
  /// Maps the image and copies its pieces; what lies between them reads as 0 and takes no memory.
  /// Throws MachineError when there is no room.
  explicit HostMapping(const BufferImage& image);
  HostMapping(HostMapping&& other) noexcept;
  HostMapping(const HostMapping&) = delete;
  HostMapping& operator=(const HostMapping&) = delete;
  ~HostMapping();

  /// Of byte 0 of the buffer.
  [[nodiscard]] std::byte* address() const { return address_; }

 private:
  std::byte* reserved_ = nullptr;  ///< with the pages around the buffer
  std::size_t reserved_bytes_ = 0;
  std::byte* address_ = nullptr;
};

/// Writes what an access that the processor refused was about into `text`, ended by 0: "wrote to
/// Q, which is an input", "read past the end of V". False, and an empty text, for an address that
/// is not near a buffer. Safe in a signal handler.
bool describe_fault(const void* address, bool is_write, std::span<char> text) noexcept;

}  // namespace attest
