#include "plugin/loader.hpp"

#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>

#include "core/base/error.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/records/case.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"
#include "core/run/session.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

fs::path plugin(const std::string& name) {
  return fs::path(ATTEST_TEST_PLUGINS) / (name + ".so");
}

/// The one line that a bad plugin gets.
std::string complaint(const fs::path& path) {
  const std::size_t kernels = all_kernels().size();
  std::string text = "loaded";
  try {
    (void)load_plugin(path, std::chrono::seconds(2));
  } catch (const InvalidInput& error) {
    text = error.what();
    EXPECT_EQ(all_kernels().size(), kernels) << "a bad plugin registers nothing";
    EXPECT_NE(text.find(path.filename().string()), std::string::npos) << "names the plugin";
  }
  EXPECT_EQ(text.find('\n'), std::string::npos) << "is one line: " << text;
  return text;
}

void expect_complaint(const std::string& name, const std::string& part) {
  const std::string text = complaint(plugin(name));
  EXPECT_NE(text.find(part), std::string::npos) << "got: " << text;
}

struct Outcome {
  Outputs outputs;
  std::string error;
};

Outcome run_once(const std::string& name, const Problem& problem) {
  const KernelInfo* kernel = find_kernel(name, Executor::cpu);
  if (kernel == nullptr) return {.outputs = {}, .error = "no kernel"};
  const Case c{
      .kernel = name, .problem = problem, .layouts = ForwardLayouts{.q = {DimOrder::bnhd, 3, 1}}};
  HostMemoryDevice device;
  Session session(*kernel, c, make_inputs(problem, c.inputs), device);
  try {
    session.launch();
  } catch (const KernelError& error) {
    return {.outputs = {}, .error = error.what()};
  }
  return {.outputs = session.read_outputs(), .error = {}};
}

TEST(Loader, APluginsKernelsAreRegisteredAndRun) {
  const LoadedPlugin& loaded = load_plugin(plugin("correct"));
  ASSERT_EQ(loaded.kernels, std::vector<std::string>{"test_plugin"});
  const KernelInfo* kernel = find_kernel("test_plugin", Executor::cpu);
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->summary, "three passes in C");
  EXPECT_EQ(kernel->element_types, std::vector<ElementType>{ElementType::fp32});
  EXPECT_EQ(kernel->masks.size(), 3U);
  EXPECT_EQ(kernel->plans({}), (std::vector<Plan>{{}, {.key_tile = 16}}));
  EXPECT_EQ(kernel->precision({}, {}).as<PrecisionPlan>().rescale, Rescale::none);
  EXPECT_TRUE(fs::path(kernel->plugin).is_absolute());
  const Problem problem{.query_len = 2, .key_len = 0, .head_dim = 3};
  const Outcome outcome = run_once("test_plugin", problem);
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.outputs[forward::o].at(0, 0, 1, 2), 0.0F);
  EXPECT_LT(outcome.outputs[forward::lse].at(0, 0, 1, 0), -1e38F);
}

TEST(Loader, APathIsLoadedOnce) {
  const LoadedPlugin& first = load_plugin(plugin("two_kernels.so").replace_extension());
  EXPECT_EQ(&first, &load_plugin(plugin("two_kernels")));
  EXPECT_EQ(&first, &load_plugin(fs::relative(plugin("two_kernels"))));
}

TEST(Loader, APluginOfAnOlderHeaderHasTheDefaultsInWhatItLacks) {
  ASSERT_EQ(load_plugin(plugin("older_struct")).kernels, std::vector<std::string>{"older_plugin"});
  const KernelInfo* kernel = find_kernel("older_plugin", Executor::cpu);
  ASSERT_NE(kernel, nullptr);
  EXPECT_TRUE(kernel->is_batch_invariant && kernel->missing_outputs.empty() &&
              kernel->ignores_hidden_nan);
  EXPECT_TRUE(!kernel->unavailable && kernel->dataflow == Dataflow::unknown);
  EXPECT_FALSE(kernel->features.softcap || kernel->shares_reference);
  EXPECT_TRUE(kernel->layout_needs.aligns_lone_strides);
  EXPECT_EQ(kernel->key_len_multiple, 1);
  const PrecisionPlan precision = kernel->precision({}, {}).as<PrecisionPlan>();
  EXPECT_FALSE(precision.flushes_subnormals);
  EXPECT_EQ(precision.reference_lag, 0);
  EXPECT_EQ(precision.weight_scale, 1);
  EXPECT_EQ(precision.merge, Merge::lse_pairs);  // the costliest, as for plugins that cannot say
  EXPECT_EQ(run_once("older_plugin", {.query_len = 2, .key_len = 3, .head_dim = 3}).error, "");
}

TEST(Loader, APluginMaySayThatAKernelCannotRunHere) {
  (void)load_plugin(plugin("unavailable"));
  EXPECT_EQ(find_kernel("unavailable_plugin", Executor::cpu)->unavailable(), "no library?for it");
}

TEST(Loader, AFieldOfALaterVersionThatIsZeroDoesNoHarm) {
  EXPECT_EQ(load_plugin(plugin("newer_struct")).kernels, std::vector<std::string>{"newer_plugin"});
}

TEST(Loader, APluginLinkedWithFastMathDoesNotMakeTheJudgeFlushDenormals) {
  const unsigned before = _mm_getcsr();
  EXPECT_EQ(load_plugin(plugin("flush_on_load")).kernels.front(), "flushing_plugin");
  EXPECT_EQ(_mm_getcsr() & ~0x3fU, before & ~0x3fU);
}

TEST(Loader, TwoPluginsCannotShareAName) {
  (void)load_plugin(plugin("correct"));
  expect_complaint("aligned", "'name' is 'test_plugin'; allowed: a name that no other kernel has");
}

TEST(Loader, APluginThatIsNoSharedObjectGetsOneLine) {
  const fs::path text = fs::path(ATTEST_TEST_PLUGINS) / "text.so";
  std::ofstream(text) << "#!/bin/sh\n";
  EXPECT_NE(complaint(text).find("file too short"), std::string::npos) << complaint(text);
  std::ofstream(text) << std::string(4096, 'x');
  EXPECT_NE(complaint(text).find("invalid ELF header"), std::string::npos) << complaint(text);
  EXPECT_NE(complaint(plugin("missing")).find("No such file"), std::string::npos);
  EXPECT_NE(complaint(fs::path(ATTEST_TEST_PLUGINS)).find("is not a file"), std::string::npos);
}

TEST(Loader, APluginThatCrashesHangsOrEndsTheProcessOnLoadGetsOneLine) {
  expect_complaint("crash_on_load",
                   "crashes with signal 11 (Segmentation fault) while it is loaded");
  expect_complaint("exit_on_load", "ends the process with exit code 7 while it is loaded");
  expect_complaint("hang_on_load", "does not come back within 2 s while it is loaded");
  expect_complaint("crash_in_describe", "crashes with signal 11");
  expect_complaint("crash_in_unsupported", "crashes with signal 11");
}

TEST(Loader, APluginWithAWrongDescriptorGetsOneLineThatSaysWhatIsAllowed) {
  expect_complaint("no_symbol", "exports no function attest_plugin()");
  expect_complaint("wrong_version", "version 7 of attest/plugin.h; this attest speaks version 2");
  expect_complaint("small_struct", "kernel 0: AttestKernel.size is 24; allowed: sizeof");
  expect_complaint("unknown_field", "sets fields of AttestKernel that this attest does not know");
  expect_complaint("null_descriptor", "attest_plugin() returned NULL");
  expect_complaint("no_kernels", "'kernel_count' is 0; allowed: 1 to 1000");
  expect_complaint("null_name", "'name' is NULL; allowed: 1 to 64 letters");
  expect_complaint("empty_name", "'name' is ''; allowed: 1 to 64 letters");
  expect_complaint("bad_name", "'name' is 'all*'; allowed: 1 to 64 letters");
  expect_complaint("clash", "'name' is 'test_plugin'; allowed: a name that no other kernel has");
  expect_complaint("unknown_type",
                   "'element_types[0]' is {code 2, 19 bits, 1 lanes}; allowed: ATTEST_FP32");
  expect_complaint("type_twice", "'element_types[2]' is {code 2, 32 bits, 1 lanes}; allowed");
  expect_complaint("no_types", "'element_type_count' is 0; allowed: 1 to 3");
  expect_complaint("unknown_operation",
                   "'operation' is 'sideways'; allowed: forward, combine, backward");
  expect_complaint("combine_with_masks",
                   "'masks' is 0x7; allowed: ATTEST_NO_MASK for operation 'combine'");
  expect_complaint("combine_with_lengths", "'features' is 0x2; allowed: ATTEST_NO_QUERIES or 0");
  expect_complaint("combine_with_rescale",
                   "precision field 'scale' is set, or one behind it; allowed: 0 for operation "
                   "'combine'");
  expect_complaint("divided_weights", "precision field 'divides_weights' is 1; allowed: 0: it is");
  expect_complaint("missing_o", "'missing_outputs' is 'o'; allowed: lse");
  expect_complaint("bad_dataflow", "'dataflow' is 4; allowed: ATTEST_DATAFLOW_UNKNOWN to");
  expect_complaint("bad_exp", "precision field 'exp' is 0; allowed: ATTEST_EXP_CUSTOM when");
  expect_complaint("unknown_mask", "'masks' is 0x20; allowed: a sum of ATTEST_NO_MASK");
  expect_complaint("no_plans", "'plan_count' is 0; allowed: 1 to 1000");
  expect_complaint("unknown_plan_field", "plan 0: 'fields' is 'key_tiles'; allowed: query_tile");
  expect_complaint("nan_precision", "precision field 'division_error' is nan; allowed: 0 to 1");
  expect_complaint("negative_precision", "precision field 'blocks' is -1; allowed: 0");
  expect_complaint("wrong_refinement", "precision field 'division_error' is -1; allowed: 0 to 1");
  expect_complaint("null_run", "'run' is NULL; allowed: a function");
  expect_complaint("bad_head_dim", "'head_dims' is 0; allowed: 1 to 1024");
  expect_complaint("bad_alignment",
                   "'pointer_alignment_bytes' is 24; allowed: 0 or a power of two");
  expect_complaint("unknown_feature", "'features' is 0x80000000; allowed: a sum of ATTEST_SOFTCAP");
  expect_complaint("bad_claim", "'shares_reference' is 2; allowed: 0, 1");
  expect_complaint("bad_multiple", "'key_len_multiple' is -64; allowed: 0 (the default) to 4096");
  expect_complaint("bad_parts",
                   "'value_parts.format' is 0 beside other fields of it; allowed: ATT");
  expect_complaint("bad_lag", "precision field 'reference_lag' is nan; allowed: 0 to 64");
  expect_complaint("bad_merge", "precision field 'merge' is 3; allowed: ATTEST_MERGE_LSE_PAIRS");
  expect_complaint("bad_weight_scale", "'weight_scale' is 3; allowed: 0 (the default) or a power");
}

TEST(Loader, ACppPluginWithItsOwnStandardLibraryWorksAndItsExceptionsStayOutside) {
  ASSERT_EQ(load_plugin(plugin("cpp")).kernels.size(), 2U);
  const Problem with_keys{.query_len = 2, .key_len = 5, .head_dim = 3};
  EXPECT_NE(run_once("cpp_empty_rows", with_keys).error.find("only problems without keys, not 5"),
            std::string::npos);
  EXPECT_EQ(run_once("cpp_throwing", with_keys).error, "cpp_throwing: run() threw a C++ exception");
}

}  // namespace
}  // namespace attest
