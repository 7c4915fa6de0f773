#include "core/run/registry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <tuple>

#include "core/attention/problem_field.hpp"
#include "core/base/error.hpp"
#include "core/run/host_memory_device.hpp"

namespace attest {
namespace {

struct Registry {
  std::vector<KernelInfo> kernels;
  std::vector<DeviceFactory> devices;
  bool is_sorted = false;
};

// A function-local static exists before the first registration, whatever the order of
// initialisation.
Registry& registry() {
  static Registry instance;
  return instance;
}

const DeviceRegistration host_memory{
    {.executor = Executor::cpu,
     .unavailable = [] { return std::string{}; },
     .make = [] { return std::unique_ptr<Device>(std::make_unique<HostMemoryDevice>()); }}};

const DeviceFactory* find_factory(Executor executor) {
  for (const DeviceFactory& factory : registry().devices) {
    if (factory.executor == executor) return &factory;
  }
  return nullptr;
}

std::optional<std::string> why_feature_is_missing(const KernelInfo& kernel,
                                                  const Problem& problem) {
  for (const ProblemField& field : problem_fields()) {
    if (!uses_feature(field, problem) || kernel.features.*field.feature->flag) continue;
    return fmt::format("{} {}", kernel.name, field.feature->refusal);
  }
  return std::nullopt;
}

/// The first length, of the problem or of an entry, that is no multiple.
std::optional<std::string> why_lengths_do_not_fit(const KernelInfo& kernel,
                                                  const Problem& problem) {
  const auto sentence = [&](std::string_view what, std::int64_t multiple, std::int64_t got) {
    return fmt::format("{} takes multiples of {} {}, and not {}", kernel.name, multiple, what, got);
  };
  const std::int64_t entries = problem.length_seed != 0 ? problem.batch : 1;
  for (std::int64_t b = 0; b < entries; ++b) {
    const std::int64_t queries = problem.query_len_of(b), keys = problem.key_len_of(b);
    if (queries % kernel.query_len_multiple != 0) {
      return sentence("queries", kernel.query_len_multiple, queries);
    }
    if (keys % kernel.key_len_multiple != 0) {
      return sentence("keys", kernel.key_len_multiple, keys);
    }
  }
  return std::nullopt;
}

}  // namespace

KernelRegistration::KernelRegistration(KernelInfo kernel) {
  registry().kernels.push_back(std::move(kernel));
  registry().is_sorted = false;
}

MutantRegistration::MutantRegistration(const Mutant& mutant, KernelInfo kernel) {
  kernel.planted_in = kernel.name;
  kernel.name = mutant.name;
  kernel.summary = mutant.summary;
  kernel.source = mutant.source;
  kernel.role = KernelRole::mutant;
  kernel.killed_by = mutant.killed_by;
  KernelRegistration{std::move(kernel)};
}

DeviceRegistration::DeviceRegistration(DeviceFactory factory) {
  registry().devices.push_back(std::move(factory));
}

void add_kernel(KernelInfo kernel) {
  if (std::ranges::find(all_kernels(), kernel.name, &KernelInfo::name) != all_kernels().end()) {
    throw InvalidInput(fmt::format("a kernel named '{}' exists already", kernel.name));
  }
  KernelRegistration{std::move(kernel)};
}

const std::vector<KernelInfo>& all_kernels() {
  Registry& r = registry();
  if (!r.is_sorted) {
    const auto key = [](const KernelInfo& k) { return std::tuple(k.name, k.executor); };
    std::sort(r.kernels.begin(), r.kernels.end(),
              [&](const KernelInfo& a, const KernelInfo& b) { return key(a) < key(b); });
    for (std::size_t i = 1; i < r.kernels.size(); ++i) {
      if (key(r.kernels[i - 1]) == key(r.kernels[i])) {
        throw std::logic_error(fmt::format("two kernels are registered as '{}' for executor {}",
                                           r.kernels[i].name, name_of(r.kernels[i].executor)));
      }
    }
    r.is_sorted = true;
  }
  return r.kernels;
}

const KernelInfo* find_kernel(std::string_view name, Executor executor) {
  for (const KernelInfo& kernel : all_kernels()) {
    if (kernel.name == name && kernel.executor == executor) return &kernel;
  }
  return nullptr;
}

std::string why_unavailable(Executor executor) {
  const DeviceFactory* factory = find_factory(executor);
  if (factory == nullptr) {
    return fmt::format("this build has no {} executor", name_of(executor));
  }
  return factory->unavailable();
}

std::unique_ptr<Device> make_device(Executor executor) {
  if (const std::string reason = why_unavailable(executor); !reason.empty()) {
    throw MachineError(fmt::format("executor {} cannot be used: {}", name_of(executor), reason));
  }
  return find_factory(executor)->make();
}

std::string_view name_of(Executor executor) {
  constexpr std::array<std::string_view, 3> names{"cpu", "simt", "gpu"};
  return names[static_cast<std::size_t>(executor)];
}

std::optional<Executor> executor_from_name(std::string_view name) {
  for (const Executor executor : {Executor::cpu, Executor::simt, Executor::gpu}) {
    if (name_of(executor) == name) return executor;
  }
  return std::nullopt;
}

void Device::fill(std::byte* to, std::size_t bytes, std::span<const std::byte> pattern) {
  synchronize();
  for (std::size_t at = 0; at < bytes; at += pattern.size()) {
    std::ranges::copy(pattern.first(std::min(pattern.size(), bytes - at)), to + at);
  }
}

std::vector<Measurement> Device::count(std::span<const std::string> counters,
                                       const std::function<void()>& /*work*/) {
  throw MachineError(fmt::format("{} has no hardware counters; asked for: {}", description(),
                                 fmt::join(counters, ", ")));
}

double time_launches(const KernelInfo& kernel, const Arguments& arguments, Device& device,
                     int launches) {
  if (kernel.timed_launch) return kernel.timed_launch(arguments, device, launches);
  const auto work = [&] {
    for (int i = 0; i < launches; ++i) kernel.launch(arguments, device);
  };
  return device.time_ms(work) / launches;
}

bool KernelInfo::gives(OutputIndex output) const {
  return std::ranges::find(missing_outputs, (*operation)[output].name) == missing_outputs.end();
}

std::optional<std::string> why_unsupported(const KernelInfo& kernel, const Problem& problem,
                                           const Plan& plan) {
  if (kernel.operation != problem.operation) {
    return fmt::format("{} computes {}, and not {}", kernel.name, kernel.operation->name,
                       problem.operation->name);
  }
  if (std::ranges::find(kernel.element_types, problem.element_type) == kernel.element_types.end()) {
    return fmt::format("{} has no {} version", kernel.name, format_of(problem.element_type).name);
  }
  if (std::ranges::find(kernel.masks, problem.mask) == kernel.masks.end()) {
    return fmt::format("{} has no mask {}", kernel.name, name_of(problem.mask));
  }
  if (!kernel.head_dims.empty() &&
      std::ranges::find(kernel.head_dims, problem.head_dim) == kernel.head_dims.end()) {
    return fmt::format("{} has no head_dim {}; allowed: {}", kernel.name, problem.head_dim,
                       fmt::join(kernel.head_dims, ", "));
  }
  if (auto reason = why_feature_is_missing(kernel, problem)) return reason;
  if (auto reason = why_lengths_do_not_fit(kernel, problem)) return reason;
  return kernel.unsupported ? kernel.unsupported(problem, plan) : std::nullopt;
}

Problem with_length_multiples(const KernelInfo& kernel, Problem problem) {
  const auto up = [](std::int64_t length, std::int64_t multiple) {
    return (length + multiple - 1) / multiple * multiple;
  };
  problem.query_len = up(problem.query_len, kernel.query_len_multiple);
  problem.key_len = up(problem.key_len, kernel.key_len_multiple);
  return problem;
}

std::optional<std::string> why_unsupported(const KernelInfo& kernel, const Case& c) {
  if (auto reason = why_unsupported(kernel, c.problem, c.plan)) return reason;
  const auto reason = why_layouts_do_not_fit(kernel.layout_needs, c.problem, c.layouts);
  if (!reason) return std::nullopt;
  return fmt::format("{}: {}", kernel.name, *reason);
}

}  // namespace attest
