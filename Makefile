# What one can do here. `make` alone lists it.
SHELL := /bin/bash
export PATH := $(PATH):$(or $(CARGO_HOME),$(HOME)/.cargo)/bin

WORKLOADS := host pubsub path orders
FUZZ_TARGETS := log_reader recording journal_record
FUZZ_SECONDS := 20
STATIC := $(shell uname -m)-unknown-linux-musl

# Two measurements at once would measure each other.
.NOTPARALLEL:
.PHONY: help demo bench test lint soak miri fuzz dist clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /make \1\t/p' Makefile | expand -t 14

demo: ## the path on this machine, with and without a broker, and where the time goes
	@scripts/needs cargo cc
	@scripts/needs redis-server || echo 'The demo goes on without the broker.'
	cargo run --release -p tickpath-cli -- demo

bench: $(addprefix bench-,$(WORKLOADS)) ## measure this machine: results/WORKLOAD.json and .html

bench-%:
	@scripts/needs cargo cc
	@mkdir -p results
	cargo run --release -p tickpath-cli -- bench $* --json results/$*.json --html results/$*.html

test: ## all tests, then the models of the lock-free parts
	@scripts/needs cargo cc redis-server
	cargo test --workspace --no-fail-fast
	RUSTFLAGS='--cfg loom' cargo test -p tickpath-log --lib --release --target-dir target/loom loom

lint: ## format, clippy and documentation, warnings being errors
	@scripts/needs cargo cc
	cargo fmt --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps

soak: ## all tests, optimised, with the long searches
	@scripts/needs cargo cc redis-server
	TICKPATH_SOAK=1 cargo test --workspace --release --no-fail-fast

miri: ## the log's protocol, run by an interpreter that knows the memory model (nightly)
	@scripts/nightly miri
	MIRIFLAGS='-Zmiri-disable-isolation' cargo +nightly miri test -p tickpath-log --lib heap

fuzz: ## hostile bytes to every reader, FUZZ_SECONDS each (nightly)
	@scripts/nightly fuzz
	for target in $(FUZZ_TARGETS); do cargo +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) || exit; done

dist: ## one static binary and its checksum in dist/
	@scripts/needs cargo cc strip
	rustup target add $(STATIC)
	cargo build --release --target $(STATIC) --target-dir target -p tickpath-cli
	@mkdir -p dist
	strip -o dist/tickpath target/$(STATIC)/release/tickpath
	@if readelf -d dist/tickpath | grep NEEDED; then echo 'dist/tickpath is not static' >&2; exit 1; fi
	cd dist && sha256sum tickpath | tee tickpath.sha256

clean: ## remove all that was built or measured
	rm -rf target fuzz/target dist results
