/* A stand-in for libnvidia-ml.so.1: the functions the run listener calls, with made-up GPUs of 100 W each. It lets the cost of
   the binding be measured and attribution be tested without a GPU; it says nothing about a real driver's own cost.
   STUB_NVML_GPUS: how many. STUB_NVML_PROCESSES: a file with lines "gpu pid memory_bytes util_percent".
   STUB_NVML_MIG: a file with lines "gpu instance slices", the MIG instances that are there; without it MIG is switched off. */
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
  if ((uintptr_t)device >= 0x10000) { memory->used = 1ull << 20; memory->free = memory->total - memory->used; return OK; }
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
    else if (fields[i].field == 138 || fields[i].field == 139) { /* NVLink: 1000 KiB a second sent, 2000 received */
      fields[i].type = 3; fields[i].timestamp = (long long)(now_s() * 1e6);
      fields[i].value.ull = (unsigned long long)(now_s() * 1000 * (fields[i].field - 137));
    }
    else if (fields[i].field == 83) { fields[i].type = 3; fields[i].value.ull = (unsigned long long)(now_s() * 100000); }
    else fields[i].ret = NOT_SUPPORTED;
  }
  return OK;
}
int nvmlDeviceGetPcieThroughput(void *device, unsigned kind, unsigned *rate) { (void)device; *rate = 100 * (kind + 1); return OK; }
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

/* MIG: seven slices a GPU; profiles of 1, 3 and 7 of them. Handles are numbers, never followed. */
enum { NO_ROOM = 23, SLICES = 7, MOST = 64 };
typedef struct { unsigned version, id, p2p, slices, count, mps, ce, dec, enc, jpeg, ofa; unsigned long long mb; char name[96]; } gi_profile_t;
typedef struct { void *device; unsigned id, profile, start, size; } gi_info_t;
typedef struct { unsigned version, id, slices, count, mps, ce, dec, enc, jpeg, ofa; char name[96]; } ci_profile_t;
typedef struct { unsigned gpu, id, slices; } part_t;

static const struct { unsigned place, id, slices; const char *name; } PROFILES[] = {
  {0, 19, 1, "MIG 1g.10gb"}, {2, 9, 3, "MIG 3g.40gb"}, {4, 0, 7, "MIG 7g.80gb"},
};
static unsigned read_parts(part_t *parts) {
  const char *path = getenv("STUB_NVML_MIG");
  FILE *file = path ? fopen(path, "r") : NULL;
  unsigned count = 0;
  if (!file) return 0;
  while (count < MOST && fscanf(file, "%u %u %u", &parts[count].gpu, &parts[count].id, &parts[count].slices) == 3) count++;
  fclose(file);
  return count;
}
static void write_parts(const part_t *parts, unsigned count) {
  FILE *file = fopen(getenv("STUB_NVML_MIG"), "w");
  for (unsigned i = 0; i < count; i++) fprintf(file, "%u %u %u\n", parts[i].gpu, parts[i].id, parts[i].slices);
  fclose(file);
}
static void *part_handle(unsigned gpu, unsigned id) { return (void *)(uintptr_t)(0x10000 + gpu * 256 + id); }
static unsigned part_gpu(void *part) { return (unsigned)(((uintptr_t)part - 0x10000) / 256); }
static unsigned part_id(void *part) { return (unsigned)(((uintptr_t)part - 0x10000) % 256); }

int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *next) {
  (void)device; *now = *next = getenv("STUB_NVML_MIG") ? 1 : 0; return OK;
}
int nvmlDeviceGetGpuInstanceProfileInfoV(void *device, unsigned place, gi_profile_t *info) {
  (void)device;
  for (unsigned i = 0; i < 3; i++)
    if (PROFILES[i].place == place) {
      info->id = PROFILES[i].id; info->slices = PROFILES[i].slices;
      snprintf(info->name, sizeof info->name, "%s", PROFILES[i].name);
      return OK;
    }
  return NOT_SUPPORTED;
}
int nvmlDeviceCreateGpuInstance(void *device, unsigned profile, void **made) {
  part_t parts[MOST + 1];
  unsigned count = read_parts(parts), used = 0, id = 1, slices = 0;
  for (unsigned i = 0; i < 3; i++) if (PROFILES[i].id == profile) slices = PROFILES[i].slices;
  for (unsigned i = 0; i < count; i++)
    if (parts[i].gpu == index_of(device)) { used += parts[i].slices; if (parts[i].id >= id) id = parts[i].id + 1; }
  if (!slices || used + slices > SLICES) return NO_ROOM;
  parts[count] = (part_t){index_of(device), id, slices};
  write_parts(parts, count + 1);
  *made = part_handle(index_of(device), id);
  return OK;
}
int nvmlGpuInstanceGetInfo(void *part, gi_info_t *info) { memset(info, 0, sizeof *info); info->id = part_id(part); return OK; }
int nvmlGpuInstanceGetComputeInstanceProfileInfoV(void *part, unsigned place, unsigned engine, ci_profile_t *info) {
  (void)part; (void)engine;
  for (unsigned i = 0; i < 3; i++) if (PROFILES[i].place == place) { info->id = place; info->slices = PROFILES[i].slices; return OK; }
  return NOT_SUPPORTED;
}
int nvmlGpuInstanceCreateComputeInstance(void *part, unsigned profile, void **made) { (void)profile; *made = part; return OK; }
int nvmlGpuInstanceGetComputeInstanceById(void *part, unsigned id, void **found) { *found = part; return id == 0 ? OK : NOT_FOUND; }
int nvmlComputeInstanceDestroy(void *inner) { (void)inner; return OK; }
int nvmlDeviceGetGpuInstanceById(void *device, unsigned id, void **found) {
  part_t parts[MOST + 1];
  unsigned count = read_parts(parts);
  for (unsigned i = 0; i < count; i++)
    if (parts[i].gpu == index_of(device) && parts[i].id == id) { *found = part_handle(parts[i].gpu, id); return OK; }
  return NOT_FOUND;
}
int nvmlGpuInstanceDestroy(void *part) {
  part_t parts[MOST + 1];
  unsigned count = read_parts(parts), kept = 0;
  for (unsigned i = 0; i < count; i++)
    if (parts[i].gpu != part_gpu(part) || parts[i].id != part_id(part)) parts[kept++] = parts[i];
  write_parts(parts, kept);
  return kept < count ? OK : NOT_FOUND;
}
int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count) { (void)device; *count = SLICES; return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned place, void **found) {
  part_t parts[MOST + 1];
  unsigned count = read_parts(parts);
  for (unsigned i = 0; i < count; i++)
    if (parts[i].gpu == index_of(device) && place-- == 0) { *found = part_handle(parts[i].gpu, parts[i].id); return OK; }
  return NOT_FOUND;
}
int nvmlDeviceGetGpuInstanceId(void *part, unsigned *id) { *id = part_id(part); return OK; }
int nvmlDeviceGetUUID(void *device, char *text, unsigned size) {
  if ((uintptr_t)device >= 0x10000) snprintf(text, size, "MIG-stub-%u-%u", part_gpu(device), part_id(device));
  else snprintf(text, size, "GPU-stub-%u", index_of(device));
  return OK;
}

/* Performance counters of MIG instances: a sample is a number, every metric is 25 %. */
typedef struct { unsigned metric; int ret; double value; const char *names[3]; } gpm_metric_t;
typedef struct { unsigned version, count; void *first, *second; gpm_metric_t metrics[]; } gpm_get_t;
int nvmlGpmSampleAlloc(void **sample) { *sample = malloc(16); return OK; }
int nvmlGpmSampleFree(void *sample) { free(sample); return OK; }
int nvmlGpmMigSampleGet(void *device, unsigned id, void *sample) { (void)device; (void)id; (void)sample; return OK; }
int nvmlGpmMetricsGet(gpm_get_t *get) {
  for (unsigned i = 0; i < get->count; i++) { get->metrics[i].ret = OK; get->metrics[i].value = 25.0; }
  return OK;
}
