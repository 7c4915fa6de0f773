// Records what the tensor cores and ex2 of a GPU give, or what the executor gives in their place:
// two records of the same kind can be compared line by line.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "core/base/error.hpp"
#include "core/run/registry.hpp"
#include "gpu/arithmetic/arithmetic_record.hpp"

namespace attest {
namespace {

void record_arithmetic(const std::string& executor_name, const std::string& path,
                       std::size_t sample_blocks) {
  const auto executor = executor_from_name(executor_name);
  if (!executor || *executor == Executor::cpu) {
    throw InvalidInput(fmt::format("--executor is '{}'; allowed: gpu, simt", executor_name));
  }
  const auto device = make_device(*executor);
  ArithmeticRecord record;
  for (const ElementType type : {ElementType::fp16, ElementType::bf16, ElementType::fp32}) {
    for (int kind = 0; kind < operand_kinds; ++kind) {
      record.products.push_back(
          record_products(*executor, *device, type, static_cast<OperandKind>(kind), sample_blocks));
    }
  }
  for (unsigned part = 0; part < exp2_parts; ++part) {
    record.exponentials.push_back(record_exponentials(*executor, *device, part));
  }
  write_arithmetic_record(record, *device, path);
}

}  // namespace
}  // namespace attest

int main(int argc, char** argv) {
  CLI::App app{"Records mma.sync on drawn operands and ex2 on all 2^32 inputs, bit for bit."};
  std::string executor = "gpu", out;
  std::size_t samples = 4;
  app.add_option("--executor", executor, "gpu or simt");
  app.add_option("--out", out, "file of records to append to")->required();
  app.add_option("--samples", samples, "blocks of 128 products a line that are kept in full");
  try {
    app.parse(argc, argv);
    attest::record_arithmetic(executor, out, samples);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(attest::ExitCode::bad_input);
  } catch (const attest::InvalidInput& error) {
    fmt::print(stderr, "record_arithmetic: {}\n", error.what());
    return static_cast<int>(attest::ExitCode::bad_input);
  } catch (const std::exception& error) {
    fmt::print(stderr, "record_arithmetic: {}\n", error.what());
    return static_cast<int>(attest::ExitCode::machine);
  }
}
