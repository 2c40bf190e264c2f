#!/usr/bin/env bash
# Finding: procfs gives 0 for what an AMD GPU does not have. A card whose driver offers no
# gpu_busy_percent or no memory in use is returned without an error as a card that is idle and
# has all its memory free: the fields of ClassDRMCardAMDGPUStats are plain numbers, so an
# absent file and a 0 cannot be distinguished.
# Expected: an error, a pointer, or the file's name in the result.
# Version: github.com/prometheus/procfs v0.21.1. Output seen is below, as the script requires it.
set -euo pipefail
version=v0.21.1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir -p sys/class/drm/card0/device
printf 'DRIVER=amdgpu\nPCI_CLASS=38000\n' > sys/class/drm/card0/device/uevent
printf '8589934592\n' > sys/class/drm/card0/device/mem_info_vram_total
cat > main.go <<'G'
package main

import (
	"fmt"
	"log"

	"github.com/prometheus/procfs/sysfs"
)

func main() {
	fs, err := sysfs.NewFS("sys")
	if err != nil {
		log.Fatal(err)
	}
	cards, err := fs.ClassDRMCardAMDGPUStats()
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range cards {
		fmt.Println(c.Name, c.GPUBusyPercent, c.MemoryVRAMSize, c.MemoryVRAMUsed)
	}
}
G
printf 'module finding\n\ngo 1.25\n\nrequire github.com/prometheus/procfs %s\n' "$version" > go.mod
seen=$(GOFLAGS=-mod=mod go run .)
[ "$seen" = "card0 0 8589934592 0" ] || { echo "changed: $seen"; exit 1; }
echo "as found: neither use nor used memory has a file; both are 0, without an error"
