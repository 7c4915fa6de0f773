#include <algorithm>

#include "verify/judge/agreement.hpp"

namespace attest {
namespace law_permuted_heads_bitwise {

/// Sums over a group, as a backward pass has them, are made in the order of its query heads.
bool sums_over_groups(const Operation& operation) {
  return std::ranges::any_of(operation.outputs(),
                             [](const TensorSpec& output) { return output.rows == Rows::keys; });
}

/// Heads in reverse, and the batch unless lengths or padding belong to its places; query heads keep
/// their key/value head, and where groups are summed their order in the group.
Tensor<float> reversed(const Problem& problem, const Tensor<float>& from) {
  const bool keeps_batch = problem.length_seed != 0 || problem.padding_seed != 0;
  Tensor<float> to(from.shape());
  const Shape shape = from.shape();
  const std::int64_t together =
      sums_over_groups(*problem.operation) ? shape[1] / problem.kv_heads : 1;
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      const std::int64_t to_head = shape[1] - together * (h / together + 1) + h % together;
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        const std::int64_t to_entry = keeps_batch ? b : shape[0] - 1 - b;
        std::ranges::copy(from.row(b, h, n), to.row(to_entry, to_head, n).begin());
      }
    }
  }
  return to;
}

const LawRegistration registration{
    {.name = "permuted_heads_bitwise",
     .statement = "permuting batch and heads permutes the outputs bit for bit",
     .cost = Law::Cost::more_launches,
     .applies = [](Run& run) { return run.problem().batch * run.problem().query_heads > 1; },
     .check =
         [](Run& run) {
           const auto reverse = [&](const Tensor<float>& tensor) {
             return reversed(run.problem(), tensor);
           };
           const Launch launch = run.launch(run.the_case(), mapped(run.inputs(), reverse));
           // Heads that are packed into the rows of a tile are neighbours.
           return check_agree(
               run.kernel(), mapped(launch.outputs, reverse), run.base().outputs,
               agreement_of(run, {.batch = true, .addresses = true, .neighbours = true}),
               "with batch and heads reversed, a head has another result");
         }}};

}  // namespace law_permuted_heads_bitwise
}  // namespace attest
