#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// Keys keep the order in which they are written.
using Json = nlohmann::ordered_json;

/// Json::parse and Json::accept, compiled once: the parser is a third of the compile time of a file
/// that calls it. Text from outside goes through read_json. parse_json throws what Json::parse
/// throws.
[[nodiscard]] Json parse_json(std::string_view text);
[[nodiscard]] bool is_json(std::string_view text);

/// Parses text from outside. Throws InvalidInput, which names `where`, for text that is no JSON,
/// for brackets nested too deep and for a key given twice; `expected` says what the text should be.
[[nodiscard]] Json read_json(std::string_view text, std::string_view where,
                             std::string_view expected);

/// Throws InvalidInput when brackets of a JSON text are nested more than 64 deep: no file of ours
/// needs that, and printing or copying a value recurses once a level. `where` is named.
void require_shallow_json(std::string_view text, std::string_view where);

/// Throws InvalidInput when an object of a JSON text, at any depth, has a key twice: which of the
/// values is meant nobody can know. Text that is no JSON passes: whoever parses it complains. Call
/// after require_shallow_json.
void require_distinct_keys(std::string_view text, std::string_view where);

/// A double as JSON, whose numbers are finite: others become "nan", "inf" and "-inf".
[[nodiscard]] Json number_json(double value);
/// Double of a JSON value, inverse of number_json(). Throws InvalidInput for any other value.
[[nodiscard]] double number_from_json(const Json& json);

/// A JSON object that is read strictly: every key that it has must be asked for, and every key that
/// is asked for must be there with a value that is allowed. Complaints are InvalidInput, in one
/// line, and begin with `where`.
class JsonObject {
 public:
  /// Reads `json`, which must outlive the reader. Throws InvalidInput if it is no object.
  JsonObject(const Json& json, std::string where);

  /// Asks for a key that may be missing.
  [[nodiscard]] bool has(std::string_view key);
  [[nodiscard]] const Json& at(std::string_view key);
  [[nodiscard]] const std::string& text(std::string_view key);
  [[nodiscard]] bool boolean(std::string_view key);
  /// A whole number from `low` to `high`.
  [[nodiscard]] std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high);
  /// A whole number from 0 to 2^64 - 1.
  [[nodiscard]] std::uint64_t seed(std::string_view key);
  [[nodiscard]] double finite(std::string_view key);
  /// A number as number_json wrote it, infinities and NaN included.
  [[nodiscard]] double number(std::string_view key);
  /// The index of the text among `names`.
  [[nodiscard]] std::size_t choice(std::string_view key, std::span<const std::string_view> names);

  /// Throws a complaint about the value of a key.
  [[noreturn]] void reject(std::string_view key, std::string_view allowed) const;
  /// Call last: throws for a key that was never asked for.
  void finish() const;

 private:
  const Json& json_;
  std::string where_;
  std::vector<std::string> asked_;
};

}  // namespace attest
