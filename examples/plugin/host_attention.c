/* A host kernel of one's own: online softmax over tiles of keys, fp32, one query row at a time.
 *
 *   for each tile:  m' = max(m, scores),  c = exp(m - m'),  l = l c + sum p_j,  O = O c + sum p_j v_j,  p_j = exp(s_j - m')
 *   at the end:     O / l,  LSE = m + ln l
 *
 * Its precision is what plugin.h calls the default: fp32 everywhere, expf, one division at the end. */
#include <math.h>

#include <attest/plugin.h>

enum { largest_tile = 64 };

/* The keys that a row sees are the first ones; this is how many. */
static int64_t visible_keys(const AttestProblem* p, int64_t query) {
  int64_t count = p->key_len;
  if (p->mask == ATTEST_CAUSAL_TOP_LEFT) count = query + 1;
  if (p->mask == ATTEST_CAUSAL_BOTTOM_RIGHT) count = query + 1 + p->key_len - p->query_len;
  return count < 0 ? 0 : count > p->key_len ? p->key_len : count;
}

static float dot(const float* a, const float* b, int64_t n) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/* One row: q and o are its own, k and v begin at the head's first key. Returns the LSE. */
static float attend_row(const AttestRun* run, const float* q, const float* k, const float* v, float* o, int64_t visible) {
  const int64_t head_dim = run->problem->head_dim;
  const int64_t tile = run->plan->fields[0].value; /* all our plans have one field: key_tile */
  float m = -INFINITY, l = 0;
  for (int64_t d = 0; d < head_dim; ++d) o[d] = 0; /* O holds NaN on entry */
  for (int64_t first = 0; first < visible; first += tile) {
    const int64_t count = visible - first < tile ? visible - first : tile;
    float s[largest_tile];
    float m_new = m;
    for (int64_t j = 0; j < count; ++j) {
      s[j] = run->problem->scale * dot(q, k + (first + j) * run->k_strides.row, head_dim);
      m_new = fmaxf(m_new, s[j]);
    }
    const float c = expf(m - m_new); /* 0 for the first tile */
    l *= c;
    for (int64_t d = 0; d < head_dim; ++d) o[d] *= c;
    for (int64_t j = 0; j < count; ++j) {
      const float p = expf(s[j] - m_new);
      const float* v_row = v + (first + j) * run->v_strides.row;
      l += p;
      for (int64_t d = 0; d < head_dim; ++d) o[d] += p * v_row[d];
    }
    m = m_new;
  }
  if (visible == 0) return -INFINITY; /* an empty row: O = 0, LSE = -infinity */
  for (int64_t d = 0; d < head_dim; ++d) o[d] /= l;
  return m + logf(l);
}

static const char* run(const AttestRun* run) {
  const AttestProblem* p = run->problem;
  for (int64_t b = 0; b < p->batch; ++b) {
    for (int64_t h = 0; h < p->query_heads; ++h) {
      const int64_t kv_head = h / (p->query_heads / p->kv_heads);
      const float* k = (const float*)run->k + b * run->k_strides.batch + kv_head * run->k_strides.head;
      const float* v = (const float*)run->v + b * run->v_strides.batch + kv_head * run->v_strides.head;
      for (int64_t i = 0; i < p->query_len; ++i) {
        const float* q =
            (const float*)run->q + b * run->q_strides.batch + h * run->q_strides.head + i * run->q_strides.row;
        float* o = (float*)run->o + b * run->o_strides.batch + h * run->o_strides.head + i * run->o_strides.row;
        run->lse[(b * p->query_heads + h) * p->query_len + i] = attend_row(run, q, k, v, o, visible_keys(p, i));
      }
    }
  }
  return NULL; /* no error */
}

static const AttestPlanField tiles[] = {{"key_tile", 1}, {"key_tile", 16}, {"key_tile", largest_tile}};
static const AttestPlan plans[] = {{&tiles[0], 1}, {&tiles[1], 1}, {&tiles[2], 1}};

static const AttestKernel kernel = {
    .size = sizeof(AttestKernel),
    .memory_space = ATTEST_HOST,
    .name = "my_host_attention",
    .summary = "online softmax over key tiles, fp32, in C",
    .element_types = ATTEST_FP32,
    .masks = ATTEST_NO_MASK | ATTEST_CAUSAL_TOP_LEFT | ATTEST_CAUSAL_BOTTOM_RIGHT,
    .plans = plans,
    .plan_count = sizeof plans / sizeof plans[0],
    .run = run,
};

const AttestPlugin* attest_plugin(uint32_t attest_version) {
  static const AttestKernel* const kernels[] = {&kernel};
  static const AttestPlugin plugin = {sizeof(AttestPlugin), ATTEST_PLUGIN_VERSION, kernels, 1};
  (void)attest_version;
  return &plugin;
}
