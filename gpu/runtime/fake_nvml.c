// NVML of a machine with two GPUs, for tests: 0000:1B:00.0 runs at 1000 MHz and 100 W, 0000:43:00.0 at 1980 MHz and 700 W,
// where it is throttled by its power cap and does not tell its temperature. The first is never throttled when it is asked, but
// at each reading its power cap has held it back for 3 ms more; its heat never did, and the rest is not counted. The second counts
// nothing. WITHOUT_THROTTLE: an old driver without counters, on GPUs that give no reasons.
#include <string.h>

enum { success = 0, not_supported = 3, not_found = 6 };
static const char gpus[2][16] = {"0000:1B:00.0", "0000:43:00.0"};

static int is_second(void* device) { return device == gpus[1]; }

int nvmlInit_v2(void) { return success; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  for (int i = 0; i < 2; ++i) {
    if (strcmp(id, gpus[i]) != 0) continue;
    *device = (void*)gpus[i];
    return success;
  }
  return not_found;
}

int nvmlDeviceGetClockInfo(void* device, int which, unsigned* mhz) {
  *mhz = which == 2 ? 3201 : is_second(device) ? 1980 : 1000;
  return success;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = is_second(device) ? 700000 : 100000;
  return success;
}

int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  (void)sensor;
  *celsius = 40;
  return is_second(device) ? not_supported : success;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* bits) {
#ifdef WITHOUT_THROTTLE
  return not_supported;
#endif
  *bits = is_second(device) ? 0x4 : 0x1;
  return success;
}

#ifndef WITHOUT_THROTTLE
struct field_value {
  unsigned field, scope;
  long long timestamp, latency;
  int type, code;
  union {
    double real;
    unsigned long long whole;
  } value;
};

int nvmlDeviceGetFieldValues(void* device, int count, struct field_value* values) {
  static unsigned long long held_back = 5000000000;  // ns
  held_back += 3000000;
  if (is_second(device)) return not_supported;
  for (int i = 0; i < count; ++i) {
    values[i].type = 3;
    values[i].code = values[i].field == 74 || values[i].field == 75 ? success : not_supported;
    values[i].value.whole = values[i].field == 74 ? held_back : 0;
  }
  return success;
}
#endif
