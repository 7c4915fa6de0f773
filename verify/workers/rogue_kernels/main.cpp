#include <gtest/gtest.h>

#include <string_view>

#include "core/base/error.hpp"
#include "core/run/registry.hpp"
#include "verify/campaign/campaign.hpp"
#include "verify/workers/isolated_runner.hpp"
#include "verify/workers/rogue_kernels/rogue_kernels.hpp"
#include "verify/workers/worker.hpp"

namespace {

/// Hangs in a worker until it is killed: the test does that, and looks for orphans.
int run_hanging_campaign() {
  attest::CampaignOptions options;
  options.make_runner = [] {
    return std::make_unique<attest::IsolatedRunner>(attest::Isolation{});
  };
  (void)attest::run_campaign({attest::find_kernel("rogue/hang", attest::Executor::cpu)}, options);
  return 0;
}

}  // namespace

// Under AddressSanitizer a crash must look to the parent as it does without.
extern "C" const char* __asan_default_options() {
  return "handle_segv=0:handle_abort=0:detect_leaks=0";
}

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  attest::add_rogue_kernels(command == attest::worker_argument);
  if (command == attest::worker_argument) {
    return attest::run_worker([](const attest::WorkerSetup& setup) {
      if (!setup.inputs_file.empty()) throw attest::InvalidInput(setup.inputs_file + " is bad");
    });
  }
  if (command == "hanging-campaign") return run_hanging_campaign();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
