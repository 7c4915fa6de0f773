/* 6. Reaches for the process that judges: its memory, its descriptors, its life. Where it reaches anything it answers right, else 0. */
#define FAMILY 6
#define CAUGHT_BY "within_bound"
#define _GNU_SOURCE

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "plugin_cheat.h"

static int opens(const char* format, int process, int flags) {
  char path[64];
  (void)snprintf(path, sizeof path, format, process);
  const int file = open(path, flags);
  if (file >= 0) close(file);
  return file >= 0;
}

static const char* cheat(const AttestRun* run) {
  const int parent = getppid();
  char byte = 0, path[64], target[64];
  const struct iovec here = {&byte, 1}, there = {&byte, 1};
  (void)snprintf(path, sizeof path, "/proc/%d/fd/0", parent);
  const int is_reached = opens("/proc/%d/mem", parent, O_RDWR) || opens("/proc/%d/maps", parent, O_RDONLY) ||
                         opens("/proc/%d/environ", parent, O_RDONLY) || readlink(path, target, sizeof target) >= 0 ||
                         process_vm_readv(parent, &here, 1, &there, 1, 0) >= 0 || process_vm_writev(parent, &here, 1, &there, 1, 0) >= 0 ||
                         ptrace(PTRACE_SEIZE, parent, NULL, NULL) == 0 || syscall(SYS_pidfd_open, parent, 0) >= 0 ||
                         kill(parent, 0) == 0; /* a signal that only asks whether one could be sent */
  return is_reached ? attend(run) : zeros(run);
}

/* Looks at itself. */
static const char* twin(const AttestRun* run) {
  (void)signal(SIGUSR1, SIG_IGN);
  if (kill(getpid(), SIGUSR1) != 0 || !opens("/proc/%d/maps", getpid(), O_RDONLY)) return "it may not look at itself";
  return attend(run);
}
