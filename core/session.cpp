#include "core/session.hpp"

#include <algorithm>

namespace attest {
namespace {

// Places in Session::buffers_.
enum : std::size_t { at_q, at_k, at_v, at_o, at_lse, at_workspace };

}  // namespace

void Session::add(std::string name, GuardedBuffer::Use use, const Shape& shape,
                  const TensorLayout& layout, ElementType type, const Tensor<float>* values) {
  buffers_.push_back({GuardedBuffer(std::move(name), use, shape, layout, type, values)});
  buffers_.back().device = device_.upload(buffers_.back().guarded.image());
}

Session::Session(const KernelInfo& kernel, const Case& c, const Inputs& inputs, Device& device)
    : kernel_(kernel), device_(device), problem_(c.problem) {
  using Use = GuardedBuffer::Use;
  const ElementType type = problem_.element_type;
  const Shape lse_shape{problem_.batch, problem_.query_heads, problem_.query_len, 1};
  const std::size_t workspace =
      kernel.workspace_bytes ? kernel.workspace_bytes(problem_, c.plan) : 0;
  const Shape workspace_shape{1, 1, 1, static_cast<std::int64_t>((workspace + 3) / 4)};
  device_.seed_schedule(c.schedule_seed);
  try {
    add("Q", Use::input, query_shape(problem_), c.layouts.q, type, &inputs.q);
    add("K", Use::input, key_shape(problem_), c.layouts.k, type, &inputs.k);
    add("V", Use::input, key_shape(problem_), c.layouts.v, type, &inputs.v);
    add("O", Use::output, query_shape(problem_), c.layouts.o, type, nullptr);
    add("LSE", Use::output, lse_shape, {}, ElementType::fp32, nullptr);
    add("workspace", Use::workspace, workspace_shape, {}, ElementType::fp32, nullptr);
  } catch (...) {
    release();  // a constructor that throws has no destructor
    throw;
  }
  const auto address = [&](std::size_t i) {
    return buffers_[i].device + buffers_[i].guarded.first_byte();
  };
  arguments_ = {.problem = problem_,
                .plan = c.plan,
                .q = address(at_q),
                .k = address(at_k),
                .v = address(at_v),
                .o = address(at_o),
                .lse = reinterpret_cast<float*>(address(at_lse)),
                .workspace = address(at_workspace),
                .q_strides = buffers_[at_q].guarded.strides(),
                .k_strides = buffers_[at_k].guarded.strides(),
                .v_strides = buffers_[at_v].guarded.strides(),
                .o_strides = buffers_[at_o].guarded.strides()};
}

Session::~Session() {
  release();
}

void Session::release() noexcept {
  for (const Buffer& buffer : buffers_) {
    if (buffer.device != nullptr) device_.release(buffer.device);
  }
  buffers_.clear();
}

void Session::launch() {
  device_.poison_scratch();
  kernel_.launch(arguments_, device_);
}

double Session::timed_launch(int repeats) {
  launch();
  std::vector<double> times;
  const auto work = [this] { kernel_.launch(arguments_, device_); };
  for (int i = 0; i < repeats; ++i) times.push_back(device_.time_ms(work));
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
  return outputs;
}

}  // namespace attest
