// The limit of memory: reads every byte of Q, K and V once and computes nothing. It is timed beside
// kernels that are bound by memory, and never judged.
#include <algorithm>
#include <cstdint>

#include "core/base/error.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/run/registry.hpp"
#include "gpu/primitives/launch.cuh"

namespace attest {
namespace {

constexpr int threads = 512;
constexpr int loads_under_way = 8;  ///< of 16 bytes, of each thread: an SM has 256 KB under way

/// A tensor without gaps, in pieces of 16 bytes.
struct Span16 {
  const uint4* first = nullptr;
  std::int64_t count = 0;
};

template <Executor home>
__global__ void __launch_bounds__(threads) read_once(Span16 q, Span16 k, Span16 v, unsigned* to) {
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  unsigned sum = 0;
  for (const Span16& tensor : {q, k, v}) {
    for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < tensor.count;
         i += loads_under_way * step) {
      uint4 values[loads_under_way];
#pragma unroll
      for (int j = 0; j < loads_under_way; ++j) {
        const std::int64_t at = i + j * step;
        values[j] = at < tensor.count ? tensor.first[at] : uint4{};
      }
#pragma unroll
      for (int j = 0; j < loads_under_way; ++j) {
        sum ^= values[j].x ^ values[j].y ^ values[j].z ^ values[j].w;
      }
    }
  }
  // What is read must be of use to somebody, or the compiler leaves it out.
  if (sum == 0x9e3779b9U) *to = sum;
}

Span16 span_of(const ForwardArguments& a, const void* first, const Strides& strides,
               std::int64_t heads, std::int64_t rows, std::int64_t columns, bool is_keys) {
  const bool is_paged = is_keys && a.page_table.page_size > 0;
  std::int64_t outer = a.problem.batch;
  if (is_paged) {
    outer = a.page_table.pool_pages;
    rows = a.page_table.page_size;
  } else if (a.query_starts != nullptr) {
    outer = 1;  // entries follow each other: the batch stride is all there is
    rows = strides.batch / (heads * columns);
  }
  if (strides.batch != heads * rows * columns) {
    throw KernelError("read_once reads tensors without gaps alone");
  }
  return {static_cast<const uint4*>(first), outer * strides.batch * 2 / 16};
}

void run(const ForwardArguments& a, Device& device) {
  const Problem& p = a.problem;
  const Span16 q = span_of(a, a.q, a.q_strides, p.query_heads, p.query_len, p.head_dim, false);
  const Span16 k = span_of(a, a.k, a.k_strides, p.kv_heads, p.key_len, p.head_dim, true);
  const Span16 v = span_of(a, a.v, a.v_strides, p.kv_heads, p.key_len, p.output_dim(), true);
  const auto kernel = read_once<this_executor>;
  const std::int64_t blocks = resident_blocks(kernel, dim3(threads), 0, device);
  launch(kernel, dim3(static_cast<unsigned>(blocks)), dim3(threads), 0, device, q, k, v,
         reinterpret_cast<unsigned*>(a.lse));
}

const KernelRegistration registration{
    {.name = "read_once",
     .summary = "no attention: Q, K and V read once, which is what memory allows",
     .source = "V1",
     .executor = this_executor,
     .role = KernelRole::limit,
     .element_types = {ElementType::fp16, ElementType::bf16},
     .masks = {all_masks().begin(), all_masks().end()},
     .features = {.value_dim = true, .softcap = true, .lengths = true},
     .layout_needs = {.pointer_alignment_bytes = 16,
                      .stride_alignment_bytes = 16,
                      .pages = Pages::also},
     .precision = [](const Problem&, const Plan&) { return PrecisionPlan{}; },
     .plans = [](const Problem&) { return std::vector<Plan>{Plan{}}; },
     .launch = run}};

}  // namespace
}  // namespace attest
