/* 7. Answers at once and works on in a thread, of which no clock knows. */
#define FAMILY 7
#define CAUGHT_BY "outputs_written|within_bound|after it had answered|crashed"

#include <pthread.h>
#include <time.h>

#include "plugin_cheat.h"

static AttestRun kept;
static AttestProblem problem;
static AttestTensor tensors[8];
static const AttestTensor* pointers[8];

static void* work(void* pause_ms) {
  const struct timespec time = {0, (long)(size_t)pause_ms * 1000000};
  (void)nanosleep(&time, NULL);
  (void)attend(&kept);
  return NULL;
}

/* What the call's own structs say is gone when it returns. */
static void keep(const AttestRun* run) {
  kept = *run;
  problem = *run->problem;
  for (size_t i = 0; i < run->tensor_count && i < 8; ++i) {
    tensors[i] = *run->tensors[i];
    tensors[i].name = i == 0 ? "q" : i == 1 ? "k" : i == 2 ? "v" : i == 3 ? "o" : "lse";
    pointers[i] = &tensors[i];
  }
  kept.problem = &problem;
  kept.tensors = pointers;
}

static const char* cheat(const AttestRun* run) {
  pthread_t thread;
  keep(run);
  if (pthread_create(&thread, NULL, work, (void*)300) != 0) return "no thread";
  (void)pthread_detach(thread);
  return NULL;
}

/* Waits for its thread. */
static const char* twin(const AttestRun* run) {
  pthread_t thread;
  keep(run);
  if (pthread_create(&thread, NULL, work, NULL) != 0) return "no thread";
  (void)pthread_join(thread, NULL);
  return NULL;
}
