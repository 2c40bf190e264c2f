#!/usr/bin/env bash
# Prints what this build and that of another commit cost, and the ratio:
#
#	[ROUNDS=5] tools/compare/bench.sh [COMMIT]
#
# Both run at the same time on simulated nodes, and are measured in turn, so that a busy
# machine disturbs both. A figure is the median of the rounds. CPU is that of the
# exporter and its workers (schedstat); that of scrapes is without what the exporter
# takes at rest. It takes ten minutes and needs curl.
set -euo pipefail
export LC_ALL=C # of numbers with a fraction
cd "$(dirname "$0")/../.."
commit=${1:-main} rounds=${ROUNDS:-5}
data=$(mktemp -d)
declare -A root=([old]=$PWD/.cache/bench [new]=$PWD) port=([old]=19501 [new]=19502) pid simulator

git worktree prune
git worktree add -q --force --detach "${root[old]}" "$commit"
finish() {
  stop
  git worktree remove --force "${root[old]}"
  rm -rf "$data"
}
trap finish EXIT
make -s build >&2
make -s -C "${root[old]}" build >&2

# start SCENARIO FLAG...: both exporters, and waits until each value was sampled.
start() {
  local b scenario=$1
  shift
  for b in old new; do
    begin "$b" "$scenario" "$@"
  done
  sleep 15 # the slowest values are sampled every 10 s
}

# begin BUILD SCENARIO FLAG...: one exporter, until it answers.
begin() {
  local b=$1 scenario=$2
  shift 2
  (cd "${root[$b]}" && exec bin/accel-sim --state="$data/$b/state" run --scenario="$scenario" -- \
    bin/accel-exporter --web.listen-address="127.0.0.1:${port[$b]}" "$@") >"$data/$b.log" 2>&1 &
  simulator[$b]=$!
  until pid[$b]=$(pgrep -f "^[^ ]*bin/accel-exporter --web.listen-address=127.0.0.1:${port[$b]} "); do
    kill -0 "${simulator[$b]}" || { cat "$data/$b.log" >&2; exit 1; }
    sleep 0.01
  done
}

stop() {
  [ "${#simulator[@]}" -eq 0 ] || kill "${simulator[@]}" 2>/dev/null || true
  wait
  simulator=() pid=()
  rm -rf "$data/old" "$data/new"
}

# cpu PID...: the CPU time of all threads, in ns.
cpu() {
  local p
  for p in "$@"; do cat "/proc/$p"/task/*/schedstat; done 2>/dev/null | awk '{n += $1} END {printf "%.0f", n}'
}

tree() { echo "${pid[$1]}" && pgrep -P "${pid[$1]}"; }

# figure ROW BUILD EXPRESSION: adds a figure of this round.
figure() { awk "BEGIN {print $3}" >>"$data/$1.$2"; }

# idle ROW BUILD [PID...]: CPU per second, of all processes unless some are given.
idle() {
  local row=$1 b=$2 before began pids
  shift 2
  pids=${*:-$(tree "$b")}
  before=$(cpu $pids) began=$EPOCHREALTIME
  sleep 4
  figure "$row" "$b" "($(cpu $pids) - $before) / ($EPOCHREALTIME - $began) / 1e6"
}

# scrapes ROW BUILD HEADER REST: CPU per scrape. REST is the row of the idle CPU.
scrapes() {
  local b=$2 before began pids n=50
  pids=$(tree "$b") before=$(cpu $pids) began=$EPOCHREALTIME
  # One process of curl; a range of fragments repeats the request.
  curl -s -H "$3" "http://127.0.0.1:${port[$b]}/metrics#[1-$n]" -o /dev/null
  figure "$1" "$b" "(($(cpu $pids) - $before) / 1e6 - $(tail -1 "$data/$4.$b") * ($EPOCHREALTIME - $began)) / $n"
}

# renewed ROW BUILD HEADER REST: CPU per scrape where each is of a new Snapshot, as those of
# one Prometheus are.
renewed() {
  local b=$2 before began pids i
  pids=$(tree "$b") before=$(cpu $pids) began=$EPOCHREALTIME
  for i in 1 2 3 4 5; do
    curl -s -H "$3" "http://127.0.0.1:${port[$b]}/metrics" -o /dev/null
    sleep 1.05
  done
  figure "$1" "$b" "(($(cpu $pids) - $before) / 1e6 - $(tail -1 "$data/$4.$b") * ($EPOCHREALTIME - $began)) / 5"
}

# clients ROW BUILD: the median duration of the scrapes of eight clients.
clients() {
  curl -sZ --no-progress-meter --parallel-max 8 --parallel-immediate -w '%{time_total}\n' -H 'Accept-Encoding: gzip' \
    "http://127.0.0.1:${port[$2]}/metrics#[1-200]" -o /dev/null | sort -n | sed -n '100s/$/ * 1000/p' >"$data/median"
  figure "$1" "$2" "$(cat "$data/median")"
}

median() { sort -g "$1" | awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }

# row ROW TEXT
row() {
  local old new
  old=$(median "$data/$1.old") new=$(median "$data/$1.new")
  awk -v t="$2" -v o="$old" -v n="$new" 'BEGIN {printf "| %s | %.2f | %.2f | %.2f |\n", t, o, n, n / o}'
}

# each FUNCTION ROW ARGUMENT...: a figure of both builds, in each round.
each() {
  local b call=$1 row=$2
  shift 2
  for b in old new; do "$call" "$row" "$b" "$@"; done
}

# From the start of the process, in ticks of the kernel's clock (10 ms), until the page
# has the temperature of all GPUs.
first_page() {
  local b=$2 ticks
  begin "$b" h100-8
  ticks=$(sed 's/.*) //' "/proc/${pid[$b]}/stat" | cut -d ' ' -f 20)
  until [ "$(curl -s "http://127.0.0.1:${port[$b]}/metrics" | grep -c '^accel_temperature_celsius{.*sensor="gpu"')" -ge 8 ]; do sleep 0.005; done
  figure "$1" "$b" "($(cut -d ' ' -f 1 /proc/uptime) - $ticks / $(getconf CLK_TCK)) * 1000"
  stop
}

snapshots() { curl -s "http://127.0.0.1:${port[$1]}/debug/state" | sed -n 's/^  "seq": \([0-9]*\),/\1/p'; }

# per_minute: Snapshots of both builds in the same minute.
per_minute() {
  local b
  local -A before
  for b in old new; do before[$b]=$(snapshots "$b"); done
  sleep 60
  for b in old new; do figure minute "$b" "$(snapshots "$b") - ${before[$b]}"; done
}

anonymous() {
  local p
  for p in $(tree "$2"); do cat "/proc/$p/smaps_rollup"; done | awk '/^Anonymous/ {n += $2} END {print n / 1024}' >>"$data/$1.$2"
}

echo "| work | $(git rev-parse --short "$commit") | this build | ratio |"
echo "|---|---|---|---|"
start h100-8
for ((r = 0; r < rounds; r++)); do
  each idle eight
  each scrapes plain 'Accept-Encoding: identity' eight
  each scrapes gzip 'Accept-Encoding: gzip' eight
  each renewed new-plain 'Accept-Encoding: identity' eight
  each renewed new-gzip 'Accept-Encoding: gzip' eight
  each clients clients
done
per_minute
stop
row plain 'plain scrape, repeated, 8 GPUs, ms of CPU'
row gzip 'scrape with gzip, repeated, ms of CPU'
row new-plain 'plain scrape of a new Snapshot, ms of CPU'
row new-gzip 'scrape of a new Snapshot with gzip, ms of CPU'
row clients 'scrape of one of 8 clients, ms'
row eight 'at rest, 8 GPUs, ms of CPU per second'
row minute 'Snapshots in a minute'

printf 'description: 64 H100\ngpus:\n  - board: h100-sxm5-80gb\n    count: 64\n    load: noise:0.6:0.2:5\n' >"$data/h100-64.yaml"
for scenario in "$data/h100-64.yaml" h100-mig-16x7; do
  start "$scenario"
  name=$(basename "$scenario" .yaml)
  for ((r = 0; r < rounds; r++)); do each idle "$name"; done
  stop
  row "$name" "at rest, $name, ms of CPU per second"
done

start h100-8
for b in old new; do
  (cd "${root[$b]}" && bin/accel-sim --state="$data/$b/state" inject slow all --delay=1ms) >>"$data/$b.log"
done
sleep 5
for ((r = 0; r < rounds; r++)); do
  for b in old new; do idle slow "$b" "$(pgrep -P "${pid[$b]}")"; done
done
stop
row slow 'the worker at rest, each call of NVML takes 1 ms'

start h100-8 --rules.builtin
for ((r = 0; r < rounds; r++)); do
  each idle rules
  each anonymous anonymous
done
stop
row rules 'at rest, with the rules, ms of CPU per second'
row anonymous 'anonymous memory, with the rules, MiB'

for ((r = 0; r < rounds; r++)); do each first_page first; done
row first 'start to the first full page, ms'
echo
echo "load: $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) cores"
