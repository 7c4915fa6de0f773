#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "core/inputs/random.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/select.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"
#include "verify/judge/variation.hpp"

namespace attest {
namespace law_hidden_keys_irrelevant {

/// A query of one entry.
struct Row {
  std::int64_t b = 0, n = 0;
};

/// The row whose hidden keys are replaced: it sees some key of its entry and not all of them.
std::optional<Row> drawn_row(Run& run) {
  const Problem& problem = run.problem();
  std::vector<Row> rows;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t n = 0; n < problem.query_len; ++n) {
      const std::int64_t count = visible_key_count(problem, b, n);
      if (count > 0 && count < problem.key_len_of(b)) rows.push_back({b, n});
    }
  }
  if (rows.empty()) return std::nullopt;
  const auto pick = random_below(run.the_case().inputs.seed, stream_hidden_keys, 0,
                                 static_cast<std::int64_t>(rows.size()));
  return rows[static_cast<std::size_t>(pick)];
}

/// The keys of an entry that are replaced: those that row n of it does not see. Rows that do not
/// exist hide nothing.
std::vector<std::int64_t> hidden_keys(const Problem& problem, std::int64_t b, std::int64_t n) {
  std::vector<std::int64_t> keys;
  for (std::int64_t key = 0; key < problem.key_len_of(b) && n < problem.query_len_of(b); ++key) {
    if (!problem.sees(b, n, key)) keys.push_back(key);
  }
  return keys;
}

/// The largest finite |element| of a head, 0 if there is none.
float largest_of(const Tensor<float>& tensor, std::int64_t b, std::int64_t h) {
  float largest = 0;
  for (std::int64_t n = 0; n < tensor.shape()[2]; ++n) {
    for (const float x : tensor.row(b, h, n)) {
      if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
    }
  }
  return largest;
}

/// Without a value: the largest of each head.
Inputs with_hidden(const Problem& problem, Inputs inputs, std::int64_t n,
                   std::optional<float> value) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if ((*problem.operation)[InputIndex{i}].rows != Rows::keys) continue;
    Tensor<float>& tensor = inputs[InputIndex{i}];
    for (std::int64_t b = 0; b < problem.batch; ++b) {
      const std::vector<std::int64_t> keys = hidden_keys(problem, b, n);
      for (std::int64_t h = 0; h < problem.kv_heads; ++h) {
        const float put = value ? *value : largest_of(tensor, b, h);
        for (const std::int64_t key : keys) std::ranges::fill(tensor.row(b, h, key), put);
      }
    }
  }
  return inputs;
}

/// [batch][query]: sees none of the keys that are hidden from row `n` of its entry.
std::vector<std::vector<bool>> unmoved_rows(const Problem& problem, std::int64_t n) {
  std::vector<std::vector<bool>> unmoved;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const std::vector<std::int64_t> keys = hidden_keys(problem, b, n);
    std::vector<bool>& rows = unmoved.emplace_back();
    for (std::int64_t query = 0; query < problem.query_len; ++query) {
      rows.push_back(std::ranges::none_of(
          keys, [&](std::int64_t key) { return problem.sees(b, query, key); }));
    }
  }
  return unmoved;
}

/// The rows that see no replaced key have the results of the base launch. So have the gradients of
/// keys that were not replaced, since LSE and O are given.
Check check_hidden(Run& run, const Row& row, std::optional<float> value) {
  const Problem& problem = run.problem();
  const Outputs& base = run.base().outputs;
  const Launch launch =
      run.launch(run.the_case(), with_hidden(problem, run.inputs(), row.n, value));
  const std::string failure = fmt::format(
      "keys that query {} does not see became {}, and a row that cannot see them changed", row.n,
      value ? fmt::format("{}", *value) : "the largest of their head");
  const auto unmoved = unmoved_rows(problem, row.n);
  return check_agree(
      run.kernel(), launch.outputs, base, agreement_of(run, {.neighbours = true}), failure,
      [&](OutputIndex output, std::int64_t b, std::int64_t, std::int64_t n, std::int64_t) {
        const TensorSpec& tensor = (*problem.operation)[output];
        if (tensor.rows == Rows::keys) return problem.sees(b, row.n, n);
        const auto at = static_cast<std::size_t>(n);
        if (tensor.is_of_pairs) {  // entries may share them
          return std::ranges::all_of(unmoved, [at](const auto& rows) { return rows[at]; });
        }
        // What sums over rows is formed of LSE and O, which stay.
        if (has_no_queries(problem, output)) return true;
        return unmoved[static_cast<std::size_t>(b)][at];
      });
}

bool scales_heads(const Run& run) {
  if (run.problem().operation != &forward_operation) return false;
  const PrecisionPlan plan =
      run.kernel().precision(run.problem(), run.the_case().plan).as<PrecisionPlan>();
  return may_scale_heads(run.kernel(), plan.score_parts) ||
         may_scale_heads(run.kernel(), plan.value_parts);
}

const LawRegistration registration{
    {.name = "hidden_keys_irrelevant",
     .statement = "replacing keys and values that a row cannot see, future ones, those outside its "
                  "window and padded ones, by NaN or by a huge number (by the largest of the head, "
                  "where heads may be scaled by that), changes none of its bits",
     .cost = Law::Cost::more_launches,
     .operations = {&forward_operation, &backward_operation, &select_operation},
     .applies = [](Run& run) { return drawn_row(run).has_value(); },
     .check =
         [](Run& run) {
           const Row row = *drawn_row(run);
           // 1e30 where the format holds it: its products overflow, which a mask must hide too.
           const double largest = format_of(run.problem().element_type).max_finite;
           const auto huge = static_cast<float>(std::min(1e30, largest));
           if (run.kernel().ignores_hidden_nan) {
             const Check check = check_hidden(run, row, std::numeric_limits<float>::quiet_NaN());
             if (check.status == Check::Status::failed) return check;
           }
           return check_hidden(run, row, scales_heads(run) ? std::nullopt : std::optional(huge));
         }}};

}  // namespace law_hidden_keys_irrelevant
}  // namespace attest
