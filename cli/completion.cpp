#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.hpp"
#include "cli/option_tree.hpp"
#include "core/base/text.hpp"

namespace attest {
namespace {

/// Text in single quotes; all three shells take this.
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c == '\n' ? ' ' : c;
    }
  }
  return out + "'";
}

/// Subcommands and options that may follow a command.
std::vector<std::string> words_after(const CommandText& command) {
  std::vector<std::string> words;
  for (const CommandText& each : command.subcommands) {
    words.push_back(each.name.substr(command.name.size() + 1));
  }
  for (const OptionText& option : command.options) {
    if (!option.is_positional) words.insert(words.end(), option.names.begin(), option.names.end());
  }
  return words;
}

/// `[attest study]='check run ...'` for every command, as bash and zsh read it alike.
std::string table_of(const CommandText& tree) {
  std::string to;
  for (const CommandText* command : all_commands(tree)) {
    append(to, "    {} {}\n", in_quotes(command->name),
           in_quotes(fmt::format("{}", fmt::join(words_after(*command), " "))));
  }
  return to;
}

std::string for_bash(const CommandText& tree) {
  std::string to = "_attest() {\n  local word at=attest i rows=(\n" + table_of(tree) + "  )\n";
  return to +
         R"(  local -A after
  for ((i = 0; i < ${#rows[@]}; i += 2)); do after[${rows[i]}]=${rows[i + 1]}; done
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ -n $word && -n ${after[$at $word]:-} ]]; then at+=" $word"; fi
  done
  mapfile -t COMPREPLY < <(compgen -W "${after[$at]}" -- "${COMP_WORDS[COMP_CWORD]}")
}
complete -o default -F _attest attest
)";
}

std::string for_zsh(const CommandText& tree) {
  std::string to = "#compdef attest\n_attest() {\n  local word at=attest\n  local -A after=(\n" +
                   table_of(tree) + "  )\n";
  return to +
         R"(  for word in ${words[2,CURRENT-1]}; do
    if (( ${+after[$at $word]} )); then at+=" $word"; fi
  done
  compadd -- ${(s: :)after[$at]}
  _files
}
compdef _attest attest
)";
}

std::string for_fish(const CommandText& tree) {
  std::string to;
  for (const CommandText* command : all_commands(tree)) {
    // The command line so far has these words, and those of no command below.
    std::vector<std::string> conditions;
    for (std::size_t at = command->name.find(' '); at != command->name.npos;) {
      const std::size_t end = command->name.find(' ', at + 1);
      conditions.push_back("__fish_seen_subcommand_from " +
                           command->name.substr(at + 1, end - at - 1));
      at = end;
    }
    std::string below = "not __fish_seen_subcommand_from";
    for (const CommandText& each : command->subcommands) {
      below += each.name.substr(command->name.size());
    }
    if (!command->subcommands.empty()) conditions.push_back(below);
    const std::string where = in_quotes(fmt::format("{}", fmt::join(conditions, "; and ")));
    for (const CommandText& each : command->subcommands) {
      append(to, "complete -c attest -n {} -a {} -d {}\n", where,
             each.name.substr(command->name.size() + 1), in_quotes(each.description));
    }
    for (const OptionText& option : command->options) {
      if (option.is_positional) continue;
      append(to, "complete -c attest -n {}", where);
      for (const std::string& name : option.names) {
        append(to, " {} {}", name.starts_with("--") ? "-l" : "-s",
               name.substr(name.find_first_not_of('-')));
      }
      append(to, "{} -d {}\n", option.value.empty() ? "" : " -r", in_quotes(option.description));
    }
  }
  return to;
}

struct Shell {
  const char* name;
  std::string (*script)(const CommandText&);
};
constexpr Shell shells[]{{"bash", for_bash}, {"zsh", for_zsh}, {"fish", for_fish}};

ExitCode print_completion(const CLI::App& app, const std::string& asked) {
  for (const Shell& shell : shells) {
    if (asked != shell.name) continue;
    fmt::print("{}", shell.script(option_tree(app)));
    return ExitCode::passed;
  }
  throw InvalidInput(
      fmt::format("completion: '{}' is no shell; allowed: bash, zsh, fish", printable(asked)));
}

}  // namespace

void add_completion_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "completion", "Prints what a shell needs to complete subcommands and options");
  const auto asked = std::make_shared<std::string>();
  command->add_option("SHELL", *asked, "bash, zsh or fish")->required();
  command->footer(
      "Examples:\n"
      "  source <(attest completion bash)     in ~/.bashrc\n"
      "  source <(attest completion zsh)      in ~/.zshrc, after compinit\n"
      "  attest completion fish | source      in ~/.config/fish/config.fish");
  command->callback(
      [&app, asked, &action] { action = [&app, asked] { return print_completion(app, *asked); }; });
}

}  // namespace attest
