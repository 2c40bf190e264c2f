# make help lists the targets. They need go, gcc, make and git.

VERSION  := $(shell cat VERSION)
REVISION := $(shell git rev-parse --short HEAD 2>/dev/null)
INFO     := github.com/prometheus/common/version
LDFLAGS  := -s -w -X $(INFO).Version=$(VERSION) -X $(INFO).Revision=$(REVISION)
GOBUILD  := go build -trimpath -ldflags "$(LDFLAGS)"
BIN      ?= bin/accel-exporter
TOOL     := go tool -modfile=tools/go.mod
FUZZTIME ?= 30s
SHARE    ?= 0/1
SCENARIO ?= h100-8
ARGS     ?=
SIM      ?=
REF      ?= main
BENCH    ?= .
# Built once; the version is in the name, so a file that exists is current.
HELM_VERSION := $(shell sed -n 's,.*helm.sh/helm/v4 \(v[0-9.]*\).*,\1,p' tools/kubernetes/go.mod)
PINT_VERSION := $(shell sed -n 's,^require .*/pint ,,p' tools/pint/go.mod)
LINT_VERSION := $(shell sed -n 's,.*golangci-lint/v2 \(v[0-9.]*\).*,\1,p' tools/lint/go.mod)
HELM     ?= $(CURDIR)/.cache/helm-$(HELM_VERSION)
PINT     := $(CURDIR)/.cache/pint-$(PINT_VERSION)
LINT     := $(CURDIR)/.cache/golangci-lint-$(LINT_VERSION)
GO_DIRS  := cmd collector dashboards internal podmap rules test tools

# go-nvml calls functions that nvml.h marks as deprecated. NVML is bound lazily, so
# the linker must not use -z now.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations
# Tests and programs share the compiled dependencies.
export GOFLAGS := $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath

.PHONY: all build build-nocgo build-remediator sim dist dist-exporter dist-remediator packages image image-remediator engine run demo alertmanager test test-kubelet test-apiserver test-hpa test-dcgm nvml-constants test-traces test-remediator remediator-figures golden bench bench-compare fuzz lint vet fmt fmt-check generate dashboards generate-check test-rules test-deploy chart helm test-tour test-differential test-tools test-dashboards test-render screenshots test-page pictures vulnerabilities pint engines fleet-cost incidents compare check clean help

all: check build ## check and build

build: sim ## bin/accel-exporter, bin/accel-sim and the simulated libraries in bin/sim
	$(GOBUILD) -o $(BIN) ./cmd/accel-exporter
	$(GOBUILD) -o bin/accel-sim ./cmd/accel-sim

build-nocgo: ## check that the exporter builds without native libraries
	CGO_ENABLED=0 $(GOBUILD) -o /dev/null ./cmd/accel-exporter

BUILD_REMEDIATOR = cd cmd/accel-remediator && CGO_ENABLED=0 $(GOBUILD)

build-remediator: ## bin/accel-remediator, the only program with the Kubernetes client
	@mkdir -p bin
	$(BUILD_REMEDIATOR) -o $(CURDIR)/bin/accel-remediator .

sim:
	@go mod download github.com/NVIDIA/go-nvml # nvml.h is in it
	@$(MAKE) --no-print-directory -s -C fixtures/nvml OUT=$(CURDIR)/bin/sim
	@$(MAKE) --no-print-directory -s -C fixtures/dcgm OUT=$(CURDIR)/bin/sim

LISTEN := $(if $(findstring --web.listen-address,$(ARGS)),,--web.listen-address=127.0.0.1:19400)
# Of make run, unless ARGS gives other rules.
RULES := $(if $(findstring --rules.,$(ARGS)),,--rules.builtin)

# The installed programs. For another architecture: GOARCH=arm64 CC=aarch64-linux-gnu-gcc.
DIST     ?= dist
# It runs on this machine, whatever the programs are built for.
LICENSES := GOARCH= CC= go -C tools run ./licenses

dist: dist-exporter dist-remediator ## the programs of a release, in DIST=dist; reproducible

dist-exporter: ## the programs of a node, in DIST=dist
	CGO_ENABLED=1 $(GOBUILD) -buildvcs=false -o $(DIST)/accel-exporter ./cmd/accel-exporter
	@$(LICENSES) -texts accel-exporter .. > $(DIST)/accel-exporter.third-party-licenses

dist-remediator: ## the program of a cluster, in DIST=dist
	@mkdir -p $(DIST)
	$(BUILD_REMEDIATOR) -buildvcs=false -o $(abspath $(DIST))/accel-remediator .
	@$(LICENSES) -texts accel-remediator .. > $(DIST)/accel-remediator.third-party-licenses

# The time of the last commit makes packages reproducible.
COMMITTED = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null))

PACKED = $(DIST)/package
NFPM = SOURCE_DATE_EPOCH=$(COMMITTED) VERSION=$(VERSION) ARCH=$(or $(GOARCH),$(shell go env GOARCH)) PACKED=$(PACKED) \
	GOARCH= CC= CGO_ENABLED=0 go tool -modfile=tools/package/go.mod nfpm package -f /dev/stdin -t $(DIST)

# Position-independent, as distributions require of programs that listen: their
# addresses differ in each process. Nothing else is, because it costs 12 % in size and
# the tests run the plain build.
packages: ## a deb and an rpm of the programs of a node, in DIST=dist; reproducible
	CGO_ENABLED=1 $(GOBUILD) -buildvcs=false -buildmode=pie -o $(PACKED)/accel-exporter ./cmd/accel-exporter
	@$(LICENSES) -texts accel-exporter .. > $(PACKED)/third-party-licenses
	@GOARCH= CC= go build -buildvcs=false -o $(PACKED)/native ./cmd/accel-exporter
	@SOURCE_DATE_EPOCH=$(COMMITTED) deploy/package/files.sh $(abspath $(PACKED)/native) $(abspath $(PACKED))
	@$(NFPM) -p rpm < deploy/package/nfpm.yml
	@sed '/^license:/d' deploy/package/nfpm.yml | $(NFPM) -p deb

ENGINE   ?= $(notdir $(firstword $(foreach e,docker podman buildah,$(shell command -v $(e)))))
# Only the given arguments of the Dockerfile are set.
BUILD_IMAGE = $(ENGINE) build --build-arg REVISION=$(REVISION) --build-arg SOURCE_DATE_EPOCH=$(COMMITTED) $(if $(PLATFORM),--platform $(PLATFORM)) \
	$(foreach a,GO_IMAGE BASE_IMAGE STATIC_IMAGE,$(if $($a),--build-arg $a=$($a)))

image: IMAGE ?= accel-exporter:$(VERSION)
image: engine ## the container image IMAGE=accel-exporter:VERSION, by docker, podman or buildah; PLATFORM=linux/arm64
	$(BUILD_IMAGE) --target exporter --tag $(IMAGE) .

image-remediator: IMAGE ?= accel-remediator:$(VERSION)
image-remediator: engine ## the image of accel-remediator, by the same options
	$(BUILD_IMAGE) --target remediator --tag $(IMAGE) .

engine:
	@test -n "$(ENGINE)" || { echo "none of docker, podman and buildah is installed" >&2; exit 1; }

run: build ## the exporter on a simulated machine: SCENARIO=h100-8 ARGS="--log.level=debug" SIM=--fuse
	@$(if $(LISTEN),echo "Metrics: http://127.0.0.1:19400/metrics   Faults: bin/accel-sim inject --help   End: Ctrl-C")
	@bin/accel-sim run --scenario=$(SCENARIO) $(SIM) -- bin/accel-exporter $(LISTEN) $(RULES) $(ARGS)

demo: build .cache/alertmanager/usr .cache/prometheus/usr ## a simulated node, Prometheus and Alertmanager (and Grafana if installed), and a GPU that breaks: DEMO="-after 10s"
	@go -C test build -o $(CURDIR)/bin/demo ./demo
	@bin/demo $(DEMO)

alertmanager: .cache/alertmanager/usr ## Debian's Alertmanager on 127.0.0.1:9093, for ARGS="--alertmanager.url=http://127.0.0.1:9093" of make run
	@go -C test build -o $(CURDIR)/bin/demo ./demo
	@bin/demo -only Alertmanager

# End-to-end tests mostly wait, so more run at once than there are cores. make vet is
# a step of its own. Trees of small files cost a fifth of the CPU time in memory, if
# /dev/shm is large enough and not noexec.
SHM := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4e6' | grep -q . && ! grep -q ' /dev/shm .*noexec' /proc/mounts && echo /dev/shm)
GOTEST := $(if $(SHM),TMPDIR=$(SHM)) go test -vet=off -timeout=1h -shuffle=on -parallel=6 -p=4

# A module's tests run even where another's fail. go test prints nothing before the
# first package has ended, which takes longest, so a line a minute shows that it runs.
test: sim ## all tests that need no other program, with the race detector
	@while sleep 60 >/dev/null 2>&1 && kill -0 $$$$ 2>/dev/null; do minutes=$$((minutes + 1)); echo "make test: running for $$minutes min"; done & \
	progress=$$!; failed=0; \
	$(GOTEST) -race $(TESTFLAGS) ./... || failed=1; \
	(cd cmd/accel-remediator && $(GOTEST) -race $(TESTFLAGS) ./...) || failed=1; \
	(cd test && $(GOTEST) $(TESTFLAGS) ./incidents/...) || failed=1; \
	(cd tools && $(GOTEST) $(TESTFLAGS) ./...) || failed=1; \
	kill $$progress; exit $$failed

# Tests run make too, which must not look for the jobs of this one.
E2E := MAKEFLAGS= go -C test test

test-kubelet: ## podmap with a real kubelet; needs root, the first build takes minutes
	@$(MAKE) --no-print-directory -C test/kubelet test

test-apiserver: ## podmap and the chart's objects with a real API server and Debian's etcd
	@$(MAKE) --no-print-directory -C test/kubelet apiserver

test-hpa: build ## a HorizontalPodAutoscaler on simulated GPUs, with all other parts real; needs root, the first build takes long
	@.ci/tools.sh
	@$(MAKE) --no-print-directory -C test/kubelet scaling

test-dcgm: sim ## the simulated libdcgm through NVIDIA's bindings, compared with the simulated NVML
	$(E2E) -count=1 ./dcgm/...

nvml-constants: ## compare the constants of nvml.h between releases; a test reads the result
	go -C test run ./nvml $(CURDIR)/collector/nvidia/testdata/nvml-constants.tsv

test-traces: ## spans sent to a receiver of the OpenTelemetry Collector
	$(E2E) -count=1 ./traces

test-remediator: build build-remediator ## accel-remediator with a real API server and Alertmanager; needs root, the first build takes long
	@.ci/tools.sh
	@$(MAKE) --no-print-directory -C test/kubelet remediator

remediator-figures: build build-remediator ## the figures in docs/remediator.md, measured in five minutes
	@.ci/tools.sh
	@$(MAKE) --no-print-directory -C test/kubelet remediator-figures

golden: sim ## update the golden files; then review the diff
	$(GOTEST) ./cmd/accel-exporter ./internal/config ./internal/compat/... ./internal/sim ./internal/judge/allocation ./internal/judge/baseline ./internal/judge/health ./collector/fpga ./collector/kernellog ./collector/pcie ./internal/remediation \
		-run 'Golden|Broken|GoNVML|Print$$|Page$$|Captures$$|XilinxHarm' -update
	git diff --stat

bench: sim ## benchmarks: BENCH=Scrape
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count=6 ./...

bench-compare: sim ## compare the benchmarks with those of REF=main
	@rm -rf .cache/bench && mkdir -p .cache && git worktree prune && git worktree add -q --detach .cache/bench $(REF)
	cd .cache/bench && { $(MAKE) -s sim; go test -run '^$$' -bench '$(BENCH)' -benchmem -count=6 ./...; } > ../bench-old.txt; git worktree remove --force $(CURDIR)/.cache/bench
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count=6 ./... > .cache/bench-new.txt
	$(TOOL) benchstat .cache/bench-old.txt .cache/bench-new.txt

fuzz: sim ## every fuzz target for FUZZTIME=30s; SHARE=1/3 runs every third, from the second on
	@grep -roE '^func Fuzz\w+' --include='*_test.go' cmd collector internal podmap rules tools | sort | sed -E 's,/[^/]*:func , ,' | \
	awk -v share=$(SHARE) 'BEGIN {split(share, s, "/")} NR % s[2] == s[1]' | { bad=0; while read -r p f; do \
		.ci/fuzz.sh $(FUZZTIME) ./$$p $$f || bad=1; done; exit $$bad; }

lint: vet $(LINT) ## golangci-lint; the first run builds it, which takes minutes
	$(LINT) run

$(LINT):
	go -C tools/lint build -ldflags "-s -w" -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

VET = go vet ./... && GOGC=400 $(CURDIR)/.cache/staticcheck ./...

# The remediator, the dashboards and the tests are modules of their own. The
# remediator is built without cgo, so its dependencies compile once.
vet: ## go vet and staticcheck
	@go build -modfile=tools/go.mod -o .cache/staticcheck honnef.co/go/tools/cmd/staticcheck
	$(VET)
	cd dashboards && $(VET)
	cd test && $(VET)
	cd tools && $(VET)
	cd cmd/accel-remediator && export CGO_ENABLED=0 && $(VET)

fmt: ## format the Go code
	$(TOOL) gofumpt -w $(GO_DIRS)

fmt-check:
	@out=$$($(TOOL) gofumpt -l $(GO_DIRS)); test -z "$$out" || { echo "not formatted: $$out"; exit 1; }

generate: dashboards ## docs/metrics.md, docs/licenses.md, the schema of the configuration, dashboards
	go run ./internal/gen/docs
	$(LICENSES) ..

dashboards: ## the JSON files of the dashboards
	go -C dashboards run .

generate-check: ## fail if a generated file is not current
	go run ./internal/gen/docs -check
	go -C dashboards run . -check
	$(LICENSES) -check ..

# How many programs run at once.
PROCS    ?= $(shell nproc)
PROMTOOL ?= $(firstword $(wildcard .cache/prometheus/usr/bin/promtool) promtool)

test-rules: ## the rules through promtool: PROMTOOL=promtool
	$(PROMTOOL) check rules rules/*.yaml
	ls -S rules/tests/*.yaml | GOGC=800 xargs -n 1 -P $(PROCS) $(PROMTOOL) test rules

test-deploy: DIST := bin/packages
test-deploy: build build-remediator packages $(HELM) ## the chart, kustomizations, image and packages; the first run builds helm, which takes minutes
	.ci/tools.sh lintian rpm
	PACKAGES=$(abspath $(DIST)) HELM=$(HELM) ACCEL_EXPORTER=$(abspath $(BIN)) $(E2E) -count=1 ./deploy

chart: $(HELM) ## the chart as a package, in DIST=dist
	$(HELM) package deploy/helm/accel-exporter --destination $(DIST)

helm: $(HELM)

$(HELM):
	@mkdir -p $(@D)
	cd tools/kubernetes && CGO_ENABLED=0 go build -ldflags "-s -w" -o $@ helm.sh/helm/v4/cmd/helm

test-tour: build .cache/alertmanager/usr ## the commands of docs/tour.md; needs root, for a network of its own
	$(E2E) -count=1 ./demo

DIFFERENTIAL ?=

test-differential: ## compare the rule engine with Prometheus': DIFFERENTIAL="-seed=7 -cases=2000 -every=1"
	$(E2E) -count=1 -timeout=2h ./rules $(DIFFERENTIAL)

test-tools: ## the rules in Debian's Prometheus and Alertmanager
	.ci/tools.sh
	.cache/alertmanager/usr/bin/amtool check-config deploy/prometheus/alertmanager.yml
	PROMETHEUS=$(CURDIR)/.cache/prometheus/usr/bin/prometheus ALERTMANAGER=$(CURDIR)/.cache/alertmanager/usr/bin/prometheus-alertmanager \
		$(E2E) -count=1 ./tools

test-dashboards: build ## every query of the dashboards, in a real Prometheus that scrapes simulated nodes
	.ci/tools.sh
	PROMETHEUS=$(CURDIR)/.cache/prometheus/usr/bin/prometheus EXPORTER=$(CURDIR)/bin/accel-exporter SIMULATOR=$(CURDIR)/bin/accel-sim \
		$(E2E) -count=1 -timeout=30m -run TestDashboards ./tools

RENDERER := test/render/node_modules/.installed

$(RENDERER): test/render/package.json
	cd test/render && npm install --ignore-scripts --legacy-peer-deps --no-package-lock --no-audit --no-fund --silent
	@touch $@

# Without Node.js, npm or Chromium the test is skipped.
test-render: ## the program that draws the dashboards shows what Grafana shows, of panels with known defects and of today's
	.ci/tools.sh npm chromium
	@if command -v npm >/dev/null && command -v chromium >/dev/null && $(MAKE) --no-print-directory $(RENDERER); then \
		cd test/render && CHROMIUM=$$(command -v chromium) node --test; \
	else echo "npm, its packages or chromium are missing: the drawing of the dashboards is not tested" >&2; fi

screenshots: build ## docs/img/accel-*: each dashboard with the simulated nodes of test-dashboards; needs npm
	.ci/tools.sh && .ci/tools.sh npm chromium
	@$(MAKE) --no-print-directory $(RENDERER)
	SCREENSHOTS=$(CURDIR)/docs/img CHROMIUM=$$(command -v chromium) PROMETHEUS=$(CURDIR)/.cache/prometheus/usr/bin/prometheus EXPORTER=$(CURDIR)/bin/accel-exporter \
		SIMULATOR=$(CURDIR)/bin/accel-sim $(E2E) -count=1 -timeout=30m -run TestScreenshots ./tools

PAGE = CHROMIUM=$$(command -v chromium) EXPORTER=$(CURDIR)/bin/accel-exporter SIMULATOR=$(CURDIR)/bin/accel-sim $(E2E) -count=1 -timeout=30m

test-page: build ## the status page of every scenario in Debian's Chromium
	.ci/tools.sh chromium
	$(PAGE) -parallel=3 -run 'TestStatusPage' ./tools

pictures: build ## the pictures of the status page in docs/img; takes eleven minutes
	.ci/tools.sh chromium
	$(PAGE) -run TestPictures ./tools -pictures=$(CURDIR)/docs/img

GOVULNDB ?= https://vuln.go.dev

vulnerabilities: ## known vulnerabilities that the programs can reach: GOVULNDB=file:///copy/of/the/database
	go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 -db $(GOVULNDB) ./cmd/accel-exporter
	cd cmd/accel-remediator && CGO_ENABLED=0 go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 -db $(GOVULNDB) .

pint: $(PINT) ## lint the rules; the first run builds pint, which takes minutes
	$(PINT) --offline --config tools/pint/pint.hcl lint --min-severity=info --fail-on=info rules/*.yaml

$(PINT):
	go -C tools/pint build -mod=mod -o $@ github.com/cloudflare/pint/cmd/pint

engines: build ## the rules in Prometheus 2.53, Mimir's parser, vmalert and Thanos Ruler; not in CI, the first run builds them for minutes: ENGINES=vmalert
	tools/engines/run.sh $(ENGINES)

FLEET ?=

fleet-cost: ## the cost of each rule for a Prometheus with 8,000 GPUs: FLEET="-nodes 100"
	go -C test run ./fleet $(FLEET)

ONLY ?=
PLAY ?=

incidents: build .cache/alertmanager/usr .cache/prometheus/usr ## every scripted incident through exporter and Alertmanager: ONLY=gpu-lost PLAY="-latency 100"
	@go -C test build -o $(CURDIR)/bin/incidents ./incidents/play
	@bin/incidents -only '$(ONLY)' $(PLAY)

compare: ## compare a metrics page (file or URL) with nvidia-smi -q -x of the same machine: XML=smi.xml PAGE=http://node:19400/metrics
	@go -C tools build -o $(CURDIR)/bin/compare ./compare
	@bin/compare $(XML) $(PAGE)

# Debian's package, unpacked and not installed.
.cache/alertmanager/usr: DEB := prometheus-alertmanager
.cache/prometheus/usr: DEB := prometheus
.cache/alertmanager/usr .cache/prometheus/usr:
	@mkdir -p $(@D)
	cd $(@D) && apt-get download -qq $(DEB) && dpkg -x $(DEB)_*.deb .

check: fmt-check vet generate-check build-nocgo test ## the checks and tests without other programs

clean: ## remove all build results
	rm -rf bin dist .cache

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
