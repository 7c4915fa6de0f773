#pragma once

// Units where lists say which keys a query sees. All heads of a query see the same ones, so that a
// unit is up to 64 heads of one query and a chunk of its list: chunks count places of the list.

#include "gpu/kernels/decode_mma/merge.cuh"
#include "gpu/kernels/mla_wgmma/work.cuh"

namespace attest {

/// Tiles of rows that the query heads of a kv head fill.
ATTEST_HOST_DEVICE inline int tiles_of_query(const DecodeSizes& sizes) {
  return (sizes.group + sizes.tile_rows - 1) / sizes.tile_rows;
}

/// Sizes of a launch. Places of a list are counted like keys: the last item may hold fewer than the
/// others, wherever it stands, so that there may be more places than keys.
inline DecodeSizes listed_sizes(const Problem& problem, const Plan& plan) {
  Problem one = problem;
  one.query_len = 1;
  one.key_len = ceil_div(problem.key_len, problem.list_keys) * problem.list_keys;
  DecodeSizes sizes = DecodeSizes::of(one, plan);
  sizes.queries = static_cast<int>(problem.query_len);
  return sizes;
}

/// One query of the batch and what its list asks for.
struct MlaListedQuery {
  int entry = 0, query = 0;
  int q_start = 0, queries = 0;    ///< of the entry: its first row in packed tensors, its rows
  int places = 0;                  ///< of the list
  int chunk_keys = 1, chunks = 0;  ///< 0: there is no such query

  MlaListedQuery() = default;
  /// Query `number` where every entry has as many as the largest.
  __device__ MlaListedQuery(const ForwardArguments& a, const DecodeSizes& sizes, int number)
      : entry(number / sizes.queries),
        query(number - entry * sizes.queries),
        queries(sizes.queries) {
    if (a.query_starts != nullptr) {
      q_start = a.query_starts[entry];
      queries = a.query_starts[entry + 1] - q_start;
    }
    if (query >= queries) return;
    const KeyLists& lists = a.key_lists;
    places = lists.counts[lists.list_of(entry, query)] * static_cast<int>(lists.keys);
    chunk_keys = sizes.keys_of_chunk(places);
    chunks = max(1, (places + chunk_keys - 1) / chunk_keys);
  }
  /// Unit that places it in tensors and among partial results.
  __device__ DecodeUnit unit(int kv_head) const {
    DecodeUnit unit;
    unit.entry = entry;
    unit.kv_head = kv_head;
    unit.of.q_start = q_start;
    unit.of.queries = queries;
    unit.of.chunk_keys = chunk_keys;
    unit.of.chunks = chunks;
    return unit;
  }
};

/// Finds the units of a block by number. All lanes of the warp ask alike, for larger and larger
/// numbers; they look at 32 queries at a time.
class MlaListedUnits {
 public:
  __device__ MlaListedUnits(const ForwardArguments& a, const DecodeSizes& sizes)
      : a_(a),
        sizes_(sizes),
        each_(tiles_of_query(sizes) * sizes.kv_heads),
        mine_(query_at(lane())) {}

  /// False: there is no unit of that number. Otherwise lane 0 describes it.
  __device__ bool find(int number, MlaWork& work) {
    while (first_ < sizes_.batch * sizes_.queries) {
      int sum = mine_.chunks * each_;  // units of this lane's query and those before
#pragma unroll
      for (int distance = 1; distance < 32; distance *= 2) {
        const int other = __shfl_up_sync(0xffffffffU, sum, static_cast<unsigned>(distance));
        if (lane() >= distance) sum += other;
      }
      const unsigned past = __ballot_sync(0xffffffffU, number < before_ + sum);
      if (past != 0) {
        const int owner = __ffs(static_cast<int>(past)) - 1;
        const int of_owner = __shfl_sync(0xffffffffU, sum - mine_.chunks * each_, owner);
        if (lane() == 0) describe(query_at(owner), number - before_ - of_owner, work);
        return true;
      }
      before_ += __shfl_sync(0xffffffffU, sum, 31);
      first_ += 32;
      mine_ = query_at(lane());
    }
    return false;
  }

 private:
  static __device__ int lane() {
    return static_cast<int>(threadIdx.x % 32);
  }
  /// The query so many behind the first one that lanes look at.
  __device__ MlaListedQuery query_at(int i) const {
    const int number = first_ + i;
    return number < sizes_.batch * sizes_.queries ? MlaListedQuery(a_, sizes_, number)
                                                  : MlaListedQuery();
  }
  /// Tiles of one query follow each other: they read the same keys.
  __device__ void describe(const MlaListedQuery& query, int within, MlaWork& work) const {
    const int tiles = tiles_of_query(sizes_), tile_of_all = within / sizes_.kv_heads;
    const int chunk = tile_of_all / tiles, tile = tile_of_all - chunk * tiles;
    work.unit = query.unit(within - tile_of_all * sizes_.kv_heads);
    work.unit.chunk = chunk;
    work.first_row = query.query * sizes_.group + tile * sizes_.tile_rows;
    work.rows = min(sizes_.tile_rows, sizes_.group - tile * sizes_.tile_rows);
    work.first_key = chunk * query.chunk_keys;
    work.past_key = min(work.first_key + query.chunk_keys, query.places);
    work.tiles = (work.past_key - work.first_key + 63) / 64;
    int keys = static_cast<int>(a_.problem.key_len);
    if (a_.page_table.page_size > 0) {
      keys = static_cast<int>(a_.page_table.key_len(query.entry));
    } else if (a_.key_starts != nullptr) {
      work.unit.of.k_start = a_.key_starts[query.entry];
      keys = a_.key_starts[query.entry + 1] - work.unit.of.k_start;
    }
    work.unit.of.reach = KeyReach(a_.problem, query.queries, keys);
  }

  const ForwardArguments& a_;
  const DecodeSizes& sizes_;
  const int each_;  ///< units of a chunk of a query
  int first_ = 0,
      before_ = 0;  ///< of the 32 queries that lanes look at: the first, units before it
  MlaListedQuery mine_;
};

/// Finds the block's units, as one warp does while others gather.
template <typename Shape>
__device__ void find_listed_units(const MlaParameters& p, const MlaShared<Shape>& shared) {
  MlaListedUnits units(p.a, p.sizes);
  for (unsigned n = 0;; ++n) {
    MlaWork& work = shared.work(n);
    shared.work_empty(n).wait(n / 2 % 2 ^ 1U);
    __syncwarp();  // all lanes have seen that phase before others can end the next one
    const bool exists = units.find(static_cast<int>(blockIdx.x + n * gridDim.x), work);
    if (threadIdx.x % 32 == 0) {
      work.exists = exists;
      shared.work_full(n).arrive();
    }
    __syncwarp();
    if (!exists) return;
  }
}

/// Merges the chunks of all rows that have several, a warp a row.
template <Executor home, typename T, int columns>
__global__ void __launch_bounds__(128) mla_listed_merge(ForwardArguments a, DecodeSizes sizes) {
  wait_for_predecessor();
  const auto partials = DecodePartials<columns>::of(a, sizes);
  const int n = static_cast<int>(blockIdx.x * 4 + threadIdx.x / 32);
  if (n >= partials.rows) return;
  const int query = n % sizes.queries, head = n / sizes.queries % sizes.query_heads;
  const int entry = n / sizes.queries / sizes.query_heads;
  const MlaListedQuery of(a, sizes, entry * sizes.queries + query);
  if (of.chunks < 2) return;
  const DecodeRow<T> row(a, sizes, of.unit(head / sizes.group),
                         query * sizes.group + head % sizes.group);
  merge_in_workspace(partials, row, of.chunks);
}

}  // namespace attest
