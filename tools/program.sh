#!/usr/bin/env bash
# tools/program.sh MODULE@VERSION PACKAGE OUT: builds a program of another project in a
# module made for it, with the versions that its own go.mod selects. go install does the
# same, but asks the module proxy for a list of versions, which some proxies refuse.
set -euo pipefail
module=${1%@*} version=${1##*@} package=$2 out=$(realpath -m "$3")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
printf 'module program\n\ngo %s\n\nrequire %s %s\n' "$(sed -n 's/^go //p' "$(dirname "$0")/go.mod")" "$module" "$version" > "$dir/go.mod"
cd "$dir"
CGO_ENABLED=0 GOOS='' GOARCH='' GOFLAGS=-mod=mod go build -trimpath -ldflags "-s -w" -o "$out" "$package"
