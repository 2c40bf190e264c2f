#!/usr/bin/env bash
# tools/engines/run.sh [ENGINE…]: the rules in engines other than the ones that CI
# runs. Each is built from the Go module proxy into .cache/engines, which takes
# minutes the first time. ENGINE is vmalert or thanos.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD out=$PWD/.cache/engines address=${ADDRESS:-127.0.0.1:28428} engine=${ENGINE:-127.0.0.1:28880} exporter=${EXPORTER:-127.0.0.1:28400}
export GOFLAGS="-mod=mod -buildvcs=false"
mkdir -p "$out"

# replaces MODULE: its replacements, which hold in its own go.mod only.
replaces() {
  sed -n '/^replace (/,/^)/p; /^replace [^(]/p' "$(go mod download -json "$1" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')/go.mod"
}

# count PATTERN: how often it is in the input.
count() { { grep -oE "$1" || true; } | wc -l; }

# frequent FOLDER: the rules with short intervals, in FOLDER/rules.
frequent() {
  mkdir -p "$1/rules"
  cp rules/*.yaml "$1/rules"
  sed -i -E 's/^(    interval: ).*/\110s/' "$1"/rules/*.yaml
}

# await NAME FIRES N: until the engine has evaluated every rule without an error and
# its page of alerts has N matches of FIRES.
await() {
  for _ in $(seq 180); do
    feed
    sleep 1
    rules=$(curl -fs "http://$engine/api/v1/rules" || true) alerts=$(curl -fs "http://$engine/api/v1/alerts" || true)
    total=$(count '"health":"[a-z ]*"' <<< "$rules") good=$(count '"health":"ok"' <<< "$rules") never=$(count '"lastEvaluation":"0001' <<< "$rules")
    firing=$(count "$2" <<< "$alerts")
    if [ "$total" -gt 0 ] && [ "$good/$never" = "$total/0" ] && [ "$firing" -ge "$3" ]; then
      echo "$1: $total rules evaluated without an error; the alerts fire"
      return
    fi
  done
  echo "$1: $good of $total rules are healthy, $never were never evaluated, $firing of $3 alerts fire" >&2
  return 1
}

feed() { :; }

# until_query EXPR PATTERN N: until the answer to EXPR has N matches of PATTERN.
until_query() {
  for _ in $(seq 120); do
    feed
    sleep 1
    result=$(curl -fs "http://$address/api/v1/query" --data-urlencode "query=$1" --data-urlencode step=10s || true)
    [ "$(count "$2" <<< "$result")" = "$3" ] && return
  done
  echo "$1: $result" >&2
  return 1
}

# vmalert evaluates every rule against VictoriaMetrics, which receives the page of a
# node with two failed GPUs. The pages must stay while that node is not scraped.
vmalert() {
  mkdir -p "$out/vm" && rm -rf "$out/vm/data" "$out/vm/rules"
  (
    cd "$out/vm"
    printf 'module vm\n\ngo 1.26.8\n\nrequire github.com/VictoriaMetrics/VictoriaMetrics v1.110.0\n' > go.mod
    go build -o . github.com/VictoriaMetrics/VictoriaMetrics/app/vmalert github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics
  )
  "$out/vm/vmalert" -dryRun -rule='rules/*.yaml' 2> "$out/vm/dry.log" || { cat "$out/vm/dry.log"; return 1; }
  frequent "$out/vm"
  for gpu in 1 2; do
    echo "accel_device_incident_timestamp_seconds{job=\"accel-exporter\",node=\"n1\",device=\"GPU-$gpu\",kind=\"failed\",summary=\"GPU $gpu failed (Xid 79): team/a.\"} 1"
  done > "$out/vm/page"
  "$out/vm/victoria-metrics" -storageDataPath="$out/vm/data" -httpListenAddr="$address" -search.latencyOffset=0s -inmemoryDataFlushInterval=1s > "$out/vm/vm.log" 2>&1 &
  trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
  until curl -fs "http://$address/health" > /dev/null; do sleep 0.2; done
  "$out/vm/vmalert" -rule="$out/vm/rules/*.yaml" -datasource.url="http://$address" -remoteWrite.url="http://$address" -remoteWrite.flushInterval=1s \
    -datasource.queryStep=10s -rule.evalDelay=0s -notifier.blackhole -httpListenAddr="$engine" -evaluationInterval=2s > "$out/vm/vmalert.log" 2>&1 &
  feed() { curl -fs --data-binary @"$out/vm/page" "http://$address/api/v1/import/prometheus"; }
  await 'vmalert 1.110' '"state":"firing","name":"AcceleratorFailed","value":"1","labels":\{[^}]*"device":"GPU-[12]"' 2 || { grep -i error "$out/vm/vmalert.log" | head -5; return 1; }
  # The exporter is away, and comes back with GPU 1 repaired.
  feed() { :; }
  until_query 'absent(accel_device_incident_timestamp_seconds)' '"value":\[[0-9.]*,"1"\]' 1
  sleep 15 # evaluations without the series, for longer than a sample is seen
  until_query 'device:accel_incident:held > 0' '"device":"GPU-[12]"' 2
  echo 'accel_device_health{job="accel-exporter",node="n1",device="GPU-1",parent="",state="unknown"} 0' > "$out/vm/page"
  feed() { curl -fs --data-binary @"$out/vm/page" "http://$address/api/v1/import/prometheus"; }
  until_query 'device:accel_incident:held == 0' '"device":"GPU-1"' 1
  until_query 'device:accel_incident:held > 0' '"device":"GPU-[12]"' 1
  echo 'vmalert 1.110: the page of a device stays until the device is observed again'
}

# Thanos Ruler queries a Prometheus that scrapes a node. What it records is in its own
# database, which that Prometheus does not read, so only alerts on scraped series fire.
thanos() {
  mkdir -p "$out/thanos" && rm -rf "$out"/thanos/{data,rule,rules}
  (
    cd "$out/thanos"
    printf 'module thanos\n\ngo 1.26.8\n\nrequire github.com/thanos-io/thanos v0.40.1\n' > go.mod
    replaces github.com/thanos-io/thanos >> go.mod
    go build -o thanos github.com/thanos-io/thanos/cmd/thanos
  )
  frequent "$out/thanos"
  trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
  bin/accel-sim --state="$out/thanos/state" run --scenario=one-lost -- bin/accel-exporter --web.listen-address="$exporter" > "$out/thanos/exporter.log" 2>&1 &
  printf 'global: {scrape_interval: 5s}\nscrape_configs: [{job_name: accel-exporter, honor_labels: true, static_configs: [{targets: ["%s"]}]}]\n' "$exporter" > "$out/thanos/prometheus.yml"
  .cache/prometheus/usr/bin/prometheus --config.file="$out/thanos/prometheus.yml" --storage.tsdb.path="$out/thanos/data" --web.listen-address="$address" > "$out/thanos/prometheus.log" 2>&1 &
  "$out/thanos/thanos" rule --data-dir="$out/thanos/rule" --rule-file="$out/thanos/rules/*.yaml" --query="http://$address" --label='replica="a"' \
    --http-address="$engine" --grpc-address=127.0.0.1:0 > "$out/thanos/thanos.log" 2>&1 &
  await 'Thanos 0.40' '"alertname":"AccelWatchdog"[^}]*},"annotations":\{[^}]*},"state":"firing"' 1 || { grep -i error "$out/thanos/thanos.log" | head -5; return 1; }
}

for each in "${@:-vmalert thanos}"; do
  for e in $each; do (set -e; "$e"); done
done
