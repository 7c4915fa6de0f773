// What a plugin says about its roundings, as a PrecisionPlan.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
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
          .fraction_bits = static_cast<int>(fraction_bits)};
}

ExpMethod exp_of(const AttestPrecision& p, const std::string& where) {
  const double relative = error_of(p.exp_relative_error, "exp_relative_error", where);
  const double argument = error_of(p.exp_argument_error, "exp_argument_error", where);
  if (p.exp != ATTEST_EXP_CUSTOM && (relative != 0 || argument != 0)) {
    reject(where, "exp", fmt::format("{}", p.exp),
           "ATTEST_EXP_CUSTOM when exp_relative_error or exp_argument_error is set");
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
      // The declared limit holds at 0, too, and says nothing about how the error is spread below
      // it.
      return {.name = "the plugin's own exp",
              .relative_error = relative,
              .argument_error = argument,
              .is_one_at_zero = false,
              .is_scattered = false};
    default:
      reject(where, "exp", fmt::format("{}", p.exp), "ATTEST_EXP_LIBRARY to ATTEST_EXP_CUSTOM");
  }
}

ElementType weight_format_of(std::uint32_t format, const Problem& problem,
                             const std::string& where) {
  switch (format) {
    case 0:
      return problem.element_type;
    case ATTEST_FP32:
      return ElementType::fp32;
    case ATTEST_FP16:
      return ElementType::fp16;
    case ATTEST_BF16:
      return ElementType::bf16;
    default:
      reject(where, "weight_format", fmt::format("{}", format),
             "0, ATTEST_FP32, ATTEST_FP16, ATTEST_BF16");
  }
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

std::int64_t or_default(std::int64_t value, std::int64_t otherwise) {
  return value > 0 ? value : std::max<std::int64_t>(otherwise, 1);
}

}  // namespace

PrecisionPlan precision_of(const AttestPrecision& p, const Problem& problem, const Plan& plan,
                           const std::string& where) {
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
  result.weight_format = weight_format_of(p.weight_format, problem, where);
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
  const double division = error_of(p.division_error, "division_error", where);
  result.division_error = division > 0 ? division : fp32_roundoff;
  const double log = error_of(p.log_error, "log_error", where);
  result.log_error = log > 0 ? log : 2 * fp32_roundoff;
  // The interface has no fields for these: the costliest way is allowed.
  if (p.exp == ATTEST_EXP_EXP2) result.lse = LseForm::log2;
  result.merge = Merge::lse_pairs;
  return result;
}

}  // namespace attest
