/* An indexer and its top-k of one's own on the host: for each query the keys of the largest scores, fp32.
 *
 *   s_j = sum_h weights_h max(scale q_h . k_j, 0)
 *
 * Keys come in tiles, as they would on a GPU; a list is kept in descending order of its scores, and a key that is better than
 * its last one is sorted in. Its precision is what plugin.h calls the default.
 *
 * Compiled with WITH_A_BUG it is wrong_select.so: the last tile is moved back until it is full, as kernels do that have no code
 * for part of a tile. What is a harmless second look for a maximum is a key that is there twice for a list. With a multiple of 32
 * keys nobody notices, nor with fewer than 32. */
#include <math.h>

#include <attest/plugin.h>

enum { tile = 32 };

/* Rows of an entry: packed ones end where the next entry begins. */
static int64_t rows_of(const AttestTensor* t, int64_t b, int64_t otherwise) {
  return t->starts == NULL ? otherwise : t->starts[b + 1] - t->starts[b];
}

static int64_t visible_keys(uint32_t mask, int64_t query, int64_t query_len, int64_t key_len) {
  int64_t count = key_len;
  if (mask == ATTEST_CAUSAL_TOP_LEFT) count = query + 1;
  if (mask == ATTEST_CAUSAL_BOTTOM_RIGHT) count = query + 1 + key_len - query_len;
  return count < 0 ? 0 : count > key_len ? key_len : count;
}

static const float* row_of(const AttestTensor* t, int64_t b, int64_t h, int64_t n) {
  return (const float*)t->data + attest_offset(t, b, h, n);
}

static float score_of(const AttestRun* run, int64_t b, int64_t query, int64_t key) {
  const AttestProblem* p = run->problem;
  const AttestTensor *q = attest_tensor(run, "q"), *k = attest_tensor(run, "k"), *weights = attest_tensor(run, "weights");
  float score = 0;
  for (int64_t h = 0; h < p->query_heads; ++h) {
    const float* q_row = row_of(q, b, h, query);
    const float* k_row = row_of(k, b, h / (p->query_heads / p->kv_heads), key);
    float dot = 0;
    for (int64_t d = 0; d < p->head_dim; ++d) dot += q_row[d] * k_row[d];
    const float scaled = p->scale * dot;
    score += *row_of(weights, b, h, query) * (scaled < 0 ? 0 : scaled); /* NaN stays */
  }
  return score;
}

/* Does a stand before b? A NaN counts as infinity. */
static int is_larger(float a, float b) {
  return (isnan(a) ? INFINITY : a) > (isnan(b) ? INFINITY : b);
}

typedef struct List {
  int32_t* keys; /* `room` of both */
  float* scores;
  int64_t room, count;
} List;

static void insert(List* list, int32_t key, float score) {
  int64_t at = list->count;
  while (at > 0 && is_larger(score, list->scores[at - 1])) --at;
  if (at == list->room) return;
  if (list->count < list->room) ++list->count;
  for (int64_t i = list->count - 1; i > at; --i) {
    list->keys[i] = list->keys[i - 1];
    list->scores[i] = list->scores[i - 1];
  }
  list->keys[at] = key;
  list->scores[at] = score;
}

static void choose(const AttestRun* run, int64_t b, int64_t query, int64_t visible, List* list) {
  const AttestTensor* mask = attest_tensor(run, "key_mask"); /* NULL: no key is hidden */
  for (int64_t first = 0; first < visible; first += tile) {
#ifdef WITH_A_BUG
    const int64_t begin = first + tile > visible && visible > tile ? visible - tile : first;
#else
    const int64_t begin = first;
#endif
    for (int64_t key = begin; key < visible && key < begin + tile; ++key) {
      if (mask != NULL && ((const uint8_t*)mask->data)[attest_offset(mask, b, 0, key)] == 0) continue;
      insert(list, (int32_t)key, score_of(run, b, query, key));
    }
  }
}

static const char* run(const AttestRun* run) {
  const AttestProblem* p = run->problem;
  const AttestTensor *q = attest_tensor(run, "q"), *k = attest_tensor(run, "k");
  int32_t* counts = attest_tensor(run, "counts")->data;
  const AttestTensor *keys = attest_tensor(run, "keys"), *scores = attest_tensor(run, "scores"); /* NULL: top_k is 0 */
  for (int64_t b = 0; b < p->batch; ++b) {
    const int64_t query_len = rows_of(q, b, p->query_len), key_len = rows_of(k, b, p->key_len);
    for (int64_t i = 0; i < p->query_len; ++i) { /* lists are not packed: those past query_len are empty */
      const int64_t number = b * p->query_len + i;
      List list = {NULL, NULL, p->top_k, 0};
      if (p->top_k > 0) {
        list.keys = (int32_t*)keys->data + number * p->top_k;
        list.scores = (float*)scores->data + number * p->top_k;
      }
      if (i < query_len) choose(run, b, i, visible_keys(p->mask, i, query_len, key_len), &list);
      counts[number] = (int32_t)list.count;
      for (int64_t behind = list.count; behind < p->top_k; ++behind) {
        list.keys[behind] = -1;
        list.scores[behind] = -INFINITY;
      }
    }
  }
  return NULL;
}

static const AttestFormat types[] = {ATTEST_FP32};
static const AttestPlan plans[] = {{NULL, 0}}; /* nothing to choose */
static const AttestKernel kernel = {
    .size = sizeof(AttestKernel),
    .memory_space = ATTEST_HOST,
    .name = "my_select",
    .operation = "select",
    .summary = "an example: an indexer and its top-k, query by query on the host",
    .element_types = types,
    .element_type_count = 1,
    .masks = ATTEST_NO_MASK | ATTEST_CAUSAL_TOP_LEFT | ATTEST_CAUSAL_BOTTOM_RIGHT,
    .features = ATTEST_NO_QUERIES | ATTEST_LENGTHS | ATTEST_PADDING,
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
