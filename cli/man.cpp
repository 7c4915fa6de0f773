#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>

#include "cli/commands.hpp"
#include "cli/option_tree.hpp"
#include "core/base/text.hpp"
#include "core/records/provenance.hpp"

namespace attest {
namespace {

/// Text as roff takes it: no line begins a request, and a hyphen can be typed again.
std::string roff(std::string_view text) {
  std::string out;
  bool begins_line = true;
  for (const char c : text) {
    if (begins_line && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    begins_line = c == '\n';
  }
  return out;
}

void append_option(std::string& to, const OptionText& option) {
  append(to, ".TP\n\\fB{}\\fR", roff(fmt::format("{}", fmt::join(option.names, ", "))));
  if (!option.value.empty()) append(to, " \\fI{}\\fR", roff(option.value));
  append(to, "\n{}", roff(option.description));
  if (!option.value_without.empty()) append(to, " [default: {}]", roff(option.value_without));
  append(to, "\n");
}

void append_command(std::string& to, const CommandText& command) {
  append(to, ".SS {}\n{}\n", roff(command.name), roff(command.description));
  for (const OptionText& option : command.options) append_option(to, option);
  if (!command.footer.empty()) append(to, ".PP\n.nf\n{}\n.fi\n", roff(command.footer));
}

std::string man_page(const CommandText& tree) {
  std::string to = fmt::format(
      ".TH ATTEST 1 \"\" \"commit {}\" \"User Commands\"\n.SH NAME\nattest \\- {}\n.SH SYNOPSIS\n"
      ".B attest\n.I SUBCOMMAND\n[options]\n.SH SUBCOMMANDS\n",
      current_provenance("").commit, roff(tree.description));
  for (const CommandText& each : tree.subcommands) {
    append(to, ".TP\n\\fB{}\\fR\n{}\n", roff(each.name), roff(each.description));
  }
  append(to, ".SH OPTIONS\n");
  for (const CommandText* command : all_commands(tree)) append_command(to, *command);
  return to;
}

}  // namespace

void add_man_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("man", "Prints the manual page, of every option");
  command->footer("Example: attest man >~/.local/share/man/man1/attest.1");
  command->callback([&app, &action] {
    action = [&app] {
      fmt::print("{}", man_page(option_tree(app)));
      return ExitCode::passed;
    };
  });
}

}  // namespace attest
