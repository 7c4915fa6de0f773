#include "verify/judge/error_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "core/attention/quantiser.hpp"
#include "core/base/error.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/quantised.hpp"
#include "cpu_reference/reference.hpp"
#include "verify/judge/run.hpp"

namespace attest {
namespace {

/// The tensors of several data sets, one after the other along the batch axis.
template <typename T>
class Collected {
 public:
  Collected(Shape shape, std::int64_t sets) : tensor_(whole(shape, sets)) {}
  void add(const Tensor<T>& part) {
    std::ranges::copy(part.values(), tensor_.values().begin() + filled_);
    filled_ += part.size();
  }
  [[nodiscard]] const Tensor<T>& tensor() const { return tensor_; }

 private:
  static Shape whole(Shape shape, std::int64_t sets) {
    shape[0] *= sets;
    return shape;
  }
  Tensor<T> tensor_;
  std::int64_t filled_ = 0;
};

/// Exact values, bounds and results of one output tensor over all data sets.
struct Collection {
  Collected<double> want, bound;
  Collected<float> got;
  Collection(Shape shape, std::int64_t sets)
      : want(shape, sets), bound(shape, sets), got(shape, sets) {}

  [[nodiscard]] TensorErrors errors(ElementType type, bool is_bounded,
                                    const ErrorDetail& detail) const {
    return tensor_errors(want.tensor(), got.tensor(), type, is_bounded ? &bound.tensor() : nullptr,
                         detail);
  }
  [[nodiscard]] bool has_finite_truth() const {
    return std::ranges::any_of(want.tensor().values(), [](double x) { return std::isfinite(x); });
  }
};

/// The problem whose exact answer is the truth: what its inputs hold was not rounded to 16 bits,
/// and did not become codes.
Problem problem_of(Truth truth, Problem problem) {
  if (truth != Truth::given) problem.element_type = ElementType::fp32;
  if (truth == Truth::unrounded && problem.operation == &quantised_operation) {
    problem.operation = &forward_operation;
    problem.codes = {};
  }
  return problem;
}

/// Inputs of a quantised problem whose K lost its means.
struct Smoothed {
  Inputs inputs;
  Tensor<float> means;    ///< of K's columns
  Tensor<float> queries;  ///< before they were rounded
};
Smoothed smoothed_inputs(const Problem& problem, const InputSpec& spec) {
  Inputs inputs = make_inputs(problem_of(Truth::unrounded, problem), spec);
  const auto rows = [&](std::int64_t entry) { return problem.key_len_of(entry); };
  Tensor<float> queries = inputs[quantised::q];
  Tensor<float> means = column_means(inputs[quantised::k], rows);
  inputs[quantised::k] = without_means(inputs[quantised::k], means, rows);
  for (const InputIndex tensor : {quantised::q, quantised::k, quantised::v}) {
    const ElementType format = quantised_operation[tensor].format(problem);
    if (is_code(format)) continue;
    for (float& x : inputs[tensor].values()) x = static_cast<float>(round_to(format, x));
  }
  quantised_operation.complete(problem, inputs);
  return {std::move(inputs), std::move(means), std::move(queries)};
}

/// Adds scale q.mean to LSE, of rows that see a key.
void give_means_back(const Problem& p, const Smoothed& from, Tensor<float>& lse) {
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      const auto mean = from.means.row(b, p.kv_head_of(h), 0);
      for (std::int64_t n = 0; n < p.query_len; ++n) {
        const auto q = from.queries.row(b, h, n);
        double dot = 0;
        for (std::size_t d = 0; d < q.size(); ++d) dot += static_cast<double>(q[d]) * mean[d];
        lse.at(b, h, n, 0) =
            static_cast<float>(lse.at(b, h, n, 0) + static_cast<double>(p.scale) * dot);
      }
    }
  }
}

/// Inputs whose exact answer is the truth; `given`: those that the kernel reads.
Inputs inputs_of(Truth truth, const Problem& asked, const InputSpec& spec, const Inputs& given,
                 KeyOrder order) {
  if (truth == Truth::given) return given;
  if (truth == Truth::unrounded) return with_key_order(asked, make_inputs(asked, spec), order);
  Inputs inputs = given;
  if (asked.operation->complete != nullptr) asked.operation->complete(asked, inputs);
  return inputs;
}

}  // namespace

void require_smoothing(const Problem& problem, Truth truth) {
  if (problem.operation != &quantised_operation || truth != Truth::unrounded) {
    throw InvalidInput(
        "keys are smoothed before they become codes, and held against what they were; allowed: "
        "with operation quantised and unrounded inputs as the truth");
  }
  if (problem.softcap != 0) {
    throw InvalidInput(fmt::format(
        "softcap is {:g}, under which keys less their mean give another answer; allowed: 0",
        static_cast<double>(problem.softcap)));
  }
}

void require_same_keys(const Operation& operation, Truth truth, KeyOrder order) {
  const bool is_by_score = order == KeyOrder::rising || order == KeyOrder::falling;
  const bool has_rows_of_keys = std::ranges::any_of(
      operation.outputs(), [](const TensorSpec& output) { return output.rows == Rows::keys; });
  if (truth != Truth::unrounded || !is_by_score || !has_rows_of_keys) return;
  throw InvalidInput(
      fmt::format("key order '{}' of inputs before they were rounded is another one, and {} has "
                  "outputs with a row a key; allowed: drawn, reversed",
                  name_of(order), operation.name));
}

ErrorStudy study_errors(const KernelInfo& kernel, const Case& c, std::int64_t sets, Device& device,
                        const ErrorStudyOptions& options) {
  require_same_keys(*c.problem.operation, options.truth, options.key_order);
  if (options.smooths_keys) require_smoothing(c.problem, options.truth);
  ErrorStudy study;
  std::vector<Collection> collected;  // by output
  Case of_set = c;
  for (std::int64_t set = 0; set < sets; ++set) {
    of_set.inputs.seed = c.inputs.seed + static_cast<std::uint64_t>(set);
    Run run(kernel, of_set, device);
    std::optional<Smoothed> smoothed;
    if (options.smooths_keys) smoothed = smoothed_inputs(of_set.problem, of_set.inputs);
    const Inputs inputs =
        smoothed ? smoothed->inputs : with_key_order(c.problem, run.inputs(), options.key_order);
    Launch launch = run.launch(of_set, inputs);
    if (smoothed && kernel.gives(quantised::lse)) {
      give_means_back(of_set.problem, *smoothed, launch.outputs[quantised::lse]);
    }
    if (!launch.findings.empty()) {
      throw KernelFault(fmt::format("{}: {}: {}", to_string(of_set), launch.findings.front().kind,
                                    launch.findings.front().message));
    }
    const Problem asked = problem_of(options.truth, of_set.problem);
    const Inputs exact_inputs =
        inputs_of(options.truth, asked, of_set.inputs, inputs, options.key_order);
    const Answer answer = run.answer_to(asked, of_set.plan, exact_inputs);
    const Certificate certificate =
        reference_of(*asked.operation).certify(asked, exact_inputs, answer, of_set.inputs.seed, 1);
    if (!certificate.holds()) {
      throw std::logic_error(fmt::format(
          "the f64 reference differs from the oracle by more than its own error estimate, in {}",
          to_string(of_set)));
    }
    study.certified_rows += certificate.rows;
    for (std::size_t i = 0; i < answer.size(); ++i) {
      const OutputIndex output{i};
      if (collected.size() <= i) collected.emplace_back(answer[output].value.shape(), sets);
      collected[i].want.add(answer[output].value);
      collected[i].bound.add(answer[output].bound);
      collected[i].got.add(launch.outputs[output]);
    }
  }
  if (collected.empty()) throw std::logic_error("study_errors: no data set");
  if (std::ranges::none_of(collected, &Collection::has_finite_truth)) {
    throw InvalidInput(fmt::format(
        "no element of the exact answer to '{}' with inputs {}:{} is finite: there is no error to "
        "measure; allowed: inputs that do not overflow",
        to_string(c.problem), c.inputs.family, c.inputs.magnitude));
  }
  for (std::size_t i = 0; i < collected.size(); ++i) {
    const OutputIndex output{i};
    const TensorSpec& tensor = (*kernel.operation)[output];
    if (!kernel.gives(output) || !has_tensor(c.problem, output)) continue;
    ErrorDetail detail = options.detail;
    if (!tensor.is_strided) detail.map = false;  // one number a row
    study.outputs.push_back(
        {std::string(tensor.label),
         collected[i].errors(tensor.format(c.problem), options.truth == Truth::given, detail)});
  }
  return study;
}

}  // namespace attest
