#include "verify/cases/refusals.hpp"

#include <algorithm>
#include <cctype>
#include <functional>

#include "core/base/json.hpp"

namespace attest {
namespace {

// A plugin may say something new every time; what is kept goes to disk every two seconds.
constexpr std::size_t most_sentences = 200;

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

std::string without_numbers(std::string_view sentence) {
  std::string text;
  for (const char c : sentence) {
    if (!is_digit(c)) {
      text += c;
    } else if (text.empty() || text.back() != '#') {
      text += '#';
    }
  }
  return text;
}

}  // namespace

void Refusals::add(std::string_view sentence) {
  ++count_;
  add(without_numbers(sentence), {.count = 1, .text = std::string(sentence)});
}

void Refusals::add(const Refusals& others) {
  count_ += others.count_;
  for (const auto& [key, sentence] : others.sentences_) add(key, sentence);
}

void Refusals::add(const std::string& key, const Sentence& sentence) {
  if (!sentences_.contains(key) && sentences_.size() == most_sentences) return;
  const auto [at, is_new] = sentences_.try_emplace(key, sentence);
  if (is_new) return;
  at->second.count += sentence.count;
  at->second.text = std::min(at->second.text, sentence.text);
}

Refusals::Sentence Refusals::most_frequent() const {
  Sentence most;
  for (const auto& [key, sentence] : sentences_) {
    if (sentence.count > most.count) most = sentence;
  }
  return most;
}

std::vector<Refusals::Sentence> Refusals::by_count() const {
  std::vector<Sentence> sentences;
  for (const auto& [key, sentence] : sentences_) sentences.push_back(sentence);
  std::ranges::stable_sort(sentences, std::greater<>(), &Sentence::count);
  return sentences;
}

Json Refusals::to_json() const {
  Json sentences = Json::array();
  for (const auto& [key, sentence] : sentences_) {
    sentences.push_back({{"text", sentence.text}, {"count", sentence.count}});
  }
  return {{"count", count_}, {"sentences", sentences}};
}

Refusals Refusals::from_json(const Json& json) {
  Refusals refusals;
  refusals.count_ = json.at("count");
  for (const Json& sentence : json.at("sentences")) {
    const std::string text = sentence.at("text");
    refusals.add(without_numbers(text), {.count = sentence.at("count"), .text = text});
  }
  return refusals;
}

}  // namespace attest
