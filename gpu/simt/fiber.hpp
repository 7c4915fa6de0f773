#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace attest::simt {

/// A stack and the place where it last stopped. The OS thread's own stack is one too: a Fiber that
/// owns no memory.
struct Fiber {
  void* context = nullptr;  ///< where to continue; nullptr before the first switch away
  Fiber* next = nullptr;    ///< whom it switches to at the moment
  const void* stack_bottom = nullptr;
  std::size_t stack_bytes = 0;
  void* fake_stack = nullptr;  ///< belongs to the address sanitizer
};

/// Stops `from` and continues `to`; returns when somebody switches back to `from`.
void switch_fiber(Fiber& from, Fiber& to);

/// Fibers that are made once and used again: making them costs more than everything they do in a
/// small block.
class FiberPool {
 public:
  /// `body(argument)` is what a fiber runs from its first switch on. It must never return.
  FiberPool(void (*body)(void* argument), void* argument);
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;
  ~FiberPool();

  /// An idle fiber. Throws MachineError when the machine has no memory for its stack.
  [[nodiscard]] Fiber& take();
  void give_back(Fiber& fiber) { idle_.push_back(&fiber); }
  /// All fibers start again from their beginning, wherever they stopped; their stacks' contents are
  /// dropped.
  void discard_running();

 private:
  [[noreturn]] static void enter(Fiber& self);
  void rewind(Fiber& fiber);
  void make();

  struct Owned;
  void (*body_)(void*);
  void* argument_;
  std::vector<std::unique_ptr<Owned>> all_;
  std::vector<Fiber*> idle_;
};

}  // namespace attest::simt
