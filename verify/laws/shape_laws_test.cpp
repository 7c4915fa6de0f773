// Laws about windows, softcap, lengths, padding and value_dim against saboteurs.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "core/operations/forward_arguments.hpp"
#include "verify/laws/sabotage_test.hpp"

namespace attest {
namespace {

/// Under the kernel that has every shape and mask.
Case shaped_case(const std::string& shape) {
  return {.kernel = "m6_every_shape",
          .problem = problem_from_string(shape),
          .plan = {.query_tile = 4, .key_tile = 8, .key_splits = 1, .pack_gqa = PackGqa::no},
          .layouts = ForwardLayouts{.k = {DimOrder::bnhd, 3, 1}, .o = {DimOrder::bnhd, 5, 2}},
          .inputs = {.seed = 11}};
}

const std::vector<std::string> shapes{
    "b3 h4/2 q17 k23 d16 lengths3",
    "b4 h2/1 n21 d16 lengths7 causal_bottom_right",
    "b2 h2/2 q9 k20 d16 padding6",
    "b5 h2/2 q9 k20 d16 padding9 lengths4 fp16",
    "b2 h2/1 q19 k30 d16 window_bottom_right left7 right0",
    "b1 h2/1 q40 k12 d16 window_top_left left2 right3",
    "b1 h2/1 q40 k12 d16 window_bottom_right left0",
    "b2 h2/2 q9 k20 d16 dv24 softcap2 bf16",
    "b3 h6/2 q9 k20 d24 dv8 softcap30 lengths2 padding3 window_top_left left4 right8",
    "b2 h2/2 q0 k20 d16",
    "b3 h2/2 q12 k0 d16 lengths5"};

TEST(ShapeLaws, ACorrectKernelPassesEveryLawInEveryShape) {
  for (const std::string& shape : shapes) {
    for (std::uint64_t seed = 1; seed < 4; ++seed) {
      Case c = shaped_case(shape);
      c.inputs.seed = seed;
      HostMemoryDevice device;
      attest::Run run(*find_kernel(c.kernel, Executor::cpu), c, device);
      const CaseVerdict verdict = verify_case(run, {.every_law = true});
      EXPECT_EQ(verdict.verdict, Verdict::passed)
          << (verdict.failure ? describe(*verdict.failure, run.kernel()) : verdict.reason);
    }
  }
}

/// Adds to an element of the last row of O that exists in memory.
Sabotage nudged_last_row(float by) {
  return [by](const ForwardArguments& a) {
    const bool is_packed = a.query_starts != nullptr;
    const std::int64_t b = is_packed ? 0 : a.problem.batch - 1;
    const std::int64_t rows = is_packed ? a.query_starts[a.problem.batch] : a.problem.query_len;
    static_cast<float*>(a.o)[a.o_strides.offset(b, 0, rows - 1)] += by;
  };
}

TEST(ShapeLaws, AnEntryThatDiffersWhenItIsPackedIsCaught) {
  const Sabotage only_packed = [](const ForwardArguments& a) {
    for (std::int64_t n = 0; a.query_starts != nullptr && n < a.query_starts[a.problem.batch];
         ++n) {
      static_cast<float*>(a.o)[a.o_strides.offset(0, 0, n)] += 1e-2F;
    }
  };
  expect_caught("lengths_equal_single_entries", only_packed, shaped_case(shapes[0]));
}

/// The first row of nobody behind entry 0, where there are any.
std::optional<std::int64_t> row_of_nobody(const ForwardArguments& a) {
  if (a.query_lengths == nullptr) return std::nullopt;
  return a.query_starts[0] + a.query_lengths[0];
}

TEST(ShapeLaws, AnAnswerThatHangsOnGapsBetweenEntriesOrIsWrittenThereIsCaught) {
  const Case c = shaped_case(shapes[0]);
  // A count of rows that is the difference of starts: it reaches into the gap.
  expect_caught(
      "entry_gaps_irrelevant",
      [](const ForwardArguments& a) {
        const auto row = row_of_nobody(a);
        if (row) static_cast<float*>(a.o)[a.o_strides.offset(0, 0, *row)] = 0;
      },
      c);
  expect_caught(
      "entry_gaps_irrelevant",
      [](const ForwardArguments& a) {
        const auto row = row_of_nobody(a);
        if (row) a.lse[*row] = 0;
      },
      c);
  expect_caught(
      "entry_gaps_irrelevant",
      [](const ForwardArguments& a) {
        const auto row = row_of_nobody(a);
        if (!row) return;
        const float q = static_cast<const float*>(a.q)[a.q_strides.offset(0, 0, *row)];
        for (std::int64_t b = 0; b < a.problem.batch; ++b) {
          if (a.query_lengths[b] == 0) continue;
          static_cast<float*>(a.o)[a.o_strides.offset(0, 0, a.query_starts[b])] += 0 * q;
        }
      },
      c);
}

TEST(ShapeLaws, AStrideOf0ThatIsTakenForAnotherIsCaught) {
  for (const char* const shape : {"b3 h1 q9 k12 d16", "b1 h4/2 q9 k12 d16", "b2 h4/2 q9 k12 d16"}) {
    expect_caught(
        "broadcast_equals_copies",
        [](const ForwardArguments& a) {
          const bool has_zero = a.q_strides.batch == 0 || a.k_strides.head == 0;
          if (has_zero) nudged_last_row(1e-2F)(a);
        },
        shaped_case(shape));
  }
}

TEST(ShapeLaws, WhatAKernelFromOutsideDoesNotTakeIsDeclinedAndNotAsked) {
  const auto declined = [](const std::string& shape, bool takes, bool is_plugin) {
    const Case c = shaped_case(shape);
    KernelInfo kernel = *find_kernel(c.kernel, Executor::cpu);
    kernel.layout_needs.takes_entry_gaps = kernel.layout_needs.takes_broadcast = takes;
    if (is_plugin) kernel.plugin = "from_outside.so";
    HostMemoryDevice device;
    attest::Run run(kernel, c, device);
    const CaseVerdict verdict = verify_case(run, {.every_law = true});
    EXPECT_EQ(verdict.verdict, Verdict::passed);
    return verdict.declined;
  };
  using Said = std::vector<std::string>;
  EXPECT_EQ(declined(shapes[0], false, true),
            Said{"entry_gaps_irrelevant: it takes no gaps between packed entries"});
  EXPECT_EQ(declined(shapes[2], false, true),
            Said{"broadcast_equals_copies: it takes no strides of 0"});
  EXPECT_EQ(declined(shapes[0], true, true), Said{});
  EXPECT_EQ(declined(shapes[0], false, false), Said{}) << "ours need not say it";
}

TEST(ShapeLaws, AHiddenKeyThatCountsIsCaught) {
  const Sabotage only_padded = [](const ForwardArguments& a) {
    for (std::int64_t row = 0; a.key_mask != nullptr && row < a.problem.rows(); ++row) {
      a.lse[row] += 1e-2F;
    }
  };
  expect_caught("padding_equals_removal", only_padded, shaped_case(shapes[2]));
}

TEST(ShapeLaws, AWindowThatHidesMoreThanTheMaskItEqualsIsCaught) {
  for (const char* const mask : {"none", "causal_top_left", "window_top_left left-1 right2"}) {
    const Case c = shaped_case(std::string("b2 h2 q9 k12 d16 ") + mask);
    expect_caught(
        "equal_masks_agree",
        [&](const ForwardArguments& a) {
          if (a.problem != c.problem) nudged_last_row(1e-2F)(a);
        },
        c);
  }
}

TEST(ShapeLaws, ASoftcapThatChangesLogitsFarBelowItIsCaught) {
  expect_caught(
      "huge_softcap_is_none",
      [](const ForwardArguments& a) {
        if (a.problem.softcap > 100) nudged_last_row(1e-2F)(a);
      },
      shaped_case("b2 h2/2 q9 k20 d16 dv24 softcap2"));
}

TEST(ShapeLaws, ASoftcapThatIsRememberedIsCaught) {
  std::optional<float> first;
  expect_caught(
      "scale_not_cached",
      [&](const ForwardArguments& a) {
        if (!first) first = a.problem.softcap;
        if (a.problem.softcap != *first) nudged_last_row(1e-2F)(a);
      },
      shaped_case("b2 h2/2 q9 k20 d16 softcap2"));
}

TEST(ShapeLaws, ARequestThatReadsItsNeighboursIsCaughtWhereLengthsTieItToItsPlace) {
  for (const char* const shape : {"b4 h2 q12 k15 d16 lengths6", "b3 h2 q12 k15 d16 padding2"}) {
    const Case c = shaped_case(shape);
    int caught = 0;
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      Case drawn = c;
      drawn.inputs.seed = seed;
      // The last row of the first head follows the first row of all.
      const Verdict verdict =
          verdict_of("batch_mates_replaced", drawn, [](const ForwardArguments& a) {
            nudged_last_row(0.0F * static_cast<const float*>(a.q)[0])(a);
          });
      EXPECT_EQ(verdict_of("batch_mates_replaced", drawn, [](const ForwardArguments&) {}),
                Verdict::passed);
      caught += verdict == Verdict::failed ? 1 : 0;
    }
    EXPECT_GT(caught, 0) << shape;
  }
}

TEST(ShapeLaws, AnInfluenceOfKeysOutsideTheWindowOrPaddedIsCaught) {
  for (const char* const shape :
       {"b1 h1 q9 k12 d16 window_top_left left1 right1", "b1 h1 q9 k12 d16 padding9"}) {
    const Case c = shaped_case(shape);
    const Sabotage adds_all_values = [](const ForwardArguments& a) {
      float sum = 0;
      for (std::int64_t key = 0; key < a.problem.key_len; ++key) {
        sum += static_cast<const float*>(a.v)[a.v_strides.offset(0, 0, key)];
      }
      for (std::int64_t n = 0; n < a.problem.query_len; ++n) o_row(a, 0, 0, n)[0] += 0.0F * sum;
    };
    expect_caught("hidden_keys_irrelevant", adds_all_values, c);
  }
}

TEST(ShapeLaws, AnEmptyRowOfAWindowAPaddedEntryOrAnEntryWithoutKeysIsCaught) {
  for (const char* const shape : {"b1 h1 q40 k12 d16 window_top_left left2 right3",
                                  "b1 h1 q40 k12 d16 padding2", "b1 h1 q40 k0 d16 lengths5"}) {
    const Case c = shaped_case(shape);
    ASSERT_EQ(visible_key_count(c.problem, 0, c.problem.query_len_of(0) - 1), 0) << shape;
    expect_caught("empty_rows", nudged_last_row(1e-30F), c);
  }
}

}  // namespace
}  // namespace attest
