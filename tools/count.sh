#!/usr/bin/env bash
# tools/count.sh [REF]: the size of the repository at a commit (default HEAD).
# Code that only tests use counts as test code wherever it lies, so moving a
# package changes no figure. Symbolic links count as nothing.
set -euo pipefail
cd "$(git rev-parse --show-toplevel)"
ref=${1:-HEAD}

simulators='^(internal/sim|cmd/accel-sim|fixtures|tools/dashboards)/'
tests='_test[.]go$|^(test|[.]ci)/|^internal/(repocheck|trace/otlptest|sim/golden|sim/simtest)/|^collector/dcgm/dcgmlive/'
generated='^(docs/(metrics|licenses)[.]md|deploy/config[.]schema[.]json|dashboards/.*[.]json)$'

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
  "YAML and JSON kept by hand, outside fixtures" "$(lines 'p ~ /[.](ya?ml|json)$/ && p !~ generated && p !~ /(^fixtures|testdata|^rules\/tests)\//')" \
  "YAML and JSON of tests" "$(lines 'p ~ /[.](ya?ml|json)$/ && p ~ /(^fixtures|testdata|^rules\/tests)\//')" \
  "folders directly under internal/" "$(git ls-tree -d --name-only "$ref" internal/ | wc -l)" \
  "go.mod files" "$(git ls-tree -r --name-only "$ref" | grep -c 'go[.]mod$')" \
  "lines of the Makefile" "$(git show "$ref:Makefile" | grep -c '')"
