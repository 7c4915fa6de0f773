#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "cli/commands.hpp"
#include "cli/help_topics.hpp"
#include "core/base/text.hpp"

namespace attest {
namespace {

/// The first line of a document, without the mark of a heading.
std::string_view title_of(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  return text.starts_with("# ") ? text.substr(2) : text;
}

ExitCode print_topics() {
  for (const HelpTopic& topic : help_topics()) {
    fmt::print("{:<12}  {}\n", topic.name, title_of(topic.text));
  }
  return ExitCode::passed;
}

ExitCode print_topic(std::string_view asked) {
  const std::span<const HelpTopic> topics = help_topics();
  const auto found = std::ranges::find(topics, asked, &HelpTopic::name);
  if (found == topics.end()) {
    std::string allowed;
    for (const HelpTopic& topic : topics) {
      append(allowed, "{}{}", allowed.empty() ? "" : ", ", topic.name);
    }
    throw InvalidInput(
        fmt::format("help: '{}' is no topic; allowed: {}", printable(asked), allowed));
  }
  fmt::print("{}", found->text);
  return ExitCode::passed;
}

}  // namespace

void add_help_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "help", "Prints what the documents say of a topic; without one, all topics");
  const auto asked = std::make_shared<std::string>();
  command->add_option("TOPIC", *asked, "what `attest help` lists");
  command->footer("Examples:\n  attest help\n  attest help laws");
  command->callback([asked, &action] {
    action = [asked] { return asked->empty() ? print_topics() : print_topic(*asked); };
  });
}

}  // namespace attest
