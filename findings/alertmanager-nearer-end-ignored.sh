#!/usr/bin/env bash
# Finding: Alertmanager ignores an endsAt that is nearer than the end which the firing alert
# has. If an alert is posted with an endsAt in four hours, and again with an endsAt in a
# minute or without one, it has the new annotations and the old end: when the client then
# stops, the alert fires for four hours. Only an endsAt that has passed replaces a later end.
# Expected: the newest endsAt counts, as the newest annotations do.
# Version: Debian's prometheus-alertmanager 0.25.0-1+b4. Output seen is below, as the script
# requires it.
set -euo pipefail
version=0.25.0-1+b4
dir=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; wait; rm -rf "$dir"' EXIT
chmod 755 "$dir"
cd "$dir"
apt-get download -qq "prometheus-alertmanager=$version" 2>/dev/null || { apt-get update -qq && apt-get download -qq "prometheus-alertmanager=$version"; }
dpkg -x prometheus-alertmanager_*.deb .

printf 'route: {receiver: none}\nreceivers: [{name: none}]\n' > alertmanager.yml
usr/bin/prometheus-alertmanager --config.file=alertmanager.yml --storage.path=data --cluster.listen-address= \
  --web.listen-address=127.0.0.1:0 2> log &
server=$!
until address=$(grep -m 1 -o '127\.0\.0\.1:[1-9][0-9]*' log); do kill -0 "$server" || exit 1; sleep 0.1; done
api=http://$address/api/v2/alerts

# post END ANNOTATION: posts the alert, with no endsAt if END is empty.
post() {
  curl -fsS -H 'Content-Type: application/json' "$api" \
    -d "[{\"labels\":{\"alertname\":\"A\"},\"annotations\":{\"text\":\"$2\"},\"startsAt\":\"$start\"${1:+,\"endsAt\":\"$1\"}}]"
}
# alert: the text and the end of the alert that fires.
alert() {
  curl -fsS "$api" | sed -nE 's/.*"text":"([a-z]*)".*"endsAt":"([^."]*).*/\1 \2/p'
}
at() { date -u -d "$1" +%FT%TZ; }

start=$(at '-1 minute') far=$(at '+4 hours')
post "$far" far
for end in "$(at '+1 minute')" ""; do
  post "$end" new
  [ "$(alert)" = "new ${far%Z}" ] || { echo "changed: after endsAt \"$end\" instead of $far: $(alert)"; exit 1; }
done
post "$(at now)" past
[ -z "$(alert)" ] || { echo "changed: after an endsAt that has passed: $(alert)"; exit 1; }
echo "as found: an end in a minute does not replace one in four hours, the annotations are replaced"
