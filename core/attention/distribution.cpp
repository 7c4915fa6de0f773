#include "core/attention/distribution.hpp"

#include <algorithm>

namespace attest {
namespace {

void append_piece(std::int64_t length, std::int64_t pieces, std::int64_t piece,
                  std::vector<TokenPiece>& list) {
  const std::int64_t size = (length + pieces - 1) / pieces;
  const std::int64_t first = piece * size, end = std::min(length, first + size);
  if (first < end) list.push_back({.first = first, .count = end - first});
}

}  // namespace

std::vector<TokenPiece> pieces_of_rank(std::int64_t distribution, std::int64_t length,
                                       std::int64_t ranks, std::int64_t rank) {
  std::vector<TokenPiece> list;
  switch (distribution) {
    case Distribution::stripe:
      if (rank < length) list.push_back({rank, (length - rank + ranks - 1) / ranks, ranks});
      break;
    case Distribution::zigzag:
      append_piece(length, 2 * ranks, rank, list);
      append_piece(length, 2 * ranks, 2 * ranks - 1 - rank, list);
      break;
    default:
      append_piece(length, ranks, rank, list);
  }
  return list;
}

std::vector<std::int64_t> tokens_of_rank(std::int64_t distribution, std::int64_t length,
                                         std::int64_t ranks, std::int64_t rank) {
  std::vector<std::int64_t> tokens;
  for (const TokenPiece& piece : pieces_of_rank(distribution, length, ranks, rank)) {
    for (std::int64_t i = 0; i < piece.count; ++i) {
      tokens.push_back(piece.first + i * piece.stride);
    }
  }
  return tokens;
}

std::int64_t most_tokens(std::int64_t length, std::int64_t ranks) {
  return 2 * ((length + 2 * ranks - 1) / (2 * ranks));
}

}  // namespace attest
