#pragma once

#include <vector>

#include "gpu/microbench/reading.hpp"

namespace attest::microbench {

// The benchmarks of microbench.cpp, each in the file of its name.

std::vector<Reading> instruction_rates();
std::vector<Reading> softmax_rates();
std::vector<Reading> lazy_rescale();
std::vector<Reading> wgmma_peak();
std::vector<Reading> wgmma_beside();
std::vector<Reading> mainloop_orders();
std::vector<Reading> l2_bandwidth();

}  // namespace attest::microbench
