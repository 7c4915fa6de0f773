#pragma once

#include "core/attention/paging.hpp"
#include "core/run/kernel.hpp"

namespace attest {

/// True if pages of that size take much memory for what they hold: a page of 256 keys for an entry
/// of one, with 2^16 heads.
[[nodiscard]] bool has_dear_pages(const Problem& problem, std::int64_t page_size);

/// Pages for K and V of a drawn problem, whose shared_keys it may set, and whose batch where the
/// Plan is for a prefix that entries share; none where the kernel takes none. Sizes that are no
/// power of two, pools with pages that nobody owns, joined and shared pages, and numbers of pages
/// past 65,535 where that costs little memory. Draws from RapidCheck, so inside rc::gen::exec only;
/// nothing for a kernel without pages.
[[nodiscard]] Paging draw_paging(const KernelInfo& kernel, const Plan& plan, Problem& problem);

}  // namespace attest
