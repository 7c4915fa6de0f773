#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "core/inputs/input_family.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/forward/emulation.hpp"
#include "cpu_reference/forward/reference_f64.hpp"

namespace attest {
namespace {

constexpr std::uint64_t random_settings = 300;

/// A random plan with the fields of a precision plan that follow from it.
struct Setting {
  Plan plan;
  PrecisionPlan precision;
};

Setting draw_setting(const Problem& problem, std::uint64_t seed) {
  std::uint64_t next = 0;
  const auto pick = [&](std::int64_t bound) { return random_below(seed, 0xe3, next++, bound); };
  constexpr std::array<std::int64_t, 5> tiles{1, 3, 16, 64, 0};
  constexpr std::array<std::int64_t, 5> splits{0, 1, 2, 3, 7};
  const std::array<Accumulation, 3> accumulations{Accumulation{}, ampere(), hopper()};
  const std::array<ExpMethod, 3> exps{library_expf(), fast_expf(), exp2_folded()};
  Setting s;
  s.plan.key_tile = tiles[static_cast<std::size_t>(pick(5))];
  s.plan.key_splits = splits[static_cast<std::size_t>(pick(5))];
  PrecisionPlan& p = s.precision;
  p.score = accumulations[static_cast<std::size_t>(pick(3))];
  p.value = accumulations[static_cast<std::size_t>(pick(3))];
  p.exp = exps[static_cast<std::size_t>(pick(3))];
  const std::int64_t scaling = pick(3);
  if (p.exp.name == exp2_folded().name && pick(2) == 0) p.lse = LseForm::log2;
  constexpr std::array<Merge, 3> merges{Merge::sums, Merge::normalised_sums, Merge::lse_pairs};
  p.merge = merges[static_cast<std::size_t>(pick(3))];
  p.partial_format = all_element_types()[static_cast<std::size_t>(pick(3))];
  p.scale_after_dot = scaling == 0;
  p.scale_folded_into_q = scaling == 1;
  if (scaling == 2) p.exp.argument_error += 0x1p-24;  // fl(fl(m - m') c)
  p.weight_format = all_element_types()[static_cast<std::size_t>(pick(3))];
  p.sums_rounded_weights = pick(2) == 1;
  p.rescale = pick(2) == 0 ? Rescale::deferred : Rescale::normalised_steps;
  const std::int64_t tile =
      s.plan.key_tile > 0 ? s.plan.key_tile : std::max<std::int64_t>(problem.key_len, 1);
  p.blocks = std::max<std::int64_t>((problem.key_len + tile - 1) / tile, 1);
  p.splits = std::max<std::int64_t>(s.plan.key_splits, 1);
  p.normaliser_chain = std::max<std::int64_t>(problem.key_len, 1) + p.splits;
  p.division_error = 0x1p-24;
  p.log_error = 0x1p-23;
  return s;
}

Problem draw_problem(std::uint64_t seed) {
  std::uint64_t next = 0;
  const auto pick = [&](std::int64_t bound) { return random_below(seed, 0xe4, next++, bound); };
  constexpr std::array<std::int64_t, 9> lengths{1, 2, 15, 16, 17, 31, 33, 64, 65};
  constexpr std::array<std::int64_t, 5> dims{1, 7, 16, 33, 64};
  Problem p{.query_heads = 2, .kv_heads = 1 + pick(2)};
  p.query_len = lengths[static_cast<std::size_t>(pick(9))];
  p.key_len = lengths[static_cast<std::size_t>(pick(9))];
  p.head_dim = dims[static_cast<std::size_t>(pick(5))];
  p.mask = all_masks()[static_cast<std::size_t>(pick(3))];
  p.element_type = all_element_types()[static_cast<std::size_t>(pick(3))];
  p.scale = default_scale(p.head_dim) * (pick(8) == 0 ? -1.0F : 1.0F);
  return p;
}

InputSpec draw_inputs(std::uint64_t seed, const Problem& problem) {
  for (std::uint64_t next = 0;; next += 2) {
    const auto families = families_of(forward_operation);
    const InputFamily& family = *families[static_cast<std::size_t>(
        random_below(seed, 0xe5, next, static_cast<std::int64_t>(families.size())))];
    if (family.unsupported && family.unsupported(problem)) continue;
    InputSpec spec{.family = family.name, .seed = seed};
    const auto count = static_cast<std::int64_t>(family.magnitudes.size());
    if (count > 0) {
      spec.magnitude =
          family.magnitudes[static_cast<std::size_t>(random_below(seed, 0xe5, next + 1, count))];
    }
    return spec;
  }
}

/// Worst error over bound of all elements; what the bound leaves open counts as 0.
double worst_ratio(std::span<const float> got, std::span<const double> want,
                   std::span<const double> bound) {
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double value = static_cast<double>(got[i]);
    if (value == want[i] || bound[i] == INFINITY) continue;
    const double ratio = std::abs(value - want[i]) / bound[i];
    worst = std::isnan(ratio) ? INFINITY : std::max(worst, ratio);
  }
  return worst;
}

TEST(Emulation, any_precision_plan_stays_within_the_bound_computed_from_it) {
  for (std::uint64_t seed = 0; seed < random_settings; ++seed) {
    const Problem problem = draw_problem(seed);
    const InputSpec spec = draw_inputs(seed, problem);
    const Inputs inputs = make_inputs(problem, spec);
    const auto [plan, precision] = draw_setting(problem, seed);
    const Answer answer = exact_answer(problem, inputs, precision);
    const Outputs got = emulate(problem, plan, precision, inputs);
    const auto describe = [&] {
      return fmt::format(
          "seed {}: {} | {} | {} x{} | {} scale {}{} P {} rescale {} terms {}/{} lse {} merge {} "
          "{}",
          seed, to_string(problem), to_string(plan), spec.family, spec.magnitude,
          precision.exp.name, precision.scale_after_dot ? "after" : "",
          precision.scale_folded_into_q ? "in q" : "", format_of(precision.weight_format).name,
          static_cast<int>(precision.rescale), precision.score.fused_terms,
          precision.value.fused_terms, static_cast<int>(precision.lse),
          static_cast<int>(precision.merge), format_of(precision.partial_format).name);
    };
    EXPECT_LE(worst_ratio(got[forward::o].values(), answer[forward::o].value.values(),
                          answer[forward::o].bound.values()),
              1)
        << "O, " << describe();
    EXPECT_LE(worst_ratio(got[forward::lse].values(), answer[forward::lse].value.values(),
                          answer[forward::lse].bound.values()),
              1)
        << "LSE, " << describe();
  }
}

}  // namespace
}  // namespace attest
