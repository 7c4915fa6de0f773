#include "plugin/declaration.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/run/kernel.hpp"
#include "plugin/descriptor.hpp"

namespace attest {
namespace {

/// attest_plugin() is called once.
const AttestPlugin* loaded(const std::string& name) {
  static std::map<std::string, const AttestPlugin*> known;
  if (known.contains(name)) return known[name];
  const std::string path = std::string(ATTEST_TEST_PLUGINS) + "/" + name + ".so";
  void* const object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(object, nullptr) << dlerror();
  return known[name] = reinterpret_cast<decltype(&attest_plugin)>(dlsym(object, "attest_plugin"))(
             ATTEST_PLUGIN_VERSION);
}

/// As it arrives at the process that judges.
Json sent(const std::string& name) {
  return parse_json(declaration_json(loaded(name)).dump());
}

/// What the kernels claim, or the complaint.
std::string words(const AttestPlugin* plugin) {
  try {
    std::string text;
    for (const KernelInfo& kernel : kernels_of(plugin, "x.so")) {
      text += kernel.name + ", " + kernel.summary + ", " + kernel.operation->name.data();
      for (const ElementType type : kernel.element_types) text += format_of(type).name;
      for (const std::int64_t dim : kernel.head_dims) text += std::to_string(dim) + " ";
      for (const std::string& output : kernel.missing_outputs) text += output + " ";
      for (const std::int64_t size : kernel.layout_needs.page_sizes) text += std::to_string(size);
      for (const Plan& plan : kernel.plans({})) text += to_string(plan) + ";";
      text += kernel.unavailable ? kernel.unavailable() : "";
      text += kernel.features.lengths ? "lengths" : "";
      text += std::to_string(kernel.key_len_multiple) + "\n";
    }
    return text;
  } catch (const InvalidInput& error) {
    return error.what();
  }
}

TEST(Declaration, SaysInAnotherProcessWhatThePluginSaysHere) {
  for (const char* name :
       {"correct", "two_kernels", "aligned", "older_struct", "newer_struct", "unavailable",
        "multiples_of_64", "claims", "combine", "backward", "takes", "cuda_kernel", "cpp"}) {
    const Declaration there(sent(name), "x.so");
    EXPECT_EQ(words(there.plugin()), words(loaded(name))) << name;
  }
}

TEST(Declaration, OfAWrongDescriptorGetsTheSameComplaint) {
  for (const char* name :
       {"wrong_version",      "small_struct",    "unknown_field",      "null_descriptor",
        "no_kernels",         "null_name",       "empty_name",         "bad_name",
        "unknown_type",       "type_twice",      "no_types",           "unknown_operation",
        "combine_with_masks", "missing_o",       "bad_dataflow",       "bad_exp",
        "unknown_mask",       "no_plans",        "unknown_plan_field", "nan_precision",
        "null_run",           "bad_head_dim",    "bad_alignment",      "bad_multiple",
        "bad_parts",          "bad_weight_scale"}) {
    const Declaration there(sent(name), "x.so");
    const std::string complaint = words(loaded(name));
    EXPECT_EQ(complaint.find('\n'), std::string::npos) << name << " is fine: " << complaint;
    EXPECT_EQ(words(there.plugin()), complaint) << name;
  }
}

/// Is it refused, or read as something that kernels_of() can check?
void expect_harmless(const Json& said) {
  try {
    const Declaration there(said, "x.so");
    (void)words(there.plugin());
  } catch (const InvalidInput& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
}

TEST(Declaration, NoByteOfItIsBelieved) {
  Json whole = sent("claims");
  whole["kernels"] = Json::array({whole["kernels"][0]});  // one is enough
  whole["struct"][offsetof(AttestPlugin, kernel_count)] = 1;
  for (const auto& [key, value] : whole["kernels"][0].items()) {
    for (const Json& instead : {Json(), Json(7), Json("text"), Json::array(), Json::object(),
                                Json{1, 2, 3}, Json{Json::array()}, Json{-1}, Json{{1, 2}}}) {
      Json changed = whole;
      changed["kernels"][0][key] = instead;
      expect_harmless(changed);
    }
    Json without = whole;
    without["kernels"][0].erase(key);
    EXPECT_THROW(Declaration(without, "x.so"), InvalidInput) << key;
  }
  // Pointers and counts in the structs themselves: each byte another one.
  const std::size_t size = whole["kernels"][0]["struct"].size();
  for (std::size_t i = 4; i < size; ++i) {
    for (const int byte : {0x01, 0x41, 0xff}) {
      Json changed = whole;
      changed["kernels"][0]["struct"][i] = byte;
      expect_harmless(changed);
    }
  }
  for (std::size_t i = 4; i < whole["struct"].size(); ++i) {
    Json changed = whole;
    changed["struct"][i] = 0x41;
    expect_harmless(changed);
  }
  for (const Json& nothing : {Json(7), Json("text"), Json::array(), Json::object()}) {
    EXPECT_THROW(Declaration(nothing, "x.so"), InvalidInput);
  }
}

TEST(Declaration, OfTooManyPlansIsRefused) {
  Json said = sent("correct");
  said["kernels"][0]["plans"] = Json::array();
  EXPECT_THROW(Declaration(said, "x.so"), InvalidInput);
}

}  // namespace
}  // namespace attest
