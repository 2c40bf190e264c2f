//go:build linux && cgo

// Package dcgmlive returns, for tests, the objects that exist at the simulated host
// engines.
package dcgmlive

/*
#cgo LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

static int live(unsigned *groups, unsigned *sets, unsigned *watches)
{
	void *library = dlopen("libdcgm.so.4", RTLD_LAZY | RTLD_NOLOAD);
	void (*f)(unsigned *, unsigned *, unsigned *) = NULL;
	if (library != NULL)
		f = (void (*)(unsigned *, unsigned *, unsigned *))dlsym(library, "dcgmSimLive");
	if (f != NULL)
		f(groups, sets, watches);
	return f != NULL;
}
*/
import "C"

// Objects are counts of the objects at the host engines of this process.
type Objects struct{ Groups, FieldGroups, Watches int }

// Now returns the counts; ok is false where the library is not the simulated
// one.
func Now() (o Objects, ok bool) {
	var groups, sets, watches C.uint
	found := C.live(&groups, &sets, &watches)
	return Objects{int(groups), int(sets), int(watches)}, found != 0
}
