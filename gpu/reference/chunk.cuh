#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/attention/problem.hpp"
#include "gpu/primitives/launch.cuh"
#include "gpu/reference/pair_products.cuh"

namespace attest {
// The file is compiled twice into one program, for the GPU and for the executor.
namespace {

constexpr std::int64_t ceil_of(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// The rows of one launch: queries [first, first + count) of a head.
struct Chunk {
  std::int64_t batch, head, first, count;
};

/// The most rows of a chunk: `pairs` of them fit the scratch memory of a GPU. On the executor few
/// do, where several chunks are what is to be tested.
std::int64_t rows_of_chunk(const Problem& problem, std::int64_t pairs) {
  if (this_executor != Executor::gpu) pairs = 1 << 13;
  const std::int64_t rows = pairs / std::max<std::int64_t>(problem.key_len, 1);
  return std::clamp<std::int64_t>(rows / tile_rows * tile_rows, tile_rows,
                                  std::max<std::int64_t>(problem.query_len, tile_rows));
}

__device__ double finite_or_zero(float x) {
  return std::isfinite(x) ? static_cast<double>(x) : 0.0;
}

}  // namespace
}  // namespace attest
