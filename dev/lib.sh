# shellcheck shell=bash
# Shared by the scripts in dev/; to be sourced by bash.
#
# PostgreSQL refuses to run as root, and nothing here may touch the system's
# PostgreSQL.  So the scripts work in a temporary directory that belongs to an
# unprivileged user: it gets a copy of the sources and a private copy of the
# PostgreSQL programs, into which the extension is installed.  PostgreSQL
# finds all its files relative to its programs, so a copy is complete.

started_at=$(date +%s)

say() {
	printf '[%3d s] %s\n' $(($(date +%s) - started_at)) "$*"
}

die() {
	printf 'error: %s\n' "$*" >&2
	exit 1
}

# Runs a command as root.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "this needs root, and there is no sudo: $*"
	fi
}

# The user that runs servers: oneself, or for root "postgres".
choose_user() {
	if [ "$(id -u)" != 0 ]; then
		run_user=$(id -un)
	else
		run_user=${ZKLOCK_USER:-postgres}
		id "$run_user" >/dev/null 2>&1 ||
			useradd --system --shell /bin/sh "$run_user"
	fi
}

# The program that runs as_user's commands, if there is to be one
run_by=()

# Runs a command as that user, in the directory given first.
as_user() {
	local dir=$1
	shift
	set -- "${run_by[@]}" "$@"
	if [ "$(id -u)" = 0 ]; then
		(cd "$dir" && exec setpriv --reuid "$run_user" --regid "$(id -g "$run_user")" \
			--init-groups env -u TMPDIR HOME="$dir" USER="$run_user" LOGNAME="$run_user" "$@")
	else
		(cd "$dir" && exec "$@")
	fi
}

# The pg_config to build with: $PG_CONFIG, else that of the newest version
# that is installed with its server headers.
find_pg_config() {
	local candidate
	if [ -n "${PG_CONFIG:-}" ]; then
		echo "$PG_CONFIG"
		return 0
	fi
	for candidate in $(printf '%s\n' /usr/lib/postgresql/*/bin/pg_config |
		sort -t/ -k5 -n -r); do
		if [ -x "$candidate" ] && [ -f "$("$candidate" --pgxs)" ] &&
			[ -x "$(dirname "$candidate")/postgres" ]; then
			echo "$candidate"
			return 0
		fi
	done
	return 1
}

# Makes $work, a directory of the user's own that everybody may look into.
make_work_dir() {
	work=$(mktemp -d "${TMPDIR:-/tmp}/zklock-$1.XXXXXX")
	chmod 755 "$work"
	[ "$(id -u)" != 0 ] || chown "$run_user" "$work"
}

# Makes a directory of the user's own whose name everybody can tell.  If it is
# there already, somebody else may have made it.  Arguments: name, mode.
make_own_dir() {
	if mkdir -m "$2" "$1" 2>/dev/null; then
		[ "$(id -u)" != 0 ] || chown "$run_user" "$1"
	elif [ -L "$1" ] || [ "$(stat -c %U "$1")" != "$run_user" ]; then
		die "$1 does not belong to user $run_user"
	fi
}

# Sets $work to a directory that is always the same for a purpose and a checkout.
reuse_work_dir() {
	work=${TMPDIR:-/tmp}/zklock-$1-$(printf '%s' "$2" | cksum | cut -d ' ' -f 1)
	make_own_dir "$work" 755
	exec 9>"$work/lock"
	flock --nonblock 9 || die "another run uses $work"
}

# Copies what has changed in the checkout (first argument) to $work/src, and
# leaves what was built there.  A copy gets the time of the copying: a file that
# is edited during a build would otherwise be older than its object file.
sync_sources() {
	local -a owner=()
	[ "$(id -u)" != 0 ] || owner=(--chown="$run_user:$(id -gn "$run_user")")
	rsync -a --checksum --no-times --delete --filter=':- .gitignore' --exclude=.git "${owner[@]}" \
		"$1/" "$work/src/"
}

# Copies the sources of the checkout (first argument) to $work/src: what git
# knows and does not ignore, or all when this is no git checkout.
copy_sources() {
	local from=$1
	mkdir "$work/src"
	if git -c safe.directory='*' -C "$from" rev-parse >/dev/null 2>&1; then
		(cd "$from" &&
			git -c safe.directory='*' ls-files -z --cached --others --exclude-standard |
			while IFS= read -r -d '' file; do
				[ ! -e "$file" ] || printf '%s\0' "$file"
			done |
			tar -c --no-recursion --null -T - -f -)
	else
		tar -C "$from" --exclude-vcs --exclude='*.o' --exclude='*.so' \
			--exclude='*.bc' --exclude=tmp_check -cf - .
	fi | tar -C "$work/src" -xf -
	[ "$(id -u)" != 0 ] || chown -R "$run_user" "$work/src"
}

# Copies PostgreSQL to below $work, unless it is there, and sets PG_CONFIG and
# bindir to the copy.  The copy gets its name at the end: it is a whole one.
copy_postgres() {
	local system dir new=$work/pg.new
	system=$(find_pg_config) || die "no PostgreSQL with server headers found; run dev/setup.sh"
	bindir=$work/pg$("$system" --bindir)
	if [ ! -d "$work/pg" ]; then
		rm -rf "$new"
		for dir in "$("$system" --bindir)" "$("$system" --pkglibdir)" "$("$system" --sharedir)"; do
			mkdir -p "$new$dir"
			cp -a "$dir/." "$new$dir/"
		done
		# Headers are only read.
		dir=$("$system" --pkgincludedir)
		mkdir -p "$new$(dirname "$dir")"
		ln -s "$dir" "$new$dir"
		[ "$(id -u)" != 0 ] || chown -R -h "$run_user" "$new"
		mv "$new" "$work/pg"
	fi
	export PG_CONFIG=$bindir/pg_config
	[ "$("$PG_CONFIG" --bindir)" = "$bindir" ] ||
		die "the PostgreSQL in $work/pg is no copy of $system, or not self-contained"
}

# What Perl programs with PostgreSQL servers need.  Arguments: for how many
# seconds they poll before they give up, and folders of modules below $work/src.
prepare_perl() {
	local pgxs folder
	pgxs=$(dirname "$(dirname "$("$PG_CONFIG" --pgxs)")")
	export PG_REGRESS=$pgxs/test/regress/pg_regress
	export PATH=${PG_CONFIG%/*}:$PATH
	export PG_TEST_TIMEOUT_DEFAULT=${PG_TEST_TIMEOUT_DEFAULT:-$1}
	export PERL5LIB=$pgxs/test/perl
	for folder in "${@:2}"; do
		PERL5LIB+=:$work/src/$folder
	done
	# From PostgreSQL 16 on, the logs would otherwise be in another place.
	export TESTDATADIR=$work/tmp_check TESTLOGDIR=$work/tmp_check/log
	# Some tests have hundreds of connections.
	ulimit -n 4096 2>/dev/null || true
}

# Builds and installs the extension into that copy; make's output goes to
# $work/build.log.  ZKLOCK_CC is another compiler than that of PostgreSQL, some of whose
# flags it may not know.
build_and_install() {
	[ -z "${ZKLOCK_CC:-}" ] ||
		set -- "$@" "CC=$ZKLOCK_CC" 'PROFILE=-Wno-unknown-warning-option -Wno-ignored-optimization-argument -Wno-ignored-attributes'
	as_user "$work/src" make -j "$(nproc)" PG_CONFIG="$PG_CONFIG" "$@" all install \
		>"$work/build.log" 2>&1 && return 0
	tail -n 40 "$work/build.log" >&2
	return 1
}
