#pragma once

#include <cstddef>
#include <span>

#include "core/run/device.hpp"

namespace attest {

/// The pages of host memory that hold one buffer, between pages that nobody can touch. Once the
/// buffer is filled, pages of an input can only be read. While a mapping lives, describe_fault
/// knows it.
class HostMapping {
 public:
  /// Maps the image and copies its pieces; what lies between them reads as 0 and takes no memory.
  /// Throws MachineError when there is no room.
  explicit HostMapping(const BufferImage& image);
  /// Maps pages_bytes() of a file that another process fills, from a byte on that is a multiple of
  /// a page: a buffer like the one at `place`. Throws MachineError.
  HostMapping(BufferPlace place, int file, std::size_t from_byte);
  HostMapping(HostMapping&& other) noexcept;
  HostMapping(const HostMapping&) = delete;
  HostMapping& operator=(const HostMapping&) = delete;
  ~HostMapping();

  /// Address of byte 0 of the buffer.
  [[nodiscard]] std::byte* address() const { return place_.address; }
  [[nodiscard]] const BufferPlace& place() const { return place_; }
  /// Whole pages for a buffer of so many bytes.
  [[nodiscard]] static std::size_t pages_bytes(std::size_t buffer_bytes);
  /// Bytes of the pages before byte 0.
  [[nodiscard]] static std::size_t bytes_before(const BufferPlace& place);

  /// The buffer is gone: from now on touching its pages ends the process. False if the system
  /// refuses.
  [[nodiscard]] bool retire() noexcept;
  /// True, after retire(), if the pages are as many as the image needs.
  [[nodiscard]] bool fits(const BufferImage& image) const;
  /// Gives pages that fit to another buffer, after retire(), which costs a third of new ones. Bytes
  /// around the image are 0xff, NaN in every format.
  void reuse(const BufferImage& image);
  /// Size of the buffer in whole pages.
  [[nodiscard]] std::size_t size_bytes() const { return inside_bytes_; }

 private:
  void reserve();
  void fill(const BufferImage& image, bool is_used);
  [[noreturn]] void refuse() const;

  std::byte* pages_ = nullptr;  ///< untouchable_bytes after the first reserved one
  std::size_t inside_bytes_ = 0;
  BufferPlace place_;
};

/// Writes what an access that the processor refused was about into `text`, ended by 0: "wrote to
/// Q, which is an input", "read past the end of V". False, and an empty text, for an address that
/// is not near a buffer. Safe in a signal handler.
bool describe_fault(const void* address, bool is_write, std::span<char> text) noexcept;

}  // namespace attest
