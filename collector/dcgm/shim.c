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

/* dcgmFieldValue_v1 */
struct value {
	uint32_t version;
	uint16_t field;
	uint16_t kind;
	int32_t status;
	int64_t ts;
	unsigned char value[4096];
};

_Static_assert(sizeof(struct value) == 4120, "dcgmFieldValue_v1");

struct sink {
	ax_account *out;
	uint32_t room, count;
};

static int take(int group, uint32_t id, const struct value *values, int count, void *user)
{
	struct sink *s = user;
	for (int i = 0; i < count; i++) {
		if (group != 1 || values[i].status != 0 || values[i].kind != 'b') /* DCGM_FE_GPU, DCGM_FT_BINARY */
			continue;
		if (s->count < s->room) {
			s->out[s->count].gpu = id;
			memcpy(s->out[s->count].record, values[i].value, sizeof s->out->record);
		}
		s->count++;
	}
	return 0;
}

typedef int (*enumerate)(int, uint32_t, const struct value *, int, void *);
typedef int (*values_since)(uintptr_t handle, uintptr_t group, uintptr_t fields, long long since, long long *next, enumerate, void *user);

int ax_accounts(uintptr_t handle, uintptr_t group, uintptr_t fields, int64_t since, int64_t *next, ax_account *out,
		uint32_t room, uint32_t *count)
{
	static values_since f;
	struct sink s = {out, room, 0};
	long long after = since;
	if (f == NULL)
		f = (values_since)find("dcgmGetValuesSince_v2");
	if (f == NULL)
		return AX_MISSING;
	int ret = f(handle, group, fields, since, &after, take, &s);
	*next = after;
	*count = s.count;
	return ret;
}
