#include "core/attention/codes.hpp"

#include <array>

namespace attest {
namespace {

constexpr std::array<std::string_view, 6> code_names{"none", "e4m3", "e5m2",
                                                     "int8", "e2m1", "int4"};
constexpr std::array<std::string_view, 5> scale_names{"none", "head", "block", "row", "column"};
constexpr std::array<std::string_view, 2> scale_format_names{"fp32", "ue8m0"};

}  // namespace

std::span<const std::string_view> names_of_codes() {
  return code_names;
}
std::span<const std::string_view> names_of_scales() {
  return scale_names;
}
std::span<const std::string_view> names_of_scale_formats() {
  return scale_format_names;
}
std::string_view name_of(Code code) {
  return code_names[static_cast<std::size_t>(code)];
}
std::string_view name_of(Scales scales) {
  return scale_names[static_cast<std::size_t>(scales)];
}

}  // namespace attest
