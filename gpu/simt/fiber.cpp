#include "gpu/simt/fiber.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <boost/context/detail/fcontext.hpp>
#include <cerrno>
#include <cstring>

#include "core/base/error.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace attest::simt {
namespace {

namespace context = boost::context::detail;

constexpr std::size_t page_bytes = 4096;
// Kernels need little, but a finding is put into words, with the help of debug information, where
// it occurs.
constexpr std::size_t stack_bytes = 32 * page_bytes;

// Tops of equal stacks would share a few sets of every cache level and evict each other at every
// switch: 1,024 fibers then run from L3. Each top is moved by its own multiple of a cache line.
constexpr std::size_t colour_bytes = 64;
constexpr std::size_t colours = page_bytes / colour_bytes;

void arrive([[maybe_unused]] Fiber& self, Fiber& from, void* from_context) {
  from.context = from_context;
#ifdef __SANITIZE_ADDRESS__
  // The OS thread's stack bounds are learnt here, on the first switch away from it.
  __sanitizer_finish_switch_fiber(self.fake_stack, &from.stack_bottom, &from.stack_bytes);
#endif
}

/// Frames that never returned leave their red zones behind, for whoever uses the memory next.
void forget_frames([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t size) {
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(memory, size);
#endif
}

}  // namespace

struct FiberPool::Owned : Fiber {
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (memory == nullptr) return;
    forget_frames(memory, mapped_bytes);
    munmap(memory, mapped_bytes);
  }
  FiberPool* pool = nullptr;
  void* memory = nullptr;
  std::size_t mapped_bytes = 0;
  std::size_t colour = 0;
};

void switch_fiber(Fiber& from, Fiber& to) {
  from.next = &to;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&from.fake_stack, to.stack_bottom, to.stack_bytes);
#endif
  const context::transfer_t back = context::jump_fcontext(to.context, &from);
  arrive(from, *static_cast<Fiber*>(back.data), back.fctx);
}

FiberPool::FiberPool(void (*body)(void* argument), void* argument)
    : body_(body), argument_(argument) {}

FiberPool::~FiberPool() = default;

void FiberPool::rewind(Fiber& fiber) {
  Owned& owned = static_cast<Owned&>(fiber);
  forget_frames(owned.memory, owned.mapped_bytes);
  owned.fake_stack = nullptr;
  std::byte* top = static_cast<std::byte*>(owned.memory) + owned.mapped_bytes - owned.colour;
  owned.context = context::make_fcontext(top, stack_bytes, [](context::transfer_t first) {
    Fiber& from = *static_cast<Fiber*>(first.data);
    Fiber& self = *from.next;
    arrive(self, from, first.fctx);
    enter(self);
  });
}

void FiberPool::enter(Fiber& self) {
  FiberPool& pool = *static_cast<Owned&>(self).pool;
  pool.body_(pool.argument_);
  __builtin_unreachable();
}

void FiberPool::make() {
  auto owned = std::make_unique<Owned>();
  owned->pool = this;
  owned->mapped_bytes = stack_bytes + 2 * page_bytes;
  void* memory = mmap(nullptr, owned->mapped_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw MachineError(fmt::format("no memory for the stack of a CUDA thread on the executor: {}",
                                   std::strerror(errno)));
  owned->memory = memory;
  // A thread that overruns its stack must crash, not write into its neighbour's. Past the kernel's
  // limit on mappings the guard is given up: nothing else depends on it.
  mprotect(memory, page_bytes, PROT_NONE);
  owned->colour = all_.size() % colours * colour_bytes;
  owned->stack_bottom = static_cast<std::byte*>(memory) + page_bytes;
  owned->stack_bytes = owned->mapped_bytes - page_bytes;
  rewind(*owned);
  idle_.push_back(owned.get());
  all_.push_back(std::move(owned));
}

Fiber& FiberPool::take() {
  if (idle_.empty()) make();
  Fiber* fiber = idle_.back();
  idle_.pop_back();
  return *fiber;
}

void FiberPool::discard_running() {
  idle_.clear();
  for (const auto& owned : all_) {
    rewind(*owned);
    idle_.push_back(owned.get());
  }
}

}  // namespace attest::simt
