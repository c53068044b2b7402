// A stand-in for the driver's library: the little of NVML that is called, by its published names, for two devices, one of them divided.
// With OLD it is one from before MIG.
#include <stdio.h>

typedef struct { unsigned long long total, free, used; } memory;

static int devices[3] = {0, 1, 2}; // the last is an instance of the second

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return "an error"; }
int nvmlDeviceGetCount_v2(unsigned int *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int i, void **device) { *device = &devices[i]; return 0; }
int nvmlDeviceGetName(void *device, char *to, unsigned int size) {
	snprintf(to, size, "NVIDIA A100-SXM4-40GB%s", *(int *)device == 2 ? " MIG 3g.20gb" : "");
	return 0;
}

int nvmlDeviceGetUUID(void *device, char *to, unsigned int size) {
	snprintf(to, size, "%s-11111111-2222-3333-4444-%012d", *(int *)device == 2 ? "MIG" : "GPU", *(int *)device);
	return 0;
}

int nvmlDeviceGetMemoryInfo(void *device, memory *m) {
	m->total = (*(int *)device == 2 ? 19968ull : 40960ull) << 20;
	return 0;
}

#ifndef OLD
int nvmlDeviceGetMigMode(void *device, unsigned int *current, unsigned int *pending) {
	*current = *(int *)device;
	*pending = 0;
	return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned int *count) { *count = 2; return 0; }

int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned int i, void **instance) {
	*instance = &devices[2];
	return i == 1 ? 0 : 6; // not found
}
#endif
