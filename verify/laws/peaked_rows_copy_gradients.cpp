#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/attention/backward_roundings.hpp"
#include "core/attention/element_type.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/backward.hpp"
#include "verify/judge/law.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_peaked_rows_copy_gradients {

/// Powers of two, so that scores, and their products with log2 e, are formed without a rounding
/// wherever the scale is applied, and cancel against LSE or its product with log2 e to 0.
constexpr float scale_size = 0x1p-3F;
constexpr float q_of_bit = 0x1p4F, k_of_bit = 0x1p7F;  ///< a wrong bit costs a score of 256
constexpr float q_of_level = 0x1p10F;                  ///< LSE is -128, 0 or 128

/// Each key has a code, each row the code of one key that it sees. A column of Q and K adds the
/// row's level to all of its scores; every bit of a code takes two columns, of which the one where
/// row and key differ takes 256 off.
class Codes {
 public:
  Codes(const Problem& problem, std::uint64_t seed)
      : columns_(problem.head_dim),
        bits_(static_cast<int>(std::min<std::int64_t>((columns_ - 1) / 2, 62))),
        first_(random_below(seed, stream_peak_code, 0, columns_)),
        turn_(bits_ > 0 ? static_cast<int>(random_below(seed, stream_peak_code, 1, bits_)) : 0) {}

  /// Neighbouring keys differ in few bits, so that no column is there for nothing.
  [[nodiscard]] std::uint64_t of_key(std::int64_t key) const {
    const std::uint64_t low = static_cast<std::uint64_t>(key) & mask();
    return bits_ == 0 ? 0 : (low << turn_ | low >> (bits_ - turn_)) & mask();
  }
  void write_row(std::uint64_t code, float level, std::span<float> q) const {
    std::ranges::fill(q, 0.0F);
    q[column(0)] = level * q_of_level;
    for (int bit = 0; bit < bits_; ++bit) q[column(1 + 2 * bit + digit(code, bit))] = q_of_bit;
  }
  void write_key(std::uint64_t code, float sign, std::span<float> k) const {
    std::ranges::fill(k, 0.0F);
    k[column(0)] = sign;
    for (int bit = 0; bit < bits_; ++bit) {
      k[column(2 + 2 * bit - digit(code, bit))] = -sign * k_of_bit;
    }
  }

 private:
  [[nodiscard]] std::uint64_t mask() const { return (std::uint64_t{1} << bits_) - 1; }
  [[nodiscard]] static int digit(std::uint64_t code, int bit) {
    return static_cast<int>(code >> bit & 1U);
  }
  [[nodiscard]] std::size_t column(int number) const {
    return static_cast<std::size_t>((first_ + number) % columns_);
  }

  std::int64_t columns_;
  int bits_;
  std::int64_t first_;
  int turn_;
};

float unit(std::uint64_t seed, std::uint64_t stream, std::uint64_t i) {
  return static_cast<float>(random_below(seed, stream, i, 3) - 1);
}

/// -1, 0 or 1 for each column of V, the same for all keys of a code.
void write_value(std::uint64_t seed, std::uint64_t code, std::span<float> v) {
  for (std::size_t c = 0; c < v.size(); ++c)
    v[c] = unit(seed, stream_peak_value, code * v.size() + c);
}

struct PeakedRows {
  Case the_case;
  Inputs inputs;
  /// dV: of each key the sum of dO over the rows that have its code; how many rows these are.
  Tensor<double> dv;
  std::vector<std::int64_t> rows_of_key;
};

Case with_power_of_two_scale(const Run& run) {
  Case c = run.the_case();
  c.problem.scale = std::copysign(scale_size, c.problem.scale);
  return c;
}

/// Rows that see no key keep what the case has.
PeakedRows peaked_rows(Run& run) {
  const Problem& p = run.problem();
  const std::uint64_t seed = run.the_case().inputs.seed;
  const Codes codes(p, seed);
  PeakedRows made{
      with_power_of_two_scale(run), run.inputs(), Tensor<double>(value_shape(p)),
      std::vector<std::int64_t>(static_cast<std::size_t>(p.batch * p.kv_heads * p.key_len), 0)};
  const float sign = std::copysign(1.0F, made.the_case.problem.scale);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.kv_heads; ++h) {
      for (std::int64_t key = 0; key < p.key_len; ++key) {
        codes.write_key(codes.of_key(key), sign, made.inputs[backward::k].row(b, h, key));
        write_value(seed, codes.of_key(key), made.inputs[backward::v].row(b, h, key));
      }
    }
  }
  std::uint64_t i = 0;
  for (float& x : made.inputs[backward::d_o].values()) x = unit(seed, stream_peak_gradient, i++);
  std::ranges::fill(made.inputs[backward::d_lse].values(), 0.0F);
  std::ranges::fill(made.inputs[backward::slopes].values(), 0.0F);
  std::ranges::fill(made.inputs[backward::bias].values(), 0.0F);
  std::uint64_t row = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t n = 0; n < p.query_len; ++n, ++row) {
        const std::vector<std::int64_t> keys = visible_keys_of(p, b, n);
        if (keys.empty()) continue;
        const auto drawn = static_cast<std::size_t>(
            random_below(seed, stream_peak, row, static_cast<std::int64_t>(keys.size())));
        const std::uint64_t code = codes.of_key(keys[drawn]);
        const float level = unit(seed, stream_peak_level, row);
        codes.write_row(code, level, made.inputs[backward::q].row(b, h, n));
        write_value(seed, code, made.inputs[backward::o].row(b, h, n));
        made.inputs[backward::lse].at(b, h, n, 0) = level * q_of_level * scale_size;
        const auto gradient = made.inputs[backward::d_o].row(b, h, n);
        for (const std::int64_t key : keys) {
          if (codes.of_key(key) != code) continue;
          const std::int64_t kv_head = p.kv_head_of(h);
          const auto sum = made.dv.row(b, kv_head, key);
          for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += gradient[c];
          ++made.rows_of_key[static_cast<std::size_t>((b * p.kv_heads + kv_head) * p.key_len +
                                                      key)];
        }
      }
    }
  }
  for (double& x : made.dv.values()) x = round_to(p.element_type, x);
  return made;
}

/// Bounds of a gradient that no whole number can do without: where nothing is proven, and where a
/// kernel rounds parts of more rows than their format counts one by one.
Tensor<double> allowed_of(const Run& run, const PeakedRows& made, OutputIndex output,
                          Tensor<double> bound) {
  const ElementFormat& part = format_of(run.kernel()
                                            .precision(made.the_case.problem, made.the_case.plan)
                                            .as<BackwardRoundings>()
                                            .kv_part_format);
  const auto columns = static_cast<std::size_t>(bound.shape()[3]);
  for (std::size_t i = 0; i < bound.values().size(); ++i) {
    double& allowed = bound.values()[i];
    const bool is_rounded_twice =
        output == backward::dv &&
        static_cast<double>(made.rows_of_key[i / columns]) * part.unit_roundoff > 1;
    if (std::isfinite(allowed) && !is_rounded_twice) allowed = 0;
  }
  return bound;
}

Check check_copies(Run& run) {
  const PeakedRows made = peaked_rows(run);
  const Launch launch = run.launch(made.the_case, made.inputs);
  const Answer answer = run.answer_to(made.the_case.problem, made.the_case.plan, made.inputs);
  const auto check_exact = [&](OutputIndex output, const Tensor<double>& want,
                               std::string_view failure) {
    if (!run.kernel().gives(output)) return Check::passed();
    return check_of(
        std::string(backward_operation[output].label),
        compare(launch.outputs[output], want, allowed_of(run, made, output, answer[output].bound)),
        failure);
  };
  const Check of_dv = check_exact(
      backward::dv, made.dv,
      "all weights are 0 or 1, and this is not the sum of dO over the rows that weigh the key");
  if (of_dv.status == Check::Status::failed) return of_dv;
  for (const OutputIndex output : {backward::dq, backward::dk}) {
    const Check zeros =
        check_exact(output, Tensor<double>(launch.outputs[output].shape()),
                    "each row weighs only keys whose value is its O, and this gradient is not 0");
    if (zeros.status == Check::Status::failed) return zeros;
  }
  return Check::passed();
}

const LawRegistration registration{
    {.name = "peaked_rows_copy_gradients",
     .statement = "where all scores of a row but those that equal its LSE lie 256 below, weights "
                  "are 0 or 1: dV is the sum of dO over the rows that weigh a key, to the last "
                  "bit, and with O equal to their values and a dLSE of 0 dQ and dK are 0",
     .cost = Law::Cost::more_launches,
     .operations = {&backward_operation},
     .needs_own_values = true,
     .applies =
         [](Run& run) {
           const Case other = with_power_of_two_scale(run);
           // A softcap is an approximation, and may leave no room for gaps.
           return run.problem().softcap == 0 && run.problem().dropout == 0 &&
                  run.kernel()
                      .precision(other.problem, other.plan)
                      .as<BackwardRoundings>()
                      .exp.is_one_at_zero &&
                  !why_unsupported(run.kernel(), other);
         },
     .check = check_copies}};

}  // namespace law_peaked_rows_copy_gradients
}  // namespace attest
