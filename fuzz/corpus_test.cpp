// The corpora of the fuzz targets, once, in every build: what was found stays found.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/targets.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

void expect_corpus_passes(const std::string& name, void (*target)(std::span<const std::uint8_t>)) {
  int files = 0;
  for (const auto& entry :
       fs::directory_iterator(fs::path(ATTEST_SOURCE_DIR) / "fuzz/corpus" / name)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::vector<std::uint8_t> bytes(text.begin(), text.end());
    EXPECT_NO_THROW(target(bytes)) << entry.path();
    // Cut off anywhere, it is bad input of another kind.
    for (std::size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 50) {
      EXPECT_NO_THROW(target(std::span(bytes).first(size))) << entry.path() << " cut at " << size;
    }
    ++files;
  }
  EXPECT_GE(files, 3);
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

}  // namespace
}  // namespace attest
