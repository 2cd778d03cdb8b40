#!/usr/bin/env bash
# Runs the benchmarks on servers of its own; "make bench" calls it.
#
#	bench/run.sh                        all, about 35 minutes, into bench/results
#	BENCH_SCENARIOS="distinct one" BENCH_ROUNDS=1 BENCH_SECONDS=1 bench/run.sh
#	BENCH_OUT_DIR=dir                   where results go instead
#	DELAY=2ms                           how much longer a round trip takes between
#	                                    clients and ZooKeeper or etcd, and between
#	                                    their servers (needs root)
#
# A run of some scenarios, or with a delay, goes to bench/partial.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$here/../dev/lib.sh"

out=$here/results
[ -z "${BENCH_SCENARIOS:-}${DELAY:-}" ] || out=$here/partial
out=${BENCH_OUT_DIR:-$out}

version_of() {
	dpkg-query -W -f='${Version}' "$1" | sed 's/-.*//'
}

# Runs this script again where the network is that slow.
run_delayed() {
	local each_way program
	[[ $DELAY =~ ^[0-9.]+ms$ ]] || die "DELAY is like 2ms, not $DELAY"
	each_way=$(awk -v ms="${DELAY%ms}" 'BEGIN { print int(ms * 500) }')
	program=$(mktemp)
	gcc -O2 -Wall -Wextra -o "$program" "$here/delay.c"
	if ! "$program" "$each_way" true; then
		rm "$program"
		say "skipped: DELAY needs root, and a kernel with tun devices and policy routing"
		exit 0
	fi
	DELAY_PROGRAM=$program ZKLOCK_SETUP=no exec "$program" "$each_way" "$0"
}

[ "${ZKLOCK_SETUP:-yes}" = no ] || "$here/../dev/setup.sh" bench
if [ -n "${DELAY_PROGRAM:-}" ]; then
	rm "$DELAY_PROGRAM"
elif [ -n "${DELAY:-}" ]; then
	run_delayed
fi
choose_user
make_work_dir bench
trap 'exit 130' INT
# However this script ends, what it runs ends, too: bench.pl stops its servers.
run_by=(setpriv --pdeathsig TERM --)
say "working in $work as user $run_user"
copy_sources "$here/.."
copy_postgres
say "building for $("$PG_CONFIG" --version)"
# pgbench runs nothing that PostgreSQL would compile.
build_and_install with_llvm=no

export BENCH_DIR=$work/bench
java=/usr/share/java
classpath=$(printf "$java/%s.jar:" curator-recipes curator-framework \
	curator-client guava zookeeper zookeeper-jute slf4j-api)
as_user "$work" mkdir "$BENCH_DIR"
as_user "$work" cp "$work/src/bench/kazoobench.py" "$BENCH_DIR/"
as_user "$work" javac -d "$BENCH_DIR" -cp "$classpath" "$work/src/bench/CuratorBench.java"
as_user "$work" gcc -O2 -Wall -Wextra -o "$BENCH_DIR/rawclient" \
	"$work/src/bench/rawclient.c" -lzookeeper_st
as_user "$work" gcc -O2 -Wall -Wextra -I"$("$PG_CONFIG" --includedir)" \
	-o "$BENCH_DIR/pgclient" "$work/src/bench/pgclient.c" -lpq
go=/usr/share/gocode
if command -v etcd go >/dev/null && [ -d $go/src/go.etcd.io/etcd/clientv3 ]; then
	as_user "$work" env GO111MODULE=off GOPATH=$go GOCACHE="$work/go" \
		go build -o "$BENCH_DIR/etcdbench" "$work/src/bench/etcdbench.go"
	with_etcd=", etcd $(version_of etcd-server)"
else
	say "skipped: etcd, which is not here, or not version 3.4 with its Go packages"
fi

prepare_perl 60 test/perl test/chaos bench
export BENCH_OUT=$work/results.csv

# What the machine is, by its size only
describe_run() {
	printf 'Measured on %s processors with %s GB of memory, shared by all servers and clients; ' \
		"$(nproc)" "$(awk '/^MemTotal/ { printf "%.0f", $2 / 1048576 }' /proc/meminfo)"
	[ -z "${DELAY:-}" ] || printf 'a round trip over the network takes %s longer; ' "$DELAY"
	printf 'PostgreSQL %s, ZooKeeper %s, Curator %s, kazoo %s%s; ' \
		"$("$PG_CONFIG" --version | sed 's/PostgreSQL \([0-9.]*\).*/\1/')" \
		"$(version_of zookeeper)" "$(version_of libcurator-recipes-java)" \
		"$(version_of python3-kazoo)" "${with_etcd:-}"
	printf '%s rounds, %s s each after %s s of warm-up.\n' "${BENCH_ROUNDS:-5}" \
		"${BENCH_SECONDS:-2}" "${BENCH_WARMUP:-1}"
}

status=0
as_user "$work" perl "$work/src/bench/bench.pl" || status=$?
if [ $status = 0 ]; then
	mkdir -p "$out"
	cp "$BENCH_OUT" "$out/results.csv"
	describe_run >"$out/machine.txt"
	perl -I"$here" "$here/report.pl" "$out" || status=$?
fi
if [ $status = 0 ] && [ -z "${KEEP:-}" ]; then
	rm -rf "$work"
	say "results: $out/benchmarks.md"
else
	echo "logs: $work/tmp_check/log"
	[ -n "${KEEP:-}" ] || rm -rf "$work/pg"
fi
exit $status
