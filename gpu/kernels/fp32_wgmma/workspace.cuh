#pragma once

#include <cstddef>
#include <cstdint>

#include "core/run/kernel.hpp"
#include "gpu/kernels/fp32_wgmma/parameters.cuh"

namespace attest {

/// Where in the workspace what the split leaves is, in bytes from an address aligned to
/// `alignment`. Parts are [parts, heads, rows, dim] without gaps, so that the copy engine reads
/// them whatever the strides and addresses of the inputs are.
struct SplitWorkspace {
  static constexpr std::size_t alignment = 256;
  static constexpr std::int64_t most_parts = 3;
  std::size_t q, k, v, rows, key_scales, flags, size;

  SplitWorkspace(const Problem& problem, std::int64_t dim) {
    const std::int64_t heads = problem.batch * problem.query_heads;
    const std::int64_t kv_heads = problem.batch * problem.kv_heads;
    const auto parts = [&](std::int64_t rows_of_all) {
      // One row at least: the copy engine knows no empty tensors.
      return take((rows_of_all > 0 ? rows_of_all : heads) * dim * most_parts * 2);
    };
    q = parts(problem.rows());
    k = parts(kv_heads * problem.key_len);
    v = parts(kv_heads * problem.key_len);
    const auto blocks = [](std::int64_t n, std::int64_t block) { return (n + block - 1) / block; };
    rows = take(problem.rows() * static_cast<std::int64_t>(sizeof(RowScale)));
    key_scales = take(kv_heads * blocks(problem.key_len, split_rows) *
                      static_cast<std::int64_t>(sizeof(KeyScale)));
    flags = take(heads * blocks(problem.query_len, flag_rows) *
                 static_cast<std::int64_t>(sizeof(RowFlags)));
    size = end_;
  }

 private:
  std::size_t end_ = 0;
  std::size_t take(std::int64_t bytes) {
    const std::size_t begin = end_;
    end_ += (static_cast<std::size_t>(bytes) + alignment - 1) / alignment * alignment;
    return begin;
  }
};

}  // namespace attest
