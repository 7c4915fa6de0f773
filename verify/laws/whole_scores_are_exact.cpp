#include <algorithm>
#include <cmath>

#include "core/inputs/random.hpp"
#include "core/operations/quantised.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/one_key.hpp"
#include "verify/judge/streams.hpp"
#include "verify/judge/whole_numbers.hpp"

namespace attest {
namespace law_whole_scores_are_exact {

/// Sum of the products of a row, up to which an LSE in units of log2, four roundings of it, still
/// has its nearest whole number for certain.
constexpr double largest_score = 0x1p19;

double whole_of(const Problem& p, InputIndex tensor) {
  return std::min(127.0, largest_whole(quantised_operation[tensor].format(p)));
}

Case one_key(const Run& run) {
  Case c = with_one_key(run);
  c.problem.query_len = std::min(c.problem.query_len, c.problem.head_dim);
  return c;
}

/// Columns of Q that are not 0, so that no sum leaves the whole numbers that are exact.
std::int64_t columns_of(const Run& run, const Case& c) {
  const PrecisionPlan precision = run.kernel().precision(c.problem, c.plan).as<PrecisionPlan>();
  const double most = std::min(largest_score, largest_exact_sum(precision.score));
  const double product =
      whole_of(c.problem, quantised::q) * (whole_of(c.problem, quantised::k) + 1);
  return std::min(c.problem.head_dim, static_cast<std::int64_t>(most / product));
}

/// Whole numbers of both signs, -128 of int8 and -8 of int4 among them; a query has some that are
/// not 0, which begin at another column in each row.
Inputs whole_inputs(const Run& run, const Case& c) {
  const Problem& p = c.problem;
  const std::uint64_t seed = run.the_case().inputs.seed;
  Inputs inputs{Tensor<float>(query_shape(p)), Tensor<float>(key_shape(p)),
                Tensor<float>(value_shape(p), 1)};
  set_scales(p, inputs, 1);
  std::uint64_t number = 0;
  const auto draw = [&](double least, double most) {
    const auto width = static_cast<std::int64_t>(most - least) + 1;
    return static_cast<float>(
        least + static_cast<double>(random_below(seed, stream_whole_scores, number++, width)));
  };
  const double of_key = whole_of(p, quantised::k), of_query = whole_of(p, quantised::q);
  const double least_key =
      is_whole(quantised_operation[quantised::k].format(p)) ? -of_key - 1 : -of_key;
  for (float& x : inputs[quantised::k].values()) x = draw(least_key, of_key);
  const std::int64_t columns = columns_of(run, c);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t n = 0; n < p.query_len; ++n) {
        const auto row = inputs[quantised::q].row(b, h, n);
        for (std::int64_t i = 0; i < columns; ++i) {
          row[static_cast<std::size_t>((b + h + n * columns + i) % p.head_dim)] =
              draw(-of_query, of_query);
        }
      }
    }
  }
  return inputs;
}

const LawRegistration registration{
    {.name = "whole_scores_are_exact",
     .statement =
         "of whole Q and K, codes of int8 and int4 through their range, the sum of the products is "
         "exact: a row that sees one key has it as LSE, up to what LSE itself rounds",
     .cost = Law::Cost::more_launches,
     .operations = {&quantised_operation},
     .needs_own_values = true,
     .applies =
         [](Run& run) {
           const Case c = one_key(run);
           return run.kernel().gives(quantised::lse) && c.problem.rows() > 0 &&
                  !why_unsupported(run.kernel(), c) && columns_of(run, c) > 0;
         },
     .check =
         [](Run& run) {
           const Case c = one_key(run);
           const Problem& p = c.problem;
           const Inputs inputs = whole_inputs(run, c);
           const Launch launch = run.launch(c, inputs);
           const PrecisionPlan precision = run.kernel().precision(p, c.plan).as<PrecisionPlan>();
           const bool is_the_score = precision.lse == LseForm::natural;
           return check_rows(p, [&](std::int64_t b, std::int64_t h, std::int64_t n) {
             const auto q = inputs[quantised::q].row(b, h, n);
             const auto k = inputs[quantised::k].row(b, p.kv_head_of(h), 0);
             double score = 0;
             for (std::size_t d = 0; d < q.size(); ++d) score += static_cast<double>(q[d]) * k[d];
             const float got = launch.outputs[quantised::lse].at(b, h, n, 0);
             if ((is_the_score ? got : std::nearbyint(got)) == score) return Check::passed();
             return Check::failed_at("LSE", {.index = {b, h, n, 0}, .got = got, .want = score},
                                     "the score of the one key is not the whole number q.k");
           });
         }}};

}  // namespace law_whole_scores_are_exact
}  // namespace attest
