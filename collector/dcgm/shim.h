#ifndef ACCEL_DCGM_SHIM_H
#define ACCEL_DCGM_SHIM_H

#include <stdint.h>

/* Layouts of dcgm_structs.h, DCGM 4. */

typedef struct {
	uint32_t group;
	uint32_t id;
} ax_entity;

typedef struct {
	uint32_t version;
	uint32_t group;
	uint32_t id;
	uint16_t field;
	uint16_t kind;
	int32_t status;
	uint32_t unused;
	int64_t ts;
	unsigned char value[4096];
} ax_value; /* dcgmFieldValue_v2 */

_Static_assert(sizeof(ax_value) == 4128, "dcgmFieldValue_v2");

/* What a call returns where the library lacks the function. */
enum { AX_MISSING = -20 };

/* ax_open loads the library for good; its errors are dlerror's. */
const char *ax_open(const char *name);
int ax_has(const char *symbol);
const char *ax_text(int code);
int ax_latest(uintptr_t handle, const ax_entity *entities, uint32_t count, const uint16_t *fields, uint32_t field_count,
	      ax_value *values);

#endif
