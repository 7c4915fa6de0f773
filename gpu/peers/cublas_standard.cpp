#include "gpu/peers/cublas_standard.hpp"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "core/base/error.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "gpu/runtime/cuda_error.hpp"
#include "gpu/runtime/shared_library.hpp"

// Standard attention with cuBLAS: the unfused control with the products that a user of a framework
// has [K0 and KS of S3; F3 of S1 and S4; FA1 Alg. 0].
//
// Idea
//   Three launches: S = Q K^T, P = softmax(scale S) with LSE, O = P V. S lies in memory in fp32, P
//   in the inputs' format. Query heads that share a key head are one product: with contiguous
//   tensors their rows follow each other. A mask saves nothing.
//
// What its PrecisionPlan rests on
//   fp32          cuBLAS does not publish its order of summation. The bound holds for any: no term
//                 passes through more roundings than there are terms. Of TF32 the factors may be
//                 cut, which costs more than rounding.
//   16 bits       sums in fp32, on tensor cores (16 products a step, or 8) or, for a single row or
//                 odd sizes, by fused multiply-adds; 4 products a step at F = 25 cost more than any
//                 of the three.
//   softmax       ours: expf, one IEEE division a weight.

namespace attest {
namespace {

const SharedLibrary& library() {
  static const SharedLibrary opened = [] {
    const SharedLibrary newest("libcublas.so.13", "ATTEST_CUBLAS",
                               cuda_library_folders({"cu13", "cublas"}));
    if (newest.why_missing().empty()) return newest;
    const SharedLibrary older("libcublas.so.12", "ATTEST_CUBLAS", cuda_library_folders({"cublas"}));
    return older.why_missing().empty() ? older : newest;
  }();
  return opened;
}

template <typename Function>
Function* function_of(const char* name) {
  void* const symbol = library().function(name);
  if (symbol == nullptr) {
    throw MachineError(why_no_cublas().empty()
                           ? fmt::format("{} has no function {}", library().path(), name)
                           : why_no_cublas());
  }
  return reinterpret_cast<Function*>(symbol);
}

/// The header has two cublasGemmStridedBatchedEx; the library's is this one.
using Multiply = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                const void*, const void*, cudaDataType, int, long long, const void*,
                                cudaDataType, int, long long, const void*, void*, cudaDataType, int,
                                long long, int, cublasComputeType_t, cublasGemmAlgo_t);

/// The functions used, looked up once.
struct Cublas {
  decltype(&::cublasCreate_v2) create = function_of<decltype(::cublasCreate_v2)>("cublasCreate_v2");
  decltype(&::cublasDestroy_v2) destroy =
      function_of<decltype(::cublasDestroy_v2)>("cublasDestroy_v2");
  decltype(&::cublasSetStream_v2) set_stream =
      function_of<decltype(::cublasSetStream_v2)>("cublasSetStream_v2");
  decltype(&::cublasSetMathMode) set_math_mode =
      function_of<decltype(::cublasSetMathMode)>("cublasSetMathMode");
  decltype(&::cublasGetStatusString) status_string =
      function_of<decltype(::cublasGetStatusString)>("cublasGetStatusString");
  decltype(&::cublasGetVersion_v2) get_version =
      function_of<decltype(::cublasGetVersion_v2)>("cublasGetVersion_v2");
  Multiply* multiply = function_of<Multiply>("cublasGemmStridedBatchedEx");
};

const Cublas& cublas() {
  static const Cublas functions;
  return functions;
}

/// One a host thread: a handle is not for several.
class Handle {
 public:
  Handle() {
    check(cublas().create(&handle_), "cublasCreate");
    // By default the parts of a long product may be added in its 16-bit output type (README.md,
    // finding 8). What may run in TF32 the compute type of each product says.
    check(cublas().set_math_mode(
              handle_, static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                                 CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
          "cublasSetMathMode");
    int version = 0;
    (void)cublas().get_version(handle_, &version);
    version_ = fmt::format("cuBLAS {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { (void)cublas().destroy(handle_); }

  [[nodiscard]] cublasHandle_t in(void* stream) const {
    check(cublas().set_stream(handle_, static_cast<cudaStream_t>(stream)), "cublasSetStream");
    return handle_;
  }
  [[nodiscard]] const std::string& version() const { return version_; }

 private:
  static void check(cublasStatus_t status, std::string_view call) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    throw MachineError(fmt::format("{} failed: {}", call, cublas().status_string(status)));
  }

  cublasHandle_t handle_ = nullptr;
  std::string version_;
};

cudaDataType_t data_type(ElementType type) {
  switch (type) {
    case ElementType::fp16:
      return CUDA_R_16F;
    case ElementType::bf16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

}  // namespace

namespace {

constexpr std::size_t max_workspace_bytes = std::size_t{3} << 33;  // 16 GiB of scores, and weights

template <CublasFp32 fp32>
std::optional<std::string> unsupported(const Problem& p, const Plan&) {
  constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();
  const bool on_tensor_cores = p.element_type != ElementType::fp32 || fp32 == CublasFp32::tf32;
  if (on_tensor_cores && p.head_dim % 8 != 0) {
    return fmt::format("head_dim is {}; allowed on tensor cores: multiples of 8", p.head_dim);
  }
  if (std::max({p.rows(), p.key_len, p.head_dim}) > largest / 8) {
    return fmt::format("{} rows and {} keys; cuBLAS counts in 32 bits", p.rows(), p.key_len);
  }
  if (p.rows() > 0 && p.key_len > static_cast<std::int64_t>(max_workspace_bytes) / 6 / p.rows()) {
    return fmt::format("the score matrix has {} x {} elements; allowed: up to 2^32 of them",
                       p.rows(), p.key_len);
  }
  return std::nullopt;
}

template <CublasFp32 fp32>
void run(const ForwardArguments& a, Device& device) {
  const Problem& p = a.problem;
  const ScoreMatrix matrix = score_matrix_of(p);
  const std::int64_t items = p.batch * p.kv_heads;
  const std::int64_t rows = p.query_heads / p.kv_heads * p.query_len;
  void* const stream = device.native_stream();
  const BatchedMatrix q{a.q, p.head_dim, rows * p.head_dim, p.element_type};
  const BatchedMatrix k{a.k, p.head_dim, p.key_len * p.head_dim, p.element_type, true};
  const BatchedMatrix v{a.v, p.head_dim, p.key_len * p.head_dim, p.element_type};
  const BatchedMatrix o{a.o, p.head_dim, rows * p.head_dim, p.element_type};
  const BatchedMatrix scores{a.workspace, matrix.pitch, rows * matrix.pitch, ElementType::fp32};
  const BatchedMatrix weights{static_cast<const std::byte*>(a.workspace) + matrix.weights_at_bytes,
                              matrix.pitch, rows * matrix.pitch, p.element_type};
  if (p.key_len > 0) {
    multiply_with_cublas(q, k, scores, items, rows, p.head_dim, p.key_len, fp32, stream);
  }
  launch_standard_softmax(a, device);
  if (p.key_len > 0) {
    multiply_with_cublas(weights, v, o, items, rows, p.key_len, p.head_dim, fp32, stream);
  } else {
    const std::size_t bytes =
        static_cast<std::size_t>(p.rows() * p.head_dim) * format_of(p.element_type).size_bytes;
    ATTEST_CUDA_CHECK(cudaMemsetAsync(a.o, 0, bytes, static_cast<cudaStream_t>(stream)));
  }
}

template <CublasFp32 fp32>
PrecisionPlan precision(const Problem& problem, const Plan&) {
  PrecisionPlan plan{.scale_after_dot = true,
                     .exp = library_expf(),
                     .weight_format = problem.element_type,
                     .rescale = Rescale::none,
                     .normaliser_chain = softmax_chain(problem),
                     .division_error = 0x1p-24,
                     .log_error = 0x1p-23};  // logf: 1 ulp
  if (problem.element_type != ElementType::fp32) {
    plan.score = plan.value = {Accumulation::Kind::tensor_core, 4, 25};
  } else if (fp32 == CublasFp32::tf32) {
    plan.score = plan.value = {Accumulation::Kind::tensor_core, 4, 25};
    plan.score_parts = plan.value_parts = {.format = Parts::Format::tf32, .count = 1, .cut = 1};
  }
  return plan;
}

template <CublasFp32 fp32>
KernelInfo kernel(std::string name, std::string summary, std::vector<ElementType> types) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .source = "K0, KS, F3; NVIDIA cuBLAS",
          .executor = Executor::gpu,
          .dataflow = Dataflow::standard,
          .element_types = std::move(types),
          .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
          .is_batch_invariant = false,  // README.md, finding 4
          .ignores_hidden_nan = false,  // a weight of 0 times a hidden value
          .layout_needs = {.contiguous_only = true, .pointer_alignment_bytes = 16},
          .unavailable = [] { return why_no_cublas(); },
          .precision = precision<fp32>,
          .plans = [](const Problem&) { return std::vector<Plan>{Plan{}}; },
          .unsupported = unsupported<fp32>,
          .workspace_bytes = [](const Problem& p, const Plan&) { return score_matrix_of(p).bytes; },
          .launch = run<fp32>};
}

const KernelRegistration in_fp32{kernel<CublasFp32::fp32>(
    "cublas_standard", "standard attention: two cuBLAS products and a softmax, S and P in memory",
    {ElementType::fp32, ElementType::fp16, ElementType::bf16})};
const KernelRegistration in_tf32{kernel<CublasFp32::tf32>(
    "cublas_standard_tf32", "the same with products of fp32 factors in TF32", {ElementType::fp32})};

}  // namespace

const std::string& why_no_cublas() {
  return library().why_missing();
}

void multiply_with_cublas(const BatchedMatrix& a, const BatchedMatrix& b, const BatchedMatrix& c,
                          std::int64_t items, std::int64_t rows, std::int64_t inner,
                          std::int64_t columns, CublasFp32 fp32, void* stream) {
  thread_local const Handle handle;
  note_library(handle.version());
  // cuBLAS counts along columns: what is row-major to us is its transpose to it, so it makes
  // C^T = B^T A^T.
  const auto operation = [](const BatchedMatrix& matrix) {
    return matrix.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  };
  const float one = 1, zero = 0;
  const cublasStatus_t status = cublas().multiply(
      handle.in(stream), operation(b), operation(a), static_cast<int>(columns),
      static_cast<int>(rows), static_cast<int>(inner), &one, b.first, data_type(b.type),
      static_cast<int>(b.pitch), b.item_stride, a.first, data_type(a.type),
      static_cast<int>(a.pitch), a.item_stride, &zero, const_cast<void*>(c.first),
      data_type(c.type), static_cast<int>(c.pitch), c.item_stride, static_cast<int>(items),
      fp32 == CublasFp32::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
      CUBLAS_GEMM_DEFAULT);
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw KernelError(fmt::format("cuBLAS, product of {} times {} x {} x {}: {}", items, rows,
                                  inner, columns, cublas().status_string(status)));
  }
}

}  // namespace attest
