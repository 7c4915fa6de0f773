#pragma once

#include <optional>
#include <string>

#include "core/attention/element_type.hpp"
#include "include/attest/plugin.h"

namespace attest {

/// A format of elements as plugin.h writes it.
[[nodiscard]] AttestFormat to_c(ElementType type);
/// Inverse; nothing for a format that no tensor has.
[[nodiscard]] std::optional<ElementType> element_type_of(const AttestFormat& format);

/// Are code, bits and lanes the same?
[[nodiscard]] bool is_same(const AttestFormat& a, const AttestFormat& b);
/// For complaints: `{code 2, 64 bits, 1 lanes}`.
[[nodiscard]] std::string to_string(const AttestFormat& format);

}  // namespace attest
