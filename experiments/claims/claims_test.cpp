#include "experiments/claims/claims_test.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/temporary_folder.hpp"
#include "experiments/claims/formula.hpp"
#include "experiments/claims/ledger.hpp"
#include "experiments/claims/pointers.hpp"
#include "experiments/claims/table.hpp"
#include "experiments/study/language/parse_study.hpp"

// What the ledger's texts, and studies, say about claims.

namespace attest {
namespace {

namespace fs = std::filesystem;

const std::vector<Evaluation>& evaluations() {
  static const std::vector<Evaluation> evaluations = [] {
    std::vector<const LedgerRow*> rows;
    for (const LedgerRow& row : ledger().rows) rows.push_back(&row);
    return evaluate(rows, tree / "experiments/results");
  }();
  return evaluations;
}

TEST(Claims, EveryIdOfTheListHasARowAndEveryRowAnIdOfTheList) {
  EXPECT_EQ(missing_ids(ledger()), std::vector<std::string>{});
  EXPECT_EQ(unlisted_ids(ledger()), std::vector<std::string>{});
}

TEST(Claims, EveryRowIsFromADocumentOfTheLedger) {
  for (const LedgerRow& row : ledger().rows) {
    const bool is_known = std::ranges::any_of(
        ledger().sources, [&](const ClaimSource& source) { return source.id == row.source; });
    EXPECT_TRUE(is_known) << row.place << ": " << row.id << " is from " << row.source;
  }
}

TEST(Claims, EveryIdPointsToSomethingThatExists) {
  for (const LedgerRow& row : ledger().rows) {
    for (const Pointer& pointer : row.where) {
      EXPECT_EQ(why_nowhere(pointer, tree), "") << row.place << ": " << row.id;
    }
  }
}

TEST(Claims, EveryVerdictIsTheOneThatTheFiguresGive) {
  int checked = 0;
  for (const Evaluation& evaluation : evaluations()) {
    EXPECT_EQ(evaluation.trouble, "") << evaluation.row->id;
    EXPECT_FALSE(evaluation.is_regression())
        << evaluation.row->place << ": " << evaluation.row->id << ", ours: " << evaluation.ours;
    checked += static_cast<int>(evaluation.found.has_value());
  }
  EXPECT_GT(checked, 50);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Claims, TheCommittedTableIsWhatTheLedgerGives) {
  const auto committed = lines_of(text_of(tree / "experiments/results/h200/claims.md"));
  const auto made = lines_of(markdown_table(ledger(), evaluations()));
  constexpr const char* advice =
      "attest claims --markdown > experiments/results/h200/claims.md writes it";
  for (std::size_t i = 0; i < std::min(committed.size(), made.size()); ++i) {
    ASSERT_EQ(committed[i], made[i]) << "line " << i + 1 << "; " << advice;
  }
  EXPECT_EQ(committed.size(), made.size()) << advice;
}

TEST(Claims, APointerToNothingIsNoticed) {
  constexpr std::array exist{
      std::array{"kernel", "k5_padded_tiles", ""},
      std::array{"kernel", "f_controlled_pairs", "loop_order=keys_outside"},
      std::array{"test",
                 "core/attention/grid_order_test.cpp: GridOrder.TheOrdersThatShouldDifferDo", ""},
      std::array{"mutant", "c01_old_sum_not_restored", ""},
      std::array{"property", "within_bound", ""},
      std::array{"input", "ties", ""},
      std::array{"record", "h200/errors.jsonl", ""},
      std::array{"file", "DESIGN.md", ""}};
  for (const auto& [kind, name, plan] : exist) {
    EXPECT_EQ(why_nowhere({kind, name, plan}, tree), "") << kind;
    EXPECT_NE(why_nowhere({kind, std::string(name) + "x", plan}, tree), "") << kind;
  }
  EXPECT_NE(why_nowhere({"kernel", "f_controlled_pairs", "loop_order=sideways"}, tree), "");
  EXPECT_NE(why_nowhere({"kernel", "mutant/c01_old_sum_not_restored", ""}, tree), "");
  EXPECT_NE(why_nowhere({"test", "core/attention/grid_order_test.cpp", ""}, tree), "");
  EXPECT_NE(why_nowhere({"study", "no_such_study", ""}, tree), "");
}

/// Results with one file of records, changed.
class ChangedRecords {
 public:
  template <typename Change>
  ChangedRecords(const std::string& name, Change change) {
    fs::create_directories((folder_.path() / name).parent_path());
    std::ofstream stream(folder_.path() / name);
    for (const std::string& line : lines_of(text_of(tree / "experiments/results" / name))) {
      Json record = parse_json(line);
      change(record);
      stream << record.dump() << '\n';
    }
  }
  [[nodiscard]] const fs::path& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

Evaluation found_of(const std::string& id, const fs::path& results) {
  for (const LedgerRow& row : ledger().rows) {
    if (row.id == id) return evaluate({&row}, results)[0];
  }
  throw InvalidInput(id);
}

// Dividing once, made ten times slower than it was.
TEST(Claims, AVerdictFallsWithTheRecordThatItStandsOn) {
  const std::string name = "h200/studies/division/records.jsonl";
  for (const double slower : {1.0, 10.0}) {
    const ChangedRecords changed(name, [&](Json& record) {
      const std::string plan = record["labels"].value("plan", "");
      const bool divides_once = plan.find("at_the_end") != std::string::npos;
      for (Json& measurement : record["measurements"]) {
        if (divides_once && measurement["name"] == "time") {
          measurement["value"] = measurement["value"].get<double>() * slower;
        }
      }
    });
    const Evaluation evaluation = found_of("Q0.13b", changed.path());
    EXPECT_EQ(evaluation.trouble, "");
    EXPECT_EQ(evaluation.is_regression(), slower > 1) << evaluation.ours;
  }
}

/// A ledger of one file, in a folder that lives as long as this.
class LedgerFile {
 public:
  explicit LedgerFile(const std::string& text) {
    std::ofstream(folder_.path() / "ledger.yaml") << text;
  }
  [[nodiscard]] Ledger read() const { return read_ledger(folder_.path()); }
  [[nodiscard]] std::string complaint() const {
    try {
      (void)read();
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  }

 private:
  TemporaryFolder folder_;
};

constexpr const char* made_up_row = R"(rows:
  - id: Q1.1
    source: S1
    what: two and two
    figures: {sum: 2 + 2}
    ours: "{sum:.0f}"
    holds: sum == 4
    verdict: reproduced
    where: [{file: DESIGN.md}]
)";

TEST(Ledger, AVerdictThatTheFiguresNoLongerGiveIsARegression) {
  for (const bool holds : {true, false}) {
    std::string text = made_up_row;
    if (!holds) text.replace(text.find("2 + 2"), 5, "2 + 3");
    const Ledger ledger = LedgerFile(text).read();
    const auto found = evaluate({&ledger.rows[0]}, tree);
    EXPECT_EQ(found[0].is_regression(), !holds);
    EXPECT_EQ(found[0].ours, holds ? "4" : "5");
  }
}

TEST(Ledger, RecordsThatHoldATextAndThoseThatDoNotAreAllOfThem) {
  const std::string grid =
      "records('h200/studies/forward_grid/records', 'kind=study; contender=fa3_wgmma";
  std::string text = made_up_row;
  text.replace(text.find("2 + 2"), 5,
               "\"" + grid + "; role=point') - " + grid + "; role=point; problem~lengths') - " +
                   grid + "; role=point; problem!~lengths') + 4\"");
  const Ledger ledger = LedgerFile(text).read();
  const auto found = evaluate({&ledger.rows[0]}, tree / "experiments/results");
  EXPECT_EQ(found[0].ours, "4") << found[0].trouble;
}

TEST(Ledger, ARecordFileThatIsNotThereIsNoVerdict) {
  std::string text = made_up_row;
  text.replace(text.find("2 + 2"), 5, "\"record('h200/nothing', 'a=b', 'time')\"");
  const Ledger ledger = LedgerFile(text).read();
  const auto found = evaluate({&ledger.rows[0]}, tree);
  EXPECT_FALSE(found[0].found.has_value());
  EXPECT_FALSE(found[0].is_regression());
  EXPECT_EQ(found[0].trouble, "no records h200/nothing.jsonl");
}

TEST(Ledger, WhatIsWrongIsSaidWithFileAndLine) {
  const auto changed = [](std::string_view from, std::string_view to) {
    std::string text = made_up_row;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_EQ(LedgerFile(made_up_row).complaint(), "");
  const std::array<std::pair<std::string, std::string>, 10> wrong{{
      {changed("what:", "wat:"), "ledger.yaml:4: unknown key 'wat'"},
      {changed("reproduced", "proven"), "ledger.yaml:8: verdict 'proven'"},
      {changed("    holds: sum == 4\n", ""), "'holds' goes with"},
      {changed("reproduced", "not comparable"), "'holds' goes with"},
      {changed("    where: [{file: DESIGN.md}]\n", ""), "needs 'where'"},
      {changed("file: DESIGN.md", "file: a, test: b"), "points to one thing"},
      {changed("{file: DESIGN.md}", "{place: b}"), "no kind of pointer"},
      {changed("Q1.1", "K1"), "only claims"},
      {changed("    source: S1\n", ""), "needs a source"},
      {std::string(made_up_row) + std::string(made_up_row).substr(6), "given twice"},
  }};
  for (const auto& [text, complaint] : wrong) {
    EXPECT_NE(LedgerFile(text).complaint().find(complaint), std::string::npos)
        << complaint << " is wanted, this came: " << LedgerFile(text).complaint();
  }
}

}  // namespace

namespace {

namespace fs = std::filesystem;

bool is_in_ledger(const std::string& id) {
  return std::ranges::any_of(
      ledger().rows, [&](const LedgerRow& row) { return row.id == id || base_id(row.id) == id; });
}

std::vector<std::string> matches(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
    found.push_back((*at)[1]);
  }
  return found;
}

/// Claims that a text names and the ledger does not have.
std::vector<std::string> unknown_claims_of(const std::string& text) {
  static const std::regex id(R"(\b(Q[0-9]+\.[0-9]+[a-z]?)\b)");
  std::vector<std::string> named = matches(text, id);
  std::erase_if(named, is_in_ledger);
  return named;
}

TEST(ClaimsText, ATextOfTheLedgerNamesOnlyClaimsThatItHas) {
  EXPECT_EQ(unknown_claims_of("As in Q3.29 and Q4.12c, see Q4.12z and Q9.1."),
            (std::vector<std::string>{"Q4.12z", "Q9.1"}));
  for (const LedgerRow& row : ledger().rows) {
    for (const std::string& text : {row.what, row.setting, row.because, row.missing}) {
      EXPECT_EQ(unknown_claims_of(text), std::vector<std::string>{}) << row.place << ": " << row.id;
    }
  }
}

ParsedStudy study_of(const std::string& text, const std::string& name) {
  ParsedStudy parsed = parse_study(text, name);
  for (const StudyError& error : parsed.errors) ADD_FAILURE() << to_string(error, name);
  return parsed;
}

/// Why the studies that a row's `missing` tells to run would not answer it; empty: they would.
std::string why_no_answer(const LedgerRow& row) {
  static const std::regex command("attest study run ([a-z_0-9/]+\\.yaml)");
  for (const std::string& file : matches(row.missing, command)) {
    if (!fs::is_regular_file(tree / file)) return "there is no " + file;
    const ParsedStudy study = study_of(text_of(tree / file), fs::path(file).stem());
    const bool is_about = study.spec && std::ranges::find(study.spec->claims, base_id(row.id)) !=
                                            study.spec->claims.end();
    if (!is_about) return file + " is not about " + row.id;
  }
  return "";
}

TEST(ClaimsText, AStudyThatARowTellsToRunIsThereAndAboutIt) {
  LedgerRow planted{.id = "Q3.29", .missing = "attest study run experiments/studies/nothing.yaml"};
  EXPECT_EQ(why_no_answer(planted), "there is no experiments/studies/nothing.yaml");
  planted.missing = "attest study run experiments/studies/split_kv.yaml (and so on)";
  EXPECT_EQ(why_no_answer(planted), "experiments/studies/split_kv.yaml is not about Q3.29");
  for (const LedgerRow& row : ledger().rows) EXPECT_EQ(why_no_answer(row), "") << row.place;
}

/// Ids that a study names and the ledger does not have.
std::vector<std::string> unknown_claims(const std::string& study, const std::string& name) {
  const ParsedStudy parsed = study_of(study, name);
  if (!parsed.spec) return {};
  std::vector<std::string> named = parsed.spec->claims;
  for (const Expectation& expectation : parsed.spec->expect) {
    if (!expectation.claim.empty()) named.push_back(expectation.claim);
  }
  std::erase_if(named, is_in_ledger);
  return named;
}

TEST(ClaimsText, AStudyNamesOnlyClaimsOfTheLedger) {
  const std::string planted =
      "question: Which tile is the fastest?\n"
      "claims: [Q3.29, Q3.99, K5]\n"
      "kernels: [k5_padded_tiles]\n"
      "problem: {length: 128, head_dim: 64}\n";
  EXPECT_EQ(unknown_claims(planted, "planted"), std::vector<std::string>{"Q3.99"});
  const fs::path studies = tree / "experiments/studies";
  if (!fs::is_directory(studies)) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(studies)) {
    if (entry.path().extension() != ".yaml") continue;
    EXPECT_EQ(unknown_claims(text_of(entry.path()), entry.path().stem()),
              std::vector<std::string>{})
        << entry.path().filename();
  }
}

}  // namespace

}  // namespace attest
