/* A decoding kernel of one's own on the host: K and V lie in pages of a pool, as serving systems keep them, and a table says
 * which page holds which keys; softmax in two passes over the keys, fp32.
 *
 *   key n of entry b: row n % page_size of page table[b][n / page_size] of a tensor [pages, kv_heads, page_size, column]
 *
 * Compiled with WITH_A_BUG it is wrong_paged.so: values are read with the strides of keys. Where both pools are laid out
 * alike, as in most tests, nobody notices. */
#include <math.h>

#include <attest/plugin.h>

/* The pages of an entry and its number of keys, from a dense table or from CSR. */
typedef struct Entry {
  const int32_t* pages;
  int64_t keys;
} Entry;

static const int32_t* numbers(const AttestTensor* t) {
  return (const int32_t*)t->data;
}

static Entry entry_of(const AttestRun* run, int64_t b) {
  const AttestTensor *table = attest_tensor(run, "page_table"), *starts = attest_tensor(run, "page_starts");
  if (starts == NULL) return (Entry){numbers(table) + b * table->shape[2], numbers(attest_tensor(run, "key_lengths"))[b]};
  const int64_t first = numbers(starts)[b], pages = numbers(starts)[b + 1] - first;
  const int64_t in_last = numbers(attest_tensor(run, "last_page_lengths"))[b];
  return (Entry){numbers(table) + first, pages == 0 ? 0 : (pages - 1) * run->problem->page_size + in_last};
}

/* Row n of an entry; `strides` are those of the pool. */
static const float* row_of(const AttestTensor* pool, const int64_t* strides, Entry entry, int64_t head, int64_t n) {
  const int64_t size = pool->shape[2], page = entry.pages[n / size];
  return (const float*)pool->data + page * strides[0] + head * strides[1] + n % size * strides[2];
}

static float score(const AttestProblem* p, const float* q, const float* k) {
  float sum = 0;
  for (int64_t d = 0; d < p->head_dim; ++d) sum += q[d] * k[d];
  return p->scale * sum;
}

/* The LSE of one row; `o` is its own. */
static float attend_row(const AttestRun* run, const float* q, Entry entry, int64_t head, float* o, int64_t visible) {
  const AttestProblem* p = run->problem;
  const AttestTensor *k = attest_tensor(run, "k"), *v = attest_tensor(run, "v");
#ifdef WITH_A_BUG
  const int64_t* v_strides = k->strides;
#else
  const int64_t* v_strides = v->strides;
#endif
  float m = -INFINITY, l = 0;
  for (int64_t d = 0; d < p->head_dim; ++d) o[d] = 0; /* O holds NaN on entry */
  for (int64_t j = 0; j < visible; ++j) {
    const float s = score(p, q, row_of(k, k->strides, entry, head, j));
    if (s > m || isnan(s)) m = s; /* a NaN reaches the rows that see it */
    if (isnan(m)) break;
  }
  for (int64_t j = 0; j < visible; ++j) {
    const float weight = expf(score(p, q, row_of(k, k->strides, entry, head, j)) - m);
    const float* v_row = row_of(v, v_strides, entry, head, j);
    l += weight;
    for (int64_t d = 0; d < p->head_dim; ++d) o[d] += weight * v_row[d];
  }
  if (visible == 0) return -INFINITY; /* an empty row: O = 0, LSE = -infinity */
  for (int64_t d = 0; d < p->head_dim; ++d) o[d] /= l;
  return m + logf(l);
}

static const char* run(const AttestRun* run) {
  const AttestProblem* p = run->problem;
  const AttestTensor *q = attest_tensor(run, "q"), *o = attest_tensor(run, "o"), *lse = attest_tensor(run, "lse");
  for (int64_t b = 0; b < p->batch; ++b) {
    const Entry entry = entry_of(run, b);
    for (int64_t h = 0; h < p->query_heads; ++h) {
      for (int64_t i = 0; i < p->query_len; ++i) {
        const int64_t kv_head = h / (p->query_heads / p->kv_heads);
        int64_t visible = entry.keys; /* the queries are the last ones of a sequence of so many */
        if (p->mask == ATTEST_CAUSAL_BOTTOM_RIGHT) visible += i + 1 - p->query_len;
        ((float*)lse->data)[attest_offset(lse, b, h, i)] =
            attend_row(run, (const float*)q->data + attest_offset(q, b, h, i), entry, kv_head,
                       (float*)o->data + attest_offset(o, b, h, i), visible < 0 ? 0 : visible);
      }
    }
  }
  return NULL; /* no error */
}

static const AttestFormat types[] = {ATTEST_FP32};
static const AttestPlan plans[] = {{NULL, 0}}; /* nothing to choose */
static const AttestKernel kernel = {
    .size = sizeof(AttestKernel),
    .memory_space = ATTEST_HOST,
    .name = "my_paged",
    .summary = "an example: K and V in pages, row by row on the host",
    .element_types = types,
    .element_type_count = 1,
    .masks = ATTEST_NO_MASK | ATTEST_CAUSAL_BOTTOM_RIGHT,
    .pages = ATTEST_ONLY_PAGES,
    .plans = plans,
    .plan_count = 1,
    .run = run,
};

ATTEST_PLUGIN_EXPORT const AttestPlugin* attest_plugin(uint32_t attest_version) {
  static const AttestKernel* const kernels[] = {&kernel};
  static const AttestPlugin plugin = {sizeof(AttestPlugin), ATTEST_PLUGIN_VERSION, kernels, 1};
  (void)attest_version;
  return &plugin;
}
