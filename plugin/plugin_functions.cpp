#include "plugin/plugin_functions.hpp"

#include <fmt/format.h>

#include <cstring>

#include "core/base/error.hpp"

namespace attest {
namespace {

constexpr std::size_t longest_sentence = 4096;

std::optional<std::string> sentence(const char* text) {
  if (text == nullptr) return std::nullopt;
  return std::string(text, strnlen(text, longest_sentence));
}

/// An exception must not leave a plugin, but if one does, it is the kernel's failure.
template <typename Call>
auto guarded(const AttestKernel& kernel, const char* function, const Call& call) {
  try {
    return call();
  } catch (...) {
    throw KernelError(fmt::format("{}: {}() threw a C++ exception", kernel.name, function));
  }
}

class FunctionsHere final : public PluginFunctions {
 public:
  explicit FunctionsHere(const AttestKernel& kernel) : kernel_(kernel) {}

  std::optional<std::string> unsupported(const AttestProblem& problem, std::size_t plan) override {
    return guarded(kernel_, "unsupported",
                   [&] { return sentence(kernel_.unsupported(&problem, &kernel_.plans[plan])); });
  }
  std::uint64_t scratch_bytes(const AttestProblem& problem, std::size_t plan) override {
    return guarded(kernel_, "scratch_bytes",
                   [&] { return kernel_.scratch_bytes(&problem, &kernel_.plans[plan]); });
  }
  void refine_precision(const AttestProblem& problem, std::size_t plan,
                        AttestPrecision& precision) override {
    guarded(kernel_, "refine_precision",
            [&] { kernel_.refine_precision(&problem, &kernel_.plans[plan], &precision); });
  }
  std::int64_t first_row(const AttestProblem& problem, std::size_t plan) override {
    return guarded(kernel_, "first_row",
                   [&] { return kernel_.first_row(&problem, &kernel_.plans[plan]); });
  }
  std::optional<std::string> run(const AttestRun& run, Device& /*device*/) override {
    return guarded(kernel_, "run", [&] { return sentence(kernel_.run(&run)); });
  }

 private:
  AttestKernel kernel_;
};

}  // namespace

std::shared_ptr<PluginFunctions> functions_here(const AttestKernel& kernel) {
  return std::make_shared<FunctionsHere>(kernel);
}

}  // namespace attest
