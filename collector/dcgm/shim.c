//go:build linux && cgo

/* The few calls that go-dcgm does not make, or makes at too high a price: its
 * values are copied, 4 KiB each, at every read. */

#include "shim.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static void *library;

const char *ax_open(const char *name)
{
	if (library == NULL)
		library = dlopen(name, RTLD_LAZY | RTLD_GLOBAL);
	return library != NULL ? NULL : dlerror();
}

static void *find(const char *symbol)
{
	return library != NULL ? dlsym(library, symbol) : NULL;
}

int ax_has(const char *symbol)
{
	return find(symbol) != NULL;
}

const char *ax_text(int code)
{
	const char *(*f)(int) = (const char *(*)(int))find("errorString");
	return f != NULL ? f(code) : NULL;
}

int ax_init(void)
{
	int (*f)(void) = (int (*)(void))find("dcgmInit");
	return f != NULL ? f() : AX_MISSING;
}

/* A connection that is not to outlive its process takes its watches along:
 * persist stays 0. */
typedef struct {
	uint32_t version, persist, timeout_ms, is_unix;
} params_v2; /* dcgmConnectV2Params_v2 */

typedef struct {
	uint32_t version, persist, timeout_ms;
} params_v3; /* dcgmConnectV3Params_v1 */

int ax_connect(const char *address, int is_unix, int by_uri, uint32_t timeout_ms, uintptr_t *handle)
{
	if (by_uri) {
		int (*f)(const char *, params_v3 *, uintptr_t *) =
			(int (*)(const char *, params_v3 *, uintptr_t *))find("dcgmConnect_v3");
		params_v3 p = { sizeof(p) | 1u << 24, 0, timeout_ms };
		return f != NULL ? f(address, &p, handle) : AX_MISSING;
	}
	int (*f)(const char *, params_v2 *, uintptr_t *) =
		(int (*)(const char *, params_v2 *, uintptr_t *))find("dcgmConnect_v2");
	params_v2 p = { sizeof(p) | 2u << 24, 0, timeout_ms, (uint32_t)is_unix };
	return f != NULL ? f(address, &p, handle) : AX_MISSING;
}

int ax_disconnect(uintptr_t handle)
{
	int (*f)(uintptr_t) = (int (*)(uintptr_t))find("dcgmDisconnect");
	return f != NULL ? f(handle) : AX_MISSING;
}

typedef int (*latest)(uintptr_t, const ax_entity *, unsigned, const uint16_t *, unsigned, unsigned, ax_value *);

int ax_latest(uintptr_t handle, const ax_entity *entities, uint32_t count, const uint16_t *fields, uint32_t field_count,
	      ax_value *values)
{
	static latest f;
	if (f == NULL)
		f = (latest)find("dcgmEntitiesGetLatestValues");
	if (f == NULL)
		return AX_MISSING;
	/* What the library does not fill in must not pass for a value. */
	for (uint32_t i = 0; i < count * field_count; i++)
		memset(&values[i], 0, offsetof(ax_value, value) + 8);
	return f(handle, entities, count, fields, field_count, 0, values);
}
