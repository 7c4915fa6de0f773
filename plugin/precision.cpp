// What a plugin says about its roundings, as its operation names them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "core/attention/backward_roundings.hpp"
#include "core/attention/merge_roundings.hpp"
#include "core/attention/select_roundings.hpp"
#include "core/base/error.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/combine.hpp"
#include "core/operations/select.hpp"
#include "plugin/arguments.hpp"
#include "plugin/claim.hpp"

namespace attest {
namespace {

constexpr double fp32_roundoff = 0x1p-24;
constexpr std::int64_t longest_chain = std::int64_t{1} << 40;

[[noreturn]] void reject(const std::string& where, std::string_view field, const std::string& got,
                         std::string_view allowed) {
  throw InvalidInput(
      fmt::format("{}: precision field '{}' is {}; allowed: {}", where, field, got, allowed));
}

/// NaN fails the comparison.
double error_of(double value, std::string_view field, const std::string& where) {
  if (!(value >= 0 && value <= 1)) reject(where, field, fmt::format("{}", value), "0 to 1");
  return value;
}

std::int64_t count_of(std::int64_t value, std::string_view field, const std::string& where) {
  if (value < 0 || value > longest_chain) {
    reject(where, field, fmt::format("{}", value), "0 (the default) to 2^40");
  }
  return value;
}

bool flag_of(std::uint32_t value, std::string_view field, const std::string& where) {
  if (value > 1) reject(where, field, fmt::format("{}", value), "0, 1");
  return value == 1;
}

Accumulation accumulation_of(std::uint32_t fused_terms, std::uint32_t fraction_bits,
                             std::string_view product, const std::string& where) {
  if (fused_terms == 0 && fraction_bits == 0) return {};
  if (fused_terms < 1 || fused_terms > 1024) {
    reject(where, fmt::format("{}_fused_terms", product), fmt::format("{}", fused_terms),
           "1 to 1024, or 0 together with the fraction bits");
  }
  if (fraction_bits < 10 || fraction_bits > 64) {
    reject(where, fmt::format("{}_fraction_bits", product), fmt::format("{}", fraction_bits),
           "10 to 64, or 0 together with the fused terms");
  }
  return {.kind = Accumulation::Kind::tensor_core,
          .fused_terms = static_cast<int>(fused_terms),
          .fraction_bits = static_cast<int>(fraction_bits),
          .sum_bits = std::min(static_cast<int>(fraction_bits), 23)};
}

ExpMethod exp_of(const AttestPrecision& p, const std::string& where) {
  const double relative = error_of(p.exp_relative_error, "exp_relative_error", where);
  const double argument = error_of(p.exp_argument_error, "exp_argument_error", where);
  const bool is_one_at_zero = flag_of(p.exp_is_one_at_zero, "exp_is_one_at_zero", where);
  const bool is_scattered = flag_of(p.exp_is_scattered, "exp_is_scattered", where);
  if (p.exp != ATTEST_EXP_CUSTOM &&
      (relative != 0 || argument != 0 || is_one_at_zero || is_scattered)) {
    reject(where, "exp", fmt::format("{}", p.exp),
           "ATTEST_EXP_CUSTOM when exp_relative_error, exp_argument_error, exp_is_one_at_zero or "
           "exp_is_scattered is set");
  }
  switch (p.exp) {
    case ATTEST_EXP_LIBRARY:
      return library_expf();
    case ATTEST_EXP_FAST:
      return fast_expf();
    case ATTEST_EXP_EXP2: {
      // A kernel that rescales by 2^fl(fl(m - m') c) rounds the product there as well: one u more.
      ExpMethod exp = exp2_folded();
      exp.argument_error += fp32_roundoff;
      return exp;
    }
    case ATTEST_EXP_CUSTOM:
      return {.name = "the plugin's own exp",
              .relative_error = relative,
              .argument_error = argument,
              .is_one_at_zero = is_one_at_zero || relative == 0,
              .is_scattered = is_scattered};
    default:
      reject(where, "exp", fmt::format("{}", p.exp), "ATTEST_EXP_LIBRARY to ATTEST_EXP_CUSTOM");
  }
}

/// `otherwise` stands for 0.
ElementType format_named(const AttestFormat& format, ElementType otherwise, std::string_view field,
                         const std::string& where) {
  if (is_same(format, AttestFormat{})) return otherwise;
  const std::optional<ElementType> type = element_type_of(format);
  if (!type) reject(where, field, to_string(format), "0, ATTEST_FP32, ATTEST_FP16, ATTEST_BF16");
  return *type;
}

Rescale rescale_of(std::uint32_t rescale, const std::string& where) {
  switch (rescale) {
    case ATTEST_RESCALE_DEFERRED:
      return Rescale::deferred;
    case ATTEST_RESCALE_NONE:
      return Rescale::none;
    case ATTEST_RESCALE_NORMALISED:
      return Rescale::normalised_steps;
    default:
      reject(where, "rescale", fmt::format("{}", rescale),
             "ATTEST_RESCALE_DEFERRED, ATTEST_RESCALE_NONE, ATTEST_RESCALE_NORMALISED");
  }
}

Parts::Format part_format_of(const AttestFormat& format, std::string_view field,
                             const std::string& where) {
  constexpr std::array<std::pair<AttestFormat, Parts::Format>, 4> formats{
      {{AttestFormat{}, Parts::Format::whole},
       {ATTEST_TF32, Parts::Format::tf32},
       {ATTEST_FP16, Parts::Format::fp16},
       {ATTEST_BF16, Parts::Format::bf16}}};
  for (const auto& [known, result] : formats) {
    if (is_same(known, format)) return result;
  }
  reject(where, fmt::format("{}.format", field), to_string(format),
         "0, ATTEST_TF32, ATTEST_FP16, ATTEST_BF16");
}

Parts parts_of(const AttestParts& given, std::string_view field, const std::string& where) {
  const Parts::Format format = part_format_of(given.format, field, where);
  if (given.reserved != 0) {
    reject(where, fmt::format("{}.reserved", field), fmt::format("{}", given.reserved), "0");
  }
  if (format == Parts::Format::whole &&
      (given.count != 0 || given.cut != 0 || given.scaled_to != 0)) {
    reject(where, fmt::format("{}.format", field), "0 beside other fields of it",
           "ATTEST_TF32, ATTEST_FP16, ATTEST_BF16, or all of them 0");
  }
  const std::uint32_t count = std::max(given.count, 1U);
  if (count > 3) {
    reject(where, fmt::format("{}.count", field), fmt::format("{}", count), "0 (1) to 3");
  }
  if (given.cut > count) {
    reject(where, fmt::format("{}.cut", field), fmt::format("{}", given.cut),
           fmt::format("0 to {}, the number of parts", count));
  }
  // Half of the range: what is scaled to at least this may be twice as large.
  const double most = part_format(format).max_finite / 2;
  if (!(given.scaled_to >= 0 && given.scaled_to <= most)) {
    reject(where, fmt::format("{}.scaled_to", field), fmt::format("{}", given.scaled_to),
           fmt::format("0 to {:g}", most));
  }
  return {.format = format,
          .count = static_cast<int>(count),
          .cut = static_cast<int>(given.cut),
          .scaled_to = given.scaled_to};
}

double weight_scale_of(double given, const std::string& where) {
  int exponent = 0;
  const bool is_power = given > 0 && std::frexp(given, &exponent) == 0.5;
  if (given == 0) return 1;
  if (!is_power || exponent < -63 || exponent > 65) {
    reject(where, "weight_scale", fmt::format("{}", given),
           "0 (the default) or a power of two from 2^-64 to 2^64");
  }
  return given;
}

double lag_of(double given, const std::string& where) {
  if (!(given >= 0 && given <= 64)) {
    reject(where, "reference_lag", fmt::format("{}", given), "0 to 64");
  }
  return given;
}

LseForm lse_form_of(const AttestPrecision& p, const std::string& where) {
  switch (p.lse_form) {
    case ATTEST_LSE_DEFAULT:
      return p.exp == ATTEST_EXP_EXP2 ? LseForm::log2 : LseForm::natural;
    case ATTEST_LSE_NATURAL:
      return LseForm::natural;
    case ATTEST_LSE_LOG2:
      return LseForm::log2;
    default:
      reject(where, "lse_form", fmt::format("{}", p.lse_form),
             "ATTEST_LSE_DEFAULT, ATTEST_LSE_NATURAL, ATTEST_LSE_LOG2");
  }
}

Merge merge_of(std::uint32_t merge, const std::string& where) {
  switch (merge) {
    case ATTEST_MERGE_LSE_PAIRS:
      return Merge::lse_pairs;
    case ATTEST_MERGE_SUMS:
      return Merge::sums;
    case ATTEST_MERGE_NORMALISED_SUMS:
      return Merge::normalised_sums;
    default:
      reject(where, "merge", fmt::format("{}", merge),
             "ATTEST_MERGE_LSE_PAIRS, ATTEST_MERGE_SUMS, ATTEST_MERGE_NORMALISED_SUMS");
  }
}

std::int64_t or_default(std::int64_t value, std::int64_t otherwise) {
  return value > 0 ? value : std::max<std::int64_t>(otherwise, 1);
}

double division_error_of(const AttestPrecision& p, const std::string& where) {
  const double error = error_of(p.division_error, "division_error", where);
  return error > 0 ? error : fp32_roundoff;
}

double log_error_of(const AttestPrecision& p, const std::string& where) {
  const double error = error_of(p.log_error, "log_error", where);
  return error > 0 ? error : 2 * fp32_roundoff;
}

double softcap_error_of(const AttestPrecision& p, const std::string& where) {
  const double error = error_of(p.softcap_error, "softcap_error", where);
  return error > 0 ? error : 6 * fp32_roundoff;
}

/// Are all bytes from `begin` on 0?
bool is_silent_from(std::size_t begin, const AttestPrecision& p) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&p);
  return std::all_of(bytes + begin, bytes + sizeof p, [](unsigned char byte) { return byte == 0; });
}

/// Is a field set that backward kernels alone have? The last one is of forward.
bool speaks_of_backward(AttestPrecision p) {
  p.rounds_before_epilogue = 0;
  return !is_silent_from(offsetof(AttestPrecision, product_fused_terms), p);
}

PrecisionPlan forward_roundings(const AttestPrecision& p, const Problem& problem, const Plan& plan,
                                const std::string& where) {
  if (p.divides_weights != 0) {
    reject(where, "divides_weights", fmt::format("{}", p.divides_weights),
           "0: it is a field of operation 'combine'");
  }
  if (speaks_of_backward(p)) {
    reject(where, "product_fused_terms", "set, or one behind it",
           "0: they are fields of operation 'backward'");
  }
  if (p.scale > ATTEST_SCALE_IN_Q) {
    reject(where, "scale", fmt::format("{}", p.scale),
           "ATTEST_SCALE_AFTER_DOT, ATTEST_SCALE_IN_EXPONENT, ATTEST_SCALE_IN_Q");
  }
  PrecisionPlan result;
  result.score = accumulation_of(p.score_fused_terms, p.score_fraction_bits, "score", where);
  result.value = accumulation_of(p.value_fused_terms, p.value_fraction_bits, "value", where);
  result.scale_after_dot = p.scale == ATTEST_SCALE_AFTER_DOT;
  result.scale_folded_into_q = p.scale == ATTEST_SCALE_IN_Q;
  result.exp = exp_of(p, where);
  result.shifts_by_maximum = !flag_of(p.is_unshifted, "is_unshifted", where);
  result.weight_format =
      format_named(p.weight_format, problem.element_type, "weight_format", where);
  result.sums_rounded_weights = flag_of(p.sums_rounded_weights, "sums_rounded_weights", where);
  result.rescale = rescale_of(p.rescale, where);
  const std::int64_t tile = plan.key_tile;
  result.splits = or_default(count_of(p.splits, "splits", where), plan.key_splits);
  // Each split may end in a tile of its own.
  const std::int64_t tiles =
      tile > 0 ? (problem.key_len + tile - 1) / tile + result.splits - 1 : problem.key_len;
  result.blocks = or_default(count_of(p.blocks, "blocks", where), tiles);
  result.normaliser_chain = or_default(count_of(p.normaliser_chain, "normaliser_chain", where),
                                       problem.key_len + result.splits);
  result.division_error = division_error_of(p, where);
  result.log_error = log_error_of(p, where);
  result.flushes_subnormals = flag_of(p.flushes_subnormals, "flushes_subnormals", where);
  result.lse = lse_form_of(p, where);
  result.merge = merge_of(p.merge, where);
  result.partial_format =
      format_named(p.partial_format, ElementType::fp32, "partial_format", where);
  result.score_parts = parts_of(p.score_parts, "score_parts", where);
  result.value_parts = parts_of(p.value_parts, "value_parts", where);
  result.weight_scale = weight_scale_of(p.weight_scale, where);
  result.promoted_keys = count_of(p.promoted_keys, "promoted_keys", where);
  result.reference_lag = lag_of(p.reference_lag, where);
  result.softcap_error = softcap_error_of(p, where);
  result.rounds_before_epilogue =
      flag_of(p.rounds_before_epilogue, "rounds_before_epilogue", where);
  return result;
}

MergeRoundings merge_roundings(const AttestPrecision& p, const Problem& problem,
                               const std::string& where) {
  if (!is_silent_from(offsetof(AttestPrecision, scale), p)) {
    reject(where, "scale", "set, or one behind it",
           "0 for operation 'combine', which has the fields up to divides_weights");
  }
  return {.exp = exp_of(p, where),
          .division_error = division_error_of(p, where),
          .log_error = log_error_of(p, where),
          .divides_weights = flag_of(p.divides_weights, "divides_weights", where),
          .output = problem.element_type,
          .flushes_subnormals = flag_of(p.flushes_subnormals, "flushes_subnormals", where)};
}

/// Throws where a field is set that backward kernels do not have.
void require_fields_of_backward(AttestPrecision p, const std::string& where) {
  p.size = 0;
  p.exp = p.exp_is_one_at_zero = p.exp_is_scattered = p.flushes_subnormals = p.scale = 0;
  p.exp_relative_error = p.exp_argument_error = p.softcap_error = 0;
  p.score_fused_terms = p.score_fraction_bits = p.value_fused_terms = p.value_fraction_bits = 0;
  p.weight_format = {};
  p.lse_form = 0;
  // What is left before the fields of backward belongs to the others.
  AttestPrecision others{};
  std::copy_n(reinterpret_cast<const unsigned char*>(&p),
              offsetof(AttestPrecision, product_fused_terms),
              reinterpret_cast<unsigned char*>(&others));
  others.rounds_before_epilogue = p.rounds_before_epilogue;
  if (!is_silent_from(0, others)) {
    throw InvalidInput(
        fmt::format("{}: a precision field of another operation is set; allowed: those that "
                    "plugin.h names for operation 'backward'",
                    where));
  }
}

SelectRoundings select_roundings(AttestPrecision p, const std::string& where) {
  const SelectRoundings result{
      .score = accumulation_of(p.score_fused_terms, p.score_fraction_bits, "score", where)};
  p.size = p.score_fused_terms = p.score_fraction_bits = 0;
  if (!is_silent_from(0, p)) {
    throw InvalidInput(
        fmt::format("{}: a precision field of another operation is set; allowed: score_fused_terms "
                    "and score_fraction_bits for operation 'select'",
                    where));
  }
  return result;
}

BackwardRoundings backward_roundings(const AttestPrecision& p, const Problem& problem,
                                     const Plan& plan, const std::string& where) {
  require_fields_of_backward(p, where);
  if (p.scale > ATTEST_SCALE_IN_EXPONENT) {
    reject(where, "scale", fmt::format("{}", p.scale),
           "ATTEST_SCALE_AFTER_DOT, ATTEST_SCALE_IN_EXPONENT");
  }
  const auto tiles = [](std::int64_t count, std::int64_t tile) {
    return tile > 0 ? (count + tile - 1) / tile : 1;
  };
  const auto count = [&](std::int64_t value, std::string_view field, std::int64_t otherwise) {
    return or_default(count_of(value, field, where), otherwise);
  };
  const std::int64_t group =
      problem.kv_heads > 0 ? problem.query_heads / problem.kv_heads : std::int64_t{1};
  BackwardRoundings result;
  result.score = accumulation_of(p.score_fused_terms, p.score_fraction_bits, "score", where);
  result.product =
      accumulation_of(p.product_fused_terms, p.product_fraction_bits, "product", where);
  result.sums = accumulation_of(p.value_fused_terms, p.value_fraction_bits, "value", where);
  result.scale_after_dot = p.scale == ATTEST_SCALE_AFTER_DOT;
  result.softcap_error = softcap_error_of(p, where);
  result.exp = exp_of(p, where);
  result.lse = lse_form_of(p, where);
  result.delta_chain = count(p.delta_chain, "delta_chain", problem.output_dim());
  result.weight_format =
      format_named(p.weight_format, problem.element_type, "weight_format", where);
  result.dscore_format =
      format_named(p.dscore_format, problem.element_type, "dscore_format", where);
  result.dscore_of_rounded_weights =
      flag_of(p.dscore_of_rounded_weights, "dscore_of_rounded_weights", where);
  result.scales_dscore = flag_of(p.scales_dscore, "scales_dscore", where);
  result.dq_chain =
      count(p.dq_chain, "dq_chain", plan.key_tile > 0 ? plan.key_tile : problem.key_len);
  result.dq_parts = count(p.dq_parts, "dq_parts", tiles(problem.key_len, plan.key_tile));
  result.kv_chain = count(p.kv_chain, "kv_chain", problem.query_len * group);
  result.kv_tiles =
      count(p.kv_tiles, "kv_tiles", tiles(problem.query_len, plan.query_tile) * group);
  result.kv_parts = count(p.kv_parts, "kv_parts", 1);
  result.kv_part_format =
      format_named(p.kv_part_format, ElementType::fp32, "kv_part_format", where);
  result.dq_sum_format = format_named(p.dq_sum_format, ElementType::fp32, "dq_sum_format", where);
  result.output = problem.element_type;
  result.flushes_subnormals = flag_of(p.flushes_subnormals, "flushes_subnormals", where);
  return result;
}

}  // namespace

Roundings roundings_of(const AttestPrecision& p, const Problem& problem, const Plan& plan,
                       const std::string& where) {
  if (problem.operation == &combine_operation) return merge_roundings(p, problem, where);
  if (problem.operation == &backward_operation) return backward_roundings(p, problem, plan, where);
  if (problem.operation == &select_operation) return select_roundings(p, where);
  return forward_roundings(p, problem, plan, where);
}

}  // namespace attest
