#include "core/base/python_place.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <system_error>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/subprocess.hpp"

namespace attest {
namespace {

constexpr const char* question =
    "import importlib.util, json, sys; print(json.dumps({'program': sys.executable, 'numpy': "
    "importlib.util.find_spec('numpy') is not None, 'folders': [sys.prefix, sys.base_prefix, "
    "sys.exec_prefix, *(path for path in sys.path if path)]}))";

/// What a process says to those that it starts: the answer, and whose it is.
constexpr const char* known_place = "ATTEST_PYTHON_PLACE";

PythonPlace place_from(const Json& said) {
  PythonPlace place{.program = said.at("program"), .folders = {}, .has_numpy = said.at("numpy")};
  for (const Json& folder : said.at("folders")) {
    if (folder != "/") place.folders.push_back(folder);  // all files would be no box
  }
  return place;
}

PythonPlace asked_of(const std::string& python) {
  if (const char* const told = std::getenv(known_place); told != nullptr && is_json(told)) {
    const Json known = parse_json(told);
    if (known.is_object() && known.value("of", "") == python) return place_from(known);
  }
  try {
    Subprocess child({.program = python,
                      .arguments = {python, "-c", question},
                      .channel_there = {STDIN_FILENO, STDOUT_FILENO}});
    std::optional<std::string> line;
    while (!(line = child.take_line()) && child.receive()) {
    }
    if (!line) throw MachineError(fmt::format("'{}' does not say where it lies", python));
    Json said = parse_json(*line);
    said["of"] = python;
    (void)setenv(known_place, said.dump().c_str(), 1);
    return place_from(said);
  } catch (const std::system_error& error) {
    throw MachineError(fmt::format("'{}' cannot be started: {}; set ATTEST_PYTHON to a Python 3",
                                   python, error.code().message()));
  }
}

}  // namespace

std::string python_program() {
  const char* const named = std::getenv("ATTEST_PYTHON");
  return named != nullptr && *named != '\0' ? named : "python3";
}

const PythonPlace& python_place() {
  static const PythonPlace place = asked_of(python_program());
  return place;
}

}  // namespace attest
