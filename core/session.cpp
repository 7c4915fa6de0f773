#include "core/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/error.hpp"

namespace attest {
namespace {

constexpr std::size_t guard_bytes = 4096;

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
  }
  return 0;
}

void store(std::byte* to, std::uint32_t bits, std::size_t element_size) {
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(to, &bits, element_size);
}

std::uint32_t load(const std::byte* from, std::size_t element_size) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, from, element_size);
  return bits;
}

void fill(std::vector<std::byte>& bytes, std::uint32_t bits, std::size_t element_size) {
  for (std::size_t at = 0; at + element_size <= bytes.size(); at += element_size) {
    store(bytes.data() + at, bits, element_size);
  }
}

template <typename Visit>
void for_each_row(const Shape& shape, const Strides& strides, const Visit& visit) {
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) visit(b, h, n, strides.offset(b, h, n));
    }
  }
}

}  // namespace

Session::Buffer Session::make_buffer(std::string name, const Shape& shape,
                                     const TensorLayout& layout, ElementType type,
                                     const Tensor<float>* values) {
  Buffer buffer;
  const std::size_t size = format_of(type).size_bytes;
  const auto span = static_cast<std::size_t>(span_of(shape, layout)) * size;
  buffer.shape = shape;
  buffer.strides = strides_of(shape, layout);
  buffer.element_size = size;
  buffer.first = guard_bytes + static_cast<std::size_t>(layout.base_offset) * size;
  buffer.is_output = values == nullptr;
  buffer.image.name = std::move(name);
  buffer.image.bytes.resize((buffer.first + span + guard_bytes + 3) / 4 * 4);
  buffer.image.accessible = {buffer.first, buffer.first + span};
  fill(buffer.image.bytes, guard_bits(type), size);
  for_each_row(shape, buffer.strides, [&](auto b, auto h, auto n, std::int64_t offset) {
    const std::size_t begin = buffer.first + static_cast<std::size_t>(offset) * size;
    const auto dim = static_cast<std::size_t>(shape[3]);
    for (std::size_t d = 0; d < dim; ++d) {
      const std::uint32_t bits =
          values != nullptr ? encode(type, values->row(b, h, n)[d]) : poison_bits(type);
      store(buffer.image.bytes.data() + begin + d * size, bits, size);
    }
    if (values != nullptr) buffer.image.initialised.push_back({begin, begin + dim * size});
  });
  return buffer;
}

Session::Session(const KernelInfo& kernel, const Case& c, const Inputs& inputs, Device& device)
    : kernel_(kernel), device_(device), problem_(c.problem) {
  const ElementType type = problem_.element_type;
  buffers_.push_back(make_buffer("Q", query_shape(problem_), c.layouts.q, type, &inputs.q));
  buffers_.push_back(make_buffer("K", key_shape(problem_), c.layouts.k, type, &inputs.k));
  buffers_.push_back(make_buffer("V", key_shape(problem_), c.layouts.v, type, &inputs.v));
  buffers_.push_back(make_buffer("O", query_shape(problem_), c.layouts.o, type, nullptr));
  const Shape lse_shape{problem_.batch, problem_.query_heads, problem_.query_len, 1};
  buffers_.push_back(make_buffer("LSE", lse_shape, {}, ElementType::fp32, nullptr));
  const std::size_t workspace =
      kernel.workspace_bytes ? kernel.workspace_bytes(problem_, c.plan) : 0;
  const Shape workspace_shape{1, 1, 1, static_cast<std::int64_t>((workspace + 3) / 4)};
  buffers_.push_back(make_buffer("workspace", workspace_shape, {}, ElementType::fp32, nullptr));

  device_.seed_schedule(c.schedule_seed);
  for (Buffer& buffer : buffers_) buffer.device = device_.upload(buffer.image);
  const auto address = [&](std::size_t i) { return buffers_[i].device + buffers_[i].first; };
  arguments_ = {.problem = problem_,
                .plan = c.plan,
                .q = address(0),
                .k = address(1),
                .v = address(2),
                .o = address(3),
                .lse = reinterpret_cast<float*>(address(4)),
                .workspace = address(5),
                .q_strides = buffers_[0].strides,
                .k_strides = buffers_[1].strides,
                .v_strides = buffers_[2].strides,
                .o_strides = buffers_[3].strides};
}

Session::~Session() {
  for (const Buffer& buffer : buffers_) device_.release(buffer.device);
}

void Session::launch() {
  kernel_.launch(arguments_, device_);
}

double Session::timed_launch(int repeats) {
  launch();
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) times.push_back(device_.time_ms([this] { launch(); }));
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

/// Compares the buffer with its image: what is outside the elements must not change; an input must
/// not change at all; an output must change everywhere.
void Session::check_buffer(const Buffer& buffer, const std::vector<std::byte>& now) {
  const std::vector<std::byte>& before = buffer.image.bytes;
  const std::size_t size = buffer.element_size;
  const std::string& name = buffer.image.name;
  std::vector<bool> is_element(before.size(), false);
  std::int64_t unwritten = 0;
  std::int64_t modified = 0;
  std::string first_unwritten;
  std::string first_modified;
  for_each_row(buffer.shape, buffer.strides, [&](auto b, auto h, auto n, std::int64_t offset) {
    for (std::int64_t d = 0; d < buffer.shape[3]; ++d) {
      const std::size_t at = buffer.first + static_cast<std::size_t>(offset + d) * size;
      std::fill_n(is_element.begin() + static_cast<std::ptrdiff_t>(at), size, true);
      const bool same = load(now.data() + at, size) == load(before.data() + at, size);
      if (same && buffer.is_output && unwritten++ == 0) {
        first_unwritten = fmt::format("{}[{}, {}, {}, {}]", name, b, h, n, d);
      }
      if (!same && !buffer.is_output && modified++ == 0) {
        first_modified = fmt::format("{}[{}, {}, {}, {}]", name, b, h, n, d);
      }
    }
  });
  if (name != "workspace" && unwritten > 0) {
    report_.unwritten_outputs.push_back(fmt::format(
        "{} elements of {} were not written, the first is {}", unwritten, name, first_unwritten));
  }
  if (modified > 0) {
    report_.modified_inputs.push_back(fmt::format("{} elements of {} were changed, the first is {}",
                                                  modified, name, first_modified));
  }
  for (std::size_t at = 0; at < before.size(); ++at) {
    if (is_element[at] || now[at] == before[at]) continue;
    const auto distance = static_cast<std::int64_t>(at) - static_cast<std::int64_t>(buffer.first);
    report_.damaged_guards.push_back(fmt::format(
        "{}: the byte {} bytes from its first element, outside every element, was overwritten",
        name, distance));
    break;
  }
}

Outputs Session::read_outputs() {
  device_.synchronize();
  report_ = {};
  Outputs outputs{.o = Tensor<float>(query_shape(problem_)),
                  .lse = Tensor<float>(buffers_[4].shape)};
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const Buffer& buffer = buffers_[i];
    std::vector<std::byte> now(buffer.image.bytes.size());
    device_.download(buffer.device, now);
    check_buffer(buffer, now);
    if (i != 3 && i != 4) continue;
    Tensor<float>& values = i == 3 ? outputs.o : outputs.lse;
    const ElementType type = i == 3 ? problem_.element_type : ElementType::fp32;
    for_each_row(buffer.shape, buffer.strides, [&](auto b, auto h, auto n, std::int64_t offset) {
      for (std::size_t d = 0; d < static_cast<std::size_t>(buffer.shape[3]); ++d) {
        const std::size_t at =
            buffer.first + (static_cast<std::size_t>(offset) + d) * buffer.element_size;
        values.row(b, h, n)[d] = decode(type, load(now.data() + at, buffer.element_size));
      }
    });
  }
  return outputs;
}

}  // namespace attest
