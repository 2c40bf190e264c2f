#!/usr/bin/env bash
# Unpacks Debian's prometheus, promtool, alertmanager and amtool below .cache. The
# rules cannot be checked without them, so a failed download fails CI.
set -euo pipefail
cd "$(dirname "$0")/.."

fetch() { # PACKAGE DIRECTORY PROGRAM
  [ -x ".cache/$2/usr/bin/$3" ] && return
  local into
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
if [ ! -e "$templates/default.tmpl" ]; then
  mkdir -p "$templates"
  cp .cache/alertmanager"$templates"/*.tmpl "$templates"
fi
