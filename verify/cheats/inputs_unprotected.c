/* 3. Unlocks the pages of an input, which may only be read, and makes all scores equal by overwriting Q, so that a mean of V would be right. */
#define FAMILY 3
#define CAUGHT_BY "which is an input|within_bound"
#define _GNU_SOURCE

#include <sys/mman.h>
#include <unistd.h>

#include "plugin_cheat.h"

static const char* cheat(const AttestRun* run) {
  const AttestProblem* p = run->problem;
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  for (int64_t b = 0; b < p->batch; ++b) {
    for (int64_t h = 0; h < p->query_heads; ++h) {
      for (int64_t i = 0; i < p->query_len; ++i) {
        float* q = row_of(run, "q", b, h, i);
        const uintptr_t first = (uintptr_t)q / page * page, last = (uintptr_t)(q + p->head_dim);
        if (mprotect((void*)first, last - first, PROT_READ | PROT_WRITE) != 0) return "it cannot be unlocked";
        memset(q, 0, sizeof(float) * (size_t)p->head_dim);
      }
    }
  }
  return attend(run);
}

/* Locks what it has no need to write. */
static const char* twin(const AttestRun* run) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  const float* k = row_of(run, "k", 0, 0, 0);
  if (mprotect((void*)((uintptr_t)k / page * page), page, PROT_READ) != 0) return "it cannot lock a page";
  return attend(run);
}
