#!/usr/bin/env bash
# tools/engines/run.sh [ENGINE…]: the rules in engines other than the ones that CI
# runs. Each is built from the Go module proxy into .cache/engines, which takes
# minutes the first time. ENGINE is prometheus (2.53), mimir or vmalert.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD out=$PWD/.cache/engines address=${ADDRESS:-127.0.0.1:28428} vmalert=${VMALERT:-127.0.0.1:28880}
export GOFLAGS="-mod=mod -buildvcs=false"
mkdir -p "$out"

prometheus() {
  rm -rf "$out/prometheus" && cp -r tools/engines/prometheus "$out/"
  (cd "$out/prometheus" && go test -c -o ../prometheus.test .)
  RULES=$root/rules "$out/prometheus.test" -test.timeout=30m
}

# Replacements of the module that is required hold in the requiring one only.
mimir() {
  rm -rf "$out/mimir" && cp -r tools/engines/mimir "$out/"
  cd "$out/mimir"
  dir=$(go mod download -json github.com/grafana/mimir | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  grep '^replace ' "$dir/go.mod" >> go.mod
  go build -o ../mimir.bin .
  cd "$root"
  "$out/mimir.bin" rules/*.yaml
}

# count PATTERN: how often it is in the input.
count() { { grep -oE "$1" || true; } | wc -l; }

# vmalert evaluates every rule against VictoriaMetrics, which receives the page of a
# node with a lost GPU and one that does not answer.
vmalert() {
  mkdir -p "$out/vm" && rm -rf "$out/vm/data" "$out/vm/rules"
  (
    cd "$out/vm"
    printf 'module vm\n\ngo 1.26.8\n\nrequire github.com/VictoriaMetrics/VictoriaMetrics v1.110.0\n' > go.mod
    go build -o . github.com/VictoriaMetrics/VictoriaMetrics/app/vmalert github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics
  )
  "$out/vm/vmalert" -dryRun -rule='rules/*.yaml' 2> "$out/vm/dry.log" || { cat "$out/vm/dry.log"; return 1; }
  printf 'values: {conditions_interval: 10s, trends_interval: 10s, weeks_interval: 10s}\nalerts: {AcceleratorNotAnswering: {for: 5s}}\n' > "$out/vm/values.yml"
  bin/accel-exporter rules render --values="$out/vm/values.yml" --output="$out/vm/rules"
  sed -i -E 's/^(    interval: ).*/\110s/' "$out"/vm/rules/*.yaml
  for gpu in 'GPU-1 device_lost' 'GPU-2 device_stuck'; do
    set -- $gpu
    echo "accel_device_health_reason{job=\"accel-exporter\",instance=\"n1\",device=\"$1\",reason=\"$2\",severity=\"failed\"} 1"
    echo "accel_allocation_info{job=\"accel-exporter\",instance=\"n1\",device=\"$1\",namespace=\"team\",pod=\"a\",container=\"c\",resource=\"nvidia.com/gpu\"} 1"
  done > "$out/vm/page"
  "$out/vm/victoria-metrics" -storageDataPath="$out/vm/data" -httpListenAddr="$address" -search.latencyOffset=0s -inmemoryDataFlushInterval=1s > "$out/vm/vm.log" 2>&1 &
  trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
  until curl -fs "http://$address/health" > /dev/null; do sleep 0.2; done
  "$out/vm/vmalert" -rule="$out/vm/rules/*.yaml" -datasource.url="http://$address" -remoteWrite.url="http://$address" -remoteWrite.flushInterval=1s \
    -notifier.blackhole -httpListenAddr="$vmalert" -evaluationInterval=2s > "$out/vm/vmalert.log" 2>&1 &
  for _ in $(seq 180); do
    curl -fs --data-binary @"$out/vm/page" "http://$address/api/v1/import/prometheus"
    sleep 1
    rules=$(curl -fs "http://$vmalert/api/v1/rules" || true) alerts=$(curl -fs "http://$vmalert/api/v1/alerts" || true)
    total=$(count '"health":"[a-z ]*"' <<< "$rules") good=$(count '"health":"ok"' <<< "$rules") never=$(count '"lastEvaluation":"0001' <<< "$rules")
    firing=$(grep -o '"state":"firing","name":"[A-Za-z]*","value":"1","labels":{[^}]*"pod":"a"' <<< "$alerts" | count 'Accelerator(Lost|NotAnswering)"' || true)
    if [ "$total" -gt 0 ] && [ "$good/$never" = "$total/0" ] && [ "$firing" -ge 2 ]; then
      echo "vmalert 1.110: $total rules evaluated without an error; AcceleratorLost and AcceleratorNotAnswering fire with their pod"
      return
    fi
  done
  grep -i error "$out/vm/vmalert.log" | head -5
  echo "vmalert: $good of $total rules are healthy, $never were never evaluated, $firing of 2 alerts fire" >&2
  return 1
}

for engine in "${@:-prometheus mimir vmalert}"; do
  for e in $engine; do (set -e; "$e"); done
done
