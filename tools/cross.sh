#!/usr/bin/env bash
# Compares the exporter with other readers of sysfs on every tree of fixtures/trees: libsensors
# and node_exporter for sensors and their limits, lspci for the ids. It needs root, for a
# mount namespace, and bin of make build.
#
#	tools/cross.sh [TREE...]
#
# A value is equal, of another unit (a power of a thousand), or missing on the exporter's
# page. What is missing on purpose is below, with the reason. Power, temperature and current of
# trees whose driver has other units than hwmon are of another unit on purpose.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

# on_purpose TREE KIND VALUE: why a value of another reader is not on the exporter's page.
on_purpose() {
  case "$1 $2 $3" in
    *' limit 0' | *' limit -273.15') echo 'no limit' ;;
    'v80-ami limit'*) echo 'of a sensor that is not fitted' ;;
    'xilinx-u250-xrt limit'*) echo 'its *_max are the highest readings so far' ;;
    'vck5000-xrt power 3.3e-05') echo 'the average since the start of the firmware' ;;
    *' id '*) echo 'another function of a card, or a GPU, which has its model' ;;
    'v80-ami '*) echo 'reading a sensor ends the programs that use the card' ;;
    *' temp -'* | *' temp '[4-9][0-9][0-9][0-9]* | *' temp '*e+*) echo 'no part has this temperature' ;;
    'intel-n6001-ofs limit 17.5') echo 'the limit of an empty cage' ;;
    'radeon limit 3300') echo 'accel_fan_speed_ratio has the share of it' ;;
    *' '*' 0') echo 'not fitted, or not measured' ;;
    *) return 1 ;;
  esac
}

# readers TREE prints KIND VALUE for each sensor, limit and id that the other programs find.
readers() {
  unshare -m bash -c 'for d in class bus devices; do mount --bind "$0/$d" "/sys/$d"; done
    sensors -j >"$1/sensors" 2>/dev/null; lspci -Dn 2>/dev/null' "$work/$1/sys" "$work" | sed -nE 's/^\S+ 12\S+: (\S+).*/id \1/p'
  jq -r '.[][] | objects | to_entries[] | (.key | capture("^(?<kind>[a-z]+)[0-9]+_(?<what>.*)$")) as $k
    | if $k.what | test("^(input|average)$") then $k.kind elif $k.what | test("^(l?crit|min|max|emergency|cap.*)$") then "limit" else empty end
    + " \(.value)"' "$work/sensors"
  prometheus-node-exporter --path.sysfs="$work/$1/sys" --collector.disable-defaults --collector.hwmon --collector.drm --web.listen-address=127.0.0.1:19488 2>/dev/null &
  scrape 'node_scrape_collector_success' 19488 $! | sed -nE \
    's/^node_hwmon_(temp_celsius|in_volts|curr_amps|power_(average_)?watt|fan_rpm)\{.* (.*)/\1 \3/; s/^node_drm_memory_vram_size_bytes\{.* (.*)/memory \1/; T; s/_\S*//; p'
}

# exporter TREE prints the same for the exporter's page.
exporter() {
  bin/accel-exporter --no-collector.nvidia --no-collector.kernellog --path.sysfs="$work/$1/sys" --path.procfs="$work/proc" --metrics.detail=full \
    --podresources.socket="$work/none" --web.listen-address=127.0.0.1:19489 2>/dev/null &
  scrape '^accel_device_up.* 1$' 19489 $! >"$work/page"
  sed -nE 's/^accel_temperature_celsius\{.* (.*)/temp \1/; s/^accel_(fpga|gpu)_voltage_volts\{.* (.*)/in \2/; s/^accel_fpga_current_amperes\{.* (.*)/curr \1/
    s/^accel_(power|power_average|fpga_rail_power)_watts\{.* (.*)/power \2/; s/^accel_fan_speed_rpm\{.* (.*)/fan \1/; s/^accel_memory_total_bytes\{.* (.*)/memory \1/
    s/^accel_\w*_(limit|threshold)_\w+\{.* (.*)/limit \2/; s/^accel_fpga_info\{.*pci_id="([^"]*)".*/id \1/; T; p' "$work/page"
}

# scrape PATTERN PORT PID prints a page once it has the pattern, and ends its program.
scrape() {
  for _ in $(seq 200); do
    curl -sf "http://127.0.0.1:$2/metrics" >"$work/scraped" && grep -q "$1" "$work/scraped" && break
    sleep 0.1
  done
  kill "$3"
  cat "$work/scraped"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/proc"
[ $# -gt 0 ] || set -- fixtures/trees/*.txt
printf '%-20s %-7s %6s %5s %8s %11s\n' TREE KIND EQUAL UNIT MISSING 'ON PURPOSE'
for file; do
  tree=$(basename "$file" .txt)
  mkdir -p "$work/$tree/sys/class" "$work/$tree/sys/bus" "$work/$tree/sys/devices"
  bin/accel-sim tree "fixtures/trees/$tree.txt" "$work/$tree" 2>/dev/null
  exporter "$tree" >"$work/ours"
  readers "$tree" | sort -u | awk '
    NR == FNR { if ($2 ~ /:/) ids[$2]; else ours[$1] = ours[$1] " " $2; next }
    {
      result = "missing"
      if ($1 == "id") { if (tolower($2) in ids) result = "equal" }
      else {
        n = split(ours[$1], v, " ")
        for (i = 1; i <= n; i++) {
          if (near($2, v[i])) { result = "equal"; break }
          ratio = $2 ? v[i] / $2 : 0
          if (ratio > 980 && ratio < 1020 || ratio > 98e4 && ratio < 102e4 || ratio > 98e-5 && ratio < 102e-5) result = "unit"
        }
      }
      print $1, $2, result
    }
    function near(a, b) { d = a - b; return (d < 0 ? -d : d) <= 0.0006 + (b < 0 ? -b : b) * 1e-9 }
  ' "$work/ours" - >"$work/compared"
  : >"$work/final"
  while read -r kind value result; do
    reason=''
    if [ "$result" != equal ] && reason=$(on_purpose "$tree" "$kind" "$value"); then result=purpose; fi
    echo "$kind $result" >>"$work/final"
    [ "$result" = equal ] || echo "  $tree: $kind $value: ${reason:-$result}" >>"$work/details"
  done <"$work/compared"
  for kind in temp in curr power fan memory limit id; do
    awk -v tree="$tree" -v kind="$kind" '$1 == kind { n[$2]++; all++ }
      END { if (all) printf "%-20s %-7s %6d %5d %8d %11d\n", tree, kind, n["equal"], n["unit"], n["missing"], n["purpose"] }' "$work/final"
  done
done
sort -u "$work/details"
! grep -q ': missing$' "$work/details"
