#!/usr/bin/env bash
# Unpacks Debian's prometheus, promtool, alertmanager and amtool below .cache. The
# rules cannot be checked without them, so a failed download fails CI.
# tools.sh chromium installs Chromium instead, without which one test is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = chromium ]; then
  command -v chromium >/dev/null && exit
  export DEBIAN_FRONTEND=noninteractive
  timeout 300 apt-get install -y -qq --no-install-recommends chromium ||
    { timeout 180 apt-get update -qq && timeout 300 apt-get install -y -qq --no-install-recommends chromium; } ||
    echo "chromium cannot be installed: the status page is not tested in a browser" >&2
  exit 0
fi

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
