// Laws about K and V in pages against saboteurs, where no mutant of decode_mma stands for them.
#include <gtest/gtest.h>

#include "verify/laws/sabotage_test.hpp"

namespace attest {
namespace {

Case paged_case(TableForm table) {
  Case c{.kernel = "o5_deferred",
         .problem = problem_from_string("b3 h4/2 q2 k21 d16"),
         .plan = {.key_tile = 3},
         .layouts = {},
         .inputs = {.seed = 11}};
  c.layouts.paging = {.page_size = 8, .table = table, .shuffle_seed = 5};
  return c;
}

/// All entries have one length, which the kernel finds on the device: kernels of the CPU read
/// Problem.
Arguments with_length_of_table(const Arguments& given) {
  Arguments a = given;
  a.problem.key_len = a.page_table.key_len(0);
  return a;
}

/// `sabotage` sees what the kernel was given.
Verdict verdict_of_reader(const std::string& law, const Case& c, const Sabotage& sabotage) {
  const KernelInfo* correct = find_kernel(c.kernel, Executor::cpu);
  KernelInfo kernel = *correct;
  kernel.reads_lengths = true;
  kernel.launch = [&](const Arguments& a, Device& device) {
    correct->launch(with_length_of_table(a), device);
    sabotage(a);
  };
  HostMemoryDevice device;
  Run run(kernel, c, device);
  return verify_case(run, {.glob = law, .every_law = true}).verdict;
}

const Sabotage nothing = [](const ForwardArguments&) {};

TEST(PagingLaws, ACorrectKernelPassesEveryLaw) {
  for (const TableForm table : {TableForm::dense, TableForm::csr}) {
    for (const char* const text : {"paged1", "paged8/joined/spare3", "paged3/shared/infinity",
                                   "paged16/columns2/shuffled9/large"}) {
      Case c = paged_case(table);
      c.problem.shared_keys = 7;
      c.layouts.paging = paging_from_string(text);
      c.layouts.paging.table = table;
      EXPECT_EQ(verdict_of("*", c, nothing), Verdict::passed) << text;
      EXPECT_EQ(verdict_of_reader("capacity_irrelevant", c, nothing), Verdict::passed) << text;
      EXPECT_EQ(verdict_of_reader("lengths_may_change", c, nothing), Verdict::passed) << text;
    }
  }
}

TEST(PagingLaws, AnAnswerThatHangsOnUnusedTableEntriesIsCaught) {
  Case c = paged_case(TableForm::dense);
  c.layouts.paging.spare_columns = 1;
  const Sabotage reads_on = [](const ForwardArguments& a) {
    if (a.page_table.pages[a.page_table.columns - 1] != -1) o_row(a, 0, 0, 0)[0] += 1e-3F;
  };
  expect_caught("unused_slots_irrelevant", reads_on, c);
}

TEST(PagingLaws, AnAnswerThatHangsOnTheRoomForKeysIsCaught) {
  const Case c = paged_case(TableForm::dense);
  const Sabotage counts_room = [](const ForwardArguments& a) {
    if (a.problem.key_len > 21) o_row(a, 0, 0, 0)[0] += 1e-3F;
  };
  EXPECT_EQ(verdict_of_reader("capacity_irrelevant", c, counts_room), Verdict::failed);
}

TEST(PagingLaws, ALengthThatIsRememberedIsCaught) {
  for (const TableForm table : {TableForm::dense, TableForm::csr}) {
    const Case c = paged_case(table);
    std::int64_t launches = 0;
    const Sabotage after_another = [&](const ForwardArguments& a) {
      if (++launches % 3 == 0) o_row(a, 0, 0, 0)[0] += 1e-3F;
    };
    EXPECT_EQ(verdict_of_reader("lengths_may_change", c, after_another), Verdict::failed);
    std::int64_t first = 0;
    const Sabotage as_before = [&](const ForwardArguments& a) {
      if (first == 0) first = a.page_table.key_len(0);
      if (a.problem.batch == 3 && a.page_table.key_len(0) != first) {
        for (std::int64_t b = 0; b < 3; ++b) o_row(a, b, 0, 0)[0] += 1e-2F;
      }
    };
    EXPECT_EQ(verdict_of_reader("lengths_may_change", c, as_before), Verdict::failed);
  }
}

TEST(PagingLaws, ManyMatesNeedNoMemoryForGapsBetweenEntries) {
  const KernelInfo& kernel = *find_kernel("k3_sequence_parallel", Executor::simt);
  const auto device = make_device(Executor::simt);
  Case c{.kernel = kernel.name, .problem = problem_from_string("b2 q1 k5 d16")};
  c.plan = kernel.plans(c.problem).front();
  c.layouts[forward::o].outer_gap = far_elements;
  for (c.inputs.seed = 0; c.inputs.seed < 6; ++c.inputs.seed) {  // draws how many mates join
    attest::Run run(kernel, c, *device);
    EXPECT_EQ(verify_case(run, {.glob = "more_mates_irrelevant", .every_law = true}).verdict,
              Verdict::passed);
  }
}

// What random cases hardly ever are: lengths at which a query sees nearly all of the shared chunks.
TEST(Cascade, QueriesThatSeeAPartOfThePrefixAnswerForThemselves) {
  const KernelInfo& kernel = *find_kernel("decode_mma", Executor::simt);
  const auto device = make_device(Executor::simt);
  const auto expect_passed = [&](const Case& c, std::string_view text) {
    attest::Run run(kernel, c, *device);
    const auto judged = verify_case(
        run, {.glob = "within_bound,clean_execution,shared_pages_equal_copies", .every_law = true});
    EXPECT_EQ(judged.verdict, Verdict::passed)
        << text << ' ' << to_string(c.plan) << ' ' << to_string(c.layouts.paging)
        << (judged.failure ? judged.failure->check.detail : "");
  };
  const Plan plan = plan_from_string(
      "qt32 kt64 w4 st6 pack_gqa=yes sk64 key_split_rule=fixed_keys combine=second_kernel "
      "cascade=yes");
  const Plan by_wgmma = plan_from_string(
      "qt16 kt64 w4 st6 pack_gqa=yes overlap=yes sk128 key_split_rule=fixed_keys "
      "combine=second_kernel cascade=yes");
  for (const char* const text :
       {"b2 h4/2 q1 k128", "b2 h4/2 q1 k129", "b2 h4/2 q5 k129", "b2 h2/2 q16 k143",
        "b3 h8/2 q5 k132", "b5 h4/2 q3 k140 lengths3", "b2 h2/2 q5 k130 left100"}) {
    const bool is_window = std::string_view(text).find("left") != std::string_view::npos;
    Case c{.kernel = "decode_mma", .plan = plan, .inputs = {.seed = 3}, .schedule_seed = 4};
    c.problem = problem_from_string(std::string(text) + " d64 bf16 " +
                                    (is_window ? "window_bottom_right" : "causal_bottom_right"));
    c.problem.shared_keys = c.problem.key_len;
    c.layouts.paging = paging_from_string("paged8/shared/shuffled2");
    expect_passed(c, text);
    c.plan = by_wgmma;
    for (const char* const pages : {"paged1/shared/shuffled2", "paged16/shared/csr/shuffled2"}) {
      c.layouts.paging = paging_from_string(pages);
      expect_passed(c, text);
    }
  }
}

TEST(Cascade, IsTheDefaultWhereManyRowsShareALongPrefix) {
  const KernelInfo& kernel = *find_kernel("decode_mma", Executor::simt);
  const auto plan_of = [&](const char* text) {
    return kernel.plans(problem_from_string(text)).front();
  };
  const Plan many = plan_of("b64 h32/8 q1 k33792 d128 bf16 shared32768");
  EXPECT_EQ(many.cascade, Cascade::yes);
  EXPECT_EQ(many.overlap, Overlap::yes);
  // 8 heads, 2 tiles of rows and as many chunks: SMs are left for 1,024 own keys of each entry.
  const auto blocks = [](const Plan& plan) {
    return 8 * 2 * ((32768 + plan.split_keys - 1) / plan.split_keys);
  };
  EXPECT_LT(blocks(many), 100);
  // One own key of each takes no time, and a block for every SM is soonest.
  const Plan few_own = plan_of("b64 h32/8 q1 k32769 d128 bf16 shared32768");
  EXPECT_GT(blocks(few_own), 100);
  EXPECT_LE(blocks(few_own), 132);
  for (const char* const text :
       {"b64 h32/8 q1 k33792 d128 bf16", "b64 h32/8 q1 k33792 d128 bf16 shared100",
        "b2 h32/8 q1 k33792 d128 bf16 shared32768", "b64 h32/8 q1 k33792 d256 bf16 shared32768",
        "b64 h32/8 q1 k33792 d128 bf16 shared32768 softcap30"}) {
    EXPECT_EQ(plan_of(text).cascade, 0) << text;
  }
}

}  // namespace
}  // namespace attest
