# What people do with this project. CONTRIBUTING.md says more.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

SOURCES := Sources Tests Benchmarks Package.swift
# What is tried against the built program after the other Swift tests: three at a time, since most of them wait most of the
# time; the longest first.
SUITES := EndToEndTests Cluster Contract Documents Console Monitoring Clients Deploy Upstream Tracing Lab
# Why: docs/decisions/0010-release-linking.md, 0012-exclusivity-checks.md and 0013-allocator.md.
RELEASE := -c release --static-swift-stdlib -Xswiftc -cross-module-optimization \
	-Xswiftc -enforce-exclusivity=unchecked \
	-Xswiftc -use-ld=lld -Xlinker --icf=safe -Xlinker -z -Xlinker pack-relative-relocs -Xlinker --no-export-dynamic \
	-Xlinker -lmimalloc

# Names what failed by the lines of a log that say so, or by its end where none does: pattern, log, whose log it is.
what_failed = echo; echo "What failed$(if $(3), in $(3)):"; grep -a '$(1)' $(2) || tail -n 20 $(2)

# Names the Swift tests that had begun and never ended, if there are any.
unended = awk -F '"' '/^◇ Test "/ { begun[$$2] } /^(✔|✘) Test "/ { delete begun[$$2] } \
	END { for (test in begun) print "did not end: " test }' $(1)

.PHONY: help
help: ## Show this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

.PHONY: run
run: ## Start a gateway with an emulated FCM on this machine (ARGS="--port 9000")
	@scripts/install-system-packages build
	swift build --product fcm-gateway
	swift build --product fcm-gateway-dev
	exec .build/debug/fcm-gateway-dev dev $(ARGS)

.PHONY: build
build: ## Build the program as it is deployed: .build/release/fcm-gateway
	@scripts/install-system-packages build
	swift build $(RELEASE) --product fcm-gateway

.PHONY: build-dev
build-dev: ## Build the fake FCM and the gateway to try: .build/release/fcm-gateway-dev
	@scripts/install-system-packages build
	swift build $(RELEASE) --product fcm-gateway-dev

.PHONY: install
install: ## Install what `make build` made, with its user and its systemd unit, as root (DESTDIR=)
	install -D -s -m 755 .build/release/fcm-gateway $(DESTDIR)/usr/bin/fcm-gateway.new
	mv $(DESTDIR)/usr/bin/fcm-gateway.new $(DESTDIR)/usr/bin/fcm-gateway
	install -D -m 644 deploy/systemd/fcm-gateway.service $(DESTDIR)/usr/lib/systemd/system/fcm-gateway.service
	install -D -m 644 deploy/systemd/sysusers.conf $(DESTDIR)/usr/lib/sysusers.d/fcm-gateway.conf
	install -D -m 644 deploy/systemd/tmpfiles.conf $(DESTDIR)/usr/lib/tmpfiles.d/fcm-gateway.conf
ifeq ($(DESTDIR),)
	systemd-sysusers fcm-gateway.conf
	if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
endif

.PHONY: build-bench
build-bench: build build-dev ## Build what `make bench` measures
	swift build $(RELEASE) --product Micro

# A test that has begun should go on soon, so only so many begin at once; where one hangs all the same, it is named.
.PHONY: test
test: ## Run all functional tests; with ARGS="--filter FCMModelTests" some of the Swift tests
	@scripts/install-system-packages build test
	@mkdir -p .build
	@SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=16 Tests/supervised 3000 stdbuf -oL swift test $(or $(ARGS),--skip EndToEndTests) 2>&1 | tee .build/test.log || \
		{ $(call what_failed,^✘\|error:,.build/test.log); $(call unended,.build/test.log); exit 1; }
ifeq ($(strip $(ARGS)),)
	@rm -f .build/*.failed; \
	printf '%s\n' $(SUITES) | xargs -P 3 -I SUITE bash -c 'SECONDS=0; \
		Tests/SUITE/run >.build/SUITE.log 2>&1 || touch .build/SUITE.failed; \
		cat .build/SUITE.log; echo "Tests/SUITE/run: $$SECONDS s"'; \
	for suite in $(SUITES); do \
		if [ -e .build/$$suite.failed ]; then \
			$(call what_failed,^FAIL: \|^ERROR: \|^✘,.build/$$suite.log,Tests/$$suite/run); \
			$(call unended,.build/$$suite.log); \
		fi; \
	done; \
	[ -z "$$(ls .build/*.failed 2>/dev/null)" ]
endif

.PHONY: fuzz
fuzz: ## Try a million inputs on each parser (ARGS="--target strict-json --runs 100000000")
	@scripts/install-system-packages build
	@Tests/FuzzTests/run $(ARGS)

.PHONY: bench
bench: ## Measure the gateway beside nginx and HAProxy and write Benchmarks/results (ARGS="--rounds 3")
	@scripts/install-system-packages build bench
	Benchmarks/load/run $(ARGS)

.PHONY: bench-replicas
bench-replicas: build-bench ## Measure what PostgreSQL and Redis cost beside the embedded default (ARGS="--before PROGRAM")
	@scripts/install-system-packages build bench
	Benchmarks/replicas/run $(ARGS)

.PHONY: bench-batches
bench-batches: build build-dev ## Measure batches and asynchronous messages (ARGS="--only live --output FILE")
	@scripts/install-system-packages build bench
	Benchmarks/batches/run $(ARGS)

.PHONY: faults
faults: build build-dev ## Play the faults that the gateway survives, and write docs/fault-matrix.md (ARGS="upstream_hang")
	@scripts/install-system-packages faults
	Tests/Faults/run --program .build/release/fcm-gateway $(ARGS)

.PHONY: container
container: build build-dev docs ## Run the steps of deploy/Dockerfile in a clean system and try the image, as root (ARGS="--from-source")
	@scripts/install-system-packages container
	Tests/Deploy/container $(ARGS)

.PHONY: docs
docs: ## Build the manual and the API reference as pages in .build/docs
	@scripts/install-system-packages docs
	python=$$(scripts/python-environment docs/manual manual); "$$python" scripts/manual

.PHONY: dist
dist: build docs ## Make what is installed: archive, Debian package, image files, chart, sums (ARGS="--version 1.2.3")
	@scripts/install-system-packages dist
	python=$$(scripts/python-environment Tests/Dist dist); "$$python" scripts/dist $(if $(filter dist-test,$(MAKECMDGOALS)),,$(ARGS))

.PHONY: dist-test
dist-test: dist build-dev ## Try what `make dist` makes in a clean Debian, and the chart, as root (ARGS="test_chart")
	@scripts/install-system-packages container
	Tests/Dist/run $(ARGS)

.PHONY: format
format: ## Format all Swift source
	swift format --in-place --parallel --recursive $(SOURCES)

.PHONY: lint
lint: ## Run the checks that need no build
	@export PYTHONDONTWRITEBYTECODE=1; \
	.ci/checks/imports.py --self-test; \
	.ci/checks/doc_comments.py --self-test; \
	.ci/checks/bounded_waits.py --self-test; \
	.ci/checks/names.py --self-test; \
	.ci/checks/prose.py --self-test; \
	failed=(); \
	for check in format imports.py doc_comments.py file_length.py size.py names.py prose.py bounded_waits.py vectors tracked_files \
		openapi readme; do \
		echo "check $$check"; \
		".ci/checks/$$check" || failed+=("$$check"); \
	done; \
	if [ $${#failed[@]} -gt 0 ]; then echo "failed: $${failed[*]}" >&2; exit 1; fi

.PHONY: clean
clean: ## Remove build products; what `make run` keeps in var/ stays
	rm -rf .build
