/* Kernels that take some ways in which tensors lie in memory and no others, and return an error when they are given another.
 * tests/plugin_claims_test.cpp runs them. */
#include <math.h>
#include <stddef.h>

#include <attest/plugin.h>

/* Rows of entry b: those of a packed tensor may be fewer than lie between starts, those in pages are in a table. */
static int64_t rows_of(const AttestRun* r, const char* starts, const char* lengths, int64_t b, int64_t otherwise) {
  const AttestTensor *begin = attest_tensor(r, starts), *count = attest_tensor(r, lengths);
  if (count != NULL) return ((const int32_t*)count->data)[b];
  const AttestTensor *pages = attest_tensor(r, "page_starts"), *last = attest_tensor(r, "last_page_lengths");
  if (starts[0] == 'k' && pages != NULL) {
    const int32_t* first = (const int32_t*)pages->data;
    const int64_t whole = first[b + 1] - first[b] - 1;
    return whole < 0 ? 0 : whole * r->problem->page_size + ((const int32_t*)last->data)[b];
  }
  if (begin == NULL) return otherwise;
  return ((const int32_t*)begin->data)[b + 1] - ((const int32_t*)begin->data)[b];
}

static float* row(const AttestRun* r, const AttestTensor* t, int64_t b, int64_t h, int64_t n) {
  if (t->storage != ATTEST_PAGED) return (float*)t->data + attest_offset(t, b, h, n);
  const AttestTensor *table = attest_tensor(r, "page_table"), *starts = attest_tensor(r, "page_starts");
  const int64_t size = r->problem->page_size;
  const int64_t first = starts != NULL ? ((const int32_t*)starts->data)[b] : b * table->shape[2];
  const int64_t page = ((const int32_t*)table->data)[first + n / size];
  return (float*)t->data + page * t->strides[0] + h * t->strides[1] + n % size * t->strides[2];
}

static void attend(const AttestRun* r, int64_t b, int64_t h, int64_t i, int64_t keys) {
  const AttestProblem* p = r->problem;
  const AttestTensor *k = attest_tensor(r, "k"), *v = attest_tensor(r, "v");
  const int64_t kv = h / (p->query_heads / p->kv_heads);
  const float* q = row(r, attest_tensor(r, "q"), b, h, i);
  float* o = row(r, attest_tensor(r, "o"), b, h, i);
  float m = -INFINITY, l = 0;
  for (int64_t d = 0; d < p->head_dim; ++d) o[d] = 0;
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t j = 0; j < keys; ++j) {
      const float *key = row(r, k, b, kv, j), *value = row(r, v, b, kv, j);
      float s = 0;
      for (int64_t d = 0; d < p->head_dim; ++d) s = fmaf(q[d], key[d], s);
      s *= p->scale;
      if (pass == 0) {
        m = s > m || isnan(s) ? s : m;
        if (isnan(m)) break;
        continue;
      }
      const float w = expf(s - m);
      l += w;
      for (int64_t d = 0; d < p->head_dim; ++d) o[d] = fmaf(w, value[d], o[d]);
    }
  }
  for (int64_t d = 0; d < p->head_dim && keys > 0; ++d) o[d] /= l;
  *row(r, attest_tensor(r, "lse"), b, h, i) = keys > 0 ? m + logf(l) : -INFINITY;
}

/* What is in a launch that the kernel did not say it takes. */
static const char* surprise(const AttestRun* r) {
  const AttestKernel* me = (const AttestKernel*)r->problem->user_data;
  const int is_csr = attest_tensor(r, "page_starts") != NULL;
  if (r->problem->page_size > 0 && is_csr && me->page_tables == ATTEST_DENSE_TABLES) return "a CSR table";
  if (r->problem->page_size > 0 && !is_csr && me->page_tables == ATTEST_CSR_TABLES) return "a dense table";
  if (attest_tensor(r, "query_lengths") != NULL && !me->takes_entry_gaps) return "a gap between entries";
  const AttestTensor* k = attest_tensor(r, "k");
  const int has_zero = (r->problem->batch > 1 && k->strides[0] == 0) || (r->problem->kv_heads > 1 && k->strides[1] == 0);
  const int is_empty = k->shape[0] * k->shape[1] * k->shape[2] == 0;
  return has_zero && !is_empty && k->storage == ATTEST_STRIDED && !me->takes_broadcast ? "a stride of 0" : NULL;
}

static const char* run(const AttestRun* r) {
  const AttestProblem* p = r->problem;
  const char* what = surprise(r);
  if (what != NULL) return what;
  for (int64_t b = 0; b < p->batch; ++b) {
    const int64_t keys = rows_of(r, "key_starts", "key_lengths", b, p->key_len);
    const int64_t queries = rows_of(r, "query_starts", "query_lengths", b, p->query_len);
    for (int64_t h = 0; h < p->query_heads; ++h) {
      for (int64_t i = 0; i < queries; ++i) attend(r, b, h, i, keys);
    }
  }
  return NULL;
}

static const AttestFormat types[] = {ATTEST_FP32};
static const AttestPlan plans[] = {{NULL, 0}};

#define KERNEL(called, ...)                                                                                            \
  {                                                                                                                    \
    .size = sizeof(AttestKernel), .name = called, .element_types = types, .element_type_count = 1,                     \
    .masks = ATTEST_NO_MASK, .plans = plans, .plan_count = 1, .run = run, .features = ATTEST_LENGTHS, __VA_ARGS__      \
  }

static AttestKernel all[] = {KERNEL("takes/dense_tables", .pages = ATTEST_PAGES_TOO, .page_tables = ATTEST_DENSE_TABLES),
                             KERNEL("takes/csr_tables", .pages = ATTEST_PAGES_TOO, .page_tables = ATTEST_CSR_TABLES),
                             KERNEL("takes/any_tables", .pages = ATTEST_PAGES_TOO),
                             KERNEL("takes/entry_gaps", .takes_entry_gaps = 1),
                             KERNEL("takes/broadcast", .takes_broadcast = 1)};
enum { count = sizeof all / sizeof all[0] };
static const AttestKernel* kernels[count];
static const AttestPlugin plugin = {sizeof(AttestPlugin), ATTEST_PLUGIN_VERSION, kernels, count};

ATTEST_PLUGIN_EXPORT const AttestPlugin* attest_plugin(uint32_t attest_version) {
  (void)attest_version;
  for (int i = 0; i < count; ++i) {
    all[i].user_data = &all[i];
    kernels[i] = &all[i];
  }
  return &plugin;
}
