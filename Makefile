# Every target that a person calls has a `##` comment; `make help` prints those.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS   += --no-print-directory

GO        ?= go
FUZZTIME  ?= 5s
BENCHTIME ?= 1s
BENCH     ?= .
TOOLS     := test/tools/go.mod
RACE      := ./engine/... ./wasm/... ./host/... ./showcase/... ./cmd/...

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: all
all: fmt-check vet lint test build ## check, test and build

.PHONY: build
build: ## build both commands into bin/
	$(GO) build -o bin/ ./cmd/...

.PHONY: test
test: ## run all tests
	$(GO) test ./...

.PHONY: race
race: ## run the tests under the race detector, in short mode
	$(GO) test -race -short $(RACE)

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (5s)
	@found=0; \
	while IFS=: read -r file func; do \
		found=$$((found+1)); echo "fuzz $$(dirname $$file) $$func $(FUZZTIME)"; \
		$(GO) test -run='^$$' -fuzz="^$$func\$$" -fuzztime=$(FUZZTIME) -fuzzminimizetime=10x "./$$(dirname $$file)" </dev/null; \
	done < <(git ls-files '*_test.go' | xargs grep -HoE '^func Fuzz[A-Za-z0-9_]+' | sed 's/func //'); \
	test $$found -gt 0 || { echo "no fuzz target found: the listing in the Makefile is broken" >&2; exit 1; }

.PHONY: mutate
mutate: ## break the engine in small ways and fail for each that no test notices (MUTATE='-n 100 -policy')
	$(GO) run ./test/mutate $(MUTATE)

.PHONY: soak
soak: ## 64 callers for a minute with swaps, dying guests and a changing fleet; prints what it saw
	$(GO) test -count=1 -run='^TestSoak$$' -v ./host -soak=60s

.PHONY: bench
bench: ## run the benchmarks (BENCH=regexp BENCHTIME=1s), then every policy natively, as a guest and against an empty call
	$(GO) test -run='^$$' -bench='$(BENCH)' -benchtime=$(BENCHTIME) -benchmem ./...
	$(GO) run ./cmd/wasmhost bench --all

.PHONY: baseline
baseline: ## time everything anew (7 minutes, on a quiet machine) and write bench/baseline.json and the tables in the docs
	$(GO) run ./cmd/wasmhost bench --all --rounds 300 --json > bench/baseline.new
	mv bench/baseline.new bench/baseline.json
	$(GO) test -count=1 -run=FiguresInTheDocs ./test -update

.PHONY: bench-once
bench-once: ## run every benchmark once, to see that it still works
	$(GO) test -short -run='^$$' -bench=. -benchtime=1x ./...

.PHONY: fmt
fmt: ## format the Go files
	gofmt -w $$(git ls-files '*.go')

.PHONY: fmt-check
fmt-check: ## fail if a Go file is not formatted
	@bad=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$bad" || { echo "not formatted (run make fmt):"; echo "$$bad"; exit 1; }

.PHONY: vet
vet: ## go vet, natively and for the guest's target
	$(GO) vet ./...
	GOOS=wasip1 GOARCH=wasm $(GO) vet ./engine/... ./wasm/...

.PHONY: lint
lint: ## staticcheck, pinned in test/tools; .golangci.yml serves those who have golangci-lint
	$(GO) tool -modfile=$(TOOLS) staticcheck ./...

.PHONY: vuln
vuln: ## look every module's calls up in the database of known vulnerabilities; says so where it cannot be reached
	@out=$$(mktemp); trap 'rm -f $$out' EXIT; $(GO) build -modfile=$(TOOLS) -o $$out golang.org/x/vuln/cmd/govulncheck; \
	git ls-files 'go.mod' '**/go.mod' | grep -v tools | xargs -n 1 dirname | while read -r dir; do \
		echo "module $$dir"; \
		if ! text=$$(cd $$dir && GOWORK=off $$out ./... 2>&1); then \
			if grep -q 'fetching vulnerabilities' <<<"$$text"; then \
				echo "not checked: $$text"; exit 0; fi; \
			echo "$$text"; exit 1; fi; \
	done

.PHONY: generate
generate: ## regenerate the pages' Go code from the templates
	@for dir in $$(git ls-files '*.templ' | xargs -n 1 dirname | sort -u); do \
		(cd $$dir && $(GO) tool -modfile=$(CURDIR)/$(TOOLS) templ generate -log-level=warn); \
	done

.PHONY: generate-check
generate-check: ## fail if a generated file is not what its template gives
	@before=$$(git ls-files -co --exclude-standard '*_templ.go' | xargs -r sha256sum); \
	$(MAKE) generate; \
	after=$$(git ls-files -co --exclude-standard '*_templ.go' | xargs -r sha256sum); \
	test "$$before" = "$$after" || { echo "generated files were out of date: commit what make generate gives"; exit 1; }

.PHONY: wasm
wasm: ## rebuild the embedded module and its digest
	$(GO) test -count=1 -run=Artifact ./test -update

.PHONY: wasm-verify
wasm-verify: ## rebuild the module and compare it with the committed one
	$(GO) test -count=1 -run=Artifact ./test

.PHONY: modules
modules: ## vet and test every nested module on its own, without a workspace
	@while read -r mod; do \
		dir=$$(dirname $$mod); echo "module $$dir"; \
		if [ -z "$$(cd $$dir && GOWORK=off $(GO) list ./... 2>/dev/null)" ]; then \
			(cd $$dir && GOWORK=off $(GO) mod verify); continue; fi; \
		(cd $$dir && GOWORK=off $(GO) vet ./... && GOWORK=off $(GO) test ./...); \
	done < <(git ls-files 'go.mod' '**/go.mod' | grep -vx go.mod)

.PHONY: demo
demo: ## compare the policies on real replicas, about 25 s
	$(GO) run ./cmd/wasmhost demo

.PHONY: showcase
showcase: ## serve the page on 127.0.0.1:8080
	$(GO) run ./cmd/showcase

CI_STEPS := fmt-check vet lint vuln generate-check wasm-verify test race fuzz bench-once modules

.PHONY: ci
ci: ## everything a change must pass, each step timed
	@before=$$(git status --porcelain); \
	for step in $(CI_STEPS); do \
		echo "== $$step"; start=$$SECONDS; $(MAKE) $$step; echo "== $$step: $$((SECONDS-start)) s"; \
	done; \
	after=$$(git status --porcelain); \
	test "$$before" = "$$after" || { echo "the run changed the tree:"; echo "$$after"; exit 1; }; \
	echo "== tree unchanged; all steps passed in $$SECONDS s"
