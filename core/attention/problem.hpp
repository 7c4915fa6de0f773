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

/// A learned sink of each query head [Xiao et al., arXiv 2309.17453; gpt-oss].
enum class Sinks : int {
  none,
  given  ///< a tensor, one number a query head
};

/// Slopes of ALiBi [Press et al., arXiv 2108.12409].
enum class Slopes : int {
  none,
  given  ///< a tensor, one number a query head
};

/// A number that is added to each score, and which entries and heads share it.
enum class Bias : int {
  none,
  full,     ///< every entry and every query head has its own: [batch, query_heads, queries, keys]
  heads,    ///< all entries share it: [1, query_heads, queries, keys]
  entries,  ///< all heads of an entry share it: [batch, 1, queries, keys]
  shared    ///< [1, 1, queries, keys]
};

/// A number that each element of O is multiplied by: gated attention [Qiu et al., arXiv 2505.06708;
/// Qwen3-Next].
enum class OutputGate : int {
  none,
  given  ///< a tensor like O
};

/// A number that is added to each element of O, after the gate.
enum class Residual : int {
  none,
  given  ///< a tensor like O
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
///
/// Score modifications, of forward_operation and, as far as it has them
/// (core/operations/backward.hpp), of backward_operation, in the order in which they apply: the
/// softcap, then ALiBi, then a bias. With slopes [query_heads] the score of query i and key j
/// becomes s - slope_h |distance(i, j)|, the distance being j less the key on i's diagonal, in
/// keys: the diagonal of the mask's alignment, and without a mask that of bottom right, as in
/// FlashAttention. With a bias [batch or 1, query_heads or 1, query_len, key_len] its element is
/// added; -infinity hides the key from the row, as engines use it. The numbers of both are fp32, in
/// units of natural logarithms (the scores'), and a slope or bias of 0 changes nothing. NaN and
/// +infinity are no numbers for them.
///
/// With sinks [query_heads] in fp32 the sum of a row has one more term, e^sink, without a value: it
/// is in LSE too, LSE = ln(e^sink + sum e^s), and p_j = e^(s_j - LSE) sum to less than 1. A row
/// that sees no key then has O = 0 and LSE = sink. A sink of -infinity is none; NaN and +infinity
/// are no sinks.
///
/// With a dropout p each weight falls with probability p and is multiplied by 1 / (1 - p) where it
/// does not: O = sum d_j p_j v_j, d_j being 0 or 1 / (1 - p). LSE and p_j are those without
/// dropout. Which weights fall is a function of dropout_seed, dropout_offset, entry, query head,
/// query and key (keeps_weight in core/attention/dropout.hpp). p = 1 gives O = 0.
///
/// With a prefix_seed all queries of an entry see its first keys, a drawn number of them, as well
/// as what a causal mask leaves them. With a document_seed the keys of an entry are cut into
/// documents, and a query sees keys of its own document alone.
///
/// With a list_seed a query sees, of the keys that all of this leaves it, those alone that its list
/// names: block-sparse masks, trees, and the keys that an indexer chose. Queries [i list_rows, (i +
/// 1) list_rows) of an entry share its list i, as all heads do; an item j of a list is the keys [j
/// list_keys, (j + 1) list_keys). A list names an item at most once, in any order, or none.
///
/// Epilogues, of forward_operation. With a gate and a residual, both like O in shape and format, O
/// = G A + R element by element, A being the O of all that stands above; without a gate G = 1,
/// without a residual R = 0. G is the factor itself: whoever gates with a sigmoid has applied it.
/// LSE is that without. A row that sees no key has A = 0, so that O = R, or 0. An element of O is
/// no number where its own G or R is NaN or infinite, and no other element is.
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
  std::int64_t top_k = 1;  ///< keys that select_operation chooses for a query; 0 is allowed
  LseGradient lse_gradient = LseGradient::zero;  ///< in backward_operation: dLSE
  Codes codes = {};  ///< of Q, K and V in quantised_operation; element_type is then O's format
  Sinks sinks = Sinks::none;     ///< a score modification, as are the fields that follow
  Slopes slopes = Slopes::none;  ///< of ALiBi
  Bias bias = Bias::none;
  std::uint64_t prefix_seed = 0;              ///< 0: no prefix that all queries see
  std::uint64_t document_seed = 0;            ///< 0: an entry is one document
  std::uint64_t list_seed = 0;                ///< 0: no lists of keys
  std::int64_t list_rows = 1, list_keys = 1;  ///< queries that share a list, keys of an item
  float dropout = 0.0F;                       ///< probability of a weight to fall; 0: none does
  std::int64_t dropout_seed = 0, dropout_offset = 0;  ///< of the generator that says which fall
  OutputGate gate = OutputGate::none;                 ///< an epilogue, as is the next
  Residual residual = Residual::none;

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
  /// Keys that the mask leaves to a query, of which padding and lists may hide some. Empty past the
  /// entry's length.
  ATTEST_HOST_DEVICE constexpr KeyRange visible_range(std::int64_t entry,
                                                      std::int64_t query) const {
    const std::int64_t queries = query_len_of(entry);
    if (query >= queries) return {};
    const std::int64_t keys = key_len_of(entry);
    KeyRange range = attest::visible_range(mask, window, queries, keys, query);
    if (prefix_seed != 0) range.end = larger(range.end, prefix_len_of(entry));
    if (document_seed == 0) return range;
    const KeyRange document = document_of(entry, diagonal_key(mask, queries, keys, query));
    range.end = smaller(range.end, document.end);
    range.begin = smaller(larger(range.begin, document.begin), range.end);
    return range;
  }
  /// Keys at the start of an entry that all of its queries see, on top of those that the mask
  /// leaves them; 0 without a prefix.
  ATTEST_HOST_DEVICE constexpr std::int64_t prefix_len_of(std::int64_t entry) const {
    if (prefix_seed == 0) return 0;
    return drawn_length(prefix_seed, static_cast<std::uint64_t>(entry), key_len_of(entry));
  }
  /// Keys of the document that a key of the entry belongs to. A query belongs to the document of
  /// the key on its diagonal, or of the nearest key there is, and sees keys of that document alone.
  /// One document: all keys.
  ATTEST_HOST_DEVICE constexpr KeyRange document_of(std::int64_t entry, std::int64_t key) const {
    KeyRange document{0, key_len_of(entry)};
    if (document_seed == 0 || document.end == 0) return document;
    key = larger(smaller(key, document.end - 1), 0);
    const std::int64_t cuts = document_cuts(entry);
    for (std::int64_t i = 0; i < cuts; ++i) {
      const std::int64_t cut = document_cut(entry, i);
      if (cut <= key) {
        document.begin = larger(document.begin, cut);
      } else {
        document.end = smaller(document.end, cut);
      }
    }
    return document;
  }
  /// Number of the document of a key: of an entry's documents, ascending, some may have no key.
  ATTEST_HOST_DEVICE constexpr std::int64_t document_number(std::int64_t entry,
                                                            std::int64_t key) const {
    std::int64_t number = 0;
    const std::int64_t begin = document_of(entry, key).begin;
    for (std::int64_t i = 0; document_seed != 0 && i < document_cuts(entry); ++i) {
      number += document_cut(entry, i) <= begin && document_cut(entry, i) > 0 ? 1 : 0;
    }
    return number;
  }
  /// Lists of an entry, for as many queries as the largest has.
  ATTEST_HOST_DEVICE constexpr std::int64_t lists() const {
    return list_seed == 0 ? 0 : (query_len + list_rows - 1) / list_rows;
  }
  /// Items that a list of an entry may name: all of them hold a key.
  ATTEST_HOST_DEVICE constexpr std::int64_t list_items(std::int64_t entry) const {
    return (key_len_of(entry) + list_keys - 1) / list_keys;
  }
  /// True if list `list` of the entry names the item. A list names no item, all of them, the first
  /// and the last, or each by chance. With a list_seed of n 2^32 all lists name each item by
  /// chance, one in n: about as many each, as indexers choose.
  ATTEST_HOST_DEVICE constexpr bool names_item(std::int64_t entry, std::int64_t list,
                                               std::int64_t item) const {
    const std::uint64_t of_entry = mixed(list_seed, static_cast<std::uint64_t>(entry));
    const std::uint64_t bits = mixed(of_entry, static_cast<std::uint64_t>(list));
    const std::uint64_t one_in = list_seed >> 32U;
    if (one_in != 0 && list_seed == one_in << 32U) {
      return mixed(bits, static_cast<std::uint64_t>(item)) % one_in == 0;
    }
    switch (bits % 8) {
      case 0:
        return false;
      case 1:
        return true;
      case 2:
        return item == 0 || item == list_items(entry) - 1;
      default:  // one in 2, 4, 8, 16, 32
        return mixed(bits, static_cast<std::uint64_t>(item)) % (1U << (bits % 8 - 2)) == 0;
    }
  }
  /// True if lists, where there are some, leave the key to the query.
  ATTEST_HOST_DEVICE constexpr bool is_listed(std::int64_t entry, std::int64_t query,
                                              std::int64_t key) const {
    return list_seed == 0 || names_item(entry, query / list_rows, key / list_keys);
  }
  ATTEST_HOST_DEVICE constexpr bool sees(std::int64_t entry, std::int64_t query,
                                         std::int64_t key) const {
    return visible_range(entry, query).holds(key) && !is_padded(entry, key) &&
           is_listed(entry, query, key);
  }
  /// Number of keys that a query sees, for problems without window, lengths, padding or lists: the
  /// first ones.
  ATTEST_HOST_DEVICE constexpr std::int64_t visible_keys(std::int64_t query) const {
    return visible_key_count(mask, query_len, key_len, query);
  }
  /// Query rows of all heads of all entries, each entry at its full length.
  ATTEST_HOST_DEVICE constexpr std::int64_t rows() const { return batch * query_heads * query_len; }

 private:
  ATTEST_HOST_DEVICE static constexpr std::int64_t larger(std::int64_t a, std::int64_t b) {
    return a < b ? b : a;
  }
  ATTEST_HOST_DEVICE static constexpr std::int64_t smaller(std::int64_t a, std::int64_t b) {
    return b < a ? b : a;
  }
  /// Places at which an entry is cut into documents, in no order: none to six.
  ATTEST_HOST_DEVICE constexpr std::int64_t document_cuts(std::int64_t entry) const {
    return static_cast<std::int64_t>(mixed(document_seed, static_cast<std::uint64_t>(entry)) % 7);
  }
  ATTEST_HOST_DEVICE constexpr std::int64_t document_cut(std::int64_t entry,
                                                         std::int64_t index) const {
    const std::uint64_t bits = mixed(document_seed, static_cast<std::uint64_t>(entry));
    const auto most = static_cast<std::uint64_t>(key_len_of(entry)) + 1;
    return static_cast<std::int64_t>((mixed(bits, static_cast<std::uint64_t>(index)) >> 8U) % most);
  }
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

/// Makes it a problem without lists of keys.
void take_away_lists(Problem& problem);
/// Makes every entry as long as the longest, and leaves its queries all keys that the mask does: no
/// lengths, padding, prefixes, documents and lists.
void take_away_seeds(Problem& problem);

/// True if scores, sums, weights or O itself are not those of plain attention: the softcap apart,
/// which is a function of each score alone.
[[nodiscard]] bool has_modifications(const Problem& problem);
/// True if O has a gate or a residual.
[[nodiscard]] bool has_epilogue(const Problem& problem);
/// Makes O that of attention itself.
void take_away_epilogue(Problem& problem);

using Shape = std::array<std::int64_t, 4>;
[[nodiscard]] Shape query_shape(const Problem& problem);
[[nodiscard]] Shape key_shape(const Problem& problem);
[[nodiscard]] Shape value_shape(const Problem& problem);
[[nodiscard]] Shape output_shape(const Problem& problem);
[[nodiscard]] Shape lse_shape(const Problem& problem);  ///< last dimension 1

/// Keys that row (entry, query) sees: those of its range that neither padding nor a list hides.
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
