#include "core/attention/layout_needs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "core/attention/storage.hpp"
#include "core/operations/quantised.hpp"

namespace attest {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

/// Elements that make a multiple of so many bytes.
std::int64_t elements_of(std::int64_t alignment_bytes, std::int64_t element_size) {
  return std::lcm(alignment_bytes, element_size) / element_size;
}

std::optional<std::string> why_layout_does_not_fit(const LayoutNeeds& needs,
                                                   const TensorSpec& tensor, const Shape& shape,
                                                   std::int64_t size, const TensorLayout& layout) {
  const Strides strides = strides_of(shape, layout);
  const Strides dense = strides_of(shape, {});
  const std::array<std::int64_t, 3> got{strides.batch, strides.head, strides.row};
  const std::array<std::int64_t, 3> contiguous{dense.batch, dense.head, dense.row};
  for (std::size_t dim = 0; dim < got.size(); ++dim) {
    // The stride of a single index is never used to address anything.
    if (shape[dim] <= 1 && !needs.aligns_lone_strides) continue;
    if (needs.contiguous_only && got[dim] != contiguous[dim]) {
      return fmt::format("it needs contiguous tensors, and {} is not", tensor.label);
    }
    if (got[dim] * size % needs.stride_alignment_bytes != 0) {
      return fmt::format("it needs strides that are multiples of {} bytes, and {} has one of {}",
                         needs.stride_alignment_bytes, tensor.label, got[dim] * size);
    }
  }
  if (layout.base_offset * size % needs.pointer_alignment_bytes != 0) {
    return fmt::format("it needs tensors aligned to {} bytes, and {} begins {} bytes off",
                       needs.pointer_alignment_bytes, tensor.label, layout.base_offset * size);
  }
  return std::nullopt;
}

TensorLayout fitted_layout(const LayoutNeeds& needs, const Shape& shape, std::int64_t size,
                           TensorLayout layout) {
  layout.base_offset =
      round_up(layout.base_offset, elements_of(needs.pointer_alignment_bytes, size));
  if (needs.contiguous_only) return {.base_offset = layout.base_offset};
  const std::int64_t step = elements_of(needs.stride_alignment_bytes, size);
  layout.row_gap = round_up(shape[3] + layout.row_gap, step) - shape[3];
  layout.plane_gap = round_up(layout.plane_gap, step);
  layout.outer_gap = round_up(layout.outer_gap, step);
  if (needs.aligns_lone_strides) layout.lone_stride = round_up(layout.lone_stride, step);
  return layout;
}

std::optional<std::string> why_paging_does_not_fit(const LayoutNeeds& needs, const Problem& problem,
                                                   const Layouts& layouts) {
  const Paging& paging = layouts.paging;
  if (!paging.is_used()) {
    if (needs.pages != Pages::always) return std::nullopt;
    return "it needs K and V in pages";
  }
  const bool has_keys =
      problem.operation == &forward_operation || problem.operation == &quantised_operation;
  if (!has_keys || needs.pages == Pages::none) {
    return "it takes no K and V in pages";
  }
  if (!needs.page_sizes.empty() &&
      std::ranges::find(needs.page_sizes, paging.page_size) == needs.page_sizes.end()) {
    return fmt::format("it takes no pages of {} keys; allowed: {}", paging.page_size,
                       fmt::join(needs.page_sizes, ", "));
  }
  if (needs.tables && paging.table != *needs.tables) {
    return fmt::format("it takes page tables in the {} form alone",
                       table_form_names()[static_cast<std::size_t>(*needs.tables)]);
  }
  if (!paging.joins_kv) return std::nullopt;
  if (problem.values == Values::in_keys) return "K and V of a page are one tensor";
  if (problem.output_dim() != problem.head_dim) {
    return "K and V of a page cannot be neighbours: they differ in columns";
  }
  const ElementType type = (*problem.operation)[forward::k].format(problem);
  if (type != (*problem.operation)[forward::v].format(problem)) {
    return "K and V of a page cannot be neighbours: they differ in format";
  }
  const Shape pool = stored_shape(problem, forward::k, paging);
  const std::int64_t offset =
      joined_pool(pool, layouts[forward::k]).value_offset * format_of(type).size_bytes;
  if (needs.contiguous_only || offset % needs.pointer_alignment_bytes != 0) {
    return fmt::format(
        "it needs tensors aligned to {} bytes and without gaps where it says so; "
        "V begins {} bytes behind K",
        needs.pointer_alignment_bytes, offset);
  }
  return std::nullopt;
}

/// Needs of the kernel for one tensor: vectors are loads of rows, and scales are no rows.
LayoutNeeds needs_of(const LayoutNeeds& needs, const TensorSpec& tensor) {
  LayoutNeeds own = needs;
  if (tensor.rows == Rows::neither) own.pointer_alignment_bytes = own.stride_alignment_bytes = 1;
  return own;
}

std::int64_t element_bytes(const TensorSpec& tensor, const Problem& problem) {
  return static_cast<std::int64_t>(format_of(tensor.format(problem)).size_bytes);
}

}  // namespace

std::optional<std::string> why_layouts_do_not_fit(const LayoutNeeds& needs, const Problem& problem,
                                                  const Layouts& layouts) {
  std::optional<std::string> reason = why_paging_does_not_fit(needs, problem, layouts);
  for_each_tensor(*problem.operation, [&](const TensorSpec& tensor, auto index) {
    if (reason || !tensor.is_strided) return;
    reason = why_layout_does_not_fit(needs_of(needs, tensor), tensor,
                                     stored_shape(tensor, problem, layouts.paging),
                                     element_bytes(tensor, problem), layouts[index]);
  });
  return reason;
}

Layouts fitted(const LayoutNeeds& needs, const Problem& problem, Layouts layouts) {
  Paging& paging = layouts.paging;
  if (needs.pages == Pages::none) paging = {};
  if (needs.pages == Pages::always && !paging.is_used()) paging.page_size = 16;
  if (paging.is_used() && !needs.page_sizes.empty() &&
      std::ranges::find(needs.page_sizes, paging.page_size) == needs.page_sizes.end()) {
    paging.page_size = needs.page_sizes.front();
  }
  const bool is_joinable =
      problem.output_dim() == problem.head_dim && problem.values == Values::own &&
      (problem.operation != &quantised_operation || problem.codes.k == problem.codes.v);
  if (!is_joinable || needs.contiguous_only) paging.joins_kv = false;
  for_each_tensor(*problem.operation, [&](const TensorSpec& tensor, auto index) {
    if (!tensor.is_strided) return;
    layouts[index] =
        fitted_layout(needs_of(needs, tensor), stored_shape(tensor, problem, layouts.paging),
                      element_bytes(tensor, problem), layouts[index]);
  });
  return layouts;
}

}  // namespace attest
