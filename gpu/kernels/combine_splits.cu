// combine_splits: merges the partial results (O_p, LSE_p) of key splits or of the GPUs of a ring
// into (O, LSE) [flash decoding; FA2's splits].
//
// Idea
//   One warp a row. Its lanes first share the parts: each turns every 32nd LSE_p into a weight
//   exp(LSE_p - M) in shared memory, M being the largest. Then they share the columns: each sums
//   weight times O_p over the parts in order, so that neighbouring lanes read neighbouring numbers,
//   and divides once by the sum of the weights.
// Resident
//   shared     weights [warps, P]
// Legend
//   P parts; M the row's largest LSE_p; L the sum of its weights.
// Empty parts
//   LSE_p = -infinity: the weight is 0 and O_p is not read, so that whatever it holds stays out.
//   All empty: L = 0, O = 0, LSE = -infinity. A NaN LSE_p is dropped by fmaxf and comes back as a
//   NaN weight.
// Limits
//   P as shared memory allows: 48 KiB over the warps of a block.
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include <algorithm>

#include "core/attention/merge_roundings.hpp"
#include "core/operations/combine_arguments.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "gpu/primitives/cuda_type.cuh"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/online_softmax.cuh"

namespace attest {
namespace {

constexpr int lanes = 32;
constexpr std::int64_t max_shared_bytes = 48 * 1024;

template <typename Partial, typename Output>
__global__ void combine_splits(CombineArguments a) {
  const Problem& problem = a.problem;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int warp = static_cast<int>(threadIdx.x) / lanes;
  const int P = static_cast<int>(problem.parts);
  const std::int64_t row = blockIdx.x * static_cast<std::int64_t>(a.plan.warps) + warp;
  if (row >= problem.rows()) return;
  const std::int64_t query = row % problem.query_len;
  const std::int64_t head = row / problem.query_len % problem.query_heads;
  const std::int64_t entry = row / problem.query_len / problem.query_heads;

  const float* const lse = a.partial_lse + (row - query) * P + query;  // of part p: [p * query_len]
  float M = -INFINITY;
  for (int p = 0; p < P; ++p) M = fmaxf(M, lse[p * problem.query_len]);

  float* const weights = dynamic_shared<float>() + warp * P;
  for (int p = lane; p < P; p += lanes) {
    weights[p] = exp_below<LibraryExp>(lse[p * problem.query_len], M);
  }
  __syncwarp();
  float L = 0.0F;
  for (int p = 0; p < P; ++p) L += weights[p];

  const auto* const o_p =
      static_cast<const Partial*>(a.partial_o) + a.partial_strides.offset(entry, head, query);
  const std::int64_t part_stride = problem.query_len * a.partial_strides.row;
  auto* const o = static_cast<Output*>(a.o) + a.o_strides.offset(entry, head, query);
  for (std::int64_t c = lane; c < problem.head_dim; c += lanes) {
    float sum = 0.0F;
    for (int p = 0; p < P; ++p) {
      if (lse[p * problem.query_len] == -INFINITY) continue;
      sum = fmaf(weights[p], to_float(o_p[p * part_stride + c]), sum);
    }
    o[c] = from_float<Output>(sum / divisor_of(L));
  }
  if (lane == 0) a.lse[row] = log_sum_exp(M, L);
}

using Kernel = void (*)(CombineArguments);

Kernel kernel_for(ElementType partial, ElementType output) {
  return with_cuda_type(partial, [&]<typename Partial>(std::type_identity<Partial>) {
    return with_cuda_type(output, []<typename Output>(std::type_identity<Output>) -> Kernel {
      return combine_splits<Partial, Output>;
    });
  });
}

std::int64_t shared_bytes(const Problem& problem, const Plan& plan) {
  return plan.warps * problem.parts * static_cast<std::int64_t>(sizeof(float));
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  if (shared_bytes(problem, plan) <= max_shared_bytes) return std::nullopt;
  return "the weights of " + std::to_string(problem.parts) + " parts take " +
         std::to_string(shared_bytes(problem, plan)) +
         " bytes of shared memory; allowed: " + std::to_string(max_shared_bytes);
}

void run(const CombineArguments& a, Device& device) {
  if (a.problem.rows() == 0) return;
  const auto warps = static_cast<unsigned>(a.plan.warps);
  const auto blocks = static_cast<unsigned>((a.problem.rows() + warps - 1) / warps);
  launch(kernel_for(a.problem.partial_type, a.problem.element_type), dim3(blocks),
         dim3(warps * lanes), static_cast<std::size_t>(shared_bytes(a.problem, a.plan)), device, a);
}

const KernelRegistration registration{
    {.operation = &combine_operation,
     .name = "combine_splits",
     .summary = "merges partial results, a warp a row",
     .source = "flash decoding; FA2's key splits",
     .executor = this_executor,
     .element_types = {ElementType::fp32, ElementType::fp16, ElementType::bf16},
     .masks = {Mask::none},
     .features = {.no_queries = true},
     .precision =
         [](const Problem& problem, const Plan&) {
           return MergeRoundings{.exp = library_expf(),
                                 .division_error = 0x1p-24,
                                 .log_error = 0x1p-23,
                                 .output = problem.element_type};
         },
     .plans =
         [](const Problem&) {
           return std::vector<Plan>{{.warps = 1}, {.warps = 4}};
         },
     .unsupported = unsupported,
     .launch = run}};

}  // namespace
}  // namespace attest
