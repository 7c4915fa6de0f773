#include "cpu_reference/forward/online_softmax_rows.hpp"

#include <cmath>
#include <cstddef>

namespace attest {
namespace {

// Inlined into each caller, so that it is compiled for that caller's instruction set.
[[gnu::always_inline]] inline void add_rows(std::span<const float> weights, const float* rows,
                                            std::int64_t row_stride, std::span<float> sum) {
  for (const float weight : weights) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = std::fma(weight, rows[i], sum[i]);
    rows += row_stride;
  }
}

void add_rows_portable(std::span<const float> weights, const float* rows, std::int64_t row_stride,
                       std::span<float> sum) {
  add_rows(weights, rows, row_stride, sum);
}

#if defined(__x86_64__)
// Without the instruction, std::fma is a library call of several nanoseconds an element.
[[gnu::target("avx2,fma")]] void add_rows_fma(std::span<const float> weights, const float* rows,
                                              std::int64_t row_stride, std::span<float> sum) {
  add_rows(weights, rows, row_stride, sum);
}
const bool has_fma = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
#endif

}  // namespace

void multiply_accumulate(std::span<const float> weights, const float* rows, std::int64_t row_stride,
                         std::span<float> sum) {
#if defined(__x86_64__)
  if (has_fma) return add_rows_fma(weights, rows, row_stride, sum);
#endif
  add_rows_portable(weights, rows, row_stride, sum);
}

}  // namespace attest
