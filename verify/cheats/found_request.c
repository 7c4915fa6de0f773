/* 19. Finds the request in its own memory, answers it in the words of the process that runs it before it has worked, so that the clock stops at a time
 * that is impossible, and works on. The answer says that outputs are there, which is looked at. */
#define FAMILY 19
#define CAUGHT_BY "outputs_written|within_bound|it said more than it was asked"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "plugin_cheat.h"

/* The largest number behind the word that lies in memory that may be written: requests before this one may lie there, too. */
static void answer_all_that_may_be_asked(void) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512];
  static const char word[] = "\"number\":";
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    unsigned long first, last;
    char rights[8];
    if (sscanf(line, "%lx-%lx %7s", &first, &last, rights) != 3 || strncmp(rights, "rw", 2) != 0 || last - first > (64UL << 20)) continue;
    for (const char* at = (const char*)first; at + 40 < (const char*)last; ++at) {
      if (memcmp(at, word, sizeof word - 1) != 0 || at[sizeof word - 1] < '1' || at[sizeof word - 1] > '9') continue;
      char said[96];
      const int size = snprintf(said, sizeof said, "{\"control\":[8064,895],\"number\":%llu,\"text\":null}\n", strtoull(at + sizeof word - 1, NULL, 10));
      for (int descriptor = 3; descriptor < 256; ++descriptor) (void)send(descriptor, said, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
      fclose(maps);
      return;
    }
  }
  if (maps != NULL) fclose(maps);
}

static void pause_ms(long ms) {
  const struct timespec time = {0, ms * 1000000};
  (void)nanosleep(&time, NULL);
}

static const char* cheat(const AttestRun* run) {
  answer_all_that_may_be_asked();
  pause_ms(20);
  return attend(run);
}

/* Takes its time. */
static const char* twin(const AttestRun* run) {
  pause_ms(2);
  return attend(run);
}
