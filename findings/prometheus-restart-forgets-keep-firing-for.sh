#!/usr/bin/env bash
# Finding: a restart of Prometheus forgets the alerts that keep_firing_for keeps firing. A
# pending alert keeps the time that it has waited for `for`. An alert whose expression yields
# nothing at the moment is gone, even early in its keep_firing_for: nothing is sent for it
# after the restart, so Alertmanager resolves it when its last notification ends.
# Expected: keep_firing_for is restored as `for` is.
# Version: Debian's prometheus 2.42.0+ds-5+deb12u1. Output seen is below, as the script requires it.
set -euo pipefail
version=2.42.0+ds-5+deb12u1
dir=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; wait; rm -rf "$dir"' EXIT
chmod 755 "$dir"
cd "$dir"
apt-get download -qq "prometheus=$version" 2>/dev/null || { apt-get update -qq && apt-get download -qq "prometheus=$version"; }
dpkg -x prometheus_*.deb .

printf 'rule_files: [rules.yml]\n' > prometheus.yml
cat > rules.yml <<Y
groups:
  - name: g
    interval: 1s
    rules:
      - {alert: Held, expr: vector(time()) < $(($(date +%s) + 10)), keep_firing_for: 1h}
      - {alert: Waits, expr: vector(1), for: 1h}
Y

start() {
  usr/bin/prometheus --config.file=prometheus.yml --storage.tsdb.path=data --web.listen-address=127.0.0.1:0 2> log &
  server=$!
  until address=$(grep -m 1 -o '127\.0\.0\.1:[1-9][0-9]*' log); do kill -0 "$server" || exit 1; sleep 0.1; done
}
# alert NAME: its line of the list of alerts.
alert() { curl -fsS "http://$address/api/v1/alerts" | sed 's/{"labels"/\n&/g' | grep "\"$1\"" || true; }
# until_true COMMAND...: waits for it, a minute at the most.
until_true() {
  for _ in {1..600}; do "$@" && return; sleep 0.1; done
  echo "changed: no $*: $(alert Held) $(alert Waits)"
  exit 1
}
held() { [[ $(alert Held) == *'"state":"firing"'*keepFiringSince* ]]; }
# waits_since SECONDS: the pending alert is older than this time.
waits_since() {
  local active
  active=$(alert Waits | grep -o '"activeAt":"[^"]*' | cut -d'"' -f4)
  [ -n "$active" ] && [ "$(date -d "$active" +%s)" -lt "$1" ]
}
long() { waits_since "$(($(date +%s) - 20))"; }

start
until_true held
until_true long
kill "$server"
wait "$server"
restart=$(date +%s)
start
until_true waits_since "$restart"
[ -z "$(alert Held)" ] || { echo "changed: after the restart: $(alert Held)"; exit 1; }
echo "as found: after a restart the pending alert is as old as before, the held alert is gone"
