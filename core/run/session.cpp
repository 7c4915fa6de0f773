#include "core/run/session.hpp"

#include <algorithm>
#include <limits>

#include "core/attention/stored_shapes.hpp"
#include "core/base/error.hpp"
#include "core/inputs/random.hpp"
#include "core/run/floating_point_mode.hpp"
#include "core/run/fork_watch.hpp"

namespace attest {
namespace {

// Places in Session::buffers_.
enum : std::size_t { at_q, at_k, at_v, at_o, at_lse, at_workspace, at_index_arrays };

constexpr std::uint64_t page_end_stream = 91;
// What vector instructions of kernels without needs of their own are used to: features of cases
// count base pointers up to 16 bytes; allocators align a buffer like LSE to a cache line.
constexpr std::size_t tensor_alignment = 16, lse_alignment = 64;
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

Session::Session(const KernelInfo& kernel, const Case& c, const Inputs& inputs, Device& device)
    : kernel_(kernel), device_(device), problem_(c.problem), schedule_seed_(c.schedule_seed) {
  using Use = GuardedBuffer::Use;
  const ElementType type = problem_.element_type;
  const std::size_t workspace =
      kernel.workspace_bytes ? kernel.workspace_bytes(problem_, c.plan) : 0;
  const Shape workspace_shape{1, 1, 1, static_cast<std::int64_t>((workspace + 3) / 4)};
  const std::size_t alignment = std::max(
      tensor_alignment, static_cast<std::size_t>(kernel.layout_needs.pointer_alignment_bytes));
  device_.seed_schedule(c.schedule_seed);
  try {
    const bool is_packed = problem_.length_seed != 0;
    std::vector<std::int32_t> queries, keys;
    if (is_packed) {
      queries = query_starts(problem_);
      keys = key_starts(problem_);
    }
    const auto add_input = [&](const char* name, const Tensor<float>& values,
                               const TensorLayout& layout, const auto& starts) {
      if (is_packed) {
        const Tensor<float> rows = packed(values, starts);
        add(name, Use::input, rows.shape(), layout, type, &rows, alignment);
      } else {
        add(name, Use::input, values.shape(), layout, type, &values, alignment);
      }
    };
    add_input("Q", inputs.q, c.layouts.q, queries);
    add_input("K", inputs.k, c.layouts.k, keys);
    add_input("V", inputs.v, c.layouts.v, keys);
    const StoredShapes shapes = stored_shapes(problem_);
    add("O", Use::output, shapes.o, c.layouts.o, type, nullptr, alignment);
    // Where there is no LSE nobody gets its address, and it reads as NaN.
    add("LSE", kernel.has_lse ? Use::output : Use::workspace, shapes.lse, {}, ElementType::fp32,
        nullptr, lse_alignment);
    add("workspace", Use::workspace, workspace_shape, {}, ElementType::fp32, nullptr,
        workspace_alignment);
    indices_.upload(problem_, device_, arguments_, draws_end_at_page(at_index_arrays));
  } catch (...) {
    release();  // a constructor that throws has no destructor
    throw;
  }
  const auto address = [&](std::size_t i) {
    return buffers_[i].device + buffers_[i].guarded.first_byte();
  };
  arguments_.problem = problem_;
  arguments_.plan = c.plan;
  arguments_.q = address(at_q);
  arguments_.k = address(at_k);
  arguments_.v = address(at_v);
  arguments_.o = address(at_o);
  if (kernel.has_lse) arguments_.lse = reinterpret_cast<float*>(address(at_lse));
  arguments_.workspace = address(at_workspace);
  arguments_.q_strides = buffers_[at_q].guarded.strides();
  arguments_.k_strides = buffers_[at_k].guarded.strides();
  arguments_.v_strides = buffers_[at_v].guarded.strides();
  arguments_.o_strides = buffers_[at_o].guarded.strides();
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
  Outputs outputs;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const GuardedBuffer& guarded = buffers_[i].guarded;
    const GuardedBuffer::Contents now = guarded.download(device_, buffers_[i].device);
    guarded.check(now, report_);
    if (i == at_o) outputs.o = guarded.values(now);
    if (i == at_lse) outputs.lse = guarded.values(now);
  }
  indices_.check(device_, report_);
  if (problem_.length_seed != 0) {
    const auto starts = query_starts(problem_);
    outputs.o = unpacked(outputs.o, output_shape(problem_), starts, 0.0F);
    outputs.lse =
        unpacked(outputs.lse, lse_shape(problem_), starts, -std::numeric_limits<float>::infinity());
  }
  return outputs;
}

}  // namespace attest
