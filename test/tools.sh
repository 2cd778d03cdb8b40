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

# Few schedules reach nearly as much as many do.
measures_the_core() {
	local share
	share=$(dev/coverage.sh 20 | sed -n 's|^ *\([0-9]*\)\.[0-9] %.* lines  together$|\1|p')
	echo "${share:-no share is shown}"
	[ "$share" -ge 90 ]
}

# In a copy without a branch upstream, a file that is committed and one that is not
formats_what_changed() (
	mkdir -p "$temp/copy" && cd "$temp/copy" && mkdir src test bench .ci &&
		cp -r "$OLDPWD/dev" "$OLDPWD/.perltidyrc" . &&
		printf 'int f(void){\nreturn 0;}\n' | tee src/committed.c >src/changed.c &&
		git init -q && git add dev src/committed.c &&
		git -c user.name=test -c user.email=test@example.com commit -q -m test &&
		dev/format.sh --changed && grep -qx 'f(void)' src/changed.c &&
		! grep -qx 'f(void)' src/committed.c
)

succeeds 'dev/lint.sh finds nothing' dev/lint.sh
succeeds 'dev/coverage.sh measures the core' measures_the_core
succeeds 'dev/format.sh formats what changed' formats_what_changed
echo "1..$number"
exit $failed
