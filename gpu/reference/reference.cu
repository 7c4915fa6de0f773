// The double reference on a device: the same Answer as cpu_reference/forward/reference_f64, for
// problems that a CPU would take minutes for.
//
// Idea
//   As many heads, or query rows of one, as the scratch memory holds at a time. Five kernels in a
//   row: scores and absolute scores (Q K^T, |Q| |K|^T); weights and their errors, a block a row
//   (weigh_row.cuh); O and sum p|v|; sum phi |v - O|, which must follow O; bounds and own errors.
//   Before them, once for all heads: which keys and values are not finite, and running minimum,
//   maximum and absolute sum of the values for every number of visible keys.
// Why plain FMA
//   At N = 16,384, H = 32, D = 128 there are 1.1e12 (pair, column) triples. Four products cost an
//   FMA each, the deviations two instructions: 6.6e12 instructions, 0.4 s at the 16.7e12 a second
//   of an H200. Tensor cores in FP64 would halve two thirds of that and could not run on the
//   executor, where this file is tested against the CPU.
// Own error
//   The estimate of cpu_reference holds for any order of summation: a chain of n roundings. exp,
//   log, expm1 and log1p are within 1 ulp in double [CUDA C++ Programming Guide, mathematical
//   functions appendix].
#include <algorithm>
#include <vector>

#include "core/operations/forward.hpp"
#include "cpu_reference/forward/reference_f64.hpp"
#include "gpu/primitives/launch.cuh"
#include "gpu/reference/answer_kernels.cuh"
#include "gpu/reference/device_answer.cuh"

namespace attest {
namespace {

/// Scores and absolute scores of a chunk: at most 8 GiB.
constexpr std::int64_t chunk_pairs = std::int64_t{1} << 29;

std::vector<Constants> constants_table(const Problem& problem, const PrecisionPlan& precision,
                                       std::int64_t least_visible, std::int64_t rows,
                                       const Magnitudes& magnitudes) {
  std::vector<Constants> table;
  for (std::int64_t i = 0; i < rows; ++i) {
    table.push_back({bound_constants(precision, problem, least_visible + i, magnitudes),
                     reference_constants(problem, least_visible + i, magnitudes)});
  }
  return table;
}

/// Leaves the whole answer in device memory.
AnswerArrays solve(Memory& memory, Device& device, const Problem& p, const InputOperands& inputs,
                   const Roundings& roundings) {
  const PrecisionPlan& precision = roundings.as<PrecisionPlan>();
  const AnswerArrays outputs = allocate_answer(memory, p);
  const OutputArrays &o = outputs[forward::o], &lse = outputs[forward::lse];
  const std::int64_t heads = p.batch * p.kv_heads, d = p.head_dim;
  Arrays a{};
  a.problem = p;
  a.scale_is_folded = precision.scale_folded_into_q;
  a.o = o.value, a.o_bound = o.bound, a.o_own = o.own_error;
  a.lse = lse.value, a.lse_bound = lse.bound, a.lse_own = lse.own_error;
  a.q = inputs[forward::q].data, a.k = inputs[forward::k].data, a.v = inputs[forward::v].data;
  // Visible keys never decrease from one query to the next.
  const std::int64_t most_visible = p.visible_keys(p.query_len - 1);
  a.least_visible = std::max<std::int64_t>(1, p.visible_keys(0));
  a.table_rows = std::max<std::int64_t>(0, most_visible - a.least_visible + 1);
  a.bad_keys = memory.allocate<std::int64_t>(heads);
  a.bad_values = memory.allocate<std::int64_t>(heads * d);
  if (a.table_rows > 0) {
    a.ranges = memory.allocate<ValueRange>(heads * a.table_rows * d);
    launch(scan_keys, grid_of(heads), dim3(weigh_threads), sizeof(double) * weigh_threads / 32,
           device, a);
    launch(scan_values, grid_of(ceil_of(heads * d, 64)), dim3(64), 0, device, a);
    const auto largest = [&](InputIndex input) {
      return extent_of(memory, device, inputs[input]).largest;
    };
    const auto table = constants_table(
        p, precision, a.least_visible, a.table_rows,
        {.q = largest(forward::q), .k = largest(forward::k), .v = largest(forward::v)});
    a.constants = memory.upload(std::span<const Constants>(table));
  }
  const std::int64_t query_heads = p.batch * p.query_heads;
  const ChunkSize size = chunk_size(p, query_heads, chunk_pairs);
  const std::int64_t rows = size.heads * size.rows;
  a.pitch = std::max<std::int64_t>(p.key_len, 1);
  a.dots = memory.allocate<double>(rows * a.pitch);
  a.absolute = memory.allocate<double>(rows * a.pitch);
  a.rows = memory.allocate<RowErrors>(rows);
  a.is_bad_row = memory.allocate<bool>(rows);
  a.sums_o = memory.allocate<double>(rows * d);
  a.sums_w = memory.allocate<double>(rows * d);
  a.sums_e = memory.allocate<double>(rows * d);
  for (std::int64_t h = 0; h < query_heads; h += size.heads) {
    for (std::int64_t first = 0; first < p.query_len; first += size.rows) {
      const Chunk c{h, std::min(size.heads, query_heads - h), 1, first,
                    std::min(size.rows, p.query_len - first)};
      const std::int64_t keys = p.visible_keys(c.first + c.count - 1);
      const std::int64_t row_tiles = ceil_of(c.count, tile_rows);
      const dim3 columns = grid_of(row_tiles, ceil_of(d, tile_columns), c.heads);
      const dim3 one_a_row = grid_of(c.count, 1, c.heads);
      if (keys > 0) {
        launch(form_scores, grid_of(ceil_of(keys, tile_columns), row_tiles, c.heads),
               dim3(tile_threads), tile_shared_bytes, device, a, c);
        launch(weigh_rows, one_a_row, dim3(weigh_threads), sizeof(double) * weigh_threads / 32,
               device, a, c);
        launch(weigh_values, columns, dim3(tile_threads), tile_shared_bytes, device, a, c);
        launch(sum_deviations_of, columns, dim3(tile_threads), tile_shared_bytes, device, a, c);
      }
      launch(finish_rows, one_a_row, dim3(64), 0, device, a, c);
    }
  }
  return outputs;
}

/// Rows that see the first keys, and O as wide as Q.
bool covers(const Problem& problem, const Roundings& /*roundings*/) {
  return !is_window(problem.mask) && problem.output_dim() == problem.head_dim &&
         problem.softcap == 0 && problem.length_seed == 0 && problem.padding_seed == 0 &&
         problem.prefix_seed == 0 && problem.document_seed == 0 && problem.list_seed == 0 &&
         !has_modifications(problem);
}

DeviceReference forward_reference() {
  DeviceReference reference = device_reference(forward_operation, solve);
  reference.worth_a_gpu = 0x1p30;
  reference.covers = covers;
  return reference;
}

const DeviceReferenceRegistration registration{forward_reference()};

}  // namespace
}  // namespace attest
