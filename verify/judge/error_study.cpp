#include "verify/judge/error_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/base/error.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
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

/// The problem whose exact answer is the truth: what its inputs hold was not rounded to 16 bits.
Problem problem_of(Truth truth, Problem problem) {
  if (truth != Truth::given) problem.element_type = ElementType::fp32;
  return problem;
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
  ErrorStudy study;
  std::vector<Collection> collected;  // by output
  Case of_set = c;
  for (std::int64_t set = 0; set < sets; ++set) {
    of_set.inputs.seed = c.inputs.seed + static_cast<std::uint64_t>(set);
    Run run(kernel, of_set, device);
    const Inputs inputs = with_key_order(c.problem, run.inputs(), options.key_order);
    const Launch launch = run.launch(of_set, inputs);
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
    if (!kernel.gives(output)) continue;
    const TensorSpec& tensor = (*kernel.operation)[output];
    ErrorDetail detail = options.detail;
    if (!tensor.is_strided) detail.map = false;  // one number a row
    study.outputs.push_back(
        {std::string(tensor.label),
         collected[i].errors(tensor.format(c.problem), options.truth == Truth::given, detail)});
  }
  return study;
}

}  // namespace attest
