#include "experiments/study/on_executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "cpu_reference/forward/error_profile.hpp"
#include "experiments/timing/resident_problem.hpp"

namespace attest {
namespace {

/// Rows of one output tensor under each other.
struct Stacked {
  Tensor<double> want, bound;
  Tensor<float> got;
  std::int64_t filled = 0;

  explicit Stacked(const Shape& shape) : want(shape), bound(shape), got(shape) {}
  void add(const Tensor<double>& w, const Tensor<double>& b, const Tensor<float>& g) {
    std::ranges::copy(w.values(), want.values().begin() + filled);
    std::ranges::copy(b.values(), bound.values().begin() + filled);
    std::ranges::copy(g.values(), got.values().begin() + filled);
    filled += g.size();
  }
};

void add_errors(const Stacked& rows, ElementType type, const std::string& prefix,
                const std::vector<ErrorMetric>& metrics, std::vector<Measurement>& errors) {
  const ErrorProfile profile = error_profile(rows.want, rows.got, type, &rows.bound);
  for (const ErrorMetric& metric : metrics) {
    const Measurement* found = find_measurement(profile.measurements, metric.of_profile);
    if (found == nullptr) continue;
    errors.push_back({metric.with_prefix(prefix), found->value, found->unit});
  }
}

}  // namespace

std::string gives_no_answer(const KernelInfo& kernel) {
  return fmt::format("{} gives no answer", kernel.name);
}

OnExecutor measure_on_executor(const TimedKernel& timed_kernel, Gate& gate,
                               const std::vector<ErrorMetric>& errors, DevicesOfThread& devices) {
  constexpr std::int64_t rows = 32;
  OnExecutor result;
  std::string& why = result.measured.why_refused;
  why = gate.why_wrong(timed_kernel.candidate()).value_or("");
  if (why.empty() && Gate::has_no_small_case(timed_kernel.candidate())) {
    why = "no problem of its kind is small enough to verify it on an executor";
  }
  const KernelInfo& kernel = *timed_kernel.kernel;
  if (!why.empty() || errors.empty()) return result;
  if (kernel.role == KernelRole::limit) {
    result.measured.why_no_errors = gives_no_answer(kernel);
    return result;
  }
  const Plan& plan = timed_kernel.subject.plan;
  const Problem small = problem_for_errors(timed_kernel.subject.problem);
  if (const auto reason = why_unsupported(kernel, small, plan)) {
    result.measured.why_no_errors =
        fmt::format("{} takes none that is short enough for an executor: {}", kernel.name, *reason);
    return result;
  }
  ResidentProblem resident(small, timed_kernel.subject.inputs, devices[kernel.executor],
                           timed_kernel.subject.layouts.paging);
  const SampledRows sampled = launch_and_sample(resident, kernel, plan, rows);
  why = sampled.why_wrong().value_or("");
  if (!why.empty()) return result;
  result.measured.errors = row_errors(sampled, small, errors);
  result.error_problem = to_string(small);
  return result;
}

std::vector<Measurement> row_errors(const SampledRows& sampled, const Problem& problem,
                                    const std::vector<ErrorMetric>& metrics) {
  const Operation& operation = *sampled.operation;
  std::vector<Measurement> errors;
  for (std::size_t i = 0; i < operation.outputs().size(); ++i) {
    const OutputIndex output{i};
    std::vector<const SampledRows::Row*> rows;
    for (const SampledRows::Row& row : sampled.rows) {
      if (row.got[output].size() > 0) rows.push_back(&row);
    }
    if (rows.empty()) continue;  // the kernel does not give it
    Stacked stacked(
        {1, 1, static_cast<std::int64_t>(rows.size()), rows.front()->got[output].shape()[3]});
    for (const SampledRows::Row* row : rows) {
      stacked.add(row->answer[output].value, row->answer[output].bound, row->got[output]);
    }
    const TensorSpec& tensor = operation[output];
    add_errors(stacked, tensor.format(problem), error_prefix(operation, output), metrics, errors);
  }
  return errors;
}

Problem problem_for_errors(const Problem& problem) {
  constexpr std::int64_t most_pairs = std::int64_t{1} << 16, most_len = 256;
  const auto pairs = [](const Problem& p) {
    return static_cast<double>(p.batch * p.query_heads) * static_cast<double>(p.query_len) *
           static_cast<double>(p.key_len);
  };
  Problem small = problem;
  if (pairs(small) <= most_pairs) return small;
  if (small.length_seed == 0 && small.padding_seed == 0) small.batch = 1;
  small.query_heads /= small.kv_heads;
  small.kv_heads = 1;
  if (pairs(small) <= most_pairs) return small;
  small.query_len = std::min(small.query_len, most_len);
  small.key_len = std::min(small.key_len, most_len);
  small.shared_keys = std::min(small.shared_keys, small.key_len);
  return small;
}

}  // namespace attest
