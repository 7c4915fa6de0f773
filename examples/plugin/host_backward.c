/* A backward pass of one's own on the host: dQ, dK and dV from O, LSE and dO, fp32, one query row at a time.
 *
 *   delta_i = dO_i . O_i - dLSE_i;   p = exp(s - LSE_i),   dS = p (dO_i . v_j - delta_i);
 *   dV_j += p dO_i,   dQ_i += dS k_j,   dK_j += dS q_i,   and the scale at the end
 *
 * P comes from the LSE that is given, so nothing of N x N is kept. Its precision is what plugin.h calls the default: every
 * sum is one chain, fp32 everywhere, expf.
 *
 * Compiled with WITH_A_BUG it is wrong_backward.so: query heads that share a head of K and V are taken to be interleaved with
 * the others. With a head of K and V for every query head, or one for all, nobody notices. */
#include <math.h>

#include <attest/plugin.h>

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

static void add(float factor, const float* row, int64_t n, float* to) {
  for (int64_t i = 0; i < n; ++i) to[i] += factor * row[i];
}

static float* row_of(const AttestTensor* t, int64_t b, int64_t h, int64_t n) {
  return (float*)t->data + attest_offset(t, b, h, n);
}

/* Every row of the tensor times a factor; 0 makes zeros of the NaN that outputs hold on entry. */
static void multiply(const AttestTensor* t, float factor) {
  for (int64_t b = 0; b < t->shape[0]; ++b) {
    for (int64_t h = 0; h < t->shape[1]; ++h) {
      for (int64_t n = 0; n < t->shape[2]; ++n) {
        float* row = row_of(t, b, h, n);
        for (int64_t d = 0; d < t->shape[3]; ++d) row[d] = factor == 0 ? 0 : factor * row[d];
      }
    }
  }
}

static const char* run(const AttestRun* run) {
  const AttestProblem* p = run->problem;
  const AttestTensor *q = attest_tensor(run, "q"), *k = attest_tensor(run, "k"), *v = attest_tensor(run, "v");
  const AttestTensor *o = attest_tensor(run, "o"), *lse = attest_tensor(run, "lse"), *d_o = attest_tensor(run, "do");
  const AttestTensor *d_lse = attest_tensor(run, "dlse"); /* NULL: 0 */
  const AttestTensor *dq = attest_tensor(run, "dq"), *dk = attest_tensor(run, "dk"), *dv = attest_tensor(run, "dv");
  const int64_t dim = p->head_dim;
  multiply(dq, 0);
  multiply(dk, 0);
  multiply(dv, 0);
  for (int64_t b = 0; b < p->batch; ++b) {
    for (int64_t h = 0; h < p->query_heads; ++h) {
#ifdef WITH_A_BUG
      const int64_t kv_head = h % p->kv_heads;
#else
      const int64_t kv_head = h / (p->query_heads / p->kv_heads); /* grouped heads add to one dK and dV */
#endif
      for (int64_t i = 0; i < p->query_len; ++i) {
        const float *q_row = row_of(q, b, h, i), *do_row = row_of(d_o, b, h, i);
        const float delta = dot(do_row, row_of(o, b, h, i), dim) - (d_lse == NULL ? 0 : *row_of(d_lse, b, h, i));
        const int64_t visible = visible_keys(p, i); /* a hidden key is not touched: 0 times its NaN would be NaN */
        for (int64_t j = 0; j < visible; ++j) {
          const float *k_row = row_of(k, b, kv_head, j), *v_row = row_of(v, b, kv_head, j);
          const float weight = expf(p->scale * dot(q_row, k_row, dim) - *row_of(lse, b, h, i));
          const float of_score = weight * (dot(do_row, v_row, dim) - delta);
          add(weight, do_row, dim, row_of(dv, b, kv_head, j));
          add(of_score, k_row, dim, row_of(dq, b, h, i));
          add(of_score, q_row, dim, row_of(dk, b, kv_head, j));
        }
      }
    }
  }
  multiply(dq, p->scale == 0 ? 0 : p->scale);
  multiply(dk, p->scale == 0 ? 0 : p->scale);
  return NULL;
}

static const AttestFormat types[] = {ATTEST_FP32};
static const AttestPlan plans[] = {{NULL, 0}}; /* nothing to choose */
static const AttestKernel kernel = {
    .size = sizeof(AttestKernel),
    .memory_space = ATTEST_HOST,
    .name = "my_backward",
    .operation = "backward",
    .summary = "an example: gradients row by row on the host",
    .element_types = types,
    .element_type_count = 1,
    .masks = ATTEST_NO_MASK | ATTEST_CAUSAL_TOP_LEFT | ATTEST_CAUSAL_BOTTOM_RIGHT,
    .features = ATTEST_DLSE,
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
