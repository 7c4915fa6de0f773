#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/records/record.hpp"
#include "experiments/claims/functions.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;
using FormulaValues = std::span<const FormulaValue>;

struct Term {
  std::string label, text;
  bool is_whole, is_denied;
};

std::vector<Term> terms_of(std::string_view which) {
  const auto trimmed = [](std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \n");
    return first == std::string_view::npos
               ? std::string()
               : std::string(text.substr(first, text.find_last_not_of(" \n") - first + 1));
  };
  std::vector<Term> terms;
  while (!which.empty()) {
    const std::string_view term = which.substr(0, which.find(';'));
    which.remove_prefix(std::min(which.size(), term.size() + 1));
    if (trimmed(term).empty()) continue;
    const std::size_t sign = term.find_first_of("=~");
    if (sign == std::string_view::npos) {
      throw InvalidInput(
          fmt::format("'{}' is no LABEL=TEXT, LABEL~TEXT or LABEL!~TEXT", trimmed(term)));
    }
    const bool is_denied = sign > 0 && term[sign - 1] == '!';
    terms.push_back({trimmed(term.substr(0, is_denied ? sign - 1 : sign)),
                     trimmed(term.substr(sign + 1)), term[sign] == '=', is_denied});
  }
  return terms;
}

bool agrees(const Term& term, const std::string& text) {
  const bool is_there =
      term.is_whole ? text == term.text : text.find(term.text) != std::string::npos;
  return is_there != term.is_denied;
}

bool agrees(const std::vector<Term>& terms, const Record& record) {
  return std::ranges::all_of(terms, [&](const Term& term) {
    if (term.label == "verdict") return agrees(term, record.verdict);
    if (term.label == "kind") return agrees(term, record.kind);
    const auto label = record.labels.find(term.label);
    return label != record.labels.end() && agrees(term, label->second);
  });
}

double measured(const Record& record, const std::string& name) {
  const Measurement* found = find_measurement(record.measurements, name);
  if (found == nullptr) {
    throw InvalidInput(fmt::format("a record has no measurement '{}'", name));
  }
  return found->value;
}

std::string whole(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream) throw MachineError(fmt::format("{} cannot be read", path.string()));
  return text;
}

/// Record files, each read once.
class Records {
 public:
  explicit Records(fs::path results) : results_(std::move(results)) {}

  const std::vector<Record>& file(const std::string& name) {
    const auto [entry, is_new] = files_.try_emplace(name);
    if (is_new) entry->second = read_records(existing(name + ".jsonl")).records;
    return entry->second;
  }

  std::vector<const Record*> chosen(const std::string& name, const std::string& which) {
    const std::vector<Term> terms = terms_of(which);
    std::vector<const Record*> found;
    for (const Record& record : file(name)) {
      if (agrees(terms, record)) found.push_back(&record);
    }
    return found;
  }

  /// Values of at least one record.
  std::vector<double> values(FormulaValues a) {
    std::vector<double> values;
    for (const Record* record : chosen(text_of(a, 0), text_of(a, 1))) {
      values.push_back(measured(*record, text_of(a, 2)));
    }
    if (values.empty()) {
      throw InvalidInput(fmt::format("{}: no record has {}", text_of(a, 0), text_of(a, 1)));
    }
    return values;
  }

  double explained(FormulaValues a) {
    const std::vector<Term> terms = terms_of(text_of(a, 1));
    std::vector<const Json*> found;
    for (const Json& line : lines("h200/hardware_check.jsonl")) {
      const bool is_wanted = line.value("kernel", "") == text_of(a, 0) &&
                             std::ranges::all_of(terms, [&](const Term& term) {
                               return agrees(term, line.value(term.label, ""));
                             });
      if (is_wanted) found.push_back(&line);
    }
    if (found.size() != 1) {
      throw InvalidInput(fmt::format("{} explanations of {} have {}, one is wanted", found.size(),
                                     text_of(a, 0), text_of(a, 1)));
    }
    try {
      return found[0]->at(Json::json_pointer(text_of(a, 2))).get<double>();
    } catch (const Json::exception& error) {
      throw InvalidInput(fmt::format("{}: {}", text_of(a, 2), error.what()));
    }
  }

  double killed(const std::string& rule) {
    const Json matrix = parse_json(whole(existing("xeon-16core/kill_matrix.json")));
    double count = 0;
    if (rule.empty()) return static_cast<double>(matrix.at("mutants").size());
    for (const Json& mutant : matrix.at("mutants")) {
      if (!mutant.at("rules").contains(rule)) {
        throw InvalidInput(fmt::format("'{}' is no rule of the kill matrix", rule));
      }
      count += mutant.at("rules").at(rule).at("kills").get<double>() > 0 ? 1 : 0;
    }
    return count;
  }

 private:
  fs::path existing(const std::string& name) const {
    fs::path path = results_ / name;
    if (!fs::is_regular_file(path)) throw NoRecords(fmt::format("no records {}", name));
    return path;
  }

  const std::vector<Json>& lines(const std::string& name) {
    if (explanations_.empty()) {
      const std::string text = whole(existing(name));
      for (std::size_t first = 0; first < text.size();) {
        const std::size_t end = std::min(text.find('\n', first), text.size());
        explanations_.push_back(parse_json(std::string_view(text).substr(first, end - first)));
        first = end + 1;
      }
    }
    return explanations_;
  }

  fs::path results_;
  std::map<std::string, std::vector<Record>> files_;
  std::vector<Json> explanations_;
};

}  // namespace

void add_records(FormulaScope& scope, const fs::path& results) {
  const auto records = std::make_shared<Records>(results);
  const auto add = [&scope](const char* name, std::size_t count, auto compute) {
    scope.functions[name] = [count, compute](FormulaValues a) {
      require_arguments(a, count, count);
      return compute(a);
    };
  };
  add("record", 3, [records](FormulaValues a) {
    const std::vector<double> values = records->values(a);
    if (values.size() == 1) return values[0];
    throw InvalidInput(fmt::format("{}: {} records have {}, one is wanted", text_of(a, 0),
                                   values.size(), text_of(a, 1)));
  });
  add("records", 2, [records](FormulaValues a) {
    return static_cast<double>(records->chosen(text_of(a, 0), text_of(a, 1)).size());
  });
  add("least", 3, [records](FormulaValues a) { return std::ranges::min(records->values(a)); });
  add("most", 3, [records](FormulaValues a) { return std::ranges::max(records->values(a)); });
  add("total", 3, [records](FormulaValues a) {
    double sum = 0;
    for (const double value : records->values(a)) sum += value;
    return sum;
  });
  add("geomean", 3, [records](FormulaValues a) {
    const std::vector<double> values = records->values(a);
    double sum = 0;
    for (const double value : values) sum += std::log(value);
    return std::exp(sum / static_cast<double>(values.size()));
  });
  add("explained", 3, [records](FormulaValues a) { return records->explained(a); });
  scope.functions["mutants"] = [records](FormulaValues a) {
    require_arguments(a, 0, 1);
    return records->killed(a.empty() ? "" : text_of(a, 0));
  };
}

}  // namespace attest
