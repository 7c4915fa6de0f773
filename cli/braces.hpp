#pragma once

#include <string>
#include <vector>

namespace attest {

/// `a{1,2}b{x,y}` -> `a1bx`, `a1by`, `a2bx`, `a2by`, as a shell would without quotes; text without
/// braces is itself. Throws InvalidInput that names `option` for a brace without its partner or
/// inside another.
[[nodiscard]] std::vector<std::string> expand_braces(const std::string& option,
                                                     const std::string& text);
/// Of several texts, one after the other.
[[nodiscard]] std::vector<std::string> expand_braces(const std::string& option,
                                                     const std::vector<std::string>& texts);

}  // namespace attest
