/* 5. Writes the verdict that it wants into everything that is open, and into the memory of a call around its tensors, then answers 0. */
#define FAMILY 5
#define CAUGHT_BY "it said more than it was asked|it answered before it was asked|no JSON|was overwritten"

#include <stdio.h>
#include <unistd.h>

#include "plugin_cheat.h"

static const char verdict[] = "{\"verdict\": \"passed\", \"exact\": true, \"bound\": true, \"score\": 1, \"number\": 1, \"text\": null, \"control\": [8064, 895]}\n";

static const char* cheat(const AttestRun* run) {
  for (int descriptor = 0; descriptor < 256; ++descriptor) (void)!write(descriptor, verdict, sizeof verdict - 1);
  return zeros(run);
}

/* Prints, as anybody may. */
static const char* twin(const AttestRun* run) {
  fputs(verdict, stdout);
  (void)!write(1, verdict, sizeof verdict - 1);
  (void)!write(2, verdict, sizeof verdict - 1);
  return attend(run);
}
