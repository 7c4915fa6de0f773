#pragma once

#include <string>

namespace attest::microbench {

/// One number: the median over `launches` of a kernel, and the lowest and the highest of them.
struct Reading {
  std::string name;  ///< within its benchmark
  double median = 0;
  std::string unit;
  double lowest = 0, highest = 0;
  int launches = 0;
  double sm_clock_mhz = 0;  ///< clock64 over globaltimer inside the kernels, median of the launches
};

}  // namespace attest::microbench
