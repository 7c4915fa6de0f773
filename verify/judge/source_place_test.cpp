#include "verify/judge/source_place.hpp"

#include <gtest/gtest.h>

#include "core/run/registry.hpp"
#include "verify/campaign/campaign.hpp"

namespace attest {
namespace {

TEST(SourcePlace, IsTheLineAtWhichTheExecutorSawTheDefect) {
  const KernelInfo* const stray = find_kernel("mutant/c17_key_row_out_of_bounds", Executor::simt);
  ASSERT_NE(stray, nullptr);
  CampaignOptions options;
  options.cases_per_simt_kernel = 40;
  options.generator.max_len = 40;
  options.shrink.calls = 0;
  const KernelResult result = run_campaign({stray}, options).front();
  ASSERT_TRUE(result.failure);
  ASSERT_EQ(result.failure->law, "clean_execution");
  const auto place = source_place_in(result.failure->check.detail);
  ASSERT_TRUE(place) << result.failure->check.detail;
  EXPECT_NE(place->file.find(".cu"), std::string::npos) << place->file;
  EXPECT_GT(place->line, 1);
}

TEST(SourcePlace, OfARaceIsThatOfTheSecondAccess) {
  const auto place = source_place_in(
      "data race: k2, block (0, 0, 0), thread (1, 0, 0) reads shared memory, byte 4 at "
      "gpu/kernels/k2_coalesced.cu:57 while thread (0, 0, 0) writes at gpu/kernels/a.cuh:9; no "
      "barrier lies between");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->file, "gpu/kernels/k2_coalesced.cu");
  EXPECT_EQ(place->line, 57);
}

TEST(SourcePlace, IsInNoSentenceThatNamesNone) {
  for (const char* sentence : {"O is outside its error bound", "reads at an unknown line", ""}) {
    EXPECT_FALSE(source_place_in(sentence)) << sentence;
  }
}

}  // namespace
}  // namespace attest
