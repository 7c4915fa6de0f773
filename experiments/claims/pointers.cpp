#include "experiments/claims/pointers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include "core/attention/plan.hpp"
#include "core/attention/problem.hpp"
#include "core/inputs/input_family.hpp"
#include "core/run/registry.hpp"
#include "verify/judge/law.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// True if any Plan that the kernel offers has all these words. A Plan may be one of a longer
/// problem, so one of each kind of shape is asked.
bool offers(const KernelInfo& kernel, const std::string& plan) {
  if (!kernel.plans) return false;
  const std::vector<std::string> wanted = words_of(plan);
  for (const ElementType type : kernel.element_types) {
    for (const char* shape : {"b2 h4 n256 d64", "b2 h4 n256 d128", "b2 h8/2 n256 d64"}) {
      for (const Mask mask : kernel.masks) {
        Problem problem = problem_from_string(shape);
        problem.element_type = type;
        problem.mask = mask;
        const std::vector<Plan> plans = kernel.plans(problem);
        const bool has_it = std::ranges::any_of(plans, [&](const Plan& offered) {
          const std::vector<std::string> words = words_of(to_string(offered));
          return std::ranges::all_of(wanted, [&](const std::string& word) {
            return std::ranges::find(words, word) != words.end();
          });
        });
        if (has_it) return true;
      }
    }
  }
  return false;
}

std::string why_no_kernel(const Pointer& pointer) {
  std::vector<const KernelInfo*> found;
  for (const KernelInfo& kernel : all_kernels()) {
    if (kernel.name == pointer.name && kernel.role != KernelRole::mutant) found.push_back(&kernel);
  }
  if (found.empty()) return fmt::format("there is no kernel {}", pointer.name);
  if (pointer.plan.empty()) return "";
  const bool offered = std::ranges::any_of(
      found, [&](const KernelInfo* kernel) { return offers(*kernel, pointer.plan); });
  return offered ? "" : fmt::format("{} offers no Plan '{}'", pointer.name, pointer.plan);
}

std::string why_no_file(const fs::path& tree, const std::string& name) {
  return fs::exists(tree / name) ? "" : fmt::format("there is no {}", name);
}

std::string why_no_mutant(const std::string& name, const fs::path& tree) {
  std::error_code none;  // a tree without the folder has no mutant
  for (const fs::directory_entry& file : fs::directory_iterator(tree / "verify/mutants", none)) {
    if (file.path().extension() != ".mutants") continue;
    std::ifstream stream(file.path());
    for (std::string line; std::getline(stream, line);) {
      if (line == "=== " + name) return "";
    }
  }
  return fmt::format("there is no mutant {} in verify/mutants", name);
}

/// `FILE: Suite.Name`. Tests in shell scripts and Python have no suite: FILE alone.
std::string why_no_test(const std::string& name, const fs::path& tree) {
  const std::size_t colon = name.find(": ");
  const std::string file = name.substr(0, colon);
  if (std::string trouble = why_no_file(tree, file); !trouble.empty()) return trouble;
  if (colon == std::string::npos) {
    return file.ends_with(".cpp") ? fmt::format("{} needs a test: FILE: Suite.Name", file) : "";
  }
  const std::string test = name.substr(colon + 2);
  std::ifstream stream(tree / file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const std::size_t dot = test.find('.');
  const std::string as_written =
      dot == std::string::npos ? test : test.substr(0, dot) + ", " + test.substr(dot + 1);
  for (const char end : {')', ','}) {  // TEST(A, B) or RC_GTEST_PROP(A, B, ())
    if (text.find("(" + as_written + end) != std::string::npos) return "";
  }
  return fmt::format("{} has no test {}", file, test);
}

}  // namespace

std::string why_nowhere(const Pointer& pointer, const fs::path& tree) {
  if (pointer.kind == "kernel") return why_no_kernel(pointer);
  if (pointer.kind == "test") return why_no_test(pointer.name, tree);
  if (pointer.kind == "mutant") return why_no_mutant(pointer.name, tree);
  if (pointer.kind == "study") {
    return why_no_file(tree, fmt::format("experiments/studies/{}.yaml", pointer.name));
  }
  if (pointer.kind == "record") {
    return why_no_file(tree, fmt::format("experiments/results/{}", pointer.name));
  }
  if (pointer.kind == "property") {
    const bool is_known =
        std::ranges::any_of(all_laws(), [&](const Law& law) { return law.name == pointer.name; });
    return is_known ? "" : fmt::format("there is no law {}", pointer.name);
  }
  if (pointer.kind == "input") {
    const bool is_known = std::ranges::any_of(all_input_families(), [&](const InputFamily& family) {
      return family.name == pointer.name;
    });
    return is_known ? "" : fmt::format("there is no input family {}", pointer.name);
  }
  return why_no_file(tree, pointer.name);
}

std::string to_string(const Pointer& pointer) {
  if (pointer.kind == "test") {
    const std::size_t colon = pointer.name.find(": ");
    return colon == std::string::npos ? pointer.name : pointer.name.substr(colon + 2);
  }
  if (!pointer.plan.empty()) return fmt::format("{} {}", pointer.name, pointer.plan);
  return pointer.kind == "mutant" ? "mutant/" + pointer.name : pointer.name;
}

}  // namespace attest
