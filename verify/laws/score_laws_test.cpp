// Laws about sinks, ALiBi, biases, prefixes, documents, lists of keys and dropout against
// saboteurs.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/operations/forward_arguments.hpp"
#include "verify/laws/sabotage_test.hpp"

namespace attest {
namespace {

const std::vector<std::string> modified{
    "b2 h4/2 q9 k20 d16 causal_bottom_right sinks_given",
    "b2 h4/2 q17 k6 d16 causal_bottom_right sinks_given fp16",
    "b2 h4/2 q9 k20 d16 slopes_given",
    "b3 h4/2 q17 k23 d16 lengths3 causal_bottom_right slopes_given bf16",
    "b2 h4/2 q9 k20 d16 bias_full",
    "b2 h4/2 q9 k20 d16 bias_heads padding6",
    "b2 h4/2 q17 k12 d16 bias_entries causal_top_left softcap3",
    "b3 h2/1 q9 k20 d16 bias_shared lengths4 sinks_given",
    "b2 h2/1 q9 k20 d16 causal_top_left prefix5",
    "b2 h2/1 q19 k30 d16 documents4",
    "b1 h2/1 q19 k30 d16 causal_bottom_right documents9 prefix3 padding5",
    "b1 h2/1 q19 k30 d16 window_bottom_right left7 right0 documents9 slopes_given",
    "b2 h2/1 q9 k20 d16 dropout0.1 philox3",
    "b2 h2/1 q9 k20 d16 causal_top_left dropout0.5 offset7 fp16",
    "b2 h2/1 q9 k20 d16 dropout1 sinks_given bias_shared slopes_given",
    "b2 h2/1 q9 k20 d16 lists4",
    "b2 h4/2 q17 k37 d16 lists9 listrows4 listkeys8 fp16",
    "b3 h2/1 q19 k30 d16 lengths4 causal_bottom_right lists6 listkeys3 padding7 sinks_given",
    "b1 h2/1 q19 k30 d16 window_bottom_right left7 right2 lists5 listrows8 slopes_given bias_full"};

TEST(ScoreLaws, ACorrectKernelPassesEveryLawUnderEveryModification) {
  expect_every_law_passed(modified, 4);
}

TEST(ScoreLaws, SinksThatLeaveATraceWhereTheyAreNoneAreCaught) {
  expect_caught(
      "absent_sinks_are_minus_infinity",
      [](const ForwardArguments& a) {
        if (a.sinks != nullptr && std::isinf(a.sinks[0])) nudge_output(a);
      },
      every_shape_case(modified[0]));
}

TEST(ScoreLaws, SlopesThatLeaveATraceWhereTheyAreZeroAreCaught) {
  expect_caught(
      "absent_slopes_are_zero",
      [](const ForwardArguments& a) {
        if (a.slopes != nullptr && a.slopes[0] == 0) nudge_output(a);
      },
      every_shape_case(modified[2]));
}

TEST(ScoreLaws, ABiasThatLeavesATraceWhereItIsZeroIsCaught) {
  expect_caught(
      "absent_bias_is_zero",
      [](const ForwardArguments& a) {
        if (a.bias != nullptr && a.bias[0] == 0) nudge_output(a);
      },
      every_shape_case(modified[4]));
}

TEST(ScoreLaws, ASharedBiasThatIsReadInAnotherWayThanCopiesIsCaught) {
  expect_caught(
      "shared_bias_equals_copies",
      [](const ForwardArguments& a) {
        if (a.bias != nullptr && a.bias_strides.head == 0) nudge_output(a);
      },
      every_shape_case(modified[7]));
}

TEST(ScoreLaws, AConstantBiasThatChangesOOrMovesLseByAnotherNumberIsCaught) {
  for (const bool in_lse : {false, true}) {
    expect_caught(
        "constant_bias_moves_lse",
        [=](const ForwardArguments& a) {
          // The highest bias of the law's second call lies above those of its first.
          float highest = -1;
          for (std::int64_t j = 0; j < a.problem.key_len; ++j) {
            highest = std::max(highest, a.bias[j]);
          }
          if (!(highest > 4)) return;
          (in_lse ? a.lse[0] : o_row(a, 0, 0, 0)[0]) += 0.01F;
        },
        every_shape_case(modified[4]));
  }
}

TEST(ScoreLaws, SlopesThatAreNotWhatTheirBiasSaysAreCaught) {
  expect_caught(
      "slopes_equal_a_bias",
      [](const ForwardArguments& a) {
        if (a.slopes != nullptr) o_row(a, 0, 0, 0)[0] += 0.01F;
      },
      every_shape_case(modified[2]));
}

TEST(ScoreLaws, AKeyThatABiasHidesAndThatHasAnInfluenceIsCaught) {
  expect_caught(
      "bias_hides_as_padding_and_lists",
      [](const ForwardArguments& a) {
        if (a.key_mask == nullptr) o_row(a, 0, 0, 8)[0] += 0.01F;
      },
      every_shape_case(modified[5]));
  expect_caught(
      "bias_hides_as_padding_and_lists",
      [](const ForwardArguments& a) {
        if (a.key_lists.is_used()) o_row(a, 0, 0, 8)[0] += 0.01F;
      },
      every_shape_case(modified[15]));
}

TEST(ScoreLaws, ListsOfAllKeysThatAreNotNoneAreCaught) {
  expect_caught(
      "full_lists_are_none",
      [](const ForwardArguments& a) {
        if (a.key_lists.is_used()) o_row(a, 0, 0, 0)[0] += 0.01F;
      },
      every_shape_case(modified[16]));
}

TEST(ScoreLaws, AnInfluenceOfAKeyThatNoListNamesIsCaught) {
  expect_caught(
      "listed_keys_are_all_there_is",
      [](const ForwardArguments& a) {
        for (std::int64_t n = 0; a.key_lists.is_used() && n < a.problem.query_len; ++n) {
          for (std::int64_t b = 0; b < a.problem.batch; ++b) o_row(a, b, 0, n)[0] += 0.01F;
        }
      },
      every_shape_case(modified[15]));
}

TEST(ScoreLaws, OneDocumentThatIsNotNoneIsCaught) {
  expect_caught(
      "one_document_is_none",
      [](const ForwardArguments& a) {
        if (a.key_documents == nullptr) return;
        for (std::int64_t j = 0; j < a.problem.key_len; ++j) {
          if (a.key_documents[j] != a.key_documents[0]) return;
        }
        nudge_output(a);
      },
      every_shape_case(modified[10]));
}

TEST(ScoreLaws, AnInfluenceOfAnotherDocumentIsCaught) {
  expect_caught(
      "document_equals_itself_alone",
      [](const ForwardArguments& a) {
        for (std::int64_t n = 0; a.key_documents != nullptr && n < a.problem.query_len; ++n) {
          for (std::int64_t b = 0; b < a.problem.batch; ++b) o_row(a, b, 0, n)[0] += 0.01F;
        }
      },
      every_shape_case(modified[9]));
}

TEST(ScoreLaws, PrefixesWithoutKeysThatAreNotNoneAreCaught) {
  expect_caught(
      "empty_prefix_is_none",
      [](const ForwardArguments& a) {
        if (a.prefix_lengths != nullptr && a.prefix_lengths[0] == 0) nudge_output(a);
      },
      every_shape_case(modified[8]));
}

TEST(ScoreLaws, APrefixOfAllKeysThatLeavesSomeOutIsCaught) {
  expect_caught(
      "full_prefix_is_no_mask",
      [](const ForwardArguments& a) {
        if (a.prefix_lengths != nullptr) o_row(a, 0, 0, 0)[0] += 0.01F;
      },
      every_shape_case(modified[8]));
}

TEST(ScoreLaws, ADropoutOfZeroThatLooksAtItsSeedIsCaught) {
  expect_caught(
      "dropout_of_zero_is_none",
      [](const ForwardArguments& a) {
        if (a.problem.dropout_seed != 0) nudge_output(a);
      },
      every_shape_case(modified[12]));
}

TEST(ScoreLaws, DropoutThatChangesLseIsCaught) {
  expect_caught(
      "dropout_leaves_lse",
      [](const ForwardArguments& a) {
        if (a.problem.dropout > 0) a.lse[0] = std::nextafter(a.lse[0], 99.0F);
      },
      every_shape_case(modified[12]));
}

TEST(ScoreLaws, AnEmptyRowWithoutItsSinkIsCaught) {
  expect_caught(
      "empty_rows",
      [](const ForwardArguments& a) {
        for (std::int64_t h = 0; h < a.problem.query_heads; ++h) {
          a.lse[h * a.problem.query_len] = -std::numeric_limits<float>::infinity();
        }
      },
      every_shape_case("b1 h4/2 q17 k6 d16 causal_bottom_right sinks_given"));
}

// Of a bias of -infinity in whole rows, which every eighth row of some seeds has.
TEST(ScoreLaws, ARowThatABiasHidesAllKeysFromIsEmpty) {
  Case c = every_shape_case("b1 h4/2 q17 k6 d16 bias_full");
  while (true) {
    HostMemoryDevice device;
    attest::Run run(*find_kernel(c.kernel, Executor::cpu), c, device);
    if (forward::keys_of_row(c.problem, run.inputs(), 0, 1, 2).empty()) break;
    ASSERT_LT(++c.inputs.seed, 400U) << "no such row";
  }
  expect_caught(
      "empty_rows", [](const ForwardArguments& a) { o_row(a, 0, 1, 2)[3] = 1e-30F; }, c);
}

}  // namespace
}  // namespace attest
