#include "cpu_reference/forward/error_model.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "core/operations/forward.hpp"
#include "cpu_reference/forward/error_constants.hpp"
#include "cpu_reference/forward/error_model_row.hpp"

namespace attest {
namespace {

using namespace error_model;

bool all_finite(const Tensor<float>& tensor) {
  return std::ranges::all_of(tensor.values(), [](float x) { return std::isfinite(x); });
}

}  // namespace

std::vector<RowErrorModel> model_errors(const Problem& problem, const Inputs& inputs,
                                        const PrecisionPlan& precision, const Answer& answer,
                                        const ErrorModelScope& scope) {
  std::vector<RowErrorModel> models;
  if (problem.key_len == 0 || problem.rows() == 0 || !precision.shifts_by_maximum) return models;
  // Rows share what a key's parts leave of it: not modelled where that is most of their error.
  for (const Parts& parts : {precision.score_parts, precision.value_parts}) {
    if (rest_of(parts, parts.count) > 4 * u) return models;
  }
  if (precision.value_parts.count > 1 && precision.promoted_keys == 0) return models;
  // What a capped score errs by hangs on how far it is capped: not modelled, nor is what is added
  // to scores, weights and sums.
  if (problem.softcap > 0 || has_modifications(problem) || problem.list_seed != 0) return models;
  if (!all_finite(inputs[forward::q]) || !all_finite(inputs[forward::k]) ||
      !all_finite(inputs[forward::v]))
    return models;
  // Odd, so that the rows taken lie at every place of a tile.
  const std::int64_t most = std::max<std::int64_t>(scope.largest_row_count, 1);
  const std::int64_t step = (problem.rows() + most - 1) / most | 1;
  Modeller modeller(problem, precision, answer, scope);
  std::set<std::vector<float>> seen;
  Head head;
  std::int64_t loaded = -1;
  for (std::int64_t index = 0; index < problem.rows(); index += step) {
    RowErrorModel row;
    row.b = index / problem.query_len / problem.query_heads;
    row.h = index / problem.query_len % problem.query_heads;
    row.n = index % problem.query_len;
    const std::int64_t kv_head = problem.kv_head_of(row.h);
    const std::int64_t kv = row.b * problem.kv_heads + kv_head;
    if (kv != loaded) {
      head.kept = KeptKeys(problem, row.b);
      head.k = copy_of(inputs[forward::k], row.b, kv_head, head.kept);
      head.v = copy_of(inputs[forward::v], row.b, kv_head, head.kept);
      head.k2 = head.k.array().square();
      head.k_by_dim = head.k.transpose();
      head.v2 = head.v.array().square();
      head.largest_v = head.v.size() > 0 ? static_cast<double>(head.v.cwiseAbs().maxCoeff()) : 0;
      loaded = kv;
      seen.clear();
    }
    const auto query = inputs[forward::q].row(row.b, row.h, row.n);
    if (!seen.emplace(query.begin(), query.end()).second) continue;
    if (modeller.model(head, query, row)) models.push_back(std::move(row));
  }
  return models;
}

}  // namespace attest
