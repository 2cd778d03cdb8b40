#!/usr/bin/env bash
# Runs those tools of dev/ that no other test uses.  Prints TAP.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
number=0
failed=0

# One case: its name, and a command that succeeds.
succeeds() {
	local name=$1 result=ok
	shift
	number=$((number + 1))
	"$@" >"$temp/log" 2>&1 || {
		result='not ok'
		failed=1
	}
	echo "$result $number - $name"
	[ "$result" = ok ] || tail -n 40 "$temp/log" | sed 's/^/#   /'
}

measures_the_core() {
	dev/coverage.sh 20 | tee "$temp/coverage" &&
		grep -qE '^ *[0-9.]+ %.* lines +src/core$' "$temp/coverage"
}

# In a copy without a branch upstream: what a commit lacks is formatted.
formats_what_changed() {
	mkdir -p "$temp/copy"
	cp -r dev .perltidyrc "$temp/copy" && cd "$temp/copy" &&
		git init -q && git add dev &&
		git -c user.name=test -c user.email=test@example.com commit -q -m test &&
		mkdir -p src test bench .ci &&
		printf 'int f(void){\nreturn 0;}\n' >src/changed.c && dev/format.sh --changed &&
		grep -qx 'f(void)' src/changed.c
}

succeeds 'dev/lint.sh finds nothing' dev/lint.sh
succeeds 'dev/coverage.sh measures the core' measures_the_core
succeeds 'dev/format.sh formats what changed' formats_what_changed
echo "1..$number"
exit $failed
