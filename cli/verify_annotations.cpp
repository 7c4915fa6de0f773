#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "cli/failure_report.hpp"

namespace attest {
namespace {

/// Text as commands of a workflow's output take it; a property ends at a colon or a comma besides.
std::string escaped(std::string_view text, bool is_property) {
  constexpr std::string_view always = "%\r\n", in_properties = ":,";
  std::string out;
  for (const char c : text) {
    const bool is_special = always.find(c) != always.npos ||
                            (is_property && in_properties.find(c) != in_properties.npos);
    out += is_special ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return out;
}

}  // namespace

bool is_in_github_actions() {
  const char* const value = std::getenv("GITHUB_ACTIONS");
  return value != nullptr && std::string_view(value) == "true";
}

void print_annotations(const std::vector<FailureReport>& reports) {
  constexpr bool is_property = true;
  for (const FailureReport& report : reports) {
    fmt::print("::error file={},line={},title={}::{}\n", escaped(report.place.file, is_property),
               report.place.line,
               escaped(fmt::format("{}: {}", report.kernel, report.rule), is_property),
               escaped(report.sentence + "\n" + report.text, !is_property));
  }
}

}  // namespace attest
