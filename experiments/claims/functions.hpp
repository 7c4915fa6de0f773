#pragma once

#include <filesystem>
#include <stdexcept>

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

/// A formula asks for a record file that is not there.
class NoRecords : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Committed records as functions of formulas. FILE is a name below `results` without its ending,
/// such as 'h200/ladder'. WHICH chooses records by their labels: 'contender=k1_naive;
/// shape~causal', = for the whole label, ~ for a part of it, != and !~ for labels that are not so;
/// `verdict` and `kind` count as labels.
///
///   record(FILE, WHICH, NAME)     the measurement of that name, of the only record
///   records(FILE, WHICH)          how many there are
///   least(FILE, WHICH, NAME), most(...), total(...), geomean(...)
///   explained(KERNEL, WHICH, '/json/pointer')  what `attest explain` said: h200/hardware_check
///   mutants(RULE)                 of the kill matrix, that a rule kills: 'bound'; mutants(): all
///
/// Functions throw NoRecords for a file that is not there, and InvalidInput where WHICH does not
/// choose what they need.
void add_records(FormulaScope& scope, const std::filesystem::path& results);

}  // namespace attest
