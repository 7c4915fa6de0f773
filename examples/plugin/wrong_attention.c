/* A kernel with a bug, to see what Attest says: the causal mask is aligned to the top left whatever the problem asks for.
 * With as many queries as keys nobody notices (FlashAttention changed this alignment in version 2.1). */
#include <math.h>
#include <stdlib.h>

#include <attest/plugin.h>

static const char* run(const AttestRun* run) {
  const AttestProblem* p = run->problem;
  float* s = malloc(sizeof(float) * (size_t)(p->key_len + 1));
  if (s == NULL) return "out of memory";
  for (int64_t b = 0; b < p->batch; ++b) {
    for (int64_t h = 0; h < p->query_heads; ++h) {
      const int64_t kv_head = h / (p->query_heads / p->kv_heads);
      const float* k = (const float*)run->k + b * run->k_strides.batch + kv_head * run->k_strides.head;
      const float* v = (const float*)run->v + b * run->v_strides.batch + kv_head * run->v_strides.head;
      for (int64_t i = 0; i < p->query_len; ++i) {
        const float* q =
            (const float*)run->q + b * run->q_strides.batch + h * run->q_strides.head + i * run->q_strides.row;
        float* o = (float*)run->o + b * run->o_strides.batch + h * run->o_strides.head + i * run->o_strides.row;
        const int64_t bound = p->mask == ATTEST_NO_MASK ? p->key_len : i + 1; /* the bug */
        const int64_t visible = bound < p->key_len ? bound : p->key_len;
        float m = -INFINITY, l = 0;
        for (int64_t j = 0; j < visible; ++j) {
          float dot = 0;
          for (int64_t d = 0; d < p->head_dim; ++d) dot += q[d] * k[j * run->k_strides.row + d];
          s[j] = p->scale * dot;
          m = fmaxf(m, s[j]);
        }
        for (int64_t d = 0; d < p->head_dim; ++d) o[d] = 0;
        for (int64_t j = 0; j < visible; ++j) {
          const float weight = expf(s[j] - m);
          l += weight;
          for (int64_t d = 0; d < p->head_dim; ++d) o[d] += weight * v[j * run->v_strides.row + d];
        }
        for (int64_t d = 0; d < p->head_dim && visible > 0; ++d) o[d] /= l;
        run->lse[(b * p->query_heads + h) * p->query_len + i] = visible > 0 ? m + logf(l) : -INFINITY;
      }
    }
  }
  free(s);
  return NULL;
}

const AttestPlugin* attest_plugin(uint32_t attest_version) {
  static const AttestPlan one_plan = {NULL, 0};
  static const AttestPrecision precision = {.size = sizeof(AttestPrecision), .rescale = ATTEST_RESCALE_NONE};
  static const AttestKernel kernel = {
      .size = sizeof(AttestKernel),
      .name = "my_wrong_attention",
      .summary = "both causal masks aligned to the top left: wrong",
      .element_types = ATTEST_FP32,
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
