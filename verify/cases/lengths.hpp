#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace attest {

/// Frequency of each kind of length: weights of any sum.
struct LengthWeights {
  std::int64_t tile_edges = 6;  ///< a multiple of the plan's tile, one less or one more
  std::int64_t one = 1;
  std::int64_t primes = 2;  ///< 2, 3, 5, ... 131
  std::int64_t uniform = 3;
  std::int64_t mod128 = 1;  ///< 64 mod 128, or a few beside a multiple of 128
  std::int64_t zero = 1;    ///< of keys only: a problem has at least one query
  /// Weight of three to five of the plan's tiles of keys, one key less or more, up to four times as
  /// many as usual. A pipeline that runs around, a reference that lags behind need as many turns.
  std::int64_t many_tiles = 2;
  /// Weight of causal problems with as many queries as keys, two to four whole tiles: the shape of
  /// training.
  std::int64_t square_tiles = 1;
  /// Weight of 1 to 16 queries over any number of keys, to thousands: what an engine asks for while
  /// it generates text.
  std::int64_t few_queries = 3;
  /// Weight of any number of queries, of keys or of both, to a hundred thousand and as far as the
  /// work allows (heavy_tail.hpp).
  std::int64_t heavy_tail = 1;

  friend bool operator==(const LengthWeights&, const LengthWeights&) = default;
};

/// Every kind with its name: text, errors and the generator go through this list.
struct LengthKind {
  std::string_view name;
  std::int64_t LengthWeights::*weight;
  bool is_of_case = false;  ///< decides over the lengths of queries and keys at once
};
inline constexpr std::array<LengthKind, 10> length_kinds{
    {{"tile-edges", &LengthWeights::tile_edges},
     {"one", &LengthWeights::one},
     {"primes", &LengthWeights::primes},
     {"uniform", &LengthWeights::uniform},
     {"mod128", &LengthWeights::mod128},
     {"zero", &LengthWeights::zero},
     {"many-tiles", &LengthWeights::many_tiles, true},
     {"square-tiles", &LengthWeights::square_tiles, true},
     {"few-queries", &LengthWeights::few_queries, true},
     {"heavy-tail", &LengthWeights::heavy_tail, true}}};

/// The tile around whose edges lengths and windows lie where a Plan names none: what most attention
/// kernels have.
inline constexpr std::int64_t usual_tile = 64;
/// `tile` of a Plan, or usual_tile where it is not set.
[[nodiscard]] constexpr std::int64_t tile_or_usual(std::int64_t tile) {
  return tile > 0 ? tile : usual_tile;
}

/// `tile-edges:6,one:1`: kinds that are not named get 0. Throws InvalidInput for an unknown or
/// repeated kind, for a weight that is no number from 0 to 1000, and when no length of a query
/// could be drawn.
[[nodiscard]] LengthWeights length_weights_from(std::string_view text);
[[nodiscard]] std::string to_string(const LengthWeights& weights);

// Inside rc::gen::exec only: these draw from RapidCheck.

/// The kind that decides over all lengths of a case, as often as its weight says; nullptr: queries
/// and keys get lengths of their own, by draw_length.
[[nodiscard]] const LengthKind* draw_kind_of_case(const LengthWeights& weights);
/// Every order of magnitude from `least` to `most`, beside powers of two and edges of tiles as
/// often as anywhere.
[[nodiscard]] std::int64_t draw_magnitude(std::int64_t least, std::int64_t most, std::int64_t tile);
[[nodiscard]] std::int64_t draw_many_tiles(std::int64_t tile, std::int64_t max_len);
/// A length of at most max_len, drawn around `tile`, of the kinds that are not of a case. Never 0
/// unless `weights.zero` is positive.
[[nodiscard]] std::int64_t draw_length(const LengthWeights& weights, std::int64_t tile,
                                       std::int64_t max_len);

}  // namespace attest
