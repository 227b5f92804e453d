# What one can do here. `make` alone lists it.
SHELL := /bin/bash
export PATH := $(PATH):$(or $(CARGO_HOME),$(HOME)/.cargo)/bin

WORKLOADS := host pubsub path orders queue pipeline clients
# Of these, what is measured over brokers too.
BROKERED := pubsub queue
# Redis, NATS, RabbitMQ and Kafka for one command, which finds them by TICKPATH_REDIS and so on.
BROKERS := scripts/brokers run --
BARE := cargo cc c++
# Kafka's client is C, its own build makes its C++ wrapper along with it, and its TLS is OpenSSL's.
BUILD := $(BARE) libssl
TEST := $(BUILD) redis-benchmark python3 node npm go chromium mvn javac strace ip
FUZZ_TARGETS := log_reader recording journal_record session venue_line lanes
FUZZ_SECONDS := 20
STATIC := $(shell uname -m)-unknown-linux-musl

# Two measurements at once would measure each other.
.NOTPARALLEL:
.PHONY: help demo bench bench-peers peers-java test-peers peers-page measure figures pages book docs test check lint soak crash-proof bus-proof redis-versions miri fuzz fuzz-build dist wheel release test-aarch64 clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' Makefile | expand -t 18

demo: ## the path on this machine, with and without a broker, and where the time goes
	@scripts/needs $(BARE)
	@scripts/needs redis-server || echo 'The demo goes on without the broker.'
	cargo run --profile demo --no-default-features -p tickpath-cli -- demo

bench: $(addprefix bench-,$(WORKLOADS)) ## measure this machine: results/WORKLOAD.json and .html

bench-%:
	@scripts/needs $(BUILD)
	@mkdir -p results
	cargo build --release -p tickpath-cli
	$(if $(filter $*,$(BROKERED)),$(BROKERS)) cargo run --release -p tickpath-cli -- \
	    bench $* --json results/$*.json --html results/$*.html

# PEERS=--quick takes some three minutes, PEERS='--only aeron' one of them.
bench-peers: ## other people's systems in turn with ours: results/peers.json, most of an hour, the machine left alone
	@scripts/needs $(BUILD)
	@mkdir -p results
	$(MAKE) peers-java
	TICKPATH_COMMIT=$$(git describe --always --abbrev=12 --dirty --exclude='*') \
	    cargo build --release --manifest-path peers/Cargo.toml
	peers/target/release/tickpath-peers bench --json results/peers.json $(PEERS)

peers-java: ## compile the peers in Java; Maven fetches their libraries
	@scripts/needs mvn javac
	mvn -B -q -f peers/java/pom.xml dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/peers/java/target/lib
	javac -d peers/java/target/classes -cp 'peers/java/target/lib/*' peers/java/src/main/java/tickpath/*.java

test-peers: ## format and tests of peers/, a workspace of its own; ZeroMQ is compiled as C++
	@scripts/needs $(BARE)
	cargo fmt --manifest-path peers/Cargo.toml --check
	cargo test --manifest-path peers/Cargo.toml

peers-page: ## keep results/peers.json, if there is one, in docs/results, and make docs/peers.md from what is kept
	@scripts/needs $(BUILD)
	@mkdir -p results
	if [ -f results/peers.json ]; then cargo run -p tickpath-lab-tools -- keep results/peers.json; fi
	zcat docs/results/peers.json.gz >results/peers-kept.json
	cargo run --release --manifest-path peers/Cargo.toml -- page results/peers-kept.json >results/peers.md
	mv results/peers.md docs/peers.md

measure: ## what history and durability cost the OMS: restart, snapshots, the disk, a second process that follows
	@scripts/needs $(BUILD)
	cargo build --release -p tickpath-oms-runtime --example measure
	for what in restart snapshot disk follow; do target/release/examples/measure $$what || exit; done

figures: ## measure what docs/figures.md and docs/reproduced.md say: about an hour, with the machine left alone
	@scripts/needs $(TEST)
	cargo build --release -p tickpath-cli
	cargo build -p tickpath-lab-tools
	scripts/figures
	$(MAKE) pages

pages: ## make the pages whose figures are measured, from docs/results
	@scripts/needs $(BUILD)
	cargo run -p tickpath-lab-tools

# pip asks for nothing that is there already, so that a second run needs no network.
book: ## tutorial, guides and reference as pages that need no network, a dead link being an error: target/book/index.html
	@scripts/needs python3
	python3 -m venv target/book-tools
	target/book-tools/bin/pip install -q --disable-pip-version-check --only-binary :all: --require-hashes \
	    -r python/requirements-book.txt
	NO_MKDOCS_2_WARNING=1 target/book-tools/bin/mkdocs build --strict

# The name of the target before there was a book.
docs: book

# Found by the tests of the crate fix.
test soak: export TICKPATH_QUICKFIX_DEFINITIONS = $(CURDIR)/target/quickfix/source/test/definitions/server
test: ## all tests, then the models of the lock-free parts
	@scripts/needs $(TEST)
	scripts/quickfix-definitions
	$(BROKERS) scripts/tests
	RUSTFLAGS='--cfg loom' cargo test -p tickpath-log --lib --release --target-dir target/loom loom

check: ## every fault that the instrument must report, injected one by one; the machine has to be left alone
	@scripts/needs $(BUILD)
	@scripts/needs redis-server
	cargo run --release -p tickpath-cli -- check --quiet

lint: ## format, clippy and documentation, warnings being errors
	@scripts/needs $(BUILD)
	cargo fmt --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy -p tickpath-bus --no-default-features -- -D warnings
	cargo clippy -p tickpath-recordings --no-default-features -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps

soak: ## all tests, optimised, with the long searches
	@scripts/needs $(TEST)
	scripts/quickfix-definitions
	TICKPATH_SOAK=1 $(BROKERS) cargo test --workspace --release --no-fail-fast

crash-proof: ## docs/crash-proof.md: what survives which crash, counted over 10,000 seeds of the simulation
	@scripts/needs $(BUILD)
	TICKPATH_SEEDS=10000 TICKPATH_CRASH_PROOF=$(CURDIR)/docs/crash-proof.md \
	    cargo test -p tickpath-oms-runtime --test sim -- --exact seeds --nocapture

bus-proof: ## docs/bus-proof.md: what is lost or doubled when brokers, publishers and subscribers are killed, counted
	@scripts/needs $(BUILD) redis-server nats-server rabbitmq-server java mvn
	scripts/brokers run kafka -- scripts/bus-proof

redis-versions: ## the tests of redis:// against Valkey 9 and Redis 6.2, from their Python packages
	@scripts/needs $(BUILD)
	scripts/redis-versions

# The emulator runs each test program, and the tests start themselves anew by it. Left out is the one test of locks that
# needs a process to know when it was started: the emulator answers with a time of its own, a tick or two later.
test-aarch64: export TICKPATH_EMULATOR := qemu-aarch64 -L /usr/aarch64-linux-gnu
test-aarch64: export TICKPATH_SEEDS := 10
test-aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER = $(TICKPATH_EMULATOR)
test-aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER := aarch64-linux-gnu-gcc
test-aarch64: ## the tests of the log, the core and the runtime for 64-bit ARM, emulated
	@scripts/needs cargo cc qemu-aarch64 aarch64-linux-gnu-gcc
	rustup target add aarch64-unknown-linux-gnu
	cargo test --target aarch64-unknown-linux-gnu --target-dir target/aarch64 \
	    -p tickpath-log -p tickpath-oms-core -p tickpath-oms-runtime --lib --tests \
	    -- --skip locks::closing_a_lock_file_frees_no_lock

miri: ## the log's protocol, run by an interpreter that knows the memory model (nightly)
	@scripts/nightly miri
	MIRIFLAGS='-Zmiri-disable-isolation' cargo +nightly miri test -p tickpath-log --lib heap

# As many readers at once as there are processors, each of them taking one. 255 is how xargs is told to begin no other.
fuzz: fuzz-build ## hostile bytes to every reader, FUZZ_SECONDS each (nightly)
	printf '%s\n' $(FUZZ_TARGETS) | xargs -P "$$(nproc)" -I TARGET sh -c \
	    'cargo +nightly fuzz run TARGET -- -verbosity=0 -print_funcs=0 -max_total_time=$(FUZZ_SECONDS) || exit 255'

fuzz-build:
	@scripts/nightly fuzz
	cargo +nightly fuzz build

# CC compiles the C that goes into the binary, HOST_CC what runs during the build. Kafka's client heeds nothing but CC;
# compiled for the system's own C library, it would ask for functions that musl does not have.
# OpenSSL is built along with it.
dist: ## one static binary and its checksum in dist/
	@scripts/needs $(BUILD) strip musl-gcc
	rustup target add $(STATIC)
	CC=musl-gcc HOST_CC=cc LIBZ_SYS_STATIC=1 \
	    cargo build --release --target $(STATIC) --target-dir target --features vendored-tls -p tickpath-cli
	@mkdir -p dist
	strip -o dist/tickpath target/$(STATIC)/release/tickpath
	@if readelf -d dist/tickpath | grep NEEDED; then echo 'dist/tickpath is not static' >&2; exit 1; fi
	cd dist && sha256sum tickpath | tee tickpath.sha256

wheel: ## dist/tickpath-*.whl, for Python 3.11 and later, with the command, which installs without Rust
	@scripts/needs $(BUILD) python3
	python3 -m venv target/maturin && target/maturin/bin/pip install -q --disable-pip-version-check 'maturin>=1.9,<2'
	cargo build --profile wheel --features vendored-tls -p tickpath-cli
	mkdir -p target/wheel-data/scripts && cp target/wheel/tickpath target/wheel-data/scripts/
	target/maturin/bin/maturin build --features vendored-tls --out dist

release: ## archives and wheels for x86_64 and aarch64, SBOM, release notes and checksums in dist/: about an hour
	scripts/release $(ARCHITECTURES)

clean: ## remove all that was built or measured
	rm -rf target fuzz/target peers/target peers/java/target dist results
