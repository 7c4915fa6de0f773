#include "gpu/simt/launch_tracer.hpp"

#include <algorithm>
#include <tuple>

#include "gpu/simt/global_memory.hpp"
#include "gpu/simt/symbols.hpp"

namespace attest::simt {
namespace {

constexpr unsigned no_warp = ~0U;

Extent3 extent(dim3 size) {
  return {size.x, size.y, size.z};
}

bool holds(const ShadowedMemory& memory, std::uintptr_t address) {
  return address - memory.base < memory.size_bytes;
}

}  // namespace

std::optional<std::int64_t> LaunchTracer::resident_blocks(const void* kernel, dim3 block,
                                                          std::size_t shared_bytes) const {
  if (!options_.resident_blocks) return std::nullopt;
  return options_.resident_blocks(
      {.kernel = function_name(kernel),
       .grid = {},
       .block = extent(block),
       .dynamic_shared_bytes = static_cast<std::int64_t>(shared_bytes)});
}

void LaunchTracer::begin_launch(const void* kernel, dim3 grid, dim3 block,
                                std::size_t shared_bytes) {
  const LaunchConfiguration launch{function_name(kernel), extent(grid), extent(block),
                                   static_cast<std::int64_t>(shared_bytes)};
  launches_.push_back(launch);
  const auto known = std::ranges::find(kernels_, kernel, &Kernel::address);
  if (known == kernels_.end()) {
    kernel_ = &kernels_.emplace_back();
    kernel_->address = kernel;
    kernel_->trace.configuration = launch;
  } else {
    kernel_ = &*known;
  }
  ++kernel_->trace.launches;
  thread_count_ = static_cast<unsigned>(launch.block.count());
}

void LaunchTracer::begin_block(const ShadowedMemory& global, const ShadowedMemory& dynamic_shared,
                               const ShadowedMemory& static_shared) {
  global_ = global;
  dynamic_shared_ = dynamic_shared;
  static_shared_ = static_shared;
  ++kernel_->trace.blocks;
  kernel_->trace.warps += (thread_count_ + 31) / 32;
  warp_ = no_warp;
}

void LaunchTracer::end_block(std::int64_t fmas) {
  flush();
  kernel_->trace.fmas += fmas;
}

void LaunchTracer::end_launch(const GlobalMemory& memory) {
  kernel_->places.clear();
  for (const RequestBuilder::Site& site : kernel_->requests.sites())
    kernel_->places.push_back(place_of(site, memory));
}

/// Closes what the warp did so far. A warp runs until all its lanes wait for the block or have
/// exited, so an access of another warp, like a barrier, ends a stretch.
void LaunchTracer::flush() {
  kernel_->requests.flush(alive_);
  warp_ = no_warp;
}

void LaunchTracer::barrier() {
  flush();
  ++kernel_->trace.barriers;
}

void LaunchTracer::move_to(unsigned warp) {
  if (warp == warp_) return;
  flush();
  warp_ = warp;
  // No lane has exited yet: blocks whose threads exit before a barrier are not allowed past it.
  const unsigned lanes = std::min(32U, thread_count_ - warp * 32);
  alive_ = lanes == 32 ? ~0U : (1U << lanes) - 1;
}

void LaunchTracer::warp_operation(unsigned warp, unsigned lanes, bool is_whole) {
  ++kernel_->trace.warp_operations;
  if (!is_whole) return;
  move_to(warp);
  kernel_->requests.flush(alive_);
  alive_ = lanes;
}

void LaunchTracer::access(unsigned thread, std::uintptr_t address, std::size_t size,
                          AccessKind kind, ProgramPoint point) {
  const bool is_shared = holds(dynamic_shared_, address) || holds(static_shared_, address);
  if (!is_shared && !holds(global_, address)) return;  // the thread's own stack
  move_to(thread / 32);
  const MemorySpace space = is_shared ? MemorySpace::shared : MemorySpace::global;
  constexpr std::size_t widest = 16;  // longer objects take several instructions
  for (std::size_t done = 0; done < size; done += widest)
    kernel_->requests.add(point, space, kind, static_cast<unsigned>(std::min(widest, size - done)),
                          address + done, thread % 32);
}

void LaunchTracer::copied_row(MemorySpace space, std::uintptr_t address, std::size_t size,
                              AccessKind kind, ProgramPoint point) {
  kernel_->requests.add_copied_row(point, space, kind, address, size);
}

LaunchTracer::Kernel::Place LaunchTracer::place_of(const RequestBuilder::Site& site,
                                                   const GlobalMemory& memory) const {
  const auto range_from = [&](std::uintptr_t start) {
    return ByteRange{site.lowest - start, site.highest - start};
  };
  if (holds(dynamic_shared_, site.lowest))
    return {"dynamic shared", range_from(dynamic_shared_.base)};
  if (site.space == MemorySpace::shared) return {"static shared", range_from(static_shared_.base)};
  std::uintptr_t start = 0;
  const GlobalMemory::Buffer* buffer = memory.find(site.lowest, start);
  if (buffer == nullptr) return {"unknown", range_from(global_.base)};
  const std::uintptr_t first = start + buffer->accessible().begin;
  std::uintptr_t last_start = 0;
  if (memory.find(site.highest - 1, last_start) != buffer)
    return {buffer->name + " and others", {}};
  return {buffer->name, range_from(first)};
}

std::vector<KernelTrace> LaunchTracer::traces() const {
  std::vector<KernelTrace> traces;
  for (const Kernel& kernel : kernels_) {
    KernelTrace trace = kernel.trace;
    for (std::size_t i = 0; i < kernel.requests.sites().size(); ++i) {
      const RequestBuilder::Site& from = kernel.requests.sites()[i];
      AccessSite site;
      site.point = from.point;
      site.line = from.lines.front();
      site.called_from.assign(from.lines.begin() + 1, from.lines.end());
      site.space = from.space;
      site.kind = from.kind;
      site.access_bytes = static_cast<int>(from.size_bytes);
      site.memory = kernel.places[i].memory;
      site.range = kernel.places[i].range;
      site.counts = from.counts;
      site.worst_ways = from.worst_ways;
      trace.sites.push_back(std::move(site));
    }
    // A copy reads and writes at one point, in an order that the schedule draws.
    std::ranges::sort(trace.sites, {}, [](const AccessSite& site) {
      return std::tuple(site.point, site.space, site.kind, site.access_bytes);
    });
    traces.push_back(std::move(trace));
  }
  return traces;
}

}  // namespace attest::simt
