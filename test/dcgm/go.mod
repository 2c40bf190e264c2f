module github.com/accel-exporter/accel-exporter/test/dcgm

go 1.26.8

require (
	github.com/NVIDIA/go-dcgm v1.4611.0
	github.com/NVIDIA/go-nvml v0.13.3-1
	github.com/accel-exporter/accel-exporter v0.0.0
)

require (
	github.com/bits-and-blooms/bitset v1.25.0 // indirect
	github.com/hanwen/go-fuse/v2 v2.11.0 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260803160001-6ac0973c030d // indirect
	google.golang.org/grpc v1.83.2 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
	k8s.io/kubelet v0.37.2 // indirect
)

replace github.com/accel-exporter/accel-exporter => ../..
