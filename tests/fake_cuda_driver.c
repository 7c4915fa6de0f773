// A CUDA driver that finds no GPU, and writes down what CUDA_VISIBLE_DEVICES is when CUDA starts, a line each time, to the
// file $FAKE_CUDA_LOG: a rank that asks for a GPU before it has chosen one would take another's.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { success = 0, no_device = 100, not_found = 500 };

int cuInit(unsigned flags) {
  (void)flags;
  const char* log = getenv("FAKE_CUDA_LOG");
  const char* visible = getenv("CUDA_VISIBLE_DEVICES");
  FILE* file = log == NULL ? NULL : fopen(log, "a");
  if (file != NULL) {
    fprintf(file, "%s\n", visible == NULL ? "all" : visible);
    fclose(file);
  }
  return no_device;
}

int cuDriverGetVersion(int* version) {
  *version = 13000;
  return success;
}

int cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long long flags, int* status) {
  (void)version, (void)flags;
  *function = NULL;
  if (strcmp(name, "cuInit") == 0) *function = (void*)cuInit;
  if (strcmp(name, "cuDriverGetVersion") == 0) *function = (void*)cuDriverGetVersion;
  if (strcmp(name, "cuGetProcAddress") == 0) *function = (void*)cuGetProcAddress_v2;
  if (status != NULL) *status = *function == NULL;
  return *function == NULL ? not_found : success;
}

int cuGetProcAddress(const char* name, void** function, int version, unsigned long long flags) {
  return cuGetProcAddress_v2(name, function, version, flags, NULL);
}
