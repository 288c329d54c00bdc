/* A stand-in for libnvidia-ml.so.1: the functions the run listener calls, with made-up GPUs of 100 W each. It lets the cost of
   the binding be measured and attribution be tested without a GPU; it says nothing about a real driver's own cost.
   STUB_NVML_GPUS: how many. STUB_NVML_PROCESSES: a file with lines "gpu pid memory_bytes util_percent". */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct { unsigned gpu, memory; } rates_t;
typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct {
  uint32_t field, scope;
  int64_t timestamp, latency;
  uint32_t type, ret;
  union { double d; unsigned u; unsigned long long ull; } value;
} field_t;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } process_t;
typedef struct { unsigned pid; unsigned long long time; unsigned sm, mem, enc, dec; } share_t;

enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7 };

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}
static unsigned index_of(void *device) { return (unsigned)((uintptr_t)device - 1); }

int nvmlInitWithFlags(unsigned flags) { (void)flags; return OK; }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { (void)code; return "stub error"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "stub"); return OK; }
int nvmlDeviceGetCount_v2(unsigned *count) {
  const char *told = getenv("STUB_NVML_GPUS");
  *count = told ? (unsigned)atoi(told) : 8;
  return OK;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = (void *)(uintptr_t)(index + 1); return OK; }
int nvmlDeviceGetUtilizationRates(void *device, rates_t *rates) {
  rates->gpu = 10 * (1 + index_of(device));
  rates->memory = 5;
  return OK;
}
int nvmlDeviceGetMemoryInfo(void *device, memory_t *memory) {
  memory->total = 80ull << 30;
  memory->used = (1ull + index_of(device)) << 30;
  memory->free = memory->total - memory->used;
  return OK;
}
int nvmlDeviceGetFieldValues(void *device, int count, field_t *fields) {
  (void)device;
  for (int i = 0; i < count; i++) {
    fields[i].ret = OK;
    fields[i].type = 1;
    if (fields[i].field == 186) fields[i].value.u = 100000;
    else if (fields[i].field == 83) { fields[i].type = 3; fields[i].value.ull = (unsigned long long)(now_s() * 100000); }
    else fields[i].ret = NOT_SUPPORTED;
  }
  return OK;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *power) { (void)device; *power = 100000; return OK; }
int nvmlDeviceGetClockInfo(void *device, unsigned kind, unsigned *clock) { (void)device; (void)kind; *clock = 1500; return OK; }
int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *heat) { (void)device; (void)sensor; *heat = 50; return OK; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) { (void)device; *reasons = 0; return OK; }

static unsigned read_processes(void *device, process_t *found, share_t *shares, unsigned most) {
  const char *path = getenv("STUB_NVML_PROCESSES");
  FILE *file = path ? fopen(path, "r") : NULL;
  unsigned count = 0, gpu, pid, util;
  unsigned long long used;
  if (!file) return 0;
  while (count < most && fscanf(file, "%u %u %llu %u", &gpu, &pid, &used, &util) == 4) {
    if (gpu != index_of(device)) continue;
    if (found) { found[count].pid = pid; found[count].used = used; found[count].gi = found[count].ci = ~0u; }
    if (shares) { memset(&shares[count], 0, sizeof *shares); shares[count].pid = pid; shares[count].sm = util; shares[count].time = (unsigned long long)(now_s() * 1e6); }
    count++;
  }
  fclose(file);
  return count;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process_t *found) {
  unsigned have = read_processes(device, NULL, NULL, 1000);
  if (found == NULL && have) { *count = have; return TOO_SMALL; }
  *count = found ? read_processes(device, found, NULL, *count) : 0;
  return OK;
}
int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *device, unsigned *count, process_t *found) {
  (void)device; (void)found; *count = 0; return OK;
}
int nvmlDeviceGetProcessUtilization(void *device, share_t *shares, unsigned *count, unsigned long long since) {
  (void)since;
  unsigned have = read_processes(device, NULL, NULL, 1000);
  if (!have) return NOT_FOUND;
  if (shares == NULL) { *count = have; return TOO_SMALL; }
  *count = read_processes(device, NULL, shares, *count);
  return OK;
}
