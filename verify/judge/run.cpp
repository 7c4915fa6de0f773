#include "verify/judge/run.hpp"

#include <exception>

#include "core/inputs/input_family.hpp"
#include "cpu_reference/device_reference.hpp"

namespace attest {

const Inputs& Run::inputs() {
  const InPhase phase(clock_, Phase::inputs);
  if (!inputs_) inputs_ = make_inputs(case_.problem, case_.inputs);
  return *inputs_;
}

const Launch& Run::base() {
  if (!base_) base_ = launch(case_, inputs());
  return *base_;
}

const Answer& Run::answer() {
  if (!answer_) answer_ = answer_to(case_.problem, case_.plan, inputs());
  return *answer_;
}

const std::vector<RowErrorModel>& Run::error_models() {
  if (!error_models_) {
    error_models_ =
        model_errors(case_.problem, inputs(),
                     kernel_.precision(case_.problem, case_.plan).as<PrecisionPlan>(), answer());
  }
  return *error_models_;
}

const StatisticValues& Run::statistics() {
  if (!statistics_) statistics_ = statistics_of(error_models(), answer(), base().outputs);
  return *statistics_;
}

namespace {

Outputs launched(Session& session) {
  try {
    session.launch();
    return session.read_outputs();
  } catch (const KernelError&) {
    throw;  // a sentence of the kernel, which is well
  } catch (const std::exception& error) {
    throw KernelFault(error.what());
  } catch (...) {
    throw KernelFault("the kernel threw something that is not an exception");
  }
}

}  // namespace

Run::Relaunches Run::launch_with_other_lengths() {
  const InPhase phase(clock_, Phase::launch);
  Session session(kernel_, case_, inputs(), device_);
  Relaunches launches;
  launches.first = launched(session);
  session.shorten_entries();
  launches.shorter = launched(session);
  session.restore_entries();
  launches.again = launched(session);
  return launches;
}

Launch Run::launch(const Case& variation, const Inputs& inputs, std::int64_t capacity) {
  const InPhase phase(clock_, Phase::launch);
  (void)device_.take_findings();
  Session session(kernel_, variation, inputs, device_, capacity);
  Outputs outputs = launched(session);
  return {.outputs = std::move(outputs),
          .memory = session.memory_report(),
          .findings = device_.take_findings(),
          .changed_mode = session.changed_mode()};
}

Answer Run::answer_to(const Problem& problem, const Plan& plan, const Inputs& inputs) {
  const InPhase phase(clock_, Phase::reference);
  return best_answer(problem, inputs, kernel_.precision(problem, plan));
}

}  // namespace attest
