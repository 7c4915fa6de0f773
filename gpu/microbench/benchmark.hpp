#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/records/record.hpp"

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

/// A question about the hardware, and the program that answers it on device 0.
struct Benchmark {
  std::string_view name;
  std::string_view question;
  std::vector<Reading> (*run)();
};

/// The benchmarks with these names, in the order of `all`, each once; all of them when no name is
/// given. Throws InvalidInput when there is none of a name.
[[nodiscard]] std::vector<Benchmark> chosen(std::span<const Benchmark> all,
                                            std::span<const std::string> names);

/// Kind `microbench`; labels `benchmark` and `reading`; measurements `median`, `lowest`, `highest`
/// in the reading's unit, `launches`, `sm_clock` in MHz.
[[nodiscard]] Record record_of(const Benchmark& benchmark, const Reading& reading,
                               const Provenance& provenance);

/// One of our records for a person: `| benchmark | reading | median unit | sm_clock MHz |` with
/// four digits. Throws InvalidInput for another kind of record.
[[nodiscard]] std::string table_row(const Record& record);

// The benchmarks of microbench.cpp, each in the file of its name.

std::vector<Reading> instruction_rates();
std::vector<Reading> softmax_rates();
std::vector<Reading> lazy_rescale();
std::vector<Reading> wgmma_peak();
std::vector<Reading> wgmma_beside();
std::vector<Reading> mainloop_orders();
std::vector<Reading> l2_bandwidth();

}  // namespace attest::microbench
