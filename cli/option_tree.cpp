#include "cli/option_tree.hpp"

namespace attest {
namespace {

OptionText text_of(const CLI::Option& option) {
  OptionText text{.is_positional = option.get_positional(),
                  .description = option.get_description(),
                  .value_without = option.get_default_str()};
  if (text.is_positional) {
    text.names.push_back(option.get_name(true));
    return text;
  }
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  if (option.get_type_size_max() > 0) text.value = option.get_type_name();
  return text;
}

}  // namespace

CommandText option_tree(const CLI::App& app, const std::string& above) {
  CommandText command{.name = above + app.get_name(),
                      .description = app.get_description(),
                      .footer = app.get_footer()};
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) command.options.push_back(text_of(*option));
  }
  for (const CLI::App* each : app.get_subcommands(nullptr)) {
    if (!each->get_group().empty()) {
      command.subcommands.push_back(option_tree(*each, command.name + " "));
    }
  }
  return command;
}

std::vector<const CommandText*> all_commands(const CommandText& tree) {
  std::vector<const CommandText*> all{&tree};
  for (const CommandText& each : tree.subcommands) {
    const std::vector<const CommandText*> below = all_commands(each);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

}  // namespace attest
