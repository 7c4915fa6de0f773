#include "tests/layering.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <tuple>

#include "core/base/temporary_folder.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

bool is_allowed(std::string_view file, const std::string& include) {
  return check_includes(file, "#include " + include + "\n").empty();
}

TEST(Layering, the_tree_keeps_to_the_dependency_table) {
  for (const LayeringViolation& violation : check_tree(ATTEST_SOURCE_DIR))
    ADD_FAILURE() << to_string(violation);
}

TEST(Layering, the_check_sees_the_sources) {
  const auto files = source_files(ATTEST_SOURCE_DIR);
  for (const char* expected : {"core/attention/problem.hpp", "tests/layering_test.cpp"})
    EXPECT_TRUE(std::ranges::binary_search(files, expected)) << expected;
  for (const std::string& file : files) EXPECT_FALSE(file.starts_with("build/")) << file;
}

TEST(Layering, a_planted_violation_is_reported_with_file_line_include_and_rule) {
  const auto found = check_includes(
      "verify/campaign/campaign.cpp",
      "#include \"verify/campaign/campaign.hpp\"\n\n  #  include \"gpu/runtime/stream.hpp\"\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(to_string(found[0]),
            "verify/campaign/campaign.cpp:3: includes gpu/runtime/stream.hpp: verify may include "
            "only core, "
            "cpu_reference");
}

TEST(Layering, each_row_of_the_table_forbids_what_it_should) {
  for (const auto& [file, include] : {
           std::tuple{"core/a.cpp", "\"cpu_reference/forward/oracle.hpp\""},
           {"core/a.cpp", "\"verify/campaign/campaign.hpp\""},
           {"core/a.cpp", "\"build_info.inc\""},
           {"core/a_test.cpp", "\"verify/campaign/campaign.hpp\""},
           {"cpu_reference/a.cpp", "\"verify/campaign/campaign.hpp\""},
           {"cpu_reference/kernels/a.cpp", "\"gpu/primitives/copy.cuh\""},
           {"gpu/simt/a.cpp", "\"gpu/runtime/stream.hpp\""},
           {"gpu/runtime/a.cpp", "\"gpu/simt/launch.hpp\""},
           {"gpu/runtime/a.cpp", "\"gpu/primitives/tile_plan.hpp\""},
           {"gpu/primitives/copy.cuh", "\"gpu/simt/launch.hpp\""},
           {"gpu/kernels/a.cu", "\"gpu/runtime/stream.hpp\""},
           {"gpu/kernels/a.cu", "\"cpu_reference/forward/oracle.hpp\""},
           {"verify/mutants/a.cpp", "\"gpu/simt/launch.hpp\""},
           {"verify/a_test.cpp", "\"gpu/simt/launch.hpp\""},
           {"experiments/a.cpp", "\"gpu/runtime/stream.hpp\""},
           {"experiments/a.cpp", "\"cli/verify.hpp\""},
           {"experiments/a.cpp", "\"gpu/simt/launch.hpp\""},
           {"experiments/explain/a.cpp", "\"gpu/runtime/stream.hpp\""},
           {"nowhere/a.cpp", "\"core/attention/problem.hpp\""},
           {"core/a.cpp", "\"problem.hpp\""},
           {"core/a.hpp", "<cuda_runtime.h>"},
           {"core/a.cpp", "<cuda_fp16.h>"},
           {"core/a.hpp", "<nlohmann/json.hpp>"},
           {"core/a.cpp", "<yaml-cpp/yaml.h>"},
           {"core/a.hpp", "<rapidcheck.h>"},
           {"cli/a.cpp", "\"gpu/primitives/copy.cuh\""},
       })
    EXPECT_FALSE(is_allowed(file, include)) << file << " includes " << include;
}

TEST(Layering, each_row_of_the_table_allows_what_it_should) {
  for (const auto& [file, include] : {
           std::tuple{"core/a.cpp", "\"core/attention/problem.hpp\""},
           {"core/a.cpp", "<nlohmann/json.hpp>"},
           {"core/a_test.cpp", "<rapidcheck.h>"},
           {"core/records/provenance.cpp", "\"build_info.inc\""},
           {"cpu_reference/kernels/a.cpp", "\"cpu_reference/forward/oracle.hpp\""},
           {"gpu/primitives/launch.cuh", "\"gpu/simt/launch.hpp\""},
           {"gpu/simt/a_test.cu", "\"gpu/primitives/launch.cuh\""},
           {"gpu/kernels/a.cu", "\"gpu/primitives/copy.cuh\""},
           {"gpu/kernels/a.cu", "\"core/run/registry.hpp\""},
           {"verify/mutants/a.cpp", "\"cpu_reference/forward/oracle.hpp\""},
           {"experiments/a.cpp", "\"verify/campaign/campaign.hpp\""},
           {"experiments/explain/a.cpp", "\"gpu/simt/trace_kernel.hpp\""},
           {"cli/verify.cpp", "\"gpu/runtime/device_info.hpp\""},
       })
    EXPECT_TRUE(is_allowed(file, include)) << file << " includes " << include;
}

TEST(Layering, a_name_that_only_begins_like_a_folder_is_not_in_it) {
  EXPECT_FALSE(is_allowed("core_extra/a.cpp", "\"core/attention/problem.hpp\""));
  EXPECT_FALSE(is_allowed("verify/a.cpp", "\"core_extra/problem.hpp\""));
}

TEST(Layering, a_folder_without_readme_is_reported) {
  const TemporaryFolder root;
  fs::create_directories(root / "core");
  fs::create_directories(root / "build" / "core");
  std::ofstream(root / "core" / "a.hpp") << "#pragma once\n";
  std::ofstream(root / "build" / "core" / "a.cpp") << "#include \"nothing\"\n";
  const auto without = check_tree(root);
  std::ofstream(root / "core" / "README.md") << "# core\n";
  const auto with = check_tree(root);
  ASSERT_EQ(without.size(), 1U);
  EXPECT_EQ(to_string(without[0]), "core: a folder with sources has a README.md");
  EXPECT_TRUE(with.empty());
}

}  // namespace
}  // namespace attest
