#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include "core/run/kernel.hpp"

namespace attest {

/// 16-bit types for which the executor has a variant of a kernel. nvcc compiles every variant for
/// both. On the executor, for which compiling kernels is a third of a build, one type shows what a
/// variant does: those that a kernel's rule takes first have both there, the others need not.
enum class SimtTypes { both, fp16, bf16, none };

template <Executor home, typename T>
constexpr bool is_compiled(SimtTypes types) {
  if (home != Executor::simt || types == SimtTypes::both) return true;
  return types == (std::is_same_v<T, __half> ? SimtTypes::fp16 : SimtTypes::bf16);
}

/// The variants of lists, some of them empty, one after the other.
template <typename Variant, std::size_t... counts>
constexpr auto joined(const std::array<Variant, counts>&... lists) {
  std::array<Variant, (counts + ... + 0)> all{};
  std::size_t count = 0;
  const auto append = [&](const auto& list) {
    for (const Variant& variant : list) all[count++] = variant;
  };
  (append(lists), ...);
  return all;
}

}  // namespace attest
