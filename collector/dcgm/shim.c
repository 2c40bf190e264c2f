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
