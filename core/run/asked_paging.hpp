#pragma once

#include <string>
#include <string_view>

#include "core/attention/paging.hpp"
#include "core/run/kernel.hpp"

namespace attest {

/// Paging that a user asks for: `contiguous`, or a text that paging_from_string() reads. Throws
/// InvalidInput that names `option`.
[[nodiscard]] Paging asked_paging(std::string_view option, const std::string& text);

/// Paging where nobody asks for one: no pages, or pages of 16 keys where the kernel takes nothing
/// else, of its own size and form of table where it asks for one.
[[nodiscard]] Paging default_paging(const KernelInfo& kernel);

}  // namespace attest
