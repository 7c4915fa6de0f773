#pragma once

#include <cstdint>
#include <string_view>

namespace attest {

/// A hash that is the same on every machine, by the function FNV-1a of 64 bits [Fowler, Noll, Vo].
/// Of a text in parts: what the part before gave is `hash`.
[[nodiscard]] constexpr std::uint64_t fnv1a(std::string_view text,
                                            std::uint64_t hash = 0xcbf29ce484222325ULL) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

// A value that its authors published.
static_assert(fnv1a("foobar") == 0x85944171f73967e8ULL);

}  // namespace attest
