#include "experiments/claims/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/json.hpp"
#include "experiments/claims/pointers.hpp"

namespace attest {
namespace {

bool is_claim(const LedgerRow& row) {
  return row.verdict != Standing::has_no_verdict;
}

std::vector<std::string> places_of(const LedgerRow& row) {
  std::vector<std::string> places;
  for (const Pointer& pointer : row.where) places.push_back(to_string(pointer));
  return places;
}

/// Verdict that is found, and where that is not the one written down, both.
std::string verdict_of(const Evaluation& evaluation) {
  if (evaluation.is_regression()) {
    return fmt::format("{}, NOT {}", name_of(*evaluation.found), name_of(evaluation.row->verdict));
  }
  return std::string(name_of(evaluation.row->verdict));
}

std::string ours_of(const Evaluation& evaluation) {
  if (!evaluation.trouble.empty()) return fmt::format("({})", evaluation.trouble);
  return evaluation.ours.empty() ? "-" : evaluation.ours;
}

/// Text that a cell of Markdown can hold.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
    text.insert(at, "\\");
  }
  std::ranges::replace(text, '\n', ' ');
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

std::string wrapped(const std::string& text, std::size_t indent, std::size_t width) {
  std::string result, line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      result += line + "\n" + std::string(indent, ' ');
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return result + line;
}

}  // namespace

std::string text_table(const std::vector<Evaluation>& rows) {
  std::string text;
  const auto paragraph = [&](std::string_view title, const std::string& content) {
    if (!content.empty()) text += fmt::format("  {:<9}{}\n", title, wrapped(content, 11, 100));
  };
  for (const Evaluation& evaluation : rows) {
    const LedgerRow& row = *evaluation.row;
    text += fmt::format("{:<7}{}\n", row.id, wrapped(row.what, 7, 104));
    if (is_claim(row)) {
      paragraph("setting", row.setting);
      if (!evaluation.ours.empty() || !evaluation.trouble.empty()) {
        paragraph("ours", ours_of(evaluation));
      }
      paragraph("verdict", verdict_of(evaluation));
      paragraph("because", evaluation.because);
    }
    paragraph("missing", row.missing);
    paragraph("where", fmt::format("{}", fmt::join(places_of(row), "; ")));
  }
  return text;
}

std::string markdown_table(const Ledger& ledger, const std::vector<Evaluation>& rows) {
  std::string text =
      "# What the founding documents claimed, and what we find\n\n"
      "Made by `attest claims --markdown` from the ledger ([experiments/claims]"
      "(../../claims/README.md)), the models\nof core and the committed records; the test "
      "`Claims.TheCommittedTableIsWhatTheLedgerGives` makes it again. A verdict stands only while "
      "the\nfigures give it. *Not comparable*: the setting is not known, or cannot be had; *open*: "
      "a run or a kernel is missing.\n\n";
  std::map<Standing, int> counts;
  for (const Evaluation& e : rows) counts[e.row->verdict] += static_cast<int>(is_claim(*e.row));
  text += "| verdict | claims |\n| --- | --- |\n";
  for (const Standing standing :
       {Standing::reproduced, Standing::refuted, Standing::not_comparable, Standing::open}) {
    text += fmt::format("| {} | {} |\n", name_of(standing), counts[standing]);
  }
  for (const ClaimSource& source : ledger.sources) {
    const auto of_source = [&](const Evaluation& e) {
      return is_claim(*e.row) && e.row->source == source.id;
    };
    if (std::ranges::none_of(rows, of_source)) continue;
    text += fmt::format("\n## {}: {}\n\nMeasured on: {}.\n\n", source.id, cell(source.title),
                        cell(source.machine));
    text += "| id | claimed | setting | ours | verdict | what it says | where |\n";
    text += "| --- | --- | --- | --- | --- | --- | --- |\n";
    for (const Evaluation& evaluation : rows) {
      if (!of_source(evaluation)) continue;
      const LedgerRow& row = *evaluation.row;
      const std::string says = row.missing.empty() ? evaluation.because
                               : evaluation.because.empty()
                                   ? "missing: " + row.missing
                                   : evaluation.because + " Missing: " + row.missing;
      text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", row.id, cell(row.what),
                          cell(row.setting), cell(ours_of(evaluation)), verdict_of(evaluation),
                          cell(says), fmt::join(places_of(row), "; "));
    }
  }
  text +=
      "\n## Everything else that the documents contain\n\n"
      "Kernels, schedules, forms of softmax, masks, formats (K, T, G, F, O, M, D, V, B, P, N), "
      "defects of their code (C), exercises (X):\nwhere each is embodied, or what is missing.\n\n"
      "| id | from | what | where | missing |\n| --- | --- | --- | --- | --- |\n";
  for (const Evaluation& evaluation : rows) {
    const LedgerRow& row = *evaluation.row;
    if (is_claim(row)) continue;
    text += fmt::format("| {} | {} | {} | {} | {} |\n", row.id, row.source, cell(row.what),
                        fmt::join(places_of(row), "; "), cell(row.missing));
  }
  return text;
}

std::string json_lines(const std::vector<Evaluation>& rows) {
  std::string text;
  for (const Evaluation& evaluation : rows) {
    const LedgerRow& row = *evaluation.row;
    Json json{{"id", row.id}, {"source", row.source}, {"what", row.what}};
    const auto add = [&](const char* key, const std::string& value) {
      if (!value.empty()) json[key] = value;
    };
    add("setting", row.setting);
    add("ours", evaluation.ours);
    add("trouble", evaluation.trouble);
    add("verdict", std::string(name_of(row.verdict)));
    if (evaluation.found) add("found", std::string(name_of(*evaluation.found)));
    add("because", evaluation.because);
    add("missing", row.missing);
    json["where"] = places_of(row);
    text += json.dump() + "\n";
  }
  return text;
}

}  // namespace attest
