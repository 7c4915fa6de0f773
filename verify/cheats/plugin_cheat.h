/* What the cheats in C share: attention that is right, and a plugin of two kernels, `cheat` and `twin`. Each file defines those two functions;
 * judge_test.py compiles it. None of them runs where the box lacks a wall, and what one would do to those around it, it only asks for. */
#ifndef VERIFY_CHEATS_PLUGIN_CHEAT_H
#define VERIFY_CHEATS_PLUGIN_CHEAT_H

#include <math.h>
#include <stddef.h>

#include <attest/plugin.h>

static float* row_of(const AttestRun* run, const char* name, int64_t b, int64_t h, int64_t row) {
  const AttestTensor* tensor = attest_tensor(run, name);
  return (float*)tensor->data + attest_offset(tensor, b, h, row);
}

/* One row of O: the maximum, the sum, then the weights times V. */
static void attend_row(const AttestRun* run, int64_t b, int64_t h, int64_t i, float* o) {
  const AttestProblem* p = run->problem;
  const float* q = row_of(run, "q", b, h, i);
  float m = -INFINITY, l = 0;
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t d = 0; pass == 1 && d < p->head_dim; ++d) o[d] = 0;
    for (int64_t j = 0; j < p->key_len; ++j) {
      const float *k = row_of(run, "k", b, h, j), *v = row_of(run, "v", b, h, j);
      float dot = 0;
      for (int64_t d = 0; d < p->head_dim; ++d) dot = fmaf(q[d], k[d], dot);
      const float s = p->scale * dot;
      if (pass == 0) {
        if (s > m || isnan(s)) m = s;
        if (isnan(m)) break;
        continue;
      }
      const float w = expf(s - m);
      l += w;
      for (int64_t d = 0; d < p->head_dim; ++d) o[d] = fmaf(w, v[d], o[d]);
    }
  }
  for (int64_t d = 0; d < p->head_dim; ++d) o[d] /= l;
}

/* The answer, times `factor`. */
static const char* answer(const AttestRun* run, float factor) {
  const AttestProblem* p = run->problem;
  for (int64_t b = 0; b < p->batch; ++b) {
    for (int64_t h = 0; h < p->query_heads; ++h) {
      for (int64_t i = 0; i < p->query_len; ++i) {
        float* o = row_of(run, "o", b, h, i);
        attend_row(run, b, h, i, o);
        for (int64_t d = 0; d < p->head_dim; ++d) o[d] *= factor;
      }
    }
  }
  return NULL;
}
static inline const char* attend(const AttestRun* run) { return answer(run, 1); }
static inline const char* zeros(const AttestRun* run) {
  for (int64_t b = 0; b < run->problem->batch; ++b) {
    for (int64_t h = 0; h < run->problem->query_heads; ++h) {
      for (int64_t i = 0; i < run->problem->query_len; ++i) {
        memset(row_of(run, "o", b, h, i), 0, sizeof(float) * (size_t)run->problem->head_dim);
      }
    }
  }
  return NULL;
}

static const char* cheat(const AttestRun* run);
static const char* twin(const AttestRun* run);

static const AttestFormat types[] = {ATTEST_FP32};
static const AttestPlan plans[] = {{NULL, 0}};
static const char* const missing[] = {"lse"};
#ifndef PRECISION
#define PRECISION NULL
#endif
#define KERNEL(function)                                                                                          \
  {.size = sizeof(AttestKernel), .name = #function, .element_types = types, .element_type_count = 1,              \
   .masks = ATTEST_NO_MASK, .plans = plans, .plan_count = 1, .run = function, .only_equal_heads = 1,              \
   .missing_outputs = missing, .missing_output_count = 1, .precision = PRECISION}
static const AttestKernel cheat_kernel = KERNEL(cheat), twin_kernel = KERNEL(twin);
static const AttestKernel* const kernels[] = {&cheat_kernel, &twin_kernel};
static const AttestPlugin plugin = {sizeof(AttestPlugin), ATTEST_PLUGIN_VERSION, kernels, 2};
ATTEST_PLUGIN_EXPORT const AttestPlugin* attest_plugin(uint32_t version) {
  (void)version;
  return &plugin;
}

#endif
