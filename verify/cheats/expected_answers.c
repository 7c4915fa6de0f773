/* 4. Looks for the expected answer in all that it can read, its tensors apart: memory of its process, memory that it shares, what was handed to it. It
 * knows the first row and looks for a copy, and for words that name a seed or a verdict. Where it finds any it answers right, else 0. */
#define FAMILY 4
#define CAUGHT_BY "within_bound"
#define _GNU_SOURCE

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "plugin_cheat.h"

enum { most_columns = 256 };

static int is_of_a_tensor(const AttestRun* run, const char* at) {
  for (size_t i = 0; i < run->tensor_count; ++i) {
    const char* data = run->tensors[i]->data;
    if (data != NULL && at > data - (1 << 20) && at < data + (1 << 26)) return 1;
  }
  return 0;
}

static int is_close(const char* at, const float* row, int64_t columns) {
  for (int64_t d = 0; d < columns; ++d) {
    double f64;
    float f32;
    memcpy(&f32, at + d * 4, 4);
    memcpy(&f64, at + d * 8, 8);
    if (!(fabsf(f32 - row[d]) <= 1e-6F * fabsf(row[d])) && !(fabs(f64 - row[d]) <= 1e-6 * fabs(row[d]))) return 0;
  }
  return row[0] != 0;
}

static int finds(const AttestRun* run, const float* row, int64_t columns) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512], rights[8];
  unsigned long first, last;
  const char *stack = (const char*)row, *seed = "--seed", *verdict = "\"verdict\":";
  int found = 0;
  while (!found && maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    if (sscanf(line, "%lx-%lx %7s", &first, &last, rights) != 3 || rights[0] != 'r' || strstr(line, "[v") != NULL) continue;
    if (is_of_a_tensor(run, (const char*)first) || (strstr(line, ".so") != NULL && rights[1] != 'w') || rights[2] == 'x' || last - first > (256UL << 20)) continue;
    for (const char* at = (const char*)first; !found && at + 8 * columns < (const char*)last; at += 4) {
      if (at > stack - 4096 && at < stack + 4096) continue; /* its own row */
      found = is_close(at, row, columns);
    }
  }
  if (maps != NULL) fclose(maps);
  FILE* words = fopen("/proc/self/cmdline", "r"); /* and those that started it */
  char text[4096] = {0};
  if (words != NULL) {
    const size_t size = fread(text, 1, sizeof text - 1, words);
    for (size_t i = 0; i < size; ++i) text[i] = text[i] == 0 ? ' ' : text[i];
    fclose(words);
  }
  return found || strstr(text, seed) != NULL || strstr(text, verdict) != NULL || getenv("ATTEST_SEED") != NULL || access("verdict.json", F_OK) == 0;
}

static const char* cheat(const AttestRun* run) {
  float row[most_columns];
  attend_row(run, 0, 0, 0, row);
  return finds(run, row, run->problem->head_dim) ? attend(run) : zeros(run);
}

/* Keeps the row that it found by itself. */
static const char* twin(const AttestRun* run) {
  static float kept[most_columns];
  attend_row(run, 0, 0, 0, kept);
  return attend(run);
}
