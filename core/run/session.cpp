#include "core/run/session.hpp"

#include <algorithm>

#include "core/attention/storage.hpp"
#include "core/base/error.hpp"
#include "core/inputs/random.hpp"
#include "core/run/floating_point_mode.hpp"
#include "core/run/fork_watch.hpp"

namespace attest {
namespace {

constexpr std::uint64_t page_end_stream = 91;
// What vector instructions of kernels without needs of their own are used to: features of cases
// count base pointers up to 16 bytes; allocators align a buffer like LSE to a cache line.
constexpr std::size_t strided_alignment = 16, contiguous_alignment = 64;
constexpr std::size_t workspace_alignment = 256;  // include/attest/plugin.h promises it

}  // namespace

void Session::add(std::string name, GuardedBuffer::Use use, const Shape& shape,
                  const TensorLayout& layout, ElementType type, const Tensor<float>* values,
                  std::size_t alignment) {
  const Placement placement{.alignment = alignment,
                            .ends_at_page = draws_end_at_page(buffers_.size())};
  buffers_.push_back({GuardedBuffer(std::move(name), use, shape, layout, type, values, placement)});
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

void Session::add_input(const TensorSpec& tensor, InputIndex index, const TensorLayout& layout,
                        const Tensor<float>& values) {
  const Tensor<float> rows = stored(storage_of(tensor, problem_), values);
  add(std::string(tensor.label), GuardedBuffer::Use::input, rows.shape(), layout,
      tensor.format(problem_), &rows, alignment_of(tensor));
  arguments_[index] = {first_element(buffers_.back()), buffers_.back().guarded.strides()};
}

void Session::add_output(const TensorSpec& tensor, OutputIndex index, const TensorLayout& layout) {
  // Nobody gets the address of what the kernel does not give, and it reads as NaN.
  const bool is_given = kernel_.gives(index);
  add(std::string(tensor.label),
      is_given ? GuardedBuffer::Use::output : GuardedBuffer::Use::workspace,
      stored_shape(tensor, problem_), layout, tensor.format(problem_), nullptr,
      alignment_of(tensor));
  arguments_[index] = {is_given ? first_element(buffers_.back()) : nullptr,
                       buffers_.back().guarded.strides()};
}

Session::Session(const KernelInfo& kernel, const Case& c, const Inputs& inputs, Device& device)
    : kernel_(kernel), device_(device), problem_(c.problem), schedule_seed_(c.schedule_seed) {
  arguments_.problem = problem_;
  arguments_.plan = c.plan;
  const std::size_t workspace =
      kernel.workspace_bytes ? kernel.workspace_bytes(problem_, c.plan) : 0;
  const Shape workspace_shape{1, 1, 1, static_cast<std::int64_t>((workspace + 3) / 4)};
  device_.seed_schedule(c.schedule_seed);
  try {
    for (std::size_t i = 0; i < problem_.operation->inputs().size(); ++i) {
      const InputIndex index{i};
      add_input((*problem_.operation)[index], index, c.layouts[index], inputs[index]);
    }
    for (std::size_t i = 0; i < problem_.operation->outputs().size(); ++i) {
      const OutputIndex index{i};
      add_output((*problem_.operation)[index], index, c.layouts[index]);
    }
    add("workspace", GuardedBuffer::Use::workspace, workspace_shape, {}, ElementType::fp32, nullptr,
        workspace_alignment);
    arguments_.workspace = first_element(buffers_.back());
    indices_.upload(problem_, device_, arguments_, draws_end_at_page(buffers_.size()));
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
    times.push_back(time_launches(kernel_, arguments_, device_, 1));
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

Outputs Session::read_outputs() {
  device_.synchronize();
  report_ = {};
  const std::size_t first_output = problem_.operation->inputs().size();
  const std::size_t output_count = problem_.operation->outputs().size();
  Outputs outputs;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const GuardedBuffer& guarded = buffers_[i].guarded;
    const GuardedBuffer::Contents now = guarded.download(device_, buffers_[i].device);
    guarded.check(now, report_);
    if (i < first_output || i >= first_output + output_count) continue;
    const OutputIndex index{i - first_output};
    const TensorSpec& tensor = (*problem_.operation)[index];
    outputs[index] = restored(storage_of(tensor, problem_), guarded.values(now),
                              tensor.shape(problem_), tensor.absent);
  }
  indices_.check(device_, report_);
  return outputs;
}

}  // namespace attest
