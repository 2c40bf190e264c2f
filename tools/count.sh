#!/usr/bin/env bash
# tools/count.sh [REF]: the size of the repository at a commit (default HEAD).
# Code that only tests use counts as test code wherever it lies, so moving a
# package changes no figure. Symbolic links count as nothing.
set -euo pipefail
cd "$(git rev-parse --show-toplevel)"
ref=${1:-HEAD}

simulators='^(internal/(sim|simtest|faketree)|cmd/accel-sim|fixtures|dashboards)/'
tests='_test[.]go$|^(test|[.]ci)/|^internal/(incidents|stack|demo|golden|repocheck|trace/otlptest)/|^collector/dcgm/dcgmlive/'
generated='^(dashboards/.*[.]json|docs/metrics[.]md)$'

# lines FILTER: the lines of the files whose path (p) the awk expression selects.
lines() {
  git grep -c '' "$ref" | awk -F : -v simulators="$simulators" -v tests="$tests" -v generated="$generated" \
    "{p = \$(NF-1)} $1 {n += \$NF} END {print n + 0}"
}

printf '%-48s %7d\n' \
  "Go outside tests, simulators and dashboards" "$(lines 'p ~ /[.]go$/ && p !~ simulators && p !~ tests')" \
  "Go of simulators and dashboards" "$(lines 'p ~ /[.]go$/ && p ~ simulators && p !~ tests')" \
  "Go of tests" "$(lines 'p ~ /[.]go$/ && p ~ tests')" \
  "generated lines" "$(lines 'p ~ generated')" \
  "folders directly under internal/" "$(git ls-tree -d --name-only "$ref" internal/ | wc -l)"
