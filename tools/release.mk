# What a release consists of, in DIST; all of it is reproducible. Part of the Makefile.

DIST      ?= dist
PACKED    = $(DIST)/package
LICENSES  := tools/licenses.sh
# The time of the last commit makes packages reproducible.
COMMITTED = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null))

dist: dist-exporter dist-remediator ## the programs; for another architecture: GOARCH=arm64 CC=aarch64-linux-gnu-gcc

dist-exporter: ## the program of a node
	CGO_ENABLED=1 $(GOBUILD) -buildvcs=false -o $(DIST)/accel-exporter ./cmd/accel-exporter
	@$(LICENSES) texts accel-exporter > $(DIST)/accel-exporter.third-party-licenses

dist-remediator: ## the program of a cluster
	@mkdir -p $(DIST)
	$(BUILD_REMEDIATOR) -buildvcs=false -o $(abspath $(DIST))/accel-remediator .
	@$(LICENSES) texts accel-remediator > $(DIST)/accel-remediator.third-party-licenses

NFPM = SOURCE_DATE_EPOCH=$(COMMITTED) VERSION=$(VERSION) ARCH=$(or $(GOARCH),$(shell go env GOARCH)) PACKED=$(PACKED) \
	.cache/nfpm-$(NFPM_VERSION) package -f /dev/stdin -t $(DIST)

# Position-independent, as distributions require of programs that listen: their
# addresses differ in each process. Nothing else is, because it costs 12 % in size and
# the tests run the plain build.
packages: .cache/nfpm-$(NFPM_VERSION) ## a deb and an rpm of the program of a node
	CGO_ENABLED=1 $(GOBUILD) -buildvcs=false -buildmode=pie -o $(PACKED)/accel-exporter ./cmd/accel-exporter
	@$(LICENSES) texts accel-exporter > $(PACKED)/third-party-licenses
	@GOARCH= CC= go build -buildvcs=false -o $(PACKED)/native ./cmd/accel-exporter
	@SOURCE_DATE_EPOCH=$(COMMITTED) deploy/package/files.sh $(abspath $(PACKED)/native) $(abspath $(PACKED))
	@$(NFPM) -p rpm < deploy/package/nfpm.yml
	@sed '/^license:/d' deploy/package/nfpm.yml | $(NFPM) -p deb

ENGINE ?= $(or $(notdir $(firstword $(foreach e,docker podman buildah,$(shell command -v $(e))))),docker)
# Docker sets the platform of this machine, and the times of files by the first
# argument; podman and buildah before 1.30 do neither.
REPRODUCIBLE = $(if $(filter docker,$(ENGINE)),--build-arg SOURCE_DATE_EPOCH=$(COMMITTED),--timestamp $(COMMITTED) --build-arg BUILDPLATFORM=linux/$(shell go env GOHOSTARCH))
# Only the given arguments of the Dockerfile are set.
BUILD_IMAGE = $(ENGINE) build --build-arg REVISION=$(REVISION) $(REPRODUCIBLE) $(if $(PLATFORM),--platform $(PLATFORM)) \
	$(foreach a,GO_IMAGE BASE_IMAGE STATIC_IMAGE,$(if $($a),--build-arg $a=$($a)))

image: ## the container image, by docker, podman or buildah: IMAGE=accel-exporter:VERSION PLATFORM=linux/arm64
	$(BUILD_IMAGE) --target exporter --tag $(or $(IMAGE),accel-exporter:$(VERSION)) .

image-remediator: ## the image of accel-remediator, by the same options
	$(BUILD_IMAGE) --target remediator --tag $(or $(IMAGE),accel-remediator:$(VERSION)) .

chart: $(HELM) ## the chart
	$(HELM) package deploy/helm/accel-exporter --destination $(DIST)

# The compiler of the other architecture has Debian's name.
release: ## packages for amd64 and arm64, the chart and the checksums of all
	@rm -rf $(DIST)
	@$(MAKE) --no-print-directory packages chart
	@$(MAKE) --no-print-directory packages GOARCH=arm64 CC=aarch64-linux-gnu-gcc
	@cp LICENSE NOTICE docs/licenses.md $(DIST)
	@cd $(DIST) && sha256sum *.deb *.rpm *.tgz LICENSE NOTICE licenses.md | tee SHA256SUMS

GOVULNDB ?= https://vuln.go.dev

vulnerabilities: ## known vulnerabilities that the programs can reach: GOVULNDB=file:///copy/of/the/database
	go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 -db $(GOVULNDB) ./cmd/accel-exporter
	cd cmd/accel-remediator && CGO_ENABLED=0 go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 -db $(GOVULNDB) .
