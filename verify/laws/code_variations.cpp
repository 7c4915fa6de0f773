// The same numbers in other codes, the same scales said of other groups, keys in other places.
#include <array>
#include <cmath>

#include "core/attention/quantiser.hpp"
#include "core/operations/quantised.hpp"
#include "verify/judge/variation.hpp"
#include "verify/judge/whole_numbers.hpp"

namespace attest {
namespace code_variations {

/// Power of two by which codes of N(0, 1) are about N(0, 1) again.
int usual_exponent(const Problem& problem, InputIndex tensor) {
  const ElementType format = (*problem.operation)[tensor].format(problem);
  return is_code(format) ? 1 - std::ilogb(format_of(format).max_finite) : 0;
}

/// The case, whose scales are powers of two, the same for all groups of a tensor, or part of
/// Problem's scale where there are none. V's are 1: a weight times V that loses digits to a scale
/// need not lose them where O is multiplied.
struct PowersOfTwo {
  int q, k;
};
OtherCall with_powers_of_two(Case c, PowersOfTwo exponents) {
  Problem& p = c.problem;
  if (p.codes.q_scales == Scales::none) p.scale = std::ldexp(p.scale, exponents.q);
  if (p.codes.k_scales == Scales::none) p.scale = std::ldexp(p.scale, exponents.k);
  return {.the_case = c, .inputs = [p, exponents](Inputs from) {
            set_scales(p, from, 1);
            for (float& x : from[quantised::q_scale].values()) x = std::ldexp(x, exponents.q);
            for (float& x : from[quantised::k_scale].values()) x = std::ldexp(x, exponents.k);
            return from;
          }};
}

/// Problem's scale, and products of scores with it, stay normal numbers whatever it is halved by.
constexpr float least_scale = 0x1p-40F, largest_scale = 0x1p40F;

Varied with_other_granularity(Run& run, const LawDraws& draws) {
  const Problem& p = run.problem();
  const float scale = std::abs(p.scale);
  if (!(scale >= least_scale && scale <= largest_scale)) return {};
  const CodesTaken& taken = run.kernel().codes;
  Case other = run.the_case();
  Codes& codes = other.problem.codes;
  std::uint64_t number = 0;
  const auto redraw = [&](Code code, const std::vector<Scales>& kinds, Scales& kind) {
    if (code == Code::none || kinds.empty()) return;
    kind = kinds[static_cast<std::size_t>(
        draws.below(static_cast<std::int64_t>(kinds.size()), number++))];
  };
  redraw(codes.q, taken.q_scales, codes.q_scales);
  redraw(codes.k, taken.k_scales, codes.k_scales);
  redraw(codes.v, taken.v_scales, codes.v_scales);
  if (codes == p.codes) return {};
  // Layouts of few scales may leave no room for more.
  for (const InputIndex index : {quantised::q_scale, quantised::k_scale, quantised::v_scale}) {
    other.layouts[index] = {};
  }
  other.layouts = fitted(run.kernel().layout_needs, other.problem, other.layouts);
  const PowersOfTwo exponents{usual_exponent(p, quantised::q), usual_exponent(p, quantised::k)};
  return Variation{.call = with_powers_of_two(other, exponents),
                   .has_own_bound = true,
                   .reference = with_powers_of_two(run.the_case(), exponents)};
}

/// Place of the key that comes to place n when keys are reversed, and where blocks of keys share a
/// scale the whole blocks and the rest apart, so that blocks stay together.
std::int64_t reversed_place(std::int64_t n, std::int64_t keys, bool in_blocks) {
  const std::int64_t whole = in_blocks ? keys / scale_block * scale_block : keys;
  return n < whole ? whole - 1 - n : whole + keys - 1 - n;
}

Varied with_keys_in_other_places(Run& run, const LawDraws&) {
  const Problem& p = run.problem();
  if (p.mask != Mask::none || p.length_seed != 0 || p.padding_seed != 0 || p.shared_keys != 0 ||
      p.key_len < 2) {
    return {};
  }
  const auto inputs = [p](const Inputs& from) {
    const bool in_blocks = p.codes.k_scales == Scales::block || p.codes.v_scales == Scales::block;
    Inputs moved = from;
    const auto move = [&](InputIndex tensor, const auto& place) {
      moved[tensor] = gathered(from[tensor], from[tensor].shape(), [&](auto b, auto h, auto n) {
        return RowPlace{b, h, place(n)};
      });
    };
    const auto of_keys = [&](std::int64_t n) { return reversed_place(n, p.key_len, in_blocks); };
    const auto of_blocks = [&](std::int64_t n) {
      return reversed_place(n * scale_block, p.key_len, true) / scale_block;
    };
    const auto move_scales = [&](InputIndex scales, Scales kind) {
      if (kind == Scales::row) move(scales, of_keys);
      if (kind == Scales::block) move(scales, of_blocks);
    };
    move(quantised::k, of_keys);
    move(quantised::v, of_keys);
    move_scales(quantised::k_scale, p.codes.k_scales);
    move_scales(quantised::v_scale, p.codes.v_scales);
    return moved;
  };
  return Variation{.call = {run.the_case(), inputs}, .has_own_bound = true};
}

/// True if both multiply and add in the same way.
bool same_products(const PrecisionPlan& a, const PrecisionPlan& b) {
  const auto same = [](const Accumulation& x, const Accumulation& y) {
    return x.kind == y.kind && x.fused_terms == y.fused_terms &&
           x.fraction_bits == y.fraction_bits && x.sum_bits == y.sum_bits;
  };
  return same(a.score, b.score) && same(a.value, b.value) && a.weight_format == b.weight_format &&
         a.weight_scale == b.weight_scale && a.promoted_keys == b.promoted_keys;
}

/// A number that both formats hold, near to x: of three digits, or whole. Both keep it above their
/// subnormal numbers, or it is 0.
float common_number(ElementType a, ElementType b, float x) {
  const double rough = round_to(ElementType::e5m2, x);
  const auto is_held = [&](ElementType type) {
    return round_to(type, rough) == rough && std::abs(rough) >= format_of(type).min_normal;
  };
  if (is_held(a) && is_held(b)) return static_cast<float>(rough);
  const double most = std::min(largest_whole(a), largest_whole(b));
  const double whole = std::nearbyint(std::clamp(rough, -most, most));
  const double held = round_to(ElementType::e5m2, whole);
  return std::isfinite(held) ? static_cast<float>(held) + 0.0F : 0.0F;
}

Varied with_another_code(Run& run, const LawDraws& draws) {
  constexpr std::array all{Code::e4m3, Code::e5m2, Code::int8, Code::e2m1, Code::int4};
  const Code drawn = all[static_cast<std::size_t>(draws.below(all.size()))];
  const KernelInfo& kernel = run.kernel();
  const Problem& p = run.problem();
  Case other = run.the_case();
  const auto redraw = [&](const std::vector<Code>& taken, Code& code) {
    if (code != Code::none && std::ranges::find(taken, drawn) != taken.end()) code = drawn;
  };
  redraw(kernel.codes.q, other.problem.codes.q);
  redraw(kernel.codes.k, other.problem.codes.k);
  redraw(kernel.codes.v, other.problem.codes.v);
  if (other.problem == p || why_unsupported(kernel, other)) return {};
  const auto precision = [&](const Problem& of) {
    return kernel.precision(of, run.the_case().plan).as<PrecisionPlan>();
  };
  if (!same_products(precision(p), precision(other.problem))) return {};
  const auto inputs = [p, q = other.problem](const Inputs& from) {
    Inputs numbers = plain_numbers(p, from);
    for (const InputIndex tensor : {quantised::q, quantised::k, quantised::v}) {
      const TensorSpec& spec = quantised_operation[tensor];
      const ElementType one = spec.format(p), another = spec.format(q);
      for (float& x : numbers[tensor].values()) {
        x = is_code(one) ? common_number(one, another, x) : static_cast<float>(round_to(one, x));
      }
    }
    return numbers;
  };
  return Variation{.call = {other, inputs},
                   .has_own_bound = true,
                   .reference = OtherCall{run.the_case(), inputs}};
}

const VariationLaws registration{{
    {.name = "equal_powers_of_two_agree",
     .statement = "one power of two that scales all of Q, and one that scales all of K, give the "
                  "same bits whether it is said of heads, blocks or rows, or is part of Problem's "
                  "scale; scales of V that are 1 those of none",
     .operations = {&quantised_operation},
     .same_bits_but_for = Differences{},
     .failure = "a power of two said of other groups gives another answer",
     .stream = stream_other_granularity,
     .vary = with_other_granularity},
    {.name = "keys_may_change_places",
     .statement = "keys and values in reverse, with their scales, give the same answer within both "
                  "bounds; blocks that share a scale stay together",
     .layer = Layer::bound,
     .operations = {&quantised_operation},
     .needs_own_values = true,
     .failure = "keys that changed places with their scales gave another answer",
     .vary = with_keys_in_other_places},
    {.name = "same_numbers_in_another_code",
     .statement = "numbers that two codes hold, in both above subnormal ones, give the same bits "
                  "in either where the kernel multiplies both in the same way",
     .operations = {&quantised_operation},
     .same_bits_but_for = Differences{},
     .failure = "the same numbers in another code gave another answer",
     .stream = stream_other_code,
     .vary = with_another_code},
}};

}  // namespace code_variations
}  // namespace attest
