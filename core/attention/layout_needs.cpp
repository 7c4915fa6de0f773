#include "core/attention/layout_needs.hpp"

#include <fmt/format.h>

#include <array>
#include <numeric>
#include <string_view>

#include "core/attention/stored_shapes.hpp"

namespace attest {
namespace {

struct NamedTensor {
  std::string_view name;
  TensorLayout Layouts::*layout;
  Shape StoredShapes::*shape;
};
constexpr std::array<NamedTensor, 4> tensors{{{"Q", &Layouts::q, &StoredShapes::q},
                                              {"K", &Layouts::k, &StoredShapes::k},
                                              {"V", &Layouts::v, &StoredShapes::v},
                                              {"O", &Layouts::o, &StoredShapes::o}}};

std::int64_t element_bytes(const Problem& problem) {
  return static_cast<std::int64_t>(format_of(problem.element_type).size_bytes);
}

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

/// Elements that make a multiple of so many bytes.
std::int64_t elements_of(std::int64_t alignment_bytes, std::int64_t element_size) {
  return std::lcm(alignment_bytes, element_size) / element_size;
}

}  // namespace

std::optional<std::string> why_layouts_do_not_fit(const LayoutNeeds& needs, const Problem& problem,
                                                  const Layouts& layouts) {
  const std::int64_t size = element_bytes(problem);
  const StoredShapes shapes = stored_shapes(problem);
  for (const NamedTensor& tensor : tensors) {
    const TensorLayout& layout = layouts.*tensor.layout;
    const Shape shape = shapes.*tensor.shape;
    const Strides strides = strides_of(shape, layout);
    const Strides dense = strides_of(shape, {});
    const std::array<std::int64_t, 3> got{strides.batch, strides.head, strides.row};
    const std::array<std::int64_t, 3> contiguous{dense.batch, dense.head, dense.row};
    for (std::size_t dim = 0; dim < got.size(); ++dim) {
      // The stride of a single index is never used to address anything.
      if (shape[dim] <= 1 && !needs.aligns_lone_strides) continue;
      if (needs.contiguous_only && got[dim] != contiguous[dim]) {
        return fmt::format("it needs contiguous tensors, and {} is not", tensor.name);
      }
      if (got[dim] * size % needs.stride_alignment_bytes != 0) {
        return fmt::format("it needs strides that are multiples of {} bytes, and {} has one of {}",
                           needs.stride_alignment_bytes, tensor.name, got[dim] * size);
      }
    }
    if (layout.base_offset * size % needs.pointer_alignment_bytes != 0) {
      return fmt::format("it needs tensors aligned to {} bytes, and {} begins {} bytes off",
                         needs.pointer_alignment_bytes, tensor.name, layout.base_offset * size);
    }
  }
  return std::nullopt;
}

Layouts fitted(const LayoutNeeds& needs, const Problem& problem, Layouts layouts) {
  const std::int64_t size = element_bytes(problem);
  const StoredShapes shapes = stored_shapes(problem);
  for (const NamedTensor& tensor : tensors) {
    TensorLayout& layout = layouts.*tensor.layout;
    const std::int64_t offset_step = elements_of(needs.pointer_alignment_bytes, size);
    layout.base_offset = round_up(layout.base_offset, offset_step);
    if (needs.contiguous_only) {
      layout = {.base_offset = layout.base_offset};
      continue;
    }
    const std::int64_t row_step = elements_of(needs.stride_alignment_bytes, size);
    const std::int64_t columns = (shapes.*tensor.shape)[3];
    layout.row_gap = round_up(columns + layout.row_gap, row_step) - columns;
    layout.plane_gap = round_up(layout.plane_gap, row_step);
    layout.outer_gap = round_up(layout.outer_gap, row_step);
    if (needs.aligns_lone_strides) layout.lone_stride = round_up(layout.lone_stride, row_step);
  }
  return layouts;
}

}  // namespace attest
