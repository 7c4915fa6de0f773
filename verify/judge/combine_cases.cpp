#include "verify/judge/combine_cases.hpp"

#include <algorithm>
#include <cmath>

#include "core/attention/merge_roundings.hpp"
#include "core/operations/combine.hpp"

namespace attest {

bool merges_exactly(Run& run) {
  const Roundings roundings = run.kernel().precision(run.problem(), run.the_case().plan);
  const auto& how = roundings.as<MergeRoundings>();
  return how.exp.is_one_at_zero && how.division_error <= format_of(ElementType::fp32).unit_roundoff;
}

Case with_parts(const Run& run, std::int64_t parts) {
  Case c = run.the_case();
  c.problem.parts = parts;
  c.layouts = {};
  return c;
}

bool can_have_parts(const Run& run, std::int64_t parts) {
  return run.problem().rows() > 0 && !why_unsupported(run.kernel(), with_parts(run, parts));
}

Inputs with_selected_parts(Problem problem, const Inputs& from,
                           const std::vector<std::int64_t>& parts,
                           const std::function<float(float)>& change) {
  const std::int64_t queries = problem.query_len;
  problem.parts = static_cast<std::int64_t>(parts.size());
  Inputs to{Tensor<float>(combine_operation[combine::partial_o].shape(problem)),
            Tensor<float>(combine_operation[combine::partial_lse].shape(problem))};
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      for (std::int64_t row = 0; row < problem.parts * queries; ++row) {
        const std::int64_t source =
            parts[static_cast<std::size_t>(row / queries)] * queries + row % queries;
        std::ranges::transform(from[combine::partial_o].row(b, h, source),
                               to[combine::partial_o].row(b, h, row).begin(), change);
        to[combine::partial_lse].at(b, h, row, 0) = from[combine::partial_lse].at(b, h, source, 0);
      }
    }
  }
  return to;
}

void fill_part(const Problem& problem, Inputs& inputs, std::int64_t part, float lse, float o) {
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      for (std::int64_t n = 0; n < problem.query_len; ++n) {
        const std::int64_t row = part * problem.query_len + n;
        std::ranges::fill(inputs[combine::partial_o].row(b, h, row), o);
        inputs[combine::partial_lse].at(b, h, row, 0) = lse;
      }
    }
  }
}

Check check_gives_first_part(Run& run, const Case& c, const Inputs& inputs, const Outputs& got,
                             std::string_view failure) {
  const Problem& p = c.problem;
  Outputs want = got;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t n = 0; n < p.query_len; ++n) {
        if (std::isinf(inputs[combine::partial_lse].at(b, h, n, 0))) continue;
        // A sum that begins with +0 may lose the sign of a zero.
        std::ranges::transform(
            inputs[combine::partial_o].row(b, h, n), got[combine::o].row(b, h, n),
            want[combine::o].row(b, h, n).begin(), [&](float x, float y) {
              return x == 0 && y == 0 ? y : static_cast<float>(round_to(p.element_type, x));
            });
      }
    }
  }
  return check_agree(run.kernel(), got, want, {}, failure);
}

}  // namespace attest
