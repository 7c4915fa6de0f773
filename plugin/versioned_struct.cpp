// Structs that may grow: the size that a plugin was compiled with comes first.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/base/error.hpp"
#include "plugin/claim.hpp"

namespace attest {
namespace {

// More is no struct of ours but a plugin that forgot the field.
constexpr std::size_t largest_size = 4096;

/// `least` is the size of what every plugin must say, and sizes are multiples of `step`: one that
/// ends within a pointer would leave some bytes of it in the copy.
template <typename Struct>
Struct copied(const Struct& given, std::size_t least, std::size_t step, std::string_view type,
              const std::string& where) {
  std::uint32_t size = 0;
  std::memcpy(&size, &given, sizeof size);
  if (size < least || size > largest_size || size % step != 0) {
    throw InvalidInput(fmt::format("{}: {}.size is {}; allowed: sizeof({}), {} here", where, type,
                                   size, type, sizeof(Struct)));
  }
  Struct copy{};
  std::memcpy(&copy, &given, std::min<std::size_t>(size, sizeof copy));
  const auto* bytes = reinterpret_cast<const unsigned char*>(&given);
  if (size > sizeof copy &&
      std::any_of(bytes + sizeof copy, bytes + size, [](unsigned char b) { return b != 0; })) {
    throw InvalidInput(
        fmt::format("{}: it sets fields of {} that this attest does not know (it knows {} bytes, "
                    "the plugin's plugin.h {}); use a newer attest",
                    where, type, sizeof copy, size));
  }
  return copy;
}

constexpr std::size_t least_plugin = offsetof(AttestPlugin, kernel_count) + sizeof(std::size_t);
constexpr std::size_t least_kernel = offsetof(AttestKernel, run) + sizeof(void*);
constexpr std::size_t least_precision = offsetof(AttestPrecision, exp) + sizeof(std::uint32_t);

}  // namespace

AttestPlugin checked_copy(const AttestPlugin& given, const std::string& where) {
  return copied(given, least_plugin, alignof(AttestPlugin), "AttestPlugin", where);
}
AttestKernel checked_copy(const AttestKernel& given, const std::string& where) {
  return copied(given, least_kernel, alignof(AttestKernel), "AttestKernel", where);
}
AttestPrecision checked_copy(const AttestPrecision& given, const std::string& where) {
  return copied(given, least_precision, sizeof(std::uint32_t), "AttestPrecision", where);
}

}  // namespace attest
