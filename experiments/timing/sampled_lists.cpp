#include "experiments/timing/sampled_lists.hpp"

#include <algorithm>

#include "core/inputs/random.hpp"
#include "core/operations/select.hpp"
#include "cpu_reference/reference.hpp"

namespace attest {
namespace {

constexpr std::uint64_t seed_lists = 6;

/// A query of the problem, as one of its own.
struct OneQuery {
  Problem problem;
  Inputs inputs;
  std::vector<std::int64_t> keys;  ///< their numbers in the problem
};

OneQuery query_at(const ResidentProblem& resident, std::int64_t b, std::int64_t n) {
  OneQuery one{resident.problem(), {}, visible_keys_of(resident.problem(), b, n)};
  Problem& p = one.problem;
  p.batch = p.query_len = 1;
  p.key_len = std::ssize(one.keys);
  p.mask = Mask::none;
  p.window = {};
  take_away_seeds(p);
  for (const InputIndex input : {selecting::q, selecting::k, selecting::weights}) {
    Tensor<float>& to = one.inputs[input] = Tensor<float>(select_operation[input].shape(p));
    for (std::int64_t h = 0; h < to.shape()[1]; ++h) {
      for (std::int64_t i = 0; i < to.shape()[2]; ++i) {
        const std::int64_t row = input == selecting::k ? one.keys[static_cast<std::size_t>(i)] : n;
        resident.copy_row(input, b, h, row, to.row(0, h, i));
      }
    }
  }
  return one;
}

/// Keys by their numbers in the problem of the query alone; what is none of its keys is none there.
void renumber(std::span<float> list, const std::vector<std::int64_t>& keys) {
  for (float& key : list) {
    if (key == selecting::no_key) continue;
    const auto at = std::ranges::lower_bound(keys, static_cast<std::int64_t>(key));
    const bool is_one = at != keys.end() && static_cast<float>(*at) == key;
    key = static_cast<float>(is_one ? at - keys.begin() : std::ssize(keys));
  }
}

}  // namespace

SampledRows sample_lists(const ResidentProblem& resident, const KernelInfo& kernel,
                         const Plan& plan, std::int64_t lists) {
  const Problem& problem = resident.problem();
  SampledRows sampled;
  sampled.operation = &select_operation;
  const std::int64_t all = problem.batch * problem.query_len;
  for (std::int64_t number = 0; number < std::min(lists, all); ++number) {
    const auto draw = static_cast<std::uint64_t>(number);
    const std::int64_t list = number == 0   ? 0
                              : number == 1 ? all - 1
                                            : random_below(seed_lists, 0, draw, all);
    const std::int64_t b = list / problem.query_len, n = list % problem.query_len;
    if (n >= problem.query_len_of(b)) continue;
    const OneQuery one = query_at(resident, b, n);
    SampledRows::Row row{.kind = Rows::neither, .at = {b, 0, n, 0}};
    row.answer = reference_of(select_operation)
                     .exact(one.problem, one.inputs, kernel.precision(problem, plan));
    for (std::size_t i = 0; i < select_operation.outputs().size(); ++i) {
      const OutputIndex output{i};
      Tensor<float>& got = row.got[output] =
          Tensor<float>(select_operation[output].shape(one.problem));
      if (got.size() > 0) std::ranges::copy(resident.row_of(output, b, 0, n), got.values().begin());
    }
    renumber(row.got[selecting::keys].values(), one.keys);
    select_operation.canonical(one.problem, row.got);
    sampled.rows.push_back(std::move(row));
  }
  return sampled;
}

}  // namespace attest
