#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/inputs/input_family.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"
#include "core/run/session.hpp"
#include "cpu_reference/forward/reference_f64.hpp"
#include "cpu_reference/same_bits.hpp"

// Laws of every CPU kernel in the registry, over random problems, plans, layouts and input
// families.

namespace attest {
namespace {

constexpr std::uint64_t cases_per_kernel = 100;
constexpr float beyond_bound = std::numeric_limits<float>::infinity();

std::vector<const KernelInfo*> cpu_kernels(KernelRole role = KernelRole::kernel) {
  std::vector<const KernelInfo*> kernels;
  for (const KernelInfo& kernel : all_kernels()) {
    const bool is_attention = kernel.operation == &forward_operation;
    if (is_attention && kernel.executor == Executor::cpu && kernel.role == role) {
      kernels.push_back(&kernel);
    }
  }
  return kernels;
}

/// Draws for one case: pick(n) is in [0, n), of(list) one of its elements.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}
  std::int64_t pick(std::int64_t bound) { return random_below(seed_, 0x7e57, next_++, bound); }
  template <typename List>
  const auto& of(const List& list) {
    return list[static_cast<std::size_t>(pick(static_cast<std::int64_t>(std::size(list))))];
  }

 private:
  std::uint64_t seed_, next_ = 0;
};

TensorLayout draw_layout(Draw& draw) {
  return {.order = draw.pick(2) == 0 ? DimOrder::bhnd : DimOrder::bnhd,
          .row_gap = draw.pick(4),
          .base_offset = draw.pick(3)};
}

Case draw_case(const KernelInfo& kernel, std::uint64_t seed) {
  Draw draw(seed);
  constexpr std::array<std::array<std::int64_t, 2>, 6> heads{
      {{1, 1}, {2, 1}, {3, 3}, {4, 2}, {6, 2}, {5, 1}}};
  constexpr std::array<std::int64_t, 11> lengths{1, 2, 3, 7, 15, 16, 17, 31, 33, 64, 65};
  constexpr std::array<std::int64_t, 8> dims{1, 2, 7, 16, 17, 32, 64, 128};
  Case c;
  c.kernel = kernel.name;
  Problem& p = c.problem;
  p.batch = 1 + draw.pick(2);
  const auto& head = draw.of(heads);
  p.query_heads = head[0];
  p.kv_heads = head[1];
  p.query_len = draw.of(lengths);
  p.key_len = draw.pick(16) == 0 ? 0 : draw.of(lengths);
  p.head_dim = draw.of(dims);
  p.mask = draw.of(kernel.masks);
  if (is_window(p.mask)) p.window = {.left = draw.pick(20) - 1, .right = draw.pick(4) - 1};
  if (kernel.features.lengths && draw.pick(4) == 0)
    p.length_seed = 1 + static_cast<std::uint64_t>(draw.pick(100));
  if (kernel.features.padding && draw.pick(4) == 0)
    p.padding_seed = 1 + static_cast<std::uint64_t>(draw.pick(100));
  if (kernel.features.no_queries && draw.pick(20) == 0) p.query_len = 0;
  p.element_type = draw.of(kernel.element_types);
  p.scale = default_scale(p.head_dim) * (draw.pick(10) == 0   ? -1.0F
                                         : draw.pick(20) == 0 ? 0.0F
                                                              : 1.0F);
  c.plan = draw.of(kernel.plans(p));
  c.layouts =
      ForwardLayouts{draw_layout(draw), draw_layout(draw), draw_layout(draw), draw_layout(draw)};
  const InputFamily* family = nullptr;
  do {
    family = draw.of(families_of(forward_operation));
  } while (family->unsupported && family->unsupported(p));
  // Families that aim at a logit divide by the scale.
  if (p.scale == 0) family = &input_family("normal");
  c.inputs.family = family->name;
  c.inputs.seed = seed;
  if (!family->magnitudes.empty()) c.inputs.magnitude = draw.of(family->magnitudes);
  return c;
}

struct Result {
  Outputs outputs;
  MemoryReport memory;
};

Result run(const KernelInfo& kernel, const Case& c, const Inputs& inputs) {
  HostMemoryDevice device;
  Session session(kernel, c, inputs, device);
  session.launch();
  Result result{session.read_outputs(), {}};
  result.memory = session.memory_report();
  return result;
}

/// Error over bound; 0 where both are exact, infinity where it cannot be shown to be within.
double ratio(float got, double want, double bound) {
  if (static_cast<double>(got) == want) return 0;
  const double error = std::abs(static_cast<double>(got) - want);
  if (bound == INFINITY) return 0;  // nothing is claimed there
  return error <= bound ? error / bound : std::isfinite(error / bound) ? error / bound : INFINITY;
}

struct Worst {
  double o = 0, lse = 0;
};

Worst worst_ratio(const Outputs& outputs, const Answer& answer) {
  Worst worst;
  for (std::size_t i = 0; i < outputs[forward::o].values().size(); ++i) {
    worst.o = std::max(worst.o,
                       ratio(outputs[forward::o].values()[i], answer[forward::o].value.values()[i],
                             answer[forward::o].bound.values()[i]));
  }
  for (std::size_t i = 0; i < outputs[forward::lse].values().size(); ++i) {
    worst.lse = std::max(
        worst.lse, ratio(outputs[forward::lse].values()[i], answer[forward::lse].value.values()[i],
                         answer[forward::lse].bound.values()[i]));
  }
  return worst;
}

TEST(CpuVariants, every_kernel_stays_within_the_bound_of_its_precision_plan) {
  for (const KernelInfo* kernel : cpu_kernels()) {
    Worst worst;
    for (std::uint64_t seed = 0; seed < cases_per_kernel; ++seed) {
      const Case c = draw_case(*kernel, seed);
      const Inputs inputs = make_inputs(c.problem, c.inputs);
      const Answer answer =
          exact_answer(c.problem, inputs, kernel->precision(c.problem, c.plan).as<PrecisionPlan>());
      const Result result = run(*kernel, c, inputs);
      const Worst here = worst_ratio(result.outputs, answer);
      EXPECT_LE(here.o, 1) << "O of " << to_string(c);
      EXPECT_LE(here.lse, 1) << "LSE of " << to_string(c);
      EXPECT_TRUE(result.memory.damaged_guards.empty()) << to_string(c);
      EXPECT_TRUE(result.memory.unwritten_outputs.empty()) << to_string(c);
      EXPECT_TRUE(result.memory.modified_inputs.empty()) << to_string(c);
      worst = {std::max(worst.o, here.o), std::max(worst.lse, here.lse)};
    }
    RecordProperty(kernel->name + " worst error/bound O", std::to_string(worst.o));
    RecordProperty(kernel->name + " worst error/bound LSE", std::to_string(worst.lse));
  }
}

TEST(CpuVariants, the_unshifted_control_breaks_its_bound_on_large_logits_only) {
  const auto controls = cpu_kernels(KernelRole::negative_control);
  ASSERT_EQ(controls.size(), 1U);
  const KernelInfo& control = *controls.front();
  EXPECT_EQ(control.killed_by, "within_bound");
  Case c{.kernel = control.name, .problem = {.query_len = 5, .key_len = 17}};
  for (const auto& [magnitude, breaks] : {std::pair{1.0, false}, std::pair{200.0, true}}) {
    c.inputs = {.family = "normal", .magnitude = magnitude};
    const Inputs inputs = make_inputs(c.problem, c.inputs);
    const Answer answer =
        exact_answer(c.problem, inputs, control.precision(c.problem, c.plan).as<PrecisionPlan>());
    const Worst worst = worst_ratio(run(control, c, inputs).outputs, answer);
    EXPECT_EQ(worst.o > 1, breaks) << "magnitude " << magnitude << ", ratio " << worst.o;
  }
}

TEST(CpuVariants, rows_without_visible_keys_are_zero_with_lse_minus_infinity) {
  for (const auto role : {KernelRole::kernel, KernelRole::negative_control}) {
    for (const KernelInfo* kernel : cpu_kernels(role)) {
      for (const Problem& p :
           {Problem{.query_len = 9, .key_len = 4, .mask = Mask::causal_bottom_right},
            Problem{.query_len = 3, .key_len = 0}}) {
        Problem problem = p;
        problem.element_type = kernel->element_types.front();
        for (const Plan& plan : kernel->plans(problem)) {
          const Case c{.kernel = kernel->name, .problem = problem, .plan = plan};
          const Outputs out = run(*kernel, c, make_inputs(problem, c.inputs)).outputs;
          for (std::int64_t n = 0; n < problem.query_len; ++n) {
            if (problem.visible_keys(n) > 0) continue;
            EXPECT_EQ(out[forward::lse].at(0, 0, n, 0), -beyond_bound) << to_string(c);
            for (const float x : out[forward::o].row(0, 0, n)) EXPECT_EQ(x, 0.0F) << to_string(c);
          }
        }
      }
    }
  }
}

TEST(CpuVariants, keys_beyond_the_mask_change_no_bit) {
  for (const KernelInfo* kernel : cpu_kernels()) {
    for (const float future : {std::numeric_limits<float>::quiet_NaN(), 60000.0F}) {
      Case c{.kernel = kernel->name,
             .problem = {.query_len = 5, .key_len = 21, .mask = Mask::causal_top_left}};
      c.problem.element_type = kernel->element_types.front();
      for (const Plan& plan : kernel->plans(c.problem)) {
        c.plan = plan;
        // A head that is scaled by its largest element does hang on all of them.
        if (kernel->precision(c.problem, plan).as<PrecisionPlan>().score_parts.scaled_to > 0)
          continue;
        const Inputs inputs = make_inputs(c.problem, c.inputs);
        Inputs changed = inputs;
        const auto poison =
            static_cast<float>(round_to(c.problem.element_type, static_cast<double>(future)));
        for (std::int64_t n = c.problem.visible_keys(4); n < c.problem.key_len; ++n) {
          std::ranges::fill(changed[forward::k].row(0, 0, n), poison);
          std::ranges::fill(changed[forward::v].row(0, 0, n), poison);
        }
        const Outputs want = run(*kernel, c, inputs).outputs;
        const Outputs got = run(*kernel, c, changed).outputs;
        EXPECT_TRUE(same_bits(want[forward::o].values(), got[forward::o].values())) << to_string(c);
        EXPECT_TRUE(same_bits(want[forward::lse].values(), got[forward::lse].values()))
            << to_string(c);
      }
    }
  }
}

TEST(CpuVariants, a_nan_reaches_the_rows_that_see_it_and_no_other) {
  constexpr std::int64_t poisoned_key = 6;
  for (const KernelInfo* kernel : cpu_kernels()) {
    Case c{.kernel = kernel->name,
           .problem = {.query_len = 20, .key_len = 20, .mask = Mask::causal_top_left}};
    c.problem.element_type = kernel->element_types.front();
    for (const Plan& plan : kernel->plans(c.problem)) {
      c.plan = plan;
      const Inputs inputs = make_inputs(c.problem, c.inputs);
      Inputs changed = inputs;
      changed[forward::k].at(0, 0, poisoned_key, 3) = std::numeric_limits<float>::quiet_NaN();
      const Outputs want = run(*kernel, c, inputs).outputs;
      const Outputs got = run(*kernel, c, changed).outputs;
      for (std::int64_t n = 0; n < c.problem.query_len; ++n) {
        const bool sees = c.problem.visible_keys(n) > poisoned_key;
        EXPECT_EQ(std::isnan(got[forward::lse].at(0, 0, n, 0)), sees)
            << to_string(c) << ", row " << n;
        if (sees) {
          for (const float x : got[forward::o].row(0, 0, n))
            EXPECT_TRUE(std::isnan(x)) << to_string(c);
        } else {
          EXPECT_TRUE(same_bits(got[forward::o].row(0, 0, n), want[forward::o].row(0, 0, n)))
              << to_string(c);
        }
      }
    }
  }
}

TEST(CpuVariants, a_nan_value_reaches_its_column_even_at_a_weight_of_zero) {
  for (const KernelInfo* kernel : cpu_kernels()) {
    Case c{.kernel = kernel->name, .problem = {.query_len = 1, .key_len = 18, .head_dim = 4}};
    c.problem.element_type = kernel->element_types.front();
    for (const Plan& plan : kernel->plans(c.problem)) {
      c.plan = plan;
      Inputs inputs{Tensor<float>(query_shape(c.problem), 16.0F),
                    Tensor<float>(key_shape(c.problem), 16.0F),
                    Tensor<float>(key_shape(c.problem), 1.0F)};
      std::ranges::fill(inputs[forward::k].row(0, 0, 17), -16.0F);  // e^-256 of the others
      inputs[forward::v].at(0, 0, 17, 2) = std::numeric_limits<float>::quiet_NaN();
      const Outputs out = run(*kernel, c, inputs).outputs;
      EXPECT_TRUE(std::isnan(out[forward::o].at(0, 0, 0, 2))) << to_string(c);
      EXPECT_EQ(out[forward::o].at(0, 0, 0, 1), 1.0F) << to_string(c);
    }
  }
}

TEST(CpuVariants, skipping_the_rescale_changes_no_bit_when_the_maximum_comes_first) {
  // With descending scores the maximum never moves after the first block, so every key tile gives
  // the same operations.
  const KernelInfo* kernel = find_kernel("o8_exp2_skip_rescale", Executor::cpu);
  ASSERT_NE(kernel, nullptr);
  Case c{.kernel = kernel->name, .problem = {.query_len = 3, .key_len = 50}};
  c.inputs = {.family = "descending_maxima", .magnitude = 10};
  const Inputs inputs = make_inputs(c.problem, c.inputs);
  c.plan = {.key_tile = 64};
  const Outputs want = run(*kernel, c, inputs).outputs;
  for (const std::int64_t tile : {1, 3, 16}) {
    c.plan = {.key_tile = tile};
    EXPECT_TRUE(
        same_bits(run(*kernel, c, inputs).outputs[forward::o].values(), want[forward::o].values()))
        << tile;
  }
}

}  // namespace
}  // namespace attest
