#pragma once

#include <cstdint>
#include <string>

#include "core/attention/element_type.hpp"

namespace attest {

/// Empty when the cuBLAS library could be opened; otherwise one line that says where it was looked
/// for. Opens it on the first call: $ATTEST_CUBLAS (a file), then the loader's path, the CUDA
/// toolkit and the site-packages of Python, where PyTorch brings it along.
[[nodiscard]] const std::string& why_no_cublas();

/// What fp32 factors are multiplied as.
enum class CublasFp32 {
  fp32,  ///< fused multiply-adds in fp32
  tf32   ///< on tensor cores, which read 10 bits of each significand
};

/// A row-major matrix of every item of a batch; element (r, c) of item i lies at
/// first + i item_stride + r pitch + c, or, transposed, at first + i item_stride + c pitch + r.
struct BatchedMatrix {
  const void* first = nullptr;
  std::int64_t pitch = 0;        ///< elements
  std::int64_t item_stride = 0;  ///< elements
  ElementType type = ElementType::fp32;
  bool is_transposed = false;
};

/// C = A B for each of `items` items: A [rows, inner], B [inner, columns], C [rows, columns], sums
/// in fp32, rounded once to C's type. One launch of cuBLAS in `stream` (a cudaStream_t); handle and
/// workspace belong to the host thread and are made by its first call. rows and inner at least 1.
/// Throws KernelError in cuBLAS's words, MachineError when the library cannot be used.
void multiply_with_cublas(const BatchedMatrix& a, const BatchedMatrix& b, const BatchedMatrix& c,
                          std::int64_t items, std::int64_t rows, std::int64_t inner,
                          std::int64_t columns, CublasFp32 fp32, void* stream);

}  // namespace attest
