#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <ranges>

#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/quantised.hpp"
#include "core/records/case_json.hpp"
#include "verify/campaign/kill_matrix.hpp"
#include "verify/judge/peer_rules.hpp"

namespace attest {
namespace {

std::string short_name(const KernelInfo& mutant) {
  return mutant.name.substr(mutant.name.find('/') + 1);
}

/// Text as a cell of a Markdown table.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '|' ? std::string("\\|") : std::string(1, c);
  return result;
}

std::int64_t tiles(std::int64_t length, std::int64_t tile) {
  return tile == 0 ? 1 : (length + tile - 1) / tile;
}

/// Families that killed it in a layer of ours, the deadliest first.
std::string families_of(const MatrixRow& row) {
  std::map<std::string, std::int64_t> kills;
  for (const Tally& tally : row.columns | std::views::drop(row.on_normal.size())) {
    for (const auto& [family, count] : tally.families) {
      kills[family] = std::max(kills[family], count);
    }
  }
  std::vector<std::pair<std::string, std::int64_t>> sorted(kills.begin(), kills.end());
  std::ranges::stable_sort(sorted, std::greater{}, [](const auto& item) { return item.second; });
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(sorted.size(), 3); ++i) {
    text += (i == 0 ? "" : ", ") + sorted[i].first;
  }
  if (sorted.size() > 3) text += fmt::format(" and {} more", sorted.size() - 3);
  return text;
}

/// Feature that tells the cases that kill a mutant from the others.
std::string feature_of(const MatrixRow& row) {
  if (!row.killing_feature) return row.features.all.kills > 0 ? "any" : "";
  const auto& [name, tally] = *row.killing_feature;
  return fmt::format("{} ({} of {} cases)", name, tally.kills, tally.cases);
}

std::string header(const KillMatrix& matrix, std::string_view first,
                   std::initializer_list<std::string_view> last) {
  std::string names = fmt::format("| {} |", first);
  std::string rule = "| --- |";
  for (std::size_t column = 0; column < matrix.columns(); ++column) {
    names += fmt::format(" {} |", matrix.column_name(column));
    rule += " --- |";
  }
  for (const std::string_view name : last) {
    names += fmt::format(" {} |", name);
    rule += " --- |";
  }
  return names + "\n" + rule + "\n";
}

std::string summary(const KillMatrix& matrix) {
  std::string text = header(matrix, "", {});
  const auto row = [&](std::string_view name, const auto& cell) {
    text += fmt::format("| {} |", name);
    for (std::size_t column = 0; column < matrix.columns(); ++column) {
      text += fmt::format(" {} |", cell(column));
    }
    text += "\n";
  };
  const auto killed = [&](const auto& is_killed) {
    return fmt::format("{}", std::ranges::count_if(matrix.mutants, is_killed));
  };
  row(fmt::format("mutants killed, of {}", matrix.mutants.size()), [&](std::size_t column) {
    return killed([&](const MatrixRow& mutant) { return mutant.is_killed_by(column); });
  });
  row("on N(0, 1) only", [&](std::size_t column) {
    if (column >= matrix.peers()) return std::string();
    return killed([&](const MatrixRow& mutant) { return mutant.on_normal[column].kills > 0; });
  });
  std::int64_t cases = 0;
  std::int64_t normal_cases = 0;
  for (const MatrixRow& kernel : matrix.correct) {
    cases += kernel.cases;
    normal_cases += kernel.normal_cases;
  }
  row(fmt::format("correct kernels rejected, of {} cases", cases), [&](std::size_t column) {
    std::int64_t alarms = 0;
    for (const MatrixRow& kernel : matrix.correct) alarms += kernel.columns[column].rejected;
    return fmt::format("{}", alarms);
  });
  row(fmt::format("the same on N(0, 1), of {} cases", normal_cases), [&](std::size_t column) {
    if (column >= matrix.peers()) return std::string();
    std::int64_t alarms = 0;
    for (const MatrixRow& kernel : matrix.correct) alarms += kernel.on_normal[column].rejected;
    return fmt::format("{}", alarms);
  });
  return text;
}

std::string mutant_table(const KillMatrix& matrix) {
  std::string text =
      header(matrix, "mutant", {"families that let us kill it", "feature of the cases that do"});
  for (const MatrixRow& row : matrix.mutants) {
    text += fmt::format("| {} |", short_name(*row.kernel));
    for (std::size_t column = 0; column < matrix.columns(); ++column) {
      text += fmt::format(" {}", row.columns[column].kills);
      if (column < matrix.peers()) text += fmt::format(" ({})", row.on_normal[column].kills);
      text += " |";
    }
    text += fmt::format(" {} | {} |\n", families_of(row), escaped(feature_of(row)));
  }
  return text;
}

std::string legend(const KillMatrix& matrix) {
  std::string text = "| mutant | ids | planted in | the bug | law that must kill it |\n";
  text += "| --- | --- | --- | --- | --- |\n";
  for (const MatrixRow& row : matrix.mutants) {
    text += fmt::format("| {} | {} | {} | {} | {} |\n", short_name(*row.kernel), row.kernel->source,
                        row.kernel->planted_in, row.kernel->summary, row.kernel->killed_by);
  }
  return text;
}

std::string shrink_table(const KillMatrix& matrix) {
  std::string text =
      "| mutant | law | batch | heads | query tiles | key tiles | whole numbers | case |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const KernelResult& result : matrix.campaign) {
    if (!result.failure) {
      text += fmt::format("| {} | NOT KILLED | | | | | | |\n", short_name(*result.kernel));
      continue;
    }
    const Case& c = result.failure->the_case;
    const Problem& p = c.problem;
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {}, {} x{} |\n",
                        short_name(*result.kernel), result.failure->law, p.batch, p.query_heads,
                        tiles(p.query_len, c.plan.query_tile), tiles(p.key_len, c.plan.key_tile),
                        c.inputs.round_to_integers ? "yes" : "no", to_string(p), c.inputs.family,
                        c.inputs.magnitude);
  }
  return text;
}

Json tally_json(const Tally& tally) {
  return {{"rejected", tally.rejected}, {"kills", tally.kills}, {"families", tally.families}};
}

Json row_json(const KillMatrix& matrix, const MatrixRow& row) {
  Json json = {{"kernel", row.kernel->name},         {"executor", name_of(row.kernel->executor)},
               {"ids", row.kernel->source},          {"planted_in", row.kernel->planted_in},
               {"named_law", row.kernel->killed_by}, {"cases", row.cases},
               {"normal_cases", row.normal_cases},   {"laws", row.laws}};
  for (std::size_t column = 0; column < matrix.columns(); ++column) {
    json["rules"][matrix.column_name(column)] = tally_json(row.columns[column]);
    if (column >= matrix.peers()) continue;
    json["rules_on_normal"][matrix.column_name(column)] = tally_json(row.on_normal[column]);
  }
  json["killing_cases"] = row.features.all.kills;
  if (row.killing_feature) {
    const auto& [name, tally] = *row.killing_feature;
    json["feature"] = {{"name", name}, {"cases", tally.cases}, {"kills", tally.kills}};
  }
  return json;
}

/// References of the rules of other projects.
std::string_view references_of(const Operation& operation) {
  if (&operation == &forward_operation) {
    return "`ref` is attention in fp32, cast to the element type; `pt` is attention in the element "
           "type with the scale folded into K; `wide` is `ref` before it is cast. No project has a "
           "rule of this kind for fp32: there `ref` is computed in double and `pt` in fp32. NaN is "
           "rejected by all rules; torchtitan's lets it pass where `wide` is NaN. ";
  }
  if (&operation == &backward_operation) {
    return "g is dQ, dK or dV. `wide` is what automatic differentiation makes of attention in fp32 "
           "(of fp32 in double), `ref` the same cast to the element type; `pt` is differentiated "
           "in "
           "the element type with the scale folded into K: scores, weights, dP and dS are rounded. "
           "All of them come from Q, K, V and dO alone, as in the projects' tests. O and LSE, "
           "which "
           "a kernel is given, are those of an exact forward pass rounded once, which such a test "
           "would hand over too; except in the family `gradient_inexact_saved`, where both are off "
           "by some roundings: our laws judge what the kernel makes of what it is given, the other "
           "projects' rules count such an error as the kernel's. NaN is rejected by all rules but "
           "PyTorch's and torchtitan's, which let it pass where their golden answers are NaN. ";
  }
  if (&operation == &quantised_operation) {
    return "`ref` is attention in fp32, of fp32 outputs in double, of the numbers that codes and "
           "scales stand for, cast to the element type: closer than what some of the projects "
           "compare with, attention of the values before they were quantised. NaN is rejected by "
           "all rules. ";
  }
  return "";
}

std::string rules_text(const Operation& operation) {
  std::vector<std::string_view> others;
  for (std::size_t i = 1; i < operation.outputs().size(); ++i) {
    if (!is_optional(operation, OutputIndex{i})) others.push_back(operation.outputs()[i].label);
  }
  std::string text = "\n## The rules\n\n";
  if (!peer_rules(operation).empty()) {
    text += fmt::format("| rule | on {} | on {} | source |\n| --- | --- | --- | --- |\n",
                        operation.outputs().front().label, fmt::join(others, " and "));
  }
  for (const PeerRule& rule : peer_rules(operation)) {
    text += fmt::format("| {} | {} | {} | {} |\n", rule.name, escaped(rule.rule),
                        escaped(rule.on_others), rule.source);
  }
  return text + fmt::format(
                    "\n{}Ours: laws without tolerance, the error bound, and the distribution of "
                    "errors (verify/README.md). As in a campaign, all of them that read the one "
                    "launch are asked and one drawn from those that launch again, besides any of "
                    "these that a mutant with the case names.\n",
                    references_of(operation));
}

}  // namespace

std::string to_markdown(const KillMatrix& matrix, const Provenance& provenance) {
  const KillMatrixOptions& options = matrix.options;
  std::string text = fmt::format(
      "# Kill matrix\n\nMade by `attest mutants{} --cases {} --normal-cases {}{} --seed {}` at "
      "commit {}{}, {}, on {}.\n\n",
      options.operation == &forward_operation
          ? std::string()
          : fmt::format(" --operation {}", options.operation->name),
      options.cases, options.normal_cases,
      options.correct_cases == 0 ? std::string()
                                 : fmt::format(" --correct-cases {}", options.correct_cases),
      options.seed, provenance.commit, provenance.dirty ? " with changes" : "", provenance.date,
      provenance.host);
  text += fmt::format(
      "Each mutant is a correct kernel with one planted bug. {} random cases are run with the bug "
      "and without it, the same for all bugs of a kernel (of a variant, where kernels are "
      "families; "
      "the kernel without the bug then takes the nearest Plan that it has), and the one by which "
      "the campaign of its named law killed it if that came later. Every rule judges the same "
      "launches. A kill is a "
      "case in which a rule rejects the mutant and accepts the correct kernel; in parentheses the "
      "kills on {} more cases with N(0, 1) inputs, default scale and contiguous tensors, which is "
      "what the peers' own tests use.{}\n\n",
      options.cases, options.normal_cases,
      options.correct_cases <= options.cases
          ? std::string()
          : fmt::format(" Kernels without a bug are run in {} cases, on the executor in a quarter "
                        "as many; the others of these count for false alarms alone.",
                        options.correct_cases));
  text += summary(matrix) + rules_text(*options.operation);
  text +=
      "\n## Mutants\n\nThe last column names the feature of a case (verify/README.md) that tells "
      "best which cases kill the bug: of those of its shrunk case the one that kills by our layers "
      "correlate with most (phi coefficient), significantly at 0.1 %. `any` says that there is "
      "none.\n\n" +
      mutant_table(matrix);
  text += "\n## What the bugs are\n\n" + legend(matrix);
  text += "\n## Shrunk cases\n\n" + shrink_table(matrix);
  return text;
}

std::string to_json(const KillMatrix& matrix, const Provenance& provenance) {
  Json json = {{"schema", 1},
               {"operation", matrix.options.operation->name},
               {"seed", matrix.options.seed},
               {"cases", matrix.options.cases},
               {"normal_cases", matrix.options.normal_cases},
               {"correct_cases", matrix.options.correct_cases},
               {"as_expected", matrix.is_as_expected()},
               {"provenance",
                {{"commit", provenance.commit},
                 {"dirty", provenance.dirty},
                 {"compiler", provenance.compiler},
                 {"build_type", provenance.build_type},
                 {"sanitizers", provenance.sanitizers},
                 {"host", provenance.host},
                 {"date", provenance.date}}}};
  for (const MatrixRow& row : matrix.mutants) json["mutants"].push_back(row_json(matrix, row));
  for (const MatrixRow& row : matrix.correct) json["correct"].push_back(row_json(matrix, row));
  for (const KernelResult& result : matrix.campaign) {
    Json shrunk = {{"kernel", result.kernel->name}, {"as_expected", result.is_as_expected()}};
    if (result.failure) {
      shrunk["law"] = result.failure->law;
      shrunk["case"] = case_json(result.failure->the_case);
    }
    json["shrunk"].push_back(shrunk);
  }
  return json.dump() + "\n";
}

}  // namespace attest
