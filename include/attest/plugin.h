/* Bring your own attention kernel: what a shared object tells Attest about its kernels.
 *
 * A plugin is a shared object that exports one function, attest_plugin(), declared at the end of this file. It needs this
 * header and nothing else; C11 and C++ both do. `attest verify --plugin ./mine.so` then checks every kernel it describes,
 * as it checks its own. examples/plugin has a host kernel and a CUDA kernel to start from.
 *
 * The answer a kernel owes, for every query row i of head h:
 *   s_j = scale * q_i . k_j  over the keys j that the mask lets i see,    O_i = sum_j softmax(s)_j v_j,
 *   LSE_i = ln sum_j exp(s_j), the NATURAL logarithm, of the scaled scores, in fp32.
 * A row that sees no key gets O = 0 (exactly, in every element) and LSE = -infinity. A NaN in a visible input must reach the
 * rows that see it, and no other row. So must an infinity in V, in its column: as that infinity, or as NaN where the weight
 * underflowed. A score of -infinity, which an infinity in K makes, is a weight of 0: the row is that without the key, or NaN
 * (nothing is asked where no other key is left). A score of +infinity or NaN leaves no finite LSE. Query head h reads key and
 * value head h / (query_heads / kv_heads). What a kernel does otherwise it may say in AttestKernel; its answer is then held to
 * what it says.
 *
 * Memory. All pointers belong to Attest and are valid until the work of the call is done. In host memory for ATTEST_HOST, in
 * memory of the current CUDA device for ATTEST_CUDA. Q, K and V may only be read: in host memory their pages are read-only. O,
 * LSE and scratch hold NaN on entry: write every element of O and of LSE (unless it has_no_lse), and assume nothing about
 * scratch. Do not touch the gaps that strides leave: they hold NaN, are checked afterwards, and may not be read into an answer
 * either. Memory may end where a tensor does. O never overlaps an input.
 *
 * Threads and time. All callbacks are called from one thread at a time; several worker processes may each have loaded the
 * plugin. For ATTEST_HOST the work must be finished when run() returns. For ATTEST_CUDA put all work into `stream` (or order
 * it before what comes later in that stream) and return without waiting; the current device is set. Keep no state between
 * calls that changes an answer: the same call must give the same bits if you claim determinism. Return with the rounding mode,
 * flushing of denormals and exception masks that you were called with.
 *
 * Ownership. Everything that attest_plugin() returns a pointer to stays yours, must not change, and lives as long as the
 * process. A returned error string needs to live until the next call. Let no C++ exception out: it fails the case. A crash, an
 * exit() or a hang in a callback ends its worker process and is a verdict; while the plugin is loaded, the plugin is refused.
 *
 * Versions. Every struct that may grow begins with its size in bytes: write sizeof. Fields are only appended, and 0 (or NULL)
 * means the default that is written beside the field; so zero-initialise, and a plugin keeps working with a newer Attest. A
 * struct of yours that is shorter than Attest's has the defaults in what it lacks; one that is longer, of a newer header, is
 * taken if what Attest does not know is 0. The version changes only when this cannot hold. */
#ifndef ATTEST_PLUGIN_H
#define ATTEST_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATTEST_PLUGIN_VERSION 1u

/* Element types of Q, K, V and O; sets of them are sums. */
#define ATTEST_FP32 1u
#define ATTEST_FP16 2u
#define ATTEST_BF16 4u

/* Masks; sets of them are sums. The alignments differ when query_len != key_len. */
#define ATTEST_NO_MASK 1u
#define ATTEST_CAUSAL_TOP_LEFT 2u      /* query i sees keys 0..i */
#define ATTEST_CAUSAL_BOTTOM_RIGHT 4u  /* query i sees keys 0..i + key_len - query_len */
#define ATTEST_WINDOW_TOP_LEFT 8u      /* query i sees keys i - window_left..i + window_right */
#define ATTEST_WINDOW_BOTTOM_RIGHT 16u /* the same around i + key_len - query_len */

/* What a kernel offers beside; sets of them are sums. Windows are masks. */
#define ATTEST_SOFTCAP 1u     /* s_j = softcap tanh(scale * q_i . k_j / softcap) */
#define ATTEST_LENGTHS 2u     /* entries of the batch with lengths of their own, 0 among them, packed */
#define ATTEST_PADDING 4u     /* keys that are hidden from all queries of their entry */
#define ATTEST_VALUE_DIM 8u   /* V and O with fewer or more columns than Q and K */
#define ATTEST_NO_QUERIES 16u /* query_len 0 */

/* Where a kernel's pointers point. */
#define ATTEST_HOST 0u
#define ATTEST_CUDA 1u

/* Sizes and meaning of one call. Elements are [batch, head, row, dim]. */
typedef struct AttestProblem {
  uint32_t size;         /* sizeof(AttestProblem) as Attest knows it */
  uint32_t element_type; /* one ATTEST_FP32, ... */
  uint32_t mask;         /* one ATTEST_NO_MASK, ... */
  float scale;           /* exactly this value multiplies the dot products; may be 0 or negative */
  int64_t batch;
  int64_t query_heads;
  int64_t kv_heads; /* divides query_heads */
  int64_t query_len;
  int64_t key_len; /* may be 0 */
  int64_t head_dim;
  int64_t window_left; /* of window masks; negative: no end on this side */
  int64_t window_right;
  int64_t value_dim;    /* columns of V and O; head_dim without ATTEST_VALUE_DIM */
  float softcap;        /* 0: none */
  uint32_t has_lengths; /* 1: query_len and key_len are the largest of the entries'; see AttestRun */
  uint32_t has_padding; /* 1: AttestRun has a key_mask */
  uint32_t reserved;    /* 0 */
  void* user_data;      /* AttestKernel.user_data */
} AttestProblem;

/* One choice of tile sizes and the like: how the answer is computed. Names are those of Attest's Plan (core/attention/plan.hpp):
 * query_tile, key_tile, key_splits, ... A kernel with nothing to choose has one plan without fields. These two structs never grow. */
typedef struct AttestPlanField {
  const char* name;
  int64_t value; /* from 1 on */
} AttestPlanField;
typedef struct AttestPlan {
  const AttestPlanField* fields;
  size_t field_count;
} AttestPlan;

/* Which roundings the kernel performs: the tolerance follows from this, and from nothing else. Claim less precision than you
 * have and bugs hide behind the bound; claim more and the kernel fails. u = 2^-24 is the roundoff of fp32, in which
 * everything between these points must be computed. All zero: fp32 online softmax with expf, P in the input's format. */
#define ATTEST_SCALE_AFTER_DOT 0u   /* s = fl(scale * dot) */
#define ATTEST_SCALE_IN_EXPONENT 1u /* the scale is folded into the exponent: exp2(fma(dot, scale log2 e, -m)) */
#define ATTEST_SCALE_IN_Q 2u        /* q is multiplied by scale in fp32 first */

#define ATTEST_EXP_LIBRARY 0u /* expf: 2 ulp */
#define ATTEST_EXP_FAST 1u    /* __expf: 2 + floor(|1.173 x|) ulp */
#define ATTEST_EXP_EXP2 2u    /* exp2f or ex2.approx of an argument that was multiplied by log2 e in fp32; m may be too */
#define ATTEST_EXP_CUSTOM 3u  /* |computed - exact| <= (exp_relative_error + exp_argument_error |x|) exact for x <= 0 */

#define ATTEST_RESCALE_DEFERRED 0u   /* O and l are multiplied by exp(m_old - m_new); one division at the end */
#define ATTEST_RESCALE_NONE 1u       /* the maximum is known before the weights are formed */
#define ATTEST_RESCALE_NORMALISED 2u /* O is kept normalised at every block */

#define ATTEST_LSE_DEFAULT 0u /* log2 with ATTEST_EXP_EXP2, natural otherwise */
#define ATTEST_LSE_NATURAL 1u /* m is a natural logarithm: m + ln l */
#define ATTEST_LSE_LOG2 2u    /* m holds a factor log2 e: m ln 2 + ln l, or ln 2 (m + log2 l) */

#define ATTEST_MERGE_LSE_PAIRS 0u       /* splits leave (O_p, LSE_p): weights exp(LSE_p - M); the costliest way */
#define ATTEST_MERGE_SUMS 1u            /* (m_p, l_p, acc_p): multiplied by exp(m_p - M), added, divided at the end */
#define ATTEST_MERGE_NORMALISED_SUMS 2u /* (m_p, l_p, O_p): weights l_p exp(m_p - M) */

/* What tensor cores read of factors that the kernel holds in fp32: each becomes the sum of `count` numbers of a narrower
 * format, and of two factors the parts i and j are multiplied where i + j < count. Never grows. */
#define ATTEST_TF32 8u
typedef struct AttestParts {
  uint32_t format;   /* ATTEST_TF32, ATTEST_FP16 or ATTEST_BF16; 0: factors are read whole */
  uint32_t count;    /* 1 to 3; 0: 1 */
  uint32_t cut;      /* the last so many parts are cut, the others rounded to nearest */
  uint32_t reserved; /* 0 */
  double scaled_to;  /* elements are first multiplied by a power of two, one a head or one for rows that are taken together,
                        that brings the largest to at least this; 0: they are not */
} AttestParts;

typedef struct AttestPrecision {
  uint32_t size;
  /* Products a tensor-core step adds at once (16 on Hopper for fp16), and the bits kept when they are aligned to the largest
   * (25 on Hopper). Both 0: fp32 fused multiply-adds, or products and sums in fp32. */
  uint32_t score_fused_terms; /* Q K^T */
  uint32_t score_fraction_bits;
  uint32_t value_fused_terms; /* P V */
  uint32_t value_fraction_bits;
  uint32_t scale;
  uint32_t exp;
  double exp_relative_error; /* only with ATTEST_EXP_CUSTOM */
  double exp_argument_error;
  uint32_t weight_format;        /* P before P V: one ATTEST_FP32, ...; 0: the element type */
  uint32_t sums_rounded_weights; /* 1: l adds P after rounding to weight_format; 0: before */
  uint32_t rescale;
  uint32_t is_unshifted;    /* 1: no maximum is subtracted (overflows; judged by the bound of an ideal kernel) */
  int64_t blocks;           /* key blocks between which a rescale can happen; 0: ceil(key_len / key_tile), or key_len */
  int64_t splits;           /* partial results merged at the end, even by their LSE; 0: the plan's key_splits, or 1 */
  int64_t normaliser_chain; /* longest chain of additions in l; 0: key_len + splits, one after the other */
  double division_error;    /* relative error of the final normalisation; 0: u, one IEEE division */
  double log_error;         /* relative error of the logarithm in LSE; 0: 2 u, 1 ulp */

  uint32_t flushes_subnormals; /* 1: fp32 results below 2^-126 become 0, and so does V where it is that small (ftz) */
  uint32_t lse_form;           /* ATTEST_LSE_DEFAULT, ... */
  uint32_t merge;              /* of splits: ATTEST_MERGE_LSE_PAIRS, ... */
  uint32_t partial_format;     /* of the O_p that splits leave: one ATTEST_FP32, ...; 0: ATTEST_FP32 */
  AttestParts score_parts;     /* of Q and K */
  AttestParts value_parts;     /* of P and V; scaled_to is V's */
  double weight_scale;         /* power of two that P carries while it is read in parts; 0: 1 */
  int64_t promoted_keys;       /* keys of a block whose P V is summed apart, then added to O; 0: P V is one chain */
  double reference_lag;        /* log2 of how far below the largest score of its row the number may lie that exponents are
                                  taken from; weights are then up to 2^reference_lag. 0: it is the largest score so far */
  double softcap_error;        /* error of softcap tanh(s / softcap) over softcap; 0: 6 u, a division, tanhf, a product */
} AttestPrecision;

/* Strides in elements, of a tensor whose last dimension is contiguous: element (b, h, n, d) is at
 * b * batch + h * head + n * row + d. Never grows. */
typedef struct AttestStrides {
  int64_t batch, head, row;
} AttestStrides;

/* One call of run().
 *
 * With lengths (query_starts is not NULL) the entries of the batch are packed along the sequence. Entry b has queries
 * query_starts[b] to query_starts[b + 1] of tensors [1, head, query_rows, dim], keys likewise, and LSE is [query_heads,
 * query_rows]: strides.batch is not used. Masks hold within the entry, whose lengths are its query_len and key_len. Rows of
 * key_mask belong to entries and count from the entry's first key. */
typedef struct AttestRun {
  uint32_t size;
  uint32_t plan_index; /* of AttestKernel.plans */
  const AttestProblem* problem;
  const AttestPlan* plan; /* = &plans[plan_index] */
  const void *q, *k, *v;  /* the problem's element type */
  void* o;
  float* lse; /* [batch, query_heads, query_len], contiguous; NULL for a kernel with has_no_lse */
  AttestStrides q_strides, k_strides, v_strides, o_strides;
  void* scratch; /* scratch_bytes() of it, aligned to 256 bytes */
  uint64_t scratch_bytes;
  void* stream;                /* ATTEST_CUDA: a cudaStream_t; ATTEST_HOST: NULL */
  const int32_t* query_starts; /* [batch + 1], in the kernel's memory as Q is; NULL without lengths */
  const int32_t* key_starts;
  const uint8_t* key_mask; /* [batch, key_len], 1: not hidden by padding; NULL without padding */
  int64_t query_rows;      /* of all entries together: query_starts[batch], or batch * query_len */
  int64_t key_rows;
  void* user_data; /* AttestKernel.user_data */
} AttestRun;

/* A kernel: what it claims, and how to run it. */
typedef struct AttestKernel {
  uint32_t size;
  uint32_t memory_space;  /* ATTEST_HOST or ATTEST_CUDA */
  const char* name;       /* letters, digits, _ - . and /, up to 64; no other kernel's name */
  const char* summary;    /* one line, may be NULL */
  uint32_t element_types; /* set, at least one */
  uint32_t masks;         /* set, at least one */

  /* Problems it can run; others are never asked for. */
  const int64_t* head_dims; /* head_dim_count of them; none: all from min to max that are multiples */
  size_t head_dim_count;
  int64_t head_dim_min;      /* 0: 1 */
  int64_t head_dim_max;      /* 0: 1024 */
  int64_t head_dim_multiple; /* 0: 1 */
  int64_t query_len_max;     /* 0: no limit */
  int64_t key_len_max;       /* 0: no limit */
  uint32_t only_equal_heads; /* 1: query_heads == kv_heads only; 0: grouped heads too */

  /* Layouts it can run; 0: any strides, any address that is a multiple of the element size. */
  uint32_t only_contiguous;         /* 1: no gaps, [batch, head, row, dim] */
  uint32_t pointer_alignment_bytes; /* of Q, K, V and O; a power of two up to 256 */
  uint32_t stride_alignment_bytes;  /* of every stride; a power of two up to 256. Dimensions of size 1 have any stride unless
                                       aligns_lone_strides is set, below */

  uint32_t is_not_deterministic; /* 0: two calls give the same bits */

  const AttestPlan* plans; /* plan_count >= 1 of them, simplest first */
  size_t plan_count;
  const AttestPrecision* precision; /* NULL: all defaults */

  /* May be NULL: no further limits. NULL, or a sentence why this cannot run. Called before any work, for many problems; what it
   * refuses is counted and drawn again, at most 50 times, so say in the fields above what they can say. */
  const char* (*unsupported)(const AttestProblem* problem, const AttestPlan* plan);
  /* May be NULL: 0. */
  uint64_t (*scratch_bytes)(const AttestProblem* problem, const AttestPlan* plan);
  /* May be NULL: `precision` holds for all. Otherwise receives it, and may change it for this problem and plan. */
  void (*refine_precision)(const AttestProblem* problem, const AttestPlan* plan, AttestPrecision* precision);
  /* Computes O and LSE. NULL, or what went wrong: an error for a problem that was claimed to be supported is a failure. */
  const char* (*run)(const AttestRun* run);

  /* What it offers beyond dense problems with at least one query: a set of ATTEST_SOFTCAP, ...; 0: nothing. */
  uint32_t features;

  /* Which bits may change. What is not claimed here is held to equal bits; what is, to the sum of the bounds of the two launches
   * that are compared. is_not_deterministic, above, belongs to these: it covers whatever is launched twice. */
  uint32_t is_not_batch_invariant; /* 1: a request's bits depend on its batch or its place there: splits by the size of the batch */
  uint32_t depends_on_alignment;   /* 1: bits depend on addresses and strides: a path for vectors that sums in another order */
  uint32_t shares_reference;       /* 1: rows decide together when the numbers move that their exponents are taken from */

  /* What it does not give. */
  uint32_t has_no_lse;                  /* 1: it writes no LSE; run.lse is NULL */
  uint32_t spreads_hidden_nan;          /* 1: a NaN in a key or value that a row does not see may reach it, as 0 * NaN does;
                                           laws that plant a NaN are then not asked */
  uint32_t nan_rows_may_have_empty_lse; /* 1: LSE may be -infinity, not NaN, for a row that sees a NaN in Q or K */

  uint32_t aligns_lone_strides; /* 1: what is asked of strides holds for dimensions of size 1, too */
  int64_t query_len_multiple;   /* of the length of every entry; 0: 1 */
  int64_t key_len_multiple;
  void* user_data; /* handed to every callback, in AttestProblem and AttestRun */
} AttestKernel;

typedef struct AttestPlugin {
  uint32_t size;
  uint32_t version; /* ATTEST_PLUGIN_VERSION */
  const AttestKernel* const* kernels;
  size_t kernel_count;
} AttestPlugin;

#if defined(_WIN32)
#define ATTEST_PLUGIN_EXPORT
#else
#define ATTEST_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

/* The one exported symbol. `attest_version` is the version Attest speaks. Called once, right after loading: describe, and
 * start nothing (no CUDA calls, no threads). */
ATTEST_PLUGIN_EXPORT const AttestPlugin* attest_plugin(uint32_t attest_version);

#ifdef __cplusplus
}
#endif

#endif
