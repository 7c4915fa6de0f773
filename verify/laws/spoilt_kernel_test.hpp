#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"
#include "verify/judge/verdict.hpp"

namespace attest {

/// Verdict of a law on a correct kernel of the CPU whose result `spoil` then changes. `change`
/// makes it claim something else first.
template <typename ArgumentsOf>
Verdict verdict_of_spoilt(const std::string& law, const Case& c,
                          const std::function<void(const ArgumentsOf&)>& spoil,
                          const std::function<void(KernelInfo&)>& change = {}) {
  const KernelInfo* const correct = find_kernel(c.kernel, Executor::cpu);
  KernelInfo kernel = *correct;
  if (change) change(kernel);
  kernel.launch = [&](const Arguments& a, Device& device) {
    correct->launch(a, device);
    spoil(a);
  };
  HostMemoryDevice device;
  Run run(kernel, c, device);
  return verify_case(run, {.glob = law, .every_law = true}).verdict;
}

/// The law holds for the kernel as it is and fails for the spoilt one.
template <typename ArgumentsOf>
void expect_law_catches(const std::string& law, const Case& c,
                        const std::function<void(const ArgumentsOf&)>& spoil) {
  ASSERT_NE(find_law(law), nullptr) << law;
  EXPECT_EQ(verdict_of_spoilt<ArgumentsOf>(law, c, [](const ArgumentsOf&) {}), Verdict::passed)
      << law;
  EXPECT_EQ(verdict_of_spoilt<ArgumentsOf>(law, c, spoil), Verdict::failed) << law;
}

}  // namespace attest
