#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/attention/element_type.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"

namespace attest {
/// One line why the cuBLAS library could not be opened and where it was looked for; empty when it
/// could. Opens it on the first call: $ATTEST_CUBLAS (a file), then the loader's path, the CUDA
/// toolkit and the site-packages of Python, where PyTorch brings it along.
[[nodiscard]] const std::string& why_no_cublas();

/// Arithmetic in which fp32 factors are multiplied.
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

/// Scores, then weights, of standard attention in the workspace: rows of [batch * query_heads *
/// query_len, key_len], 16 bytes apart at least in any format.
struct ScoreMatrix {
  std::int64_t pitch = 0;            ///< elements from a row to the next
  std::size_t weights_at_bytes = 0;  ///< where P begins; fp32 weights overwrite the scores
  std::size_t bytes = 0;             ///< of the workspace
};
[[nodiscard]] ScoreMatrix score_matrix_of(const Problem& problem);

/// Longest chain of additions in a row's normaliser.
[[nodiscard]] std::int64_t softmax_chain(const Problem& problem);

/// One launch: reads Q K^T in fp32, scales it, writes P in the problem's element type (0 where a
/// row does not see the key) and LSE. A row without keys gets weights of 0 and -infinity.
void launch_standard_softmax(const ForwardArguments& arguments, Device& device);

}  // namespace attest
