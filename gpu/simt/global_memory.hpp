#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/run/device.hpp"
#include "gpu/simt/running_thread.hpp"

namespace attest::simt {

/// The device's global memory: one reserved range of addresses in which buffers lie far apart, so
/// that an access past the end of one does not land in another.
class GlobalMemory {
 public:
  /// A piece of a buffer: the bytes that exist, guards included, and those that are the kernel's.
  struct Part {
    ByteRange extent, accessible;
  };
  struct Buffer {
    std::string name;
    std::size_t size_bytes = 0;
    std::vector<Part> parts;

    [[nodiscard]] bool is_accessible(std::size_t byte) const;
    /// Range of the accessible bytes, from the first part to the last.
    [[nodiscard]] ByteRange accessible() const;
  };

  GlobalMemory();
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;
  ~GlobalMemory();

  /// Adds a buffer and returns its address. Throws MachineError when the range is full.
  [[nodiscard]] std::byte* add(const BufferImage& image);
  /// Adds a buffer without guards whose pages are not touched, as nobody has written it, and
  /// returns its address. Throws MachineError when the range is full.
  [[nodiscard]] std::byte* add_unwritten(const std::string& name, std::size_t size);
  void remove(std::byte* buffer) noexcept;
  [[nodiscard]] const ShadowedMemory& memory() const { return memory_; }
  /// The buffer whose memory, guards included, holds the address, and its start; nullptr when there
  /// is none.
  [[nodiscard]] const Buffer* find(std::uintptr_t address, std::uintptr_t& start) const;
  /// True if the word at this address is a kernel's as a whole. Such a word whose stamp is
  /// `inaccessible` is unwritten.
  [[nodiscard]] bool holds_word(std::uintptr_t address) const;
  /// The buffer itself, or the one that lies nearest to the address.
  [[nodiscard]] const Buffer* find_nearest(std::uintptr_t address, std::uintptr_t& start) const;
  /// Makes every word that a kernel wrote look as if the host had written it.
  void forget_blocks();

 private:
  /// Makes room for a buffer; its parts are the caller's to add.
  [[nodiscard]] std::uintptr_t place(const std::string& name, std::size_t size);
  void mark(std::uintptr_t start, const ByteRange& range, Stamp stamp);
  /// Calls visit(first word, one past the last) for each part of the buffer at `start`.
  template <typename Visit>
  void for_each_part(std::uintptr_t start, const Buffer& buffer, const Visit& visit) const;

  ShadowedMemory memory_;
  std::map<std::uintptr_t, Buffer> buffers_;
};

}  // namespace attest::simt
