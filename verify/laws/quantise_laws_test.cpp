// The laws of quantisers, each against a saboteur.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/operations/quantise_arguments.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"
#include "verify/campaign/campaign.hpp"
#include "verify/laws/spoilt_kernel_test.hpp"

namespace attest {
namespace quantise_laws {

using Sabotage = std::function<void(const QuantiseArguments&)>;

Case case_of(Code code, const std::string& family) {
  Case c{.kernel = "quantise_rows",
         .problem = {.operation = &quantise_operation,
                     .batch = 2,
                     .query_heads = 3,
                     .kv_heads = 3,
                     .key_len = 130,
                     .head_dim = 9},
         .inputs = {.family = family, .seed = 11}};
  c.problem.codes.k = code;
  c.problem.codes.k_scales = Scales::block;
  return c;
}

Verdict verdict_of_launch(const std::string& law, const Case& c,
                          const std::function<void(const Arguments&, Device&)>& launch) {
  KernelInfo kernel = *find_kernel(c.kernel, Executor::cpu);
  kernel.launch = launch;
  HostMemoryDevice device;
  Run run(kernel, c, device);
  return verify_case(run, {.glob = law, .every_law = true}).verdict;
}

void expect_caught(const std::string& law, const Case& c, const Sabotage& sabotage) {
  expect_law_catches<QuantiseArguments>(law, c, sabotage);
}

/// Writes change(code) for the codes of the last head.
Sabotage to_last_head(const std::function<unsigned(unsigned)>& change) {
  return [change](const QuantiseArguments& a) {
    const Problem& p = a.problem;
    for (std::int64_t n = 0; n < p.key_len; ++n) {
      std::uint8_t* const row = a.codes + a.code_strides.offset(p.batch - 1, p.kv_heads - 1, n);
      for (std::int64_t c = 0; c < p.head_dim; ++c) {
        row[c] = static_cast<std::uint8_t>(change(row[c]));
      }
    }
  };
}

TEST(QuantiseLaws, ACodeThatIsOneOffIsCaught) {
  const Sabotage one_off = to_last_head([](unsigned code) { return code ^ 1U; });
  expect_caught("codes_bitwise", case_of(Code::e4m3, "normal"), one_off);
  expect_caught("within_bound", case_of(Code::int8, "normal"), one_off);
  expect_caught("codes_come_back", case_of(Code::e5m2, "normal"), one_off);
}

TEST(QuantiseLaws, AZeroOfTheOtherSignIsCaughtByBitsAlone) {
  const Case c = case_of(Code::e4m3, "numbers_of_zeros");
  const Sabotage no_sign =
      to_last_head([](unsigned code) { return (code & 0x7fU) == 0 ? 0U : code; });
  expect_caught("codes_bitwise", c, no_sign);
  EXPECT_EQ(verdict_of_spoilt<QuantiseArguments>("within_bound", c, no_sign), Verdict::passed);
}

TEST(QuantiseLaws, ANanIsAnyNanAndNoNumber) {
  const Case c = case_of(Code::e5m2, "numbers_not_finite");
  const auto is_nan = [](unsigned code) { return (code & 0x7fU) > 0x7cU; };
  const Sabotage other = to_last_head([&](unsigned code) { return is_nan(code) ? 0xfdU : code; });
  const Sabotage none = to_last_head([&](unsigned code) { return is_nan(code) ? 0x7bU : code; });
  EXPECT_EQ(verdict_of_spoilt<QuantiseArguments>("codes_bitwise", c, other), Verdict::passed);
  expect_caught("codes_bitwise", c, none);
  expect_caught("within_bound", c, none);
}

TEST(QuantiseLaws, AnUlpOfAScaleIsCaught) {
  const Sabotage ulp = [](const QuantiseArguments& a) {
    float& scale = a.scales_of(1, 2)[1];
    scale = std::nextafter(scale, 1e30F);
  };
  for (const char* const law : {"codes_bitwise", "scales_within_bound", "codes_come_back"}) {
    expect_caught(law, case_of(Code::int8, "normal"), ulp);
  }
}

TEST(QuantiseLaws, ACodeThatNobodyWroteIsCaught) {
  const auto nothing = [](const Arguments&, Device&) {};
  for (const Code code : {Code::e4m3, Code::e5m2, Code::int8, Code::e2m1, Code::int4}) {
    EXPECT_EQ(verdict_of_launch("within_bound", case_of(code, "normal"), nothing), Verdict::failed)
        << name_of(code);
  }
}

TEST(QuantiseLaws, ARightQuantiserPassesThemAll) {
  CampaignOptions options;
  options.cases_per_kernel = 60;
  options.laws.every_law = true;
  options.generator.max_len = 160;
  const KernelResult result =
      run_campaign({find_kernel("quantise_rows", Executor::cpu)}, options).front();
  EXPECT_EQ(result.verdict(), Verdict::passed)
      << (result.failure ? describe(*result.failure, *result.kernel) : result.vacuous_reason);
  for (const char* const law :
       {"codes_bitwise", "codes_come_back", "scales_within_bound", "lengths_equal_single_entries",
        "entry_gaps_irrelevant", "permuted_heads_bitwise", "more_mates_irrelevant"}) {
    EXPECT_TRUE(result.checks.contains(law)) << law;
  }
  EXPECT_GT(result.certified_rows, 0);
}

}  // namespace quantise_laws
}  // namespace attest
