# zklock: a loadable module, and zklock_session, the program that its worker
# starts and that alone links the ZooKeeper client.

PG_CONFIG ?= pg_config

EXTENSION = zklock
DATA = $(wildcard sql/zklock--*.sql)
PGFILEDESC = "zklock - distributed locks through ZooKeeper"

MODULE_big = zklock
SESSION_SOURCES = $(sort $(wildcard src/session/*.c))
OBJS = $(patsubst %.c,%.o,$(filter-out $(SESSION_SOURCES),\
	$(sort $(wildcard src/*.c src/*/*.c))))

SESSION = zklock_session
SESSION_OBJS = $(SESSION_SOURCES:.c=.o)
SESSION_LIBS = -lzookeeper_st

PG_CPPFLAGS = -I$(srcdir)/src
# What is not meant for PostgreSQL stays out of its namespace: from 16 on PGXS
# sees to that, 15 leaves it to us (see ZKL_FUNCTION in compat.h).
PG_CFLAGS = -fvisibility=hidden -MMD -MP
ifneq ($(filter 15.%,$(shell $(PG_CONFIG) --version)),)
PG_CPPFLAGS += -DPGDLLEXPORT='__attribute__((visibility("default")))'
endif

# Both start a server of their own, which takes a user other than root.
REGRESS = install arguments arrays bounds privileges unreachable lifetimes barriers semaphores revoke once
REGRESS_OPTS = --encoding=UTF8 --no-locale --temp-instance=tmp_check_regress \
	--temp-config=$(srcdir)/test/regress.conf
ISOLATION = timeouts
ISOLATION_OPTS = --inputdir=$(srcdir)/test --outputdir=output_iso \
	--temp-instance=tmp_check_iso \
	--temp-config=$(srcdir)/test/regress.conf
TAP_TESTS = 1
PROVE_TESTS = test/t/*.pl

EXTRA_CLEAN = $(SESSION) $(SESSION_OBJS) $(OBJS:.o=.d) $(SESSION_OBJS:.o=.d) \
	tmp_check_regress tmp_check_iso output_iso

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

all: $(SESSION)

$(SESSION): $(SESSION_OBJS) src/wire/wire.o
	$(CC) $(CFLAGS) $^ $(LDFLAGS) $(LDFLAGS_EX) $(SESSION_LIBS) -o $@

# Without the server's headers, so that it cannot come to depend on them
$(SESSION_OBJS): %.o: %.c
	$(CC) $(CFLAGS) -MMD -MP -I$(srcdir)/src -c -o $@ $<

# The compiler notes which headers each object needs.
-include $(OBJS:.o=.d) $(SESSION_OBJS:.o=.d)
$(OBJS:.o=.bc): %.bc: %.o

install: install-session
install-session: $(SESSION) installdirs
	$(INSTALL_PROGRAM) $(SESSION) '$(DESTDIR)$(pkglibdir)/$(SESSION)'

uninstall: uninstall-session
uninstall-session:
	rm -f '$(DESTDIR)$(pkglibdir)/$(SESSION)'

# The core alone: no PostgreSQL, no ZooKeeper
unit:
	$(MAKE) -C test/unit

# What of the core they and SEEDS schedules of the simulation reach
coverage:
	$(srcdir)/dev/coverage.sh $(SEEDS)

# All sources in PostgreSQL's layout; static analysis of what needs no server
format:
	$(srcdir)/dev/format.sh

lint:
	$(srcdir)/dev/lint.sh

# Servers, clients and an ensemble, simulated: SEEDS=100000, SEED=1 (the first)
simulate:
	$(MAKE) -C test/sim build/sim
	test/sim/build/sim -s $(or $(SEED),1) -n $(or $(SEEDS),20000) -j $$(nproc)

# A thousand servers without faults: what they ask of ZooKeeper, about three
# minutes, into docs/scale.md; "make scale-report" only writes the page again.
scale:
	$(MAKE) -C test/sim build/scale
	perl $(srcdir)/bench/scale-runs.pl $(srcdir)/test/sim/build/scale \
		$(srcdir)/docs/benchmarks/scale.csv
	perl $(srcdir)/bench/scale-report.pl $(srcdir)/docs

scale-report:
	perl $(srcdir)/bench/scale-report.pl $(srcdir)/docs

# Real servers and random faults: MINUTES=60, SEED=1, TEETH=1 (see the script)
chaos:
	MINUTES=$(MINUTES) SEED=$(SEED) TEETH=$(TEETH) $(srcdir)/test/chaos/run.sh

# How fast locks go on, as a table
liveness:
	$(srcdir)/test/chaos/run.sh liveness

# zklock beside other clients, into docs/benchmarks.md: SCENARIOS="one try" (the
# first letters of some), ROUNDS=5, SECONDS=2; "make bench-report" only writes
# the page again, from the results that are there.
bench:
	BENCH_SCENARIOS='$(SCENARIOS)' BENCH_ROUNDS=$(ROUNDS) \
		BENCH_SECONDS=$(SECONDS) $(srcdir)/bench/run.sh

# zklock with other numbers than it is shipped with
bench-policy:
	$(srcdir)/bench/policy.sh

bench-report:
	perl $(srcdir)/bench/report.pl $(srcdir)/docs

# What batches, sessions, watches and znodes cost a real ZooKeeper server
capacity:
	$(srcdir)/bench/capacity.sh

.PHONY: bench bench-policy bench-report capacity chaos coverage format lint \
	liveness install-session scale scale-report simulate uninstall-session unit
