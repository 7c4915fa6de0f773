// S9: a tensor whose numbers are codes times a scale has these codes and that scale.
#include <cmath>

#include "core/attention/quantiser.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/quantise.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_codes_come_back {

/// Codes of which every group that shares a scale has the largest one, and scales that are powers
/// of two: the quantiser divides by what they were multiplied by, and nothing rounds. Products are
/// numbers of every element type.
QuantisedTensor drawn_codes(const Run& run) {
  const Problem& problem = run.problem();
  const std::uint64_t seed = run.the_case().inputs.seed;
  const ElementType format = quantise_operation[quantising::codes].format(problem);
  const auto largest = static_cast<float>(format_of(format).max_finite);
  const Shape shape = key_shape(problem);
  QuantisedTensor made{Tensor<float>(shape),
                       Tensor<float>(scales_shape(shape, problem.codes.k_scales))};
  std::uint64_t counter = 0;
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < problem.key_len_of(b); ++n) {
        for (std::int64_t c = 0; c < shape[3]; ++c) {
          const std::uint64_t bits = random_bits(seed, stream_drawn_codes, counter++);
          const float number =
              decode(format, static_cast<std::uint32_t>(bits) & (pattern_count(format) - 1));
          const bool is_first = c == 0 || n % scale_block == 0;
          const bool is_code = std::abs(number) <= largest;  // neither NaN, infinity, -128 nor -8
          const float peak = (bits & 1U) != 0 ? largest : -largest;
          made.codes.at(b, h, n, c) = is_first || !is_code ? peak : number;
        }
      }
    }
  }
  const Shape& of_scales = made.scales.shape();
  for (std::int64_t b = 0; b < of_scales[0]; ++b) {
    for (std::int64_t h = 0; h < of_scales[1]; ++h) {
      for (std::int64_t n = 0; n < of_scales[2]; ++n) {
        for (float& scale : made.scales.row(b, h, n)) {
          scale = std::ldexp(
              1.0F, -static_cast<int>(random_below(seed, stream_drawn_scales, counter++, 9)));
          const bool has_rows = problem.codes.k_scales == Scales::row ? n < problem.key_len_of(b)
                                : problem.codes.k_scales == Scales::block
                                    ? n * scale_block < problem.key_len_of(b)
                                    : problem.key_len_of(b) > 0;
          if (!has_rows) scale = 1;
        }
      }
    }
  }
  return made;
}

Inputs numbers_of(const Run& run, const QuantisedTensor& made) {
  Inputs inputs;
  Tensor<float>& x = inputs[quantising::x] = Tensor<float>(made.codes.shape());
  const Tensor<double> numbers = dequantise(made.codes, made.scales, run.problem().codes.k_scales);
  for (std::size_t at = 0; at < x.values().size(); ++at) {
    x.values()[at] = static_cast<float>(numbers.values()[at]);
  }
  return inputs;
}

const LawRegistration registration{
    {.name = "codes_come_back",
     .statement = "numbers that are codes times powers of two, the largest code in each group, are "
                  "quantised to these codes and these scales",
     .cost = Law::Cost::more_launches,
     .operations = {&quantise_operation},
     .applies = {},
     .check = [](Run& run) {
       const QuantisedTensor made = drawn_codes(run);
       const Outputs got = run.launch(run.the_case(), numbers_of(run, made)).outputs;
       Outputs want;
       want[quantising::codes] = made.codes;
       want[quantising::scales] = made.scales;
       return check_agree(run.kernel(), got, want, {},
                          "codes and scales that numbers were made of did not come back");
     }}};

}  // namespace law_codes_come_back
}  // namespace attest
