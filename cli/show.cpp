#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "core/attention/problem.hpp"
#include "core/base/text_file.hpp"
#include "experiments/explain/mask_picture.hpp"

namespace attest {
namespace {

// A terminal's width, and as many rows as fill a screen.
constexpr std::int64_t most_columns = 96, most_rows = 48;
// Of a file, which can be looked at in any size.
constexpr std::int64_t most_cells = 512;
// Every pair is asked.
constexpr std::int64_t most_pairs = std::int64_t{1} << 32;

struct ShowOptions {
  std::string problem;
  std::int64_t entry = 0;
  std::string svg;
};

ExitCode show(const ShowOptions& options) {
  const Problem problem = problem_from_string(options.problem);
  validate(problem);
  if (options.entry < 0 || options.entry >= problem.batch) {
    throw InvalidInput(fmt::format("--entry is {}; allowed: 0 to {}, the batch of '{}'",
                                   options.entry, problem.batch - 1, to_string(problem)));
  }
  const std::int64_t queries = problem.query_len_of(options.entry);
  const std::int64_t keys = problem.key_len_of(options.entry);
  if (keys > 0 && queries > most_pairs / keys) {
    throw InvalidInput(fmt::format("--problem has {} queries and {} keys; allowed: {} pairs",
                                   queries, keys, most_pairs));
  }
  const std::string title = problem.batch == 1
                                ? to_string(problem)
                                : fmt::format("entry {} of {}", options.entry, to_string(problem));
  const MaskPicture picture = mask_picture(problem, options.entry, most_rows, most_columns);
  fmt::print("{}\n{}{}\n", title, mask_text(picture), mask_counts(picture));
  if (options.svg.empty()) return ExitCode::passed;
  write_whole_file(options.svg,
                   mask_svg(mask_picture(problem, options.entry, most_cells, most_cells), title));
  fmt::print("drawn in {}\n", options.svg);
  return ExitCode::passed;
}

}  // namespace

void add_show_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("show", "Draw which queries of a problem see which of its keys");
  const auto options = std::make_shared<ShowOptions>();
  command
      ->add_option("--problem", options->problem,
                   "as reports print it: 'b2 h1 n24 d64 window_bottom_right left3 right0'")
      ->required();
  command
      ->add_option("--entry", options->entry,
                   "of the batch: entries differ in lengths, padding, prefixes and documents")
      ->capture_default_str();
  command->add_option("--svg", options->svg, "draw it into this file as well");
  command->footer(
      "Keys from left to right, queries from top to bottom: # all pairs of a cell see each other, "
      "+ some, . none.\n"
      "Examples:\n"
      "  attest show --problem 'q6 k10 d64 causal_bottom_right'\n"
      "  attest show --problem 'b3 n40 d64 window_top_left left7 right2 lengths7' --entry 2 "
      "--svg mask.svg");
  command->callback([options, &action] { action = [options] { return show(*options); }; });
}

}  // namespace attest
