#!/usr/bin/env bash
# Finding: a DRA device selector with an NVIDIA driver's version as nvidia-smi prints it,
# semver("570.124.06"), compiles, which is what the API server checks, and fails on every
# device when the scheduler runs it: a semantic version has no leading zero, and CEL parses
# the constant only then. The allocator returns such an error instead of a device, so the
# pod stays pending although each driver is new enough. A version without a leading zero,
# such as 570.86.15, works, so a selector in use breaks when its version is raised.
# semver("570.124.06", true), which normalizes, works too.
# Expected: the selector does not compile, or it matches.
# Version: k8s.io/dynamic-resource-allocation v0.37.2. Output seen is below, as the script
# requires it.
set -euo pipefail
version=v0.37.2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat > main.go <<'G'
package main

import (
	"context"
	"fmt"

	resource "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

func main() {
	driver := "580.65.6" // of a ResourceSlice, whose versions the API server does check
	gpu := cel.Device{
		Driver:     "gpu.nvidia.com",
		Attributes: map[resource.QualifiedName]resource.DeviceAttribute{"driverVersion": {VersionValue: &driver}},
	}
	for _, least := range []string{`"570.86.15"`, `"570.124.06"`, `"570.124.06", true`} {
		selector := cel.GetCompiler(cel.Features{}).CompileCELExpression(
			`device.attributes["gpu.nvidia.com"].driverVersion.isGreaterThan(semver(`+least+`))`, cel.Options{})
		if selector.Error != nil {
			fmt.Println(least, "does not compile:", selector.Error)
			continue
		}
		matches, _, err := selector.DeviceMatches(context.Background(), gpu)
		fmt.Println(least, matches, err)
	}
}
G
printf 'module finding\n\ngo 1.26\n\nrequire k8s.io/dynamic-resource-allocation %s\n' "$version" > go.mod
seen=$(GOFLAGS=-mod=mod go run .)
[ "$seen" = '"570.86.15" true <nil>
"570.124.06" false Patch number must not contain leading zeroes "06"
"570.124.06", true true <nil>' ] || { echo "changed: $seen"; exit 1; }
echo "as found: semver(\"570.124.06\") compiles and fails on each device, with true as second argument it works"
