#include <algorithm>
#include <cmath>

#include "core/operations/quantised.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/one_key.hpp"
#include "verify/judge/whole_numbers.hpp"

namespace attest {
namespace law_one_key_shows_codes {

/// Of 8 bits; 16 of 4 come round.
constexpr std::int64_t codes = 256;
/// Of V: a power of two, so that a product with it has no rounding.
constexpr float value_scale = 0.5F;

/// Columns of a key that its queries look at, one each.
std::int64_t columns_seen(const Problem& p) {
  return std::min(p.head_dim, p.query_heads / p.kv_heads * p.query_len);
}

/// One key, in so many entries that all codes have a column that is looked at.
Case one_key(const Run& run) {
  Case c = with_one_key(run);
  Problem& p = c.problem;
  p.query_len = std::min(p.query_len, p.head_dim);
  if (p.rows() == 0) return c;
  const std::int64_t in_entry = p.kv_heads * std::min(columns_seen(p), p.output_dim());
  p.batch = (codes + in_entry - 1) / in_entry;
  c.layouts = fitted(run.kernel().layout_needs, p, {});
  return c;
}

/// Code after code in the first `columns` columns; formats that are none keep ones.
void fill(Tensor<float>& tensor, ElementType type, std::int64_t columns) {
  if (!is_code(type)) return;
  const Shape shape = tensor.shape();
  std::uint32_t number = 0;
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t c = 0; c < columns; ++c) {
        tensor.at(b, h, 0, c) = decode(type, number++ % pattern_count(type));
      }
    }
  }
}

void keep_finite(Tensor<float>& tensor) {
  for (float& x : tensor.values()) x = std::isfinite(x) ? x : 0.0F;
}

/// A query is 1 in the column that it looks at. A NaN in K would reach all queries of its head.
Inputs all_codes(const Problem& p) {
  Inputs inputs{Tensor<float>(query_shape(p)), Tensor<float>(key_shape(p), 1),
                Tensor<float>(value_shape(p), 1)};
  set_scales(p, inputs, 1);
  for (float& x : inputs[quantised::v_scale].values()) x = value_scale;
  const std::int64_t columns = columns_seen(p), group = p.query_heads / p.kv_heads;
  fill(inputs[quantised::k], quantised_operation[quantised::k].format(p), columns);
  fill(inputs[quantised::v], quantised_operation[quantised::v].format(p), p.output_dim());
  keep_finite(inputs[quantised::k]);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t n = 0; n < p.query_len; ++n) {
        inputs[quantised::q].at(b, h, n, (h % group * p.query_len + n) % columns) = 1;
      }
    }
  }
  return inputs;
}

/// A NaN where the code is one, an infinity of its sign where it is that; finite ones are exact, or
/// within the bound of a kernel that does not divide to the last bit.
Check check_values(const Problem& p, const Inputs& inputs, const Outputs& got, const Answer& answer,
                   bool is_exact) {
  return check_rows(p, [&](std::int64_t b, std::int64_t h, std::int64_t n) {
    for (std::int64_t d = 0; d < p.output_dim(); ++d) {
      const double code = inputs[quantised::v].at(b, p.kv_head_of(h), 0, d);
      const double want =
          round_to(p.element_type, p.codes.v_scales == Scales::none ? code : code * value_scale);
      const double o = got[quantised::o].at(b, h, n, d);
      const double bound = is_exact ? 0 : answer[quantised::o].bound.at(b, h, n, d);
      const bool is_right = std::isnan(want)   ? std::isnan(o)
                            : std::isinf(want) ? o == want
                                               : within(bound, std::abs(o - want));
      if (is_right) continue;
      return Check::failed_at("O", {.index = {b, h, n, d}, .got = o, .want = want, .bound = bound},
                              "the value of the one key is not what its code and scale stand for");
    }
    return Check::passed();
  });
}

const LawRegistration registration{
    {.name = "one_key_shows_codes",
     .statement =
         "all 256, or 16, codes of a value that is the only one come out as the number that they "
         "stand for times the scale, NaN as NaN; those of a key, one a query, as LSE",
     .cost = Law::Cost::more_launches,
     .operations = {&quantised_operation},
     .needs_own_values = true,
     .applies =
         [](Run& run) {
           const Case c = one_key(run);
           return c.problem.rows() > 0 && !why_unsupported(run.kernel(), c);
         },
     .check =
         [](Run& run) {
           const Case c = one_key(run);
           const Problem& p = c.problem;
           const Inputs inputs = all_codes(p);
           const Launch launch = run.launch(c, inputs);
           Inputs finite = inputs;
           keep_finite(finite[quantised::v]);
           const Answer answer = run.answer_to(p, c.plan, finite);
           const PrecisionPlan precision = run.kernel().precision(p, c.plan).as<PrecisionPlan>();
           const Check values =
               check_values(p, inputs, launch.outputs, answer, averages_exactly(precision));
           if (values.status == Check::Status::failed) return values;
           return check_output(run.kernel(), quantised::lse, launch.outputs, answer,
                               "LSE of one key is not what its code stands for");
         }}};

}  // namespace law_one_key_shows_codes
}  // namespace attest
