#!/usr/bin/env bash
# Unpacks Debian's prometheus, promtool, alertmanager and amtool below .cache. The
# rules cannot be checked without them, so a failed download fails CI.
# tools.sh PROGRAM... installs programs instead, each of a package of its name, without
# which some tests are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -gt 0 ]; then
  mkdir -p .cache
  exec 9>.cache/apt.lock
  flock 9 # apt runs once at a time
  missing=()
  for program; do
    command -v "$program" >/dev/null || missing+=("$program")
  done
  [ "${#missing[@]}" -gt 0 ] || exit 0
  export DEBIAN_FRONTEND=noninteractive
  timeout 300 apt-get install -y -qq --no-install-recommends "${missing[@]}" ||
    { timeout 180 apt-get update -qq && timeout 300 apt-get install -y -qq --no-install-recommends "${missing[@]}"; } ||
    echo "${missing[*]} cannot be installed: tests that need it are skipped" >&2
  exit 0
fi

fetch() { # PACKAGE DIRECTORY PROGRAM
  [ -x ".cache/$2/usr/bin/$3" ] && return
  local into
  command -v apt-get >/dev/null && command -v dpkg >/dev/null || {
    echo "$1: only Debian and Ubuntu have apt-get and dpkg, which unpack it. Elsewhere install Prometheus and Alertmanager, and link" \
      "prometheus and promtool into .cache/prometheus/usr/bin, alertmanager as prometheus-alertmanager and amtool into .cache/alertmanager/usr/bin" >&2
    exit 1
  }
  into=$(mktemp -d)
  chmod 755 "$into"
  (cd "$into" && timeout 120 apt-get download -qq "$1") ||
    { timeout 180 apt-get update -qq && (cd "$into" && timeout 120 apt-get download -qq "$1"); } ||
    { echo "$1: apt-get download has failed; the rules need it" >&2; exit 1; }
  mkdir -p ".cache/$2"
  dpkg -x "$into"/*.deb ".cache/$2"
  rm -r "$into"
}
fetch prometheus prometheus promtool
fetch prometheus-alertmanager alertmanager amtool

# Debian's Alertmanager reads its templates from this path only.
templates=/usr/share/prometheus/alertmanager
if [ ! -e "$templates/default.tmpl" ] && [ -d ".cache/alertmanager$templates" ]; then
  mkdir -p "$templates" && cp .cache/alertmanager"$templates"/*.tmpl "$templates" ||
    { echo "prometheus-alertmanager needs files in $templates: run make debian once as root" >&2; exit 1; }
fi
