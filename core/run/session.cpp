#include "core/run/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "core/attention/storage.hpp"
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

/// A law that changes one of the two would not be obeyed by any kernel.
void require_part(const Tensor<float>& holder, const Tensor<float>& part) {
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

Storage Session::storage(const TensorSpec& tensor) const {
  return storage_of(tensor, problem_, paging_, options_.entry_gap);
}

Tensor<float> Session::as_stored(const TensorSpec& tensor, const Storage& storage,
                                 const Tensor<float>& values) const {
  return stored(storage, values, unused_value(paging_.unused, tensor.format(problem_)));
}

void Session::add_input(const TensorSpec& tensor, InputIndex index, const TensorLayout& layout,
                        const Tensor<float>& values) {
  const bool is_broadcast = options_.broadcast && tensor.is_strided;
  const Storage place = storage(tensor);
  const Tensor<float> rows = is_broadcast ? first_along(*options_.broadcast, tensor, values)
                                          : as_stored(tensor, place, values);
  add(std::string(tensor.label), GuardedBuffer::Use::input, rows.shape(), layout,
      tensor.format(problem_), &rows, alignment_of(tensor), used_steps(place), used_rows(place));
  Strides strides = buffers_.back().guarded.strides();
  if (is_broadcast) (*options_.broadcast == 0 ? strides.batch : strides.head) = 0;
  arguments_[index] = {first_element(buffers_.back()), strides};
}

void Session::add_joined(const Inputs& inputs, const TensorLayout& layout) {
  const TensorSpec& tensor = (*problem_.operation)[forward::k];
  const ElementType type = tensor.format(problem_);  // V's as well
  const Storage place = storage(tensor);
  const Tensor<float> k = as_stored(tensor, place, inputs[forward::k]);
  const JoinedPool pool = joined_pool(k.shape(), layout);
  const Tensor<float> both = side_by_side(k, as_stored(tensor, place, inputs[forward::v]), pool);
  add("K and V", GuardedBuffer::Use::input, pool.shape, layout, type, &both, alignment_of(tensor),
      used_steps(place));
  std::byte* first = first_element(buffers_.back());
  const std::size_t offset =
      static_cast<std::size_t>(pool.value_offset) * format_of(type).size_bytes;
  arguments_[forward::k] = {first, pool.strides};
  arguments_[forward::v] = {first + offset, pool.strides};
}

void Session::add_output(const TensorSpec& tensor, OutputIndex index, const TensorLayout& layout) {
  // Nobody gets the address of what the kernel does not give, and it reads as NaN.
  const bool is_given = kernel_.gives(index);
  const Storage place = storage(tensor);
  add(std::string(tensor.label),
      is_given ? GuardedBuffer::Use::output : GuardedBuffer::Use::workspace,
      stored_shape(place, tensor.shape(problem_)), layout, tensor.format(problem_), nullptr,
      alignment_of(tensor), {}, used_rows(place));
  buffers_.back().output = index;
  arguments_[index] = {is_given ? first_element(buffers_.back()) : nullptr,
                       buffers_.back().guarded.strides()};
}

Session::Session(const KernelInfo& kernel, const Case& c, const Inputs& inputs, Device& device,
                 const SessionOptions& options)
    : kernel_(kernel),
      device_(device),
      problem_(c.problem),
      paging_(paging_for(c, inputs)),
      options_(options),
      schedule_seed_(c.schedule_seed) {
  Problem& told = arguments_.problem;
  told = problem_;
  told.key_len = std::max(told.key_len, options.capacity);
  arguments_.plan = c.plan;
  arguments_.entry_gap = options.entry_gap;
  const std::size_t workspace = kernel.workspace_bytes ? kernel.workspace_bytes(told, c.plan) : 0;
  const Shape workspace_shape{1, 1, 1, static_cast<std::int64_t>((workspace + 3) / 4)};
  device_.seed_schedule(c.schedule_seed);
  try {
    for (std::size_t i = 0; i < problem_.operation->inputs().size(); ++i) {
      const InputIndex index{i};
      if (!has_tensor(problem_, index)) continue;
      if (const InputIndex holder = holder_of(problem_, index); holder != index) {
        require_part(inputs[holder], inputs[index]);
        arguments_[index] = arguments_[holder];
        continue;
      }
      if (paging_.joins_kv && index == forward::k) add_joined(inputs, c.layouts[index]);
      if (paging_.joins_kv && (index == forward::k || index == forward::v)) continue;
      add_input((*problem_.operation)[index], index, c.layouts[index], inputs[index]);
    }
    for (std::size_t i = 0; i < problem_.operation->outputs().size(); ++i) {
      const OutputIndex index{i};
      add_output((*problem_.operation)[index], index, c.layouts[index]);
    }
    add("workspace", GuardedBuffer::Use::workspace, workspace_shape, {}, ElementType::fp32, nullptr,
        workspace_alignment);
    arguments_.workspace = first_element(buffers_.back());
    const std::size_t counters = kernel.counter_bytes ? kernel.counter_bytes(told, c.plan) : 0;
    if (counters > 0) {
      const Tensor<float> zeros({1, 1, 1, static_cast<std::int64_t>((counters + 3) / 4)});
      add("counters", GuardedBuffer::Use::counters, zeros.shape(), {}, ElementType::fp32, &zeros,
          workspace_alignment);
      arguments_.counters = reinterpret_cast<unsigned*>(first_element(buffers_.back()));
    }
    indices_.upload(problem_, paging_, device_, arguments_, draws_end_at_page(buffers_.size()));
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
  indices_.release(device_);
}

void Session::launch() {
  device_.poison_scratch();
  const FloatingPointMode mode;
  const ForkWatch watch;
  kernel_.launch(arguments_, device_);
  changed_mode_ = mode.changes();
  if (watch.child_came_back()) {
    throw MachineError("the kernel called fork(), and the child came back from the launch as well");
  }
}

double Session::timed_launch(int repeats) {
  launch();
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    times.push_back(time_launches(kernel_, arguments_, device_, {}));
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

Outputs Session::read_outputs() {
  device_.synchronize();
  report_ = {};
  Outputs outputs;
  for (const Buffer& buffer : buffers_) {
    const GuardedBuffer& guarded = buffer.guarded;
    const GuardedBuffer::Contents now = guarded.download(device_, buffer.device);
    guarded.check(now, report_);
    if (!buffer.output) continue;
    const OutputIndex index = *buffer.output;
    const TensorSpec& tensor = (*problem_.operation)[index];
    outputs[index] =
        restored(storage(tensor), guarded.values(now), tensor.shape(problem_), tensor.absent);
  }
  indices_.check(device_, report_);
  return outputs;
}

}  // namespace attest
