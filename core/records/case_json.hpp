#pragma once

#include <string_view>

#include "core/base/json.hpp"
#include "core/records/case.hpp"

namespace attest {

/// A Case as a JSON object, for records and messages that hold one among other things: every field,
/// but for fields of the Plan that the kernel does not use and optional fields of the Problem at
/// their defaults.
[[nodiscard]] Json case_json(const Case& c);
/// Case of a JSON object, inverse of case_json(). Strict: an unknown key, a missing key or a wrong
/// value throws InvalidInput that names `where`, the key and what is allowed.
[[nodiscard]] Case case_from(const Json& json, std::string_view where);

}  // namespace attest
