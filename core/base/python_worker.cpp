#include "core/base/python_worker.hpp"

#include <unistd.h>

#include <utility>

#include "core/base/python_place.hpp"

namespace attest {
namespace {

constexpr const char* advice = "; set ATTEST_PYTHON to a Python 3";

/// The texts, which live until the child has been started.
struct Texts {
  std::vector<OwnedFd> files;

  explicit Texts(std::span<const std::string_view> scripts) {
    for (const std::string_view script : scripts) files.push_back(memory_file(script));
  }
  [[nodiscard]] JsonWorker::Start start(std::string name, JsonWorker::Limits limits) const {
    const std::string python = python_program();
    JsonWorker::Start start{.name = std::move(name),
                            .program = python,
                            .arguments = {python},
                            .limits = limits,
                            .advice = advice};
    for (const OwnedFd& file : files) {
      start.arguments.push_back(JsonWorker::path_there(start.files.size()));
      if (start.files.empty()) start.arguments.push_back(std::to_string(getpid()));
      start.files.push_back(file.get());
    }
    return start;
  }
};

}  // namespace

PythonWorker::PythonWorker(std::string name, std::span<const std::string_view> scripts,
                           Limits limits)
    : JsonWorker(Texts(scripts).start(std::move(name), limits)) {}

JsonWorker::Start start_of_script(std::string name, const std::string& script,
                                  const std::vector<std::string>& arguments, bool is_boxed) {
  const std::string python = is_boxed ? python_place().program : python_program();
  JsonWorker::Start start{.name = std::move(name),
                          .program = python,
                          .arguments = {python, script, std::to_string(getpid())},
                          .advice = advice};
  start.arguments.insert(start.arguments.end(), arguments.begin(), arguments.end());
  return start;
}

}  // namespace attest
