// Package live asks the simulated libdcgm what its engines still hold.
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

// Held is how many objects there are.
type Held struct{ Groups, FieldGroups, Watches, Policies int }

// Now counts over all engines of this process. It is an error where the library
// is not loaded, or is not the simulated one.
func Now() (Held, error) {
	var out [4]C.uint
	if C.live(&out[0]) == 0 {
		return Held{}, errors.New("no dcgmSimLive: the simulated libdcgm is not loaded")
	}
	return Held{int(out[0]), int(out[1]), int(out[2]), int(out[3])}, nil
}
