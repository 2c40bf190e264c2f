# make help lists the targets. They need go, gcc, make and git.

VERSION  := $(shell cat VERSION)
REVISION := $(shell git rev-parse --short HEAD 2>/dev/null)
INFO     := github.com/prometheus/common/version
GOBUILD  := go build -trimpath -ldflags "-s -w -X $(INFO).Version=$(VERSION) -X $(INFO).Revision=$(REVISION)"
BUILD_REMEDIATOR := cd cmd/accel-remediator && CGO_ENABLED=0 $(GOBUILD)
BIN      ?= bin/accel-exporter
TOOL     := go tool -modfile=tools/go.mod
GO_DIRS  := cmd collector internal podmap rules test tools

# Programs of other projects are built once; the version is in the name, so a file that
# exists is current.
HELM_VERSION := $(shell sed -n 's,.*helm.sh/helm/v4 \(v[0-9.]*\).*,\1,p' tools/kubernetes/go.mod)
HELM         ?= $(CURDIR)/.cache/helm-$(HELM_VERSION)
NFPM_VERSION := v2.45.0
PINT_VERSION := v0.87.0
LINT_VERSION := v2.15.0

# go-nvml calls functions that nvml.h marks as deprecated. NVML is bound lazily, so
# the linker must not use -z now.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations
# Tests and programs share the compiled dependencies.
export GOFLAGS := $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath

# Every target but the files.
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' Makefile tools/tests.mk tools/release.mk)

all: check build ## check and build

build: sim ## bin/accel-exporter, bin/accel-sim and the simulated libraries in bin/sim
	$(GOBUILD) -o $(BIN) ./cmd/accel-exporter
	$(GOBUILD) -o bin/accel-sim ./cmd/accel-sim

build-nocgo: ## check that the exporter builds without native libraries
	CGO_ENABLED=0 $(GOBUILD) -o /dev/null ./cmd/accel-exporter

build-remediator: ## bin/accel-remediator, the only program with the Kubernetes client
	@mkdir -p bin
	$(BUILD_REMEDIATOR) -o $(CURDIR)/bin/accel-remediator .

sim:
	@go mod download github.com/NVIDIA/go-nvml # nvml.h is in it
	@for library in nvml dcgm; do $(MAKE) --no-print-directory -s -C fixtures/$$library OUT=$(CURDIR)/bin/sim || exit 1; done

# Unless ARGS gives another address or other rules.
LISTEN   = $(or $(patsubst --web.listen-address=%,%,$(filter --web.listen-address=%,$(ARGS))),127.0.0.1:19400)
DEFAULTS = $(if $(findstring --web.listen-address,$(ARGS)),,--web.listen-address=$(LISTEN)) $(if $(findstring --rules.,$(ARGS)),,--rules.builtin)

run: build ## the exporter on a simulated node: SCENARIO=h100-8 ARGS="--log.level=debug" SIM=--fuse
	@echo "Metrics: http://$(LISTEN)/metrics   Faults: bin/accel-sim inject --help   End: Ctrl-C"
	@bin/accel-sim run --scenario=$(or $(SCENARIO),h100-8) $(SIM) -- bin/accel-exporter $(DEFAULTS) $(ARGS)

demo: build debian ## a simulated node, Prometheus and Alertmanager (and Grafana if installed), and a GPU that breaks: DEMO="-after 10s"
	@go -C test build -o $(CURDIR)/bin/demo ./demo
	@bin/demo $(DEMO)

alertmanager: ## Debian's Alertmanager on 127.0.0.1:9093, for ARGS="--alertmanager.url=http://127.0.0.1:9093" of make run
	@$(MAKE) --no-print-directory demo DEMO="-only Alertmanager"

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

golden: sim ## update the golden files; then review the diff
	$(GOTEST) $$(git grep -l sim/golden -- '*_test.go' ':!podmap' ':!rules' | xargs -n1 dirname | sort -u | sed 's,^,./,') -run 'Golden|Broken|GoNVML|Print$$|Page$$|Captures$$|NeverOpened|Cases$$|Messages$$' -update
	git diff --stat

fuzz: sim ## every fuzz target for FUZZTIME=30s
	@grep -roE '^func Fuzz\w+' --include='*_test.go' cmd collector internal podmap rules tools | sort | sed -E 's,/[^/]*:func , ,' | { bad=0; while read -r p f; do \
		.ci/fuzz.sh $(or $(FUZZTIME),30s) ./$$p $$f || bad=1; done; exit $$bad; }

bench: sim ## benchmarks: BENCH=Scrape
	go test -run '^$$' -bench '$(or $(BENCH),.)' -benchmem -count=6 ./...

bench-compare: build ## what this build and that of REF=main cost, as ratios: scrapes, rest, memory, start
	tools/compare/bench.sh $(or $(REF),main)

generate: ## docs/metrics.md, docs/licenses.md, the schema of the configuration, dashboards; CHECK=-check fails if one is not current
	go run ./internal/gen/docs $(CHECK)
	go -C tools run ./dashboards $(CHECK)
	$(LICENSES) $(or $(CHECK),page)

check: vet build-nocgo test ## the checks and tests without other programs
	@$(MAKE) --no-print-directory fmt-check generate CHECK=-check

VET = go vet ./... && GOGC=400 $(CURDIR)/.cache/staticcheck ./...

# The remediator is built without cgo, so its dependencies compile once.
vet: ## go vet and staticcheck, in each module
	@go build -modfile=tools/go.mod -o .cache/staticcheck honnef.co/go/tools/cmd/staticcheck
	$(VET)
	for module in test tools; do (cd $$module && $(VET)) || exit 1; done
	cd cmd/accel-remediator && export CGO_ENABLED=0 && $(VET)

fmt: ## format the Go code
	$(TOOL) gofumpt -w $(GO_DIRS)

fmt-check:
	@out=$$($(TOOL) gofumpt -l $(GO_DIRS)); test -z "$$out" || { echo "not formatted: $$out"; exit 1; }

lint: vet .cache/golangci-lint-$(LINT_VERSION) .cache/pint-$(PINT_VERSION) ## golangci-lint, pint on the rules, actionlint on the workflows; the first run builds them, which takes minutes
	.cache/golangci-lint-$(LINT_VERSION) run
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
	.cache/pint-$(PINT_VERSION) --offline --config tools/pint.hcl lint --min-severity=info --fail-on=info rules/*.yaml

helm: $(HELM)

$(HELM):
	@mkdir -p $(@D)
	cd tools/kubernetes && CGO_ENABLED=0 go build -ldflags "-s -w" -o $@ helm.sh/helm/v4/cmd/helm

.cache/nfpm-$(NFPM_VERSION):
	tools/program.sh github.com/goreleaser/nfpm/v2@$(NFPM_VERSION) github.com/goreleaser/nfpm/v2/cmd/nfpm $@

.cache/golangci-lint-$(LINT_VERSION):
	tools/program.sh github.com/golangci/golangci-lint/v2@$(LINT_VERSION) github.com/golangci/golangci-lint/v2/cmd/golangci-lint $@

.cache/pint-$(PINT_VERSION):
	tools/program.sh github.com/cloudflare/pint@$(PINT_VERSION) github.com/cloudflare/pint/cmd/pint $@

include tools/tests.mk tools/release.mk

clean: ## remove all build results
	rm -rf bin dist .cache

help: ## this list
	@awk -F ':.*## ' '/^[a-z -]+:.*## / {n = split($$1, names, " "); for (i = 1; i <= n; i++) printf "%-17s %s\n", names[i], $$2}' $(MAKEFILE_LIST)
