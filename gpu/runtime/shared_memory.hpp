#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/runtime/device_buffer.hpp"

namespace attest {

/// GPU memory that a worker process sees too, and copies in it of the buffers of a launch: whole
/// allocations, guards and gaps included, so that what a worker writes where it should not is found
/// where it belongs. Not the buffers themselves: those come and go, and memory must not be freed
/// while another process has it open.
class SharedMemory {
 public:
  /// Buffer of a launch, and the place of its copy.
  struct Buffer {
    std::byte* original = nullptr;
    std::size_t bytes = 0;
    std::size_t at = 0;  ///< its copy's first byte in the shared memory
  };

  /// The allocations that hold a launch's tensors and arrays. Throws MachineError.
  void find_buffers(const std::vector<const void*>& addresses);
  [[nodiscard]] bool has_room() const { return needed_ <= memory_.size(); }
  /// Makes room: the worker must have given back what it had open.
  void make_room();
  void drop() { memory_ = {}; }
  /// Handle by which another process opens the memory, hexadecimal.
  [[nodiscard]] std::string handle() const;
  /// Text by which OpenedMemory opens it.
  [[nodiscard]] std::string exported() const;
  [[nodiscard]] std::size_t size_bytes() const { return memory_.size(); }

  /// Copy the buffers to the shared memory, and back; each waits in the end.
  void copy_in(void* stream) const;
  void copy_back(void* stream) const;
  /// Offset, in the shared memory, of the copy of an address inside one of the buffers.
  [[nodiscard]] std::size_t place_of(const void* address) const;
  /// Addresses of the originals, in the order of their copies.
  [[nodiscard]] std::vector<const std::byte*> originals() const;

 private:
  [[nodiscard]] const Buffer& buffer_of(const void* address) const;

  std::vector<Buffer> buffers_;
  std::size_t needed_ = 0;
  DeviceBuffer<std::byte> memory_;
};

}  // namespace attest
