#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "experiments/claims/evaluate.hpp"
#include "experiments/claims/formula.hpp"
#include "experiments/claims/ledger.hpp"
#include "experiments/claims/model_functions.hpp"
#include "experiments/claims/pointers.hpp"
#include "experiments/claims/table.hpp"
#include "experiments/study/spec.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

const fs::path tree = ATTEST_SOURCE_DIR;

const Ledger& ledger() {
  static const Ledger ledger = read_ledger(tree / "experiments/claims");
  return ledger;
}

const std::vector<Evaluation>& evaluations() {
  static const std::vector<Evaluation> evaluations = [] {
    std::vector<const LedgerRow*> rows;
    for (const LedgerRow& row : ledger().rows) rows.push_back(&row);
    return evaluate(rows, tree / "experiments/results");
  }();
  return evaluations;
}

std::string text_of(const fs::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
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
      std::array{"test", "core/grid_order_test.cpp: GridOrder.TheOrdersThatShouldDifferDo", ""},
      std::array{"mutant", "c01_old_sum_not_restored", ""},
      std::array{"property", "within_bound", ""},
      std::array{"input", "ties", ""},
      std::array{"record", "h200/ladder.jsonl", ""},
      std::array{"file", "DESIGN.md", ""}};
  for (const auto& [kind, name, plan] : exist) {
    EXPECT_EQ(why_nowhere({kind, name, plan}, tree), "") << kind;
    EXPECT_NE(why_nowhere({kind, std::string(name) + "x", plan}, tree), "") << kind;
  }
  EXPECT_NE(why_nowhere({"kernel", "f_controlled_pairs", "loop_order=sideways"}, tree), "");
  EXPECT_NE(why_nowhere({"kernel", "mutant/c01_old_sum_not_restored", ""}, tree), "");
  EXPECT_NE(why_nowhere({"test", "core/grid_order_test.cpp", ""}, tree), "");
  EXPECT_NE(why_nowhere({"study", "no_such_study", ""}, tree), "");
}

/// Ids that a study names and the ledger does not have.
std::vector<std::string> unknown_claims(const std::string& study, const std::string& name) {
  const ParsedStudy parsed = parse_study(study, name);
  for (const StudyError& error : parsed.errors) ADD_FAILURE() << to_string(error, name);
  if (!parsed.spec) return {};
  std::vector<std::string> named = parsed.spec->claims;
  for (const Expectation& expectation : parsed.spec->expect) {
    if (!expectation.claim.empty()) named.push_back(expectation.claim);
  }
  std::erase_if(named, [](const std::string& id) {
    return std::ranges::any_of(ledger().rows,
                               [&](const LedgerRow& row) { return base_id(row.id) == id; });
  });
  return named;
}

TEST(Claims, AStudyNamesOnlyClaimsOfTheLedger) {
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

constexpr const char* row = R"(rows:
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
    std::string text = row;
    if (!holds) text.replace(text.find("2 + 2"), 5, "2 + 3");
    const Ledger ledger = LedgerFile(text).read();
    const auto found = evaluate({&ledger.rows[0]}, tree);
    EXPECT_EQ(found[0].is_regression(), !holds);
    EXPECT_EQ(found[0].ours, holds ? "4" : "5");
  }
}

TEST(Ledger, ARecordFileThatIsNotThereIsNoVerdict) {
  std::string text = row;
  text.replace(text.find("2 + 2"), 5, "\"record('h200/nothing', 'a=b', 'time')\"");
  const Ledger ledger = LedgerFile(text).read();
  const auto found = evaluate({&ledger.rows[0]}, tree);
  EXPECT_FALSE(found[0].found.has_value());
  EXPECT_FALSE(found[0].is_regression());
  EXPECT_EQ(found[0].trouble, "no records h200/nothing.jsonl");
}

TEST(Ledger, WhatIsWrongIsSaidWithFileAndLine) {
  const auto changed = [](std::string_view from, std::string_view to) {
    std::string text = row;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_EQ(LedgerFile(row).complaint(), "");
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
      {std::string(row) + std::string(row).substr(6), "given twice"},
  }};
  for (const auto& [text, complaint] : wrong) {
    EXPECT_NE(LedgerFile(text).complaint().find(complaint), std::string::npos)
        << complaint << " is wanted, this came: " << LedgerFile(text).complaint();
  }
}

double value(std::string_view formula) {
  FormulaScope scope;
  add_arithmetic(scope);
  add_models(scope);
  scope.values = {{"x", 3}, {"nan", NAN}};
  return evaluate_formula(formula, scope);
}

TEST(Formula, OperatorsBindAsInArithmetic) {
  EXPECT_EQ(value("1 + 2 * x ^ 2 - 4 / 2 / 2"), 18);
  EXPECT_EQ(value("-x ^ 2"), -9);
  EXPECT_EQ(value("2 ^ 3 ^ 2"), 512);
  EXPECT_EQ(value("(1 + 2) * -x"), -9);
  EXPECT_EQ(value("1 < 2 and not 2 < 1 or nan == nan"), 1);
  EXPECT_EQ(value("max(min(1, x), 2e-1)"), 1);
}

TEST(Formula, NoComparisonWithNanHolds) {
  for (const char* op : {"<", "<=", ">", ">=", "==", "!="}) {
    EXPECT_EQ(value(fmt::format("nan {} 1", op)), 0) << op;
    EXPECT_EQ(value(fmt::format("1 {} nan", op)), 0) << op;
  }
  EXPECT_EQ(value("rounds_to(nan, '1')"), 0);
  EXPECT_EQ(value("within(nan, 1, 100)"), 0);
}

TEST(Formula, AFigureAgreesWithAPrintedOneToItsLastDigit) {
  EXPECT_EQ(value("rounds_to(19.0349, '19.03')"), 1);
  EXPECT_EQ(value("rounds_to(19.0351, '19.03')"), 0);
  EXPECT_EQ(value("rounds_to(2.14e9, '2.1e9')"), 1);
  EXPECT_EQ(value("rounds_to(2.16e9, '2.1e9')"), 0);
  EXPECT_EQ(value("rounds_to(66.5, '67')"), 1);
}

TEST(Formula, WhatIsNoFormulaIsSaid) {
  for (const char* wrong :
       {"", "1 +", "(1", "1 2", "y", "f(1)", "abs()", "abs('a')", "'a'", "1 = 1", "flops(1)",
        "flops('nothing')", "gpu('h200', 'colour')", "2x"}) {
    EXPECT_THROW((void)value(wrong), InvalidInput) << wrong;
  }
  EXPECT_THROW((void)value(std::string(10000, '(')), InvalidInput);
}

}  // namespace
}  // namespace attest
