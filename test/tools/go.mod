module github.com/accel-exporter/accel-exporter/test/tools

go 1.26.8
