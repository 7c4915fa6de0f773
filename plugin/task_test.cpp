#include "plugin/task.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/base/error.hpp"

namespace attest {
namespace {

TEST(Task, IsANameAndWhatDiffersFromIt) {
  const Task task = task_from("fa3:d64,128:none,causal:n1-512:lse");
  EXPECT_EQ(task.element_types, std::vector{ElementType::bf16}) << "of fa3";
  EXPECT_TRUE(task.is_grouped) << "of fa3";
  EXPECT_EQ(task.head_dims, (std::vector<std::int64_t>{64, 128}));
  EXPECT_EQ(task.masks, (std::vector{Mask::none, Mask::causal_bottom_right}));
  EXPECT_EQ(task.query_len.most, 512);
  EXPECT_EQ(task.key_len.most, 512);
  EXPECT_TRUE(task.wants_lse);
  EXPECT_FALSE(task.is_deterministic);
}

TEST(Task, WordsAloneDifferFromForward) {
  const Task task = task_from("forward:d64:bf16:causal");
  EXPECT_EQ(task.element_types, std::vector{ElementType::bf16});
  EXPECT_EQ(task_from("d64:bf16:causal").largest(), task.largest());
}

TEST(Task, EveryNamedOneIsRead) {
  for (const NamedTask& named : named_tasks()) {
    const Task task = task_from(std::string(named.name));
    EXPECT_EQ(task.why_not(task.largest()), std::nullopt) << named.name;
    EXPECT_EQ(task_from(std::string(named.words)).largest(), task.largest())
        << named.name << ": a word of it is none";
  }
}

TEST(Task, LengthsAreMultiples) {
  const Task task = task_from("n1-100:multiple64");
  EXPECT_EQ(task.query_len.least, 64);
  EXPECT_EQ(task.query_len.most, 64);
  EXPECT_THROW((void)task_from("n1-63:multiple64"), InvalidInput);
}

TEST(Task, AsksForNothingElse) {
  const Task task = task_from("causal:d64:n2-64:h1-4:b1");
  Problem problem = task.largest();
  EXPECT_EQ(task.why_not(problem), std::nullopt);
  const auto refuses = [&](auto member, auto value) {
    Problem other = problem;
    other.*member = value;
    return task.why_not(other).has_value();
  };
  EXPECT_TRUE(refuses(&Problem::batch, std::int64_t{2}));
  EXPECT_TRUE(refuses(&Problem::query_len, std::int64_t{1}));
  EXPECT_TRUE(refuses(&Problem::key_len, std::int64_t{65}));
  EXPECT_TRUE(refuses(&Problem::key_len, std::int64_t{63})) << "the first row would be empty";
  EXPECT_TRUE(refuses(&Problem::kv_heads, std::int64_t{2}));
  EXPECT_TRUE(refuses(&Problem::scale, 0.5F));
}

TEST(Task, AWordThatIsNoneGetsOneLine) {
  for (const std::string text :
       {"", "fa3:", "tall", "d", "d0", "n5-1", "n1-", "h-1", "bf17", "bf16,", "none,sideways",
        "multiple0", "d64:fa3", "n99999999999"}) {
    try {
      (void)task_from(text);
      ADD_FAILURE() << text;
    } catch (const InvalidInput& error) {
      const std::string line = error.what();
      EXPECT_EQ(line.find('\n'), std::string::npos);
      EXPECT_NE(line.find("allowed: forward, kernelbench"), std::string::npos) << line;
    }
  }
}

}  // namespace
}  // namespace attest
