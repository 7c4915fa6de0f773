#pragma once

#include <cstdint>
#include <span>

#include "gpu/kernels/bwd_simple/bias_gradient.cuh"

namespace attest {

/// The kernels of one Plan, for problems with score modifications or without.
struct BwdVariant {
  std::int64_t dim, query_tile, key_tile;
  bool is_modified;
  std::int64_t keys_shared_bytes, queries_shared_bytes;
  void (*keys)(BackwardArguments);
  void (*queries)(BackwardArguments);
  void (*bias)(BackwardArguments);  ///< in shared memory as `queries`; null without modifications
};

template <Executor home, typename T, int D, int Br, int Bc>
constexpr BwdVariant bwd_variant{D,
                                 Br,
                                 Bc,
                                 false,
                                 BwdShape<T, D, Bc, Br>::shared_bytes,
                                 BwdShape<T, D, Br, Bc>::shared_bytes,
                                 bwd_simple_keys<home, T, D, Br, Bc, BwdPlainPairs>,
                                 bwd_simple_queries<home, T, D, Br, Bc, BwdPlainPairs>,
                                 nullptr};
template <Executor home, typename T, int D, int Br, int Bc>
constexpr BwdVariant bwd_modified_variant{D,
                                          Br,
                                          Bc,
                                          true,
                                          BwdShape<T, D, Bc, Br>::shared_bytes,
                                          BwdShape<T, D, Br, Bc>::shared_bytes,
                                          bwd_simple_keys<home, T, D, Br, Bc, BwdModifiedPairs>,
                                          bwd_simple_queries<home, T, D, Br, Bc, BwdModifiedPairs>,
                                          bwd_simple_bias<home, T, D, Br, Bc>};

/// Variants of an element type, of each dim the first the one to take without a reason. Defined,
/// for every T, in a file of its own, so that they are compiled side by side.
template <Executor home, typename T>
std::span<const BwdVariant> bwd_variants();

}  // namespace attest
