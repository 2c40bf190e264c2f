module github.com/accel-exporter/accel-exporter/tools/engines/mimir

go 1.26.8

require github.com/grafana/mimir v1.3.1-0.20260423142704-aced80d74930
