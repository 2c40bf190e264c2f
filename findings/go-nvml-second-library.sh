#!/usr/bin/env bash
# Finding: two nvml.New with different WithLibraryPath in one process use one library. Both
# are loaded with RTLD_GLOBAL and the binding calls functions by their global name, so all
# calls of the second Interface reach the library that was loaded first. No call reports an
# error. LookupSymbol of the second Interface does ask the second library, so it denies a
# function that the calls would reach.
# Expected: each Interface calls the library at its path, or the second Init fails.
# Version: github.com/NVIDIA/go-nvml v0.13.4-1. Output seen is below, as the script requires it.
set -euo pipefail
version=v0.13.4-1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir library
cat > library/nvml.c <<'C'
#include <string.h>
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return code ? "error" : "success"; }
int nvmlSystemGetDriverVersion(char *version, unsigned length) { strncpy(version, DRIVER, length); return 0; }
#ifdef EXTRA
int nvmlSystemGetNVMLVersion(char *version, unsigned length) { strncpy(version, "12", length); return 0; }
#endif
C
gcc -shared -fPIC -DDRIVER='"first"' -DEXTRA -o first.so library/nvml.c
gcc -shared -fPIC -DDRIVER='"second"' -o second.so library/nvml.c
cat > main.go <<'G'
package main

import (
	"fmt"
	"log"
	"path/filepath"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

func open(name string) nvml.Interface {
	path, err := filepath.Abs(name)
	if err != nil {
		log.Fatal(err)
	}
	lib := nvml.New(nvml.WithLibraryPath(path))
	if ret := lib.Init(); ret != nvml.SUCCESS {
		log.Fatal(ret)
	}
	return lib
}

func main() {
	first, second := open("first.so"), open("second.so")
	for _, lib := range []nvml.Interface{first, second} {
		driver, ret := lib.SystemGetDriverVersion()
		fmt.Println(driver, ret == nvml.SUCCESS, lib.Extensions().LookupSymbol("nvmlSystemGetNVMLVersion") == nil)
	}
}
G
printf 'module finding\n\ngo 1.25\n\nrequire github.com/NVIDIA/go-nvml %s\n' "$version" > go.mod
seen=$(GOFLAGS=-mod=mod CGO_CFLAGS=-w go run .)
[ "$seen" = $'first true true\nfirst true false' ] || { echo "changed: $seen"; exit 1; }
echo "as found: the second Interface answers from the first library, and its LookupSymbol from the second"
