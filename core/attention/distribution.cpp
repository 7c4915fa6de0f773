#include "core/attention/distribution.hpp"

#include <algorithm>

namespace attest {
namespace {

void append_piece(std::int64_t length, std::int64_t pieces, std::int64_t piece,
                  std::vector<std::int64_t>& tokens) {
  const std::int64_t size = (length + pieces - 1) / pieces;
  const std::int64_t end = std::min(length, (piece + 1) * size);
  for (std::int64_t token = piece * size; token < end; ++token) tokens.push_back(token);
}

}  // namespace

std::vector<std::int64_t> tokens_of_rank(std::int64_t distribution, std::int64_t length,
                                         std::int64_t ranks, std::int64_t rank) {
  std::vector<std::int64_t> tokens;
  switch (distribution) {
    case Distribution::stripe:
      for (std::int64_t token = rank; token < length; token += ranks) tokens.push_back(token);
      break;
    case Distribution::zigzag:
      append_piece(length, 2 * ranks, rank, tokens);
      append_piece(length, 2 * ranks, 2 * ranks - 1 - rank, tokens);
      break;
    default:
      append_piece(length, ranks, rank, tokens);
  }
  return tokens;
}

std::int64_t most_tokens(std::int64_t length, std::int64_t ranks) {
  return 2 * ((length + 2 * ranks - 1) / (2 * ranks));
}

}  // namespace attest
