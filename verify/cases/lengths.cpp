#include "verify/cases/lengths.hpp"

#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <set>
#include <vector>

#include "core/base/error.hpp"

namespace attest {
namespace {

namespace gen = rc::gen;

[[noreturn]] void fail(std::string_view text, const std::string& reason) {
  std::vector<std::string_view> names;
  for (const LengthKind& kind : length_kinds) names.push_back(kind.name);
  throw InvalidInput(fmt::format(
      "--lengths '{}': {}; allowed: KIND:WEIGHT separated by commas, weights 0 to 1000, "
      "kinds {}",
      text, reason, fmt::join(names, ", ")));
}

std::int64_t weight_from(std::string_view text, std::string_view number) {
  std::int64_t weight = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), weight);
  if (error != std::errc{} || end != number.data() + number.size() || weight < 0 || weight > 1000) {
    fail(text, fmt::format("'{}' is no weight", number));
  }
  return weight;
}

std::int64_t sum_of(const LengthWeights& weights, bool with_kinds_of_case) {
  std::int64_t sum = 0;
  for (const LengthKind& kind : length_kinds) {
    if (with_kinds_of_case || !kind.is_of_case) sum += weights.*kind.weight;
  }
  return sum;
}

}  // namespace

LengthWeights length_weights_from(std::string_view text) {
  LengthWeights weights;
  for (const LengthKind& kind : length_kinds) weights.*kind.weight = 0;
  std::set<std::string_view> seen;
  for (std::string_view rest = text;;) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const std::size_t colon = part.find(':');
    const std::string_view name = part.substr(0, colon);
    const auto* const kind = std::ranges::find(length_kinds, name, &LengthKind::name);
    if (kind == length_kinds.end()) fail(text, fmt::format("'{}' is no kind of length", name));
    if (colon == std::string_view::npos) fail(text, fmt::format("'{}' has no weight", name));
    if (!seen.insert(name).second) fail(text, fmt::format("'{}' stands there twice", name));
    weights.*kind->weight = weight_from(text, part.substr(colon + 1));
    if (part.size() == rest.size()) break;
    rest.remove_prefix(part.size() + 1);
  }
  if (sum_of(weights, false) == weights.zero)
    fail(text, "no kind of length that queries can have has a weight");
  return weights;
}

std::string to_string(const LengthWeights& weights) {
  std::string text;
  for (const LengthKind& kind : length_kinds) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", kind.name, weights.*kind.weight);
  }
  return text;
}

const LengthKind* draw_kind_of_case(const LengthWeights& weights) {
  std::int64_t pick = *gen::inRange<std::int64_t>(0, sum_of(weights, true));
  for (const LengthKind& kind : length_kinds) {
    if (!kind.is_of_case) continue;
    if (pick < weights.*kind.weight) return &kind;
    pick -= weights.*kind.weight;
  }
  return nullptr;
}

std::int64_t draw_magnitude(std::int64_t least, std::int64_t most, std::int64_t tile) {
  if (least >= most) return most;
  const auto order = [](std::int64_t size) {
    return std::bit_width(static_cast<std::uint64_t>(size)) - 1;
  };
  const std::int64_t power = std::int64_t{1} << *gen::inRange(order(least), order(most) + 1);
  const std::int64_t any = *gen::inRange(power, 2 * power);
  const std::int64_t whole_tiles = (any + tile - 1) / tile * tile;
  const std::int64_t beside = *gen::inRange<std::int64_t>(-1, 2);
  return std::clamp(*gen::element(any, power + beside, whole_tiles + beside), least, most);
}

std::int64_t draw_many_tiles(std::int64_t tile, std::int64_t max_len) {
  const std::int64_t tiles = *gen::inRange<std::int64_t>(3, 6);
  return std::clamp<std::int64_t>(tiles * tile_or_usual(tile) + *gen::inRange(-1, 2), 1,
                                  4 * max_len);
}

std::int64_t draw_length(const LengthWeights& weights, std::int64_t tile, std::int64_t max_len) {
  tile = std::min(tile_or_usual(tile), max_len);
  std::int64_t pick = *gen::inRange<std::int64_t>(0, sum_of(weights, false));
  const auto* kind = length_kinds.begin();
  while (pick >= weights.*kind->weight) pick -= weights.*(kind++)->weight;

  std::int64_t length = 1;
  if (kind->weight == &LengthWeights::zero) return 0;
  if (kind->weight == &LengthWeights::tile_edges) {
    const std::int64_t multiples = std::max<std::int64_t>(1, max_len / tile);
    length = *gen::inRange<std::int64_t>(1, multiples + 1) * tile + *gen::inRange(-1, 2);
  } else if (kind->weight == &LengthWeights::primes) {
    length = *gen::element<std::int64_t>(2, 3, 5, 7, 11, 13, 31, 37, 61, 67, 97, 101, 127, 131);
  } else if (kind->weight == &LengthWeights::uniform) {
    length = *gen::inRange<std::int64_t>(1, max_len + 1);
  } else if (kind->weight == &LengthWeights::mod128) {
    const std::int64_t multiple =
        *gen::inRange<std::int64_t>(0, std::max<std::int64_t>(1, max_len / 128) + 1);
    length = multiple * 128 + *gen::element<std::int64_t>(64, 64, -8, -2, 2, 8);
  }
  return std::clamp<std::int64_t>(length, 1, max_len);
}

}  // namespace attest
