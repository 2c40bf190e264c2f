#!/usr/bin/env bash
# fuzz.sh TIME PACKAGE TARGET runs one fuzz target for TIME. Only this module is
# instrumented: go test -fuzz would compile every dependency once more. If the time
# ends while an input runs, the target reports a failure ("context deadline exceeded")
# although no input fails; that is no failure here. Minimizing an input takes at most
# 10 executions: by default it takes most of the time of a target with large inputs.
set -uo pipefail
module=github.com/accel-exporter/accel-exporter
bin=$(mktemp)
trap 'rm -f "$bin"' EXIT
top=$2
until [ -f "$top/go.mod" ]; do top=$(dirname "$top"); done
dir=.${2#"$top"}
cd "$top" || exit 1
# As make builds it, so that its dependencies compile once.
[ "$top" != ./cmd/accel-remediator ] || export CGO_ENABLED=0
go test -c -vet=off -gcflags="$module/...=-d=libfuzzer" -o "$bin" "$dir" || exit 1
out=$(cd "$dir" && "$bin" -test.run '^$' -test.fuzz "^$3\$" -test.fuzztime "$1" -test.fuzzminimizetime 10x \
  -test.fuzzcachedir "$(go env GOCACHE)/fuzz/$module/${2#./}" 2>&1)
rc=$?
if [ $rc -ne 0 ] && grep -q '^    context deadline exceeded$' <<<"$out" && ! grep -qE 'Failing input|panic|_test\.go:' <<<"$out"; then
  rc=0
fi
if [ $rc -ne 0 ]; then
  printf '%s\n' "$out"
  exit 1
fi
printf '%s %s: %s\n' "$3" "$2" "$(grep -o 'execs: [0-9]*' <<<"$out" | tail -1)"
