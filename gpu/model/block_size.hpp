#pragma once

#include <cstdint>
#include <optional>

namespace attest {

// The largest tiles that a budget of shared memory allows [S4 exercise 1]: maximise Br * Bc.

/// Content of a block's shared memory. The document's rule is the default: Q, one tile of K and V,
/// and scores in the format of the elements; O is left out.
struct BlockLayout {
  std::int64_t head_dim = 64;
  std::int64_t element_bytes = 2;
  std::int64_t stages = 1;            ///< tiles of K and V
  std::int64_t score_bytes = 2;       ///< of an element of S; 0: S is in registers
  std::int64_t output_bytes = 0;      ///< of an element of O; 0: O is in registers
  std::int64_t statistics_bytes = 0;  ///< of a row; 8: m and l in fp32
};

/// Br query rows and Bc keys.
struct BlockSize {
  std::int64_t query_tile = 0, key_tile = 0;

  friend bool operator==(const BlockSize&, const BlockSize&) = default;
};

/// e (Br D + 2 stages Bc D) + score_bytes Br Bc + output_bytes Br D + statistics_bytes Br.
[[nodiscard]] std::int64_t shared_bytes(const BlockLayout& layout, const BlockSize& size);

enum class BlockSizeRule : int { integers, multiples_of_16, squares_of_16, powers_of_two };

/// The pair with the largest product that the rule and the budget allow. Of equal products the one
/// that takes fewest bytes, of these the most square one, of these the one with fewer keys. Nothing
/// when no pair fits.
[[nodiscard]] std::optional<BlockSize> largest_block(const BlockLayout& layout,
                                                     std::int64_t budget_bytes, BlockSizeRule rule);

struct ContinuousBlock {
  double query_tile = 0, key_tile = 0;
};
/// The optimum over real numbers, of the default rule with any element size and score_bytes equal
/// to it: Bc = sqrt(D^2 + M / 2) - D, Br = 2 Bc, M = budget / element_bytes.
[[nodiscard]] ContinuousBlock continuous_block(std::int64_t head_dim, std::int64_t element_bytes,
                                               std::int64_t budget_bytes);

/// The rule of [FA1 Alg. 1]: Bc = ceil(M / 4 D), Br = min(Bc, D).
[[nodiscard]] BlockSize flash_attention_1_block(std::int64_t head_dim, std::int64_t element_bytes,
                                                std::int64_t budget_bytes);

}  // namespace attest
