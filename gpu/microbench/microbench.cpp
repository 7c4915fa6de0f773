// Answers questions about the hardware; one record a line.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>

#include "core/base/error.hpp"
#include "gpu/microbench/benchmark.hpp"
#include "gpu/runtime/device_info.hpp"

namespace attest::microbench {
namespace {

constexpr std::array all{
    Benchmark{"instruction_rates", "How many lanes of an instruction does an SM do in a clk?",
              instruction_rates},
    Benchmark{"softmax_rates", "Does it pay to compute part of the exponentials without MUFU?",
              softmax_rates},
    Benchmark{"lazy_rescale", "What does it cost to rescale O, and to ask whether it must be?",
              lazy_rescale},
    Benchmark{"wgmma_peak", "What does wgmma reach by N, place of A, warpgroups and values?",
              wgmma_peak},
    Benchmark{"wgmma_beside", "What do other warpgroups reach beside wgmma?", wgmma_beside},
    Benchmark{"mainloop_orders", "What does the inner loop of attention reach without loads?",
              mainloop_orders},
    Benchmark{"l2_bandwidth", "How fast does TMA bring tiles from L2, and does a cluster help?",
              l2_bandwidth},
};

void run(const std::vector<std::string>& names, const std::string& out) {
  const std::vector<Benchmark> benchmarks = chosen(all, names);
  if (const std::string reason = why_no_gpu(); !reason.empty()) throw MachineError(reason);
  const Provenance provenance = current_provenance(to_string(device_info(0)));
  std::optional<RecordWriter> writer;
  if (!out.empty()) writer.emplace(out);
  for (const Benchmark& benchmark : benchmarks) {
    for (const Reading& reading : benchmark.run()) {
      const Record record = record_of(benchmark, reading, provenance);
      if (writer) {
        writer->write(record);
      } else {
        fmt::print("{}\n", to_json(record));
      }
    }
    std::fflush(stdout);
  }
  if (writer) writer->close();
}

void show(const std::string& path) {
  for (const Record& record : read_records(path).records) fmt::print("{}\n", table_row(record));
}

}  // namespace
}  // namespace attest::microbench

int main(int argc, char** argv) {
  CLI::App app{"Measures what an H200's instructions, tensor cores and L2 do in a clk."};
  std::vector<std::string> names;
  std::string out, table;
  bool list = false;
  app.add_option("benchmarks", names, "which ones; all when none is named");
  app.add_flag("--list", list, "name them and their questions");
  app.add_option("--out", out, "file of records to append to; standard output when left out");
  app.add_option("--table", table,
                 "print the rows of README.md from a file of records, and run nothing");
  using attest::ExitCode;
  try {
    app.parse(argc, argv);
    if (list) {
      for (const auto& benchmark : attest::microbench::all)
        fmt::print("{:18} {}\n", benchmark.name, benchmark.question);
    } else if (!table.empty()) {
      attest::microbench::show(table);
    } else {
      attest::microbench::run(names, out);
    }
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::bad_input);
  } catch (const attest::InvalidInput& error) {
    fmt::print(stderr, "microbench: {}\n", error.what());
    return static_cast<int>(ExitCode::bad_input);
  } catch (const std::exception& error) {
    fmt::print(stderr, "microbench: {}\n", error.what());
    return static_cast<int>(ExitCode::machine);
  }
}
