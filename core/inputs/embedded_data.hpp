#pragma once

#include <cstddef>
#include <span>

namespace attest {

/// The bytes of data/real_qkv.safetensors as they were at build time: the binary needs no data
/// file.
[[nodiscard]] std::span<const std::byte> embedded_real_qkv();

}  // namespace attest
