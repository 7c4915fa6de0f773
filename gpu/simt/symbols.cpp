#include "gpu/simt/symbols.hpp"

#include <backtrace.h>
#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "core/run/kernel_name.hpp"

namespace attest::simt {
namespace {

void ignore_error(void*, const char*, int) {}

backtrace_state* symbols() {
  // The library keeps it for the life of the program and offers no way to free it.
  static backtrace_state* const state = backtrace_create_state(nullptr, 1, ignore_error, nullptr);
  return state;
}

/// The whole address of a return address's low half: no two places in a program are 2 GiB apart.
std::uintptr_t complete(ProgramPoint point) {
  const auto here = reinterpret_cast<std::uintptr_t>(&ignore_error);
  const auto distance = static_cast<std::int32_t>(point - static_cast<ProgramPoint>(here));
  return here + static_cast<std::uintptr_t>(std::int64_t{distance});
}

std::string relative_to_repository(std::string_view file) {
  // Given relative paths (ccache's base_dir does so), a compiler notes build/release/../../gpu/...
  if (const std::size_t up = file.rfind("../"); up != std::string_view::npos) {
    return std::string(file.substr(up + 3));
  }
  // Of an object that was compiled in another checkout (ccache, ATTEST_EXECUTOR_OBJECTS) the root
  // is that one's: kernels lie in gpu/ and include core/.
  std::size_t root = 0;
  for (const std::string_view folder : {"/gpu/", "/core/"}) {
    if (const std::size_t at = file.rfind(folder); at != std::string_view::npos)
      root = std::max(root, at + 1);
  }
  return std::string(file.substr(root != 0 ? root : file.rfind('/') + 1));
}

/// Copy constructors and assignments, which are called wherever a struct is loaded or stored
/// (-fno-elide-constructors, cmake/simt.cmake): the line that a reader looks for is their caller's.
/// A copy of a type in an anonymous namespace has no such name, and keeps its line.
bool copies_a_struct(const char* function) {
  if (function == nullptr) return false;
  const std::string_view name = function;
  const auto has = [name](std::string_view part) { return name.find(part) != name.npos; };
  return name == "operator=" || has("aSERK") || has("aSEO") || has("C4ERK") || has("C4EO") ||
         has("C2ERK") || has("C2EO");
}

}  // namespace

std::string source_line(const char* file, int line) {
  return fmt::format("{}:{}", relative_to_repository(file), line);
}

std::vector<std::string> source_lines(ProgramPoint point) {
  std::vector<std::string> lines;
  if (point != 0 && symbols() != nullptr) {
    const std::uintptr_t call = complete(point) - 1;
    backtrace_pcinfo(
        symbols(), call,
        [](void* out, std::uintptr_t, const char* file, int line, const char* function) {
          if (file != nullptr && !copies_a_struct(function)) {
            static_cast<std::vector<std::string>*>(out)->push_back(source_line(file, line));
          }
          return 0;
        },
        ignore_error, &lines);
  }
  if (lines.empty()) lines.emplace_back("an unknown line");
  return lines;
}

std::string source_line(ProgramPoint point) {
  return source_lines(point).front();
}

std::string function_name(const void* address) {
  std::string name;
  if (symbols() != nullptr)
    backtrace_syminfo(
        symbols(), reinterpret_cast<std::uintptr_t>(address),
        [](void* out, std::uintptr_t, const char* symbol, std::uintptr_t, std::uintptr_t) {
          if (symbol != nullptr) *static_cast<std::string*>(out) = symbol;
        },
        ignore_error, &name);
  if (name.empty()) return "kernel";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> readable(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  if (readable == nullptr) return name;
  return kernel_name_of(readable.get());
}

}  // namespace attest::simt
