// A softmax forgets what all of a row's scores have in common, and an average what all values have.
// A kernel whose sums lose small parts beside large ones does not, and tests on data around 0
// cannot see it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/quantised.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"
#include "verify/judge/whole_numbers.hpp"

namespace attest {
namespace law_shifted_inputs {

/// Largest whole numbers, of either sign, of which and of whose sums all that is needed is held:
/// less in codes of few digits.
struct Ranges {
  double query, key, value;
  std::int64_t key_shift;
  float value_shift;
};

Ranges ranges_of(const Problem& p) {
  const auto held = [&](InputIndex tensor) {
    return largest_whole((*p.operation)[tensor].format(p));
  };
  const double of_key = held(forward::k) / 2, of_value = held(forward::v) / 2;
  return {.query = std::min(8.0, held(forward::q)),
          .key = std::min(8.0, of_key),
          .value = std::min(16.0, of_value),
          .key_shift = static_cast<std::int64_t>(std::min(4.0, of_key)),
          .value_shift = static_cast<float>(std::min(64.0, std::floor(of_value)))};
}

void round_to_integers(Tensor<float>& tensor, double largest) {
  for (float& x : tensor.values()) {
    const double whole = std::nearbyint(std::clamp<double>(x, -largest, largest));
    x = std::isnan(whole) ? 1.0F : static_cast<float>(whole) + 0.0F;  // int8 has no -0
  }
}

Inputs integer_inputs(Run& run) {
  Inputs inputs = plain_numbers(run.problem(), run.inputs());
  const Ranges ranges = ranges_of(run.problem());
  round_to_integers(inputs[forward::q], ranges.query);
  round_to_integers(inputs[forward::k], ranges.key);
  round_to_integers(inputs[forward::v], ranges.value);
  return inputs;
}

/// Shift of column d of every key of a head.
float key_shift(const Run& run, std::int64_t head, std::int64_t d) {
  const auto place = static_cast<std::uint64_t>(head * run.problem().head_dim + d);
  const std::int64_t largest = ranges_of(run.problem()).key_shift;
  const std::int64_t draw =
      random_below(run.the_case().inputs.seed, stream_shifted_keys, place, 2 * largest + 1);
  return static_cast<float>(draw - largest);
}

/// Calls move(head, row) for every row of the tensor.
template <typename Move>
void for_each_row(Tensor<float>& tensor, const Move& move) {
  const Shape shape = tensor.shape();
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) move(b, h, n, tensor.row(b, h, n));
    }
  }
}

/// Rounding `want` to fp32 is this law's own error.
void allow_rounding(Agreement& agreement, OutputIndex output, const Tensor<float>& want) {
  const auto values = want.values();
  const auto bounds = agreement.within[output].values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    bounds[i] += std::abs(values[i]) * static_cast<double>(std::numeric_limits<float>::epsilon());
  }
}

Check compare_shifted(Run& run, const Inputs& plain, const Inputs& moved, Outputs want,
                      const Outputs& got, std::string_view failure) {
  const Plan& plan = run.the_case().plan;
  Agreement agreement = within_bounds(run.answer_to(run.problem(), plan, moved),
                                      run.answer_to(run.problem(), plan, plain));
  for (std::size_t i = 0; i < want.size(); ++i) {
    allow_rounding(agreement, OutputIndex{i}, want[OutputIndex{i}]);
  }
  return check_agree(run.kernel(), got, want, agreement, failure);
}

Check check_shifted_keys(Run& run) {
  const Problem& p = run.problem();
  const Inputs plain = integer_inputs(run);
  Inputs moved = plain;
  for_each_row(moved[forward::k], [&](auto, auto h, auto, auto row) {
    for (std::size_t d = 0; d < row.size(); ++d) {
      row[d] += key_shift(run, h, static_cast<std::int64_t>(d));
    }
  });
  Outputs want = run.launch(run.the_case(), plain).outputs;
  for_each_row(want[forward::lse], [&](auto b, auto h, auto n, auto row) {
    double dot = 0;
    const auto q = plain[forward::q].row(b, h, n);
    for (std::size_t d = 0; d < q.size(); ++d) {
      dot +=
          static_cast<double>(q[d]) * key_shift(run, p.kv_head_of(h), static_cast<std::int64_t>(d));
    }
    row[0] = static_cast<float>(row[0] + static_cast<double>(p.scale) * dot);
  });
  const Launch launch = run.launch(run.the_case(), moved);
  return compare_shifted(run, plain, moved, std::move(want), launch.outputs,
                         "a vector added to all keys moved the answer by something else");
}

Check check_shifted_values(Run& run) {
  const Inputs plain = integer_inputs(run);
  Inputs moved = plain;
  const float value_shift = ranges_of(run.problem()).value_shift;
  for (float& x : moved[forward::v].values()) x += value_shift;
  Outputs want = run.launch(run.the_case(), plain).outputs;
  for_each_row(want[forward::o], [&](auto b, auto, auto n, auto row) {
    if (visible_key_count(run.problem(), b, n) == 0) return;  // a row of zeros stays
    for (float& x : row) x += value_shift;
  });
  const Launch launch = run.launch(run.the_case(), moved);
  return compare_shifted(run, plain, moved, std::move(want), launch.outputs,
                         "a number added to all values did not come out with them");
}

const LawRegistration keys{
    {.name = "shifted_keys_shift_lse",
     .statement =
         "one vector v added to all keys of a head leaves O as it is and adds scale q.v to "
         "LSE, within the sum of the bounds",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     .operations = {&forward_operation, &quantised_operation},
     .needs_own_values = true,
     .applies =
         [](Run& run) {
           return run.problem().softcap == 0 && run.problem().key_len > 0 &&
                  !has_modifications(run.problem());
         },
     .check = check_shifted_keys}};

const LawRegistration values{
    {.name = "shifted_values_shift_output",
     .statement =
         "a number added to all values is added to O and leaves LSE as it is, within the sum "
         "of the bounds",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     .operations = {&forward_operation, &quantised_operation},
     .needs_own_values = true,
     .applies =
         [](Run& run) { return run.problem().key_len > 0 && !has_modifications(run.problem()); },
     .check = check_shifted_values}};

}  // namespace law_shifted_inputs
}  // namespace attest
