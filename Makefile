SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
BIN         := $(CURDIR)/.bin
GO          ?= go

# Tools are pinned, installed into .bin, and named by version there so that a new pin installs anew.
GOLANGCI_LINT_VERSION := v2.15.0
STATICCHECK_VERSION   := v0.8.2
GOFUMPT_VERSION       := v0.12.0
BENCHSTAT_VERSION     := v0.0.0-20260908200009-22c9c6c9d4da
PROTOC_GEN_GO_VERSION      := v1.36.12
PROTOC_GEN_GO_GRPC_VERSION := v1.6.2

GOLANGCI_LINT := $(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION)
STATICCHECK   := $(BIN)/staticcheck-$(STATICCHECK_VERSION)
GOFUMPT       := $(BIN)/gofumpt-$(GOFUMPT_VERSION)
BENCHSTAT     := $(BIN)/benchstat-$(BENCHSTAT_VERSION)
PROTOC_GEN_GO      := $(BIN)/protoc-gen-go-$(PROTOC_GEN_GO_VERSION)
HELM               := $(BIN)/helm-v3.20.2
PROTOC_GEN_GO_GRPC := $(BIN)/protoc-gen-go-grpc-$(PROTOC_GEN_GO_GRPC_VERSION)

# The packages of which the pipeline of a run is made. The policies below allocation/ are left out: they start no goroutine, and
# their properties take minutes under the race detector.
PIPELINE := ./core ./core/search/... ./policykit/stopping ./core/synthesizer ./core/tuning ./core/twin ./core/agent/... ./core/backend/... ./core/control/... ./plugins/wire/... ./plugins/sdk/... ./plugins/host/... ./core/sim/... ./core/metrics/... ./policykit/cells ./policykit/promise ./policykit/queue ./policykit/synergy ./core/coretest/... ./admission/... ./allocation ./placement/... ./elasticity/...

# Prints the packages whose tests hold properties: others do not know rapid's flags. SUITES prints those that run conformance suites.
PROPERTIES := $(GO) list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | awk '/pgregory.net\/rapid/ { print $$1 }'
SUITES := $(GO) list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | awk '/policytest|core\/coretest[] ]/ && !/pgregory.net\/rapid/ { print $$1 }'

# $(call seeded,PACKAGES,FLAGS) runs tests, those that hold properties on the worlds of SEED: a change is to be judged by what it changes. "make slow" draws others.
seeded = @all=$$($(GO) list $(1) | sort) && properties=$$($(PROPERTIES) | sort) && \
	$(GO) test $(2) $$(comm -23 <(echo "$$all") <(echo "$$properties")) && \
	$(GO) test $(2) $$(comm -12 <(echo "$$all") <(echo "$$properties")) -rapid.seed=$(SEED)

# The packages whose tests are held to changes of the code.
PACKAGES ?= ./core ./core/sim ./core/goodput ./placement ./admission ./allocation ./elasticity ./configs ./plugins/host ./core/stats
SAMPLE   ?= 0

FUZZTIME    ?= 30s
SEED        ?= 1
BENCH       ?= .
BENCH_COUNT ?= 10
BENCH_OLD   ?= bench/old.txt
BENCH_NEW   ?= bench/new.txt

.DEFAULT_GOAL := help
.PHONY: flaky help build test synthesize mutants race python optuna torch torch-twenty tune node examples browser slow wire products kills live-forecasts pools faults reality kube kube-down kube-test kube-siege kube-versions kube-speed image forecasts fuzz cover lint staticcheck fmt bench bench-compare results pictures generate verify clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## compile everything
	$(GO) build ./...

test: ## run all tests: those that take minutes, too
	$(call seeded,./...,-timeout=40m)

race: ## run the tests of the pipeline under the race detector
	$(call seeded,$(PIPELINE),-race -timeout=30m)

$(BIN)/python: plugins/python/requirements-dev.txt
	python3 -m venv $@
	$@/bin/pip install -q -r plugins/python/requirements-dev.txt
	@touch $@

python: $(BIN)/python ## run the tests of the Python SDK, of quartet_torch and of their examples
	cd plugins/python && $(BIN)/python/bin/python3 -m pytest -q --ignore-glob='tests/test_torch_*'
	@$(MAKE) --no-print-directory torch
	cd plugins/examples/python-deadline && PYTHONPATH=../../python $(BIN)/python/bin/python3 -m pytest -q
	QUARTET_PYTHON=$(BIN)/python/bin/python3 $(GO) test -count=1 ./plugins/python ./plugins/scaffold
	QUARTET_PYTHON=$(BIN)/python/bin/python3 $(GO) test -count=1 -run='^TestScripts$$/^plugin' ./cmd/quartet

# A Python with Optuna is installed from the package index where QUARTET_OPTUNA names none.
$(BIN)/optuna: plugins/python/requirements-optuna.txt
	python3 -m venv $@
	$@/bin/pip install -q -r plugins/python/requirements-optuna.txt || { rm -rf $@; exit 1; }
	@touch $@

optuna: ## test Optuna as a search; says SKIPPED where it cannot be installed
	@python="$${QUARTET_OPTUNA:-}"; \
	if [ -z "$$python" ] && $(MAKE) --no-print-directory $(BIN)/optuna > /dev/null 2>&1; then python=$(BIN)/optuna/bin/python3; fi; \
	if [ -n "$$python" ]; then \
		(cd plugins/python && "$$python" -m pytest -q tests/test_search_optuna.py); \
		QUARTET_OPTUNA="$$python" $(GO) test -count=1 -short -run='Optuna' ./core/search; \
	else \
		echo "make optuna: SKIPPED: Optuna cannot be installed here, and QUARTET_OPTUNA names no Python that has it; Optuna as a search is not tested"; \
	fi

# A Python with torch and pytest.
QUARTET_TORCH ?= /usr/bin/python3

torch: ## run the tests of quartet_torch; says SKIPPED where QUARTET_TORCH, /usr/bin/python3 by default, lacks torch or pytest
	@if $(QUARTET_TORCH) -c 'import torch, pytest' > /dev/null 2>&1; then \
		(cd plugins/python && OMP_NUM_THREADS=1 $(QUARTET_TORCH) -m pytest -q -rs tests/test_torch_*.py) && \
		QUARTET_TORCH="$$(command -v $(QUARTET_TORCH))" $(GO) test -count=1 -run=TestTorchTrainsTheSame ./examples/trainer; \
	else \
		echo "make torch: SKIPPED: $(QUARTET_TORCH) has no torch or no pytest; quartet_torch is not tested" \
			"(apt install python3-torch python3-pytest python3-sklearn, or QUARTET_TORCH=PYTHON)"; \
	fi

torch-twenty: ## run twenty PyTorch trainings on four declared devices under three policies, and compare with their simulation (some ten minutes)
	$(GO) build -o $(BIN)/quartet ./cmd/quartet
	$(QUARTET_TORCH) plugins/python/tests/torch_twenty.py $(BIN)/quartet

TUNE ?=

tune: ## search for hyper-parameters of real PyTorch trainings, with and without ASHA, Optuna and elasticity (some eleven minutes; TUNE='--epochs 3' for a glance); says SKIPPED for what is not installed
	@if ! $(QUARTET_TORCH) -c 'import torch, sklearn' > /dev/null 2>&1; then \
		echo "make tune: SKIPPED: $(QUARTET_TORCH) has no torch or no scikit-learn (apt install python3-torch python3-sklearn, or QUARTET_TORCH=PYTHON)"; \
	else \
		optuna="$${QUARTET_OPTUNA:-}"; \
		if [ -z "$$optuna" ] && $(MAKE) --no-print-directory $(BIN)/optuna > /dev/null 2>&1 && [ -x $(BIN)/optuna/bin/python3 ]; then optuna=$(BIN)/optuna/bin/python3; fi; \
		$(GO) build -o $(BIN)/quartet ./cmd/quartet && \
		$(QUARTET_TORCH) plugins/python/tests/tune.py $(BIN)/quartet --optuna "$$optuna" $(TUNE); \
	fi

NODE_PLUGIN := plugins/examples/node-shortest

node: ## test the plugin in JavaScript, and run it; says SKIPPED where node or npm is missing
	@missing=; for tool in node npm; do command -v $$tool > /dev/null || missing="$$missing $$tool"; done; \
	if [ -n "$$missing" ]; then \
		echo "make node: SKIPPED: not found:$$missing; the plugin in JavaScript is not tested (install Node.js 20 or later with npm)"; \
	else \
		$(MAKE) --no-print-directory node-plugin; \
	fi

.PHONY: node-plugin
node-plugin:
	cd $(NODE_PLUGIN) && npm ci --silent && npm test --silent && npm run --silent build
	QUARTET_NODE_PLUGIN=$(CURDIR)/$(NODE_PLUGIN)/dist/node-shortest $(GO) test -count=1 ./$(NODE_PLUGIN)
	$(GO) build -o $(BIN)/quartet ./cmd/quartet
	$(BIN)/quartet plugin test $(NODE_PLUGIN)/dist/node-shortest
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	$(BIN)/quartet plugin install --dir "$$folder" $(NODE_PLUGIN)/dist/node-shortest; \
	$(BIN)/quartet simulate -f $(NODE_PLUGIN)/shortest.yaml --plugin-dir "$$folder" --out "$$folder/runs"

examples: ## test the examples that are modules of their own
	cd plugins/examples/go-backfill && $(GO) vet ./... && $(GO) test ./...
	cd examples/embed && $(GO) vet ./... && $(GO) test ./...

AXE_VERSION := 4.14.1

$(BIN)/axe-$(AXE_VERSION).js:
	@mkdir -p $(BIN)/axe
	npm install --silent --no-save --prefix $(BIN)/axe axe-core@$(AXE_VERSION)
	@cp $(BIN)/axe/node_modules/axe-core/axe.min.js $@

browser: $(BIN)/axe-$(AXE_VERSION).js ## open reports in a headless Chromium and look for barriers with axe
	QUARTET_AXE=$(BIN)/axe-$(AXE_VERSION).js $(GO) test -count=1 ./lab/report ./cmd/internal/ui -run='Browser|LivePage' -v

# The tests that start processes, and how often `make flaky` runs them: PACKAGE=PATTERN, where an empty pattern is all tests.
FLAKY_COUNT ?= 20
FLAKY       ?= ./core/agent= ./core/backend/local/keeper= ./core/backend/local= ./core/control= ./core/search=External ./examples/trainer= \
	./internal/interrupt= ./plugins/host= ./plugins/python= \
	'./lab/study=^TestKilledStudyGoesOn$$' \
	'./cmd/quartet=^(TestThePolicyIsKilled|TestHandOver|TestNothingToHandOverTo|TestSignalsAreHandedOver|TestPluginFaults|TestTuningIsKilled)$$' \
	'./cmd/quartet=^(TestSharedDevicesThroughTheWire|TestAPluginBuiltBeforeWorks|TestAPluginBuiltBeforeSharesKnowsWholeDevices)$$' \
	'./cmd/quartet=^TestTimelineOfRealProcesses$$|^TestFollow|^TestScripts$$/^(killed|operate|pools|reload|run|shares_run|signals)$$'

flaky: ## run the tests that start processes 20 times beside busy loops, one a core (FLAKY_COUNT=3 FLAKY=./core/agent=Token for a part)
	@loops=; trap 'kill $$loops 2> /dev/null || true' EXIT; \
	for core in $$(seq $$(getconf _NPROCESSORS_ONLN)); do (while :; do :; done) & loops="$$loops $$!"; done; \
	failed=; \
	for test in $(FLAKY); do \
		package=$${test%%=*}; pattern=$${test#*=}; \
		echo "$(FLAKY_COUNT) x $$package $$pattern"; \
		out=$$($(GO) test -count=$(FLAKY_COUNT) -timeout=60m -run="$$pattern" $$package 2>&1) || { echo "$$out" | grep -v '^ok'; failed="$$failed $$package"; }; \
	done; \
	if [ -n "$$failed" ]; then echo "flaky:$$failed"; exit 1; fi

slow: ## run the properties at length, a thousand random worlds each, and measure the intervals of statistics
	CORETEST_WORLDS=1000 CORETEST_SEED=0 $(GO) test -count=1 -timeout=30m $$($(PROPERTIES)) -rapid.checks=1000
	CORETEST_WORLDS=1000 CORETEST_SEED=0 $(GO) test -count=1 -timeout=30m $$($(SUITES))
	$(GO) test -count=1 -timeout=30m ./core/stats -run=Measured -full
	@$(MAKE) --no-print-directory wire

wire: ## hold plugins to the built-ins at length: up to 10,000 jobs of each shipped config, and conformance in more worlds (QUARTET_DATA; some five minutes)
	$(GO) test -count=1 -timeout=30m ./cmd/quartet -run='^(TestSameBytesThroughTheWire|TestConformanceThroughTheWire)$$' -wire.all

products: ## try every allocation with every placement, elasticity and way of sharing devices: 27,360 compositions, some three minutes
	$(GO) test -count=1 -timeout=30m ./test/acceptance/products -products.all -v

kills: ## kill schedulers of real processes 200 times each way (SEED=1), those of searches 20 times, and damage stores at length
	$(GO) test -count=1 -timeout=30m ./core/backend/local -run='IsKilled|Damaged' -v -local.kills=200 -local.seed=$(SEED) -local.damages=400
	$(GO) test -count=1 -timeout=30m ./cmd/quartet -run=TuningIsKilled -v -tuning.kills=20 -tuning.seed=$(SEED)

upgrade: ## resume runs that the programs of earlier versions began, and back (VERSIONS=TAG,COMMIT): some two minutes a version that is not built yet
	$(GO) test -count=1 -timeout=60m ./test/upgrade -v -upgrade $(if $(VERSIONS),-upgrade.versions=$(VERSIONS))

live-forecasts: ## compare the ends that runs of 40 paced jobs forecast with what happened (SEED=1): some 5 minutes
	$(GO) test -count=1 -timeout=30m ./cmd/quartet -run='TestLiveForecasts' -v -forecast.jobs=40 -forecast.speedup=20 -forecast.seed=$(SEED)

pools: ## open and close device slots of this machine below real trainings: some 30 seconds
	$(GO) test -count=1 -timeout=10m ./core/backend/local -run='TestPools$$|TrainingsInAPool' -v -local.pools

faults: ## every fault of a plugin in every stage, simulated and run, and 500 random sequences of them (SEED=1): some 30 minutes
	$(GO) test -count=1 -timeout=90m ./cmd/quartet -run='TestPluginFault' -faults.all -faults.sequences=500 -faults.seed=$(SEED)

reality: ## hold the simulator against paced trainings: some 15 minutes
	$(GO) run ./tools/reality

KUBE_NODES   ?= 8
KUBE_DEVICES ?= 8

kube: ## start a Kubernetes control plane with simulated nodes, and print its kubeconfig (KUBE_NODES=8, KUBE_DEVICES=8)
	@$(GO) run ./tools/kube up -bin $(BIN)/controlplane -dir $(BIN)/kube -nodes $(KUBE_NODES) -devices $(KUBE_DEVICES)

kube-down: ## end that control plane
	@$(GO) run ./tools/kube down -dir $(BIN)/kube

# Its tests mostly wait, so that many run side by side.
kube-test: $(HELM) ## build the control plane, and run the tests that need one
	$(GO) run ./tools/kube build -bin $(BIN)/controlplane
	QUARTET_CONTROLPLANE=$(BIN)/controlplane QUARTET_HELM=$(HELM) $(GO) test -count=1 -p=2 -parallel=8 -timeout=20m ./internal/kubecluster ./internal/kubetrainee ./tools/kube ./core/backend/kube/...
	QUARTET_CONTROLPLANE=$(BIN)/controlplane $(GO) test -count=1 -run='^(TestCluster|TestNewcomer)$$' ./cmd/quartet-kubernetes

kube-siege: ## kill schedulers on Kubernetes 200 times (SEED=1), stop its store, and run 100 gangs that do not fit, beside kube-scheduler: some 40 minutes
	$(GO) run ./tools/kube build -bin $(BIN)/controlplane
	$(GO) build -o $(BIN)/quartet-kubernetes ./cmd/quartet-kubernetes
	QUARTET_CONTROLPLANE=$(BIN)/controlplane $(GO) test -count=1 -timeout=90m ./core/backend/kube -run='^(TestLeadersAreKilled|TestStoreStops|TestGangsThatDoNotFit)$$' -v \
		-kube.kills=200 -kube.stopped=30s -kube.stops=3 -kube.busy=48 -kube.seed=$(SEED) -kube.program=$(BIN)/quartet-kubernetes -kube.gangs=100 -kube.compare=1m

kube-versions: ## have the program of another commit (OLD=REVISION) take over from this one, and back
	$(GO) run ./tools/kube build -bin $(BIN)/controlplane
	$(GO) build -o $(BIN)/quartet-kubernetes ./cmd/quartet-kubernetes
	rm -rf $(BIN)/old && mkdir $(BIN)/old && git archive $(OLD) | tar -x -C $(BIN)/old
	cd $(BIN)/old && $(GO) build -o ../quartet-old ./cmd/quartet$$(test ! -d cmd/quartet-kubernetes || echo -kubernetes) && rm -rf $(BIN)/old
	QUARTET_CONTROLPLANE=$(BIN)/controlplane $(GO) test -count=1 -timeout=30m ./core/backend/kube -run='^TestTakeoverByAnother$$' -v -kube.program=$(BIN)/quartet-old,$(BIN)/quartet-kubernetes

kube-speed: ## pods a second on 1,000 simulated nodes, by Quartet and by kube-scheduler in turns: some 20 minutes on a machine of its own
	$(GO) run ./tools/kube build -bin $(BIN)/controlplane
	$(GO) build -o $(BIN)/kubespeed ./tools/kubespeed
	$(BIN)/kubespeed -bin $(BIN)/controlplane

$(HELM): tools/manifests/go.mod
	cd tools/manifests && CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o $@ helm.sh/helm/v3/cmd/helm

VERSION ?= 0.0.0

image: ## build an OCI image without a daemon into .bin/image (VERSION=0.0.0)
	@mkdir -p $(BIN)/image
	@for arch in amd64 arm64; do CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GO) build -trimpath -ldflags='-s -w' -o $(BIN)/image/quartet-$$arch ./cmd/quartet-kubernetes || exit; done
	cd tools/image && $(GO) run . -o $(BIN)/image -version $(VERSION) -revision $$(git rev-parse HEAD) linux/amd64=$(BIN)/image/quartet-amd64 linux/arm64=$(BIN)/image/quartet-arm64

mutants: ## change the code in one place at a time and list the changes that no test notices (PACKAGES, SAMPLE=0)
	$(GO) run ./tools/mutants -sample $(SAMPLE) -known tools/mutants/survivors.txt $(PACKAGES)

fuzz: ## fuzz every target for FUZZTIME (30s)
	@.ci/fuzz $(FUZZTIME)

cover: ## write coverage.out and print the total
	$(GO) test -coverprofile=coverage.out -coverpkg=./... ./...
	$(GO) tool cover -func=coverage.out | tail -n 1

lint: $(GOLANGCI_LINT) ## run golangci-lint
	$(GOLANGCI_LINT) run ./...

staticcheck: $(STATICCHECK) ## run staticcheck
	$(STATICCHECK) ./...

fmt: $(GOFUMPT) ## format all Go files
	$(GOFUMPT) -w $$(git ls-files -co --exclude-standard '*.go')

bench: ## run the benchmarks matching BENCH, results into BENCH_NEW
	@mkdir -p $(dir $(BENCH_NEW))
	$(GO) test -run='^$$' -bench='$(BENCH)' -benchmem -count=$(BENCH_COUNT) ./... | tee $(BENCH_NEW)

bench-compare: $(BENCHSTAT) ## compare BENCH_OLD with BENCH_NEW
	$(BENCHSTAT) $(BENCH_OLD) $(BENCH_NEW)

results: ## measure the reproductions again and write the tables of docs/results (ONLY=NAME,NAME; KEEP=DIR keeps runs)
	$(GO) build -o $(BIN)/quartet ./cmd/quartet
	$(GO) run ./tools/results -quartet $(BIN)/quartet -write docs/results $(if $(ONLY),-only $(ONLY)) $(if $(KEEP),-keep $(KEEP))

forecasts: ## measure how forecasts of published workloads hold, and write the tables (QUARTET_DATA; some ten minutes)
	$(GO) test -count=1 -timeout=60m ./core/twin -run='^TestForecastsOfPublishedWorkloads$$' -v -forecasts.write=$(CURDIR)/docs/results/forecasts.md

synthesize: ## measure the choice between twelve compositions on twenty workloads, with and without errors of declared work, and write its table (QUARTET_DATA; some ten minutes of two processors)
	$(GO) test -count=1 -timeout=120m ./internal/engine -run='^TestSynthesizerStudy$$' -v -synthesize.write=$(CURDIR)/docs/results/synthesizer.md

pictures: ## draw the pictures of the docs (QUARTET_DATA, for those of pools)
	$(GO) test -count=1 ./cmd/quartet -run='^TestPicture' -update

generate: $(PROTOC_GEN_GO) $(PROTOC_GEN_GO_GRPC) ## write what is generated
	PROTOC_GEN_GO=$(PROTOC_GEN_GO) PROTOC_GEN_GO_GRPC=$(PROTOC_GEN_GO_GRPC) $(GO) generate ./...

verify: generate ## fail when something generated, formatted or tidied differs from what is checked in
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not gofmt-ed: $$unformatted"; exit 1; }
	$(GO) mod verify
	git diff --exit-code

clean: ## remove tools and results
	rm -rf $(BIN) bench coverage.out

# install puts package $(1) at version $(2) to file $@.
define install
	@mkdir -p $(BIN)
	GOBIN=$(BIN) $(GO) install $(1)@$(2)
	@mv $(BIN)/$(notdir $(1)) $@
endef

$(GOLANGCI_LINT):
	$(call install,github.com/golangci/golangci-lint/v2/cmd/golangci-lint,$(GOLANGCI_LINT_VERSION))

$(STATICCHECK):
	$(call install,honnef.co/go/tools/cmd/staticcheck,$(STATICCHECK_VERSION))

$(GOFUMPT):
	$(call install,mvdan.cc/gofumpt,$(GOFUMPT_VERSION))

$(BENCHSTAT):
	$(call install,golang.org/x/perf/cmd/benchstat,$(BENCHSTAT_VERSION))

$(PROTOC_GEN_GO):
	$(call install,google.golang.org/protobuf/cmd/protoc-gen-go,$(PROTOC_GEN_GO_VERSION))

$(PROTOC_GEN_GO_GRPC):
	$(call install,google.golang.org/grpc/cmd/protoc-gen-go-grpc,$(PROTOC_GEN_GO_GRPC_VERSION))
