module github.com/accel-exporter/accel-exporter/tools/engines/prometheus

go 1.26.8

require (
	github.com/prometheus/prometheus v0.53.4
	gopkg.in/yaml.v3 v3.0.1
)
