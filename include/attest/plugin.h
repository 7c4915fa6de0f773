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
 * value head h / (query_heads / kv_heads).
 *
 * Memory. All pointers belong to Attest and are valid until the work of the call is done. In host memory for ATTEST_HOST, in
 * memory of the current CUDA device for ATTEST_CUDA. Q, K and V may only be read: in host memory their pages are read-only. O,
 * LSE and scratch hold NaN on entry: write every element of O and LSE, and assume nothing about scratch. Do not touch the gaps
 * that strides leave: they hold NaN, are checked afterwards, and may not be read into an answer either. Memory may end where a
 * tensor does. O never overlaps an input.
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
 * means the default that is written beside the field; so zero-initialise, and a plugin keeps working with a newer Attest. The
 * version changes only when this cannot hold. */
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

/* Masks; sets of them are sums. The two causal ones differ when query_len != key_len. */
#define ATTEST_NO_MASK 1u
#define ATTEST_CAUSAL_TOP_LEFT 2u     /* query i sees keys 0..i */
#define ATTEST_CAUSAL_BOTTOM_RIGHT 4u /* query i sees keys 0..i + key_len - query_len */

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
} AttestProblem;

/* One choice of tile sizes and the like: how the answer is computed. Names are those of Attest's Plan (core/plan.hpp):
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
} AttestPrecision;

/* Strides in elements, of a tensor whose last dimension is contiguous: element (b, h, n, d) is at
 * b * batch + h * head + n * row + d. Never grows. */
typedef struct AttestStrides {
  int64_t batch, head, row;
} AttestStrides;

/* One call of run(). */
typedef struct AttestRun {
  uint32_t size;
  uint32_t plan_index; /* of AttestKernel.plans */
  const AttestProblem* problem;
  const AttestPlan* plan; /* = &plans[plan_index] */
  const void *q, *k, *v;  /* the problem's element type */
  void* o;
  float* lse; /* [batch, query_heads, query_len], contiguous */
  AttestStrides q_strides, k_strides, v_strides, o_strides;
  void* scratch; /* scratch_bytes() of it, aligned to 256 bytes */
  uint64_t scratch_bytes;
  void* stream; /* ATTEST_CUDA: a cudaStream_t; ATTEST_HOST: NULL */
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
  uint32_t stride_alignment_bytes;  /* of every stride; a power of two up to 256 */

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
