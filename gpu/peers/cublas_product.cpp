#include <cublas_v2.h>
#include <fmt/format.h>

#include <string_view>

#include "core/base/error.hpp"
#include "core/run/kernel.hpp"
#include "gpu/peers/cublas_standard.hpp"
#include "gpu/runtime/shared_library.hpp"

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
