// Package live counts the objects of the simulated libdcgm's engines.
package live

/*
#cgo LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>

static int live(unsigned out[4])
{
	void (*f)(unsigned *, unsigned *, unsigned *, unsigned *) = dlsym(RTLD_DEFAULT, "dcgmSimLive");
	if (f)
		f(&out[0], &out[1], &out[2], &out[3]);
	return f != 0;
}
*/
import "C"

import "errors"

// Objects counts the objects of the engines.
type Objects struct{ Groups, FieldGroups, Watches, Policies int }

// Now counts over all engines of this process. It is an error where the library
// is not loaded, or is not the simulated one.
func Now() (Objects, error) {
	var out [4]C.uint
	if C.live(&out[0]) == 0 {
		return Objects{}, errors.New("no dcgmSimLive: the simulated libdcgm is not loaded")
	}
	return Objects{int(out[0]), int(out[1]), int(out[2]), int(out[3])}, nil
}
