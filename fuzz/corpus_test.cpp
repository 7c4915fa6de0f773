// The corpora of the fuzz targets, once, in every build: what was found stays found.
#include "fuzz/corpus.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fuzz/targets.hpp"

namespace attest {
namespace {

void expect_corpus_passes(const std::string& name, void (*target)(std::span<const std::uint8_t>)) {
  const std::vector<Seed> seeds = read_seeds(name);
  EXPECT_GE(seeds.size(), 3U);
  for (const Seed& seed : seeds) {
    const std::vector<std::uint8_t> bytes(seed.bytes.begin(), seed.bytes.end());
    EXPECT_NO_THROW(target(bytes)) << seed.name;
    // Cut off anywhere, it is bad input of another kind.
    for (std::size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 50) {
      EXPECT_NO_THROW(target(std::span(bytes).first(size))) << seed.name << " cut at " << size;
    }
  }
}

TEST(Corpus, OfCaseFilesPasses) {
  expect_corpus_passes("case", fuzz_case);
}
TEST(Corpus, OfCounterexamplesPasses) {
  expect_corpus_passes("counterexample", fuzz_counterexample);
}
TEST(Corpus, OfSafetensorsFilesPasses) {
  expect_corpus_passes("safetensors", fuzz_safetensors);
}
TEST(Corpus, OfTuningTablesPasses) {
  expect_corpus_passes("tuning_table", fuzz_tuning_table);
}
TEST(Corpus, OfStudiesPasses) {
  expect_corpus_passes("study", fuzz_study);
}
TEST(Corpus, OfPluginDescriptorsPasses) {
  expect_corpus_passes("plugin", fuzz_plugin);
}

TEST(Corpus, HoldsTextAndBytes) {
  const std::vector<Seed> seeds =
      seeds_of("=== nothing\n\n=== a_line: ends\na\n\n=== bytes\nx`00ff`y\n");
  ASSERT_EQ(seeds.size(), 3U);
  EXPECT_EQ(seeds[0].bytes, "");
  EXPECT_EQ(seeds[1].name, "a_line");
  EXPECT_EQ(seeds[1].bytes, "a\n");
  EXPECT_EQ(seeds[2].bytes, std::string("x\0\xffy", 4));
}

TEST(Corpus, ThatIsBrokenIsRefused) {
  for (const char* const broken :
       {"x\n", "===\n", "=== \nx\n", "=== : why\nx\n", "=== a b\nx\n", "=== a", "=== a\n",
        "=== a\nx", "=== a\n`0`\n", "=== a\n`0g`\n", "=== a\n`00\n", "=== a\nx\n=== a\ny\n"}) {
    EXPECT_THROW((void)seeds_of(broken), InvalidInput) << broken;
  }
}

}  // namespace
}  // namespace attest
