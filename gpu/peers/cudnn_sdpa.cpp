#include "gpu/peers/cudnn_sdpa.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "core/base/error.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "gpu/peers/cudnn_graph.hpp"
#include "gpu/peers/fused_precision.hpp"
#include "gpu/runtime/device_buffer.hpp"

// cuDNN's scaled dot product attention as a kernel under test.
// Its PrecisionPlan is that of any fused kernel (fused_precision.hpp): cuDNN does not publish its
// roundings, only its interface, fp32 compute and intermediate types, 16-bit inputs and outputs.

namespace attest {
namespace {

CudnnTensor integers(fe::graph::Graph& graph, const char* name, CudnnTensorId id,
                     std::int64_t batch, std::int64_t count, std::int64_t stride) {
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_name(name)
                          .set_uid(id)
                          .set_data_type(fe::DataType_t::INT32)
                          .set_dim({batch, 1, count, 1})
                          .set_stride({stride, stride, 1, 1}));
}

bool is_paged(const ForwardArguments& a) {
  return a.page_table.page_size > 0;
}

/// Columns of the page table that keys may use: Problem's key_len may be more than there is room
/// for.
std::int64_t used_columns(const ForwardArguments& a) {
  const std::int64_t size = a.page_table.page_size;
  return std::min(a.page_table.columns, (a.problem.key_len + size - 1) / size);
}

/// A pool of pages takes the place of the batch.
Shape stored_key_shape(const ForwardArguments& a) {
  const Problem& p = a.problem;
  if (!is_paged(a)) return key_shape(p);
  return {a.page_table.pool_pages, p.kv_heads, a.page_table.page_size, p.head_dim};
}

class BuiltPlan final : public CudnnSdpaPlan {
 public:
  BuiltPlan(const ForwardArguments& a, const CudnnHandle& handle) : handle_(handle) {
    const Problem& p = a.problem;
    set_cudnn_types(graph_, p.element_type);
    auto options =
        fe::graph::SDPA_attributes().set_name("sdpa").set_generate_stats(true).set_attn_scale(
            p.scale);
    set_cudnn_mask(options, p.mask);
    const auto q = cudnn_input(graph_, "q", q_id, query_shape(p), a.q_strides);
    const auto k = cudnn_input(graph_, "k", k_id, stored_key_shape(a), a.k_strides);
    const auto v = cudnn_input(graph_, "v", v_id, stored_key_shape(a), a.v_strides);
    if (is_paged(a)) use_pages(options, a);
    auto [o, lse] = graph_.sdpa(q, k, v, options);
    o->set_output(true)
        .set_uid(o_id)
        .set_dim(cudnn_dims(query_shape(p)))
        .set_stride(cudnn_dims(a.o_strides));
    lse->set_output(true)
        .set_uid(lse_id)
        .set_data_type(fe::DataType_t::FLOAT)
        .set_dim(cudnn_lse_dims(p))
        .set_stride(cudnn_lse_strides(p));
    check_cudnn(graph_.build(handle_.get(), {fe::HeurMode_t::A}), "building a plan");
    std::int64_t bytes = 0;
    check_cudnn(graph_.get_workspace_size(bytes), "asking for the workspace's size");
    workspace_ = DeviceBuffer<std::byte>(static_cast<std::size_t>(bytes));
  }

  void run(const ForwardArguments& a, void* stream) override {
    handle_.use(stream);
    CudnnAddresses addresses{{q_id, const_cast<void*>(a.q)},
                             {k_id, const_cast<void*>(a.k)},
                             {v_id, const_cast<void*>(a.v)},
                             {o_id, a.o},
                             {lse_id, a.lse}};
    if (is_paged(a)) {
      addresses[table_id] = const_cast<std::int32_t*>(a.page_table.pages);
      addresses[query_lengths_id] = query_lengths_.data();
      addresses[key_lengths_id] = const_cast<std::int32_t*>(a.page_table.lengths);
    }
    check_cudnn(graph_.execute(handle_.get(), addresses, workspace_.data()), "running a plan");
  }

 private:
  /// One table for K and V. How many keys an entry has is read on the device; how many queries is
  /// the same for all, and cuDNN asks all the same.
  void use_pages(fe::graph::SDPA_attributes& options, const ForwardArguments& a) {
    const Problem& p = a.problem;
    const std::int64_t columns = used_columns(a);
    query_lengths_ = DeviceBuffer<std::int32_t>(static_cast<std::size_t>(p.batch));
    query_lengths_.copy_from(std::vector<std::int32_t>(static_cast<std::size_t>(p.batch),
                                                       static_cast<std::int32_t>(p.query_len)));
    const auto table =
        integers(graph_, "page_table", table_id, p.batch, columns, a.page_table.columns);
    options.set_padding_mask(true)
        .set_seq_len_q(integers(graph_, "query_lengths", query_lengths_id, p.batch, 1, 1))
        .set_seq_len_kv(integers(graph_, "key_lengths", key_lengths_id, p.batch, 1, 1))
        .set_paged_attention_k_table(table)
        .set_paged_attention_v_table(table)
        .set_paged_attention_max_seq_len_kv(
            static_cast<int>(std::min(p.key_len, columns * a.page_table.page_size)));
  }

  const CudnnHandle& handle_;
  fe::graph::Graph graph_;
  DeviceBuffer<std::int32_t> query_lengths_;  ///< [batch], with pages
  DeviceBuffer<std::byte> workspace_;
};

/// Everything that the plan is built from. The scale is part of it: a plan holds it as a constant,
/// and a key without it would replay another problem's scale.
auto key_of(const ForwardArguments& a) {
  const Problem& p = a.problem;
  const auto strides = [](const Strides& s) { return std::tuple(s.batch, s.head, s.row); };
  return std::tuple(
      std::tuple(p.batch, p.query_heads, p.kv_heads, p.query_len, p.key_len, p.head_dim, p.mask,
                 p.element_type, p.scale),
      strides(a.q_strides), strides(a.k_strides), strides(a.v_strides), strides(a.o_strides),
      std::tuple(a.page_table.page_size, a.page_table.pool_pages, a.page_table.columns));
}

}  // namespace

namespace {

/// A sentence for what cuDNN's documentation and the frontend's checks exclude.
std::optional<std::string> unsupported(const Problem& problem, const Plan&) {
  const auto outside = [](std::string what, std::int64_t got, std::string allowed) {
    return std::move(what) + " is " + std::to_string(got) + "; cuDNN allows " + std::move(allowed);
  };
  if (problem.head_dim % 8 != 0 || problem.head_dim > 256) {
    return outside("head_dim", problem.head_dim, "multiples of 8 up to 256");
  }
  if (auto reason = why_no_such_grid(problem)) return reason;
  if (problem.key_len == 0) return outside("key_len", 0, "at least 1");
  if (!(problem.scale >= std::numeric_limits<float>::min())) {
    return fmt::format(
        "scale is {}; cuDNN is right for positive normal numbers only (gpu/peers/README.md, "
        "finding 1)",
        problem.scale);
  }
  if (problem.mask == Mask::causal_bottom_right && problem.query_len > problem.key_len) {
    return outside(
        "query_len", problem.query_len,
        "at most key_len, " + std::to_string(problem.key_len) + ", with a bottom-right mask");
  }
  return std::nullopt;
}

void run(const ForwardArguments& arguments, Device& device) {
  CudnnSdpaPlan::of(arguments).run(arguments, device.native_stream());
  note_library(cudnn_version());
}

const KernelRegistration registration{
    {.name = "cudnn_sdpa",
     .summary = "cuDNN's fused attention, through the cuDNN frontend",
     .source = "NVIDIA cuDNN 9",
     .executor = Executor::gpu,
     .element_types = {ElementType::fp16, ElementType::bf16},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
     .is_deterministic = false,    // README.md, finding 6
     .reads_lengths = true,        // with pages
     .shares_reference = true,     // nothing is known of how its rows decide
     .ignores_hidden_nan = false,  // README.md, finding 2
     // Loads of 16 bytes and TMA; a misaligned stride gives wrong results without a word
     // (cudnn-frontend#1571).
     .layout_needs = {.pointer_alignment_bytes = 16,
                      .stride_alignment_bytes = 16,
                      .tables = TableForm::dense,
                      .pages = Pages::also,
                      .page_sizes = {1, 2, 4, 8, 16, 32, 64, 128, 256}},
     .unavailable = [] { return why_no_cudnn(); },
     .precision = [](const Problem& problem, const Plan&) { return fused_precision(problem); },
     .plans = [](const Problem&) { return std::vector<Plan>{Plan{}}; },
     .unsupported = unsupported,
     .launch = run}};

}  // namespace

CudnnSdpaPlan& CudnnSdpaPlan::of(const ForwardArguments& arguments) {
  // Destroyed in reverse order: plans before their handle.
  thread_local const CudnnHandle handle;
  thread_local std::map<decltype(key_of(arguments)), std::unique_ptr<BuiltPlan>> plans;
  const auto key = key_of(arguments);
  if (const auto found = plans.find(key); found != plans.end()) return *found->second;
  if (plans.size() >= kept_cudnn_plans) plans.clear();
  auto plan = std::make_unique<BuiltPlan>(arguments, handle);  // throws: nothing is kept
  return *(plans[key] = std::move(plan));
}

}  // namespace attest
