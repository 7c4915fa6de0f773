#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/attention/problem.hpp"
#include "core/inputs/safetensors.hpp"
#include "cpu_reference/answer.hpp"
#include "verify/judge/compare.hpp"

namespace attest {

/// Comparison of one output that another program computed with the exact answer.
struct GivenOutput {
  OutputIndex index{0};
  Comparison comparison{};
};

struct GivenOutputs {
  Problem problem;
  std::vector<GivenOutput> outputs;  ///< those in the file
  Answer answer;                     ///< of every row; empty where only some were compared
  std::int64_t rows = 0;             ///< compared

  [[nodiscard]] bool are_within() const;
  /// Some element of each output has a finite bound, or there is none.
  [[nodiscard]] bool are_decided() const;
};

/// Judges the outputs in a file by the bound of a fused kernel of which no more is known
/// (core/attention/fused_roundings.hpp). `q`, `k`, `v` [batch, heads, tokens, head_dim] give sizes
/// and element type; outputs are `o`, and `lse` [batch, query heads, tokens]; or, with `do`, and
/// `dlse` if there is one, any of `dq`, `dk` and `dv`: `o` and `lse` are then what the backward
/// pass was given, and where the file has none, those of an exact forward pass rounded once.
/// A forward pass may have `sinks` and `slopes` [query heads], a `bias` [batch or 1, query heads or
/// 1, queries, keys], and a `gate` and a `residual` shaped as O is. `question` is the rest of a
/// problem's text: mask, scale, window, softcap. With `rows` so many rows of the forward pass are
/// drawn by `seed` where it has more, and compared, besides the first ones that hold a NaN; 0: all.
/// With rounds_before_epilogue O may have been stored before its gate and its residual were
/// applied, and after each of them. Throws InvalidInput with one line.
[[nodiscard]] GivenOutputs judge_given_outputs(const Safetensors& file, const std::string& question,
                                               std::int64_t rows = 0, std::uint64_t seed = 0,
                                               bool rounds_before_epilogue = false);

}  // namespace attest
