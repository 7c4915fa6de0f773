// The double reference of the gradients on a device: the same Answer as
// cpu_reference/backward/reference.cpp, for problems that a CPU would take minutes for.
//
// Idea
//   A query head of as many KV heads, or query rows of one, as the scratch memory holds. Q K^T and
//   dO V^T with their absolute products; from them what a pair adds to the sums, p and dS, and how
//   far a kernel's and our own may be from them; then these times K, Q and dO: four sums an output,
//   of values, sizes, errors and own errors; sizes and errors together are the absolute ones. dK
//   and dV go on from chunk to chunk and over the heads of a group. A block owns its elements and
//   adds in ascending order: no atomics, and the bits do not depend on when a block runs.
// Plain FMA
//   As reference.cu: 16 of them a (pair, column), where the answer of the forward pass takes 6.
// What is not finite
//   A product of a pair is its own, so NaN reaches that pair's terms only. In the sums tiles meet
//   rows that do not see each other: there factors that are not finite count as 0, and elements
//   whose pairs meet one are found apart.
// Own error
//   The estimate of cpu_reference holds for any order of summation: a chain of n roundings. exp is
//   within 1 ulp in double, tanh within 2 [CUDA C++ Programming Guide, mathematical functions].
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/operations/backward.hpp"
#include "gpu/primitives/launch.cuh"
#include "gpu/reference/device_answer.cuh"
#include "gpu/reference/gradient_kernels.cuh"

namespace attest {
namespace {

/// Six numbers a pair: at most 6 GiB.
constexpr std::int64_t chunk_pairs = std::int64_t{1} << 27;

class GradientSolver {
 public:
  GradientSolver(Memory& memory, Device& device, const Problem& problem,
                 const InputOperands& inputs, const BackwardRoundings& how)
      : device_(device),
        p_(problem),
        chunk_(chunk_size(problem, problem.batch * problem.kv_heads, chunk_pairs)) {
    a_.problem = p_;
    a_.kernel = gradient_constants(how, p_);
    a_.own = gradient_constants(reference_roundings(p_), p_, fp64_arithmetic);
    const auto is_finite = [&](InputIndex input) {
      return extent_of(memory, device, inputs[input]).is_finite;
    };
    has_bad_factors_ =
        !is_finite(backward::q) || !is_finite(backward::k) || !is_finite(backward::d_o);
    const auto data = [&](InputIndex input) { return inputs[input].data; };
    a_.q = data(backward::q), a_.k = data(backward::k), a_.v = data(backward::v);
    a_.o = data(backward::o), a_.lse = data(backward::lse), a_.d_o = data(backward::d_o);
    if (has_tensor(p_, backward::d_lse)) a_.d_lse = data(backward::d_lse);
    a_.delta = memory.allocate<double>(p_.rows());
    a_.absolute_delta = memory.allocate<double>(p_.rows());
    a_.pitch = std::max<std::int64_t>(p_.key_len, 1);
    const auto terms = [&] {
      return memory.allocate<double>(chunk_.heads * chunk_.rows * a_.pitch);
    };
    a_.dscores = {terms(), terms(), terms()};
    a_.weights = {terms(), terms(), terms()};
    const auto sums = [&](std::int64_t rows, std::int64_t columns) {
      const auto array = [&] { return memory.allocate<double>(chunk_.heads * rows * columns); };
      return SumArrays{array(), array(), array(), array(), chunk_.heads, rows, columns};
    };
    dq_ = sums(chunk_.rows, p_.head_dim);
    dk_ = sums(p_.key_len, p_.head_dim);
    dv_ = sums(p_.key_len, p_.output_dim());
  }

  void solve(const AnswerArrays& answer) {
    for_elements(form_deltas, p_.rows(), 1, a_);
    const std::int64_t group = p_.query_heads / p_.kv_heads, kv_heads = p_.batch * p_.kv_heads;
    for (std::int64_t kv_head = 0; kv_head < kv_heads; kv_head += chunk_.heads) {
      dk_.heads = dv_.heads = std::min(chunk_.heads, kv_heads - kv_head);
      clear(dk_);
      clear(dv_);
      for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
        for (std::int64_t first = 0; first < p_.query_len; first += chunk_.rows) {
          add({h, dk_.heads, group, first, std::min(chunk_.rows, p_.query_len - first)}, answer);
        }
      }
      for (const auto& [sums, output] : {std::pair(&dk_, backward::dk), {&dv_, backward::dv}}) {
        finish(*sums, output, answer, kv_head * sums->of_head(), sums->of_head());
      }
    }
  }

 private:
  template <typename... Parameters, typename... Args>
  void for_elements(void (*kernel)(Parameters...), std::int64_t count, std::int64_t heads,
                    const Args&... args) {
    if (count == 0) return;
    launch(kernel, grid_of(ceil_of(count, element_threads), 1, heads), dim3(element_threads), 0,
           device_, args...);
  }
  template <typename... Parameters, typename... Args>
  void for_tiles(void (*kernel)(Parameters...), std::int64_t x, std::int64_t y, const Chunk& c,
                 const Args&... args) {
    if (x == 0 || y == 0) return;
    launch(kernel, grid_of(x, y, c.heads), dim3(tile_threads), tile_shared_bytes, device_, a_, c,
           args...);
  }
  void clear(const SumArrays& sums) { for_elements(clear_sums, sums.size(), 1, sums); }
  /// `first`, `step`: where the sums of the first head begin in the output, and the next one's.
  void finish(const SumArrays& sums, OutputIndex output, const AnswerArrays& answer,
              std::int64_t first, std::int64_t step) {
    for_elements(finish_elements, sums.of_head(), sums.heads, a_, sums,
                 gradient_sum_bounds(p_, a_.kernel, a_.own)[output.number], answer[output], first,
                 step);
  }

  /// All that the rows of a chunk are part of; finishes their dQ.
  void add(const Chunk& c, const AnswerArrays& answer) {
    const std::int64_t d = p_.head_dim, columns = p_.output_dim();
    const std::int64_t key_tiles = ceil_of(p_.key_len, tile_columns);
    const std::int64_t row_tiles = ceil_of(c.count, tile_rows);
    for_tiles(form_products, key_tiles, row_tiles, c,
              RowsAndKeys{a_.q, a_.k, c.count, p_.key_len, d, a_.dscores.sizes, a_.dscores.errors,
                          a_.pitch});
    for_tiles(form_products, key_tiles, row_tiles, c,
              RowsAndKeys{a_.d_o, a_.v, c.count, p_.key_len, columns, a_.weights.sizes,
                          a_.weights.errors, a_.pitch});
    for_tiles(form_terms, key_tiles, row_tiles, c);
    SumArrays dq = dq_;
    dq.heads = c.heads;
    dq.rows = c.count;
    clear(dq);
    add_terms(over_keys, c, a_.dscores, a_.k, dq);
    add_terms(over_rows, c, a_.dscores, a_.q, dk_);
    add_terms(over_rows, c, a_.weights, a_.d_o, dv_);
    finish(dq, backward::dq, answer, (c.head * p_.query_len + c.first) * d,
           c.step * p_.query_len * d);
  }

  using AdditionKernel = void (*)(GradientArrays, Chunk, Addition);
  struct AdditionKernels {
    AdditionKernel add, add_absolute, spoil;
  };
  static constexpr AdditionKernels over_keys{add_over_keys<Products::as_they_are>,
                                             add_over_keys<Products::absolute>, spoil_over_keys};
  static constexpr AdditionKernels over_rows{add_over_rows<Products::as_they_are>,
                                             add_over_rows<Products::absolute>, spoil_over_rows};

  void add_terms(const AdditionKernels& kernels, const Chunk& c, const TermArrays& terms,
                 const float* factors, const SumArrays& to) {
    static_assert(tile_rows == tile_columns, "rows of a sum are queries or keys");
    const std::int64_t x = ceil_of(to.rows, tile_rows), y = ceil_of(to.columns, tile_columns);
    const auto addition = [&](const double* of, double* sums) {
      return Addition{of, factors, sums, to.rows, to.columns};
    };
    for_tiles(kernels.add, x, y, c, addition(terms.sizes, to.values));
    for_tiles(kernels.add_absolute, x, y, c, addition(terms.sizes, to.sizes));
    for_tiles(kernels.add_absolute, x, y, c, addition(terms.errors, to.errors));
    for_tiles(kernels.add_absolute, x, y, c, addition(terms.own_errors, to.own_errors));
    if (has_bad_factors_)
      for_elements(kernels.spoil, to.of_head(), c.heads, a_, c, addition(nullptr, to.values));
  }

  Device& device_;
  const Problem p_;
  const ChunkSize chunk_;
  GradientArrays a_{};
  SumArrays dq_, dk_, dv_;  ///< of a chunk; of its KV heads
  bool has_bad_factors_ = false;
};

/// Leaves the whole answer in device memory.
AnswerArrays solve(Memory& memory, Device& device, const Problem& problem,
                   const InputOperands& inputs, const Roundings& roundings) {
  const AnswerArrays arrays = allocate_answer(memory, problem);
  GradientSolver(memory, device, problem, inputs, roundings.as<BackwardRoundings>()).solve(arrays);
  return arrays;
}

/// Scores as they are, without sinks, ALiBi and all else that modifies them. Of sums in integers
/// the bound needs the largest keys and values of each row.
bool covers(const Problem& problem, const Roundings& roundings) {
  return !has_modifications(problem) && !roundings.as<BackwardRoundings>().sums_dq_in_units;
}

DeviceReference gradient_reference() {
  DeviceReference reference = device_reference(backward_operation, solve);
  reference.worth_a_gpu = 0x1p26;
  reference.covers = covers;
  return reference;
}

const DeviceReferenceRegistration registration{gradient_reference()};

}  // namespace
}  // namespace attest
