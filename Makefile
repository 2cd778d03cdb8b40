# zklock: a loadable module; zklock_session, the program that its worker starts and
# that alone links the ZooKeeper client; and zklock-run, a client of PostgreSQL.

PG_CONFIG ?= pg_config

# The sources: "." here, or a path if make runs elsewhere (make -f .../Makefile)
sources := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
files = $(patsubst $(sources)/%,%,$(sort $(wildcard $(addprefix $(sources)/,$(1)))))

EXTENSION = zklock zklock_advisory zklock_fence
DATA = $(call files,$(EXTENSION:%=sql/%--*.sql))
DOCS = CHANGELOG.md $(call files,docs/*.md)
PGFILEDESC = "zklock - distributed locks through ZooKeeper"

MODULE_big = zklock
SESSION_SOURCES = $(call files,src/session/*.c)
RUN_SOURCES = $(call files,src/run/*.c)
OBJS = $(patsubst %.c,%.o,$(filter-out $(SESSION_SOURCES) $(RUN_SOURCES),\
	$(call files,src/*.c src/*/*.c)))

SESSION = zklock_session
SESSION_OBJS = $(SESSION_SOURCES:.c=.o)
SESSION_LIBS = -lzookeeper_st

RUN = zklock-run
RUN_OBJS = $(RUN_SOURCES:.c=.o)
LIBPQ_CPPFLAGS := -I$(shell $(PG_CONFIG) --includedir)
LIBPQ := -L$(shell $(PG_CONFIG) --libdir) -lpq

# TLS to ZooKeeper needs OpenSSL; "make WITHOUT_OPENSSL=1" leaves it out.
ifndef WITHOUT_OPENSSL
TLS_CPPFLAGS = -DZKLOCK_OPENSSL
TLS_CFLAGS := $(shell pkg-config --cflags openssl)
SESSION_LIBS += $(shell pkg-config --libs openssl)
endif

PG_CPPFLAGS = -I$(srcdir)/src $(TLS_CPPFLAGS)
# What is not meant for PostgreSQL stays out of its namespace: from 16 on PGXS
# sees to that, 15 leaves it to us (see ZKL_FUNCTION in compat.h).
PG_CFLAGS = -fvisibility=hidden -MMD -MP
ifneq ($(filter 15.%,$(shell $(PG_CONFIG) --version)),)
PG_CPPFLAGS += -DPGDLLEXPORT='__attribute__((visibility("default")))'
endif

# "make installcheck" asks a running server that preloads zklock; a ZooKeeper is
# not needed, and if there is one, nothing is locked there.
REGRESS = install arguments multilocks bounds privileges barriers semaphores leaders once rights
REGRESS_OPTS = --encoding=UTF8 --no-locale

# With OWN_SERVERS=yes it starts servers, for which it needs a user other than
# root: those tests, some that need certain settings, and the TAP tests, for
# which Debian's ZooKeeper must be installed.
ifdef OWN_SERVERS
REGRESS += settings unreachable lifetimes
REGRESS_OPTS += --temp-instance=tmp_check_regress \
	--temp-config=$(srcdir)/test/regress.conf
ISOLATION = timeouts
ISOLATION_OPTS = --inputdir=$(srcdir)/test --outputdir=output_iso \
	--temp-instance=tmp_check_iso \
	--temp-config=$(srcdir)/test/regress.conf
TAP_TESTS = 1
PROVE_TESTS = test/t/*.pl
endif

EXTRA_CLEAN = $(SESSION) $(SESSION_OBJS) $(OBJS:.o=.d) $(SESSION_OBJS:.o=.d) \
	$(RUN) $(RUN_OBJS) $(RUN_OBJS:.o=.d) \
	tmp_check_regress tmp_check_iso output_iso tmp_check

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# Names such as install.md are not for the folder of all extensions.
docmoduledir = extension/zklock

# For prove, which runs in the folder of the sources
override PROVE_FLAGS += -I $(abspath $(srcdir))/test/perl

# In another directory: make would take objects from among the sources.
ifneq ($(abspath $(srcdir)),$(CURDIR))
ifneq ($(wildcard $(addprefix $(srcdir)/,$(OBJS) $(SESSION_OBJS) $(RUN_OBJS))),)
$(error there are object files in $(srcdir): run "make clean" there first)
endif
$(shell mkdir -p $(sort $(dir $(OBJS) $(SESSION_OBJS) $(RUN_OBJS))))
endif

all: $(SESSION) $(RUN)

$(SESSION): $(SESSION_OBJS) src/wire/wire.o
	$(CC) $(CFLAGS) $^ $(LDFLAGS) $(LDFLAGS_EX) $(SESSION_LIBS) -o $@

# Without the server's headers, so that it cannot come to depend on them
SESSION_CPPFLAGS = $(filter-out -I$(includedir_server) -I$(includedir_internal),$(CPPFLAGS))
$(SESSION_OBJS): %.o: %.c
	$(CC) $(CFLAGS) $(SESSION_CPPFLAGS) $(TLS_CFLAGS) -c -o $@ $<

$(RUN): $(RUN_OBJS)
	$(CC) $(CFLAGS) $^ $(LDFLAGS) $(LDFLAGS_EX) $(LIBPQ) -o $@

$(RUN_OBJS): %.o: %.c
	$(CC) $(CFLAGS) $(SESSION_CPPFLAGS) $(LIBPQ_CPPFLAGS) -c -o $@ $<

# The compiler notes which headers each object needs.
-include $(OBJS:.o=.d) $(SESSION_OBJS:.o=.d) $(RUN_OBJS:.o=.d)
$(OBJS:.o=.bc): %.bc: %.o

install: install-programs
install-programs: $(SESSION) $(RUN) installdirs
	$(MKDIR_P) '$(DESTDIR)$(bindir)'
	$(INSTALL_PROGRAM) $(SESSION) '$(DESTDIR)$(pkglibdir)/$(SESSION)'
	$(INSTALL_PROGRAM) $(RUN) '$(DESTDIR)$(bindir)/$(RUN)'

uninstall: uninstall-programs
uninstall-programs:
	rm -f '$(DESTDIR)$(pkglibdir)/$(SESSION)' '$(DESTDIR)$(bindir)/$(RUN)'
	rm -rf '$(DESTDIR)$(docdir)/$(docmoduledir)'

# What is committed, as PGXN and Debian take it: zklock-1.0.0.zip and .tar.gz
DIST = zklock-$(shell sed -n 's/^   "version": "\(.*\)",/\1/p' $(srcdir)/META.json)
dist:
	git -C $(srcdir) archive --format=zip --prefix=$(DIST)/ HEAD >$(DIST).zip
	git -C $(srcdir) archive --format=tar.gz --prefix=$(DIST)/ HEAD >$(DIST).tar.gz

# The core alone: no PostgreSQL, no ZooKeeper
unit:
	$(MAKE) -C $(srcdir)/test/unit

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
	$(MAKE) -C $(srcdir)/test/sim build/sim
	$(srcdir)/test/sim/build/sim -s $(or $(SEED),1) -n $(or $(SEEDS),20000) -j $$(nproc)

# The same, steered by what of the core is reached, for MINUTES=10; takes clang, see
# dev/setup.sh.  What it finds is a file in test/sim/build/found/, to be run as
# "test/sim/build/plain FILE".
fuzz:
	$(MAKE) -C $(srcdir)/test/sim build/fuzz build/plain
	mkdir -p $(srcdir)/test/sim/build/found $(srcdir)/test/sim/build/corpus
	$(srcdir)/test/sim/build/fuzz -max_total_time=$$(($(or $(MINUTES),10) * 60)) \
		-max_len=1032 -len_control=0 -timeout=60 \
		-artifact_prefix=$(srcdir)/test/sim/build/found/ \
		$(srcdir)/test/sim/build/corpus $(srcdir)/test/sim/corpus

# The reader of datagrams from other servers, likewise
fuzz-peer:
	$(MAKE) -C $(srcdir)/test/unit build/fuzz_peer
	cd $(srcdir)/test/unit/build && ./fuzz_peer -max_len=100 \
		-max_total_time=$$(($(or $(MINUTES),1) * 60))

# A thousand servers without faults: what they ask of ZooKeeper, about three
# minutes, into bench/results; "make scale-report" only writes the page again.
scale:
	$(MAKE) -C $(srcdir)/test/sim build/scale
	perl $(srcdir)/bench/scale-runs.pl $(srcdir)/test/sim/build/scale \
		$(srcdir)/bench/results/scale.csv
	perl $(srcdir)/bench/scale-report.pl $(srcdir)/bench/results

scale-report:
	perl $(srcdir)/bench/scale-report.pl $(srcdir)/bench/results

# Real servers and random faults: MINUTES=60, SEED=1, TEETH=1 (see the script)
chaos:
	MINUTES=$(MINUTES) SEED=$(SEED) TEETH=$(TEETH) $(srcdir)/test/chaos/run.sh

# Sessions that run into deadlocks across servers again and again: MINUTES=10, SEED=1
deadlock-storm:
	MINUTES=$(or $(MINUTES),10) SEED=$(SEED) ZKLOCK_TEST_LIMIT=100000 \
		$(srcdir)/dev/test.sh tap 245

# How fast locks go on, as a table
liveness:
	$(srcdir)/test/chaos/run.sh liveness

# zklock beside other clients, into bench/results: SCENARIOS="one try" (the first
# letters of some, into bench/partial), ROUNDS=5, SECONDS=2, DELAY=2ms (more for a round
# trip over the network, into bench/partial); "make bench-report" only writes the page and
# the pictures again, from the results that are there.
bench:
	BENCH_SCENARIOS='$(SCENARIOS)' BENCH_ROUNDS=$(ROUNDS) \
		BENCH_SECONDS=$(SECONDS) DELAY=$(DELAY) $(srcdir)/bench/run.sh

# zklock with other numbers than it is shipped with
bench-policy:
	$(srcdir)/bench/policy.sh

bench-report:
	perl $(srcdir)/bench/report.pl $(srcdir)/bench/results

# What batches, sessions, watches and znodes cost a real ZooKeeper server
capacity:
	$(srcdir)/bench/capacity.sh

# How long deadlocks across servers last, as a table
deadlock-bench:
	$(srcdir)/bench/deadlocks.sh

.PHONY: bench bench-policy bench-report capacity chaos coverage deadlock-bench \
	deadlock-storm dist format fuzz fuzz-peer lint liveness install-programs scale scale-report \
	simulate uninstall-programs unit
