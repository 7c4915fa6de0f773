#include "experiments/claims/ledger.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "core/base/error.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// A node with the file that it stands in.
struct Node {
  YAML::Node yaml;
  std::string file;

  [[nodiscard]] std::string place() const {
    return fmt::format("{}:{}", file, yaml.Mark().line + 1);
  }
  [[noreturn]] void fail(std::string_view what) const {
    throw InvalidInput(fmt::format("{}: {}", place(), what));
  }
  [[nodiscard]] std::string text() const {
    if (!yaml.IsScalar()) fail("a text is wanted");
    return yaml.Scalar();
  }
};

/// Calls visit(key, node) for each entry of a map, in the order of the file.
template <typename Visit>
void each(const Node& map, Visit visit) {
  if (!map.yaml.IsMap()) map.fail("keys and values are wanted");
  std::set<std::string> seen;
  for (const auto& entry : map.yaml) {
    const std::string key = Node{entry.first, map.file}.text();
    if (!seen.insert(key).second) map.fail(fmt::format("'{}' stands here twice", key));
    visit(key, Node{entry.second, map.file});
  }
}

template <typename Visit>
void each_item(const Node& list, Visit visit) {
  if (!list.yaml.IsSequence()) list.fail("a list is wanted");
  for (const auto& item : list.yaml) visit(Node{item, list.file});
}

Standing standing_of(const Node& node) {
  const std::string text = node.text();
  for (const Standing standing :
       {Standing::reproduced, Standing::refuted, Standing::not_comparable, Standing::open}) {
    if (text == name_of(standing)) return standing;
  }
  node.fail(fmt::format("verdict '{}' is none of reproduced, refuted, not comparable, open", text));
}

Pointer pointer_of(const Node& node) {
  Pointer pointer;
  each(node, [&](const std::string& key, const Node& value) {
    if (key == "plan") {
      pointer.plan = value.text();
      return;
    }
    static const std::set<std::string, std::less<>> kinds{"kernel", "test",  "mutant", "property",
                                                          "input",  "study", "record", "file"};
    if (!kinds.contains(key)) value.fail(fmt::format("'{}' is no kind of pointer", key));
    if (!pointer.kind.empty()) value.fail("a pointer points to one thing");
    pointer.kind = key;
    pointer.name = value.text();
  });
  if (pointer.kind.empty()) node.fail("a pointer needs a kind");
  if (!pointer.plan.empty() && pointer.kind != "kernel") node.fail("only kernels have Plans");
  return pointer;
}

LedgerRow row_of(const Node& node) {
  LedgerRow row{.place = node.place()};
  each(node, [&](const std::string& key, const Node& value) {
    if (key == "id") {
      row.id = value.text();
    } else if (key == "source") {
      row.source = value.text();
    } else if (key == "what") {
      row.what = value.text();
    } else if (key == "setting") {
      row.setting = value.text();
    } else if (key == "figures") {
      each(value, [&](const std::string& name, const Node& formula) {
        row.figures.emplace_back(name, formula.text());
      });
    } else if (key == "ours") {
      row.ours = value.text();
    } else if (key == "holds") {
      row.holds = value.text();
    } else if (key == "verdict") {
      row.verdict = standing_of(value);
    } else if (key == "because") {
      row.because = value.text();
    } else if (key == "missing") {
      row.missing = value.text();
    } else if (key == "where") {
      each_item(value, [&](const Node& item) { row.where.push_back(pointer_of(item)); });
    } else {
      value.fail(fmt::format("unknown key '{}'", key));
    }
  });
  return row;
}

/// Throws InvalidInput unless the row has what its verdict needs, so that none is only written
/// down.
void require_whole(const LedgerRow& row, bool is_claim) {
  const auto require = [&](bool condition, std::string_view what) {
    if (!condition) throw InvalidInput(fmt::format("{}: {}: {}", row.place, row.id, what));
  };
  require(!row.id.empty(), "a row needs an id");
  require(!row.what.empty(), "a row needs 'what'");
  require(!row.source.empty(), "a row needs a source");
  require(row.missing.empty() == (row.verdict != Standing::open) || !is_claim,
          "'missing' goes with the verdict open, and only with it");
  if (!is_claim) {
    require(row.verdict == Standing::has_no_verdict, "only claims (Q..) have a verdict");
    require(!row.where.empty() || !row.missing.empty(), "'where' or 'missing' is wanted");
    return;
  }
  require(row.verdict != Standing::has_no_verdict, "a claim needs a verdict");
  const bool is_checked = row.verdict == Standing::reproduced || row.verdict == Standing::refuted;
  require(!row.holds.empty() == is_checked, "'holds' goes with reproduced and refuted");
  require(!is_checked || !row.ours.empty(), "a checked verdict needs 'ours'");
  require(!is_checked || !row.where.empty(), "a checked verdict needs 'where'");
  require(row.verdict != Standing::not_comparable || !row.because.empty(),
          "'not comparable' needs 'because'");
}

void read_file(const fs::path& path, Ledger& ledger) {
  const std::string file = path.filename().string();
  YAML::Node yaml;
  try {
    yaml = YAML::LoadFile(path.string());
  } catch (const YAML::BadFile&) {
    throw MachineError(fmt::format("{} cannot be read", path.string()));
  } catch (const YAML::Exception& error) {
    throw InvalidInput(fmt::format("{}:{}: {}", file, error.mark.line + 1, error.msg));
  }
  each({yaml, file}, [&](const std::string& key, const Node& value) {
    if (key == "sources") {
      each_item(value, [&](const Node& item) {
        ClaimSource source;
        each(item, [&](const std::string& name, const Node& text) {
          if (name == "id")
            source.id = text.text();
          else if (name == "title")
            source.title = text.text();
          else if (name == "machine")
            source.machine = text.text();
          else
            text.fail(fmt::format("unknown key '{}'", name));
        });
        ledger.sources.push_back(source);
      });
    } else if (key == "series") {
      each(value, [&](const std::string& name, const Node& count) {
        ledger.series.emplace_back(name, count.yaml.as<int>());
      });
    } else if (key == "rows") {
      each_item(value, [&](const Node& item) { ledger.rows.push_back(row_of(item)); });
    } else {
      value.fail(fmt::format("unknown key '{}'", key));
    }
  });
}

}  // namespace

std::string_view name_of(Standing standing) {
  switch (standing) {
    case Standing::reproduced:
      return "reproduced";
    case Standing::refuted:
      return "refuted";
    case Standing::not_comparable:
      return "not comparable";
    case Standing::open:
      return "open";
    case Standing::has_no_verdict:
      break;
  }
  return "";
}

Ledger read_ledger(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  if (error || files.empty()) {
    throw InvalidInput(fmt::format("there is no ledger (*.yaml) in {}", folder.string()));
  }
  std::ranges::sort(files);
  Ledger ledger;
  try {
    for (const fs::path& file : files) read_file(file, ledger);
  } catch (const YAML::Exception& e) {
    throw InvalidInput(fmt::format("ledger in {}: {}", folder.string(), e.what()));
  }
  std::set<std::string_view> ids;
  for (const LedgerRow& row : ledger.rows) {
    require_whole(row, row.id.starts_with("Q"));
    if (!ids.insert(row.id).second) {
      throw InvalidInput(fmt::format("{}: id {} is given twice", row.place, row.id));
    }
  }
  return ledger;
}

std::string_view base_id(std::string_view id) {
  // Only claims have parts; K2b is a kernel of its own.
  if (id.starts_with("Q")) {
    while (!id.empty() && std::islower(static_cast<unsigned char>(id.back())) != 0) {
      id.remove_suffix(1);
    }
  }
  return id;
}

namespace {

std::set<std::string, std::less<>> listed_ids(const Ledger& ledger) {
  std::set<std::string, std::less<>> ids;
  for (const auto& [name, count] : ledger.series) {
    if (count == 0) ids.insert(name);
    for (int i = 1; i <= count; ++i) ids.insert(fmt::format("{}{}", name, i));
  }
  return ids;
}

}  // namespace

std::vector<std::string> missing_ids(const Ledger& ledger) {
  std::set<std::string, std::less<>> ids = listed_ids(ledger);
  for (const LedgerRow& row : ledger.rows) ids.erase(std::string(base_id(row.id)));
  return {ids.begin(), ids.end()};
}

std::vector<std::string> unlisted_ids(const Ledger& ledger) {
  const auto ids = listed_ids(ledger);
  std::vector<std::string> unlisted;
  for (const LedgerRow& row : ledger.rows) {
    if (!ids.contains(base_id(row.id))) unlisted.push_back(row.id);
  }
  return unlisted;
}

std::optional<std::filesystem::path> find_tree() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  for (const fs::path& start : {fs::read_symlink("/proc/self/exe", ignored), fs::current_path()}) {
    for (fs::path folder = start; folder.has_relative_path(); folder = folder.parent_path()) {
      if (fs::is_regular_file(ledger_folder(folder) / "ids.yaml", ignored)) return folder;
    }
  }
  return std::nullopt;
}

std::filesystem::path ledger_folder(const std::filesystem::path& tree) {
  return tree / "experiments/claims";
}

std::vector<std::string> ids_of(const Ledger& ledger) {
  std::vector<std::string> ids;
  for (const LedgerRow& row : ledger.rows) {
    ids.push_back(row.id);
    ids.emplace_back(base_id(row.id));
  }
  return ids;
}

}  // namespace attest
