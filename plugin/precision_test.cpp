// Whatever core knows of the roundings of a kernel, plugin.h can say.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/attention/merge_roundings.hpp"
#include "core/base/error.hpp"
#include "core/operations/combine.hpp"
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
  const auto& [kind, fused_terms, fraction_bits] = value;
  to.insert({{name + ".kind", number(kind)},
             {name + ".fused_terms", number(fused_terms)},
             {name + ".fraction_bits", number(fraction_bits)}});
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
               scale_folded_into_q, softcap_error, exp, reference_lag, shifts_by_maximum,
               weight_format, sums_rounded_weights, rescale, blocks, splits, normaliser_chain,
               division_error, log_error, lse, merge, partial_format, flushes_subnormals] = plan;
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
                  {"flushes_subnormals", number(flushes_subnormals)}};
  add(members, "score", score);
  add(members, "value", value);
  add(members, "score_parts", score_parts);
  add(members, "value_parts", value_parts);
  add(members, "exp", exp);
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

/// What a kernel may say, and the members that it thereby changes and no others.
struct Declaration {
  void (*say)(AttestPrecision&);
  std::set<std::string> changes;
};
using P = AttestPrecision;

/// Of both operations.
const std::vector<Declaration> of_both{
    {[](P& p) { p.exp = ATTEST_EXP_FAST; }, {"exp.argument_error"}},
    {[](P& p) { p.division_error = 0.5; }, {"division_error"}},
    {[](P& p) { p.log_error = 0.5; }, {"log_error"}},
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
    {[](P& p) { p.score_fused_terms = 16, p.score_fraction_bits = 25; },
     {"score.kind", "score.fused_terms", "score.fraction_bits"}},
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
};

const std::vector<Declaration> of_combine{
    {[](P& p) { p.divides_weights = 1; }, {"divides_weights"}},
};

template <typename Type>
Members declared(const Operation& operation, void (*say)(AttestPrecision&)) {
  AttestPrecision precision{};
  precision.size = sizeof precision;
  say(precision);
  const Problem problem{.operation = &operation, .key_len = 100};
  return members_of(roundings_of(precision, problem, {}, "here").as<Type>());
}

template <typename Type>
void expect_all_can_be_said(const Operation& operation, std::vector<Declaration> declarations) {
  declarations.insert(declarations.end(), of_both.begin(), of_both.end());
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
  expect_all_can_be_said<PrecisionPlan>(forward_operation, of_forward);
}

TEST(PluginPrecision, EveryMemberOfTheRoundingsOfAMergeCanBeDeclared) {
  expect_all_can_be_said<MergeRoundings>(combine_operation, of_combine);
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
  for (const Declaration& of_other : of_combine) {
    EXPECT_EQ(
        complaint(forward_operation, of_other),
        "here: precision field 'divides_weights' is 1; allowed: 0: it is a field of operation "
        "'combine'");
  }
}

}  // namespace
}  // namespace attest
