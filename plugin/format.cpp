#include "plugin/format.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace attest {

AttestFormat to_c(ElementType type) {
  switch (type) {
    case ElementType::fp32:
      return ATTEST_FP32;
    case ElementType::fp16:
      return ATTEST_FP16;
    case ElementType::bf16:
      return ATTEST_BF16;
  }
  throw std::logic_error("a format without a code in plugin.h");
}

std::optional<ElementType> element_type_of(const AttestFormat& format) {
  for (const ElementType type : all_element_types()) {
    if (is_same(to_c(type), format)) return type;
  }
  return std::nullopt;
}

bool is_same(const AttestFormat& a, const AttestFormat& b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

std::string to_string(const AttestFormat& format) {
  return fmt::format("{{code {}, {} bits, {} lanes}}", format.code, format.bits, format.lanes);
}

}  // namespace attest
