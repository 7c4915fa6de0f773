#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "gpu/simt/execution.hpp"

// Read-modify-write in one step, under CUDA's names; each returns the old value. Blocks may run on
// several cores, so these are real atomics. The access itself is compiled without hooks:
// before_atomic() tells the executor what it is.

namespace attest::simt {

template <typename T, typename Update>
[[gnu::no_sanitize("thread")]] T atomic_update(T* address, Update update) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8),
                "CUDA has atomics for numbers of 4 and 8 bytes");
  using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  before_atomic(address, sizeof(T));
  Word* word = reinterpret_cast<Word*>(address);
  Word old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &old,
                                      std::bit_cast<Word>(update(std::bit_cast<T>(old))), false,
                                      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
  after_atomic();
  return std::bit_cast<T>(old);
}

template <typename T>
using Operand = std::type_identity_t<T>;  // takes its type from the address alone

}  // namespace attest::simt

template <typename T>
T atomicAdd(T* address, attest::simt::Operand<T> operand) {
  return attest::simt::atomic_update(address, [=](T old) { return old + operand; });
}
template <std::integral T>
T atomicSub(T* address, attest::simt::Operand<T> operand) {
  return attest::simt::atomic_update(address, [=](T old) { return old - operand; });
}
template <typename T>
T atomicExch(T* address, attest::simt::Operand<T> operand) {
  return attest::simt::atomic_update(address, [=](T) { return operand; });
}
template <std::integral T>
T atomicMin(T* address, attest::simt::Operand<T> operand) {
  return attest::simt::atomic_update(address, [=](T old) { return operand < old ? operand : old; });
}
template <std::integral T>
T atomicMax(T* address, attest::simt::Operand<T> operand) {
  return attest::simt::atomic_update(address, [=](T old) { return operand > old ? operand : old; });
}
template <std::integral T>
T atomicAnd(T* address, attest::simt::Operand<T> operand) {
  return attest::simt::atomic_update(address, [=](T old) { return old & operand; });
}
template <std::integral T>
T atomicOr(T* address, attest::simt::Operand<T> operand) {
  return attest::simt::atomic_update(address, [=](T old) { return old | operand; });
}
template <std::integral T>
T atomicXor(T* address, attest::simt::Operand<T> operand) {
  return attest::simt::atomic_update(address, [=](T old) { return old ^ operand; });
}
template <std::integral T>
T atomicCAS(T* address, attest::simt::Operand<T> expected, attest::simt::Operand<T> desired) {
  return attest::simt::atomic_update(address,
                                     [=](T old) { return old == expected ? desired : old; });
}
/// Counts up to `limit`, then starts again at 0.
inline unsigned atomicInc(unsigned* address, unsigned limit) {
  return attest::simt::atomic_update(address,
                                     [=](unsigned old) { return old >= limit ? 0 : old + 1; });
}

// A block's own threads run on one core and need no fence from the machine.
inline void __threadfence() {
  attest::simt::memory_fence();
}
inline void __threadfence_block() {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
