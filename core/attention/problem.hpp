#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/codes.hpp"
#include "core/attention/element_type.hpp"
#include "core/attention/mask.hpp"
#include "core/base/host_device.hpp"

namespace attest {

/// Storage of V.
enum class Values : int {
  own,     ///< a tensor of its own
  in_keys  ///< the first columns of K: multi-head latent attention, whose cache is one vector a key
};

/// Gradient with respect to LSE in backward_operation, besides that with respect to O: of a loss
/// that LSE enters, or of partial results that are merged by it.
enum class LseGradient : int {
  zero,  ///< it is 0, and there is no tensor of it
  given
};

struct Operation;                          // core/attention/operation.hpp
extern const Operation forward_operation;  // core/operations/forward.hpp

/// Definition of the answer. O = softmax(scale * Q K^T over the visible keys) V and LSE = ln sum
/// exp(scale * q.k). Q [batch, query_heads, query_len, head_dim], K [batch, kv_heads, key_len,
/// head_dim], V [batch, kv_heads, key_len, output_dim()], O [batch, query_heads, query_len,
/// output_dim()], LSE [batch, query_heads, query_len] in fp32, natural log. A row that sees no key
/// has O = 0 and LSE = -infinity.
///
/// With values in keys V is K's first output_dim() columns, in memory too: it is no tensor of its
/// own. With a softcap c the scores are c tanh(scale q.k / c). With a length_seed the entries of
/// the batch have lengths of their own: query_len and key_len are the largest, rows past an entry's
/// length do not exist, and in memory the entries lie packed one after the other (Arguments). With
/// a padding_seed some keys of every entry are hidden from all of its queries. Seeds stand for the
/// lengths and the padding themselves so that a Problem stays a small value; both are pure
/// functions of it.
struct Problem {
  const Operation* operation = &forward_operation;  ///< what is computed; never null
  std::int64_t batch = 1;
  std::int64_t query_heads = 1;
  std::int64_t kv_heads = 1;   ///< divides query_heads
  std::int64_t query_len = 1;  ///< 0 is allowed: there are no rows
  std::int64_t key_len = 1;    ///< 0 is allowed: every row is then empty
  std::int64_t head_dim = 64;
  std::int64_t value_dim = 0;  ///< columns of V and O; 0: head_dim
  Values values = Values::own;
  Mask mask = Mask::none;
  Window window = {};  ///< of window masks, else unset
  ElementType element_type = ElementType::fp32;
  float scale = 0.125F;            ///< exactly this fp32 value multiplies the dot products
  float softcap = 0.0F;            ///< c; 0: none
  std::uint64_t length_seed = 0;   ///< 0: all entries have the full lengths
  std::uint64_t padding_seed = 0;  ///< 0: no key is hidden by padding
  std::int64_t shared_keys = 0;  ///< the first ones, which are the same in all entries of the batch
  std::int64_t parts = 1;        ///< partial results that combine_operation merges
  ElementType partial_type = ElementType::fp32;  ///< format of their O_p
  LseGradient lse_gradient = LseGradient::zero;  ///< in backward_operation: dLSE
  Codes codes = {};  ///< of Q, K and V in quantised_operation; element_type is then O's format

  friend bool operator==(const Problem&, const Problem&) = default;

  ATTEST_HOST_DEVICE constexpr std::int64_t kv_head_of(std::int64_t query_head) const {
    return query_head / (query_heads / kv_heads);
  }
  ATTEST_HOST_DEVICE constexpr std::int64_t output_dim() const {
    return value_dim == 0 ? head_dim : value_dim;
  }
  ATTEST_HOST_DEVICE constexpr std::int64_t query_len_of(std::int64_t entry) const {
    return drawn_length(length_seed, 2 * static_cast<std::uint64_t>(entry), query_len);
  }
  /// Keys of an entry, at most key_len. Where query_len equals key_len, odd seeds give each entry
  /// as many keys as queries: self-attention.
  ATTEST_HOST_DEVICE constexpr std::int64_t key_len_of(std::int64_t entry) const {
    const bool like_queries = query_len == key_len && length_seed % 2 == 1;
    const std::uint64_t draw = 2 * static_cast<std::uint64_t>(entry) + (like_queries ? 0 : 1);
    return drawn_length(length_seed, draw, key_len);
  }
  /// True if padding hides the key from all queries of the entry. Hidden are keys at the end, at
  /// the start, scattered ones, none or all.
  ATTEST_HOST_DEVICE constexpr bool is_padded(std::int64_t entry, std::int64_t key) const {
    if (padding_seed == 0) return false;
    const std::uint64_t bits = mixed(padding_seed, static_cast<std::uint64_t>(entry));
    const auto cut = static_cast<std::int64_t>((bits >> 8U) %
                                               (static_cast<std::uint64_t>(key_len_of(entry)) + 1));
    switch (bits % 8) {
      case 0:
      case 1:
        return key >= cut;
      case 2:
      case 3:
        return key < cut;
      case 4:
      case 5:
        return mixed(bits, static_cast<std::uint64_t>(key)) % 4 == 0;
      case 6:
        return true;
      default:
        return false;
    }
  }
  /// Keys that the mask leaves to a query, of which padding may hide some. Empty past the entry's
  /// length.
  ATTEST_HOST_DEVICE constexpr KeyRange visible_range(std::int64_t entry,
                                                      std::int64_t query) const {
    const std::int64_t queries = query_len_of(entry);
    if (query >= queries) return {};
    return attest::visible_range(mask, window, queries, key_len_of(entry), query);
  }
  ATTEST_HOST_DEVICE constexpr bool sees(std::int64_t entry, std::int64_t query,
                                         std::int64_t key) const {
    return visible_range(entry, query).holds(key) && !is_padded(entry, key);
  }
  /// Number of keys that a query sees, for problems without window, lengths or padding: the first
  /// ones.
  ATTEST_HOST_DEVICE constexpr std::int64_t visible_keys(std::int64_t query) const {
    return visible_key_count(mask, query_len, key_len, query);
  }
  /// Query rows of all heads of all entries, each entry at its full length.
  ATTEST_HOST_DEVICE constexpr std::int64_t rows() const { return batch * query_heads * query_len; }

 private:
  /// SplitMix64 of a counter [Steele, Lea, Flood, OOPSLA 2014].
  ATTEST_HOST_DEVICE static constexpr std::uint64_t mixed(std::uint64_t seed,
                                                          std::uint64_t counter) {
    std::uint64_t x = seed + (counter + 1) * 0x9e3779b97f4a7c15ULL;
    x = (x ^ x >> 30U) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27U) * 0x94d049bb133111ebULL;
    return x ^ x >> 31U;
  }
  /// Length from 0 to `largest`, drawn by seed and counter: often 0, 1 and the largest, where index
  /// errors live. Seed 0: the largest.
  ATTEST_HOST_DEVICE static constexpr std::int64_t drawn_length(std::uint64_t seed,
                                                                std::uint64_t counter,
                                                                std::int64_t largest) {
    if (seed == 0 || largest == 0) return largest;
    const std::uint64_t bits = mixed(seed, counter);
    if (bits % 8 == 0) return 0;
    if (bits % 8 == 1) return 1;
    if (bits % 8 == 2) return largest;
    return 1 + static_cast<std::int64_t>((bits >> 8U) % static_cast<std::uint64_t>(largest));
  }
};

using Shape = std::array<std::int64_t, 4>;
[[nodiscard]] Shape query_shape(const Problem& problem);
[[nodiscard]] Shape key_shape(const Problem& problem);
[[nodiscard]] Shape value_shape(const Problem& problem);
[[nodiscard]] Shape output_shape(const Problem& problem);
[[nodiscard]] Shape lse_shape(const Problem& problem);  ///< last dimension 1

/// Keys that row (entry, query) sees: those of its range that padding does not hide.
[[nodiscard]] std::int64_t visible_key_count(const Problem& problem, std::int64_t entry,
                                             std::int64_t query);
/// The keys that a query row of an entry sees, ascending.
[[nodiscard]] std::vector<std::int64_t> visible_keys_of(const Problem& problem, std::int64_t entry,
                                                        std::int64_t query);
/// First row of every entry in packed tensors, [batch + 1]: cu_seqlens.
[[nodiscard]] std::vector<std::int32_t> query_starts(const Problem& problem);
[[nodiscard]] std::vector<std::int32_t> key_starts(const Problem& problem);

/// fp32 nearest to 1 / sqrt(head_dim).
[[nodiscard]] float default_scale(std::int64_t head_dim);

/// 2 * (head_dim + output_dim()) per head and visible (query, key) pair: two products. Softmax is
/// not counted.
[[nodiscard]] double forward_flops(const Problem& problem);

/// Short text, e.g. `b1 h4/2 q33 k65 d64 causal_top_left fp32`; what has its default is left out
/// from the scale on: `b3 h2/2 q9 k9 d64 window_top_left fp16 left4 right0 dv32 scale1 softcap30
/// lengths7 padding9`.
[[nodiscard]] std::string to_string(const Problem& problem);

/// Problem of a text, inverse of to_string(). Parts stand in any order, separated by spaces or
/// commas; those left out keep the defaults of Problem, but kv_heads and key_len become query_heads
/// and query_len, and `h8` means `h8/8`. `n512` means `q512 k512`. Throws InvalidInput that names
/// the faulty part and what is allowed.
[[nodiscard]] Problem problem_from_string(std::string_view text);

/// The element type that the text of a problem names; nothing where it names none.
[[nodiscard]] std::optional<ElementType> named_element_type(std::string_view problem);

/// Throws InvalidInput naming the field, the value and the allowed range.
void validate(const Problem& problem);

}  // namespace attest
