// fuzz/corpus/study.txt: studies that are wrong, each with all complaints about it in its first
// lines.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "experiments/study/language/parse_study.hpp"
#include "fuzz/corpus.hpp"

namespace attest {
namespace {

/// What stands behind `# expect: `.
std::vector<std::string> expected_complaints(std::string_view text) {
  constexpr std::string_view mark = "# expect: ";
  std::vector<std::string> complaints;
  while (text.starts_with(mark)) {
    const std::size_t end = text.find('\n');
    complaints.emplace_back(text.substr(mark.size(), end - mark.size()));
    text.remove_prefix(end + 1);
  }
  return complaints;
}

std::vector<std::string> complaints_about(std::string_view text) {
  std::vector<std::string> complaints;
  for (const StudyError& error : parse_study(text, "malformed").errors) {
    complaints.push_back(to_string(error, "").substr(1));
  }
  return complaints;
}

TEST(MalformedStudies, Get_exactly_the_complaints_that_they_deserve) {
  int malformed = 0, good = 0;
  for (const Seed& seed : read_seeds("study")) {
    const std::vector<std::string> expected = expected_complaints(seed.bytes);
    EXPECT_EQ(complaints_about(seed.bytes), expected) << seed.name;
    ++(expected.empty() ? good : malformed);
  }
  EXPECT_GE(malformed, 100);
  EXPECT_GE(good, 2);
}

TEST(MalformedStudies, A_file_of_any_size_gets_an_answer_at_once) {
  EXPECT_EQ(complaints_about(std::string(300'000, 'a')).front(),
            "1:1: the file has 300000 bytes; allowed: up to 262144");
  std::string many = "question: Q?\nkernels: k5_padded_tiles\nseeds: [0";
  for (int i = 1; i < 25'000; ++i) many += ",0";
  EXPECT_EQ(complaints_about(many + "]\n").front(), "3:39995: there are more than 20000 values");
  std::string nested = "problem: ";
  for (int i = 0; i < 20'000; ++i) nested += "{a: ";
  EXPECT_EQ(complaints_about(nested).size(), 1U);
  EXPECT_EQ(complaints_about(std::string("question: \0\0", 12)),
            std::vector<std::string>{"1:13: this is no YAML: unknown escape character: ?"});
}

}  // namespace
}  // namespace attest
