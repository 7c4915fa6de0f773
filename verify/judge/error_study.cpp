#include "verify/judge/error_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
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

/// What one output tensor should be, may be off by, and is.
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
};

}  // namespace

ErrorStudy study_errors(const KernelInfo& kernel, const Case& c, std::int64_t sets, Device& device,
                        const ErrorStudyOptions& options) {
  ErrorStudy study;
  std::optional<Collection> o, lse;
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
    Problem asked = of_set.problem;
    if (options.of_unrounded_inputs) asked.element_type = ElementType::fp32;
    const Inputs exact_inputs =
        options.of_unrounded_inputs
            ? with_key_order(asked, make_inputs(asked, of_set.inputs), options.key_order)
            : inputs;
    const Answer answer = run.answer_to(asked, of_set.plan, exact_inputs);
    const Certificate certificate =
        certify_rows(asked, exact_inputs, answer, of_set.inputs.seed, 1);
    if (!certificate.holds()) {
      throw std::logic_error(fmt::format(
          "the f64 reference differs from the oracle by more than its own error estimate, in {}",
          to_string(of_set)));
    }
    study.certified_rows += certificate.rows;
    if (!o) {
      o.emplace(answer[forward::o].value.shape(), sets);
      lse.emplace(answer[forward::lse].value.shape(), sets);
    }
    o->want.add(answer[forward::o].value);
    o->bound.add(answer[forward::o].bound);
    o->got.add(launch.outputs[forward::o]);
    lse->want.add(answer[forward::lse].value);
    lse->bound.add(answer[forward::lse].bound);
    lse->got.add(launch.outputs[forward::lse]);
  }
  if (!o) throw std::logic_error("study_errors: no data set");
  const bool is_bounded = !options.of_unrounded_inputs;
  study.o = o->errors(c.problem.element_type, is_bounded, options.detail);
  if (kernel.gives(forward::lse)) {
    study.lse = lse->errors(ElementType::fp32, is_bounded, {.axes = options.detail.axes});
  }
  return study;
}

}  // namespace attest
