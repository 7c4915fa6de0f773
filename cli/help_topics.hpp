#pragma once

#include <span>
#include <string_view>

namespace attest {

/// A topic of `attest help`.
struct HelpTopic {
  std::string_view name;
  std::string_view text;  ///< a document of the tree, or a paragraph of one
};

/// All topics, in the order of cli/help_topics.txt. The build writes the source of this function
/// from the documents (cmake/write_help_topics.cmake).
[[nodiscard]] std::span<const HelpTopic> help_topics();

}  // namespace attest
