#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/attention/layout.hpp"
#include "core/attention/paging.hpp"
#include "core/attention/problem.hpp"

namespace attest {

/// Storage of K and V that a kernel takes: never in pages, also in pages, or only in pages.
enum class Pages : int { none, also, always };

/// Demands of a kernel on the memory layout of its strided tensors. The default asks for nothing:
/// any strides, any base address that is a multiple of the element size.
struct LayoutNeeds {
  bool contiguous_only = false;              ///< [batch, head, row, dim] without gaps
  std::int64_t pointer_alignment_bytes = 1;  ///< of the first element; a power of two up to 256
  std::int64_t stride_alignment_bytes = 1;   ///< of strides; a power of two up to 256
  /// The strides of dimensions of size 1 count too, though nothing multiplies them: tensor maps and
  /// checks of arguments may look at them all the same. Kernels of plugins have it unless they say
  /// otherwise (include/attest/plugin.h); false: such strides are any.
  bool aligns_lone_strides = false;
  /// The kernel takes unused rows between packed entries, and lengths beside where these begin.
  bool takes_entry_gaps = false;
  /// The kernel takes inputs with a stride of 0, whose heads or entries share one place in memory.
  bool takes_broadcast = false;
  std::optional<TableForm> tables{};  ///< the only form of page tables that it takes; none: both
  Pages pages = Pages::none;
  /// Page sizes that it takes; empty: any.
  std::vector<std::int64_t> page_sizes{};

  friend bool operator==(const LayoutNeeds&, const LayoutNeeds&) = default;
};

/// A sentence naming the tensor and the need when the layouts, or their paging, do not fit;
/// otherwise nothing.
[[nodiscard]] std::optional<std::string> why_layouts_do_not_fit(const LayoutNeeds& needs,
                                                                const Problem& problem,
                                                                const Layouts& layouts);

/// Layouts that the needs allow: base offsets and gaps are rounded up until they fit; gaps and
/// order are given up where contiguous tensors are asked for, pages where there may be none or
/// their size is another. What no layout can satisfy is left as it is, and so is the form of a page
/// table: a case of the other form counts as refused.
[[nodiscard]] Layouts fitted(const LayoutNeeds& needs, const Problem& problem, Layouts layouts);

}  // namespace attest
