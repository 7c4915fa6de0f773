#include "verify/judge/run.hpp"

#include <exception>
#include <memory>

#include "core/inputs/input_family.hpp"
#include "core/run/kept_memory.hpp"
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

/// Result of `work`; an exception of it is the kernel's fault.
template <typename Work>
auto of_kernel(const Work& work) {
  try {
    return work();
  } catch (const KernelError&) {
    throw;  // a sentence of the kernel, which is well
  } catch (const std::exception& error) {
    throw KernelFault(error.what());
  } catch (...) {
    throw KernelFault("the kernel threw something that is not an exception");
  }
}

Outputs launched(Session& session) {
  return of_kernel([&] {
    session.launch();
    return session.read_outputs();
  });
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

KernelInfo Run::on_its_device() const {
  KernelInfo kernel = kernel_;
  kernel.launch = [this](const Arguments& arguments, Device& /*memory*/) {
    kernel_.launch(arguments, device_);
  };
  return kernel;
}

std::vector<Outputs> Run::launch_in_turn(const std::vector<Call>& calls, bool keeps_workspace) {
  const InPhase phase(clock_, Phase::launch);
  const KernelInfo kernel = on_its_device();
  KeptMemory memory(device_, keeps_workspace ? "workspace" : "");
  std::vector<Outputs> outputs;
  for (const Call& call : calls) {
    Session session(kernel, call.the_case, call.inputs, memory);
    outputs.push_back(launched(session));
  }
  return outputs;
}

std::optional<Outputs> Run::replay(const Call& first, const Call& second) {
  const InPhase phase(clock_, Phase::launch);
  const KernelInfo kernel = on_its_device();
  KeptMemory memory(device_);
  std::unique_ptr<Recording> recording;
  std::int64_t shared_keys = 0;
  {
    Session session(kernel, first.the_case, first.inputs, memory);
    (void)launched(session);  // what a kernel does at its first launch alone is done
    shared_keys = session.arguments().page_table.shared_keys;
    const auto work = [this, arguments = session.arguments()] {
      kernel_.launch(arguments, device_);
    };
    try {
      recording = device_.record(work);
    } catch (const std::exception& error) {
      throw CannotBeRecorded(error.what());
    }
  }
  Session session(kernel, second.the_case, second.inputs, memory);
  // The record holds what the host was told: addresses, strides, and sizes of a page table.
  if (memory.has_moved() || session.arguments().page_table.shared_keys != shared_keys) {
    return std::nullopt;
  }
  return of_kernel([&] {
    device_.poison_scratch();
    recording->replay();
    return session.read_outputs();
  });
}

Launch Run::launch(const Case& variation, const Inputs& inputs, const SessionOptions& options) {
  const InPhase phase(clock_, Phase::launch);
  (void)device_.take_findings();
  Session session(kernel_, variation, inputs, device_, options);
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
