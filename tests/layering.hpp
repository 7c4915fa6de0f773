#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// An #include that the dependency table of DESIGN.md forbids, or a folder that misses its README.
struct LayeringViolation {
  std::string file;     ///< path from the repository root
  int line = 0;         ///< 0: concerns the whole folder
  std::string include;  ///< as written, without quotes; empty when line is 0
  std::string rule;     ///< which rule, as a sentence
};
/// `file:line: "include": rule`
[[nodiscard]] std::string to_string(const LayeringViolation& violation);

/// Checks the includes of one source text as if it lay at `file` (a path from the repository root).
[[nodiscard]] std::vector<LayeringViolation> check_includes(std::string_view file,
                                                            std::string_view text);

/// Source files of the tree below `root`, as sorted paths from it. Build outputs and hidden folders
/// are skipped.
[[nodiscard]] std::vector<std::string> source_files(const std::filesystem::path& root);

/// Checks every source file below `root`, and that each folder with sources has a README.md.
[[nodiscard]] std::vector<LayeringViolation> check_tree(const std::filesystem::path& root);

}  // namespace attest
