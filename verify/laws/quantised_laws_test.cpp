// The laws of codes and scales, each against a saboteur.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/inputs/input_family.hpp"
#include "core/operations/quantised_arguments.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"
#include "core/run/session.hpp"
#include "verify/laws/spoilt_kernel_test.hpp"

namespace attest {
namespace {

using Sabotage = std::function<void(const QuantisedArguments&)>;

Case quantised_case() {
  Case c{.kernel = "quantised_rows",
         .problem = {.operation = &quantised_operation,
                     .batch = 2,
                     .query_heads = 4,
                     .kv_heads = 2,
                     .query_len = 3,
                     .key_len = 7,
                     .head_dim = 16,
                     .scale = default_scale(16)},
         .inputs = {.seed = 11}};
  c.problem.codes.q = Code::int8;
  c.problem.codes.q_scales = Scales::row;
  return c;
}

constexpr std::array code_choices{Code::e4m3, Code::e5m2, Code::int8};

/// A small case of the kernel, with codes and scales by number.
Case case_number(const KernelInfo& kernel, std::size_t number) {
  const auto choose = [number](const auto& list) { return list[number % list.size()]; };
  Case c = quantised_case();
  Problem& p = c.problem;
  c.kernel = kernel.name;
  p.batch = 1;
  p.query_heads = 2;
  p.kv_heads = 1;
  p.query_len = 17;  // few entries show all codes
  p.element_type = choose(kernel.element_types);
  p.head_dim = 64;
  p.key_len = number % 2 == 0 ? 64 : 131;
  p.scale = default_scale(p.head_dim);
  p.codes = {.q = choose(kernel.codes.q),
             .k = choose(kernel.codes.k),
             .v = choose(kernel.codes.v),
             .q_scales = choose(kernel.codes.q_scales),
             .k_scales = choose(kernel.codes.k_scales),
             .v_scales = choose(kernel.codes.v_scales)};
  if (p.codes.q == Code::none) p.codes.q_scales = Scales::none;
  if (p.codes.k == Code::none) p.codes.k_scales = Scales::none;
  if (p.codes.v == Code::none) p.codes.v_scales = Scales::none;
  c.plan = kernel.plans(p).front();
  return c;
}

Verdict verdict_on(Device& device, const KernelInfo& kernel, const std::string& law,
                   const Case& c) {
  Run run(kernel, c, device);
  return verify_case(run, {.glob = law, .every_law = true}).verdict;
}

void expect_caught(const std::string& law, const Sabotage& sabotage,
                   const Case& c = quantised_case()) {
  expect_law_catches<QuantisedArguments>(law, c, sabotage);
}

/// Changes element 0 of every row of O.
void change_o(const QuantisedArguments& a, const std::function<float(float)>& change) {
  for (std::int64_t b = 0; b < a.problem.batch; ++b) {
    for (std::int64_t h = 0; h < a.problem.query_heads; ++h) {
      for (std::int64_t n = 0; n < a.problem.query_len; ++n) {
        float& x = static_cast<float*>(a.o)[a.o_strides.offset(b, h, n)];
        x = change(x);
      }
    }
  }
}

/// Changes every element of O.
void change_all_of_o(const QuantisedArguments& a, const std::function<float(float)>& change) {
  for (std::int64_t b = 0; b < a.problem.batch; ++b) {
    for (std::int64_t h = 0; h < a.problem.query_heads; ++h) {
      for (std::int64_t n = 0; n < a.problem.query_len; ++n) {
        float* const row = static_cast<float*>(a.o) + a.o_strides.offset(b, h, n);
        std::transform(row, row + a.problem.output_dim(), row, change);
      }
    }
  }
}

TEST(QuantisedLaws, AnUlpThatChangesOnceAScaleHasMovedIsCaught) {
  const float scale = quantised_case().problem.scale;
  expect_caught("scale_may_move", [scale](const QuantisedArguments& a) {
    if (a.problem.scale != scale) change_o(a, [](float x) { return std::nextafter(x, 1e30F); });
  });
}

TEST(QuantisedLaws, ScalesOfRowsThatAddAPercentAreCaught) {
  expect_caught("equal_scales_agree", [](const QuantisedArguments& a) {
    if (a.problem.codes.v_scales == Scales::head && a.problem.codes.k_scales == Scales::head)
      return;
    change_o(a, [](float x) { return x * 1.01F; });
  });
}

TEST(QuantisedLaws, AFewUlpsOfOAreCaughtByTheBound) {
  expect_caught("within_bound", [](const QuantisedArguments& a) {
    change_o(a, [](float x) { return x * (1 + 0x1p-12F); });
  });
}

/// An ulp of O where codes or scales are not those of the case.
void spoil_other_codes(const QuantisedArguments& a) {
  if (a.problem.codes == quantised_case().problem.codes) return;
  change_o(a, [](float x) { return std::nextafter(x, 1e30F); });
}

TEST(QuantisedLaws, AnUlpThatDependsOnTheGroupsOfScalesIsCaught) {
  expect_caught("equal_powers_of_two_agree", spoil_other_codes);
}

TEST(QuantisedLaws, AnUlpThatDependsOnTheCodeIsCaught) {
  expect_caught("same_numbers_in_another_code", spoil_other_codes);
}

TEST(QuantisedLaws, AKeyThatCountsMoreWhereItStandsIsCaught) {
  Case c = quantised_case();
  c.problem.key_len = 2 * scale_block + 3;
  c.problem.codes.k_scales = Scales::block;
  c.problem.codes.v_scales = Scales::row;
  expect_caught(
      "keys_may_change_places",
      [](const QuantisedArguments& a) {
        const float first = decode(ElementType::e4m3, *static_cast<const std::uint8_t*>(a.v));
        change_o(a, [first](float x) { return x + first / 1024; });
      },
      c);
}

TEST(QuantisedLaws, AScaleThatStaysWhenItsColumnMovesIsCaught) {
  Case c = quantised_case();
  c.problem.codes.v_scales = Scales::column;
  expect_caught(
      "columns_carry_their_scales",
      [](const QuantisedArguments& a) { change_o(a, [](float x) { return x * 2; }); }, c);
}

TEST(QuantisedLaws, AWeightThatIsOffIsCaughtAlone) {
  expect_caught("unit_values_show_weights", [](const QuantisedArguments& a) {
    change_o(a, [](float x) { return x * (1 + 0x1p-12F); });
  });
}

/// A sum of 13 bits.
TEST(QuantisedLaws, ASumThatStandsStillInLongRowsIsCaught) {
  expect_caught("long_rows_keep_their_mean", [](const QuantisedArguments& a) {
    const auto most = static_cast<std::int64_t>(1) << 14;
    const float kept = static_cast<float>(std::min(a.problem.key_len, most)) /
                       static_cast<float>(a.problem.key_len);
    change_o(a, [kept](float x) { return x * kept; });
  });
}

TEST(QuantisedLaws, AProductOfCodesThatIsLostIsCaught) {
  for (const Code code : code_choices) {
    Case c = quantised_case();
    c.problem.codes.k = code;
    expect_caught(
        "whole_scores_are_exact", [](const QuantisedArguments& a) { a.lse[0] += 1; }, c);
  }
}

TEST(QuantisedLaws, CodesThatAreOtherNumbersAreCaught) {
  // The last exponent of e4m3 taken for one like the others, and numbers below the normal ones for
  // 0.
  expect_caught("one_key_shows_codes", [](const QuantisedArguments& a) {
    change_all_of_o(a, [](float x) { return std::isnan(x) ? 240 : x; });
  });
  expect_caught("one_key_shows_codes", [](const QuantisedArguments& a) {
    change_all_of_o(a, [](float x) { return std::abs(x) < 0x1p-7F ? 0 : x; });
  });
  expect_caught("one_key_shows_codes", [](const QuantisedArguments& a) {
    if (a.problem.key_len == 1) a.lse[a.problem.rows() - 1] += 0x1p-9F;
  });
}

TEST(QuantisedLaws, AConstantOrAShiftThatDoesNotComeOutIsCaught) {
  for (const Code code : code_choices) {
    Case c = quantised_case();
    c.problem.codes.k = c.problem.codes.v = code;
    c.problem.codes.v_scales = Scales::row;
    const auto longer = [](const QuantisedArguments& a) {
      change_o(a, [](float x) { return x * (1 + 0x1p-12F); });
    };
    expect_caught("constant_values", longer, c);
    expect_caught("shifted_values_shift_output", longer, c);
    expect_caught(
        "shifted_keys_shift_lse", [](const QuantisedArguments& a) { a.lse[0] *= 1.01F; }, c);
    c.problem.key_len = 8;
    expect_caught(
        "equal_scores_exact_mean",
        [](const QuantisedArguments& a) {
          change_o(a, [](float x) { return std::nextafter(x, 1e30F); });
        },
        c);
  }
}

/// The first cases of all kernels of an executor keep the laws.
void expect_kept(Executor executor, std::size_t cases) {
  const std::vector<std::string> laws{"equal_powers_of_two_agree",   "same_numbers_in_another_code",
                                      "keys_may_change_places",      "columns_carry_their_scales",
                                      "unit_values_show_weights",    "whole_scores_are_exact",
                                      "one_key_shows_codes",         "constant_values",
                                      "shifted_values_shift_output", "shifted_keys_shift_lse",
                                      "equal_scores_exact_mean"};
  const std::unique_ptr<Device> device = make_device(executor);
  for (const KernelInfo& kernel : all_kernels()) {
    if (kernel.operation != &quantised_operation || kernel.role != KernelRole::kernel) continue;
    for (std::size_t i = 0; i < cases && kernel.executor == executor; ++i) {
      const Case c = case_number(kernel, i);
      if (why_unsupported(kernel, c)) continue;
      for (const std::string& law : laws) {
        EXPECT_EQ(verdict_on(*device, kernel, law, c), Verdict::passed)
            << law << " of " << kernel.name << ": " << to_string(c.problem);
      }
    }
  }
}

TEST(QuantisedLaws, AreKeptByAKernelThatIsRightWithAllCodesAndScales) {
  expect_kept(Executor::cpu, 5);
}

TEST(QuantisedLaws, AreKeptByKernelsOfTensorCores) {
  expect_kept(Executor::simt, 1);
}

Outputs outputs_of(const KernelInfo& kernel, const Case& c, const Inputs& inputs) {
  const std::unique_ptr<Device> device = make_device(kernel.executor);
  Session session(kernel, c, inputs, *device);
  session.launch();
  return session.read_outputs();
}

/// A Plan of each list, of which only the stages differ that keys wait in: they add in one order.
std::pair<Plan, Plan> plans_of_one_order(const std::vector<Plan>& ones,
                                         const std::vector<Plan>& others) {
  for (const Plan& one : ones) {
    for (const Plan& other : others) {
      Plan staged = other;
      staged.stages = one.stages;
      if (staged == one) return {one, other};
    }
  }
  throw std::logic_error("no Plan in common");
}

/// decode_codes multiplies what codes stand for as decode_mma multiplies 16-bit numbers: the same
/// keys and columns meet in a product of tensor cores, whatever their order in it, and a power of
/// two that scales them changes no digit. With Q in bf16 it forms P in fp16, and decode_mma in
/// bf16: there only LSE, which sums P before that, has the same bits.
void expect_bits_of_sixteen_bits(Problem p) {
  SCOPED_TRACE(to_string(p));
  const KernelInfo& of_codes = *find_kernel("decode_codes", Executor::simt);
  const KernelInfo& of_numbers = *find_kernel("decode_mma", Executor::simt);
  Case codes{.kernel = of_codes.name, .problem = p, .inputs = {.seed = 3}};
  Case numbers{.kernel = of_numbers.name, .problem = p, .inputs = {.seed = 3}};
  numbers.problem.operation = &forward_operation;
  numbers.problem.codes = {};
  std::tie(codes.plan, numbers.plan) =
      plans_of_one_order(of_codes.plans(p), of_numbers.plans(numbers.problem));

  Inputs inputs = make_inputs(codes.problem, codes.inputs);
  int number = 0;
  for (const InputIndex scales : {quantised::k_scale, quantised::v_scale}) {
    for (float& x : inputs[scales].values()) x = std::ldexp(1.0F, number++ % 5 - 8);
  }
  const RealInputs stood_for = quantised::numbers_of(p, inputs);
  const auto in_fp32 = [](const Tensor<double>& from) {
    Tensor<float> to(from.shape());
    std::ranges::transform(from.values(), to.values().begin(),
                           [](double x) { return static_cast<float>(x); });
    return to;
  };
  const Outputs got = outputs_of(of_codes, codes, inputs);
  const Outputs want =
      outputs_of(of_numbers, numbers,
                 {in_fp32(stood_for[quantised::q]), in_fp32(stood_for[quantised::k]),
                  in_fp32(stood_for[quantised::v])});
  EXPECT_TRUE(std::ranges::equal(got[quantised::lse].values(), want[forward::lse].values()));
  if (p.element_type != ElementType::fp16) return;
  EXPECT_TRUE(std::ranges::equal(got[quantised::o].values(), want[forward::o].values()));
}

TEST(QuantisedLaws, ACacheOfCodesGivesTheBitsOfACacheOfTheirNumbers) {
  for (const ElementType type : {ElementType::fp16, ElementType::bf16}) {
    for (const Code code : {Code::e4m3, Code::int8}) {
      for (const Scales scales : {Scales::none, Scales::row}) {
        Problem p = quantised_case().problem;
        p.batch = 1;
        p.key_len = 131;
        p.head_dim = 128;
        p.scale = default_scale(p.head_dim);
        p.element_type = type;
        p.codes = {.k = code,
                   .v = code,
                   .k_scales = scales,
                   .v_scales = scales == Scales::row ? Scales::column : scales};
        expect_bits_of_sixteen_bits(p);
      }
    }
  }
}

/// The tensor core's sum of e4m3 stands still at 2^14 ones (gpu/arithmetic): FlashAttention-3,
/// which adds P V of all keys in it, gives 0.5 here (FINDINGS.md).
TEST(LongRows, OfEqualKeysAreAveragedByKernelsThatPromote) {
  Case c{.kernel = "fp8_wgmma",
         .problem = {.operation = &quantised_operation,
                     .query_len = 1,
                     .key_len = 32768,
                     .head_dim = 16,
                     .element_type = ElementType::bf16,
                     .scale = default_scale(16)}};
  c.problem.codes.q = Code::e4m3;
  const KernelInfo& kernel = *find_kernel(c.kernel, Executor::simt);
  c.plan = kernel.plans(c.problem).front();
  const auto filled = [&](InputIndex tensor, float value) {
    return Tensor<float>((*c.problem.operation)[tensor].shape(c.problem), value);
  };
  const Inputs inputs{filled(quantised::q, 0),       filled(quantised::k, 0),
                      filled(quantised::v, 1),       filled(quantised::q_scale, 1),
                      filled(quantised::k_scale, 1), filled(quantised::v_scale, 1)};
  const std::unique_ptr<Device> device = make_device(Executor::simt);
  Session session(kernel, c, inputs, *device);
  session.launch();
  const Outputs outputs = session.read_outputs();
  for (const float o : outputs[quantised::o].values()) EXPECT_EQ(o, 1.0F);
}

}  // namespace
}  // namespace attest
