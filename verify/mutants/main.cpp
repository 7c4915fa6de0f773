#include <gtest/gtest.h>

#include <string_view>

#include "verify/workers/worker.hpp"

// This program is its own worker.
int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == attest::worker_argument) {
    return attest::run_worker([](const attest::WorkerSetup&) {});
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
