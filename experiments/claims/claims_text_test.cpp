#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "experiments/claims/claims_test.hpp"
#include "experiments/claims/ledger.hpp"
#include "experiments/study/language/spec.hpp"

// What the ledger's texts, and studies, say about claims.
namespace attest {
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
