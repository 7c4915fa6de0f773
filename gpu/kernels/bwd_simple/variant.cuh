#pragma once

#include <cstdint>
#include <span>

#include "gpu/kernels/bwd_simple/kernels.cuh"

namespace attest {

/// The two kernels of one Plan.
struct BwdVariant {
  std::int64_t dim, query_tile, key_tile;
  std::int64_t keys_shared_bytes, queries_shared_bytes;
  void (*keys)(BackwardArguments);
  void (*queries)(BackwardArguments);
};

template <Executor home, typename T, int D, int Br, int Bc>
constexpr BwdVariant bwd_variant{D,
                                 Br,
                                 Bc,
                                 BwdShape<T, D, Bc, Br>::shared_bytes,
                                 BwdShape<T, D, Br, Bc>::shared_bytes,
                                 bwd_simple_keys<home, T, D, Br, Bc>,
                                 bwd_simple_queries<home, T, D, Br, Bc>};

/// Variants of an element type, of each dim the first the one to take without a reason. Defined,
/// for every T, in a file of its own, so that they are compiled side by side.
template <Executor home, typename T>
std::span<const BwdVariant> bwd_variants();

}  // namespace attest
