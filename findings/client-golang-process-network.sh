#!/usr/bin/env bash
# Finding: process_network_receive_bytes_total and process_network_transmit_bytes_total of
# client_golang's process collector are not the traffic of the process, although their help
# says "by the process". They are IpExt of /proc/PID/net/netstat, which the kernel counts
# by network namespace. A process that opens no socket "receives" what another one does:
# for an exporter with hostNetwork, or as a service of the node, the traffic of the node.
# Expected: the traffic of the process, or no such family.
# Version: github.com/prometheus/client_golang v1.25.0, Linux. Output seen is below, as the
# script requires it.
set -euo pipefail
version=v1.25.0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat > main.go <<'G'
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

const bytes = 32 << 20

// traffic sends bytes to itself over the loopback interface.
func traffic() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			log.Fatal(err)
		}
		c.Write(make([]byte, bytes))
		c.Close()
	}()
	c, err := l.Accept()
	if err != nil {
		log.Fatal(err)
	}
	io.Copy(io.Discard, c)
}

func received(r *prometheus.Registry) float64 {
	families, err := r.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "process_network_receive_bytes_total" {
			return f.Metric[0].GetCounter().GetValue()
		}
	}
	log.Fatal("no such family")
	return 0
}

func main() {
	if len(os.Args) > 1 {
		traffic()
		return
	}
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	before := received(r)
	if err := exec.Command(os.Args[0], "traffic").Run(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("of another process:", received(r)-before >= bytes)
}
G
printf 'module finding\n\ngo 1.25\n\nrequire github.com/prometheus/client_golang %s\n' "$version" > go.mod
seen=$(GOFLAGS=-mod=mod go run .)
[ "$seen" = "of another process: true" ] || { echo "changed: $seen"; exit 1; }
echo "as found: a process without a socket counts the 32 MiB that another one received"
