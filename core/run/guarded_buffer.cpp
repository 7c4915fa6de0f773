#include "core/run/guarded_buffer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/attention/storage.hpp"
#include "core/attention/stored_row.hpp"

namespace attest {
namespace {

constexpr std::size_t guard_bytes = 4096;
/// A kernel that goes one row too far should land in a guard, not in somebody else's memory.
constexpr std::size_t largest_guard = std::size_t{1} << 17;
constexpr std::size_t largest_buffer_alignment = 256;
/// Steps of the slowest dimension that leave a larger gap than this lie in pieces of their own.
constexpr std::size_t largest_filled_gap = std::size_t{1} << 20;

/// NaN around and between tensors: unlike poison_bits, so that arithmetic on it is not mistaken for
/// an unwritten output.
std::uint32_t guard_bits(ElementType type) {
  switch (type) {
    case ElementType::fp32:
      return 0x7fc0deadU;
    case ElementType::fp16:
      return 0x7eadU;
    case ElementType::bf16:
      return 0x7fcdU;
    case ElementType::e4m3:
    case ElementType::e5m2:
      return 0x7fU;
    case ElementType::int8:
      return 0x80U;  // a number, but none that a quantiser makes
    case ElementType::int4:
      return 0x88U;  // two such numbers
    case ElementType::e2m1:
      return 0x77U;  // every code is a number that a quantiser makes: the largest
    case ElementType::ue8m0:
      return 0xffU;
    case ElementType::int32:
      return 0x80deadedU;  // no key, no count, and not poison
  }
  no_version_for(type);
}

/// What an element holds before a kernel writes it. Each code may be an answer, so codes hold what
/// guards do: only a comparison with the exact answer, which is no NaN, no -128 and no -8, tells
/// that one was not written.
std::uint32_t unwritten_bits(ElementType type) {
  return format_of(type).poison.value_or(guard_bits(type));
}

void fill(std::vector<std::byte>& bytes, std::uint32_t bits, std::size_t element_size) {
  for (std::size_t at = 0; at + element_size <= bytes.size(); at += element_size) {
    store_unit(bytes.data() + at, bits, element_size);
  }
}

bool are_equal(const std::byte* a, const std::byte* b, std::size_t size) {
  return std::memcmp(a, b, size) == 0;
}

std::size_t aligned_up(std::size_t size, std::size_t unit) {
  return (size + unit - 1) / unit * unit;
}

/// Alignment of a buffer whose tensor begins `offset_bytes` past an aligned address: enough that
/// the address of the tensor is a multiple of the same powers of two wherever the buffer lies.
std::size_t alignment_of(std::size_t offset_bytes, const Placement& placement) {
  if (offset_bytes == 0) return placement.alignment;
  const std::size_t largest_power = offset_bytes & (~offset_bytes + 1);
  return std::min(largest_buffer_alignment, std::max(2 * largest_power, std::size_t{4}));
}

std::string element_name(const std::string& tensor, std::int64_t b, std::int64_t h, std::int64_t n,
                         std::size_t d) {
  return fmt::format("{}[{}, {}, {}, {}]", tensor, b, h, n, d);
}

}  // namespace

template <typename Visit>
void GuardedBuffer::for_each_row(const Visit& visit) const {
  for (std::int64_t b = 0; b < shape_[0]; ++b) {
    for (std::int64_t h = 0; h < shape_[1]; ++h) {
      for (std::int64_t n = 0; n < shape_[2]; ++n) {
        if (!used_rows_.empty() && !used_rows_[static_cast<std::size_t>(n)]) continue;
        const std::array<std::int64_t, 3> index{b, h, n};
        const std::size_t piece =
            image_.pieces.size() == 1 ? 0 : static_cast<std::size_t>(index[slowest_]);
        const std::size_t at =
            first_ + static_cast<std::size_t>(strides_.offset(b, h, n)) * element_size_;
        visit(b, h, n, piece, at - image_.pieces[piece].begin);
      }
    }
  }
}

void GuardedBuffer::add_pieces(const TensorLayout& layout) {
  Shape step_shape = units_shape_;
  const std::int64_t steps = shape_[slowest_];
  step_shape[slowest_] = std::min<std::int64_t>(1, steps);
  const auto step_bytes = static_cast<std::size_t>(span_of(step_shape, layout)) * element_size_;
  const std::array<std::int64_t, 3> strides{strides_.batch, strides_.head, strides_.row};
  const auto stride_bytes = static_cast<std::size_t>(strides[slowest_]) * element_size_;
  const auto all_bytes = static_cast<std::size_t>(span_of(units_shape_, layout)) * element_size_;
  const bool is_split =
      all_bytes > 0 && steps > 1 && stride_bytes - step_bytes > largest_filled_gap;
  const auto row_bytes = static_cast<std::size_t>(strides_.row + units_shape_[3]) * element_size_;
  const std::size_t guard_after = std::clamp(row_bytes, guard_bytes, largest_guard);
  for (std::int64_t step = 0; step < (is_split ? steps : 1); ++step) {
    const std::size_t begin = first_ + static_cast<std::size_t>(step) * stride_bytes;
    const std::size_t end = begin + (is_split ? step_bytes : all_bytes);
    BufferImage::Piece piece;
    piece.begin = step == 0 ? 0 : (begin - guard_bytes) / 4 * 4;
    const bool is_last = step + 1 == (is_split ? steps : 1);
    const std::size_t buffer_end = is_last && image_.ends_at_page
                                       ? aligned_up(end, image_.alignment)
                                       : aligned_up(end + guard_after, 4);
    piece.bytes.resize(buffer_end - piece.begin);
    piece.accessible = {begin, end};
    fill(piece.bytes, guard_bits(type_), element_size_);
    image_.pieces.push_back(std::move(piece));
  }
}

GuardedBuffer::GuardedBuffer(std::string name, Use use, const Shape& shape,
                             const TensorLayout& layout, ElementType type,
                             const Tensor<float>* values, const Placement& placement,
                             const std::vector<bool>& used_steps, std::vector<bool> used_rows)
    : use_(use),
      used_rows_(std::move(used_rows)),
      shape_(shape),
      units_shape_(in_units(shape, type)),
      strides_(strides_of(units_shape_, layout)),
      type_(type),
      element_size_(format_of(type).size_bytes),
      first_(guard_bytes + static_cast<std::size_t>(layout.base_offset) * element_size_),
      slowest_(static_cast<std::size_t>(slowest_dim(layout.order))) {
  image_.name = std::move(name);
  image_.is_input = use == Use::input;
  image_.ends_at_page = placement.ends_at_page;
  if (image_.ends_at_page) image_.alignment = alignment_of(first_ - guard_bytes, placement);
  add_pieces(layout);
  const auto dim = static_cast<std::size_t>(shape[3]);
  for_each_row([&](auto b, auto h, auto n, std::size_t p, std::size_t at) {
    BufferImage::Piece& piece = image_.pieces[p];
    const auto bits_at = [&](std::size_t d) {
      return values != nullptr ? encode(type, values->row(b, h, n)[d]) : unwritten_bits(type);
    };
    store_row(piece.bytes.data() + at, type, dim, bits_at, guard_bits(type) & 0xfU);
    const std::size_t begin = piece.begin + at;
    const bool is_used = used_steps.empty() || used_steps[static_cast<std::size_t>(b)];
    if (values != nullptr && is_used)
      piece.initialised.push_back(
          {begin, begin + static_cast<std::size_t>(units_shape_[3]) * element_size_});
  });
}

GuardedBuffer::Contents GuardedBuffer::download(Device& device, const std::byte* buffer) const {
  Contents contents;
  for (const BufferImage::Piece& piece : image_.pieces) {
    contents.emplace_back(piece.bytes.size());
    device.download(buffer + piece.begin, contents.back());
  }
  return contents;
}

void GuardedBuffer::check(const Contents& now, MemoryReport& report) const {
  const std::size_t size = element_size_;
  const std::string& name = image_.name;
  bool is_as_it_was = true;
  for (std::size_t p = 0; is_as_it_was && p < now.size(); ++p) {
    is_as_it_was = are_equal(now[p].data(), image_.pieces[p].bytes.data(), now[p].size());
  }
  if (is_as_it_was && use_ != Use::output) return;
  Contents outside = now;  // with all elements as they were
  const bool has_poison = format_of(type_).poison.has_value();
  const auto in_unit = static_cast<std::size_t>(format_of(type_).elements_in_unit);
  std::int64_t unwritten = 0;
  std::int64_t modified = 0;
  std::string first_unwritten;
  std::string first_modified;
  for_each_row([&](auto b, auto h, auto n, std::size_t p, std::size_t row) {
    const std::byte* const before = image_.pieces[p].bytes.data() + row;
    const std::byte* const after = now[p].data() + row;
    const auto dim = static_cast<std::size_t>(units_shape_[3]);
    std::copy_n(before, dim * size, outside[p].data() + row);
    const bool is_kept = use_ == Use::input || use_ == Use::counters;
    if (use_ != Use::output && (!is_kept || are_equal(after, before, dim * size))) return;
    for (std::size_t d = 0; d < dim; ++d) {
      const bool same = load_unit(after + d * size, size) == load_unit(before + d * size, size);
      if (same && has_poison && use_ == Use::output && unwritten++ == 0) {
        first_unwritten = element_name(name, b, h, n, d * in_unit);
      }
      if (!same && is_kept && modified++ == 0) {
        first_modified = element_name(name, b, h, n, d * in_unit);
      }
    }
  });
  if (unwritten > 0) {
    report.unwritten_outputs.push_back(fmt::format(
        "{} elements of {} were not written, the first is {}", unwritten, name, first_unwritten));
  }
  if (modified > 0) {
    report.modified_inputs.push_back(fmt::format("{} elements of {} were changed, the first is {}",
                                                 modified, name, first_modified));
  }
  for (std::size_t p = 0; p < image_.pieces.size(); ++p) {
    const BufferImage::Piece& piece = image_.pieces[p];
    if (are_equal(outside[p].data(), piece.bytes.data(), piece.bytes.size())) continue;
    const auto at = static_cast<std::size_t>(std::ranges::mismatch(outside[p], piece.bytes).in1 -
                                             outside[p].begin());
    const auto distance =
        static_cast<std::int64_t>(piece.begin + at) - static_cast<std::int64_t>(first_);
    report.damaged_guards.push_back(fmt::format(
        "{}: the byte {} bytes from its first element, outside every element, was overwritten",
        name, distance));
    return;
  }
}

Tensor<float> GuardedBuffer::values(const Contents& now) const {
  Tensor<float> result(shape_);
  for_each_row([&](auto b, auto h, auto n, std::size_t p, std::size_t row) {
    const std::span<float> to = result.row(b, h, n);
    for_each_stored(now[p].data() + row, type_, to.size(),
                    [&](std::size_t d, std::uint32_t bits) { to[d] = decode(type_, bits); });
  });
  return result;
}

}  // namespace attest
