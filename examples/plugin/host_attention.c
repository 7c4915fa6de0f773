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

/* Keys or values of one head: row j is at data + j * row. */
typedef struct Rows {
  const float* data;
  int64_t row;
} Rows;

static Rows rows_of(const AttestTensor* t, int64_t b, int64_t h) {
  return (Rows){(const float*)t->data + attest_offset(t, b, h, 0), t->strides[2]};
}

/* One row: q and o are its own. Returns the LSE. */
static float attend_row(const AttestRun* run, const float* q, Rows k, Rows v, float* o, int64_t visible) {
  const int64_t head_dim = run->problem->head_dim;
  const int64_t tile = run->plan->fields[0].value; /* all our plans have one field: key_tile */
  float m = -INFINITY, l = 0;
  for (int64_t d = 0; d < head_dim; ++d) o[d] = 0; /* O holds NaN on entry */
  for (int64_t first = 0; first < visible; first += tile) {
    const int64_t count = visible - first < tile ? visible - first : tile;
    float s[largest_tile];
    float m_new = m;
    for (int64_t j = 0; j < count; ++j) {
      s[j] = run->problem->scale * dot(q, k.data + (first + j) * k.row, head_dim);
      m_new = fmaxf(m_new, s[j]);
    }
    const float c = expf(m - m_new); /* 0 for the first tile */
    l *= c;
    for (int64_t d = 0; d < head_dim; ++d) o[d] *= c;
    for (int64_t j = 0; j < count; ++j) {
      const float p = expf(s[j] - m_new);
      const float* v_row = v.data + (first + j) * v.row;
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
  const AttestTensor *q = attest_tensor(run, "q"), *k = attest_tensor(run, "k"), *v = attest_tensor(run, "v");
  const AttestTensor *o = attest_tensor(run, "o"), *lse = attest_tensor(run, "lse");
  for (int64_t b = 0; b < p->batch; ++b) {
    for (int64_t h = 0; h < p->query_heads; ++h) {
      const int64_t kv_head = h / (p->query_heads / p->kv_heads);
      for (int64_t i = 0; i < p->query_len; ++i) {
        const float* q_row = (const float*)q->data + attest_offset(q, b, h, i);
        float* o_row = (float*)o->data + attest_offset(o, b, h, i);
        ((float*)lse->data)[attest_offset(lse, b, h, i)] =
            attend_row(run, q_row, rows_of(k, b, kv_head), rows_of(v, b, kv_head), o_row, visible_keys(p, i));
      }
    }
  }
  return NULL; /* no error */
}

static const AttestPlanField tiles[] = {{"key_tile", 1}, {"key_tile", 16}, {"key_tile", largest_tile}};
static const AttestPlan plans[] = {{&tiles[0], 1}, {&tiles[1], 1}, {&tiles[2], 1}};

static const AttestFormat types[] = {ATTEST_FP32};

static const AttestKernel kernel = {
    .size = sizeof(AttestKernel),
    .memory_space = ATTEST_HOST,
    .name = "my_host_attention",
    .summary = "online softmax over key tiles, fp32, in C",
    .element_types = types,
    .element_type_count = 1,
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
