#include "verify/campaign/large.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/attention/problem_field.hpp"
#include "core/inputs/input_family.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "core/run/registry.hpp"
#include "core/run/session.hpp"
#include "cpu_reference/device_reference.hpp"
#include "cpu_reference/forward/reference_f64.hpp"
#include "verify/cases/generators.hpp"
#include "verify/cases/shrinking.hpp"
#include "verify/judge/compare.hpp"
#include "verify/judge/sampled_rows.hpp"

namespace attest {
namespace {

constexpr std::uint64_t draw_stream = 0x6c61726765;  // "large"
/// Up to here every element is checked on the CPU: about a tenth of a second of one core.
constexpr double small_work = 0x1p26;
constexpr std::int64_t probe_len = 256;

Failure failure_of(const Case& c, std::string law, std::string tensor, const WorstElement& worst,
                   std::string detail) {
  return {.law = std::move(law),
          .the_case = c,
          .check = Check::failed_at(std::move(tensor), worst, std::move(detail))};
}

Comparison as_comparison(const WorstOutput& worst) {
  return {.worst = {.index = worst.index,
                    .got = worst.got,
                    .want = worst.want,
                    .bound = worst.bound,
                    .ratio = worst.ratio},
          .elements = worst.elements,
          .vacuous = worst.vacuous};
}

Compared compare_all(const Problem& p, const Inputs& inputs, const PrecisionPlan& precision,
                     const Outputs& outputs, std::uint64_t seed, std::int64_t rows_asked) {
  if (reference_work(p) <= small_work) {
    const Answer answer = exact_answer(p, inputs, precision);
    return {compare_each(outputs, answer), p.rows()};
  }
  // The sampled rows certify the GPU reference as well: kernel and oracle meet there.
  Compared rows = compare_rows(p, inputs, precision, outputs, sampled_rows(p, seed, rows_asked));
  const DeviceReference* const gpu = find_device_reference(*p.operation, Executor::gpu);
  if (gpu == nullptr || !gpu->covers(p, precision) || !why_unavailable(Executor::gpu).empty())
    return rows;
  const auto device = make_device(Executor::gpu);
  Compared every{.outputs = {}, .rows = p.rows()};
  const WorstOutputs worst = gpu->check(*device, p, inputs, precision, outputs);
  for (std::size_t i = 0; i < worst.size(); ++i) {
    every.outputs[OutputIndex{i}] = as_comparison(worst[OutputIndex{i}]);
  }
  for (std::size_t i = 0; i < every.outputs.size(); ++i) {
    const OutputIndex output{i};
    if (rows.outputs[output].is_within() || !every.outputs[output].is_within()) continue;
    throw std::logic_error(
        fmt::format("the CPU reference rejects a row that the GPU's accepts, in {}", to_string(p)));
  }
  return every;
}

std::int64_t log_uniform(std::uint64_t seed, std::uint64_t index, std::int64_t low,
                         std::int64_t high) {
  const double u = static_cast<double>(random_below(seed, draw_stream, index, 1 << 20)) / (1 << 20);
  const double ratio = static_cast<double>(high) / static_cast<double>(low);
  // Beside a multiple of 64 as often as on it.
  const auto length = static_cast<std::int64_t>(static_cast<double>(low) * std::pow(ratio, u));
  return std::clamp<std::int64_t>(
      length / 64 * 64 + random_below(seed, draw_stream, index + 1, 3) - 1, low, high);
}

/// A small case of the campaign with long sequences and few heads; nullopt if it does not fit.
std::optional<Case> draw_large(const KernelInfo& kernel, const LargeOptions& options,
                               std::uint64_t index, double work_per_second) {
  GeneratorOptions generator;
  generator.families = options.families;
  std::optional<Case> c = draw_case(kernel, generator, options.seed, index);
  if (!c) return c;
  Problem& p = c->problem;
  p.batch = 1;
  p.length_seed = 0;  // one entry
  // Rows are judged alone, which those of other distances or weights cannot be.
  p.sinks = Sinks::none;
  p.slopes = Slopes::none;
  p.bias = Bias::none;
  p.dropout = 0;
  take_away_epilogue(p);
  p.kv_heads = 1;
  p.query_heads = index % 4 == 3 ? 2 : 1;
  p.query_len = log_uniform(options.seed, 4 * index, options.min_len, options.max_len);
  p.key_len = log_uniform(options.seed, 4 * index + 2, options.min_len, options.max_len);
  while (reference_work(p) > options.seconds_per_launch * work_per_second) {
    (p.query_len > p.key_len ? p.query_len : p.key_len) /= 2;
    if (std::max(p.query_len, p.key_len) < options.min_len) return std::nullopt;
  }
  p = with_needs_of(kernel, p);
  // Gaps that put a few rows 2^31 elements apart would put a hundred thousand nowhere.
  for_each_tensor(*p.operation, [&](const TensorSpec& /*tensor*/, auto which) {
    c->layouts[which].plane_gap = c->layouts[which].outer_gap = 0;
  });
  const InputFamily& family = input_family(c->inputs.family);
  if (family.unsupported && family.unsupported(p)) return std::nullopt;
  if (why_unsupported(kernel, *c)) return std::nullopt;
  return c;
}

/// (pair, column) triples a second, from a short launch after a warm-up.
std::optional<double> speed_of(const KernelInfo& kernel, const LargeOptions& options,
                               Device& device) {
  for (std::uint64_t i = 0; i < 20; ++i) {
    std::optional<Case> c = draw_case(kernel, {}, options.seed, i);
    if (!c) continue;
    c->problem.batch = c->problem.query_heads = c->problem.kv_heads = 1;
    c->problem.query_len = c->problem.key_len = probe_len;
    c->problem.mask = kernel.masks.front();
    c->problem.window = {};
    c->problem.value_dim = 0;
    c->problem.softcap = 0;
    c->problem.length_seed = c->problem.padding_seed = 0;
    for (const ProblemField& field : problem_fields()) take_feature_away(field, c->problem);
    c->problem = with_needs_of(kernel, c->problem);
    c->inputs = {};
    c->layouts = {};
    if (why_unsupported(kernel, *c)) continue;
    Session session(kernel, *c, make_inputs(c->problem, c->inputs), device);
    const auto start = std::chrono::steady_clock::now();
    const double ms = session.timed_launch(1);
    (void)session.read_outputs();
    const double all =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    // Short launches do not fill a GPU: the estimate errs towards slow kernels.
    return reference_work(c->problem) / std::max(1e-6, std::min(ms * 1e-3, all));
  }
  return std::nullopt;
}

}  // namespace

LargeCheck check_large(const KernelInfo& kernel, const Case& c, Device& device,
                       std::int64_t sampled_rows) {
  LargeCheck result;
  const Inputs inputs = make_inputs(c.problem, c.inputs);
  (void)device.take_findings();
  Session session(kernel, c, inputs, device);
  session.launch();
  const Outputs outputs = session.read_outputs();
  const MemoryReport& memory = session.memory_report();
  for (const auto& [law, list] : {std::pair("guards_untouched", &memory.damaged_guards),
                                  std::pair("outputs_written", &memory.unwritten_outputs),
                                  std::pair("inputs_unmodified", &memory.modified_inputs)}) {
    if (list->empty()) continue;
    result.failure = Failure{.law = law, .the_case = c, .check = Check::failed(list->front())};
    return result;
  }
  for (const Finding& finding : device.take_findings()) {
    result.failure = Failure{.law = "clean_execution",
                             .the_case = c,
                             .check = Check::failed(finding.kind + ": " + finding.message)};
    return result;
  }
  const Compared compared =
      compare_all(c.problem, inputs, kernel.precision(c.problem, c.plan).as<PrecisionPlan>(),
                  outputs, c.inputs.seed, std::min(sampled_rows, c.problem.rows()));
  result.checked_rows = compared.rows;
  for (std::size_t i = 0; i < compared.outputs.size(); ++i) {
    const OutputIndex output{i};
    if (!kernel.gives(output)) continue;
    const TensorSpec& tensor = (*kernel.operation)[output];
    const Comparison& comparison = compared.outputs[output];
    result.worst_over_bound.raise(tensor.name, comparison.worst.ratio);
    if (result.failure || comparison.is_within()) continue;
    result.failure =
        failure_of(c, bound_law_of(*kernel.operation, output), std::string(tensor.label),
                   comparison.worst, fmt::format("{} is outside its error bound", tensor.label));
  }
  return result;
}

std::vector<LargeResult> run_large(const std::vector<const KernelInfo*>& kernels,
                                   const LargeOptions& options) {
  std::vector<LargeResult> results;
  for (const KernelInfo* kernel : kernels) {
    LargeResult& result = results.emplace_back();
    result.kernel = kernel;
    if (kernel->role != KernelRole::kernel) {
      result.left_out = "wrong by design";
      continue;
    }
    const auto device = make_device(kernel->executor);
    const std::optional<double> speed = speed_of(*kernel, options, *device);
    if (!speed) {
      result.left_out = fmt::format("runs no problem of {} x {}", probe_len, probe_len);
      continue;
    }
    for (std::uint64_t index = 0;
         result.cases < options.cases_per_kernel && index < 50 && !result.failure; ++index) {
      const std::optional<Case> c = draw_large(*kernel, options, index, *speed);
      if (!c) continue;
      const LargeCheck check = check_large(*kernel, *c, *device, options.sampled_rows);
      ++result.cases;
      result.longest = std::max({result.longest, c->problem.query_len, c->problem.key_len});
      result.rows += c->problem.rows();
      result.checked_rows += check.checked_rows;
      result.certified_rows += reference_work(c->problem) > small_work ? 1 : 0;
      result.worst_over_bound.raise(check.worst_over_bound);
      if (check.failure) {
        result.failure = check.failure;
        const std::string law = check.failure->law;
        (void)shrink(
            *kernel, *c,
            [&](const Case& smaller) {
              const LargeCheck again = check_large(*kernel, smaller, *device, options.sampled_rows);
              if (!again.failure || again.failure->law != law) return false;
              result.failure = again.failure;
              return true;
            },
            60);
      }
      if (options.on_case_done) options.on_case_done();
    }
    if (result.cases == 0) {
      result.left_out = fmt::format(
          "too slow: at {:.2g} (pair, column) triples a second no case of length {} ends in {} s",
          *speed, options.min_len, options.seconds_per_launch);
    }
  }
  return results;
}

}  // namespace attest
