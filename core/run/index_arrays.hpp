#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/run/arguments.hpp"
#include "core/run/device.hpp"
#include "core/run/guarded_buffer.hpp"

namespace attest {

/// The small arrays that a problem with lengths or padding needs on the device, each between
/// guards: query_starts, key_starts, key_mask.
class IndexArrays {
 public:
  IndexArrays() = default;
  IndexArrays(const IndexArrays&) = delete;
  IndexArrays& operator=(const IndexArrays&) = delete;

  /// Uploads what the problem needs and sets the pointers in `arguments`. `ends_at_page`: nothing
  /// that can be touched follows an array but for less than 16 bytes, see Placement.
  void upload(const Problem& problem, Device& device, Arguments& arguments,
              bool ends_at_page = false);
  /// Any byte that changed is a modified input.
  void check(Device& device, MemoryReport& report) const;
  void release(Device& device) noexcept;

 private:
  struct Array {
    BufferImage image;
    std::byte* device = nullptr;
  };
  const std::byte* add(std::string name, std::vector<std::byte> bytes, Device& device,
                       bool ends_at_page);

  std::vector<Array> arrays_;
};

}  // namespace attest
