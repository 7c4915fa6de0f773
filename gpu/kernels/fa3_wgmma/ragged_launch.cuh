#pragma once

// Host side of launches whose entries have lengths, or whose K and V lie in pages: maps, the list
// of work, the kernel behind it.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/operations/forward_arguments.hpp"
#include "gpu/kernels/fa3_wgmma/variant.cuh"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/tensor_map.cuh"

namespace attest {

/// Output tiles of a query head, over all entries: lengths on the device may ask for fewer.
inline std::int64_t fa3_most_items(const Problem& problem, std::int64_t query_tile) {
  return problem.batch * ceil_div(problem.query_len, query_tile);
}

/// Rows of the boxes in which key tiles come: the largest power of two that divides a page and a
/// key tile. Boxes of fewer than 8 rows would be slower than copies by lanes, and begin within the
/// pattern of the swizzle: 1 then.
inline int fa3_unit_rows(const PageTable& pages, int key_tile) {
  if (pages.page_size == 0) return key_tile;
  const std::int64_t power = pages.page_size & -pages.page_size;
  return power < 8 ? 1 : static_cast<int>(std::min<std::int64_t>(power, key_tile));
}

/// The map of a 16-bit tensor. Nothing is read of a tensor without rows, but its map must be one.
template <Executor home = this_executor>  // so that both executors have one each
TensorMap fa3_map(const ForwardArguments& a, const void* tensor, const Shape& shape,
                  const Strides& strides, std::int64_t box_rows) {
  const bool is_empty = shape[0] * shape[2] == 0 || (shape[1] > 1 && strides.head == 0);
  // A packed tensor may have fewer rows than there is room for. Where it has one, its stride may be
  // anything, and lanes load the row.
  const bool has_rows = strides.row % 8 == 0;
  return tensor_map({.first = is_empty ? a.q : tensor,
                     .type = a.problem.element_type,
                     .batch = std::max<std::int64_t>(1, shape[0]),
                     .heads = shape[1],
                     .rows = has_rows ? std::max<std::int64_t>(1, shape[2]) : 1,
                     .columns = shape[3],
                     .strides = is_empty ? Strides{8, 8, 8} : strides,
                     .box_rows = box_rows});
}

/// Maps of the tensors in the shapes in which Q and K lie in memory.
template <Executor home = this_executor>
void fa3_set_maps(Fa3Parameters& p, const ForwardArguments& a, const Shape& queries,
                  const Shape& keys, std::int64_t key_rows) {
  constexpr std::int64_t query_rows = 64, output_rows = 16;  // of a warpgroup, of a warp
  Shape values = keys, outputs = queries;
  values[3] = outputs[3] = a.problem.output_dim();
  p.q = fa3_map<home>(a, a.q, queries, a.q_strides, query_rows);
  p.k = fa3_map<home>(a, a.k, keys, a.k_strides, key_rows);
  p.v = fa3_map<home>(a, a.v, values, a.v_strides, key_rows);
  p.o = fa3_map<home>(a, a.o, outputs, a.o_strides, output_rows);
}

template <Executor home = this_executor>
Fa3RaggedParameters fa3_ragged_parameters(const Fa3Variant& v, const Fa3Parameters& dense,
                                          const ForwardArguments& a) {
  const Problem& problem = a.problem;
  const bool has_pages = a.page_table.page_size > 0;
  const auto source = [](const void* tensor, const Strides& strides) {
    return Fa3RowSource{static_cast<const std::uint16_t*>(tensor), strides};
  };
  Fa3RaggedParameters p{};
  static_cast<Fa3Parameters&>(p) = dense;
  p.packs_queries = a.query_starts != nullptr;
  p.packs_keys = a.key_starts != nullptr && !has_pages;
  p.unit_rows = fa3_unit_rows(a.page_table, v.choice.key_tile);
  const int two_tiles = 2 * v.choice.key_tile;
  const auto page_size = static_cast<int>(a.page_table.page_size);
  p.page_step = has_pages ? two_tiles / page_size : 0;
  p.slot_step = has_pages ? two_tiles % page_size : two_tiles;
  // Of packed tensors the host knows no end. No box lies behind an entry's own.
  Shape queries = query_shape(problem), keys = key_shape(problem);
  for (auto [is_packed, shape] : {std::pair{p.packs_queries, &queries}, {p.packs_keys, &keys}}) {
    if (is_packed) *shape = {1, (*shape)[1], (*shape)[0] * (*shape)[2], (*shape)[3]};
  }
  if (has_pages) {
    keys = {a.page_table.pool_pages, problem.kv_heads, a.page_table.page_size, problem.head_dim};
  }
  fa3_set_maps<home>(p, a, queries, keys, p.unit_rows);
  const auto is_near = [&](const Strides& strides) {
    const std::int64_t last = strides.offset(keys[0], keys[1], keys[2]);
    return strides.batch >= 0 && last < std::int64_t{8} << 32;
  };
  p.has_plain_rows =
      problem.head_dim == v.choice.dim && is_near(a.k_strides) && is_near(a.v_strides);
  p.q_rows = source(a.q, a.q_strides);
  p.k_rows = source(a.k, a.k_strides);
  p.v_rows = source(a.v, a.v_strides);
  p.pages = a.page_table;
  p.list = static_cast<const Fa3WorkList*>(a.workspace);
  p.is_bottom_right = problem.mask == Mask::causal_bottom_right;
  p.reach = problem.mask == Mask::none ? beyond_all_keys : 1;
  return p;
}

/// Lists the work, and does it: blocks begin while the list is being made.
template <Executor home>
void fa3_launch_ragged(const Fa3Variant& v, const Fa3RaggedParameters& p, const ForwardArguments& a,
                       Device& device) {
  launch(fa3_list_work<home>, dim3(1), dim3(fa3_list_threads), 0, device, a,
         static_cast<Fa3WorkList*>(a.workspace), v.query_tile, v.choice.key_tile);
  const dim3 threads(static_cast<unsigned>(v.threads));
  const auto shared_bytes = static_cast<std::size_t>(v.shared_bytes);
  const std::int64_t blocks = std::min(fa3_most_items(a.problem, v.query_tile) * p.heads,
                                       resident_blocks(v.ragged, threads, shared_bytes, device));
  launch_dependent(v.ragged, dim3(static_cast<unsigned>(blocks)), threads, shared_bytes, device, p);
}

}  // namespace attest
