#include "cpu_reference/forward/online_softmax.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "cpu_reference/forward/online_softmax_rows.hpp"

namespace attest {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

}  // namespace

float maximum(std::span<const float> scores) {
  float result = minus_infinity;
  for (const float score : scores) result = maximum(result, score);
  return result;
}

float finish_row(float m, float l, std::span<const float> acc, std::span<float> o) {
  if (l == 0.0F) {
    std::fill(o.begin(), o.end(), 0.0F);
    return minus_infinity;
  }
  for (std::size_t c = 0; c < o.size(); ++c) o[c] = acc[c] / l;
  return m + std::log(l);
}

OnlineState::OnlineState(std::int64_t head_dim) : acc(static_cast<std::size_t>(head_dim), 0.0F) {}

bool OnlineState::raise_maximum(float candidate) {
  const float raised = maximum(m, candidate);
  // The one place where -inf - -inf could arise. m can stay at -inf only while nothing has been
  // seen; then there is nothing to rescale, and the difference would make it NaN for good.
  if (raised == minus_infinity) return false;
  const float factor =
      std::exp(m - raised);  // 0 when this is the first key seen, 1 when m did not move
  m = raised;
  l *= factor;
  for (float& a : acc) a *= factor;
  return true;
}

void OnlineState::update(std::span<const float> scores, const float* values, const float* factors) {
  if (!raise_maximum(maximum(scores))) return;
  const auto row_size = static_cast<std::int64_t>(acc.size());
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (scores[j] == minus_infinity) continue;
    float weight = std::exp(scores[j] - m);
    l += weight;
    if (acc.empty()) continue;
    if (factors != nullptr) weight *= factors[j];
    multiply_accumulate({&weight, 1}, values + static_cast<std::int64_t>(j) * row_size, row_size,
                        acc);
  }
}

void OnlineState::merge(const OnlineState& other) {
  if (!raise_maximum(other.m)) return;
  const float weight = std::exp(other.m - m);
  l += weight * other.l;
  multiply_accumulate({&weight, 1}, other.acc.data(), 0, acc);
}

KeyRange split_range(std::int64_t key_len, std::int64_t key_tile, std::int64_t splits,
                     std::int64_t index) {
  const std::int64_t tiles = (key_len + key_tile - 1) / key_tile;
  const std::int64_t part = (tiles + splits - 1) / splits * key_tile;
  return {std::min(index * part, key_len), std::min((index + 1) * part, key_len)};
}

}  // namespace attest
