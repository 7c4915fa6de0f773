// Prints one line a case of the golden campaign: kernel, executor, number, verdict, and hashes of
// the case, of every bit of its inputs, its outputs, the exact answer with bounds and own errors,
// and the statistics, and of the laws that were asked. `golden CASES JOBS`. A change that means to
// leave behaviour alone leaves these lines alone (tests/golden/README.md).
#include <fmt/format.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/on_threads.hpp"
#include "core/operations/forward.hpp"
#include "core/run/registry.hpp"
#include "verify/cases/generators.hpp"
#include "verify/judge/run.hpp"
#include "verify/judge/verdict.hpp"

namespace attest {
namespace {

constexpr std::uint64_t seed = 18;

/// FNV-1a.
class Hash {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) value_ = (value_ ^ static_cast<unsigned char>(byte)) * prime;
  }
  template <typename T>
  void add(const Tensor<T>& tensor) {
    for (const T value : tensor.values()) add_bits(value);
  }
  void add_bits(double value) {
    const auto bits = std::bit_cast<std::array<char, sizeof value>>(value);
    add({bits.data(), bits.size()});
  }
  [[nodiscard]] std::string text() const { return fmt::format("{:016x}", value_); }

 private:
  static constexpr std::uint64_t prime = 0x100000001b3ULL;
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

template <typename... Parts>
std::string hash_of(const Parts&... parts) {
  Hash hash;
  (hash.add(parts), ...);
  return hash.text();
}

template <typename List>
std::string tensors_hash(const List& tensors) {
  Hash hash;
  for (const auto& tensor : tensors) hash.add(tensor);
  return hash.text();
}

std::string answer_hash(const Answer& answer) {
  Hash hash;
  for (const OutputAnswer& output : answer) hash.add(output.value);
  for (const OutputAnswer& output : answer) hash.add(output.bound);
  for (const OutputAnswer& output : answer) hash.add(output.own_error);
  return hash.text();
}

std::string statistics_hash(Run& run) {
  Hash hash;
  for (const StatisticValue& value : run.statistics()) {
    hash.add_bits(value.applies ? value.value : -1);
  }
  return hash.text();
}

std::string laws_hash(const CaseVerdict& verdict) {
  Hash hash;
  for (const std::string& law : verdict.checked_laws) hash.add(law + ",");
  hash.add_bits(verdict.worst_over_bound.of("o"));
  hash.add_bits(verdict.worst_over_bound.of("lse"));
  if (verdict.failure) {
    hash.add(verdict.failure->law + verdict.failure->check.detail);
    hash.add_bits(verdict.failure->check.worst.ratio);
  }
  return hash.text();
}

std::string line_of(const KernelInfo& kernel, std::uint64_t index) {
  const std::string head = fmt::format("{} {} {}", kernel.name, name_of(kernel.executor), index);
  const std::optional<Case> c = draw_case(kernel, {}, seed, index);
  if (!c) return head + " given up";
  const std::unique_ptr<Device> device = make_device(kernel.executor);
  Run run(kernel, *c, *device);
  const CaseVerdict verdict = verify_case(run, {.every_law = true});
  return fmt::format("{} {} {} {} {} {} {} {}", head, name_of(verdict.verdict),
                     hash_of(to_json(*c)), tensors_hash(run.inputs()),
                     tensors_hash(run.base().outputs), answer_hash(run.answer()),
                     statistics_hash(run), laws_hash(verdict));
}

int golden(std::uint64_t cases, unsigned jobs) {
  std::vector<const KernelInfo*> kernels;
  for (const KernelInfo& kernel : all_kernels()) {
    if (kernel.executor != Executor::gpu && kernel.role != KernelRole::mutant &&
        kernel.role != KernelRole::limit && kernel.operation == &forward_operation) {
      kernels.push_back(&kernel);
    }
  }
  std::vector<std::string> lines(kernels.size() * cases);
  on_threads(lines.size(), jobs, [&] {
    return [&](std::size_t i) { lines[i] = line_of(*kernels[i / cases], i % cases); };
  });
  for (const std::string& line : lines) fmt::print("{}\n", line);
  return 0;
}

}  // namespace
}  // namespace attest

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: golden CASES JOBS\n");
    return 2;
  }
  return attest::golden(std::strtoull(argv[1], nullptr, 10),
                        static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)));
}
