#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace attest {

/// A file of captured layers in data/ as it was at build time: the binary needs no data file.
struct EmbeddedCapture {
  std::string_view family;   ///< input family that draws windows of its layers
  std::string_view summary;  ///< one line, of the family
  std::string_view file;     ///< name in data/
  std::span<const std::byte> bytes;
};
[[nodiscard]] std::span<const EmbeddedCapture> embedded_captures();

}  // namespace attest
