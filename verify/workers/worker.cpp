#include "verify/workers/worker.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/json_worker.hpp"
#include "core/run/fault_words.hpp"
#include "core/run/registry.hpp"
#include "verify/workers/worker_protocol.hpp"

namespace attest {
namespace {

/// The channel moves away from the numbers that a careless kernel could write to.
int take_channel() {
  const int channel = fcntl(worker_channel_fd, F_DUPFD_CLOEXEC, 100);
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (channel < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0) {
    throw MachineError("attest worker is started by attest verify, not by hand");
  }
  close(null);
  return channel;
}

ActivityNote* take_note() {
  void* page =
      mmap(nullptr, sizeof(ActivityNote), PROT_READ | PROT_WRITE, MAP_SHARED, worker_note_fd, 0);
  close(worker_note_fd);
  return page == MAP_FAILED ? nullptr : static_cast<ActivityNote*>(page);
}

WorkerError describe_current_exception() {
  try {
    throw;
  } catch (const MachineError& error) {
    return {WorkerError::Kind::machine, error.what()};
  } catch (const InvalidInput& error) {
    return {WorkerError::Kind::input, error.what()};
  } catch (const KernelError& error) {
    return {WorkerError::Kind::kernel, error.what()};
  } catch (const std::bad_alloc&) {
    return {WorkerError::Kind::machine, "out of memory"};
  } catch (const std::exception& error) {
    return {WorkerError::Kind::internal, error.what()};
  }
}

/// Of a kernel whose process died when it was asked something: its launches are KernelFaults.
std::string words_for(const WorkerFault& fault, const ActivityNote* note) {
  if (note == nullptr) return fault.what();
  return fmt::format("{}, while the kernel was asked {}", fault.what(),
                     question_texts.at(static_cast<std::size_t>(note->question.load())));
}

CaseAnswer crashed(const CaseTask& task, const ActivityNote* note, const std::string& what) {
  CaseAnswer answer;
  answer.verdict.verdict = Verdict::crashed;
  answer.verdict.failure =
      Failure{.law = note != nullptr && note->law[0] != '\0' ? note->law.data() : "*",
              .the_case = task.the_case,
              .check = Check::failed(what),
              .kind = Verdict::crashed};
  return answer;
}

}  // namespace

int run_worker(const std::function<void(const WorkerSetup&)>& load,
               const std::function<void()>& prepare) {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  // An address space of the executor's size would make a core file nobody wants.
  const rlimit no_core{0, 0};
  (void)setrlimit(RLIMIT_CORE, &no_core);
  LineChannel channel(take_channel());
  ActivityNote* const note = take_note();
  if (note != nullptr) describe_faults_in(note->fault);
  // What a kernel prints is read case by case.
  (void)std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  const auto answer = [&](std::string text) {
    (void)std::fflush(stdout);
    std::cout.flush();
    channel.send(std::move(text));
  };
  try {
    if (prepare) prepare();
    const std::optional<std::string> first = channel.receive();
    if (!first) return 0;
    load(setup_from_line(*first));
    answer(encode(WorkerSetup{}));  // ready
    InProcessRunner runner(note);
    while (const std::optional<std::string> line = channel.receive()) {
      const CaseTask task = task_from_line(*line);
      const KernelInfo* kernel = find_kernel(task.the_case.kernel, task.executor);
      if (kernel == nullptr) {
        throw std::logic_error("a worker does not know the kernel " + task.the_case.kernel);
      }
      try {
        answer(encode(runner.run(*kernel, task)));
      } catch (const WorkerFault& fault) {
        answer(encode(crashed(task, note, words_for(fault, note))));
        std::_Exit(0);
      } catch (const KernelFault& fault) {
        answer(encode(crashed(task, note, fault.what())));
        std::_Exit(0);  // no destructor may wait for a lost device
      }
    }
  } catch (...) {
    answer(encode(describe_current_exception()));
  }
  // Workers are stopped, not shut down: what a kernel left behind must not run now.
  std::_Exit(0);
}

}  // namespace attest
