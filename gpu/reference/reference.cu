// The double reference on a device: the same Answer as cpu_reference/reference_f64, for problems
// that a CPU would take minutes for.
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
#include <cstring>
#include <memory>
#include <vector>

#include "core/error_ratio.hpp"
#include "cpu_reference/device_reference.hpp"
#include "cpu_reference/row_terms.hpp"
#include "gpu/primitives/launch.cuh"
#include "gpu/reference/pair_products.cuh"
#include "gpu/reference/weigh_row.cuh"

namespace attest {
namespace {

constexpr std::int64_t ceil_of(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}
__device__ double finite_or_zero(float x) {
  return std::isfinite(x) ? static_cast<double>(x) : 0.0;
}

/// Constants of rows that see one number of keys.
struct Constants {
  BoundConstants kernel, own;
};
/// Of the values that such a row sees, in one column.
struct ValueRange {
  double lowest, highest, abs_sum;
};

/// Everything on the device. Q, K, V are contiguous.
struct Arrays {
  Problem problem;
  const float *q, *k, *v;
  std::int64_t least_visible;  ///< tables begin at rows that see this many keys
  std::int64_t table_rows;
  const Constants* constants;  ///< [table_rows]
  ValueRange* ranges;          ///< [batch * kv_heads, table_rows, head_dim]
  std::int64_t* bad_values;    ///< first key with a value that is not finite: [heads, head_dim]
  std::int64_t* bad_keys;      ///< [heads]
  double* largest_keys;        ///< [heads] max |k|
  double *dots, *absolute;     ///< scratch: [chunk rows, pitch]
  std::int64_t pitch;
  RowErrors* rows;                   ///< scratch: [chunk rows]
  bool* is_bad_row;                  ///< scratch: [chunk rows]
  double *sums_o, *sums_w, *sums_e;  ///< scratch: [chunk rows, head_dim]
  double *o, *o_bound, *o_own;       ///< [rows, head_dim]
  double *lse, *lse_bound, *lse_own;
  bool scale_is_folded;
};

/// The rows of one launch: queries [first, first + count) of a head.
struct Chunk {
  std::int64_t batch, head, first, count;
};

__device__ std::int64_t kv_head(const Problem& p, const Chunk& c) {
  return c.batch * p.kv_heads + p.kv_head_of(c.head);
}
/// Keys that some row of the tile sees: those of its last row.
__device__ std::int64_t keys_of_tile(const Problem& p, const Chunk& c, std::int64_t first_row) {
  const std::int64_t last = min(first_row + tile_rows, c.count) - 1;
  return p.visible_keys(c.first + last);
}

/// A block a kv head: where K stops being finite, and its largest element.
__global__ void scan_keys(Arrays a) {
  double* const scratch = dynamic_shared<double>();
  const Problem& p = a.problem;
  const std::int64_t elements = p.key_len * p.head_dim;
  const float* const k = a.k + blockIdx.x * elements;
  double largest = 0, first_bad = static_cast<double>(p.key_len);
  for (std::int64_t e = threadIdx.x; e < elements; e += weigh_threads) {
    if (std::isfinite(k[e])) {
      largest = fmax(largest, fabs(static_cast<double>(k[e])));
    } else {
      first_bad = fmin(first_bad, static_cast<double>(e / p.head_dim));
    }
  }
  largest = over_block(largest, LargerOf{}, scratch);
  first_bad = -over_block(-first_bad, LargerOf{}, scratch);
  if (threadIdx.x > 0) return;
  a.largest_keys[blockIdx.x] = largest;
  a.bad_keys[blockIdx.x] = static_cast<std::int64_t>(first_bad);
}

/// A thread a column of V: ranges of the first n values for every n of the table.
__global__ void scan_values(Arrays a) {
  const Problem& p = a.problem;
  const std::int64_t column = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (column >= p.batch * p.kv_heads * p.head_dim) return;
  const std::int64_t head = column / p.head_dim, d = column % p.head_dim;
  const float* const v = a.v + head * p.key_len * p.head_dim + d;
  ValueRange range{HUGE_VAL, -HUGE_VAL, 0};
  std::int64_t first_bad = p.key_len;
  for (std::int64_t j = 0; j < p.key_len; ++j) {
    const float value = v[j * p.head_dim];
    if (!std::isfinite(value)) first_bad = min(first_bad, j);
    const double x = finite_or_zero(value);
    range.lowest = fmin(range.lowest, x);
    range.highest = fmax(range.highest, x);
    range.abs_sum += fabs(x);
    const std::int64_t row = j + 1 - a.least_visible;
    if (row >= 0 && row < a.table_rows) {
      a.ranges[(head * a.table_rows + row) * p.head_dim + d] = range;
    }
  }
  a.bad_values[column] = first_bad;
}

/// A block a tile [64 queries, 64 keys]. Tiles that no row sees are left as they are.
__global__ void __launch_bounds__(tile_threads) form_scores(Arrays a, Chunk c) {
  const Problem& p = a.problem;
  const std::int64_t first_row = std::int64_t{blockIdx.y} * tile_rows;
  const std::int64_t first_key = std::int64_t{blockIdx.x} * tile_columns;
  if (first_key >= keys_of_tile(p, c, first_row)) return;
  const float* const q =
      a.q + ((c.batch * p.query_heads + c.head) * p.query_len + c.first) * p.head_dim;
  const float* const k = a.k + kv_head(p, c) * p.key_len * p.head_dim;
  TwoSums sums;
  for_each_pair<true>(
      p.head_dim,
      [&](int row, std::int64_t d) {
        const std::int64_t r = first_row + row;
        return r < c.count ? finite_or_zero(q[r * p.head_dim + d]) : 0.0;
      },
      [&](std::int64_t d, int column) {
        const std::int64_t key = first_key + column;
        return key < p.key_len ? finite_or_zero(k[key * p.head_dim + d]) : 0.0;
      },
      [&](double x, double y, int i, int j) {
        sums.first[i][j] = fma(x, y, sums.first[i][j]);
        sums.second[i][j] = fma(fabs(x), fabs(y), sums.second[i][j]);
      });
  const ThreadTile mine;
  for (int i = 0; i < thread_rows; ++i) {
    for (int j = 0; j < thread_columns; ++j) {
      const std::int64_t row = first_row + mine.row(i), key = first_key + mine.column(j);
      if (row >= c.count || key >= p.key_len) continue;
      a.dots[row * a.pitch + key] = sums.first[i][j];
      a.absolute[row * a.pitch + key] = sums.second[i][j];
    }
  }
}

/// A block a row.
__global__ void __launch_bounds__(weigh_threads) weigh_rows(Arrays a, Chunk c) {
  const Problem& p = a.problem;
  const std::int64_t row = blockIdx.x, query = c.first + row;
  const RowOfScores scores{a.dots + row * a.pitch, a.absolute + row * a.pitch,
                           p.visible_keys(query), keys_of_tile(p, c, row / tile_rows * tile_rows),
                           static_cast<double>(p.scale)};
  if (scores.visible == 0) {
    BlockWeigher::clear_hidden(scores);
    return;
  }
  double* const scratch = dynamic_shared<double>();
  const float* const q =
      a.q + ((c.batch * p.query_heads + c.head) * p.query_len + query) * p.head_dim;
  double is_bad = 0;
  for (std::int64_t d = threadIdx.x; d < p.head_dim; d += weigh_threads) {
    if (!std::isfinite(q[d])) is_bad = 1;
  }
  is_bad = over_block(is_bad, LargerOf{}, scratch);
  const Constants& constants = a.constants[scores.visible - a.least_visible];
  BlockWeigher weigher(scores, scratch);
  const RowErrors errors = weigher.weigh(constants.kernel, constants.own, a.scale_is_folded);
  if (threadIdx.x > 0) return;
  a.rows[row] = errors;
  a.is_bad_row[row] = is_bad > 0 || scores.visible > a.bad_keys[kv_head(p, c)];
}

/// A block a tile [64 queries, 64 columns]: O and sum p|v|.
__global__ void __launch_bounds__(tile_threads) weigh_values(Arrays a, Chunk c) {
  const Problem& p = a.problem;
  const std::int64_t first_row = std::int64_t{blockIdx.x} * tile_rows;
  const std::int64_t first_column = std::int64_t{blockIdx.y} * tile_columns;
  const float* const v = a.v + kv_head(p, c) * p.key_len * p.head_dim;
  TwoSums sums;
  for_each_pair<false>(
      keys_of_tile(p, c, first_row),
      [&](int row, std::int64_t key) {
        const std::int64_t r = first_row + row;
        return r < c.count ? a.dots[r * a.pitch + key] : 0.0;
      },
      [&](std::int64_t key, int column) {
        const std::int64_t d = first_column + column;
        return d < p.head_dim ? finite_or_zero(v[key * p.head_dim + d]) : 0.0;
      },
      [&](double x, double y, int i, int j) {
        sums.first[i][j] = fma(x, y, sums.first[i][j]);
        sums.second[i][j] = fma(x, fabs(y), sums.second[i][j]);
      });
  const ThreadTile mine;
  for (int i = 0; i < thread_rows; ++i) {
    for (int j = 0; j < thread_columns; ++j) {
      const std::int64_t row = first_row + mine.row(i), d = first_column + mine.column(j);
      if (row >= c.count || d >= p.head_dim) continue;
      a.sums_o[row * p.head_dim + d] = sums.first[i][j];
      a.sums_w[row * p.head_dim + d] = sums.second[i][j];
    }
  }
}

/// The same tiles: sum phi |v - O|.
__global__ void __launch_bounds__(tile_threads) sum_deviations_of(Arrays a, Chunk c) {
  const Problem& p = a.problem;
  const std::int64_t first_row = std::int64_t{blockIdx.x} * tile_rows;
  const std::int64_t first_column = std::int64_t{blockIdx.y} * tile_columns;
  const float* const v = a.v + kv_head(p, c) * p.key_len * p.head_dim;
  const ThreadTile mine;
  TwoSums sums;  // second: O
  for (int i = 0; i < thread_rows; ++i) {
    for (int j = 0; j < thread_columns; ++j) {
      const std::int64_t row = first_row + mine.row(i), d = first_column + mine.column(j);
      if (row < c.count && d < p.head_dim) sums.second[i][j] = a.sums_o[row * p.head_dim + d];
    }
  }
  for_each_pair<false>(
      keys_of_tile(p, c, first_row),
      [&](int row, std::int64_t key) {
        const std::int64_t r = first_row + row;
        return r < c.count ? a.absolute[r * a.pitch + key] : 0.0;
      },
      [&](std::int64_t key, int column) {
        const std::int64_t d = first_column + column;
        return d < p.head_dim ? finite_or_zero(v[key * p.head_dim + d]) : 0.0;
      },
      [&](double x, double y, int i, int j) {
        sums.first[i][j] = fma(x, fabs(y - sums.second[i][j]), sums.first[i][j]);
      });
  for (int i = 0; i < thread_rows; ++i) {
    for (int j = 0; j < thread_columns; ++j) {
      const std::int64_t row = first_row + mine.row(i), d = first_column + mine.column(j);
      if (row < c.count && d < p.head_dim) a.sums_e[row * p.head_dim + d] = sums.first[i][j];
    }
  }
}

/// A block a row.
__global__ void finish_rows(Arrays a, Chunk c) {
  const Problem& p = a.problem;
  const std::int64_t row = blockIdx.x, query = c.first + row;
  const std::int64_t at = (c.batch * p.query_heads + c.head) * p.query_len + query;
  const std::int64_t visible = p.visible_keys(query);
  const bool is_empty = visible == 0, is_bad = !is_empty && a.is_bad_row[row];
  const double special = is_bad ? static_cast<double>(NAN) : 0.0;
  if (is_empty || is_bad) {
    for (std::int64_t d = threadIdx.x; d < p.head_dim; d += blockDim.x) {
      a.o[at * p.head_dim + d] = special;
      a.o_bound[at * p.head_dim + d] = special;
      a.o_own[at * p.head_dim + d] = special;
    }
    if (threadIdx.x > 0) return;
    a.lse[at] = is_empty ? -HUGE_VAL : special;
    a.lse_bound[at] = special;
    a.lse_own[at] = special;
    return;
  }
  const std::int64_t table_row = visible - a.least_visible, head = kv_head(p, c);
  const Constants& constants = a.constants[table_row];
  const RowErrors& errors = a.rows[row];
  for (std::int64_t d = threadIdx.x; d < p.head_dim; d += blockDim.x) {
    const double o = a.sums_o[row * p.head_dim + d];
    const ValueRange& values = a.ranges[(head * a.table_rows + table_row) * p.head_dim + d];
    const ElementErrors element =
        element_errors(constants.kernel, constants.own, errors, a.sums_e[row * p.head_dim + d],
                       fmax(values.highest - o, o - values.lowest),
                       {o, a.sums_w[row * p.head_dim + d], 0, values.abs_sum,
                        fmax(fabs(values.lowest), fabs(values.highest))});
    const bool is_bad_value = visible > a.bad_values[head * p.head_dim + d];
    a.o[at * p.head_dim + d] = is_bad_value ? static_cast<double>(NAN) : o;
    a.o_bound[at * p.head_dim + d] = is_bad_value ? static_cast<double>(NAN) : element.bound;
    a.o_own[at * p.head_dim + d] = is_bad_value ? static_cast<double>(NAN) : element.own;
  }
  if (threadIdx.x > 0) return;
  const double own = lse_error(constants.own, errors.own, errors.lse);
  const double bound = errors.is_vacuous ? static_cast<double>(HUGE_VAL)
                                         : lse_error(constants.kernel, errors.kernel, errors.lse);
  a.lse[at] = errors.lse;
  a.lse_bound[at] = bound + own;
  a.lse_own[at] = own;
}

/// Worst element of a part of a tensor.
struct PartCheck {
  double ratio;
  std::int64_t at, vacuous;
};
constexpr std::int64_t part_elements = 4096;

/// A thread a part of `got`: with thousands of parts the threads are enough.
__global__ void compare_parts(const float* got, const double* want, const double* bound,
                              std::int64_t elements, std::int64_t parts, PartCheck* checks) {
  const std::int64_t part = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (part >= parts) return;
  PartCheck worst{0, -1, 0};
  // Neighbouring threads read neighbouring elements.
  for (std::int64_t e = part; e < elements; e += parts) {
    if (bound[e] == HUGE_VAL) {
      ++worst.vacuous;
      continue;
    }
    const double ratio = error_over_bound(static_cast<double>(got[e]), want[e], bound[e]);
    if (worst.at < 0 || !(ratio <= worst.ratio)) {
      worst.ratio = ratio;
      worst.at = e;
    }
  }
  checks[part] = worst;
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
                                       double max_abs_key) {
  std::vector<Constants> table;
  for (std::int64_t i = 0; i < rows; ++i) {
    table.push_back({bound_constants(precision, problem, least_visible + i, max_abs_key),
                     reference_constants(problem, least_visible + i, max_abs_key)});
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
  a.q = memory.upload(inputs.q.values());
  a.k = memory.upload(inputs.k.values());
  a.v = memory.upload(inputs.v.values());
  // Visible keys never decrease from one query to the next.
  const std::int64_t most_visible = p.visible_keys(p.query_len - 1);
  a.least_visible = std::max<std::int64_t>(1, p.visible_keys(0));
  a.table_rows = std::max<std::int64_t>(0, most_visible - a.least_visible + 1);
  a.bad_keys = memory.allocate<std::int64_t>(heads);
  a.largest_keys = memory.allocate<double>(heads);
  a.bad_values = memory.allocate<std::int64_t>(heads * d);
  if (a.table_rows > 0) {
    a.ranges = memory.allocate<ValueRange>(heads * a.table_rows * d);
    launch(scan_keys, grid_of(heads), dim3(weigh_threads), sizeof(double) * weigh_threads / 32,
           device, a);
    launch(scan_values, grid_of(ceil_of(heads * d, 64)), dim3(64), 0, device, a);
    // One bound for all heads: the largest key of any enters the underflow terms alone.
    const std::vector<double> largest = memory.download(a.largest_keys, heads);
    const auto table = constants_table(p, precision, a.least_visible, a.table_rows,
                                       *std::max_element(largest.begin(), largest.end()));
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
  fetch(a.o, o_shape, result.o);
  fetch(a.o_bound, o_shape, result.o_bound);
  fetch(a.o_own, o_shape, result.o_own_error);
  fetch(a.lse, lse_shape, result.lse);
  fetch(a.lse_bound, lse_shape, result.lse_bound);
  fetch(a.lse_own, lse_shape, result.lse_own_error);
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
  result.o = check_tensor(memory, device, outputs.o, a.o, a.o_bound);
  result.lse = check_tensor(memory, device, outputs.lse, a.lse, a.lse_bound);
  result.rows = problem.rows();
  return result;
}

const DeviceReferenceRegistration registration{{this_executor, answer, check}};

}  // namespace
}  // namespace attest
