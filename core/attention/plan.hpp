#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/attention/grid_order.hpp"

namespace attest {

// Choices of a Plan that are no sizes. 0 stands for `the kernel does not offer the choice`.

/// Outer one of the two loops over tiles.
struct LoopOrder {
  enum Value : std::int64_t {
    keys_outside = 1,  ///< FA1: O, m and l of every row go through memory at every key tile
    queries_outside    ///< FA2: O stays on chip and is written once
  };
};
/// Time at which the partial output is divided by the sum of the weights.
struct Normalise {
  enum Value : std::int64_t { at_the_end = 1, every_step };
};
/// Key tiles in which each score is compared with the mask.
struct MaskedTiles {
  enum Value : std::int64_t { boundary = 1, all };
};
struct ExpChoice {
  enum Value : std::int64_t { library = 1, fast, exp2 };
};
/// Number of times that Q K^T is formed.
struct Passes {
  enum Value : std::int64_t {
    one = 1,
    two  ///< first only maximum and sum, then again for the weights
  };
};
/// Method by which the threads of a row find its maximum and its sum.
struct RowReduce {
  enum Value : std::int64_t {
    shared_loop = 1,  ///< each reads the whole row from shared memory
    shuffle           ///< halving exchanges between lanes
  };
};
/// Rows that share a tile of query rows.
struct PackGqa {
  enum Value : std::int64_t {
    no = 1,  ///< those of one query head
    yes      ///< those of all query heads that use one kv head, so that its keys are read once
  };
};
/// Factors that tensor cores multiply where the inputs are fp32 (Parts, core/attention/parts.hpp).
struct Products {
  enum Value : std::int64_t {
    tf32 = 1,  ///< factors rounded to TF32
    tf32_x3,   ///< hi and lo in TF32, three products
    fp16_x3,   ///< hi and lo in fp16 after scaling by a power of two, three products
    bf16_x3,   ///< hi and lo in bf16, three products
    bf16_x6,   ///< three parts in bf16, six products
    automatic  ///< fp16_x3 where the range of the inputs allows it, bf16_x6 otherwise
  };
};
struct Scheduling {
  enum Value : std::int64_t {
    one_tile = 1,  ///< a block makes one tile and ends
    persistent     ///< as many blocks as run at once; each takes the next tile from a counter
  };
};

/// Turns of warpgroups: with `yes` one multiplies while the others compute softmax.
struct PingPong {
  enum Value : std::int64_t { no = 1, yes };
};
/// Product in flight while a warpgroup computes its softmax: none of its own, or P V of the key
/// tile before.
struct Overlap {
  enum Value : std::int64_t {
    no = 1,
    yes  ///< Q K^T of the next key tile is issued before P V of this one
  };
};
/// Pauses of random length where threads hand something over, so that races show. Debugging.
struct Delays {
  enum Value : std::int64_t { none = 1, random };
};

/// Rule that cuts the keys of a row into chunks, which are computed apart and merged at the end.
struct KeySplitRule {
  enum Value : std::int64_t {
    fixed_keys = 1,  ///< every Plan::split_keys keys, from key 0 on: what a row gets depends on
                     ///< nothing but its own keys
    own,    ///< Plan::key_splits chunks at the most, of 64 keys at least, by the entry's length
    even,   ///< Plan::key_splits chunks of every entry
    stream  ///< equal shares of all keys of the batch for every block
  };
};
/// Blocks that merge the chunks of a row.
struct Combine {
  enum Value : std::int64_t {
    last_block = 1,  ///< the block that ends last, as a counter says
    second_kernel,   ///< a launch of its own, which starts while the first one ends
    cluster          ///< the blocks of a thread block cluster, each some rows
  };
};

/// Readers of pages that entries share at their beginning (Paging::shares_prefix).
struct Cascade {
  enum Value : std::int64_t {
    no = 1,  ///< every entry for itself
    yes      ///< a launch of its own, whose tiles hold rows of all entries
  };
};

/// Programmatic dependent launch: with `yes` a launch may begin while the launch before it ends.
/// Either way it reads what that one wrote only when that one has ended.
struct DependentLaunch {
  enum Value : std::int64_t { no = 1, yes };
};

/// Score below which an online softmax forms the weights of a row.
struct WeightReference {
  enum Value : std::int64_t {
    lagging = 1,  ///< a score that was the largest once, and still is nearly: few tiles rescale O
    maximum       ///< the largest score so far, whose weight is 1 and hence not rounded
  };
};

/// Format in which the parts of dQ, one a key tile, are added in memory.
struct DqSum {
  enum Value : std::int64_t {
    fp32 = 1,  ///< in the order in which blocks come: no two launches need have the same bits
    s32        ///< in integers (core/attention/dq_units.hpp): the same bits in every order
  };
};

/// Tokens of a sequence that a rank of a group has (core/attention/distribution.hpp).
struct Distribution {
  enum Value : std::int64_t {
    contiguous = 1,  ///< one piece a rank
    zigzag,          ///< two of 2 P pieces: one from the front and the one as far from the end
    stripe           ///< every P-th
  };
};

/// Choices by which the answer is computed. A Plan may change speed; it may change the answer by
/// rounding only. A field that a kernel does not use stays 0 and is not printed.
struct Plan {
  std::int64_t query_tile = 0;      ///< Br: query rows that a block handles at a time
  std::int64_t key_tile = 0;        ///< Bc: keys that are processed between two rescales
  std::int64_t key_splits = 0;      ///< parts of the key range computed apart and merged at the end
  std::int64_t dim_tile = 0;        ///< columns of Q, K and V that are in shared memory at a time
  std::int64_t thread_rows = 0;     ///< TM: query rows of a thread's register tile
  std::int64_t thread_keys = 0;     ///< TN: keys of a thread's register tile
  std::int64_t warps = 0;           ///< of a block
  std::int64_t stages = 0;          ///< K and V tiles that are in flight or in use
  std::int64_t grid_order = 0;      ///< GridOrder
  std::int64_t group = 0;           ///< heads that an order takes at a time; see GridOrder
  std::int64_t scheduling = 0;      ///< Scheduling
  std::int64_t loop_order = 0;      ///< LoopOrder
  std::int64_t normalise = 0;       ///< Normalise
  std::int64_t masked_tiles = 0;    ///< MaskedTiles
  std::int64_t exp = 0;             ///< ExpChoice
  std::int64_t passes = 0;          ///< Passes
  std::int64_t row_reduce = 0;      ///< RowReduce
  std::int64_t pack_gqa = 0;        ///< PackGqa
  std::int64_t ping_pong = 0;       ///< PingPong
  std::int64_t overlap = 0;         ///< Overlap
  std::int64_t delays = 0;          ///< Delays
  std::int64_t products = 0;        ///< Products
  std::int64_t split_keys = 0;      ///< keys of a chunk, see KeySplitRule
  std::int64_t key_split_rule = 0;  ///< KeySplitRule
  std::int64_t combine = 0;         ///< Combine
  std::int64_t cascade = 0;         ///< Cascade
  std::int64_t dependent_launch = 0;  ///< DependentLaunch
  std::int64_t reference = 0;         ///< WeightReference
  std::int64_t dq_sum = 0;            ///< DqSum
  std::int64_t ranks = 0;             ///< P: processes that have a part of each sequence
  std::int64_t distribution = 0;      ///< Distribution

  friend bool operator==(const Plan&, const Plan&) = default;
};

/// A field of Plan: text, JSON, generators and shrinkers go through the list of them.
struct PlanField {
  std::string_view name;        ///< in JSON, YAML and text
  std::string_view short_name;  ///< of sizes, before the number
  std::int64_t Plan::*member;
  std::span<const std::string_view> values = {};  ///< names of 1, 2, ...; empty: a size

  [[nodiscard]] constexpr bool is_choice() const { return !values.empty(); }
};
[[nodiscard]] std::span<const PlanField> plan_fields();
/// A value that is set: of a choice its name, of a size its digits.
[[nodiscard]] std::string text_of(const PlanField& field, std::int64_t value);

/// `qt32 kt16 grid_order=q_slowest`, or `-` when no field is set.
[[nodiscard]] std::string to_string(const Plan& plan);
/// Plan of a text, inverse of to_string(). Fields stand in any order, separated by spaces or
/// commas; sizes may also be written `query_tile=32`. Throws InvalidInput that names the faulty
/// part and what is allowed.
[[nodiscard]] Plan plan_from_string(std::string_view text);

}  // namespace attest
