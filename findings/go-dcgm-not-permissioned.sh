#!/usr/bin/env bash
# Finding: go-dcgm's constant for a text that DCGM may not read is not the text that DCGM
# writes. DCGM_FT_STR_NOT_PERMISSIONED is "<<<NOT_PERMISSIONED>>>"; the header of DCGM in the
# same module defines DCGM_STR_NOT_PERMISSIONED as "<<<NOT_PERM>>>". A program that compares
# a field's text with the constants takes "<<<NOT_PERM>>>" for a name, a serial or a UUID.
# Expected: the constant equals the header's, as the constants of the other three texts do.
# Version: github.com/NVIDIA/go-dcgm v1.4611.0. Output seen is below, as the script requires it.
set -euo pipefail
version=v1.4611.0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat > main.go <<'G'
package main

import (
	"fmt"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"
)

func main() {
	fmt.Println(dcgm.DCGM_FT_STR_BLANK, dcgm.DCGM_FT_STR_NOT_FOUND, dcgm.DCGM_FT_STR_NOT_SUPPORTED, dcgm.DCGM_FT_STR_NOT_PERMISSIONED)
}
G
printf 'module finding\n\ngo 1.25\n\nrequire github.com/NVIDIA/go-dcgm %s\n' "$version" > go.mod
export GOFLAGS=-mod=mod
binding=$(CGO_CFLAGS=-w go run .)
header=$(go list -m -f '{{.Dir}}' github.com/NVIDIA/go-dcgm)/pkg/dcgm/dcgm_structs.h
dcgm=$(printf '#include "%s"\nDCGM_STR_BLANK DCGM_STR_NOT_FOUND DCGM_STR_NOT_SUPPORTED DCGM_STR_NOT_PERMISSIONED\n' "$header" |
  gcc -E -P -x c - | tail -n 1 | tr -d '"')
[ "$binding" = '<<<NULL>>> <<<NOT_FOUND>>> <<<NOT_SUPPORTED>>> <<<NOT_PERMISSIONED>>>' ] || { echo "changed: the binding has $binding"; exit 1; }
[ "$dcgm" = '<<<NULL>>> <<<NOT_FOUND>>> <<<NOT_SUPPORTED>>> <<<NOT_PERM>>>' ] || { echo "changed: the header has $dcgm"; exit 1; }
echo "as found: the binding has <<<NOT_PERMISSIONED>>>, the library writes <<<NOT_PERM>>>"
