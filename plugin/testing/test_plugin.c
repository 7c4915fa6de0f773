/* One correct kernel, and one way to be wrong for each macro that the build may define. */
#include <fenv.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <attest/plugin.h>

static int* volatile nowhere; /* writing there is a crash that the compiler cannot foresee */

static int64_t visible(const AttestProblem* p, int64_t query) {
  int64_t count = p->key_len;
  if (p->mask == ATTEST_CAUSAL_TOP_LEFT) count = query + 1;
  if (p->mask == ATTEST_CAUSAL_BOTTOM_RIGHT) count = query + 1 + p->key_len - p->query_len;
  return count < 0 ? 0 : count > p->key_len ? p->key_len : count;
}

static float dot(const float* a, const float* b, int64_t n) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum = fmaf(a[i], b[i], sum);
  return sum;
}

static float* at(const AttestRun* r, const char* name, int64_t b, int64_t h, int64_t row) {
  const AttestTensor* tensor = attest_tensor(r, name);
  return (float*)tensor->data + attest_offset(tensor, b, h, row);
}

/* Three passes over the keys: maximum, sum, output. The scores are formed again in each. */
static void attend(const AttestRun* r, int64_t b, int64_t h, int64_t i) {
  const AttestProblem* p = r->problem;
  const int64_t kv = h / (p->query_heads / p->kv_heads);
  const AttestTensor *k_tensor = attest_tensor(r, "k"), *v_tensor = attest_tensor(r, "v");
  const int64_t k_row = k_tensor->strides[2], v_row = v_tensor->strides[2];
  const float* q = at(r, "q", b, h, i);
  const float* k = at(r, "k", b, kv, 0);
  const float* v = at(r, "v", b, kv, 0);
  float* o = at(r, "o", b, h, i);
  const int64_t n = visible(p, i);
  float m = -INFINITY, l = 0;
  for (int64_t j = 0; j < n; ++j) {
    const float s = p->scale * dot(q, k + j * k_row, p->head_dim);
    if (s > m || isnan(s)) m = s;
    if (isnan(m)) break;
  }
  for (int64_t j = 0; j < n; ++j) l += expf(p->scale * dot(q, k + j * k_row, p->head_dim) - m);
  for (int64_t d = 0; d < p->head_dim; ++d) o[d] = 0;
  for (int64_t j = 0; j < n; ++j) {
    const float w = expf(p->scale * dot(q, k + j * k_row, p->head_dim) - m);
    for (int64_t d = 0; d < p->head_dim; ++d) o[d] = fmaf(w, v[j * v_row + d], o[d]);
  }
  for (int64_t d = 0; d < p->head_dim && n > 0; ++d) o[d] /= l;
#ifdef WRONG_ANSWER
  if (n > 1) o[0] *= 1.001F;
#endif
  *at(r, "lse", b, h, i) = n > 0 ? m + logf(l) : -INFINITY;
}

static const char* run(const AttestRun* r) {
  const AttestProblem* p = r->problem;
#if defined(ERROR_IN_RUN)
  if (p->query_len > 3) return "no fourth\nquery today";
#elif defined(CRASH_IN_RUN)
  if (p->query_len > 3) *nowhere = 1;
#elif defined(EAT_MEMORY_IN_RUN)
  for (int i = 0; p->query_len > 3; ++i) { /* 4 GiB, should nobody stop it */
    char* more = i < 256 ? malloc(16 << 20) : NULL;
    if (more == NULL) pause();
    else memset(more, 1, 16 << 20);
  }
#elif defined(ABORT_IN_RUN)
  if (p->query_len > 3) abort();
#elif defined(EXIT_IN_RUN)
  if (p->query_len > 3) exit(0);
#elif defined(HANG_IN_RUN)
  while (p->query_len > 3) sleep(1);
#elif defined(WRITE_INPUT_IN_RUN)
  volatile float* q = (volatile float*)attest_tensor(r, "q")->data;
  if (p->query_len > 3) *q = *q * 2, *q = *q / 2;
#elif defined(ROUND_UP_IN_RUN)
  if (p->query_len > 3) fesetround(FE_UPWARD);
#elif defined(NOISY)
  puts("{\"kind\": noise of run}");
#elif defined(KNOWS_THE_WORKER)
  char words[64] = {0};
  FILE* file = fopen("/proc/self/cmdline", "r");
  if (file == NULL || fread(words, 1, sizeof words - 1, file) == 0) return "it cannot see where it runs";
  fclose(file);
  if (strcmp(words + strlen(words) + 1, "worker") == 0) return "it runs where it is judged";
#endif
  for (int64_t b = 0; b < p->batch; ++b) {
    for (int64_t h = 0; h < p->query_heads; ++h) {
      for (int64_t i = 0; i < p->query_len; ++i) attend(r, b, h, i);
    }
  }
#ifdef NOT_DETERMINISTIC
  static int calls = 0;
  if (p->key_len > 0 && p->mask == ATTEST_NO_MASK) {
    float* o = attest_tensor(r, "o")->data;
    o[0] = nextafterf(o[0], ++calls % 2 != 0 ? INFINITY : -INFINITY);
  }
#endif
  return NULL;
}

static const AttestPlanField tile16[] = {{"key_tile", 16}};
static const AttestPlanField wrong_field[] = {{"key_tiles", 16}};
static const AttestPlan plans[] = {{NULL, 0}, {tile16, 1}};
static const AttestPlan wrong_plans[] = {{wrong_field, 1}};
static const int64_t wrong_head_dims[] = {64, 0};

static AttestFormat types[] = {ATTEST_FP32, ATTEST_FP16, ATTEST_BF16, ATTEST_TF32};
static const char* const outputs[] = {"o"};

static AttestPrecision precision = {.size = sizeof(AttestPrecision), .rescale = ATTEST_RESCALE_NONE};
static AttestKernel kernel = {
    .size = sizeof(AttestKernel),
    .name = "test_plugin",
    .summary = "three passes in C",
    .element_types = types,
    .element_type_count = 1,
    .masks = ATTEST_NO_MASK | ATTEST_CAUSAL_TOP_LEFT | ATTEST_CAUSAL_BOTTOM_RIGHT,
    .plans = plans,
    .plan_count = 2,
    .precision = &precision,
    .run = run,
};
static AttestKernel second;
/* What an older plugin.h has; more lies behind it in memory, and is not the plugin's to mean. */
static const uint32_t older_kernel_size = offsetof(AttestKernel, unavailable);
static const uint32_t older_precision_size = offsetof(AttestPrecision, divides_weights);
/* A struct of a later version: one field more. */
static struct {
  AttestKernel kernel;
  uint64_t later;
} newer;
static const AttestKernel* kernels[] = {&kernel, &second};
static AttestPlugin plugin = {sizeof(AttestPlugin), ATTEST_PLUGIN_VERSION, kernels, 1};

#if defined(CRASH_ON_LOAD) || defined(EXIT_ON_LOAD) || defined(HANG_ON_LOAD) || defined(NOISY) || defined(FLUSH_ON_LOAD)
__attribute__((constructor)) static void on_load(void) {
#if defined(CRASH_ON_LOAD)
  *nowhere = 1;
#elif defined(EXIT_ON_LOAD)
  exit(7);
#elif defined(NOISY)
  puts("{\"kind\": noise of loading}");
#elif defined(FLUSH_ON_LOAD) /* what -ffast-math links in */
  _mm_setcsr(_mm_getcsr() | 0x8040u);
#else
  for (;;) pause();
#endif
}
#endif

#if defined(CRASH_IN_LATER_UNSUPPORTED) || defined(HANG_IN_LATER_UNSUPPORTED)
/* Not for what is asked while the plugin is loaded. */
static const char* unsupported(const AttestProblem* p, const AttestPlan* plan) {
  (void)plan;
  if (p->query_len == 33) return NULL;
  if (p->query_len <= 3) return "no short queries";
#ifdef CRASH_IN_LATER_UNSUPPORTED
  raise(SIGSEGV);
#else
  for (;;) pause();
#endif
  return NULL;
}
#endif
#ifdef MULTIPLES_OF_64
static const char* unsupported(const AttestProblem* p, const AttestPlan* plan) {
  (void)plan;
  if (p->query_len == 0 || p->query_len % 64 != 0) return "takes only multiples of 64";
  if (p->key_len == 0 || p->key_len % 64 != 0) return "takes only multiples of 64";
  return p->head_dim > 128 ? "takes no head_dim above 128" : NULL;
}
#elif defined(THIRTEEN_QUERIES)
static const char* unsupported(const AttestProblem* p, const AttestPlan* plan) {
  (void)plan;
  return p->query_len == 13 ? NULL : "takes 13 queries";
}
#endif
#ifdef WRONG_LATER_REFINEMENT
static void refine(const AttestProblem* p, const AttestPlan* plan, AttestPrecision* declared) {
  (void)plan;
  if (p->query_len != 33) declared->division_error = -1.0;
}
#endif
#ifdef CRASH_IN_UNSUPPORTED
static const char* unsupported(const AttestProblem* p, const AttestPlan* plan) {
  (void)p;
  (void)plan;
  raise(SIGSEGV);
  return NULL;
}
#endif
#ifdef WRONG_REFINEMENT
static void refine(const AttestProblem* p, const AttestPlan* plan, AttestPrecision* declared) {
  (void)plan;
  declared->division_error = p->key_len > 0 ? -1.0 : 0.0;
}
#endif

#ifdef NO_SYMBOL
const AttestPlugin* attest_plugins(uint32_t version);
__attribute__((visibility("default"))) const AttestPlugin* attest_plugins(uint32_t version) {
#else
const AttestPlugin* attest_plugin(uint32_t version) {
#endif
  (void)version;
  (void)nowhere;
  (void)wrong_plans;
  (void)outputs;
  (void)wrong_head_dims;
  (void)older_kernel_size;
  (void)older_precision_size;
  newer.kernel = kernel;
  newer.kernel.size = sizeof newer;
  newer.kernel.name = "newer_plugin";
#if defined(WRONG_VERSION)
  plugin.version = 7;
#elif defined(SMALL_STRUCT)
  kernel.size = 24;
#elif defined(OLDER_STRUCT)
  memset(&kernel.unavailable, 0x5a, sizeof kernel - older_kernel_size);
  memset(&precision.divides_weights, 0x5a, sizeof precision - older_precision_size);
  kernel.size = older_kernel_size;
  precision.size = older_precision_size;
  kernel.name = "older_plugin";
#elif defined(NEWER_STRUCT)
  kernels[0] = &newer.kernel;
#elif defined(UNKNOWN_FIELD)
  newer.later = 1;
  kernels[0] = &newer.kernel;
#elif defined(NULL_DESCRIPTOR)
  return NULL;
#elif defined(NO_KERNELS)
  plugin.kernel_count = 0;
#elif defined(NULL_NAME)
  kernel.name = NULL;
#elif defined(EMPTY_NAME)
  kernel.name = "";
#elif defined(BAD_NAME)
  kernel.name = "all*";
#elif defined(CLASH)
  second = kernel;
  plugin.kernel_count = 2;
#elif defined(TWO_KERNELS)
  second = kernel;
  kernel.name = "first_kernel";
  second.name = "second_kernel";
  plugin.kernel_count = 2;
#elif defined(UNKNOWN_TYPE)
  kernel.element_types = &types[3];
#elif defined(TYPE_TWICE)
  kernel.element_type_count = 3;
  types[2] = types[0];
#elif defined(NO_TYPES)
  kernel.element_type_count = 0;
#elif defined(UNKNOWN_OPERATION)
  kernel.operation = "sideways";
#elif defined(COMBINE_WITH_MASKS)
  kernel.operation = "combine";
#elif defined(COMBINE_WITH_LENGTHS)
  kernel.operation = "combine";
  kernel.masks = ATTEST_NO_MASK;
  kernel.features = ATTEST_LENGTHS;
#elif defined(COMBINE_WITH_RESCALE)
  kernel.operation = "combine";
  kernel.masks = ATTEST_NO_MASK;
#elif defined(DIVIDED_WEIGHTS)
  precision.divides_weights = 1;
#elif defined(MISSING_O)
  kernel.missing_outputs = outputs;
  kernel.missing_output_count = 1;
#elif defined(UNAVAILABLE)
  kernel.name = "unavailable_plugin";
  kernel.unavailable = "no library\nfor it";
#elif defined(BAD_DATAFLOW)
  kernel.dataflow = 4;
#elif defined(BAD_EXP)
  precision.exp_is_scattered = 1;
#elif defined(UNKNOWN_MASK)
  kernel.masks = 32u;
#elif defined(NO_PLANS)
  kernel.plan_count = 0;
#elif defined(UNKNOWN_PLAN_FIELD)
  kernel.plans = wrong_plans;
  kernel.plan_count = 1;
#elif defined(NAN_PRECISION)
  precision.division_error = NAN;
#elif defined(NEGATIVE_PRECISION)
  precision.blocks = -1;
#elif defined(WRONG_REFINEMENT)
  kernel.name = "refining_plugin";
  kernel.refine_precision = refine;
#elif defined(NULL_RUN)
  kernel.run = NULL;
#elif defined(BAD_HEAD_DIM)
  kernel.head_dims = wrong_head_dims;
  kernel.head_dim_count = 2;
#elif defined(BAD_ALIGNMENT)
  kernel.pointer_alignment_bytes = 24;
#elif defined(UNKNOWN_FEATURE)
  kernel.features = 0x80000000u;
#elif defined(BAD_CLAIM)
  kernel.shares_reference = 2;
#elif defined(BAD_MULTIPLE)
  kernel.key_len_multiple = -64;
#elif defined(BAD_PARTS)
  precision.value_parts.count = 3;
#elif defined(BAD_LAG)
  precision.reference_lag = NAN;
#elif defined(BAD_MERGE)
  precision.merge = 3;
#elif defined(BAD_WEIGHT_SCALE)
  precision.weight_scale = 3;
#elif defined(CRASH_IN_DESCRIBE)
  *nowhere = 1;
#elif defined(CRASH_IN_UNSUPPORTED)
  kernel.name = "asking_plugin";
  kernel.unsupported = unsupported;
#elif defined(CRASH_IN_LATER_UNSUPPORTED) || defined(HANG_IN_LATER_UNSUPPORTED) || \
    defined(MULTIPLES_OF_64) || defined(THIRTEEN_QUERIES)
  kernel.unsupported = unsupported;
#elif defined(WRONG_LATER_REFINEMENT)
  kernel.refine_precision = refine;
#elif defined(FLUSH_ON_LOAD)
  kernel.name = "flushing_plugin";
#elif defined(CUDA_KERNEL)
  kernel.memory_space = ATTEST_CUDA;
#elif defined(ALIGNED)
  kernel.pointer_alignment_bytes = 16;
  kernel.stride_alignment_bytes = 16;
  kernel.head_dim_multiple = 8;
  kernel.head_dim_max = 64;
#endif
  return &plugin;
}
