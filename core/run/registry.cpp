#include "core/run/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>

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

}  // namespace attest
