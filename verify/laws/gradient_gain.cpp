// Statistics layer: dQ, dK and dV are neither too long nor too short.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/inputs/input_family.hpp"
#include "core/operations/backward.hpp"
#include "cpu_reference/backward/oracle.hpp"
#include "cpu_reference/reference.hpp"
#include "verify/judge/law.hpp"

namespace attest {
namespace {

/// Standard deviations beyond which no correct kernel is met: of a normal law 7 are 3e-12.
constexpr double most_deviations = 7;

/// The roundings to 16 bits, each as good as independent of the others, are what the model is
/// about; all that is fp32 stays a bound, because it may have one sign.
BackwardRoundings in_fp32(BackwardRoundings how) {
  how.weight_format = how.dscore_format = how.output = ElementType::fp32;
  return how;
}

/// Of the rounding of x to the format, which is uniform between neighbours, at the most.
double variance(ElementType type, double x) {
  const StoredRounding rounding = stored_rounding(format_of(type));
  return (rounding.relative * rounding.relative * x * x + rounding.absolute * rounding.absolute) /
         3;
}

double product(std::span<const double> x, std::span<const float> y) {
  double sum = 0;
  for (std::size_t c = 0; c < x.size(); ++c) sum += x[c] * static_cast<double>(y[c]);
  return sum;
}

/// Variance of the sum of errors times exact gradients. A rounding of P or dS moves a whole row of
/// the output along one row of an input, so that pairs are what is independent, not elements.
double variance_along(OutputIndex output, const Problem& problem, const Inputs& inputs,
                      const BackwardRoundings& how, const Tensor<double>& gradient) {
  const double factor = output == backward::dv ? 1 : problem.scale;
  double sum = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      const std::int64_t kv_head = problem.kv_head_of(h);
      for (std::int64_t n = 0; n < problem.query_len; ++n) {
        const auto row = given_row<double>(inputs, b, h, n);
        for (const std::int64_t key : visible_keys_of(problem, b, n)) {
          const auto pair = gradient_pair(problem, inputs, b, h, n, key, row);
          double along = 0, of_rounding = variance(how.dscore_format, pair.tau);
          if (output == backward::dq) {
            along = product(gradient.row(b, h, n), inputs[backward::k].row(b, kv_head, key));
          } else if (output == backward::dk) {
            along = product(gradient.row(b, kv_head, key), inputs[backward::q].row(b, h, n));
          } else {
            along = product(gradient.row(b, kv_head, key), inputs[backward::d_o].row(b, h, n));
            of_rounding = variance(how.weight_format, pair.p);
          }
          sum += factor * factor * along * along * of_rounding;
        }
      }
    }
  }
  for (const double x : gradient.values()) sum += x * x * variance(how.output, x);
  return sum;
}

Inputs normal_inputs(const Run& run) {
  const Problem& problem = run.problem();
  return make_inputs(problem, {.family = "normal", .seed = run.the_case().inputs.seed});
}

Check check_gain(Run& run, OutputIndex output) {
  const Problem& problem = run.problem();
  const Inputs inputs = normal_inputs(run);
  const Launch launch = run.launch(run.the_case(), inputs);
  const auto how = run.kernel().precision(problem, run.the_case().plan).as<BackwardRoundings>();
  const Answer answer = reference_of(backward_operation).exact(problem, inputs, in_fp32(how));
  const Tensor<double>& gradient = answer[output].value;
  double error = 0, allowed = 0, length = 0;
  for (std::size_t i = 0; i < gradient.values().size(); ++i) {
    const double x = gradient.values()[i], bound = answer[output].bound.values()[i];
    const double got = launch.outputs[output].values()[i];
    if (!std::isfinite(bound) || !std::isfinite(got)) return Check::passed();  // the bound's affair
    error += (got - x) * x;
    allowed += bound * std::abs(x);
    length += x * x;
  }
  allowed += most_deviations * std::sqrt(variance_along(output, problem, inputs, how, gradient));
  if (!(std::abs(error) > allowed)) return Check::passed();
  const std::string label(backward_operation[output].label);
  return Check::failed_at(
      label,
      {.got = error / length,
       .want = 0,
       .bound = allowed / length,
       .ratio = std::abs(error) / allowed},
      fmt::format("on N(0, 1), {} is {:.3g} times as long as it is to be, a correct kernel stays "
                  "within {:.3g} of 1: a wrong scale, or numbers cut instead of rounded",
                  label, 1 + error / length, allowed / length));
}

/// Weights that lie within some ulp of each other are rounded alike: logits must spread. Of fp32
/// kernels nothing is rounded that the bound does not know to the last bit.
bool has_independent_roundings(const Problem& problem) {
  constexpr double least_spread = 0.5;
  const double spread = std::abs(problem.scale) * std::sqrt(static_cast<double>(problem.head_dim));
  const bool is_capped = problem.softcap > 0 && problem.softcap < 2 * least_spread;
  return problem.element_type != ElementType::fp32 && spread >= least_spread && !is_capped;
}

Law gain_law(OutputIndex output, std::string name, const std::string& label) {
  Law law;
  law.name = std::move(name);
  law.statement = fmt::format(
      "on N(0, 1), {} is neither too long nor too short: its errors do not point along it", label);
  law.layer = Layer::statistics;
  law.cost = Law::Cost::more_launches;
  law.operations = {&backward_operation};
  law.applies = [output](Run& run) {
    return run.kernel().gives(output) && has_independent_roundings(run.problem());
  };
  law.check = [output](Run& run) { return check_gain(run, output); };
  return law;
}

const LawRegistration of_dq{gain_law(backward::dq, "dq_gain", "dQ")};
const LawRegistration of_dk{gain_law(backward::dk, "dk_gain", "dK")};
const LawRegistration of_dv{gain_law(backward::dv, "dv_gain", "dV")};

}  // namespace
}  // namespace attest
