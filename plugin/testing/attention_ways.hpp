// Attention on the CPU in as many ways as attest/plugin.h can declare. `honest/X` does something
// that it declares; `twin/X` does the same and does not declare it, or declares a shape and ignores
// it. tests/plugin_claims_test.cpp runs them.
//
// Legend: r the number that exponents are taken from, l the sum of weights, acc the sum of P V.
#include <attest/plugin.h>
#include <xmmintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace ways {

inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr std::int64_t tile = 8;
inline constexpr float ln2 = 0.693147181F;
inline constexpr double lag = 8;  // log2 units

enum class Reference { maximum, in_steps, voted };
enum class Ignores {
  nothing,
  window,
  softcap,
  lengths,
  padding,
  value_dim,
  no_queries,
  sinks,
  slopes,
  bias,
  prefix,
  documents,
  lists,
  dropout,
  gate,
  residual,
  epilogue_order,       ///< the gate multiplies the residual, too
  gate_head,            ///< a gate is that of the next head
  added_residual,       ///< that it has added it already
  empty_rows_residual,  ///< a row that sees no key is 0
};

/// Ways in which a kernel computes, right and wrong ones; its user_data.
struct Ways {
  bool turns_order = false;    ///< every second call walks the keys backwards
  float reciprocal_error = 0;  ///< of 1 / l, in a direction that hangs on l
  bool flushes = false;        ///< MXCSR's flush to zero during the call
  Reference reference = Reference::maximum;
  bool has_vector_path = false;  ///< four sums a dot product where rows are aligned to 16 bytes
  bool splits_by_batch = false;  ///< three splits of the keys of a request that is alone
  bool stores_partials_in_bf16 = false;  ///< three splits
  bool reads_tf32 = false;               ///< factors of both products
  bool writes_no_lse = false;
  bool empties_lse_of_nan = false;
  bool multiplies_hidden = false;  ///< a weight of 0 times the value of a hidden key
  bool checks_lone_strides = false;
  std::int64_t multiple = 1;  ///< of lengths
  Ignores ignores = Ignores::nothing;
};

inline const Ways& ways_of(const AttestProblem* problem) {
  return *static_cast<const Ways*>(problem->user_data);
}

/// To nearest, ties to even, with `bits` of the significand dropped.
inline float rounded(float x, int bits) {
  const auto word = std::bit_cast<std::uint32_t>(x);
  if (!std::isfinite(x)) return x;
  const std::uint32_t half = (1U << (bits - 1)) - 1 + (word >> bits & 1U);
  return std::bit_cast<float>((word + half) >> bits << bits);
}
inline constexpr int bf16_drops = 16, tf32_drops = 13;

inline float reciprocal(float l, float error) {
  const std::uint32_t mixed = std::bit_cast<std::uint32_t>(l) * 2654435761U;
  const float direction = static_cast<float>(mixed >> 8U) * 0x1p-23F - 1;
  return 1 / l * (1 + error * direction);
}

/// The tensors of a launch.
struct Tensors {
  explicit Tensors(const AttestRun& run)
      : q(*attest_tensor(&run, "q")),
        k(*attest_tensor(&run, "k")),
        v(*attest_tensor(&run, "v")),
        o(*attest_tensor(&run, "o")),
        lse(*attest_tensor(&run, "lse")),
        key_mask(attest_tensor(&run, "key_mask")) {}
  const AttestTensor &q, &k, &v, &o, &lse;
  const AttestTensor* key_mask;
};

/// The list of a query, and how many items it names.
struct List {
  const std::int32_t* items = nullptr;
  std::int32_t count = 0;
};

/// Modifications of scores, sums and weights of one head of one entry; null where the call has none
/// or the kernel ignores them.
struct Modifications {
  Modifications(const AttestRun& run, Ignores ignores, std::int64_t b, std::int64_t h)
      : entry(b), head(h) {
    const AttestProblem& p = *run.problem;
    const auto at = [&](const char* name, Ignores kind, std::int64_t of_entry,
                        std::int64_t of_head) {
      const AttestTensor* const tensor = ignores == kind ? nullptr : attest_tensor(&run, name);
      return tensor == nullptr ? nullptr
                               : static_cast<const char*>(tensor->data) +
                                     4 * attest_offset(tensor, of_entry, of_head, 0);
    };
    const auto floats = [](const char* data) { return reinterpret_cast<const float*>(data); };
    const auto ints = [](const char* data) { return reinterpret_cast<const std::int32_t*>(data); };
    sink = floats(at("sinks", Ignores::sinks, 0, h));
    slope = floats(at("slopes", Ignores::slopes, 0, h));
    bias = floats(at("bias", Ignores::bias, b, h));
    if (bias != nullptr) bias_row = attest_tensor(&run, "bias")->strides[2];
    const auto* const prefixes = ints(at("prefix_lengths", Ignores::prefix, 0, 0));
    if (prefixes != nullptr) prefix = prefixes[b];
    query_documents = ints(at("query_documents", Ignores::documents, b, 0));
    key_documents = ints(at("key_documents", Ignores::documents, b, 0));
    list_counts = ints(at("list_counts", Ignores::lists, b, 0));
    list_items = ints(at("list_items", Ignores::lists, b, 0));
    if (list_items != nullptr) list_room = attest_tensor(&run, "list_items")->strides[2];
    dropout = ignores == Ignores::dropout ? 0 : p.dropout;
  }
  std::int64_t entry, head;
  const float *sink, *slope, *bias;
  std::int64_t bias_row = 0, prefix = 0, list_room = 0;
  const std::int32_t *query_documents, *key_documents, *list_counts, *list_items;
  float dropout;

  [[nodiscard]] bool is_listed(const AttestProblem& p, std::int64_t i, std::int64_t j) const {
    if (list_items == nullptr) return true;
    const std::int32_t* const items = list_items + i / p.list_rows * list_room;
    return std::find(items, items + list_counts[i / p.list_rows], j / p.list_keys) !=
           items + list_counts[i / p.list_rows];
  }
};

/// A word of Philox4x32-10.
inline std::uint32_t philox_word(std::uint64_t key, const std::uint32_t (&at)[4], std::int64_t n) {
  std::uint32_t x[4] = {at[0], at[1], at[2], at[3]};
  auto low = static_cast<std::uint32_t>(key), high = static_cast<std::uint32_t>(key >> 32U);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * x[0],
                        b = std::uint64_t{0xCD9E8D57U} * x[2];
    const std::uint32_t next[4] = {
        static_cast<std::uint32_t>(b >> 32U) ^ x[1] ^ low, static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32U) ^ x[3] ^ high, static_cast<std::uint32_t>(a)};
    std::copy(next, next + 4, x);
    low += 0x9E3779B9U;
    high += 0xBB67AE85U;
  }
  return x[n];
}

/// Factor of a weight in O: 0 where dropout lets it fall.
inline float kept_factor(const AttestProblem& p, const Modifications& m, std::int64_t i,
                         std::int64_t j) {
  if (m.dropout == 0) return 1;
  const std::uint32_t at[4] = {static_cast<std::uint32_t>(j / 4), static_cast<std::uint32_t>(i),
                               static_cast<std::uint32_t>(m.entry * p.query_heads + m.head),
                               static_cast<std::uint32_t>(p.dropout_offset)};
  const double word = philox_word(static_cast<std::uint64_t>(p.dropout_seed), at, j % 4);
  return word < static_cast<double>(m.dropout) * 0x1p32 ? 0 : 1 / (1 - m.dropout);
}

/// One head of one entry, in elements.
struct Head {
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  float *o = nullptr, *lse = nullptr;
  std::int64_t q_row = 0, k_row = 0, v_row = 0, o_row = 0;
  const std::uint8_t* key_mask = nullptr;
  const float *gate = nullptr, *residual = nullptr;  ///< of columns as many as a row of O has
  Modifications modifications;
  std::int64_t queries = 0, keys = 0;
};

/// The key on query i's diagonal.
inline std::int64_t diagonal_of(const AttestProblem& p, const Head& head, std::int64_t i) {
  const bool is_top_left = p.mask == ATTEST_CAUSAL_TOP_LEFT || p.mask == ATTEST_WINDOW_TOP_LEFT;
  return is_top_left ? i : i + head.keys - head.queries;
}

inline bool sees(const AttestProblem& p, const Head& head, std::int64_t i, std::int64_t j) {
  const bool is_masked = head.key_mask != nullptr && head.key_mask[j] == 0;
  if (is_masked && ways_of(&p).ignores != Ignores::padding) return false;
  const Modifications& m = head.modifications;
  if (m.bias != nullptr && m.bias[i * m.bias_row + j] == -infinity) return false;
  if (m.key_documents != nullptr && m.key_documents[j] != m.query_documents[i]) return false;
  if (!m.is_listed(p, i, j)) return false;
  if (j < m.prefix) return true;
  const bool is_window = p.mask == ATTEST_WINDOW_TOP_LEFT || p.mask == ATTEST_WINDOW_BOTTOM_RIGHT;
  if (p.mask == ATTEST_NO_MASK || (is_window && ways_of(&p).ignores == Ignores::window))
    return true;
  const std::int64_t diagonal = diagonal_of(p, head, i);
  if (!is_window) return j <= diagonal;
  return (p.window_left < 0 || j >= diagonal - p.window_left) &&
         (p.window_right < 0 || j <= diagonal + p.window_right);
}

inline float dot(const Ways& ways, const float* a, const float* b, std::int64_t n) {
  const auto at = [&](const float* x, std::int64_t i) {
    return ways.reads_tf32 ? rounded(x[i], tf32_drops) : x[i];
  };
  const bool is_aligned =
      (reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b)) % 16 == 0;
  const std::int64_t lanes = ways.has_vector_path && is_aligned ? 4 : 1;
  float sums[4] = {0, 0, 0, 0};
  for (std::int64_t i = 0; i < n; ++i) sums[i % lanes] += at(a, i) * at(b, i);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

inline float score(const AttestProblem& p, const Head& head, std::int64_t i, std::int64_t j) {
  const Ways& ways = ways_of(&p);
  const Modifications& m = head.modifications;
  float s = p.scale * dot(ways, head.q + i * head.q_row, head.k + j * head.k_row, p.head_dim);
  if (p.softcap != 0 && ways.ignores != Ignores::softcap) s = p.softcap * std::tanh(s / p.softcap);
  if (m.slope != nullptr) {
    s -= *m.slope * static_cast<float>(std::abs(j - diagonal_of(p, head, i)));
  }
  return m.bias == nullptr ? s : s + m.bias[i * m.bias_row + j];
}

/// A row's sums over some of its keys.
struct State {
  float r = -infinity, l = 0;
  std::vector<float> acc;

  void move_to(float to) {
    const float c = r == -infinity ? 0 : std::exp(r - to);
    r = to;
    l *= c;
    for (float& x : acc) x *= c;
  }
};

/// Scores of one row and one tile; a hidden key has -infinity.
struct Scores {
  float values[tile];
  float factors[tile];  ///< of weights in O
  float largest = -infinity;
  bool sees_any = false;
};

/// The number for a row whose largest score so far is `m`.
inline float reference_of(Reference how, float m) {
  if (m == -infinity) return 0;  // only NaN: it arrives through the weights
  if (how != Reference::in_steps) return m;
  const float step = static_cast<float>(lag) * ln2;
  const float r = step * std::floor(m / step);
  return r <= m && m - r <= step ? r : m;
}

inline void add_tile(const Ways& ways, const Scores& s, const float* v, std::int64_t v_row,
                     std::int64_t count, State& state) {
  for (std::int64_t j = 0; j < count; ++j) {
    const bool is_hidden = s.values[j] == -infinity;
    if (is_hidden && !ways.multiplies_hidden) continue;
    const float w = is_hidden ? 0 : std::exp(s.values[j] - state.r);
    state.l += w;
    for (std::size_t d = 0; d < state.acc.size(); ++d) {
      const float x = v[j * v_row + static_cast<std::int64_t>(d)];
      const float kept = w * s.factors[j];
      state.acc[d] +=
          ways.reads_tf32 ? rounded(kept, tf32_drops) * rounded(x, tf32_drops) : kept * x;
    }
  }
}

/// Keys [begin, end) for rows [first, first + states.size()), which move their references together
/// where they vote.
inline void attend_part(const AttestProblem& p, const Head& head, std::int64_t first,
                        std::int64_t begin, std::int64_t end, bool backwards,
                        std::vector<State>& states) {
  const Ways& ways = ways_of(&p);
  const std::int64_t tiles = (end - begin + tile - 1) / tile;
  for (std::int64_t t = 0; t < tiles; ++t) {
    const std::int64_t at = begin + (backwards ? tiles - 1 - t : t) * tile;
    const std::int64_t count = std::min(tile, end - at);
    std::vector<Scores> scores(states.size());
    bool is_time = ways.reference != Reference::voted;
    for (std::size_t row = 0; row < states.size(); ++row) {
      const std::int64_t i = first + static_cast<std::int64_t>(row);
      Scores& s = scores[row];
      for (std::int64_t j = 0; j < count; ++j) {
        const bool is_seen = sees(p, head, i, at + j);
        s.values[j] = is_seen ? score(p, head, i, at + j) : -infinity;
        s.factors[j] = kept_factor(p, head.modifications, i, at + j);
        s.sees_any |= is_seen;
        s.largest = std::fmax(s.largest, s.values[j]);
      }
      const bool has_risen = s.largest > states[row].r + static_cast<float>(lag) * ln2;
      is_time |= s.sees_any && (states[row].r == -infinity || has_risen);
    }
    for (std::size_t row = 0; row < states.size(); ++row) {
      State& state = states[row];
      const Scores& s = scores[row];
      if (!s.sees_any && !ways.multiplies_hidden) continue;
      const float to = reference_of(ways.reference, std::fmax(s.largest, state.r));
      if (is_time && s.sees_any && to != state.r && !(to < state.r)) state.move_to(to);
      add_tile(ways, s, head.v + at * head.v_row, head.v_row, count, state);
    }
  }
}

/// Splits of one row into one, by their sums or, where the parts are finished, by their means.
inline State merged(const Ways& ways, std::vector<State> parts) {
  if (parts.size() == 1) return std::move(parts[0]);
  State all{.acc = std::vector<float>(parts[0].acc.size(), 0.0F)};
  for (const State& part : parts) all.r = std::fmax(all.r, part.r);
  for (State& part : parts) {
    if (part.r == -infinity) continue;
    const float w = std::exp(part.r - all.r);
    for (std::size_t d = 0; d < all.acc.size(); ++d) {
      const float mean = rounded(part.acc[d] / part.l, bf16_drops);
      all.acc[d] += ways.stores_partials_in_bf16 ? part.l * w * mean : w * part.acc[d];
    }
    all.l += part.l * w;
  }
  return all;
}

/// O of an element that is `a` without gate and residual.
inline float with_epilogue(const AttestProblem& p, const Head& head, std::int64_t i, std::int64_t d,
                           float a, bool is_empty) {
  const Ignores ignores = ways_of(&p).ignores;
  const std::int64_t at = i * p.value_dim + d;
  const float gate = head.gate == nullptr ? 1 : head.gate[at];
  if (head.residual == nullptr || (is_empty && ignores == Ignores::empty_rows_residual)) {
    return gate * a;
  }
  const float residual = head.residual[at];
  if (ignores == Ignores::epilogue_order) return gate * (a + residual);
  const float o = gate * a + residual;
  return ignores == Ignores::added_residual ? o + residual : o;
}

inline void attend_rows(const AttestProblem& p, const Head& head, std::int64_t first,
                        std::int64_t rows, bool backwards) {
  const Ways& ways = ways_of(&p);
  const bool is_split = ways.stores_partials_in_bf16 || (ways.splits_by_batch && p.batch == 1);
  const std::int64_t splits = is_split ? 3 : 1;
  const State none{.acc = std::vector<float>(static_cast<std::size_t>(p.value_dim), 0.0F)};
  std::vector<std::vector<State>> parts(static_cast<std::size_t>(rows));
  for (std::int64_t split = 0; split < splits; ++split) {
    std::vector<State> states(static_cast<std::size_t>(rows), none);
    attend_part(p, head, first, head.keys * split / splits, head.keys * (split + 1) / splits,
                backwards, states);
    for (std::size_t row = 0; row < states.size(); ++row)
      parts[row].push_back(std::move(states[row]));
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    State state = merged(ways, std::move(parts[static_cast<std::size_t>(row)]));
    const float* const sink = head.modifications.sink;
    if (sink != nullptr && *sink != -infinity) {
      if (*sink > state.r) state.move_to(*sink);
      state.l += std::exp(*sink - state.r);
    }
    float* const o = head.o + (first + row) * head.o_row;
    const bool is_empty = state.r == -infinity;
    for (std::int64_t d = 0; d < p.value_dim; ++d) {
      const float sum = state.acc[static_cast<std::size_t>(d)];
      const bool is_lost = ways.ignores == Ignores::value_dim && d >= p.head_dim;
      if (is_empty || is_lost) {
        o[d] = 0;
      } else if (ways.reciprocal_error > 0) {
        o[d] = sum * reciprocal(state.l, ways.reciprocal_error);
      } else {
        o[d] = sum / state.l;
      }
      o[d] = with_epilogue(p, head, first + row, d, o[d], is_empty);
    }
    if (ways.writes_no_lse) continue;
    const bool is_nan = std::isnan(state.l) && ways.empties_lse_of_nan;
    head.lse[first + row] = is_empty || is_nan ? -infinity : state.r + std::log(state.l);
  }
}

inline void attend_head(const AttestRun& run, std::int64_t b, std::int64_t h, bool backwards) {
  const AttestProblem& p = *run.problem;
  const Ways& ways = ways_of(&p);
  const Tensors t(run);
  const std::int64_t kv = h / (p.query_heads / p.kv_heads);
  const auto begin = [&](const AttestTensor& tensor, std::int64_t head) {
    return static_cast<float*>(tensor.data) + attest_offset(&tensor, b, head, 0);
  };
  const auto length = [&](const AttestTensor& tensor) {
    return tensor.starts == nullptr ? tensor.shape[2] : tensor.starts[b + 1] - tensor.starts[b];
  };
  const auto operand = [&](const char* name, Ignores kind, std::int64_t of_head) -> const float* {
    const AttestTensor* const tensor = ways.ignores == kind ? nullptr : attest_tensor(&run, name);
    return tensor == nullptr ? nullptr : begin(*tensor, of_head);
  };
  const bool takes_next = ways.ignores == Ignores::gate_head;
  Head head{.q = begin(t.q, h),
            .k = begin(t.k, kv),
            .v = begin(t.v, kv),
            .o = begin(t.o, h),
            .lse = t.lse.data == nullptr ? nullptr : begin(t.lse, h),
            .q_row = t.q.strides[2],
            .k_row = t.k.strides[2],
            .v_row = t.v.strides[2],
            .o_row = t.o.strides[2],
            .key_mask = t.key_mask == nullptr ? nullptr
                                              : static_cast<const std::uint8_t*>(t.key_mask->data) +
                                                    attest_offset(t.key_mask, b, 0, 0),
            .gate = operand("gate", Ignores::gate, takes_next ? (h + 1) % p.query_heads : h),
            .residual = operand("residual", Ignores::residual, h),
            .modifications = Modifications(run, ways.ignores, b, h),
            .queries = length(t.q),
            .keys = length(t.k)};
  if (t.q.starts != nullptr && ways.ignores == Ignores::lengths) {
    head.keys = std::min(head.keys, head.queries);
  }
  const std::int64_t together = ways.reference == Reference::voted ? 2 : 1;
  for (std::int64_t first = 0; first < head.queries; first += together) {
    attend_rows(p, head, first, std::min(together, head.queries - first), backwards);
  }
}

}  // namespace ways
