#!/usr/bin/env bash
# Captures the exporter on a real NVIDIA machine, in at most eight minutes:
#
#	OUT=FOLDER [BIN=bin/accel-exporter] tools/compare/device.sh [FLAG...]
#
# It needs the exporter and nvidia-smi; a python3 with PyTorch, or with nothing, puts load
# on the first GPU. The flags are passed to the exporter. It changes no setting of a GPU and installs nothing.
#
# FOLDER gets the files with identities masked; summary.txt lists the steps and the
# figures. A step that fails or exceeds its limit is noted, and the rest goes on.
set -uo pipefail
export LC_ALL=C # of numbers with a fraction

: "${OUT:?is the folder for the files}"
BIN=$(realpath "${BIN:-bin/accel-exporter}")
PORT=${PORT:-19499}
CPU_SECONDS=${CPU_SECONDS:-60} # of the measurement of an idle GPU; a third of it under load
BUDGET=${BUDGET:-420}          # seconds after which steps are skipped
FLAGS=("$@")
mkdir -p "$OUT" && OUT=$(realpath "$OUT") && RAW=$(mktemp -d) && cd "$RAW" || exit 1
[ -x "$BIN" ] || { echo "device.sh: BIN: $BIN is not a program" >&2; exit 1; }
tick=$(getconf CLK_TCK)
exporter='' load=''
export OUT RAW BIN PORT tick

# step LIMIT FILE COMMAND...: the output of the command goes to FILE, and a line with
# its exit status and duration to the list of steps.
step() {
  local limit=$1 file=$2 left=$((BUDGET - SECONDS)) began=$EPOCHREALTIME status
  shift 2
  # The shell between timeout and the command ends even where the command hangs in
  # the driver.
  if [ "$left" -le 0 ]; then
    echo "skipped (time is up)  $file: $*" >>steps
    return 1
  fi
  timeout -k 2 "$((limit < left ? limit : left))" bash -c '"$@"; exit $?' bash "$@" >"$file" 2>"$file.err" </dev/null
  status=$?
  [ -s "$file.err" ] || rm -f "$file.err"
  printf '%-8s %7.2f s  %s: %s\n' "$(outcome $status)" "$(since "$began")" "$file" "$*" >>steps
  return $status
}

outcome() {
  case $1 in
  0) echo ok ;;
  124 | 137) echo "TIME-OUT" ;;
  *) echo "exit $1" ;;
  esac
}

pause() { [ "$SECONDS" -ge "$BUDGET" ] || sleep "$1"; }

since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.4f", b - a}'; }

# http METHOD PATH [HEADER]: the response with its headers. Bash alone, because a node
# may have no curl; HTTP/1.0, because its body is not in chunks.
http() {
  exec 3<>"/dev/tcp/127.0.0.1/$PORT" || return 1
  printf '%s %s HTTP/1.0\r\n%s\r\n' "$1" "$2" "${3:+$3$'\r\n'}" >&3
  cat <&3
  exec 3>&-
}

# body METHOD PATH: the body of a response with status 200.
body() {
  local file=response.$BASHPID status
  http "$@" >"$file" || return 1
  sed '1,/^\r*$/d' "$file"
  status=$(head -1 "$file")
  rm "$file"
  [[ $status == *" 200 "* ]] || { echo "$2: $status" >&2; return 1; }
}

page() { body GET /metrics 2>/dev/null; }

# children PID: the processes whose parent is PID.
children() {
  cat /proc/[0-9]*/stat 2>/dev/null | sed 's/ (.*) / /' | awk -v parent="$1" '$3 == parent {print $1}'
}

worker() {
  local p
  for p in $(children "$1"); do
    tr '\0' ' ' <"/proc/$p/cmdline" | grep -q 'worker nvidia' && echo "$p"
  done 2>/dev/null
}

# start FLAG...: starts the exporter and writes the times until its page answers, is
# ready, and has a GPU's temperature.
start() {
  local name=$1
  shift
  [ "$SECONDS" -lt "$BUDGET" ] || return
  "$BIN" --web.listen-address="127.0.0.1:$PORT" "$@" "${FLAGS[@]}" >"exporter-$name.log" 2>&1 </dev/null &
  exporter=$!
  step 30 "start-$name.txt" until_served "$EPOCHREALTIME"
}

until_served() {
  local what path pattern
  while read -r what path pattern; do
    until body GET "$path" 2>/dev/null | grep -q "$pattern"; do sleep 0.02; done
    echo "$(since "$1") s until $what"
  done <<<'page /metrics ^accel_
ready /-/ready .
temperature /metrics ^accel_temperature_celsius'
}

# stop NAME: ends the exporter as systemd and the kubelet do.
stop() {
  [ -n "$exporter" ] || return 0
  local began=$EPOCHREALTIME status n
  kill "$exporter"
  for ((n = 0; n < 750; n++)); do
    kill -0 "$exporter" 2>/dev/null || break
    sleep 0.02
  done
  kill -9 "$exporter" 2>/dev/null
  wait "$exporter"
  status=$?
  exporter=''
  echo "$(since "$began") s from SIGTERM to the end, exit status $status" >"stop-$1.txt"
}

machine() {
  uname -srm
  grep PRETTY_NAME /etc/os-release
  getconf GNU_LIBC_VERSION
  "$BIN" --version
  id -u
  nproc
  grep -E 'MemTotal' /proc/meminfo
  grep -E '^(Cap(Prm|Eff|Bnd)|Seccomp|NoNewPrivs)' /proc/self/status
  cat /proc/self/cgroup /proc/sys/kernel/dmesg_restrict /proc/driver/nvidia/version /proc/driver/nvidia/params
  ls -l /dev/nvidia* /dev/kmsg
  grep -i nvidia /proc/modules /proc/mounts
  ldconfig -p | grep -E 'libnvidia-ml|libcuda\.so|libdcgm'
  ls -d /run/nvidia* /var/run/nvidia* /usr/local/nvidia/lib* 2>/dev/null
  timeout 10 find / -xdev -name 'libnvidia-ml.so*' 2>/dev/null
  true
}

# Attributes that the kernel reads without the driver.
sysfs() {
  local d
  for d in /sys/bus/pci/devices/*; do
    [ "$(cat "$d/vendor")" = 0x10de ] || continue
    echo "== ${d##*/}"
    (cd "$d" && grep -r . class device subsystem_device revision numa_node enable power_state current_link_speed \
      current_link_width max_link_speed max_link_width aer_dev_* power/control power/runtime_status reset_method 2>/dev/null)
    readlink -f "$d" "$d/driver"
  done
}

kernel_log() { dmesg 2>/dev/null | grep -iE 'nvrm|xid|nvidia|aer:|pcieport' | tail -n 300; }

more_of_smi() {
  nvidia-smi
  nvidia-smi topo -m
  nvidia-smi nvlink -s
  nvidia-smi mig -lgip
  nvidia-smi dmon -c 2 -s pucvmet
  nvidia-smi dmon -c 3 --gpm-metrics=1,2,3,4,5,6,7,9,10,11,12,13,20,21
  nvidia-smi pmon -c 1
} 2>&1

# scrapes N FILE: the duration of each of N scrapes, and the size of the response.
scrapes() {
  local n began header
  for header in '' 'Accept-Encoding: gzip'; do
    for ((n = 0; n < 50; n++)); do
      began=$EPOCHREALTIME
      http GET /metrics "$header" >scrape.tmp
      since "$began"
      echo
    done | sort -n | awk -v h="${header:-plain}" '{t[NR] = $1} END {printf "%s: %d scrapes, median %.1f ms, slowest %.1f ms, ", h, NR, t[int((NR + 1) / 2)] * 1000, t[NR] * 1000}'
    echo "$(wc -c <scrape.tmp) bytes with headers"
  done
  rm scrape.tmp
}

# cpu EXPORTER SECONDS: CPU time and memory of the exporter and its children, while
# it is scraped every 15 s.
cpu() {
  local p pids began=$EPOCHREALTIME n
  pids="$1 $(children "$1")"
  for p in $pids; do ticks "$p" >"ticks.$p"; done
  for ((n = 0; n < $2; n++)); do
    [ $((n % 15)) -gt 0 ] || page >/dev/null
    sleep 1
  done
  for p in $pids; do
    tr '\0' ' ' <"/proc/$p/cmdline" | sed "s,^[^ ]*/,,; s/ --.*//"
    awk -v was="$(cat "ticks.$p")" -v now="$(ticks "$p")" -v hz="$tick" -v s="$(since "$began")" \
      'BEGIN {printf ": %.2f s of CPU in %.1f s, %.3f %% of a core;", (now - was) / hz, s, 100 * (now - was) / hz / s}'
    awk '/^(VmRSS|VmHWM|RssAnon|Threads)/ {printf " %s %s %s", $1, $2, $3}' "/proc/$p/status"
    echo "; files $(find "/proc/$p/fd" -mindepth 1 | wc -l)"
    rm "ticks.$p"
  done
}

ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{print $12 + $13}'; }

# kill_worker EXPORTER: what the page shows while the worker is killed and replaced.
kill_worker() {
  local old now began
  old=$(worker "$1")
  [ -n "$old" ] || { echo "no worker"; return 1; }
  printf 'seconds\tworker\tpage\tGPU series\tsource up\texits\n'
  began=$EPOCHREALTIME
  while awk -v t="$(since "$began")" 'BEGIN {exit t > 15}'; do
    now=$(worker "$1")
    page >page.tmp && result=200 || result=failed
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$(since "$began")" "$([ "$now" = "$old" ] && echo old || echo "${now:+new}")" "$result" \
      "$(grep -c '^accel_[a-z_]*{.*device="GPU-' page.tmp)" "$(grep '^accel_source_up{.*"nvidia"' page.tmp | tr '\n' ' ')" \
      "$(grep '^accel_source_worker_exits_total{.*"nvidia"' page.tmp | tr '\n' ' ')"
    [ "$old" = killed ] || { kill -9 "$old" && old=killed; }
    sleep 0.2
  done
  rm page.tmp
  [ -n "$now" ]
}

# both NAME: the XML of nvidia-smi and the page after it.
both() {
  nvidia-smi -q -x >"$1.xml" && page >"$1.metrics"
}

# handles EXPORTER: the open device files.
handles() {
  local p
  for p in "$1" $(children "$1"); do
    find "/proc/$p/fd" -lname '/dev/nvidia*' -printf "$p %l\n"
  done 2>/dev/null | sort | uniq -c
}

# release EXPORTER: the handles before, during and after a release.
release() {
  echo "== before" && handles "$1"
  touch "$RAW/release/nvidia"
  sleep 3
  echo "== released" && handles "$1"
  page | grep -E '^accel_(source_(up|released)|device_up)'
  rm "$RAW/release/nvidia"
  sleep 5
  echo "== attached" && handles "$1"
  page | grep -E '^accel_(source_(up|released)|device_up)'
}

# The load waits for the file "go": importing PyTorch takes long, and the GPU is idle
# until then.
cat >load.py <<'PYTHON'
import ctypes, os, sys, time

end = 200
try:
    import torch
except Exception as e:
    print("no PyTorch:", e, flush=True)
    torch = None
while not os.path.exists("go"):
    time.sleep(0.1)
began = time.time()
running = lambda: time.time() - began < end and os.path.exists("go")
if torch and torch.cuda.is_available():
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    host = torch.empty(256 << 20, dtype=torch.uint8, pin_memory=True)
    device = torch.empty_like(host, device="cuda")
    held = torch.empty(8 << 30, dtype=torch.uint8, device="cuda").fill_(1)
    print("PyTorch", torch.__version__, torch.cuda.get_device_name(), flush=True)
    n, t = 0, time.time()
    while running():
        for _ in range(20):
            c = a @ b
        device.copy_(host)
        torch.cuda.synchronize()
        n += 20
    print("%.0f TFLOP/s of bf16 products" % (n * 2 * 8192**3 / (time.time() - t) / 1e12), flush=True)
else:
    # Without PyTorch the driver alone fills memory: no tensor core is active.
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *args):
        if status := getattr(cuda, name)(*args):
            sys.exit("%s: %d" % (name, status))

    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(1 << 30))
    print("libcuda: memory is filled", flush=True)
    while running():
        for _ in range(100):
            call("cuMemsetD32_v2", memory, 7, ctypes.c_size_t(1 << 28))
        call("cuCtxSynchronize")
PYTHON

under_load() {
  touch go
  for ((n = 0; n < 400; n++)); do
    grep -qE '^(PyTorch|libcuda)' load.txt && sleep 15 && return # longer than the slowest sampling
    kill -0 "$1" 2>/dev/null || break
    sleep 0.1
  done
  echo "no load:" && cat load.txt
  return 1
}

# What names this machine or one of its parts. Versions look like addresses, so only
# the machine's addresses are masked.
identities() {
  grep -rhoE '\b[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b' .
  grep -rhoE '\b([0-9a-f]{64}|[0-9a-f]{32})\b' . # containers
  grep -rhoE '(serial|serial_number|chassis_serial|pdi|guid|cluster_uuid)(>|="|": *")[^<"]+' . | sed -E 's/^[a-z_]*(>|="|": *")//'
  grep -rhoiE '(serial number|guid|pdi) *: *[0-9a-zA-Zx]+' . | sed 's/.*: *//'
  cat /etc/machine-id
  cat /sys/class/net/*/address
  awk '/host LOCAL/ {print a} {a = $2}' /proc/net/fib_trie
} 2>/dev/null

# mask copies the files to OUT. An identity becomes zeros with a number, the same in
# each file, and as long as it was, so that tables stay aligned. The beginning of a
# UUID is its short form.
mask() {
  local host f
  identities | grep -vE '^(127\.|0x0*$)' | grep -xE '[0-9A-Za-z:._-]{7,}' | grep '[0-9]' | sort -u | awk '
    {m = $0; gsub(/[0-9A-Za-z]/, "0", m); if ($0 ~ /^0x/) m = "0x" substr(m, 3)
     n = NR ""; m = substr(m, 1, length(m) - length(n)) n; short = substr($0, 1, 8)
     if (substr($0, 9, 1) == "-") {m = substr("00000000", length(n) + 1) n substr(m, 9); print "8\ts|-" short "\\b|-" substr(m, 1, 8) "|g"}
     gsub(/[.]/, "[.]"); print length($0) "\ts|" $0 "|" m "|g"}' | sort -rn | cut -f2- >mask.sed
  for host in "$(uname -n)" "$(hostname -f 2>/dev/null)"; do
    # A name that is also a word of the files names no machine.
    [[ $host =~ ^(|localhost.*|\(none\)|nvidia|gpu|node)$ ]] || echo "s|\\b${host//./[.]}\\b|node|g"
  done >>mask.sed
  echo "s|$BIN|accel-exporter|g" >>mask.sed
  for f in *; do
    case $f in go | release | steps | load.py | mask.sed | *.tmp | response.* | ticks.*) continue ;; esac
    sed -f mask.sed "$f" >"$OUT/$f"
  done
  grep -rhoEi '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}' "$OUT" | grep -v -- '-0000-0000-0000-' | sed 's/^/== not masked: /'
}

summary() {
  echo "== steps" && cat steps
  echo "== start and end" && tail -n +1 start-*.txt stop-*.txt
  echo "== scrapes" && cat scrapes.txt
  echo "== CPU" && tail -n +1 cpu-*.txt
  echo "== worker killed"
  awk -F '\t' 'NR > 1 {n++; if ($3 != 200) bad++; if (NR == 2 || $4 < low) low = $4; if (NR == 2) killed = $1; if (!back && $2 == "new") back = $1 - killed; last = $4; up = $5}
    END {printf "%d pages, %d failed; GPU series: at least %s, last %s; a worker again after at most %s s; %s\n", n, bad, low, last, back ? back : "?", up}' worker-killed.tsv
  echo "== load" && cat load.txt
  echo "== warnings of the exporter" && grep -hE 'level=(WARN|ERROR)' exporter-*.log | sed 's/^time=[^ ]* //' | sort | uniq -c | head -40
  echo "== doctor" && grep -E '^ *(LACKS|note)' doctor.txt
} 2>/dev/null # a file is missing where its step failed

finish() {
  [ "$BASHPID" = $$ ] || return # a signal may arrive between fork and exec
  trap '' EXIT TERM INT
  rm -f go
  [ -z "$load" ] || kill "$load" 2>/dev/null
  stop end
  summary >summary.txt
  mask >>"$OUT/summary.txt"
  cat "$OUT/summary.txt"
  echo "$SECONDS s in all, files in $OUT"
  rm -rf "$RAW"
}
trap finish EXIT
trap 'exit 143' TERM INT
export -f $(declare -F | cut -d' ' -f3)

{ command -v python3 >/dev/null && exec python3 load.py || echo "no python3"; } >load.txt 2>&1 </dev/null &
load=$!

step 20 machine.txt machine
step 10 sysfs.txt sysfs
step 20 smi-before.txt nvidia-smi -q
step 40 smi-more-idle.txt more_of_smi

start first
pause 12 # the slowest values are sampled every 10 s
step 30 both-idle.txt both idle
step 30 doctor.txt "$BIN" doctor
step 10 who-idle.txt "$BIN" who --wide --url="http://127.0.0.1:$PORT"
step 20 scrapes.txt scrapes
step $((CPU_SECONDS + 10)) cpu-idle.txt cpu "$exporter" "$CPU_SECONDS"
step 60 under-load.txt under_load "$load"
step 30 both-load.txt both load
step 10 who-load.txt "$BIN" who --wide --url="http://127.0.0.1:$PORT"
step $((CPU_SECONDS / 3 + 10)) cpu-load.txt cpu "$exporter" $((CPU_SECONDS / 3))
step 40 worker-killed.tsv kill_worker "$exporter"
stop first

mkdir release
start full --metrics.detail=full --release.directory="$RAW/release" --rules.builtin
pause 15
step 30 both-load-full.txt both load-full
step 40 smi-more-load.txt more_of_smi
rm -f go
pause 15
step 30 both-idle-full.txt both idle-full
step 10 status.json body GET /debug/status
step 10 state.json body GET /debug/state
step 10 alerts.txt "$BIN" alerts --url="http://127.0.0.1:$PORT"
step 20 release.txt release "$exporter"
stop full

step 20 smi-after.txt nvidia-smi -q
step 10 kernel-log.txt kernel_log
