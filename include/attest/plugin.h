/* Bring your own attention kernel: what a shared object tells Attest about its kernels.
 *
 * A plugin is a shared object that exports one function, attest_plugin(), declared at the end of this file. It needs this
 * header and nothing else; C11 and C++ both do. `attest verify --plugin ./mine.so` then checks every kernel it describes,
 * as it checks its own. examples/plugin has a host kernel and a CUDA kernel to start from.
 *
 * The answer a kernel owes ("forward"), for every query row i of head h:
 *   s_j = scale * q_i . k_j  over the keys j that the mask lets i see,    O_i = sum_j softmax(s)_j v_j,
 *   LSE_i = ln sum_j exp(s_j), the NATURAL logarithm, of the scaled scores, in fp32.
 * A row that sees no key gets O = 0 (exactly, in every element) and LSE = -infinity. A NaN in a visible input must reach the
 * rows that see it, and no other row. So must an infinity in V, in its column: as that infinity, or as NaN where the weight
 * underflowed. A score of -infinity, which an infinity in K makes, is a weight of 0: the row is that without the key, or NaN
 * (nothing is asked where no other key is left). A score of +infinity or NaN leaves no finite LSE. Query head h reads key and
 * value head h / (query_heads / kv_heads). What a kernel does otherwise it may say in AttestKernel; its answer is then held to
 * what it says.
 *
 * Scores. What a kernel says that it offers beside comes in some calls, in this order: the softcap; slopes (ALiBi): s_j -=
 * slope_h |j - d|, d being the key on i's diagonal, i with a top-left mask and i + key_len - query_len with every other and
 * without one; a bias: s_j += bias_hij, where -infinity hides the key. A sink of the head is one more term e^sink_h of the sum, in
 * LSE too and without a value; a row that sees no key then has LSE = sink_h. A prefix: keys 0..prefix - 1 are seen by all queries
 * of the entry whatever a causal mask hides. Documents: a query sees the keys of its own document alone. Lists: it sees of the
 * keys that all of this leaves it those that its list names. Dropout p: O_i = sum_j d_ij softmax(s)_j v_j with d_ij = 0 for the
 * weights that fall and 1 / (1 - p) for the others; LSE is that without. Word j % 4 of Philox4x32-10 with the key dropout_seed
 * and the counter {j / 4, i, b query_heads + h, dropout_offset}, over 2^32, is a number in [0, 1): where it is below p the weight
 * falls.
 *
 * Epilogues. A gate G and a residual R, each like O and each in some calls of a kernel that offers it: O = G A + R element by
 * element, A being the O of all that stands above; G = 1 without a gate, R = 0 without a residual. G is the factor itself, not
 * what a sigmoid is yet to be taken of. LSE is that without. A row that sees no key has A = 0, and so O = R exactly, or 0. A NaN
 * or an infinity in G or R leaves no finite number in its element of O, and reaches no other.
 *
 * Or ("combine") it merges partial results p of the same queries over disjoint keys:
 *   LSE = ln sum_p exp(LSE_p),    O = sum_p exp(LSE_p - LSE) O_p.
 * A part with LSE_p = -infinity weighs nothing, whatever its O_p holds; where all are, O = 0 and LSE = -infinity.
 *
 * Or ("backward") it goes back from dO to Q, K and V, with O and LSE as a forward pass left them and as they are given:
 *   p_ij = exp(s_ij - LSE_i),    dS_ij = p_ij (dO_i . v_j - dO_i . O_i + dLSE_i),    times 1 - (s_ij / softcap)^2 with a softcap,
 *   dV_j = sum_i p_ij dO_i,    dQ_i = scale sum_j dS_ij k_j,    dK_j = scale sum_i dS_ij q_i,
 * the sums of a key over all rows that see it, of all query heads that share its head. A row that sees no key gets dQ = 0, a
 * key that no row sees dK = dV = 0. dLSE, the gradient with respect to LSE, is 0 but for kernels that say ATTEST_DLSE, which get it
 * as a tensor in some calls.
 *
 * Or ("select") it chooses the keys that sparse attention attends to: an indexer and its top-k. The score of key j for query i
 * of an entry sums over all query heads, each with the key of its group,
 *   s_j = sum_h weights_ih max(scale q_ih . k_j, 0),
 * and the answer is the list of the min(top_k, n) keys of the largest scores of the n that i sees, in any order, each once, with
 * their scores. A NaN counts as +infinity: max(NaN, 0) is NaN; of keys of one score any will do. A list goes on with keys of -1
 * and scores of -infinity, and queries past their entry's length have a list, too, of 0 keys.
 *
 * Memory. All pointers belong to Attest and are valid until the work of the call is done. In host memory for ATTEST_HOST, in
 * memory of the current CUDA device for ATTEST_CUDA. Inputs may only be read: in host memory their pages are read-only.
 * Outputs and scratch hold NaN on entry: write every element of outputs that are not among the missing_outputs, and assume
 * nothing about scratch. Do not touch the gaps that strides leave: they hold NaN, are checked afterwards, and may not be read
 * into an answer either. Memory may end where a tensor does. No output overlaps another tensor.
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
#include <string.h>

#ifdef __CUDACC__
#define ATTEST_INLINE static inline __host__ __device__
#else
#define ATTEST_INLINE static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define ATTEST_PLUGIN_VERSION 2u

/* Formats of elements, as DLPack's DLDataType says them: a type code, bits, and lanes, which are 1. Never grows. */
#define ATTEST_INT 0u
#define ATTEST_UINT 1u
#define ATTEST_FLOAT 2u
#define ATTEST_BFLOAT 4u
typedef struct AttestFormat {
  uint8_t code, bits;
  uint16_t lanes;
} AttestFormat;
/* To initialise an AttestFormat with. */
#define ATTEST_FP32 {ATTEST_FLOAT, 32, 1}
#define ATTEST_FP16 {ATTEST_FLOAT, 16, 1}
#define ATTEST_BF16 {ATTEST_BFLOAT, 16, 1}
#define ATTEST_E4M3 {10, 8, 1}
#define ATTEST_E5M2 {12, 8, 1}
#define ATTEST_INT8 {ATTEST_INT, 8, 1}
#define ATTEST_TF32 {ATTEST_FLOAT, 19, 1} /* what tensor cores read of fp32: in AttestParts only */

/* Is it the format of this code and so many bits? */
ATTEST_INLINE int attest_is(AttestFormat format, unsigned code, unsigned bits) {
  return format.code == code && format.bits == bits && format.lanes == 1;
}

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
#define ATTEST_VALUES_IN_KEYS 32u /* V is the first value_dim columns of K, and lies there */
#define ATTEST_DLSE 64u       /* backward: a tensor dlse; a call without one has a dLSE of 0 */
/* Of forward, see "Scores" above. */
#define ATTEST_SINKS 128u
#define ATTEST_SLOPES 256u
#define ATTEST_BIAS 512u
#define ATTEST_PREFIX 1024u
#define ATTEST_DOCUMENTS 2048u
#define ATTEST_LISTS 4096u
#define ATTEST_DROPOUT 8192u
/* Of forward, see "Epilogues" above. */
#define ATTEST_GATE 16384u
#define ATTEST_RESIDUAL 32768u

/* Where a kernel's pointers point. */
#define ATTEST_HOST 0u
#define ATTEST_CUDA 1u

/* Sizes and meaning of one call. */
typedef struct AttestProblem {
  uint32_t size;             /* sizeof(AttestProblem) as Attest knows it */
  AttestFormat element_type; /* of Q, K, V and O */
  uint32_t mask;             /* one ATTEST_NO_MASK, ... */
  float scale;               /* exactly this value multiplies the dot products; may be 0 or negative */
  int64_t batch;
  int64_t query_heads;
  int64_t kv_heads;  /* divides query_heads */
  int64_t query_len; /* with lengths the largest of the entries', and so is key_len */
  int64_t key_len;   /* may be 0 */
  int64_t head_dim;
  int64_t value_dim;   /* columns of V and O; head_dim without ATTEST_VALUE_DIM */
  int64_t window_left; /* of window masks; negative: no end on this side */
  int64_t window_right;
  float softcap;             /* 0: none */
  uint32_t has_lengths;      /* 1: the tensors are packed, see AttestTensor */
  uint32_t has_padding;      /* 1: there is a tensor key_mask */
  AttestFormat partial_type; /* combine: of O_p */
  int64_t parts;             /* combine: partial results */
  void* user_data;           /* AttestKernel.user_data */
  int64_t shared_keys;       /* first keys of every entry, and their values, that are the same in all */
  int64_t page_size;         /* keys of a page where k and v are ATTEST_PAGED; else 0 */
  uint32_t values_in_keys;   /* 1: v is the first value_dim columns of k, with k's address and strides */
  uint32_t has_dlse;         /* 1: there is a tensor dlse */
  uint32_t has_sinks;        /* 1: there is a tensor sinks; and so on */
  uint32_t has_slopes;
  uint32_t has_bias;
  uint32_t has_prefix;     /* 1: there is a tensor prefix_lengths */
  uint32_t has_documents;  /* 1: there are query_documents and key_documents */
  float dropout;           /* 0: none; up to 1 */
  int64_t dropout_seed;    /* below 2^52 */
  int64_t dropout_offset;  /* below 2^32 */
  uint32_t has_lists;      /* 1: there are list_items and list_counts */
  uint32_t unused;
  int64_t list_rows;       /* queries that share a list: queries [i list_rows, (i + 1) list_rows) of an entry have its list i */
  int64_t list_keys;       /* keys of an item: item j is the keys [j list_keys, (j + 1) list_keys) */
  int64_t top_k;           /* select: keys to choose for a query; may be 0, or above key_len */
  uint32_t has_gate;       /* 1: there is a tensor gate */
  uint32_t has_residual;   /* 1: there is a tensor residual */
} AttestProblem;

#define ATTEST_INPUT 0u
#define ATTEST_OUTPUT 1u
#define ATTEST_INDEX 2u /* says where others lie or what is hidden of them; an input, too */

#define ATTEST_STRIDED 0u
#define ATTEST_PACKED 1u
#define ATTEST_PAGED 2u

/* A tensor of a call, by its name. Shapes are [batch, head, row, column]:
 *   q            [batch, query_heads, query_len, head_dim]   element_type; o alike with value_dim columns
 *   k            [batch, kv_heads, key_len, head_dim]        element_type; v alike with value_dim columns
 *   lse          [batch, query_heads, query_len, 1]          fp32
 *   query_starts [1, 1, batch + 1, 1]                        int32, with lengths; key_starts alike
 *   query_lengths [1, 1, batch, 1]                           int32, with gaps between packed entries alone: rows of every entry, which
 *                                                            may be fewer than lie between its start and the next; key_lengths alike
 *   page_table   [batch, 1, columns, 1]                      int32, with pages, dense: the row of an entry; with page_starts it is
 *                                                            [1, 1, pages of all entries, 1]
 *   key_lengths  [1, 1, batch, 1]                            int32, with a dense page_table: keys of every entry
 *   page_starts  [1, 1, batch + 1, 1]                        int32, with pages in CSR: where an entry's pages begin in page_table
 *   last_page_lengths [1, 1, batch, 1]                       int32, with page_starts: keys in an entry's last page, 0 without one
 *   key_mask     [batch, 1, key_len, 1]                      uint8, with padding: 1 for a key that is not hidden; never packed,
 *                                                            its rows count from the entry's first key
 *   sinks        [1, query_heads, 1, 1]                      fp32; slopes alike
 *   bias         [batch, query_heads, query_len, key_len]    fp32; strides[0] or strides[1] is 0 where entries or heads share it
 *   prefix_lengths [1, 1, batch, 1]                          int32: keys of an entry's prefix
 *   query_documents [batch, 1, query_len, 1]                 int32: number of a query's document, ascending; -1 past the entry's
 *                                                            length; key_documents alike, with key_len rows. Never packed
 *   list_counts  [batch, 1, lists, 1]                        int32: items that a list names; lists = ceil(query_len / list_rows)
 *   list_items   [batch, 1, lists, room]                     int32: each at most once, in any order; what lies past a list's count
 *                                                            names nothing
 *   gate         [batch, query_heads, query_len, value_dim]  element_type; residual alike. Packed where o is
 * "backward" has q, k, v, o and lse as inputs, do (dO) with the shape of o, with ATTEST_DLSE in some calls dlse (dLSE) with that of
 * lse, and as outputs dq, dk and dv with those of q, k and v; where there are sinks dsinks, too, with their shape, summed over all
 * entries, and where there is a bias dbias, [batch or 1, query_heads or 1, query_len, key_len], 1 where entries or heads share it and
 * are summed over, and contiguous; both fp32
 * "combine" has o and lse, and instead of the others
 *   partial_o    [batch, query_heads, parts * query_len, head_dim]   partial_type; row p * query_len + i is query i of part p
 *   partial_lse  the same with 1 column                              fp32
 * "select" has q and k, the input
 *   weights      [batch, query_heads, query_len, 1]          fp32, of any sign
 * and as outputs, which lie so whatever the lengths and are contiguous,
 *   keys         [batch, 1, query_len, top_k]                int32; not there where top_k is 0
 *   counts       [batch, 1, query_len, 1]                    int32: keys of a list before the first -1
 *   scores       [batch, 1, query_len, top_k]                fp32; not there where top_k is 0
 *
 * Storage. ATTEST_STRIDED: element (b, h, n, d) lies where `strides` say. ATTEST_PACKED, with lengths: the entries of the batch
 * follow each other along the rows of a strided tensor [1, head, rows of all entries, column], and row n of entry b is row
 * starts[b] + n of it, below starts[b + 1]. With gaps rows behind an entry's query_lengths[b] or key_lengths[b] are
 * nobody's, as gaps of strides are. Masks hold within the entry, whose lengths are its query_len and key_len.
 * ATTEST_PAGED, k and v of kernels that take pages: key n of entry b is row n % page_size of page page_table[b][n / page_size] of
 * a strided tensor [pages, kv_heads, page_size, column]; k and v may lie in one pool, and entries may share pages. Slots behind an
 * entry's last key hold anything, NaN too; table entries behind its last page are no pages and may not be followed.
 *
 * Strides. Columns are neighbours: strides[3] is 1. All others are positive, but where a tensor has no elements they may be 0,
 * and in inputs of kernels that say takes_broadcast.
 * Nothing multiplies the stride of a dimension of size 1, so it may be any number, far larger than the tensor, but it keeps
 * what AttestKernel asks of strides unless the kernel takes_any_lone_stride. q, k, v, o, do, dq, dk, dv and partial_o
 * have all kinds of strides and gaps, each its own; the other tensors (lse, dlse, partial_lse, sinks, slopes, bias but for what is
 * shared, gate, residual and indices) are contiguous: a gate has strides of its own, not those of o. */
typedef struct AttestTensor {
  uint32_t size; /* sizeof(AttestTensor) as Attest knows it */
  uint32_t role; /* ATTEST_INPUT, ... */
  const char* name;
  void* data; /* the first element; NULL: an output that the kernel said it does not give */
  AttestFormat format;
  uint32_t storage; /* ATTEST_STRIDED, ATTEST_PACKED or ATTEST_PAGED */
  int64_t shape[4];
  int64_t strides[4];    /* in elements */
  const int32_t* starts; /* ATTEST_PACKED: [batch + 1], the data of query_starts or key_starts; else NULL */
} AttestTensor;

/* How far element (b, h, n, 0) lies from data, in elements, n counting from the entry's first row. Reads `starts`: with
 * lengths a CUDA kernel asks on the device. */
ATTEST_INLINE int64_t attest_offset(const AttestTensor* t, int64_t b, int64_t h, int64_t n) {
  const int64_t entry = t->starts != NULL ? t->starts[b] * t->strides[2] : b * t->strides[0];
  return entry + h * t->strides[1] + n * t->strides[2];
}

/* One choice of tile sizes and the like: how the answer is computed. Names are those of Attest's Plan
 * (core/attention/plan.hpp): query_tile, key_tile, key_splits, ... A kernel with nothing to choose has one plan without fields.
 * These two structs never grow. */
typedef struct AttestPlanField {
  const char* name;
  int64_t value; /* from 1 on */
} AttestPlanField;
typedef struct AttestPlan {
  const AttestPlanField* fields;
  size_t field_count;
} AttestPlan;

/* One call of run(). */
typedef struct AttestRun {
  uint32_t size;
  uint32_t plan_index; /* of AttestKernel.plans */
  const AttestProblem* problem;
  const AttestPlan* plan;             /* = &plans[plan_index] */
  const AttestTensor* const* tensors; /* inputs, outputs, indices */
  size_t tensor_count;
  void* scratch; /* scratch_bytes() of it, aligned to 256 bytes */
  uint64_t scratch_bytes;
  void* stream; /* ATTEST_CUDA: a cudaStream_t; ATTEST_HOST: NULL */
} AttestRun;

/* The tensor of that name; NULL: this call has none. */
static inline const AttestTensor* attest_tensor(const AttestRun* run, const char* name) {
  for (size_t i = 0; i < run->tensor_count; ++i) {
    if (strcmp(run->tensors[i]->name, name) == 0) return run->tensors[i];
  }
  return NULL;
}

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
typedef struct AttestParts {
  AttestFormat format; /* ATTEST_TF32, ATTEST_FP16 or ATTEST_BF16; all 0: factors are read whole */
  uint32_t count;      /* 1 to 3; 0: 1 */
  uint32_t cut;        /* the last so many parts are cut, the others rounded to nearest */
  uint32_t reserved;   /* 0 */
  double scaled_to;    /* elements are first multiplied by a power of two, one a head or one for rows that are taken together,
                          that brings the largest to at least this; 0: they are not */
} AttestParts;

typedef struct AttestPrecision {
  uint32_t size;

  /* Of all operations; division_error and log_error not of backward. */
  uint32_t exp;                /* ATTEST_EXP_LIBRARY, ... */
  double exp_relative_error;   /* these four only with ATTEST_EXP_CUSTOM */
  double exp_argument_error;
  uint32_t exp_is_one_at_zero; /* 1: exp(0) is exactly 1; 0: only where exp_relative_error is 0 */
  uint32_t exp_is_scattered;   /* 1: the error changes from one argument to the next as a rounding does; 0: neighbours may all
                                  err as much as is allowed, as those of a polynomial do */
  double division_error;       /* relative error of the final normalisation; 0: u, one IEEE division */
  double log_error;            /* relative error of the logarithm in LSE; 0: 2 u, 1 ulp */
  uint32_t flushes_subnormals; /* 1: fp32 results below 2^-126 become 0, and so does V, O_p or LSE_p that small (ftz) */

  /* Of combine. */
  uint32_t divides_weights; /* 1: weights are divided by their sum; 0: the sum of weights times O_p is */

  /* Of forward, from here on: the scores. Those of select are score_fused_terms and score_fraction_bits alone: its sum over heads
   * is one of fp32, in any order, fused or not. Those of backward, too, are scale (but ATTEST_SCALE_IN_Q), score_*, softcap_error,
   * weight_format (of P before P^T dO), value_fused_terms and value_fraction_bits (of dQ, dK and dV) and lse_form (of the
   * exponent s - LSE: log2 where both are multiplied by log2 e apart). */
  uint32_t scale;             /* ATTEST_SCALE_AFTER_DOT, ... */
  uint32_t score_fused_terms; /* products of Q K^T that a tensor-core step adds at once (16 on Hopper for fp16), and */
  uint32_t score_fraction_bits; /* the bits kept when they are aligned to the largest (25 on Hopper). Both 0: fp32 fused
                                   multiply-adds, or products and sums in fp32 */
  uint32_t is_unshifted;        /* 1: no maximum is subtracted (overflows; judged by the bound of an ideal kernel) */
  AttestParts score_parts;      /* of Q and K */
  double softcap_error;         /* error of softcap tanh(s / softcap) over softcap; 0: 6 u, a division, tanhf, a product */
  double reference_lag;         /* log2 of how far below the largest score of its row the number may lie that exponents are
                                   taken from; weights are then up to 2^reference_lag. 0: it is the largest score so far */
  /* The weights P, their sum l and P V. */
  AttestFormat weight_format;    /* P before P V; all 0: the element type */
  uint32_t sums_rounded_weights; /* 1: l adds P after rounding to weight_format; 0: before */
  uint32_t value_fused_terms;    /* as of scores */
  uint32_t value_fraction_bits;
  AttestParts value_parts;  /* of P and V; scaled_to is V's */
  double weight_scale;      /* power of two that P carries while it is read in parts; 0: 1 */
  int64_t promoted_keys;    /* keys of a block whose P V is summed apart, then added to O; 0: P V is one chain */
  int64_t normaliser_chain; /* longest chain of additions in l; 0: key_len + splits, one after the other */
  /* Blocks of keys, splits and what becomes of them. */
  int64_t blocks; /* key blocks between which a rescale can happen; 0: ceil(key_len / key_tile), or key_len */
  int64_t splits; /* partial results merged at the end, even by their LSE; 0: the plan's key_splits, or 1 */
  uint32_t rescale;            /* ATTEST_RESCALE_DEFERRED, ... */
  uint32_t merge;              /* of splits: ATTEST_MERGE_LSE_PAIRS, ... */
  AttestFormat partial_format; /* of the O_p that splits leave; all 0: ATTEST_FP32 */
  uint32_t lse_form;           /* ATTEST_LSE_DEFAULT, ... */
  /* Of backward, from here on. */
  uint32_t product_fused_terms; /* of dO V^T, as of scores */
  uint32_t product_fraction_bits;
  AttestFormat dscore_format;         /* dS before dS K and dS^T Q; all 0: the element type */
  uint32_t dscore_of_rounded_weights; /* 1: dS is formed from P after rounding to weight_format; 0: before */
  uint32_t scales_dscore;             /* 1: dS is multiplied by scale before it is rounded; 0: dQ and dK are, at the end */
  AttestFormat kv_part_format;        /* of the parts of dK and dV before they are added; all 0: ATTEST_FP32 */
  int64_t delta_chain; /* additions that a term of dO . O passes through at the most; 0: as many as V has columns */
  int64_t dq_chain;    /* keys in one chain of dQ, those of whole tiles counted; 0: the plan's key_tile, or key_len */
  int64_t dq_parts;    /* such chains, which are added in fp32; 0: as many as key_len has tiles */
  int64_t kv_chain;    /* rows in one chain of dK and dV; 0: those of all query heads of a group */
  int64_t kv_tiles;    /* row tiles of such a chain, each of which begins a step of a product; 0: of the plan's query_tile */
  int64_t kv_parts;    /* such chains, which are added in fp32; 0: 1 */
  AttestFormat dq_sum_format; /* of the sum of dQ's parts, rounded each time that one was added; all 0: ATTEST_FP32 */
  /* Of forward. */
  uint32_t rounds_before_epilogue; /* 1: O is rounded to element_type before its gate and its residual, and after each of them, as
                                      by launches of their own that apply them; 0: once, after both, which fp32 applies */
} AttestPrecision;

/* Which tensors travel through memory, and how often: `attest explain` counts bytes by it. A plan with a loop_order says it
 * instead. */
#define ATTEST_DATAFLOW_UNKNOWN 0u
#define ATTEST_DATAFLOW_STANDARD 1u        /* scores and weights are written and read back */
#define ATTEST_DATAFLOW_KEYS_OUTSIDE 2u    /* O and its statistics are read and written once a key tile */
#define ATTEST_DATAFLOW_QUERIES_OUTSIDE 3u /* K and V are read once a query tile, O is written once */

#define ATTEST_NO_PAGES 0u
#define ATTEST_PAGES_TOO 1u  /* strided and packed k and v as well */
#define ATTEST_ONLY_PAGES 2u

#define ATTEST_ANY_TABLES 0u
#define ATTEST_DENSE_TABLES 1u /* page_table has a row for every entry, beside key_lengths */
#define ATTEST_CSR_TABLES 2u   /* page_table is one list, beside page_starts and last_page_lengths */

/* A kernel: what it claims, and how to run it. */
typedef struct AttestKernel {
  /* What every kernel says. */
  uint32_t size;
  uint32_t memory_space;             /* ATTEST_HOST or ATTEST_CUDA */
  const char* name;                  /* letters, digits, _ - . and /, up to 64; no other kernel's name */
  const AttestFormat* element_types; /* element_type_count of ATTEST_FP32, ATTEST_FP16, ATTEST_BF16, at least one */
  size_t element_type_count;
  uint32_t masks;          /* set, at least one; of combine: ATTEST_NO_MASK */
  uint32_t features;       /* set; 0: dense problems with at least one query; of select ATTEST_NO_QUERIES, _LENGTHS and _PADDING */
  const AttestPlan* plans; /* plan_count >= 1 of them, simplest first */
  size_t plan_count;
  /* Computes the outputs. NULL, or what went wrong: an error for a problem that was claimed to be supported is a failure. */
  const char* (*run)(const AttestRun* run);

  const char* operation;            /* "forward", "combine", "backward" or "select"; NULL: "forward" */
  const char* summary;              /* one line; NULL: none */
  const AttestPrecision* precision; /* NULL: all defaults */
  const char* unavailable;          /* why it cannot run on this machine: a library is missing; NULL: it can */

  /* Callbacks; NULL: what is said beside them. */

  /* No further limits. NULL, or a sentence why this cannot run. Called before any work, for many problems; what it refuses is
   * counted and drawn again, at most 50 times, so say in the fields below what they can say. */
  const char* (*unsupported)(const AttestProblem* problem, const AttestPlan* plan);
  /* 0. */
  uint64_t (*scratch_bytes)(const AttestProblem* problem, const AttestPlan* plan);
  /* `precision` holds for all. Otherwise receives it, and may change it for this problem and plan. */
  void (*refine_precision)(const AttestProblem* problem, const AttestPlan* plan, AttestPrecision* precision);
  /* 0. The query that query tile 0 begins with, above -query_tile and at most 0; with a dataflow, for `attest explain`. */
  int64_t (*first_row)(const AttestProblem* problem, const AttestPlan* plan);
  void* user_data; /* handed to every callback, in AttestProblem */

  /* Problems it can run; others are never asked for. */
  const int64_t* head_dims; /* head_dim_count of them; none: all from min to max that are multiples */
  size_t head_dim_count;
  int64_t head_dim_min;       /* 0: 1 */
  int64_t head_dim_max;       /* 0: 1024 */
  int64_t head_dim_multiple;  /* 0: 1 */
  int64_t query_len_max;      /* 0: no limit */
  int64_t key_len_max;        /* 0: no limit */
  int64_t query_len_multiple; /* of the length of every entry; 0: 1 */
  int64_t key_len_multiple;
  uint32_t only_equal_heads; /* 1: query_heads == kv_heads only; 0: grouped heads too */

  /* Layouts it can run of tensors with strides; 0: any strides, any address that is a multiple of the element size. */
  uint32_t only_contiguous;         /* 1: no gaps, [batch, head, row, column] */
  uint32_t pointer_alignment_bytes; /* a power of two up to 256 */
  uint32_t stride_alignment_bytes;  /* of every stride but a column's; a power of two up to 256 */
  uint32_t takes_any_lone_stride;   /* 1: neither is asked of strides of dimensions of size 1; 0: of those, too */

  uint32_t dataflow; /* ATTEST_DATAFLOW_UNKNOWN, ... */

  /* Which bits may change. What is not claimed here is held to equal bits; what is, to the sum of the bounds of the two launches
   * that are compared. */
  uint32_t is_not_deterministic;   /* 1: two calls may give different bits; covers whatever is launched twice */
  uint32_t is_not_batch_invariant; /* 1: a request's bits depend on its batch or its place there: splits by the size of the batch */
  uint32_t depends_on_alignment;   /* 1: bits depend on addresses and strides: a path for vectors that sums in another order */
  uint32_t shares_reference;       /* 1: rows decide together when the numbers move that their exponents are taken from */

  /* What it does not give. */
  uint32_t spreads_hidden_nan;          /* 1: a NaN in a key or value that a row does not see may reach it, as 0 * NaN does;
                                           laws that plant a NaN are then not asked */
  uint32_t nan_rows_may_have_empty_lse; /* 1: LSE may be -infinity, not NaN, for a row that sees a NaN in Q or K */
  const char* const* missing_outputs;   /* missing_output_count names of outputs that it does not write: "lse"; of select "scores" */
  size_t missing_output_count;

  /* K and V in pages. */
  uint32_t pages;            /* ATTEST_NO_PAGES, ... */
  const int64_t* page_sizes; /* page_size_count sizes that it takes; none: any */
  size_t page_size_count;
  /* What it promises beside. */
  uint32_t is_query_invariant; /* 1: a query has its bits however many are asked at once */
  uint32_t reads_lengths;      /* 1: with lengths or pages it learns the lengths from the tensors alone; key_len is an upper bound,
                                  and a graph of its launches may be replayed on other lengths */
  /* What it takes of tensors. What it does not is asked for all the same: cases of another page table or partial type are refused
   * and drawn again; of gaps and strides of 0 the laws that make them are not asked. Both are counted, and a campaign says them. */
  uint32_t page_tables;              /* with pages: ATTEST_ANY_TABLES, ... */
  uint32_t takes_entry_gaps;         /* 1: ATTEST_PACKED tensors whose entries do not end where the next begin, see query_lengths */
  const AttestFormat* partial_types; /* combine: partial_type_count of ATTEST_FP32, ATTEST_FP16, ATTEST_BF16; none: all three */
  size_t partial_type_count;
  uint32_t takes_broadcast; /* 1: inputs whose entries or heads are one in memory, with strides[0] or strides[1] of 0 */
  uint32_t unused;          /* 0 */
  int64_t list_rows_multiple; /* of list_rows; 0: 1 */
  int64_t list_keys_multiple;
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
