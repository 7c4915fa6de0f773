#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/attention/mask.hpp"

namespace attest {

/// Maximum of two scores that keeps NaN: a row that sees a NaN must end as NaN, and a block whose
/// only score is NaN must not look empty.
[[nodiscard]] constexpr float maximum(float a, float b) {
  const bool b_is_nan = b != b;
  return b > a || b_is_nan ? b : a;  // once a is NaN, no comparison is true and it stays
}

/// Largest score, NaN if any is; -inf for none.
[[nodiscard]] float maximum(std::span<const float> scores);

/// Writes o = acc / l (one division an element, relative error u = 2^-24) and returns the natural
/// log-sum-exp m + ln l. l = 0 means that no key was visible: o is 0 and the result -inf. NaN in l
/// or acc stays.
[[nodiscard]] float finish_row(float m, float l, std::span<const float> acc, std::span<float> o);

/// State of one query row between key blocks, in fp32 [Milakov and Gimelshein 2018; FA2 Alg. 1].
/// After any sequence of update and merge over keys J, in any split and order, up to rounding: m =
/// max s_j (exact), l = sum e^(s_j - m), acc = sum e^(s_j - m) v_j over j in J.
struct OnlineState {
  float m = -std::numeric_limits<float>::infinity();
  float l = 0;
  std::vector<float> acc;  ///< head_dim elements; empty when only m and l are wanted

  OnlineState() = default;
  explicit OnlineState(std::int64_t head_dim);

  /// Adds a block of keys: their scaled scores and their value rows, row j at values + j *
  /// acc.size() (nullptr when acc is empty). A score of -inf is an invisible key: its value row is
  /// not read. An empty block, or one of -inf only, changes nothing.
  /// `factors`: by which weights enter acc, and not l, one a key; null: 1.
  void update(std::span<const float> scores, const float* values, const float* factors = nullptr);

  /// Adds the keys of another partial result [claims O6]; an empty one changes nothing.
  void merge(const OnlineState& other);

  /// O into o [head_dim], and the LSE (natural log).
  [[nodiscard]] float finish(std::span<float> o) const { return finish_row(m, l, acc, o); }

 private:
  /// Raises m to at least `candidate`, l and acc with it. False when m is still -inf: no key has
  /// been seen at all.
  [[nodiscard]] bool raise_maximum(float candidate);
};

/// Part `index` of `splits` near-equal parts of [0, key_len), each a whole number of key tiles but
/// the last: every part takes ceil(tiles / splits) tiles, so late parts may be empty.
[[nodiscard]] KeyRange split_range(std::int64_t key_len, std::int64_t key_tile, std::int64_t splits,
                                   std::int64_t index);

}  // namespace attest
