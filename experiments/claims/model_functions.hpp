#pragma once

#include "experiments/claims/formula.hpp"

namespace attest {

/// The models of core as functions of formulas; P is a problem's text, GPU a name of the device
/// table, FLOW a dataflow: standard, keys_outside, queries_outside.
///
///   flops(P) visible_flops(P) tiled_flops(P, Br, Bc) exponentials(P)
///   tile_pairs(P, Br, Bc)                 visited, of one head
///   matrix_bytes(P) tensor_bytes(P)       one matrix of scores; Q, K, V and O
///   moved(FLOW, P, Br, Bc[, PASSES])      bytes without a cache, LSE not counted
///   moved_statistics(FLOW, P, Br, Bc)     of those, m and l
///   read(FLOW, P, Br, Bc)                 of those, read
///   compulsory(P) compulsory_read(P)      everything once
///   l2_read(GPU, P, Br, Bc, ORDER, RESIDENT), l2_hits(...)  DRAM bytes and share of hits when
///   tiles
///                                         pass the L2: q_fastest or q_slowest
///   gpu(GPU, 'sms'...)                    a number of the device table
///   ridge(GPU, P)                         FLOP a byte, for the problem's type
///   blocks(GPU, THREADS, SHARED)          that an SM holds; occupancy(...) their share of its
///   warps block_bytes(P, STAGES, S, O, ML, Br, Bc)  shared memory of a block; S, O: bytes of an
///   element
///                                         of scores and of O, ML: of a row's statistics
void add_models(FormulaScope& scope);

}  // namespace attest
