#include "cpu_reference/backward/gradient_bound.hpp"

#include "core/attention/dq_units.hpp"
#include "core/attention/shared_bias.hpp"
#include "cpu_reference/forward/added_to_score.hpp"
#include "cpu_reference/rounding/chain_error.hpp"
#include "cpu_reference/rounding/exponential_error.hpp"

namespace attest {
namespace {

/// Rounding to a format narrower than the arithmetic; otherwise nothing is rounded but what the
/// arithmetic has rounded.
StoredRounding stored_in(ElementType type, const Arithmetic& arithmetic) {
  const ElementFormat& format = format_of(type);
  const bool is_narrow = format.unit_roundoff > fp32_arithmetic.unit_roundoff &&
                         arithmetic.unit_roundoff == fp32_arithmetic.unit_roundoff;
  return is_narrow ? stored_rounding(format) : StoredRounding{0, 0, arithmetic.max_finite};
}

/// kappa of a chain of products, and the additions of several such chains: each is stored with the
/// relative error `of_part` before, their sum with `of_sum` after each addition, that to 0 too.
double sum_of_chains(const Accumulation& how, double terms, double tiles, double parts,
                     const Arithmetic& arithmetic, double of_part, double of_sum) {
  const double u = arithmetic.unit_roundoff;
  const double of_chain = accumulation_error(how, terms, tiles, arithmetic);
  const double of_parts =
      of_sum > 0 ? chain_error(parts, u + of_sum * (1 + u)) : chain_error(parts - 1, u);
  return (1 + of_chain) * (1 + of_part) * (1 + of_parts) - 1;
}

/// The rounding in units of what is stored, before a factor multiplies it.
StoredRounding before_factor(StoredRounding rounding, double factor) {
  if (factor == 0) return rounding;
  return {rounding.relative, rounding.absolute / factor, rounding.overflow / factor};
}

}  // namespace

GradientConstants gradient_constants(const BackwardRoundings& how, const Problem& problem,
                                     const Arithmetic& arithmetic) {
  const double u = arithmetic.unit_roundoff;
  const Underflow underflow = underflow_of(arithmetic, how.flushes_subnormals);
  const double lost = underflow.results_per_term * underflow.of_result;  // a term of a sum
  const double d = static_cast<double>(problem.head_dim);
  const double columns = static_cast<double>(problem.output_dim());
  const double scale = std::abs(static_cast<double>(problem.scale));
  const double cap = static_cast<double>(problem.softcap);
  const double keys = static_cast<double>(how.dq_chain * how.dq_parts);
  const double rows = static_cast<double>(how.kv_chain * how.kv_parts);
  // Windows, documents, padding and lists begin within a step, or leave gaps in it.
  const bool has_edges = is_window(problem.mask) || problem.document_seed != 0 ||
                         problem.padding_seed != 0 || problem.list_seed != 0;
  const double edges = has_edges ? 2 : 1;

  GradientConstants c{};
  c.score_relative = accumulation_error(how.score, d, 1, arithmetic);
  if (how.scale_after_dot) {
    c.score_rounding = u;
    c.score_relative += u * c.score_relative;
  }
  c.score_absolute = d * lost * scale + underflow.of_result;
  if (cap > 0) {
    // What scaling rounds is relative to the score before, which A alone bounds.
    c.score_relative += c.score_rounding;
    c.score_rounding = 0;
    const double of_cap = declared_error(how.softcap_error, arithmetic);
    c.slope_per_score = 0.77 / cap;
    c.slope_absolute = 2 * of_cap + 4 * u;
    c.score_absolute += of_cap * cap;
  }
  const bool is_base_2 = how.exp.argument_error > 0 || how.lse == LseForm::log2;
  const double roundings = roundings_of_terms(problem, how.scale_after_dot, is_base_2);
  if (roundings > 0) {
    c.added = chain_error(roundings, u);
    c.score_relative *= 1 + c.added;
    c.score_rounding *= 1 + c.added;
    c.score_absolute = c.score_absolute * (1 + c.added) + roundings * underflow.of_result;
  }
  const ExponentialError exp = exponential_error(how.exp, arithmetic);
  c.exponent = exp.constant;
  c.argument = exp.per_difference;
  if (how.lse == LseForm::log2) c.sizes = chain_error(2, u);
  c.lse = stored_in(how.lse_format, arithmetic);
  c.product_relative = accumulation_error(how.product, columns, 1, arithmetic);
  c.product_absolute = columns * lost;
  c.product = {0, 0, std::numeric_limits<double>::infinity()};
  const double of_lse = problem.lse_gradient == LseGradient::given ? 1 : 0;
  c.delta_relative = chain_error(static_cast<double>(how.delta_chain) + of_lse, u);
  c.delta_absolute = (columns + of_lse) * lost;
  c.delta = stored_in(how.delta_format, arithmetic);
  c.dscore_chain = chain_error(3, u);
  c.rounding = u;
  c.kept = problem.dropout > 0 ? chain_error(3, u) : 0;
  const double shares = static_cast<double>((entries_share_bias(problem) ? problem.batch : 1) *
                                            (heads_share_bias(problem) ? problem.query_heads : 1));
  c.of_dbias = chain_error(shares - 1, u);
  c.of_dsinks = chain_error(static_cast<double>(problem.batch * problem.query_len), u);
  c.weight = stored_in(how.weight_format, arithmetic);
  c.dscore_of_rounded_weights = how.dscore_of_rounded_weights;
  c.dscore = stored_in(how.dscore_format, arithmetic);
  if (how.scales_dscore) c.dscore = before_factor(c.dscore, scale);
  c.max_finite = arithmetic.max_finite;
  const StoredRounding dq_sum = stored_in(how.dq_sum_format, arithmetic);
  const StoredRounding dq_part = stored_in(how.dq_part_format, arithmetic);
  if (how.sums_dq_in_units) c.dq_parts_in_units = static_cast<double>(how.dq_parts);
  c.of_dq = sum_of_chains(how.sums, static_cast<double>(how.dq_chain), edges,
                          how.sums_dq_in_units ? 1 : static_cast<double>(how.dq_parts), arithmetic,
                          how.sums_dq_in_units ? u : dq_part.relative, dq_sum.relative);
  c.dq_sum_limit =
      std::min(dq_sum.relative > 0 ? dq_sum.overflow * scale : c.max_finite, dq_part.overflow);
  const StoredRounding part = stored_in(how.kv_part_format, arithmetic);
  c.of_dv = sum_of_chains(how.sums, static_cast<double>(how.kv_chain),
                          static_cast<double>(how.kv_tiles) * edges,
                          static_cast<double>(how.kv_parts), arithmetic, part.relative, 0);
  c.kv_part_limit = part.overflow;
  c.of_dk = (1 + c.of_dv) * (1 + u) - 1;
  c.of_dq = (1 + c.of_dq) * (1 + u) - 1;
  c.dq_absolute = keys * lost + static_cast<double>(how.dq_parts) * (1 + c.of_dq) *
                                    (dq_sum.absolute + before_factor(dq_part, scale).absolute);
  const double parts = static_cast<double>(how.kv_parts);
  c.dk_absolute = rows * lost + parts * before_factor(part, scale).absolute;
  c.dv_absolute = rows * lost + parts * part.absolute;
  c.output = stored_in(how.output, arithmetic);
  c.output.absolute += underflow.of_result;
  c.tiny = arithmetic.min_normal;
  return c;
}

double units_error(const GradientConstants& c, const DqRowInUnits& row) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double without_delta = row.gradient * row.largest_value;
  const auto size_with = [&](double delta, double slack) {
    return (without_delta + delta) * row.largest_key * slack;
  };
  const double most = size_with(row.delta + row.delta_error, 1 + dq_size_slack);
  const double least = size_with(std::max(0.0, row.delta - row.delta_error), 1 - dq_size_slack);
  if (!(most < c.max_finite) || !(without_delta + row.delta < c.max_finite)) return infinity;
  const double parts = evaluation_slack * (1 + c.of_dq) * row.largest_key * row.dscores;
  const double range = dq_range - c.dq_parts_in_units;
  if (!(parts < range * std::ldexp(dq_unit(least), dq_range_step_bits))) return infinity;
  return c.dq_parts_in_units * dq_unit(most) / 2;
}

BackwardRoundings reference_roundings(const Problem& problem) {
  const std::int64_t rows =
      std::max<std::int64_t>(1, problem.query_len * (problem.query_heads / problem.kv_heads));
  // The C library's exp is within one ulp, its tanh within two.
  return {.softcap_error = 0x1p-50,
          .exp = {"exp", 0x1p-52, 0},
          .delta_chain = problem.output_dim(),
          .dq_chain = std::max<std::int64_t>(1, problem.key_len),
          .kv_chain = rows};
}

}  // namespace attest
