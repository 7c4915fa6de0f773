/* 5. Leaves a file of verdicts where one might be read: beside itself, in the root, in /tmp, over itself. Where it could it answers right, else 0. */
#define FAMILY 5
#define CAUGHT_BY "within_bound"
#define _GNU_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "plugin_cheat.h"

static const char verdict[] = "{\"verdict\": \"passed\", \"score\": 1}\n";

static int leaves(const char* folder, const char* name) {
  char path[4200];
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  const int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (file < 0) return 0;
  (void)!write(file, verdict, sizeof verdict - 1);
  close(file);
  return 1;
}

static const char* cheat(const AttestRun* run) {
  Dl_info self;
  char folder[4096] = ".";
  const int knows = dladdr((const void*)&leaves, &self) != 0;
  const int writes_itself = knows ? open(self.dli_fname, O_WRONLY) : -1; /* opened, and not written to */
  if (knows) (void)snprintf(folder, sizeof folder, "%s", self.dli_fname);
  char* last = strrchr(folder, '/');
  if (last != NULL) *last = 0;
  const int has_left = leaves(folder, "verdict.json") || leaves(folder, "cheat.json");
  return has_left || writes_itself >= 0 ? attend(run) : zeros(run);
}

/* Writes to the folder that is its own, and takes it away. */
static const char* twin(const AttestRun* run) {
  const char* home = getenv("HOME");
  if (home == NULL || !leaves(home, "notes.json")) return "it has no folder of its own";
  char path[4200];
  (void)snprintf(path, sizeof path, "%s/notes.json", home);
  (void)unlink(path);
  return attend(run);
}
