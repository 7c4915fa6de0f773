/* A kernel with a bug, to see what Attest says: the causal mask is aligned to the top left whatever the problem asks for.
 * With as many queries as keys nobody notices (FlashAttention changed this alignment in version 2.1). */
#include <math.h>
#include <stdlib.h>

#include <attest/plugin.h>

static const char* run(const AttestRun* run) {
  const AttestProblem* p = run->problem;
  const AttestTensor *q = attest_tensor(run, "q"), *k = attest_tensor(run, "k"), *v = attest_tensor(run, "v");
  const AttestTensor *o = attest_tensor(run, "o"), *lse = attest_tensor(run, "lse");
  float* s = malloc(sizeof(float) * (size_t)(p->key_len + 1));
  if (s == NULL) return "out of memory";
  for (int64_t b = 0; b < p->batch; ++b) {
    for (int64_t h = 0; h < p->query_heads; ++h) {
      const int64_t kv_head = h / (p->query_heads / p->kv_heads);
      for (int64_t i = 0; i < p->query_len; ++i) {
        const float* q_row = (const float*)q->data + attest_offset(q, b, h, i);
        float* o_row = (float*)o->data + attest_offset(o, b, h, i);
        const int64_t bound = p->mask == ATTEST_NO_MASK ? p->key_len : i + 1; /* the bug */
        const int64_t visible = bound < p->key_len ? bound : p->key_len;
        float m = -INFINITY, l = 0;
        for (int64_t j = 0; j < visible; ++j) {
          float dot = 0;
          const float* k_row = (const float*)k->data + attest_offset(k, b, kv_head, j);
          for (int64_t d = 0; d < p->head_dim; ++d) dot += q_row[d] * k_row[d];
          s[j] = p->scale * dot;
          m = fmaxf(m, s[j]);
        }
        for (int64_t d = 0; d < p->head_dim; ++d) o_row[d] = 0;
        for (int64_t j = 0; j < visible; ++j) {
          const float weight = expf(s[j] - m);
          const float* v_row = (const float*)v->data + attest_offset(v, b, kv_head, j);
          l += weight;
          for (int64_t d = 0; d < p->head_dim; ++d) o_row[d] += weight * v_row[d];
        }
        for (int64_t d = 0; d < p->head_dim && visible > 0; ++d) o_row[d] /= l;
        ((float*)lse->data)[attest_offset(lse, b, h, i)] = visible > 0 ? m + logf(l) : -INFINITY;
      }
    }
  }
  free(s);
  return NULL;
}

const AttestPlugin* attest_plugin(uint32_t attest_version) {
  static const AttestFormat types[] = {ATTEST_FP32};
  static const AttestPlan one_plan = {NULL, 0};
  static const AttestPrecision precision = {.size = sizeof(AttestPrecision), .rescale = ATTEST_RESCALE_NONE};
  static const AttestKernel kernel = {
      .size = sizeof(AttestKernel),
      .name = "my_wrong_attention",
      .summary = "both causal masks aligned to the top left: wrong",
      .element_types = types,
      .element_type_count = 1,
      .masks = ATTEST_NO_MASK | ATTEST_CAUSAL_TOP_LEFT | ATTEST_CAUSAL_BOTTOM_RIGHT,
      .plans = &one_plan,
      .plan_count = 1,
      .precision = &precision,
      .run = run,
  };
  static const AttestKernel* const kernels[] = {&kernel};
  static const AttestPlugin plugin = {sizeof(AttestPlugin), ATTEST_PLUGIN_VERSION, kernels, 1};
  (void)attest_version;
  return &plugin;
}
