// cuDNN's backward pass of scaled dot product attention as a kernel under test, through the graph
// that its frontend composes: dense tensors, grouped heads, both causal masks.
//
// Two kernels: as cuDNN does it, with sums into dQ in any order, and with its deterministic
// algorithm, which on Hopper writes dS to memory and forms dQ as a product of its own.
// What the BackwardRoundings rest on: gpu/peers/fused_backward_roundings.hpp.
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "core/operations/backward_arguments.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "gpu/peers/cudnn_graph.hpp"
#include "gpu/peers/cudnn_sdpa.hpp"
#include "gpu/peers/fused_backward_roundings.hpp"
#include "gpu/runtime/device_buffer.hpp"

namespace attest {
namespace {

enum class Sums { in_any_order, in_order };

class BackwardPlan {
 public:
  BackwardPlan(const BackwardArguments& a, Sums sums, const CudnnHandle& handle) : handle_(handle) {
    const Problem& p = a.problem;
    set_cudnn_types(graph_, p.element_type);
    auto options =
        fe::graph::SDPA_backward_attributes().set_name("sdpa_backward").set_attn_scale(p.scale);
    options.set_deterministic_algorithm(sums == Sums::in_order);
    set_cudnn_mask(options, p.mask);
    const auto lse = graph_.tensor(fe::graph::Tensor_attributes()
                                       .set_name("lse")
                                       .set_uid(lse_id)
                                       .set_data_type(fe::DataType_t::FLOAT)
                                       .set_dim(cudnn_lse_dims(p))
                                       .set_stride(cudnn_lse_strides(p)));
    const auto [dq, dk, dv] = graph_.sdpa_backward(
        cudnn_input(graph_, "q", q_id, query_shape(p), a.q_strides),
        cudnn_input(graph_, "k", k_id, key_shape(p), a.k_strides),
        cudnn_input(graph_, "v", v_id, value_shape(p), a.v_strides),
        cudnn_input(graph_, "o", o_id, output_shape(p), a.o_strides),
        cudnn_input(graph_, "do", do_id, output_shape(p), a.do_strides), lse, options);
    const auto output = [](const CudnnTensor& tensor, CudnnTensorId id, const Shape& shape,
                           const Strides& strides) {
      tensor->set_output(true)
          .set_uid(id)
          .set_dim(cudnn_dims(shape))
          .set_stride(cudnn_dims(strides));
    };
    output(dq, dq_id, query_shape(p), a.dq_strides);
    output(dk, dk_id, key_shape(p), a.dk_strides);
    output(dv, dv_id, value_shape(p), a.dv_strides);
    check_cudnn(graph_.build(handle_.get(), {fe::HeurMode_t::A}), "building a plan");
    std::int64_t bytes = 0;
    check_cudnn(graph_.get_workspace_size(bytes), "asking for the workspace's size");
    workspace_ = DeviceBuffer<std::byte>(static_cast<std::size_t>(bytes));
  }

  void run(const BackwardArguments& a, void* stream) {
    handle_.use(stream);
    CudnnAddresses addresses{{q_id, const_cast<void*>(a.q)},
                             {k_id, const_cast<void*>(a.k)},
                             {v_id, const_cast<void*>(a.v)},
                             {o_id, const_cast<void*>(a.o)},
                             {lse_id, const_cast<float*>(a.lse)},
                             {do_id, const_cast<void*>(a.d_o)},
                             {dq_id, a.dq},
                             {dk_id, a.dk},
                             {dv_id, a.dv}};
    check_cudnn(graph_.execute(handle_.get(), addresses, workspace_.data()), "running a plan");
  }

 private:
  const CudnnHandle& handle_;
  fe::graph::Graph graph_;
  DeviceBuffer<std::byte> workspace_;
};

/// Everything that a plan is built from, its scale among it (cudnn_sdpa.cpp).
auto key_of(const BackwardArguments& a, Sums sums) {
  const Problem& p = a.problem;
  const auto strides = [](const Strides& s) { return std::tuple(s.batch, s.head, s.row); };
  return std::tuple(
      sums,
      std::tuple(p.batch, p.query_heads, p.kv_heads, p.query_len, p.key_len, p.head_dim, p.mask,
                 p.element_type, p.scale),
      std::tuple(strides(a.q_strides), strides(a.k_strides), strides(a.v_strides),
                 strides(a.o_strides), strides(a.do_strides)),
      std::tuple(strides(a.dq_strides), strides(a.dk_strides), strides(a.dv_strides)));
}

/// Plan of the calling host thread, whose device it is.
BackwardPlan& plan_of(const BackwardArguments& arguments, Sums sums) {
  // Destroyed in reverse order: plans before their handle.
  thread_local const CudnnHandle handle;
  thread_local std::map<decltype(key_of(arguments, sums)), std::unique_ptr<BackwardPlan>> plans;
  const auto key = key_of(arguments, sums);
  if (const auto found = plans.find(key); found != plans.end()) return *found->second;
  if (plans.size() >= kept_cudnn_plans) plans.clear();
  auto plan = std::make_unique<BackwardPlan>(arguments, sums, handle);  // throws: nothing is kept
  return *(plans[key] = std::move(plan));
}

KernelInfo kernel(std::string name, std::string summary, Sums sums) {
  KernelInfo info;
  info.operation = &backward_operation;
  info.name = std::move(name);
  info.summary = std::move(summary);
  info.source = "NVIDIA cuDNN 9";
  info.executor = Executor::gpu;
  info.element_types = {ElementType::fp16, ElementType::bf16};
  info.masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right};
  info.is_deterministic = sums == Sums::in_order;
  // Nothing is said of how it chooses its kernels.
  info.is_batch_invariant = false;
  info.depends_on_alignment = true;
  info.ignores_hidden_nan = false;
  info.layout_needs = {.pointer_alignment_bytes = 16, .stride_alignment_bytes = 16};
  info.unavailable = [] { return why_no_cudnn(); };
  info.precision = [](const Problem& p, const Plan&) { return cudnn_backward_roundings(p); };
  info.plans = [](const Problem&) { return std::vector<Plan>{Plan{}}; };
  info.unsupported = [](const Problem& p, const Plan&) { return why_no_cudnn_backward(p); };
  info.launch = [sums](const BackwardArguments& a, Device& device) {
    plan_of(a, sums).run(a, device.native_stream());
    note_library(cudnn_version());
  };
  return info;
}

const KernelRegistration in_any_order{
    kernel("cudnn_sdpa_backward", "cuDNN's gradients of attention, through the cuDNN frontend",
           Sums::in_any_order)};
const KernelRegistration in_order{
    kernel("cudnn_sdpa_backward_deterministic",
           "cuDNN's gradients by its deterministic algorithm, through the cuDNN frontend",
           Sums::in_order)};

}  // namespace
}  // namespace attest
