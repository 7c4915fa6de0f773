#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// Sentences of a kernel about what it cannot run, counted. Sentences that differ in their numbers
/// only ("37 keys are no multiple of 64") count as one. The order in which they are added changes
/// nothing, but that a kernel with hundreds of sentences has some of them counted without their
/// words.
class Refusals {
 public:
  struct Sentence {
    std::int64_t count = 0;
    std::string text{};  ///< one of those counted; of them the first in the alphabet

    friend bool operator==(const Sentence&, const Sentence&) = default;
  };

  void add(std::string_view sentence);
  void add(const Refusals& others);
  [[nodiscard]] std::int64_t count() const { return count_; }
  /// The sentence that was added most often; its count is 0 where there were none.
  [[nodiscard]] Sentence most_frequent() const;
  /// All sentences that are kept, the most frequent first.
  [[nodiscard]] std::vector<Sentence> by_count() const;

  [[nodiscard]] nlohmann::ordered_json to_json() const;
  /// Refusals that to_json() wrote. Throws nlohmann's exceptions for anything else.
  [[nodiscard]] static Refusals from_json(const nlohmann::ordered_json& json);
  friend bool operator==(const Refusals&, const Refusals&) = default;

 private:
  void add(const std::string& key, const Sentence& sentence);

  std::int64_t count_ = 0;
  std::map<std::string, Sentence> sentences_{};  ///< by their text with `#` for every number
};

}  // namespace attest
