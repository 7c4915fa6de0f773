#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "experiments/claims/ledger.hpp"

// What the tests of the ledger share.
namespace attest {

inline const std::filesystem::path tree = ATTEST_SOURCE_DIR;

inline const Ledger& ledger() {
  static const Ledger ledger = read_ledger(tree / "experiments/claims");
  return ledger;
}

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace attest
