#pragma once

#include <string>
#include <string_view>

#include "core/attention/paging.hpp"
#include "core/run/kernel.hpp"

namespace attest {

/// How K and V lie in memory, as a user says it: `contiguous`, or as paging_from_string() reads it.
/// Throws InvalidInput that names `option`.
[[nodiscard]] Paging asked_paging(std::string_view option, const std::string& text);

/// The same where nobody says it: in no pages, or in pages of 16 keys where the kernel takes
/// nothing else, of its own size and form of table where it asks for one.
[[nodiscard]] Paging default_paging(const KernelInfo& kernel);

}  // namespace attest
