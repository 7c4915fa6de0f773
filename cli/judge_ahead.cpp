#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/judge.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/selection.hpp"
#include "core/base/json.hpp"
#include "core/base/orphans.hpp"
#include "core/base/temporary_folder.hpp"
#include "plugin/python_process.hpp"
#include "verify/workers/worker_process.hpp"

namespace attest {
namespace {

/// Started before anybody asked; null: there is none.
std::unique_ptr<WorkerProcess> worker_ahead;

/// The line on stdin; empty: nobody will ask.
std::string line_of_stdin() {
  std::string line;
  std::getline(std::cin, line);
  return line;
}

ExitCode judge_by(const std::string& line) {
  const auto arguments = parse_json(line).get<std::vector<std::string>>();
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  CLI::App app;
  Action action;
  add_judge_command(app, action);
  app.parse(static_cast<int>(pointers.size()), pointers.data());
  require_values(app, "attest");
  return action();
}

}  // namespace

ExitCode judge_when_asked(bool is_for_plugins) {
  adopt_orphans();
  const SharedTemporaryFolder folder;
  try {
    if (!is_for_plugins) {
      start_python_ahead();
      worker_ahead = WorkerProcess::ahead();
    }
  } catch (const MachineError&) {  // who is judged will meet it again, and say it
  }
  const std::string line = line_of_stdin();
  const ExitCode code = line.empty() ? ExitCode::interrupted : judge_by(line);
  worker_ahead.reset();
  (void)end_children();
  return code;
}

std::unique_ptr<WorkerProcess> worker_for_judging(const WorkerSetup& setup) {
  static std::mutex mutex;
  std::unique_ptr<WorkerProcess> worker;
  {
    const std::scoped_lock lock(mutex);
    worker = std::move(worker_ahead);
  }
  if (worker == nullptr) return std::make_unique<WorkerProcess>(setup);
  worker->load(setup);
  return worker;
}

}  // namespace attest
