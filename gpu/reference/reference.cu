// The double reference on a device: the same Answer as cpu_reference/forward/reference_f64, for
// problems that a CPU would take minutes for.
//
// Idea
//   One query head at a time, as many query rows as the scratch memory holds. Five kernels in a
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
#include <memory>
#include <vector>

#include "core/operations/forward.hpp"
#include "cpu_reference/forward/device_reference.hpp"
#include "gpu/primitives/launch.cuh"
#include "gpu/reference/answer_kernels.cuh"

namespace attest {
namespace {

constexpr std::int64_t ceil_of(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}
/// Buffers of one computation; released with it.
class Memory {
 public:
  explicit Memory(Device& device) : device_(device) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    for (std::byte* buffer : buffers_) device_.release(buffer);
  }
  template <typename T>
  T* allocate(std::int64_t count) {
    buffers_.push_back(device_.allocate(static_cast<std::size_t>(count) * sizeof(T)));
    return reinterpret_cast<T*>(buffers_.back());
  }
  template <typename T>
  const T* upload(std::span<const T> values) {
    buffers_.push_back(device_.upload_values(std::as_bytes(values)));
    return reinterpret_cast<const T*>(buffers_.back());
  }
  template <typename T>
  std::vector<T> download(const T* from, std::int64_t count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    device_.download(reinterpret_cast<const std::byte*>(from),
                     std::as_writable_bytes(std::span(values)));
    return values;
  }
  void download_to(const double* from, Tensor<double>& tensor) {
    device_.download(reinterpret_cast<const std::byte*>(from),
                     std::as_writable_bytes(tensor.values()));
  }

 private:
  Device& device_;
  std::vector<std::byte*> buffers_;
};

/// Rows of a launch: their scores and absolute scores take at most 16 GiB on a GPU, little on the
/// executor, where several chunks are what is to be tested.
std::int64_t rows_of_chunk(const Problem& problem) {
  constexpr std::int64_t elements =
      this_executor == Executor::gpu ? std::int64_t{1} << 30 : 1 << 13;
  const std::int64_t rows = elements / std::max<std::int64_t>(problem.key_len, 1);
  return std::clamp<std::int64_t>(rows / tile_rows * tile_rows, tile_rows,
                                  std::max<std::int64_t>(problem.query_len, tile_rows));
}

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

dim3 grid_of(std::int64_t x, std::int64_t y = 1) {
  return {static_cast<unsigned>(x), static_cast<unsigned>(y), 1};
}

/// Leaves the whole answer in device memory.
Arrays solve(Memory& memory, Device& device, const Problem& p, const Inputs& inputs,
             const PrecisionPlan& precision) {
  const std::int64_t heads = p.batch * p.kv_heads, d = p.head_dim, rows = p.rows();
  Arrays a{};
  a.problem = p;
  a.scale_is_folded = precision.scale_folded_into_q;
  a.o = memory.allocate<double>(rows * d);
  a.o_bound = memory.allocate<double>(rows * d);
  a.o_own = memory.allocate<double>(rows * d);
  a.lse = memory.allocate<double>(rows);
  a.lse_bound = memory.allocate<double>(rows);
  a.lse_own = memory.allocate<double>(rows);
  a.q = memory.upload(inputs[forward::q].values());
  a.k = memory.upload(inputs[forward::k].values());
  a.v = memory.upload(inputs[forward::v].values());
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
    const auto table =
        constants_table(p, precision, a.least_visible, a.table_rows, magnitudes_of(inputs));
    a.constants = memory.upload(std::span<const Constants>(table));
  }
  const std::int64_t chunk_rows = rows_of_chunk(p);
  a.pitch = std::max<std::int64_t>(p.key_len, 1);
  a.dots = memory.allocate<double>(chunk_rows * a.pitch);
  a.absolute = memory.allocate<double>(chunk_rows * a.pitch);
  a.rows = memory.allocate<RowErrors>(chunk_rows);
  a.is_bad_row = memory.allocate<bool>(chunk_rows);
  a.sums_o = memory.allocate<double>(chunk_rows * d);
  a.sums_w = memory.allocate<double>(chunk_rows * d);
  a.sums_e = memory.allocate<double>(chunk_rows * d);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t first = 0; first < p.query_len; first += chunk_rows) {
        const Chunk c{b, h, first, std::min(chunk_rows, p.query_len - first)};
        const std::int64_t keys = p.visible_keys(c.first + c.count - 1);
        const std::int64_t row_tiles = ceil_of(c.count, tile_rows);
        const dim3 columns = grid_of(row_tiles, ceil_of(d, tile_columns));
        if (keys > 0) {
          launch(form_scores, grid_of(ceil_of(keys, tile_columns), row_tiles), dim3(tile_threads),
                 tile_shared_bytes, device, a, c);
          launch(weigh_rows, grid_of(c.count), dim3(weigh_threads),
                 sizeof(double) * weigh_threads / 32, device, a, c);
          launch(weigh_values, columns, dim3(tile_threads), tile_shared_bytes, device, a, c);
          launch(sum_deviations_of, columns, dim3(tile_threads), tile_shared_bytes, device, a, c);
        }
        launch(finish_rows, grid_of(c.count), dim3(64), 0, device, a, c);
      }
    }
  }
  return a;
}

Answer answer(Device& device, const Problem& problem, const Inputs& inputs,
              const PrecisionPlan& precision) {
  check_inputs(problem, inputs);
  Memory memory(device);
  const Arrays a = solve(memory, device, problem, inputs, precision);
  const Shape o_shape = query_shape(problem);
  const Shape lse_shape{o_shape[0], o_shape[1], o_shape[2], 1};
  Answer result;
  const auto fetch = [&](const double* from, const Shape& shape, Tensor<double>& to) {
    to = Tensor<double>(shape);
    memory.download_to(from, to);
  };
  fetch(a.o, o_shape, result[forward::o].value);
  fetch(a.o_bound, o_shape, result[forward::o].bound);
  fetch(a.o_own, o_shape, result[forward::o].own_error);
  fetch(a.lse, lse_shape, result[forward::lse].value);
  fetch(a.lse_bound, lse_shape, result[forward::lse].bound);
  fetch(a.lse_own, lse_shape, result[forward::lse].own_error);
  return result;
}

WorstOutput check_tensor(Memory& memory, Device& device, const Tensor<float>& got,
                         const double* want, const double* bound) {
  WorstOutput worst;
  worst.elements = got.size();
  const std::int64_t parts = ceil_of(worst.elements, part_elements) * 64;
  auto* const checks = memory.allocate<PartCheck>(parts);
  launch(compare_parts, grid_of(ceil_of(parts, 64)), dim3(64), 0, device,
         memory.upload(got.values()), want, bound, worst.elements, parts, checks);
  std::int64_t at = -1;
  for (const PartCheck& part : memory.download(checks, parts)) {
    worst.vacuous += part.vacuous;
    if (part.at < 0 || (at >= 0 && part.ratio <= worst.ratio)) continue;
    worst.ratio = part.ratio;
    at = part.at;
  }
  if (at < 0) return worst;
  worst.got = static_cast<double>(got.values()[static_cast<std::size_t>(at)]);
  worst.want = memory.download(want + at, 1)[0];
  worst.bound = memory.download(bound + at, 1)[0];
  for (std::size_t axis = 4; axis-- > 0;) {
    worst.index[axis] = at % got.shape()[axis];
    at /= got.shape()[axis];
  }
  return worst;
}

OutputCheck check(Device& device, const Problem& problem, const Inputs& inputs,
                  const PrecisionPlan& precision, const Outputs& outputs) {
  check_inputs(problem, inputs);
  Memory memory(device);
  const Arrays a = solve(memory, device, problem, inputs, precision);
  OutputCheck result;
  result.o = check_tensor(memory, device, outputs[forward::o], a.o, a.o_bound);
  result.lse = check_tensor(memory, device, outputs[forward::lse], a.lse, a.lse_bound);
  result.rows = problem.rows();
  return result;
}

/// Rows that see the first keys, and O as wide as Q.
bool covers(const Problem& problem) {
  return !is_window(problem.mask) && problem.output_dim() == problem.head_dim &&
         problem.softcap == 0 && problem.length_seed == 0 && problem.padding_seed == 0;
}

const DeviceReferenceRegistration registration{{this_executor, covers, answer, check}};

}  // namespace
}  // namespace attest
