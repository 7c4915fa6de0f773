#include "tests/layering.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <set>

#include "core/base/error.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// A folder of the dependency table and the folders, besides itself, that its files may include
/// from.
struct Layer {
  std::string_view folder;
  std::vector<std::string_view> may_include;
  std::vector<std::string_view> tests_may_include;  ///< besides those
};

const std::vector<Layer>& layers() {
  static const std::vector<std::string_view> everything{"core",    "cpu_reference", "gpu", "plugin",
                                                        "verify",  "experiments",   "cli", "tests",
                                                        "include", "data"};
  // A sub-folder stands before its parent: the first match decides.
  static const std::vector<Layer> table{
      {"core", {}, {}},
      {"cpu_reference", {"core"}, {}},
      // Kernels that exist only to test a runtime launch themselves through the primitives, like
      // all kernels.
      {"gpu/model", {"core"}, {}},
      {"gpu/runtime", {"core"}, {"gpu/primitives", "gpu/model"}},
      {"gpu/simt", {"core"}, {"gpu/primitives", "gpu/model"}},
      {"gpu/primitives", {"core"}, {"gpu/runtime", "gpu/model"}},
      {"gpu/kernels", {"core", "gpu/primitives"}, {}},
      {"gpu/peers", {"core", "gpu/primitives", "gpu/runtime"}, {}},
      // Kernels that judge instead of being judged: they share the reference's formulas.
      {"gpu/reference", {"core", "cpu_reference", "gpu/primitives"}, {}},
      {"gpu/arithmetic", {"core", "gpu/primitives"}, {"gpu/simt", "gpu/runtime"}},
      {"gpu/microbench", {"core", "gpu/primitives", "gpu/runtime"}, {}},
      {"verify", {"core", "cpu_reference"}, {}},
      // The fuzz targets link it without the runner.
      {"experiments/study/language", {"core", "gpu/model"}, {"experiments", "fuzz"}},
      // Counts what the executor sees of a kernel.
      {"experiments/explain", {"core", "gpu/model", "gpu/simt", "experiments/study"}, {}},
      {"experiments", {"core", "cpu_reference", "gpu/model", "verify"}, {}},
      {"plugin", {"core", "include"}, {}},
      {"fuzz", {"core", "plugin", "verify", "experiments", "include"}, {}},
      {"include", {}, {}},
      // As a tree of somebody else: it registers what it adds.
      {"examples/tutorial", {"core", "cpu_reference", "verify"}, {}},
      {"examples", {"include"}, {}},
      {"cli", everything, {}},
      {"tests", everything, {}},
  };
  return table;
}

/// Single includes that the table forbids and the design wants.
struct Exception {
  std::string_view file, include;
};
constexpr std::array exceptions{
    // The one place where a kernel's launch becomes CUDA's or the executor's.
    Exception{"gpu/primitives/launch.cuh", "gpu/runtime/launch.hpp"},
    Exception{"gpu/primitives/launch.cuh", "gpu/simt/launch.hpp"},
    Exception{"gpu/primitives/cluster.cuh", "gpu/runtime/cluster_launch.hpp"},
    Exception{"gpu/primitives/cluster.cuh", "gpu/simt/cluster.hpp"},
    Exception{"gpu/primitives/copy_arrival.cuh", "gpu/simt/copy_arrival.hpp"},
    Exception{"gpu/primitives/rank_devices.cuh", "gpu/runtime/process_devices.hpp"},
    Exception{"gpu/primitives/rank_devices.cuh", "gpu/runtime/rank_devices.hpp"},
    Exception{"gpu/primitives/rank_devices.cuh", "gpu/runtime/rank_launch.hpp"},
    Exception{"gpu/primitives/rank_devices.cuh", "gpu/simt/rank_devices.hpp"},
    // Maps of the copy engine: a call to the driver.
    Exception{"gpu/primitives/tensor_map.cuh", "gpu/runtime/tensor_map.hpp"},
    Exception{"gpu/primitives/tensor_map.cuh", "gpu/simt/tensor_map.hpp"},
    Exception{"gpu/kernels/fa3_wgmma/fa3_wgmma.cu", "gpu/runtime/cuda_error.hpp"},
    Exception{"gpu/kernels/fp8_wgmma/fp8_wgmma.cu", "gpu/runtime/cuda_error.hpp"},
    // For files that read and write JSON; no other header includes it in core.
    Exception{"core/base/json.hpp", "nlohmann/json.hpp"},
    // Written by cmake/provenance.cmake into the build folder.
    Exception{"core/records/provenance.cpp", "build_info.inc"},
    // Written by verify/CMakeLists.txt: the corpus of past counterexamples.
    Exception{"verify/campaign/regressions.cpp", "regressions.inc"},
    // Written by experiments/study/CMakeLists.txt: the studies that are shipped.
    Exception{"experiments/study/shipped_studies.cpp", "studies.inc"},
};

bool is_below(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

bool is_any_of(std::string_view word, const std::vector<std::string_view>& parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return word.starts_with(part); });
}

bool has_extension(std::string_view path, const std::vector<std::string_view>& extensions) {
  return std::ranges::any_of(extensions, [&](std::string_view e) { return path.ends_with(e); });
}

bool is_test(std::string_view file) {
  const std::string_view stem = file.substr(0, file.rfind('.'));
  return stem.ends_with("_test") || stem.ends_with("_benchmark");
}

/// A rule that `file` breaks by including `include`, or an empty string.
std::string broken_rule(std::string_view file, std::string_view include, bool is_quoted) {
  const bool is_exception = std::ranges::any_of(
      exceptions, [&](const Exception& e) { return e.file == file && e.include == include; });
  if (is_exception) return "";

  const bool is_core = is_below(file, "core");
  if (is_core && is_any_of(include, {"cuda", "cooperative_groups", "mma.h", "device_launch"}))
    return "core is host C++: it knows no CUDA";
  if (is_core && is_any_of(include, {"yaml-cpp/"})) return "core knows no YAML";
  if (is_core && is_any_of(include, {"rapidcheck"}) && !is_test(file))
    return "RapidCheck is for tests and verify";
  if (is_core && is_any_of(include, {"nlohmann/"}) && has_extension(file, {".hpp"}))
    return "no header of core shows which JSON library is used";
  if (has_extension(include, {".cuh", ".cu"}) && has_extension(file, {".hpp", ".cpp"}))
    return "device code (.cuh) does not leak into .hpp and .cpp";
  if (!is_quoted) return "";

  const auto& table = layers();
  const auto layer = std::ranges::find_if(
      table, [&](const Layer& candidate) { return is_below(file, candidate.folder); });
  if (layer == table.end())
    return "this folder is in no row of the dependency table (tests/layering.cpp, DESIGN.md)";
  const auto may = [&](const std::vector<std::string_view>& folders) {
    return std::ranges::any_of(folders, [&](std::string_view f) { return is_below(include, f); });
  };
  if (is_below(include, layer->folder) || may(layer->may_include)) return "";
  if (is_test(file) && may(layer->tests_may_include)) return "";
  const bool is_ours = std::ranges::any_of(
      table, [&](const Layer& other) { return is_below(include, other.folder); });
  if (!is_ours)
    return "our own headers are named by their path from the repository root, others in <>";
  if (layer->may_include.empty()) return fmt::format("{} includes only itself", layer->folder);
  return fmt::format("{} may include only {}", layer->folder, fmt::join(layer->may_include, ", "));
}

/// Text between the delimiters of an #include line; empty when the line is none.
std::string_view included(std::string_view line, bool& is_quoted) {
  const auto skip_spaces = [&] {
    const std::size_t next = line.find_first_not_of(" \t");
    line.remove_prefix(next == std::string_view::npos ? line.size() : next);
  };
  skip_spaces();
  if (!line.starts_with('#')) return {};
  line.remove_prefix(1);
  skip_spaces();
  if (!line.starts_with("include")) return {};
  line.remove_prefix(std::string_view("include").size());
  skip_spaces();
  if (!line.starts_with('"') && !line.starts_with('<')) return {};
  is_quoted = line.front() == '"';
  line.remove_prefix(1);
  return line.substr(0, line.find(is_quoted ? '"' : '>'));
}

}  // namespace

std::string to_string(const LayeringViolation& v) {
  if (v.line == 0) return fmt::format("{}: {}", v.file, v.rule);
  return fmt::format("{}:{}: includes {}: {}", v.file, v.line, v.include, v.rule);
}

std::vector<LayeringViolation> check_includes(std::string_view file, std::string_view text) {
  std::vector<LayeringViolation> violations;
  for (int line_number = 1; !text.empty(); ++line_number) {
    const std::size_t end = text.find('\n');
    bool is_quoted = false;
    const std::string_view include = included(text.substr(0, end), is_quoted);
    if (!include.empty()) {
      std::string rule = broken_rule(file, include, is_quoted);
      if (!rule.empty())
        violations.push_back(
            {std::string(file), line_number, std::string(include), std::move(rule)});
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return violations;
}

std::vector<std::string> source_files(const fs::path& root) {
  static const std::set<std::string> outputs{"build", "out", "counterexamples", "__pycache__"};
  std::vector<std::string> files;
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::end(entry); ++entry) {
    const std::string name = entry->path().filename().string();
    if (entry->is_directory()) {
      if (name.starts_with('.') || outputs.contains(name)) entry.disable_recursion_pending();
    } else if (has_extension(name, {".hpp", ".cpp", ".cuh", ".cu", ".h", ".py"})) {
      files.push_back(fs::relative(entry->path(), root).generic_string());
    }
  }
  std::ranges::sort(files);
  return files;
}

std::vector<LayeringViolation> check_tree(const fs::path& root) {
  std::vector<LayeringViolation> violations;
  std::set<std::string> folders;
  for (const std::string& file : source_files(root)) {
    folders.insert(fs::path(file).parent_path().generic_string());
    if (file.ends_with(".py")) continue;
    std::ifstream stream(root / file);
    if (!stream) throw MachineError(fmt::format("{}: cannot be read", (root / file).string()));
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    for (LayeringViolation& violation : check_includes(file, text))
      violations.push_back(std::move(violation));
  }
  for (const std::string& folder : folders)
    if (!fs::exists(root / folder / "README.md"))
      violations.push_back(
          {folder.empty() ? "." : folder, 0, "", "a folder with sources has a README.md"});
  return violations;
}

}  // namespace attest
