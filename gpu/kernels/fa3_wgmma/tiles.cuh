#pragma once

#include "gpu/kernels/fa3_wgmma/shape.cuh"

/// Tiles that kernels of the family are compiled for, by head dim. Which of them each type has
/// stands in the head dim's file, d64.cu to d256.cu.
namespace attest::fa3_tiles {

namespace d64 {

inline constexpr Fa3Choice longer{
    .dim = 64, .consumers = 3, .key_tile = 112, .k_stages = 4, .v_stages = 4, .q_stages = 2};
inline constexpr Fa3Choice shorter{.dim = 64,
                                   .consumers = 3,
                                   .key_tile = 64,
                                   .k_stages = 8,
                                   .v_stages = 8,
                                   .q_stages = 2,
                                   .overlap = true};
/// 256 rows: lengths that 192 does not divide lose nothing, and four groups wait less for each
/// other.
inline constexpr Fa3Choice four_groups{
    .dim = 64, .consumers = 4, .key_tile = 64, .k_stages = 6, .v_stages = 6, .q_stages = 2};
inline constexpr Fa3Choice two_groups{.dim = 64,
                                      .consumers = 2,
                                      .key_tile = 128,
                                      .k_stages = 4,
                                      .v_stages = 4,
                                      .q_stages = 2,
                                      .overlap = true};
/// 128 rows, as blocks of sparse masks have, and two of their blocks of 64 keys.
inline constexpr Fa3Choice listed = with(two_groups, &Fa3Choice::lists);

inline constexpr Fa3Choice ended = with(longer, &Fa3Choice::ended);
inline constexpr Fa3Choice masked = with(shorter, &Fa3Choice::masked);

/// Two groups, whose threads have registers for a tile of biases.
inline constexpr Fa3Choice modified{.dim = 64,
                                    .consumers = 2,
                                    .key_tile = 64,
                                    .k_stages = 8,
                                    .v_stages = 8,
                                    .q_stages = 2,
                                    .overlap = true,
                                    .masked = true,
                                    .modified = true};

}  // namespace d64

namespace d96 {

inline constexpr Fa3Choice tiles{.dim = 96,
                                 .consumers = 3,
                                 .key_tile = 64,
                                 .k_stages = 4,
                                 .v_stages = 4,
                                 .q_stages = 2,
                                 .overlap = true};

}  // namespace d96

namespace d128 {

inline constexpr Fa3Choice serial{
    .dim = 128, .consumers = 3, .key_tile = 64, .k_stages = 4, .v_stages = 4, .q_stages = 2};
inline constexpr Fa3Choice overlapped = with(serial, &Fa3Choice::overlap);
inline constexpr Fa3Choice two_groups{.dim = 128,
                                      .consumers = 2,
                                      .key_tile = 128,
                                      .k_stages = 2,
                                      .v_stages = 2,
                                      .q_stages = 2,
                                      .overlap = true};
inline constexpr Fa3Choice listed = with(two_groups, &Fa3Choice::lists);

inline constexpr Fa3Choice masked = with(overlapped, &Fa3Choice::masked);
inline constexpr Fa3Choice modified{.dim = 128,
                                    .consumers = 2,
                                    .key_tile = 64,
                                    .k_stages = 4,
                                    .v_stages = 4,
                                    .q_stages = 2,
                                    .overlap = true,
                                    .masked = true,
                                    .modified = true};

}  // namespace d128

namespace d192 {

inline constexpr Fa3Choice tiles{.dim = 192,
                                 .consumers = 2,
                                 .key_tile = 64,
                                 .k_stages = 3,
                                 .v_stages = 3,
                                 .q_stages = 1,
                                 .o_panels = 1,
                                 .overlap = true};

/// V narrower than K.
inline constexpr Fa3Choice narrow_values{.dim = 192,
                                         .consumers = 2,
                                         .key_tile = 64,
                                         .k_stages = 3,
                                         .v_stages = 3,
                                         .q_stages = 2,
                                         .overlap = true,
                                         .value_dim = 128};

}  // namespace d192

namespace d256 {

inline constexpr Fa3Choice tiles{.dim = 256,
                                 .consumers = 2,
                                 .key_tile = 64,
                                 .k_stages = 2,
                                 .v_stages = 2,
                                 .q_stages = 1,
                                 .o_panels = 2,
                                 .overlap = true};

inline constexpr Fa3Choice masked = with(tiles, &Fa3Choice::masked);

}  // namespace d256

}  // namespace attest::fa3_tiles
