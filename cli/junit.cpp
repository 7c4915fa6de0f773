#include "cli/junit.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/base/text_file.hpp"

namespace attest {
namespace {

/// Text as XML 1.0 has it, which cannot say control bytes.
std::string xml(std::string_view text) {
  const bool is_text = is_utf8(text);
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += (byte < 0x20 && c != '\n') || (byte > 0x7e && !is_text) ? '?' : c;
    }
  }
  return out;
}

std::string text_of(const JunitSuite& suite) {
  const auto count = [&](std::string_view tag) {
    return std::ranges::count(suite.cases, tag,
                              [](const JunitCase& one) { return one.ending.tag; });
  };
  const std::string name = xml(suite.name);
  std::string text = fmt::format(
      "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" "
      "time=\"{:.3f}\">\n    <properties>\n",
      name, suite.cases.size(), count("failure"), count("error"), count("skipped"), suite.seconds);
  for (const auto& [property, value] : suite.properties) {
    append(text, "      <property name=\"{}\" value=\"{}\"/>\n", property, xml(value));
  }
  append(text, "    </properties>\n");
  for (const auto& [of_case, ending] : suite.cases) {
    append(text, "    <testcase classname=\"{}\" name=\"{}\"", name, xml(of_case));
    if (ending.tag.empty()) {
      append(text, "/>\n");
      continue;
    }
    append(text, "><{}{} message=\"{}\">{}</{}></testcase>\n", ending.tag,
           ending.type.empty() ? "" : fmt::format(" type=\"{}\"", xml(ending.type)),
           xml(ending.message), xml(ending.text), ending.tag);
  }
  return text + "  </testsuite>\n";
}

}  // namespace

void write_junit_file(const std::string& path, std::string_view name,
                      const std::vector<JunitSuite>& suites) {
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\">\n", xml(name));
  for (const JunitSuite& suite : suites) text += text_of(suite);
  write_whole_file(path, text + "</testsuites>\n");
}

}  // namespace attest
