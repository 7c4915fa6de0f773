// Laws about infinities, and about a NaN that meets a weight of 0, against saboteurs.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "core/operations/forward_arguments.hpp"
#include "verify/laws/sabotage_test.hpp"

namespace attest {
namespace {

constexpr std::uint64_t seeds = 60;

/// Elements of K or V in memory, fp32, of the first `keys` keys.
template <typename Wanted>
std::vector<float*> elements(const ForwardArguments& a, const void* tensor, const Strides& strides,
                             const Wanted& wanted, std::int64_t keys) {
  auto* const values = const_cast<float*>(static_cast<const float*>(tensor));
  std::vector<float*> found;
  for (std::int64_t b = 0; b < a.problem.batch; ++b) {
    for (std::int64_t h = 0; h < a.problem.kv_heads; ++h) {
      for (std::int64_t n = 0; n < keys; ++n) {
        for (std::int64_t d = 0; d < a.problem.head_dim; ++d) {
          float* const x = values + strides.offset(b, h, n) + d;
          if (wanted(*x)) found.push_back(x);
        }
      }
    }
  }
  return found;
}
bool is_infinite(float x) {
  return std::isinf(x);
}

/// The kernel reads other numbers there. Inputs are read-only while a kernel runs: their pages are
/// opened for the change and closed again.
void launch_with(const std::vector<float*>& places, float value, const ForwardArguments& a) {
  const auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  std::set<std::uintptr_t> pages;
  for (const float* const x : places) {
    pages.insert(reinterpret_cast<std::uintptr_t>(x) / page_bytes * page_bytes);
  }
  const auto protect = [&](int access) {
    for (const std::uintptr_t page : pages) {
      ASSERT_EQ(mprotect(reinterpret_cast<void*>(page), page_bytes, access), 0);
    }
  };
  protect(PROT_READ | PROT_WRITE);
  std::vector<float> old;
  for (float* const x : places) old.push_back(std::exchange(*x, value));
  HostMemoryDevice device;
  find_kernel("o5_deferred", Executor::cpu)->launch(a, device);
  for (std::size_t i = 0; i < places.size(); ++i) *places[i] = old[i];
  protect(PROT_READ);
}

/// Calls change(element) for all of O.
template <typename Change>
void for_outputs(const ForwardArguments& a, const Change& change) {
  for (std::int64_t b = 0; b < a.problem.batch; ++b) {
    for (std::int64_t h = 0; h < a.problem.query_heads; ++h) {
      for (std::int64_t n = 0; n < a.problem.query_len; ++n) {
        for (std::int64_t d = 0; d < a.problem.head_dim; ++d) change(o_row(a, b, h, n)[d]);
      }
    }
  }
}

/// Cases of `seeds` seeds in which the law fails; without the sabotage it fails in none.
std::uint64_t times_caught(const std::string& law, Case c, const Sabotage& sabotage,
                           const std::function<void(KernelInfo&)>& change = {}) {
  std::uint64_t caught = 0;
  for (c.inputs.seed = 0; c.inputs.seed < seeds; ++c.inputs.seed) {
    EXPECT_EQ(verdict_of(law, c, [](const ForwardArguments&) {}), Verdict::passed) << c.inputs.seed;
    caught += verdict_of(law, c, sabotage, change) == Verdict::failed ? 1 : 0;
  }
  return caught;
}

TEST(InfinityLaws, AnInfiniteValueTakenAsZeroIsCaught) {
  expect_caught("infinite_values_stay_infinite", [](const ForwardArguments& a) {
    const auto places = elements(a, a.v, a.v_strides, is_infinite, a.problem.key_len);
    if (!places.empty()) launch_with(places, 0.0F, a);
  });
}

TEST(InfinityLaws, AnInfiniteValueThatArrivesAsNaNOrWithTheOtherSignIsCaught) {
  expect_caught("infinite_values_stay_infinite", [](const ForwardArguments& a) {
    for_outputs(a, [](float& o) { o = std::isinf(o) ? std::nanf("") : o; });
  });
  expect_caught("infinite_values_stay_infinite", [](const ForwardArguments& a) {
    for_outputs(a, [](float& o) { o = std::isinf(o) ? -o : o; });
  });
}

TEST(InfinityLaws, AnInfiniteValueThatSpreadsToOtherColumnsOrToTheLseIsCaught) {
  const auto saw_infinity = [](const float* o) { return std::isinf(o[0]) || std::isinf(o[1]); };
  EXPECT_GT(times_caught("infinite_values_stay_infinite", plain_case(),
                         [&](const ForwardArguments& a) {
                           float* const o = o_row(a, 0, 0, 8);
                           if (saw_infinity(o)) o[2] = std::nextafter(o[2], 9.0F);
                         }),
            0U);
  EXPECT_GT(times_caught("infinite_values_stay_infinite", plain_case(),
                         [&](const ForwardArguments& a) {
                           if (saw_infinity(o_row(a, 0, 0, 8))) a.lse[8] = std::nanf("");
                         }),
            0U);
}

TEST(InfinityLaws, AnInfiniteKeyTakenAsZeroIsCaught) {
  expect_caught("infinite_keys_have_exact_weights", [](const ForwardArguments& a) {
    const auto places = elements(a, a.k, a.k_strides, is_infinite, a.problem.key_len);
    if (!places.empty()) launch_with(places, 0.0F, a);
  });
}

// All of Q is positive: scores of +infinity do not occur, and only -infinity can tell.
TEST(InfinityLaws, AScoreOfMinusInfinityThatMakesNaNOrCountsIsCaught) {
  Case c = plain_case();
  c.inputs = {.family = "sink", .magnitude = 1};
  for (const float taken_as : {std::nanf(""), 0.0F}) {
    EXPECT_GT(times_caught("infinite_keys_have_exact_weights", c,
                           [taken_as](const ForwardArguments& a) {
                             const auto places =
                                 elements(a, a.k, a.k_strides, is_infinite, a.problem.key_len);
                             if (!places.empty()) launch_with(places, taken_as, a);
                           }),
              seeds / 2);
  }
}

TEST(InfinityLaws, APluginMayAnswerNaNForAScoreOfMinusInfinityAndNothingElseThatIsWrong) {
  const KernelInfo* const correct = find_kernel("o5_deferred", Executor::cpu);
  const auto failures = [&](float taken_as) {
    KernelInfo plugin = *correct;
    plugin.plugin = "kernel.so";
    plugin.launch = [&](const ForwardArguments& a, Device&) {
      launch_with(elements(a, a.k, a.k_strides, is_infinite, a.problem.key_len), taken_as, a);
    };
    Case c = plain_case();
    c.inputs = {.family = "sink", .magnitude = 1};
    std::uint64_t failed = 0;
    for (c.inputs.seed = 0; c.inputs.seed < seeds; ++c.inputs.seed) {
      HostMemoryDevice device;
      attest::Run run(plugin, c, device);
      const LawSelection law{.glob = "infinite_keys_have_exact_weights", .every_law = true};
      failed += verify_case(run, law).verdict == Verdict::failed ? 1 : 0;
    }
    return failed;
  };
  EXPECT_EQ(failures(std::nanf("")), 0U);
  EXPECT_GT(failures(0.0F), seeds / 2);
}

TEST(InfinityLaws, EveryFormOfSoftmaxLeavesOutTilesWhoseScoresAreAllMinusInfinity) {
  for (const std::string kernel :
       {"o4_normalised_local_max", "o4_normalised_merged_max", "o8_exp2_skip_rescale"}) {
    Case c = plain_case();
    c.kernel = kernel;
    c.plan = {.key_tile = 1};
    for (c.inputs.seed = 0; c.inputs.seed < seeds; ++c.inputs.seed) {
      EXPECT_EQ(verdict_of("infinite_keys_have_exact_weights", c, [](const ForwardArguments&) {}),
                Verdict::passed)
          << kernel << ", seed " << c.inputs.seed;
    }
  }
}

TEST(InfinityLaws, ASwallowedScoreOfPlusInfinityIsCaught) {
  EXPECT_GT(times_caught("infinite_keys_have_exact_weights", plain_case(),
                         [](const ForwardArguments& a) {
                           for (std::int64_t row = 0; row < a.problem.rows(); ++row) {
                             if (std::isnan(a.lse[row])) a.lse[row] = 1.0F;
                           }
                         }),
            seeds / 4);
}

// Two of 40 keys have a weight of e^-104 and less, which is 0 in fp32.
TEST(InfinityLaws, ANaNUnderAWeightOfZeroThatIsLeftOutIsCaughtInOneCaseOfTen) {
  Case c = plain_case();
  c.problem.mask = Mask::none;
  c.problem.key_len = 40;
  c.inputs = {.family = "ascending_maxima", .magnitude = 110};
  const Sabotage leaves_out = [](const ForwardArguments& a) {
    const auto places = elements(
        a, a.v, a.v_strides, [](float x) { return !std::isfinite(x); }, 2);
    if (!places.empty()) launch_with(places, 0.0F, a);
  };
  EXPECT_GE(times_caught("nan_stays_in_its_rows", c, leaves_out), seeds / 10);
  EXPECT_GE(times_caught("infinite_values_stay_infinite", c, leaves_out), seeds / 10);
  const auto claim = [](KernelInfo& kernel) { kernel.drops_vanished_parts = true; };
  EXPECT_EQ(times_caught("infinite_values_stay_infinite", c, leaves_out, claim), 0U);
  const Sabotage gives_another_number = [&](const ForwardArguments& a) {
    leaves_out(a);
    for_outputs(a, [](float& o) { o += 1.0F; });
  };
  EXPECT_GE(times_caught("infinite_values_stay_infinite", c, gives_another_number, claim), 1U);
}

// The first two weights are near e^-57 and e^-60: too small to be seen in O, and not 0.
TEST(InfinityLaws, AnInfiniteValueThatIsLeftOutUnderAWeightAbove0IsCaughtWhateverIsClaimed) {
  Case c = plain_case();
  c.problem.mask = Mask::none;
  c.problem.key_len = 40;
  c.inputs = {.family = "ascending_maxima", .magnitude = 60};
  const Sabotage leaves_out = [](const ForwardArguments& a) {
    const auto places = elements(a, a.v, a.v_strides, is_infinite, 2);
    if (!places.empty()) launch_with(places, 0.0F, a);
  };
  EXPECT_GE(times_caught("infinite_values_stay_infinite", c, leaves_out,
                         [](KernelInfo& kernel) { kernel.drops_vanished_parts = true; }),
            seeds / 10);
}

}  // namespace
}  // namespace attest
