#pragma once

#include <cstdint>

#include "core/attention/backward_roundings.hpp"
#include "core/attention/precision_plan.hpp"
#include "core/attention/problem.hpp"
#include "core/run/kernel.hpp"
#include "gpu/model/device_table.hpp"

namespace attest {
// What an attention forward pass costs, as arithmetic on its shape. Bytes and operations are
// doubles: exact below 2^53.

/// Tiles into which a kernel cuts a problem. A tile past the end of a length is clipped where bytes
/// are counted.
struct Tiling {
  std::int64_t query_tile = 1;  ///< Br
  std::int64_t key_tile = 1;    ///< Bc
  /// 2: K is read and Q K^T is formed twice, first for the statistics (O7).
  std::int64_t passes = 1;
  /// Dataflow::queries_outside: a query tile is read before each of its key tiles (QueryReads).
  bool reads_queries_again = false;
  /// Dataflow::standard: times that the softmax reads S. 3: for maximum, sum and weights.
  std::int64_t score_reads = 1;
  /// Query that query tile 0 begins with, above -query_tile and at most 0 (KernelInfo::first_row).
  std::int64_t first_row = 0;
};
/// Tiling of a kernel's Plan, which must name both tiles.
[[nodiscard]] Tiling tiling_of(const KernelInfo& kernel, const Problem& problem, const Plan& plan);

/// Whole query tiles of a head, rounded up; the same of key tiles.
[[nodiscard]] std::int64_t query_tiles(const Problem& problem, const Tiling& tiling);
[[nodiscard]] std::int64_t key_tiles(const Problem& problem, const Tiling& tiling);
/// Queries [begin, end) of query tile `tile`.
struct QueryRange {
  std::int64_t begin = 0, end = 0;

  [[nodiscard]] std::int64_t size() const { return end - begin; }
};
[[nodiscard]] QueryRange queries_of(const Problem& problem, const Tiling& tiling,
                                    std::int64_t tile);
/// Key tiles that rows of query tile `tile` see, from the first to the last. Of the full lengths,
/// whatever padding hides.
[[nodiscard]] KeyRange visited_key_tiles(const Problem& problem, const Tiling& tiling,
                                         std::int64_t tile);
/// Number of pairs of a query tile and a key tile that it visits, over all query tiles of one head.
[[nodiscard]] std::int64_t visited_tile_pairs(const Problem& problem, const Tiling& tiling);

/// 2 B H Nq Nk (D + Dv), whatever the mask.
[[nodiscard]] double full_flops(const Problem& problem);
/// FLOP of visited tiles when they are computed whole: 2 B H Br Bc (D + Dv) for each. Two passes
/// form Q K^T twice. (forward_flops() counts visible pairs exactly.)
[[nodiscard]] double tiled_flops(const Problem& problem, const Tiling& tiling);
/// Visible (query, key) pairs: one exponential each.
[[nodiscard]] double exponentials(const Problem& problem);

/// Bytes between SMs and memory, by what they carry.
struct Traffic {
  double q = 0, k = 0, v = 0;        ///< read
  double o_read = 0, o_written = 0;  ///< read back only when keys are outside
  double s_written = 0, s_read = 0;  ///< scores
  double p_written = 0, p_read = 0;  ///< weights
  double statistics = 0;             ///< m and l, read and written, fp32
  double lse = 0;                    ///< written, fp32

  [[nodiscard]] double read() const;
  [[nodiscard]] double written() const;
  [[nodiscard]] double total() const { return read() + written(); }
};

/// Every input read once and every output written once: nothing can move less.
[[nodiscard]] Traffic compulsory_traffic(const Problem& problem);
/// Traffic when no cache helps: every tile that a block loads comes from memory, and neither
/// blocks nor steps share. Of problems without lengths and padding; a window saves what it hides.
/// Without a mask, with as many columns in V as in K, per head and without LSE, in bytes of e an
/// element:
///   standard         e (4 N^2 + 2 N D + 2 N D ceil(N / Br)); a mask saves reading S, P and V of
///                    tiles that are not visited; all of S and P is written; e N^2
///                    more for each of score_reads after the first
///   keys_outside     e (2 N D + 3 N D ceil(N / Bc)) + 16 N ceil(N / Bc)
///   queries_outside  e (2 N D + 2 N D ceil(N / Br)); two passes: 2 N D + 3 N D ceil(N / Br)
/// With one query tile a head, `standard` is e (4 N^2 + 4 N D), the law of the papers [FA1 Thm 2].
/// First values of O, m and l are not counted. Throws std::logic_error for Dataflow::unknown.
[[nodiscard]] Traffic traffic_without_cache(Dataflow dataflow, const Problem& problem,
                                            const Tiling& tiling);

/// Bytes of memory that a forward pass needs.
struct Footprint {
  double tensors = 0;  ///< Q, K, V, O
  double matrix = 0;   ///< one matrix [B, H, Nq, Nk] of scores or weights
  double lse = 0;

  [[nodiscard]] double flash() const { return tensors + lse; }
  [[nodiscard]] double standard() const { return tensors + 2 * matrix; }  ///< S and P
};
/// `matrix_bytes`: of an element of S or P; 0: that of the problem's type.
[[nodiscard]] Footprint footprint_of(const Problem& problem, std::int64_t matrix_bytes = 0);

/// Times that no kernel undercuts, in seconds, each as if everything else were free.
struct TimeFloors {
  double flops = 0;         ///< at the peak of the unit that the element type allows
  double dram = 0;          ///< bytes at the memory's bandwidth
  double l2 = 0;            ///< bytes at that of the L2
  double exponentials = 0;  ///< at the rate of the special function units
  double shared = 0;        ///< passes through shared memory; 0: not known

  [[nodiscard]] double largest() const;
};
struct Work {
  double flops = 0, dram_bytes = 0, l2_bytes = 0, exponentials = 0, shared_passes = 0;
};
[[nodiscard]] TimeFloors time_floors(const GpuModel& gpu, ElementType type, const Work& work);

/// FLOP per byte above which a kernel at the type's peak is limited by arithmetic.
[[nodiscard]] inline double ridge(const GpuModel& gpu, ElementType type) {
  return gpu.peak_flops(type) / gpu.dram_bytes_per_s;
}

/// FLOP/s at which a GPU can do the two products of attention as a kernel that declares `precision`
/// does them: on CUDA cores, or on tensor cores in the format of its parts, where a product of
/// numbers in `count` parts is 1, 3 or 6 products. FLOP are those of the problem, so this is what
/// times are held against. 0 where the GPU has no such unit.
/// Codes of both factors are multiplied as they are: those of Q by those of K, and weights that
/// are rounded to V's.
[[nodiscard]] double product_flops_per_s(const GpuModel& gpu, ElementType type,
                                         const PrecisionPlan& precision, const Codes& codes = {});
/// FLOP/s at which a GPU can do the five products of the gradients, otherwise as above.
[[nodiscard]] double product_flops_per_s(const GpuModel& gpu, ElementType type,
                                         const BackwardRoundings& precision);

}  // namespace attest
