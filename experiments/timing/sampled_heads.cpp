#include "experiments/timing/sampled_heads.hpp"

#include <algorithm>

#include "core/inputs/random.hpp"
#include "core/operations/quantise.hpp"
#include "cpu_reference/reference.hpp"

namespace attest {
namespace {

constexpr std::uint64_t seed_heads = 5;

/// The first rows of a head of an output, as a tensor of its own.
Tensor<float> head_of(const ResidentProblem& resident, OutputIndex output, std::int64_t entry,
                      std::int64_t head, const Shape& shape) {
  Tensor<float> rows(shape);
  if (rows.size() == 0) return rows;
  std::ranges::copy(resident.head_of(output, entry, head, shape[2]), rows.values().begin());
  return rows;
}

}  // namespace

SampledRows sample_heads(const ResidentProblem& resident, const KernelInfo& kernel,
                         const Plan& plan, std::int64_t heads) {
  const Problem& problem = resident.problem();
  const Operation& operation = *problem.operation;
  const Roundings roundings = kernel.precision(problem, plan);
  const std::int64_t all = problem.batch * problem.kv_heads;
  SampledRows sampled;
  sampled.operation = &operation;
  for (std::int64_t number = 0; number < std::min(heads, all); ++number) {
    const auto draw = static_cast<std::uint64_t>(number);
    const std::int64_t head = number == 0   ? 0
                              : number == 1 ? all - 1
                                            : random_below(seed_heads, 0, draw, all);
    const std::int64_t b = head / problem.kv_heads, h = head % problem.kv_heads;
    Problem one = problem;
    one.batch = one.query_heads = one.kv_heads = 1;
    one.key_len = problem.key_len_of(b);
    one.length_seed = 0;
    Inputs inputs;
    Tensor<float>& x = inputs[quantising::x] = Tensor<float>(key_shape(one));
    for (std::int64_t n = 0; n < one.key_len; ++n) {
      resident.copy_row(quantising::x, b, h, n, x.row(0, 0, n));
    }
    SampledRows::Row row{.kind = Rows::keys, .at = {b, h, 0, 0}};
    row.answer = reference_of(operation).exact(one, inputs, roundings);
    for (std::size_t i = 0; i < operation.outputs().size(); ++i) {
      const OutputIndex output{i};
      row.got[output] = head_of(resident, output, b, h, operation[output].shape(one));
    }
    sampled.rows.push_back(std::move(row));
  }
  return sampled;
}

}  // namespace attest
