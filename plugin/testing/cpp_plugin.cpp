// A plugin in C++: its own standard library (linked statically or not), streams, exceptions that it
// catches itself and one that it lets out.
#include <attest/plugin.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

std::string& last_error() {
  static std::string text;
  return text;
}

const char* run_empty_rows(const AttestRun* run) {
  const AttestProblem& p = *run->problem;
  try {
    if (p.key_len > 0) throw std::invalid_argument("only problems without keys");
    std::vector<float> zeros(static_cast<std::size_t>(p.head_dim), 0.0F);
    for (std::int64_t row = 0; row < p.batch * p.query_heads * p.query_len; ++row) {
      static_cast<float*>(attest_tensor(run, "lse")->data)[row] =
          -std::numeric_limits<float>::infinity();
    }
    return nullptr;
  } catch (const std::exception& error) {
    std::ostringstream text;
    text << error.what() << ", not " << p.key_len;
    last_error() = text.str();
    return last_error().c_str();
  }
}

const char* run_throwing(const AttestRun*) {
  throw std::runtime_error("out it goes");
}

AttestKernel kernel(const char* name, decltype(AttestKernel::run) run) {
  static const AttestFormat types[] = {ATTEST_FP32, ATTEST_FP16, ATTEST_BF16};
  static const AttestPlan plans[] = {{nullptr, 0}};
  AttestKernel result{};
  result.size = sizeof result;
  result.name = name;
  result.element_types = types;
  result.element_type_count = 3;
  result.masks = ATTEST_NO_MASK;
  result.plans = plans;
  result.plan_count = 1;
  result.run = run;
  return result;
}

}  // namespace

extern "C" const AttestPlugin* attest_plugin(std::uint32_t) {
  static const AttestKernel empty = kernel("cpp_empty_rows", run_empty_rows);
  static const AttestKernel throwing = kernel("cpp_throwing", run_throwing);
  static const AttestKernel* const kernels[] = {&empty, &throwing};
  static const AttestPlugin plugin{sizeof plugin, ATTEST_PLUGIN_VERSION, kernels, 2};
  return &plugin;
}
