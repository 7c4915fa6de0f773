#include "core/run/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "core/base/error.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "core/run/floating_point_mode.hpp"
#include "core/run/fork_watch.hpp"

namespace attest {
namespace {

constexpr std::uint64_t page_end_stream = 91;
// What vector instructions of kernels without needs of their own are used to: features of cases
// count base pointers up to 16 bytes; allocators align a buffer like LSE to a cache line.
constexpr std::size_t strided_alignment = 16, contiguous_alignment = 64;
constexpr std::size_t workspace_alignment = 256;  // include/attest/plugin.h promises it

/// True if all entries hold the same keys and values in their first rows.
bool have_shared_prefix(const Problem& problem, const Inputs& inputs) {
  const auto specs = problem.operation->inputs();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].rows != Rows::keys) continue;
    const Tensor<float>& tensor = inputs[InputIndex{i}];
    const Shape& shape = tensor.shape();
    for (std::int64_t b = 1; b < shape[0]; ++b) {
      for (std::int64_t h = 0; h < shape[1]; ++h) {
        for (std::int64_t n = 0; n < std::min(problem.shared_keys, shape[2]); ++n) {
          const auto row = tensor.row(b, h, n), first = tensor.row(0, h, n);
          if (std::memcmp(row.data(), first.data(), row.size_bytes()) != 0) return false;
        }
      }
    }
  }
  return true;
}

/// Laws give the entries of a batch values of their own.
Paging paging_for(const Case& c, const Inputs& inputs) {
  Paging paging = c.layouts.paging;
  paging.shares_prefix = paging.shares_prefix && have_shared_prefix(c.problem, inputs);
  return paging;
}

/// V's heads behind K's, or V's slots behind K's.
Tensor<float> side_by_side(const Tensor<float>& k, const Tensor<float>& v, const JoinedPool& pool) {
  Tensor<float> both(pool.shape);
  const Shape& shape = k.shape();
  for (std::int64_t page = 0; page < shape[0]; ++page) {
    for (std::int64_t head = 0; head < shape[1]; ++head) {
      for (std::int64_t slot = 0; slot < shape[2]; ++slot) {
        std::ranges::copy(k.row(page, head, slot), both.row(page, head, slot).begin());
        const auto to = pool.joins_heads ? both.row(page, shape[1] + head, slot)
                                         : both.row(page, head, shape[2] + slot);
        std::ranges::copy(v.row(page, head, slot), to.begin());
      }
    }
  }
  return both;
}

/// Inputs that lie in others' columns: a law that changes one of the two would not be obeyed by any
/// kernel.
void require_parts(const Problem& problem, const Inputs& inputs) {
  for (std::size_t i = 0; i < problem.operation->inputs().size(); ++i) {
    const InputIndex index{i}, holder_index = holder_of(problem, index);
    if (!has_tensor(problem, index) || holder_index == index) continue;
    const Tensor<float>&part = inputs[index], &holder = inputs[holder_index];
    const Shape& shape = part.shape();
    for (std::int64_t b = 0; b < shape[0]; ++b) {
      for (std::int64_t h = 0; h < shape[1]; ++h) {
        for (std::int64_t n = 0; n < shape[2]; ++n) {
          const auto row = part.row(b, h, n);
          if (std::memcmp(row.data(), holder.row(b, h, n).data(), row.size_bytes()) != 0) {
            throw std::logic_error("an input that lies in another one's columns differs from them");
          }
        }
      }
    }
  }
}

/// The first step of a dimension along which all are the same.
Tensor<float> first_along(std::size_t dim, const TensorSpec& tensor, const Tensor<float>& values) {
  Shape shape = values.shape();
  shape.at(dim) = std::min<std::int64_t>(shape.at(dim), 1);
  Tensor<float> first(shape);
  for (std::int64_t b = 0; b < values.shape()[0]; ++b) {
    for (std::int64_t h = 0; h < values.shape()[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        const auto to = first.row(dim == 0 ? 0 : b, dim == 1 ? 0 : h, n);
        const auto from = values.row(b, h, n);
        if ((dim == 0 ? b : h) == 0) {
          std::ranges::copy(from, to.begin());
        } else if (std::memcmp(from.data(), to.data(), from.size_bytes()) != 0) {
          throw std::logic_error(
              fmt::format("{} is not the same along dimension {}", tensor.label, dim));
        }
      }
    }
  }
  return first;
}

}  // namespace

void Session::add(std::string name, GuardedBuffer::Use use, const Shape& shape,
                  const TensorLayout& layout, ElementType type, const Tensor<float>* values,
                  std::size_t alignment, const std::vector<bool>& used_steps,
                  const std::vector<bool>& used_rows) {
  const Placement placement{.alignment = alignment,
                            .ends_at_page = draws_end_at_page(buffers_.size())};
  buffers_.push_back({GuardedBuffer(std::move(name), use, shape, layout, type, values, placement,
                                    used_steps, used_rows)});
  buffers_.back().device = device_.upload(buffers_.back().guarded.image());
}

bool Session::draws_end_at_page(std::size_t buffer) const {
  return schedule_seed_ != 0 && device_.ends_buffers_at_pages() &&
         (random_bits(schedule_seed_, page_end_stream, buffer) & 1) != 0;
}

std::byte* Session::first_element(const Buffer& buffer) const {
  return buffer.device + buffer.guarded.first_byte();
}

std::size_t Session::alignment_of(const TensorSpec& tensor) const {
  if (!tensor.is_strided) return contiguous_alignment;
  return std::max(strided_alignment,
                  static_cast<std::size_t>(kernel_.layout_needs.pointer_alignment_bytes));
}

Tensor<float> Session::as_stored(InputIndex index, const Tensor<float>& values) const {
  const ElementType type = (*problem_.operation)[index].format(problem_);
  return stored(image_.inputs[index.number], values, unused_value(paging_.unused, type));
}

InputArgument Session::add_input(InputIndex index, const TensorLayout& layout,
                                 const Tensor<float>& values) {
  const TensorSpec& tensor = (*problem_.operation)[index];
  const bool is_broadcast = options_.broadcast && tensor.is_strided;
  const Storage& place = image_.inputs[index.number];
  const Tensor<float> rows =
      is_broadcast ? first_along(*options_.broadcast, tensor, values) : as_stored(index, values);
  add(std::string(tensor.label), GuardedBuffer::Use::input, rows.shape(), layout,
      tensor.format(problem_), &rows, alignment_of(tensor), used_steps(place), used_rows(place));
  Strides strides = buffers_.back().guarded.strides();
  if (is_broadcast) (*options_.broadcast == 0 ? strides.batch : strides.head) = 0;
  return {first_element(buffers_.back()), strides};
}

InputArgument Session::add_joined(const Inputs& inputs, const TensorLayout& layout,
                                  InputArgument& values) {
  const TensorSpec& tensor = (*problem_.operation)[forward::k];
  const ElementType type = tensor.format(problem_);  // V's as well
  const Tensor<float> k = as_stored(forward::k, inputs[forward::k]);
  const JoinedPool pool = joined_pool(k.shape(), layout);
  const JoinedPool in_memory = joined_pool(in_units(k.shape(), type), layout);
  const Tensor<float> both = side_by_side(k, as_stored(forward::v, inputs[forward::v]), pool);
  add("K and V", GuardedBuffer::Use::input, pool.shape, layout, type, &both, alignment_of(tensor),
      used_steps(image_.inputs[forward::k.number]));
  std::byte* first = first_element(buffers_.back());
  // A pool without pages has no place behind its first byte.
  const std::int64_t value_offset = both.size() == 0 ? 0 : in_memory.value_offset;
  const std::size_t offset = static_cast<std::size_t>(value_offset) * format_of(type).size_bytes;
  values = {first + offset, in_memory.strides};
  return {first, in_memory.strides};
}

OutputArgument Session::add_output(OutputIndex index, const TensorLayout& layout) {
  // Nobody gets the address of what the kernel does not give, and it reads as NaN.
  const bool is_given = kernel_.gives(index);
  const TensorSpec& tensor = (*problem_.operation)[index];
  add(std::string(tensor.label),
      is_given ? GuardedBuffer::Use::output : GuardedBuffer::Use::workspace,
      image_.stored_shape(index), layout, tensor.format(problem_), nullptr, alignment_of(tensor),
      {}, used_rows(image_.outputs[index.number]));
  buffers_.back().output = index;
  return {is_given ? first_element(buffers_.back()) : nullptr, buffers_.back().guarded.strides()};
}

void Session::add_extra_memory(const ExtraMemory& needed) {
  const auto words = [](std::size_t bytes) {
    return Shape{1, 1, 1, static_cast<std::int64_t>((bytes + 3) / 4)};
  };
  add("workspace", GuardedBuffer::Use::workspace, words(needed.workspace), {}, ElementType::fp32,
      nullptr, workspace_alignment);
  image_.arguments.workspace = first_element(buffers_.back());
  if (needed.counters == 0) return;
  const Tensor<float> zeros(words(needed.counters));
  add("counters", GuardedBuffer::Use::counters, zeros.shape(), {}, ElementType::fp32, &zeros,
      workspace_alignment);
  image_.arguments.counters = reinterpret_cast<unsigned*>(first_element(buffers_.back()));
}

Session::Session(const KernelInfo& kernel, const Case& c, const Inputs& inputs, Device& device,
                 const SessionOptions& options)
    : kernel_(kernel),
      device_(device),
      problem_(c.problem),
      paging_(paging_for(c, inputs)),
      options_(options),
      image_(problem_, paging_, options.entry_gap),
      schedule_seed_(c.schedule_seed) {
  Problem told = problem_;
  told.key_len = std::max(told.key_len, options.capacity);
  const ExtraMemory needed = extra_memory(kernel, told, c.plan);
  device_.seed_schedule(c.schedule_seed);
  try {
    InputArgument joined_values;
    image_.place_inputs([&](InputIndex index) {
      if (paging_.joins_kv && index == forward::v) return joined_values;
      if (paging_.joins_kv && index == forward::k)
        return add_joined(inputs, c.layouts[index], joined_values);
      return add_input(index, c.layouts[index], inputs[index]);
    });
    require_parts(problem_, inputs);
    image_.place_outputs([&](OutputIndex index) { return add_output(index, c.layouts[index]); });
    add_extra_memory(needed);
    image_.indices.upload(problem_, paging_, device_, image_.arguments,
                          draws_end_at_page(buffers_.size()));
    image_.arguments.problem = told;
    image_.arguments.plan = c.plan;
  } catch (...) {
    release();  // a constructor that throws has no destructor
    throw;
  }
}

Session::~Session() {
  release();
}

void Session::release() noexcept {
  for (const Buffer& buffer : buffers_) {
    if (buffer.device != nullptr) device_.release(buffer.device);
  }
  buffers_.clear();
  image_.indices.release(device_);
}

void Session::launch() {
  device_.poison_scratch();
  const FloatingPointMode mode;
  const ForkWatch watch;
  kernel_.launch(image_.arguments, device_);
  changed_mode_ = mode.changes();
  if (watch.child_came_back()) {
    throw MachineError("the kernel called fork(), and the child came back from the launch as well");
  }
}

double Session::timed_launch(int repeats) {
  launch();
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    times.push_back(time_launches(kernel_, image_.arguments, device_, {}));
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

Outputs Session::read_outputs() {
  device_.synchronize();
  report_ = {};
  Outputs outputs;
  for (std::size_t i = 0; i < image_.outputs.size(); ++i) {
    const OutputIndex index{i};
    if (has_tensor(problem_, index)) continue;
    outputs[index] = Tensor<float>((*problem_.operation)[index].shape(problem_));
  }
  for (const Buffer& buffer : buffers_) {
    const GuardedBuffer& guarded = buffer.guarded;
    const GuardedBuffer::Contents now = guarded.download(device_, buffer.device);
    guarded.check(now, report_);
    if (!buffer.output) continue;
    const OutputIndex index = *buffer.output;
    const TensorSpec& tensor = (*problem_.operation)[index];
    outputs[index] = restored(image_.outputs[index.number], guarded.values(now),
                              tensor.shape(problem_), tensor.absent);
  }
  image_.indices.check(device_, report_);
  const auto canonical = problem_.operation->canonical;
  if (canonical != nullptr) canonical(problem_, outputs);
  return outputs;
}

}  // namespace attest
