// Whatever core knows of the roundings of a kernel, plugin.h can say.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/attention/backward_roundings.hpp"
#include "core/attention/merge_roundings.hpp"
#include "core/attention/select_roundings.hpp"
#include "core/base/error.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/combine.hpp"
#include "core/operations/select.hpp"
#include "plugin/claim.hpp"

namespace attest {
namespace {

/// Numbers by the names of the members that hold them. A member that is added to one of the structs
/// below breaks the structured binding: give it a field in plugin.h, and a row in a table here.
using Members = std::map<std::string, double>;

double number(auto value) {
  return static_cast<double>(value);
}

void add(Members& to, const std::string& name, const Accumulation& value) {
  const auto& [kind, fused_terms, fraction_bits, sum_bits] = value;
  to.insert({{name + ".kind", number(kind)},
             {name + ".fused_terms", number(fused_terms)},
             {name + ".fraction_bits", number(fraction_bits)},
             {name + ".sum_bits", number(sum_bits)}});
}

void add(Members& to, const std::string& name, const Parts& value) {
  const auto& [format, count, cut, scaled_to] = value;
  to.insert({{name + ".format", number(format)},
             {name + ".count", number(count)},
             {name + ".cut", number(cut)},
             {name + ".scaled_to", number(scaled_to)}});
}

void add(Members& to, const std::string& name, const ExpMethod& value) {
  const auto& [label, relative_error, argument_error, is_one_at_zero, is_scattered] = value;
  to.insert({{name + ".relative_error", number(relative_error)},
             {name + ".argument_error", number(argument_error)},
             {name + ".is_one_at_zero", number(is_one_at_zero)},
             {name + ".is_scattered", number(is_scattered)}});
}

Members members_of(const PrecisionPlan& plan) {
  const auto& [score, value, score_parts, value_parts, weight_scale, promoted_keys, scale_after_dot,
               scale_folded_into_q, score_scalings, value_scalings, softcap_error, exp,
               reference_lag, shifts_by_maximum, weight_format, sums_rounded_weights, rescale,
               blocks, splits, normaliser_chain, division_error, log_error, lse, merge,
               partial_format, rounds_before_epilogue, flushes_subnormals] = plan;
  Members members{{"weight_scale", number(weight_scale)},
                  {"promoted_keys", number(promoted_keys)},
                  {"scale_after_dot", number(scale_after_dot)},
                  {"scale_folded_into_q", number(scale_folded_into_q)},
                  {"softcap_error", number(softcap_error)},
                  {"reference_lag", number(reference_lag)},
                  {"shifts_by_maximum", number(shifts_by_maximum)},
                  {"weight_format", number(weight_format)},
                  {"sums_rounded_weights", number(sums_rounded_weights)},
                  {"rescale", number(rescale)},
                  {"blocks", number(blocks)},
                  {"splits", number(splits)},
                  {"normaliser_chain", number(normaliser_chain)},
                  {"division_error", number(division_error)},
                  {"log_error", number(log_error)},
                  {"lse", number(lse)},
                  {"merge", number(merge)},
                  {"partial_format", number(partial_format)},
                  {"rounds_before_epilogue", number(rounds_before_epilogue)},
                  {"flushes_subnormals", number(flushes_subnormals)}};
  add(members, "score", score);
  add(members, "value", value);
  add(members, "score_parts", score_parts);
  add(members, "value_parts", value_parts);
  add(members, "exp", exp);
  // Of an operation that plugins do not compute.
  EXPECT_EQ(score_scalings + value_scalings, 0);
  return members;
}

Members members_of(const MergeRoundings& how) {
  const auto& [exp, division_error, log_error, divides_weights, output, flushes_subnormals] = how;
  Members members{{"division_error", number(division_error)},
                  {"log_error", number(log_error)},
                  {"divides_weights", number(divides_weights)},
                  {"flushes_subnormals", number(flushes_subnormals)}};
  add(members, "exp", exp);  // and the output's format is the problem's
  return members;
}

Members members_of(const BackwardRoundings& how) {
  const auto& [score, product, sums, scale_after_dot, softcap_error, exp, lse, lse_format,
               delta_chain, delta_format, weight_format, dscore_format, dscore_of_rounded_weights,
               scales_dscore, dq_chain, dq_parts, dq_sum_format, dq_part_format, sums_dq_in_units,
               kv_chain, kv_tiles, kv_parts, kv_part_format, output, flushes_subnormals] = how;
  Members members{{"scale_after_dot", number(scale_after_dot)},
                  {"softcap_error", number(softcap_error)},
                  {"lse", number(lse)},
                  {"delta_chain", number(delta_chain)},
                  {"weight_format", number(weight_format)},
                  {"dscore_format", number(dscore_format)},
                  {"dscore_of_rounded_weights", number(dscore_of_rounded_weights)},
                  {"scales_dscore", number(scales_dscore)},
                  {"dq_chain", number(dq_chain)},
                  {"dq_parts", number(dq_parts)},
                  {"dq_sum_format", number(dq_sum_format)},
                  {"kv_chain", number(kv_chain)},
                  {"kv_tiles", number(kv_tiles)},
                  {"kv_parts", number(kv_parts)},
                  {"kv_part_format", number(kv_part_format)},
                  {"flushes_subnormals", number(flushes_subnormals)}};
  add(members, "score", score);
  add(members, "product", product);
  add(members, "sums", sums);
  add(members, "exp", exp);
  // The output's format is the problem's. Of LSE and delta in fewer bits than fp32, which studies
  // of errors emulate, no kernel says that it means them: they are bugs.
  EXPECT_EQ(lse_format, ElementType::fp32);
  EXPECT_EQ(delta_format, ElementType::fp32);
  // Which unit that is, and what ranks store, a plugin cannot say.
  EXPECT_FALSE(sums_dq_in_units);
  EXPECT_EQ(dq_part_format, ElementType::fp32);
  return members;
}

Members members_of(const SelectRoundings& how) {
  const auto& [score] = how;
  Members members;
  add(members, "score", score);
  return members;
}

/// What a kernel may say, and the members that it thereby changes and no others.
struct Declaration {
  void (*say)(AttestPrecision&);
  std::set<std::string> changes;
};
using P = AttestPrecision;

/// Declarations of all operations that have exponentials.
const std::vector<Declaration> of_all{
    {[](P& p) { p.exp = ATTEST_EXP_FAST; }, {"exp.argument_error"}},
    {[](P& p) { p.flushes_subnormals = 1; }, {"flushes_subnormals"}},
    {[](P& p) {
       p.exp = ATTEST_EXP_CUSTOM;
       p.exp_relative_error = 0x1p-22;
       p.exp_is_scattered = 1;
       p.exp_is_one_at_zero = 1;
     },
     {}},  // in other words what expf is
    {[](P& p) {
       p.exp = ATTEST_EXP_CUSTOM;
       p.exp_relative_error = 0x1p-22;
       p.exp_is_scattered = 1;
     },
     {"exp.is_one_at_zero"}},
    {[](P& p) {
       p.exp = ATTEST_EXP_CUSTOM;
       p.exp_relative_error = 0x1p-22;
       p.exp_is_one_at_zero = 1;
     },
     {"exp.is_scattered"}},
    {[](P& p) {
       p.exp = ATTEST_EXP_CUSTOM;
       p.exp_relative_error = 0x1p-20;
       p.exp_argument_error = 0x1p-20;
       p.exp_is_scattered = p.exp_is_one_at_zero = 1;
     },
     {"exp.relative_error", "exp.argument_error"}},
};

const std::vector<Declaration> of_forward{
    {[](P& p) { p.scale = ATTEST_SCALE_IN_EXPONENT; }, {"scale_after_dot"}},
    {[](P& p) { p.scale = ATTEST_SCALE_IN_Q; }, {"scale_after_dot", "scale_folded_into_q"}},
    {[](P& p) { p.score_fused_terms = 32, p.score_fraction_bits = 13; },
     {"score.kind", "score.fused_terms", "score.fraction_bits", "score.sum_bits"}},
    {[](P& p) { p.score_fused_terms = 16, p.score_fraction_bits = 25; },
     {"score.kind", "score.fused_terms", "score.fraction_bits"}},
    {[](P& p) { p.value_fused_terms = 32, p.value_fraction_bits = 13; },
     {"value.kind", "value.fused_terms", "value.fraction_bits", "value.sum_bits"}},
    {[](P& p) { p.value_fused_terms = 8, p.value_fraction_bits = 23; },
     {"value.kind", "value.fused_terms", "value.fraction_bits"}},
    {[](P& p) { p.is_unshifted = 1; }, {"shifts_by_maximum"}},
    {[](P& p) {
       p.score_parts = {
           .format = ATTEST_TF32, .count = 3, .cut = 1, .reserved = 0, .scaled_to = 64};
     },
     {"score_parts.format", "score_parts.count", "score_parts.cut", "score_parts.scaled_to"}},
    {[](P& p) {
       p.value_parts = {.format = ATTEST_FP16, .count = 2, .cut = 2, .reserved = 0, .scaled_to = 4};
     },
     {"value_parts.format", "value_parts.count", "value_parts.cut", "value_parts.scaled_to"}},
    {[](P& p) { p.softcap_error = 0.25; }, {"softcap_error"}},
    {[](P& p) { p.reference_lag = 8; }, {"reference_lag"}},
    {[](P& p) { p.weight_format = ATTEST_BF16; }, {"weight_format"}},
    {[](P& p) { p.sums_rounded_weights = 1; }, {"sums_rounded_weights"}},
    {[](P& p) { p.weight_scale = 1024; }, {"weight_scale"}},
    {[](P& p) { p.promoted_keys = 32; }, {"promoted_keys"}},
    {[](P& p) { p.normaliser_chain = 7; }, {"normaliser_chain"}},
    {[](P& p) { p.blocks = 3; }, {"blocks"}},
    {[](P& p) { p.splits = 4, p.normaliser_chain = 101; }, {"splits"}},
    {[](P& p) { p.rescale = ATTEST_RESCALE_NORMALISED; }, {"rescale"}},
    {[](P& p) { p.merge = ATTEST_MERGE_SUMS; }, {"merge"}},
    {[](P& p) { p.partial_format = ATTEST_FP16; }, {"partial_format"}},
    {[](P& p) { p.lse_form = ATTEST_LSE_LOG2; }, {"lse"}},
    {[](P& p) { p.rounds_before_epilogue = 1; }, {"rounds_before_epilogue"}},
};

/// Of those that divide by a sum of weights and take its logarithm.
const std::vector<Declaration> of_normalising{
    {[](P& p) { p.division_error = 0.5; }, {"division_error"}},
    {[](P& p) { p.log_error = 0.5; }, {"log_error"}},
};

const std::vector<Declaration> of_combine{
    {[](P& p) { p.divides_weights = 1; }, {"divides_weights"}},
};

const std::vector<Declaration> of_select{
    {[](P& p) { p.score_fused_terms = 32, p.score_fraction_bits = 13; },
     {"score.kind", "score.fused_terms", "score.fraction_bits", "score.sum_bits"}},
    {[](P& p) { p.score_fused_terms = 16, p.score_fraction_bits = 25; },
     {"score.kind", "score.fused_terms", "score.fraction_bits"}},
};

const std::vector<Declaration> of_backward_alone{
    {[](P& p) { p.product_fused_terms = 32, p.product_fraction_bits = 13; },
     {"product.kind", "product.fused_terms", "product.fraction_bits", "product.sum_bits"}},
    {[](P& p) { p.product_fused_terms = 16, p.product_fraction_bits = 25; },
     {"product.kind", "product.fused_terms", "product.fraction_bits"}},
    {[](P& p) { p.dscore_format = ATTEST_BF16; }, {"dscore_format"}},
    {[](P& p) { p.dscore_of_rounded_weights = 1; }, {"dscore_of_rounded_weights"}},
    {[](P& p) { p.scales_dscore = 1; }, {"scales_dscore"}},
    {[](P& p) { p.kv_part_format = ATTEST_BF16; }, {"kv_part_format"}},
    {[](P& p) { p.dq_sum_format = ATTEST_FP16; }, {"dq_sum_format"}},
    {[](P& p) { p.delta_chain = 5; }, {"delta_chain"}},
    {[](P& p) { p.dq_chain = 7; }, {"dq_chain"}},
    {[](P& p) { p.dq_parts = 3; }, {"dq_parts"}},
    {[](P& p) { p.kv_chain = 11; }, {"kv_chain"}},
    {[](P& p) { p.kv_tiles = 2; }, {"kv_tiles"}},
    {[](P& p) { p.kv_parts = 4; }, {"kv_parts"}},
};
/// Fields of forward that are backward's too.
const std::vector<Declaration> of_backward_as_well{
    {[](P& p) { p.scale = ATTEST_SCALE_IN_EXPONENT; }, {"scale_after_dot"}},
    {[](P& p) { p.score_fused_terms = 32, p.score_fraction_bits = 13; },
     {"score.kind", "score.fused_terms", "score.fraction_bits", "score.sum_bits"}},
    {[](P& p) { p.value_fused_terms = 32, p.value_fraction_bits = 13; },
     {"sums.kind", "sums.fused_terms", "sums.fraction_bits", "sums.sum_bits"}},
    {[](P& p) { p.score_fused_terms = 16, p.score_fraction_bits = 25; },
     {"score.kind", "score.fused_terms", "score.fraction_bits"}},
    {[](P& p) { p.value_fused_terms = 8, p.value_fraction_bits = 23; },
     {"sums.kind", "sums.fused_terms", "sums.fraction_bits"}},
    {[](P& p) { p.softcap_error = 0.25; }, {"softcap_error"}},
    {[](P& p) { p.weight_format = ATTEST_BF16; }, {"weight_format"}},
    {[](P& p) { p.lse_form = ATTEST_LSE_LOG2; }, {"lse"}},
};

std::vector<Declaration> joined(std::vector<Declaration> one,
                                const std::vector<Declaration>& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

template <typename Type>
Members declared(const Operation& operation, void (*say)(AttestPrecision&)) {
  AttestPrecision precision{};
  precision.size = sizeof precision;
  say(precision);
  const Problem problem{.operation = &operation, .key_len = 100};
  return members_of(roundings_of(precision, problem, {}, "here").as<Type>());
}

template <typename Type>
void expect_all_can_be_said(const Operation& operation,
                            const std::vector<Declaration>& declarations) {
  const Members usual = declared<Type>(operation, [](AttestPrecision&) {});
  std::set<std::string> said;
  for (const Declaration& declaration : declarations) {
    std::set<std::string> changed;
    for (const auto& [name, value] : declared<Type>(operation, declaration.say)) {
      if (value != usual.at(name)) changed.insert(name);
    }
    EXPECT_EQ(changed, declaration.changes);
    said.insert(changed.begin(), changed.end());
  }
  for (const auto& [name, value] : usual) EXPECT_TRUE(said.contains(name)) << name;
}

TEST(PluginPrecision, EveryMemberOfAPrecisionPlanCanBeDeclared) {
  expect_all_can_be_said<PrecisionPlan>(forward_operation,
                                        joined(joined(of_forward, of_normalising), of_all));
}

TEST(PluginPrecision, EveryMemberOfTheRoundingsOfAMergeCanBeDeclared) {
  expect_all_can_be_said<MergeRoundings>(combine_operation,
                                         joined(joined(of_combine, of_normalising), of_all));
}

TEST(PluginPrecision, EveryMemberOfTheRoundingsOfABackwardPassCanBeDeclared) {
  expect_all_can_be_said<BackwardRoundings>(
      backward_operation, joined(joined(of_backward_as_well, of_backward_alone), of_all));
}

TEST(PluginPrecision, EveryMemberOfTheRoundingsOfAChoiceCanBeDeclared) {
  expect_all_can_be_said<SelectRoundings>(select_operation, of_select);
}

TEST(PluginPrecision, ABackwardPassIsMeasuredInTilesOfItsPlanUnlessItSaysOtherwise) {
  const Problem problem = problem_from_string("backward b1 h6/2 q100 k70 d64 none bf16");
  const auto how =
      roundings_of({}, problem, {.query_tile = 32, .key_tile = 16}, "here").as<BackwardRoundings>();
  EXPECT_EQ(how.dq_chain, 16);
  EXPECT_EQ(how.dq_parts, 5);
  EXPECT_EQ(how.kv_chain, 300);
  EXPECT_EQ(how.kv_tiles, 12);
  EXPECT_EQ(how.delta_chain, 64);
  EXPECT_EQ(how.weight_format, ElementType::bf16);
  EXPECT_EQ(how.dscore_format, ElementType::bf16);
  EXPECT_EQ(how.output, ElementType::bf16);
}

TEST(PluginPrecision, AMergeIsOfTheFormatOfItsProblem) {
  const Problem problem{.operation = &combine_operation, .element_type = ElementType::bf16};
  EXPECT_EQ(roundings_of({}, problem, {}, "here").as<MergeRoundings>().output, ElementType::bf16);
}

TEST(PluginPrecision, WhatIsReservedIsZeroSoThatItCanMeanSomethingLater) {
  EXPECT_THROW(
      (void)declared<PrecisionPlan>(forward_operation, [](P& p) { p.value_parts.reserved = 1; }),
      InvalidInput);
}

TEST(PluginPrecision, FieldsOfTheOtherOperationAreRefused) {
  const auto complaint = [](const Operation& operation, const Declaration& declaration) {
    try {
      (void)declared<PrecisionPlan>(operation, declaration.say);
    } catch (const InvalidInput& error) {
      return std::string(error.what());
    } catch (const std::logic_error&) {  // roundings of another type: they were not refused
    }
    return std::string();
  };
  for (const Declaration& of_other : of_forward) {
    EXPECT_TRUE(complaint(combine_operation, of_other).starts_with("here: precision field 'scale'"))
        << *of_other.changes.begin();
  }
  for (const Declaration& of_other : joined(of_combine, of_normalising)) {
    EXPECT_EQ(complaint(backward_operation, of_other),
              "here: a precision field of another operation is set; allowed: those that plugin.h "
              "names for operation 'backward'")
        << *of_other.changes.begin();
  }
  for (const Declaration& of_other : of_forward) {
    const auto is_shared = [&](const Declaration& shared) {
      return shared.changes == of_other.changes ||
             (shared.changes.contains("sums.kind") && of_other.changes.contains("value.kind"));
    };
    if (std::ranges::any_of(of_backward_as_well, is_shared)) continue;
    EXPECT_NE(complaint(backward_operation, of_other), "") << *of_other.changes.begin();
  }
  for (const Declaration& of_other : of_backward_alone) {
    EXPECT_TRUE(complaint(forward_operation, of_other)
                    .starts_with("here: precision field 'product_fused_terms'"))
        << *of_other.changes.begin();
    EXPECT_TRUE(complaint(combine_operation, of_other).starts_with("here: precision field 'scale'"))
        << *of_other.changes.begin();
  }
  for (const Declaration& of_other :
       joined(joined(of_forward, of_combine), joined(of_normalising, of_backward_alone))) {
    if (of_other.changes.contains("score.kind") || of_other.changes == of_select[1].changes) {
      continue;
    }
    EXPECT_EQ(complaint(select_operation, of_other),
              "here: a precision field of another operation is set; allowed: score_fused_terms "
              "and score_fraction_bits for operation 'select'")
        << *of_other.changes.begin();
  }
  for (const Declaration& of_other : of_combine) {
    EXPECT_EQ(
        complaint(forward_operation, of_other),
        "here: precision field 'divides_weights' is 1; allowed: 0: it is a field of operation "
        "'combine'");
  }
}

}  // namespace
}  // namespace attest
