#pragma once

#include <string>
#include <vector>

#include "verify/judge/run.hpp"

namespace attest {

/// `of 16 keys, a csr table, in a drawn order, K and V apart`; of pages that are used.
[[nodiscard]] std::string page_form(const Paging& paging);

/// Mistakes of which each alone gives what the kernel gave: one that finds K, V or both of them at
/// that wrong offset owes another exact answer, and every output lies within its bounds of it. `V
/// read with the strides of K`, say. Asked of a launch of a case in which mistakes differ, or, if
/// that is right, of the base launch. Empty where none fits or too many do, where there are no
/// pages, and where asking would take long.
[[nodiscard]] std::vector<std::string> misreadings_of(Run& run);

}  // namespace attest
