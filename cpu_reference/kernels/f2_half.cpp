// F2, FlashAttention-2's forward pass on 16-bit inputs, on one page [FA2 Alg. 1; claims F2, D2,
// D3].
//
// Idea
//   One task a tile of Br queries. It walks the keys in tiles of Bc and never holds more than
//   Br x Bc scores. O is not normalised before the end; when a row's maximum rises, what was summed
//   so far is multiplied by 2^((m - m') c).
// Legend
//   Q [Br, D], K, V [Bc, D] tiles; S scores (dot products, not scaled); m running maximum of S;
//   c = fl(scale log2 e); w = 2^fma(S, c, -fl(m c)) weights; P the weights in the input's format;
//   l sum of w; seen: keys of the tile that the row sees, always its first ones.
// Formats
//   Q, K, V, O and P 16 bits; products, S, m, l and O's accumulator fp32. l sums the weights before
//   they are rounded, as FlashAttention does.
// Masking
//   Rows visit only their `seen` keys. Rows without any get O = 0 and LSE = -inf.
// Signs
//   A negative scale is taken as a positive one of negated dot products, so that the largest S is
//   the largest score.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "core/operations/forward_arguments.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/kernels/emulated_kernel.hpp"
#include "cpu_reference/kernels/row_kernel.hpp"

namespace attest {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

/// Rows of one head of a 16-bit tensor in memory.
struct Rows {
  std::byte* first = nullptr;
  std::int64_t stride = 0;  ///< elements
  std::int64_t count = 0;
  ElementType type = ElementType::fp16;

  [[nodiscard]] std::byte* at(std::int64_t n, std::int64_t d) const {
    return first + 2 * (n * stride + d);
  }
  /// Rows [begin, begin + rows), those that exist, as a tile [rows, columns] of fp32.
  [[nodiscard]] std::vector<float> tile(std::int64_t begin, std::int64_t rows,
                                        std::int64_t columns) const {
    std::vector<float> result;
    for (std::int64_t n = begin; n < std::min(begin + rows, count); ++n) {
      for (std::int64_t d = 0; d < columns; ++d) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, at(n, d), 2);
        result.push_back(decode(type, bits));
      }
    }
    return result;
  }
  void store(std::int64_t n, std::int64_t d, float value) const {
    const auto bits = static_cast<std::uint16_t>(encode(type, value));
    std::memcpy(at(n, d), &bits, 2);
  }
};

Rows rows_of(const void* tensor, const Strides& strides, std::int64_t b, std::int64_t h,
             std::int64_t count, ElementType type) {
  auto* bytes = const_cast<std::byte*>(static_cast<const std::byte*>(tensor));
  return {bytes + 2 * strides.offset(b, h, 0), strides.row, count, type};
}

float rounded(ElementType type, float value) {
  return static_cast<float>(round_to(type, static_cast<double>(value)));
}

float dot(const float* a, const float* b, std::int64_t length) {
  float sum = 0;
  for (std::int64_t d = 0; d < length; ++d) sum = std::fma(a[d], b[d], sum);
  return sum;
}

void attend_tile(const ForwardArguments& a, std::int64_t b, std::int64_t h,
                 std::int64_t first_query) {
  const Problem& problem = a.problem;
  const ElementType type = problem.element_type;
  const std::int64_t Br = a.plan.query_tile;
  const std::int64_t Bc = a.plan.key_tile;
  const std::int64_t D = problem.head_dim;
  const std::int64_t kv_head = problem.kv_head_of(h);
  const Rows q = rows_of(a.q, a.q_strides, b, h, problem.query_len, type);
  const Rows k = rows_of(a.k, a.k_strides, b, kv_head, problem.key_len, type);
  const Rows v = rows_of(a.v, a.v_strides, b, kv_head, problem.key_len, type);
  const Rows o = rows_of(a.o, a.o_strides, b, h, problem.query_len, type);
  const float sign = std::copysign(1.0F, problem.scale);
  const float scale = std::abs(problem.scale);
  const float c = scale * std::numbers::log2e_v<float>;

  const std::int64_t rows = std::min(Br, problem.query_len - first_query);
  const std::vector<float> Q = q.tile(first_query, Br, D);
  std::vector<float> O(static_cast<std::size_t>(Br * D), 0.0F);
  std::vector<float> m(static_cast<std::size_t>(Br), minus_infinity);
  std::vector<float> l(static_cast<std::size_t>(Br), 0.0F);
  std::vector<float> S(static_cast<std::size_t>(Bc));

  // Later queries see more keys, so the tile's last row says where all may stop.
  const std::int64_t last_key = problem.visible_keys(first_query + rows - 1);
  for (std::int64_t first_key = 0; first_key < last_key; first_key += Bc) {
    const std::vector<float> K = k.tile(first_key, Bc, D);
    const std::vector<float> V = v.tile(first_key, Bc, D);
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t visible = problem.visible_keys(first_query + i);
      const std::int64_t seen = std::min(visible - first_key, Bc);
      float& m_row = m[static_cast<std::size_t>(i)];
      float& l_row = l[static_cast<std::size_t>(i)];
      float* const o_row = O.data() + i * D;

      float m_new = m_row;
      for (std::int64_t j = 0; j < seen; ++j) {
        S[static_cast<std::size_t>(j)] = sign * dot(Q.data() + i * D, K.data() + j * D, D);
        m_new = maximum(m_new, S[static_cast<std::size_t>(j)]);
      }
      if (m_new == minus_infinity) continue;  // no key yet: -inf - -inf would be NaN
      const float rescale = m_row == minus_infinity ? 0.0F : std::exp2((m_row - m_new) * c);
      m_row = m_new;
      l_row *= rescale;
      for (std::int64_t d = 0; d < D; ++d) o_row[d] *= rescale;

      for (std::int64_t j = 0; j < seen; ++j) {
        const float w = std::exp2(std::fma(S[static_cast<std::size_t>(j)], c, -(m_row * c)));
        l_row += w;
        const float P = rounded(type, w);
        const float* const v_row = V.data() + j * D;
        for (std::int64_t d = 0; d < D; ++d) o_row[d] = std::fma(P, v_row[d], o_row[d]);
      }
    }
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    const float l_row = l[static_cast<std::size_t>(i)];
    const float divisor = l_row == 0.0F ? 1.0F : l_row;
    for (std::int64_t d = 0; d < D; ++d) {
      o.store(first_query + i, d, rounded(type, O[static_cast<std::size_t>(i * D + d)] / divisor));
    }
    const float m_nat = m[static_cast<std::size_t>(i)] * scale;
    a.lse[(b * problem.query_heads + h) * problem.query_len + first_query + i] =
        l_row == 0.0F ? minus_infinity : m_nat + std::log(l_row);
  }
}

void launch(const ForwardArguments& a, Device& /*device*/) {
  for (std::int64_t b = 0; b < a.problem.batch; ++b) {
    for (std::int64_t h = 0; h < a.problem.query_heads; ++h) {
      for (std::int64_t n = 0; n < a.problem.query_len; n += a.plan.query_tile) {
        attend_tile(a, b, h, n);
      }
    }
  }
}

std::vector<Plan> plans(const Problem& /*problem*/) {
  return {{.query_tile = 5, .key_tile = 7},
          {.query_tile = 16, .key_tile = 16},
          {.query_tile = 16, .key_tile = 64},
          {.query_tile = 64, .key_tile = 32}};
}

const KernelRegistration registration{
    {.name = "f2_half",
     .summary = "FA2 order on 16-bit inputs: P in 16 bits, all else fp32; the algorithm on a page",
     .source = "claims F2; FA2 Alg. 1",
     .executor = Executor::cpu,
     .element_types = {ElementType::fp16, ElementType::bf16},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
     .precision =
         [](const Problem& problem, const Plan& plan) {
           return flash_precision(problem, plan, {.kind = Accumulation::Kind::fp32_fma});
         },
     .plans = plans,
     .launch = launch}};

}  // namespace
}  // namespace attest
