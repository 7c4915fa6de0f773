#pragma once

#include "core/attention/paging.hpp"
#include "core/run/kernel.hpp"

namespace attest {

/// Pages for K and V of a drawn problem, whose shared_keys it may set, and whose batch where the
/// Plan is for a prefix that entries share; none where the kernel takes none. Sizes that are no
/// power of two, pools with pages that nobody owns, joined and shared pages, and numbers of pages
/// past 65,535 where that costs little memory. Draws from RapidCheck, so inside rc::gen::exec only;
/// nothing for a kernel without pages.
[[nodiscard]] Paging draw_paging(const KernelInfo& kernel, const Plan& plan, Problem& problem);

}  // namespace attest
