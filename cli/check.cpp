#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "core/base/counted.hpp"
#include "core/base/json.hpp"
#include "core/inputs/safetensors.hpp"
#include "verify/judge/given_outputs.hpp"

namespace attest {
namespace {

struct CheckOptions {
  std::string file;
  std::vector<std::string> question;
  std::string bounds;
  std::int64_t rows = 0;
  std::uint64_t seed = 0;
  bool rounds_before_epilogue = false;
  bool json = false;
};

std::string_view verdict_of(const GivenOutputs& given) {
  if (!given.are_within()) return "failed";
  return given.are_decided() ? "passed" : "vacuous";
}

Json to_json(const GivenOutputs& given) {
  Json outputs = Json::array();
  for (const GivenOutput& output : given.outputs) {
    const TensorSpec& spec = (*given.problem.operation)[output.index];
    const Comparison& all = output.comparison;
    outputs.push_back({{"name", std::string(spec.name)},
                       {"label", std::string(spec.label)},
                       {"elements", all.elements},
                       {"outside", all.outside},
                       {"vacuous", all.vacuous},
                       {"index", all.worst.index},
                       {"got", number_json(all.worst.got)},
                       {"want", number_json(all.worst.want)},
                       {"bound", number_json(all.worst.bound)},
                       {"error_over_bound", number_json(all.worst.ratio)}});
  }
  return {{"problem", to_string(given.problem)},
          {"verdict", std::string(verdict_of(given))},
          {"outputs", outputs},
          {"rows", given.rows},
          {"of_rows", given.problem.rows()}};
}

std::string line_of(const GivenOutputs& given, const GivenOutput& output) {
  const Comparison& all = output.comparison;
  std::string text = fmt::format("{:<4} {}", (*given.problem.operation)[output.index].label,
                                 counted(all.elements, "element"));
  if (all.vacuous > 0) text += fmt::format(", {} without a finite bound", all.vacuous);
  if (all.vacuous == all.elements) return text;
  if (all.outside > 0) text += fmt::format(", {} outside the error bound", all.outside);
  return text +
         fmt::format("; worst {}: got {:.9g}, want {:.9g}, bound {:.2g}, error / bound {:.3g}",
                     to_string(all.worst.index), all.worst.got, all.worst.want, all.worst.bound,
                     all.worst.ratio);
}

void write_bounds(const GivenOutputs& given, const std::filesystem::path& path) {
  std::vector<NamedTensor> tensors;
  for (std::size_t i = 0; i < given.answer.size(); ++i) {
    const OutputIndex index{i};
    const std::string name((*given.problem.operation)[index].name);
    tensors.push_back({name, &given.answer[index].value});
    tensors.push_back({name + "_bound", &given.answer[index].bound});
  }
  write_safetensors(path, tensors);
}

ExitCode check(const CheckOptions& options) {
  JsonOutput json(options.json);
  const std::int64_t rows = options.bounds.empty() ? options.rows : 0;
  const GivenOutputs given = judge_given_outputs(
      Safetensors::from_file(options.file), fmt::format("{}", fmt::join(options.question, " ")),
      rows, options.seed, options.rounds_before_epilogue);
  if (given.outputs.empty() && options.bounds.empty()) {
    throw InvalidInput(fmt::format(
        "'{}': no output; allowed: o and lse, or with do any of dq, dk and dv", options.file));
  }
  if (!options.bounds.empty()) write_bounds(given, options.bounds);
  json.print(to_json(given).dump());
  const std::string_view verdict = verdict_of(given);
  if (!options.json) {
    fmt::print("{}, {} of {}\n", to_string(given.problem), given.rows,
               counted(given.problem.rows(), "row"));
    for (const GivenOutput& output : given.outputs) fmt::print("{}\n", line_of(given, output));
    if (verdict == "passed") fmt::print("{}\n", as_good("PASSED"));
    if (verdict == "failed") fmt::print("{}\n", as_bad("FAILED"));
    if (verdict == "vacuous") {
      fmt::print("{}: an output has no element with a finite bound\n", as_open("INCONCLUSIVE"));
    }
  }
  if (verdict == "failed") return ExitCode::verdict_failed;
  return verdict == "passed" ? ExitCode::passed : ExitCode::inconclusive;
}

}  // namespace

void add_check_command(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand(
      "check", "judge outputs that any program computed, against the exact answer of its inputs");
  const auto options = std::make_shared<CheckOptions>();
  command
      .add_option(
          "file", options->file,
          "safetensors file: q, k, v [batch, heads, tokens, head_dim] and o, lse; or with do "
          "any of dq, dk, dv, where o and lse are what the backward pass was given; sinks and "
          "slopes [heads] and bias [batch or 1, heads or 1, queries, keys] where either pass has "
          "them, and with do dsinks and dbias; gate and residual, shaped as o is, of a forward "
          "pass")
      ->required();
  command.add_option(
      "--problem", options->question,
      "what sizes do not say, as reports print it: 'causal_bottom_right scale0.125', "
      "left100, softcap30; by default no mask and the scale 1 / sqrt(head_dim)");
  command.add_option("--bounds", options->bounds,
                     "safetensors file for the exact outputs and their bounds, in double");
  command
      .add_option("--rows", options->rows,
                  "so many drawn rows of O and LSE instead of all; with --bounds all")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40))
      ->capture_default_str();
  add_seed_option(command, options->seed, "seed of the rows");
  command.add_flag("--rounds-before-epilogue", options->rounds_before_epilogue,
                   "O was stored before its gate and its residual were applied, and after each of "
                   "them: the bound has room for these roundings");
  command.add_flag("--json", options->json, "print one JSON object instead of the text");
  command.footer(
      "The bound is that of a fused kernel of which no more is known: fp32 sums on tensor cores, P "
      "in the inputs' format. attest verify asks far more, of inputs that it draws.\n"
      "Examples:\n"
      "  attest check outputs.safetensors --problem causal_bottom_right");
  command.callback([options, &action] { action = [options] { return check(*options); }; });
}

}  // namespace attest
