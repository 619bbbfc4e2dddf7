# All recipes for developers. CI runs the same ones.
.PHONY: run static release check test lint docs kubernetes memcheck miri explore crashes storm links failovers cluster-failovers cluster-partitions cluster-moves backups simulate simulate-cluster mutants mutants-of-rights fuzz bench lab results site sizing peers peers-newest oracle suite update differential differential-clients differential-valkey

# A server on the usual port; options as in redis.conf: make run OPTIONS="--port 7000".
run:
	cargo build --release --package dunlin
	exec $${CARGO_TARGET_DIR:-target}/release/dunlin serve $(OPTIONS)

# One binary that needs no library and no file but its data: target/static/dunlin. The recipe then starts
# it in an empty root directory.
STATIC_TARGET = $(shell rustc -vV | sed -n 's/^host: //p')
static: peers
	RUSTFLAGS="-C target-feature=+crt-static" \
		cargo build --release --package dunlin --target $(STATIC_TARGET)
	mkdir -p $${CARGO_TARGET_DIR:-target}/static
	cp $${CARGO_TARGET_DIR:-target}/$(STATIC_TARGET)/release/dunlin $${CARGO_TARGET_DIR:-target}/static/
	PATH="$$(cd $${CARGO_TARGET_DIR:-target} && pwd)/peers/trixie/bin:$$PATH" \
		scripts/check-static $${CARGO_TARGET_DIR:-target}/static/dunlin

# All files of a release, in target/release-VERSION: docs/releases.md says what they are, and how to make one.
# It takes a clean tree, and builds with the profile that takes long.
release:
	scripts/install-peers release
	scripts/make-release

# The quick tier: needs nothing but Rust and a C compiler, installs nothing, and takes a few minutes. The
# transcripts' expectations are the reference's answers, so no reference has to run.
check:
	cargo fmt --all --check
	cargo clippy --profile ci --workspace --all-targets -- -D warnings
	cargo build --profile ci --package dunlin
	cargo test --profile ci --workspace --lib --bins --quiet
	TARGET=dunlin cargo test --profile ci --workspace --test suite --test tidy --quiet

# All tests. The server binary and the tests share one profile, so that the dependencies are built
# once. Random tests begin with the same seeds each time, so that a failure comes from the change and not
# from the seed; `make explore` looks for failures with other seeds.
test: peers
	cargo build --profile ci --package dunlin
	SEED=1 SECONDS=8 PROPTEST_RNG_SEED=1 scripts/with-failures scripts/run-tests
	cd explore && cargo test --quiet

# The random tests with new seeds, for longer, and threads in more orders.
explore: peers
	cargo build --profile ci --package dunlin
	SECONDS=60 PROPTEST_CASES=2000 cargo test --profile ci --workspace --no-fail-fast
	cd explore && DUNLIN_SCHEDULES=20000 DUNLIN_SEED=$$(date +%s) cargo test -- --nocapture

# Kills the process CRASHES times in each mode of appendfsync, at instants that SEED chooses, and checks
# that every acknowledged write is there: make crashes CRASHES=500 SEED=7. A hundred take some minutes.
crashes: CRASHES ?= 100
crashes:
	cargo build --profile ci --package dunlin
	DUNLIN_CRASHES=$(CRASHES) DUNLIN_SEED=$(or $(SEED),1) \
		cargo test --profile ci --package tests --test crash

# Clients of all kinds work on a process that is stopped, killed and started again, on a disk that is
# slow, full or failing at times. A checker looks for writes that were lost, torn, stale or done twice,
# and for clients that were kept waiting: make storm SECONDS=3600 SEED=7. The files of a failure are
# kept, and the report says where. Full disks need the right to mount, slow and failing ones need strace;
# without these the rest is done. Between these lives come squalls, which look for one kind of mistake each:
# make storm SQUALL=yielding lets one kind blow again and again. DUNLIN_BIN names another binary to try.
storm: SECONDS ?= 600
storm:
	cargo build --profile ci --package dunlin
	DUNLIN_STORM=$(SECONDS) DUNLIN_SEED=$(or $(SEED),1) $(if $(SQUALL),DUNLIN_SQUALL=$(SQUALL)) \
		cargo test --profile ci --package tests --test storm -- --nocapture nothing_goes_wrong_in_a_storm

# Cuts, delays and splits the links between primaries and replicas, of all servers that are there, CUTS times
# each, while clients write, and kills replicas as often: make links CUTS=200 SEED=7.
links: CUTS ?= 200
links: peers
	cargo build --profile ci --package dunlin
	DUNLIN_CUTS=$(CUTS) DUNLIN_RESTARTS=$(CUTS) DUNLIN_SEED=$(or $(SEED),1) \
		cargo test --profile ci --package tests --test links --test chains -- --nocapture

# Kills primaries under three real Sentinels, COUNT times each for this server and for redis-server, and says
# how long writes were missing and that none was lost which a replica had acknowledged. 20 take four minutes.
failovers: COUNT ?= 20
failovers: peers
	cargo build --profile ci --package dunlin
	DUNLIN_FAILOVERS=$(COUNT) \
		cargo test --profile ci --package tests --test sentinel -- --ignored --nocapture many_failovers

# Kills the primary of a shard of three nodes COUNT times, with a real etcd, and says how long nobody took writes:
# make cluster-failovers COUNT=50.
cluster-failovers: COUNT ?= 50
cluster-failovers: peers
	cargo build --profile ci --package dunlin
	DUNLIN_FAILOVERS=$(COUNT) \
		cargo test --profile ci --package tests --test cluster_failover -- --ignored --nocapture many_failovers

# Parts nodes of a cluster from each other, from etcd and from clients COUNT times, while clients write at quorum, and
# stops and kills nodes: COUNT times by proxies, and as often on machines of their own in network namespaces, for which
# it needs root, or namespaces of users. A judge looks for an order of what clients have done and seen:
# make cluster-partitions COUNT=200 SEED=7. A hundred of each take some five minutes. The history of a failure is kept,
# and the report says where.
cluster-partitions: COUNT ?= 200
cluster-partitions: peers
	cargo build --profile ci --package dunlin
	DUNLIN_PARTITIONS=$(COUNT) DUNLIN_SEED=$(or $(SEED),1) \
		cargo test --profile ci --package tests --test cluster_partitions -- --nocapture no_partition

# Moves slots between two shards COUNT times while clients write, and kills or stops primaries of either side, etcd or
# the command at a random moment of each move: make cluster-moves COUNT=30 SEED=7.
cluster-moves: COUNT ?= 30
cluster-moves: peers
	cargo build --profile ci --package dunlin
	DUNLIN_MOVES=$(COUNT) \
		cargo test --profile ci --package tests --test cluster_operations -- --ignored --nocapture killed_many_times

# Backs up servers of all kinds under random writers while backups and servers are killed, and restores COUNT
# positions in all, which have to be exactly what the server had there: make backups COUNT=200 SEED=7.
backups: COUNT ?= 200
backups: peers
	cargo build --profile ci --package dunlin
	DUNLIN_BACKUPS=$(COUNT) DUNLIN_SEED=$(or $(SEED),1) \
		cargo test --profile ci --package tests --test backup -- --nocapture positions

# The server in simulated worlds, with virtual time: make simulate SEED=7 HOURS=2 goes through the seeds from 7
# on until so many virtual hours have passed, with one server and then with replicas. HOURS=0 plays one world
# of each kind, as it was before: a seed gives the same world again as long as the sources are the same.
# WORLDS=among plays those with replicas alone, WORLDS=in_a the others. DUNLIN_TRACE names a file for all that
# happens.
simulate: HOURS ?= 1
simulate:
	cargo build --profile ci --package dunlin
	DUNLIN_HOURS=$(HOURS) DUNLIN_SEED=$(or $(SEED),1) \
		cargo test --profile ci --package tests --test simulate -- nothing_goes_wrong$(if $(WORLDS),_$(WORLDS))

# Whole clusters from one seed: the machine that decides is the real one, and etcd, clocks, links and data are
# models that go wrong: make simulate-cluster RUNS=100000 SEED=7. A thousand take about six seconds.
simulate-cluster: RUNS ?= 10000
simulate-cluster:
	DUNLIN_RUNS=$(RUNS) DUNLIN_SEED=$(or $(SEED),1) \
		cargo test --profile ci --config profile.ci.package.cluster.opt-level=3 --package cluster --lib \
		-- --nocapture nothing_goes_wrong a_quorum_keeps_writes

# Do simulated worlds still show defects that are put back on purpose? Builds the server once for each.
mutants:
	scripts/mutants

# Puts defects into the checks of rights and into TLS, with a switch for each, and says which test finds each.
mutants-of-rights:
	scripts/mutants-of-rights

# A fuzzer invents input for the readers of files, payloads, requests and rules, and looks for input that takes
# new paths through the code: make fuzz FUZZ_SECONDS=600 FUZZ_TARGETS=restore. It keeps such input in
# fuzz/corpus and goes on from there the next time. Input that fails is in fuzz/artifacts, and
# `cd fuzz && RUSTC_BOOTSTRAP=1 cargo fuzz run TARGET FILE` plays it again. The first build takes minutes.
#
# The address sanitizer is an unstable option of the compiler, hence RUSTC_BOOTSTRAP. Inputs are small,
# because large ones differ only in their buffers, and libFuzzer tries more small ones in a second;
# requests may be longer than an argument with an allocation of its own. Nothing legitimate takes a second
# or an allocation of more than 16 MB (for an argument that is announced as large), so 5 seconds and
# 64 MB are failures. The process may be larger, because the sanitizer keeps freed memory.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= rdb_file restore aof_file aof_manifest check request http_request link acl_rules \
	lua_json lua_msgpack lua_struct lua_pattern
FUZZ_OPTIONS = -max_total_time=$(FUZZ_SECONDS) -timeout=5 -malloc_limit_mb=64 -rss_limit_mb=1024 \
	-dict=dictionary -print_final_stats=1
fuzz:
	@command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz
	cd fuzz && cargo run --quiet --package seeds -- corpus
	cd fuzz && for target in $(FUZZ_TARGETS); do \
		case $$target in aof_file | request | http_request) longest=40000 ;; *) longest=8192 ;; esac; \
		RUSTC_BOOTSTRAP=1 cargo fuzz run $$target -- $(FUZZ_OPTIONS) -max_len=$$longest || exit 1; \
	done

# Only these crates are checked for the other kind of processor: the rest needs a C compiler for it. An
# older toolchain may lack that processor's library; then rustup adds it. If rustup cannot, lint skips the
# check and says so: it is the only part of lint that needs the network. Nothing but `make fuzz` builds the
# fuzzers, and the explorer comes last in `make test`, so lint checks that what they call is still there.
OTHER_PROCESSOR = aarch64-unknown-linux-gnu
WITHOUT_C = base config resp store rdb etcd http replication engine
lint:
	cargo fmt --all --check
	cd fuzz && cargo fmt --all --check
	cd explore && cargo fmt --check
	cargo clippy --profile ci --workspace --all-targets -- -D warnings
	cd fuzz && cargo check --quiet --workspace
	cd explore && cargo check --quiet --all-targets
	@if test -d "$$(rustc --print sysroot)/lib/rustlib/$(OTHER_PROCESSOR)/lib" || \
		timeout 300 rustup target add $(OTHER_PROCESSOR); then \
		cargo check --target $(OTHER_PROCESSOR) $(addprefix --package ,$(WITHOUT_C)); \
	else \
		echo "lint: not checked for $(OTHER_PROCESSOR): its library is missing and could not be fetched" >&2; \
	fi

# Rewrites the documents that the program prints. A failed build leaves them as they were.
docs:
	cargo build --profile ci --package dunlin
	cd $${CARGO_TARGET_DIR:-target}/ci && ./dunlin docs compatibility > COMPATIBILITY.md
	mv $${CARGO_TARGET_DIR:-target}/ci/COMPATIBILITY.md docs/COMPATIBILITY.md

# The documents as a site with search, in target/site. A broken link is an error.
site: peers
	scripts/make-site

# Measures the bytes per item of docs/sizing.md again, and writes them there and into the page's calculator.
sizing: peers
	cargo build --release --package dunlin
	$${CARGO_TARGET_DIR:-target}/peers/python/bin/python scripts/measure-sizing \
		$${CARGO_TARGET_DIR:-target}/release/dunlin --write

# Writes the manifests of deploy/kubernetes, and those that the tests compare with, from the chart.
kubernetes: peers
	scripts/render-kubernetes write

# The store's tests under valgrind, because most unsafe code is there. Valgrind finds reads of memory that
# was freed or never written, and leaks. Random tests take few cases, because valgrind is slow.
MEMCHECK = ["valgrind", "--quiet", "--error-exitcode=1", "--leak-check=full", \
	"--show-leak-kinds=definite,indirect", "--errors-for-leak-kinds=definite,indirect"]
memcheck: peers
	PROPTEST_CASES=8 cargo test --profile ci --package store --lib \
		--config 'target."cfg(all())".runner = $(MEMCHECK)'

# The store's tests of threads, and those of the journal's blocks, under Miri, which finds orderings that
# are too weak for other processors, and accesses that are not allowed even if they do no harm. Takes minutes.
MIRI = a_reader_without_the_lock sums_are_never_torn that_comes_after_the_walkers_end
miri:
	rustup toolchain install nightly --profile minimal --component miri --component rust-src
	MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-permissive-provenance" \
		cargo +nightly miri test --package store --lib -- $(MIRI)
	MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-permissive-provenance" \
		cargo +nightly miri test --package engine --lib -- journal::block

# Measures the server, Redis 7.0 and 8.0 and Valkey on this machine: processor time per request and memory
# per item, each with its goal. make bench BENCH_ARGS="--quick --only set"; --help lists the options.
bench: peers-newest
	cargo build --release --package dunlin
	DUNLIN_BIN=$$(cd $${CARGO_TARGET_DIR:-target} && pwd)/release/dunlin DUNLIN_PEERS=sid \
		cargo run --quiet --profile ci --package tests --bin bench -- $(BENCH_ARGS)

# Runs experiments of the lab with Dunlin, the servers of Debian and the services in examples/:
# make lab EXPERIMENTS="api-read api-departments" LAB_ARGS="--full". docs/lab.md lists the experiments.
EXPERIMENTS ?= all
lab: peers
	cargo build --release --package dunlin
	target=$$(cd $${CARGO_TARGET_DIR:-target} && pwd) && \
		PATH="$$target/peers/trixie/bin:$$target/peers/go/bin:$$PATH" \
		"$$target/release/dunlin" lab run $(EXPERIMENTS) $(LAB_ARGS)

# docs/results anew, in about three quarters of an hour: make results EXPERIMENTS="api-read snapshot" measures these
# alone. Nothing else may run on the machine.
results: peers-newest
	cargo build --release --package dunlin
	scripts/measure-results $(filter-out all,$(EXPERIMENTS))

peers:
	@scripts/install-peers

# Fetches Debian's newest Redis and Valkey, and Redis 7.0. `make bench` compares them too if they are there.
peers-newest:
	@scripts/install-peers newest

# Plays the transcripts against the reference server only: are the expectations still its answers?
oracle: peers
	TARGET=reference cargo test --profile ci --package tests --test suite

# One family, or all sections whose name contains FAMILY: make suite FAMILY=zset
suite: peers
	cargo test --profile ci --package tests --test suite -- "$(FAMILY)"

# Rewrites the expectations of these sections from the reference server.
update: peers
	UPDATE=1 cargo test --profile ci --package tests --test suite -- "$(FAMILY)"

# Random commands and scripts to both servers; SEED=n replays one run, SECONDS=n runs longer.
differential: peers
	cargo test --profile ci --package tests --test differential --test random_scripts

# The same with three clients in turn, which wait for each other, listen and close connections.
differential-clients: peers
	cargo test --profile ci --package tests --test differential -- --ignored "several clients"

# The same for commands that only Valkey 9.1 has, compared with the newest Valkey.
differential-valkey: peers-newest
	cargo test --profile ci --package tests --test differential -- Valkey
