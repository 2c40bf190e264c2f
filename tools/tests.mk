# Tests that start other programs. Part of the Makefile.

# They run make too, which must not look for the jobs of this one.
CACHE := $(CURDIR)/.cache
E2E   := PROMETHEUS=$(CACHE)/prometheus/usr/bin/prometheus ALERTMANAGER=$(CACHE)/alertmanager/usr/bin/prometheus-alertmanager \
	EXPORTER=$(CURDIR)/bin/accel-exporter SIMULATOR=$(CURDIR)/bin/accel-sim CHROMIUM=$$(command -v chromium) MAKEFLAGS= go -C test test -count=1 -timeout=30m

debian: # Prometheus and Alertmanager, unpacked below .cache and not installed
	@.ci/tools.sh

test-kubelet: ## podmap with a real kubelet; needs root, the first build takes minutes
	@$(MAKE) --no-print-directory -C test/kubelet test

test-apiserver test-hpa test-remediator: build build-remediator debian ## with a real API server, autoscaler, Alertmanager; needs root, the first build takes long
	@$(MAKE) --no-print-directory -C test/kubelet $(@:test-%=%)

test-rules: debian ## the rules through promtool
	.cache/prometheus/usr/bin/promtool check rules rules/*.yaml
	ls -S rules/tests/*.yaml | GOGC=800 xargs -n 1 -P $$(nproc) .cache/prometheus/usr/bin/promtool test rules

test-differential: ## compare the rule engine with Prometheus': DIFFERENTIAL="-seed=7 -cases=2000"
	$(E2E) ./rules $(DIFFERENTIAL)

test-tools: build debian ## the rules in Debian's Prometheus and Alertmanager
	.cache/alertmanager/usr/bin/amtool check-config deploy/prometheus/alertmanager.yml
	$(E2E) -skip 'TestDashboards|TestStatusPage|TestScreenshots|TestPictures' ./tools

test-dashboards: ## every query of the dashboards, on recorded pages of two clusters
	$(E2E) -run TestDashboards ./tools

test-tour: build debian ## the commands of docs/tour.md; needs root, for a private network
	$(E2E) ./demo

test-deploy: DIST := bin/packages
test-deploy: build build-remediator packages $(HELM) ## the chart, kustomizations, image and packages; the first run builds helm, which takes minutes
	.ci/tools.sh lintian rpm
	PACKAGES=$(abspath $(DIST)) HELM=$(HELM) ACCEL_EXPORTER=$(abspath $(BIN)) $(E2E) ./deploy

test-page: build ## the status page of every scenario in Debian's Chromium
	.ci/tools.sh chromium
	$(E2E) -parallel=3 -run TestStatusPage ./tools

RENDERER := test/render/node_modules/.installed

$(RENDERER): test/render/package.json
	cd test/render && npm install --ignore-scripts --legacy-peer-deps --no-package-lock --no-audit --no-fund --silent
	@touch $@

screenshots: build debian ## docs/img: the dashboards and, in eleven minutes, the status page
	.ci/tools.sh npm chromium
	@$(MAKE) --no-print-directory $(RENDERER)
	SCREENSHOTS=$(CURDIR)/docs/img $(E2E) -run TestScreenshots ./tools
	$(E2E) -run TestPictures ./tools -pictures=$(CURDIR)/docs/img

cross: build ## libsensors, node_exporter and lspci beside the exporter on the tree of every card; needs root
	.ci/tools.sh lm-sensors pciutils prometheus-node-exporter
	tools/cross.sh

incidents: build debian ## every scripted incident through exporter and Alertmanager: ONLY=gpu-lost PLAY="-parallel 3"
	@go -C test build -o $(CURDIR)/bin/incidents ./incidents/play
	@bin/incidents -only '$(ONLY)' $(PLAY)

engines: build debian ## the rules in vmalert and Thanos Ruler; the first run takes long: ENGINES=vmalert
	tools/engines/run.sh $(ENGINES)

fleet-cost: ## the cost of each rule for a Prometheus with 8,000 GPUs: FLEET="-nodes 100"
	go -C test run ./fleet $(FLEET)
