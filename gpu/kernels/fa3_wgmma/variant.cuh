#pragma once

#include <span>

#include "gpu/kernels/fa3_wgmma/kernel.cuh"

namespace attest {

/// A compiled kernel, and the Plans that it is for.
struct Fa3Variant {
  Fa3Choice choice;
  int query_tile, threads, shared_bytes;
  void (*kernel)(Fa3Parameters);
};

template <Executor home, typename T, Fa3Choice choice>
constexpr Fa3Variant fa3_variant() {
  using Sizes = Fa3Shape<T, choice>;
  return {choice, Sizes::Br, Sizes::threads, Sizes::shared_bytes, fa3_wgmma<home, Sizes>};
}

template <Executor home, typename T, Fa3Choice... choices>
inline constexpr Fa3Variant fa3_variants_of[] = {fa3_variant<home, T, choices>()...};

/// The variants for head dims up to D, the first the one to take without a reason. Defined, for
/// every D that there is, in a file of its own, so that they are compiled side by side.
template <Executor home, typename T, int D>
std::span<const Fa3Variant> fa3_variants();

}  // namespace attest
