#!/usr/bin/env bash
# Finding: `promtool test rules` evaluates every group at the evaluation_interval of the test
# file and ignores the group's own `interval`. A rule that a server evaluates each 10 minutes
# is evaluated each minute in its test, so a test cannot show what the interval does to it:
# an alert with `for: 5m` fires in the test after 5 minutes and on the server after 10.
# Expected: the group's interval applies, or promtool reports that it does not.
# Version: Debian's prometheus 2.42.0+ds-5+deb12u1. Output seen is below, as the script requires it.
set -euo pipefail
version=2.42.0+ds-5+deb12u1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
cd "$dir"
apt-get download -qq "prometheus=$version" 2>/dev/null || { apt-get update -qq && apt-get download -qq "prometheus=$version"; }
dpkg -x prometheus_*.deb .

cat > rules.yml <<'Y'
groups:
  - name: g
    interval: 10m
    rules:
      - {record: evaluated_at_minutes, expr: time() / 60}
      - {alert: Up, expr: up == 1, for: 5m}
Y
cat > test.yml <<'Y'
rule_files: [rules.yml]
evaluation_interval: 1m
tests:
  - input_series: [{series: up, values: 1x30}]
    promql_expr_test:
      - {expr: evaluated_at_minutes, eval_time: 7m, exp_samples: [{labels: evaluated_at_minutes, value: 7}]}
    alert_rule_test:
      - {eval_time: 5m, alertname: Up, exp_alerts: [{}]}
Y
usr/bin/promtool test rules test.yml >/dev/null || { echo "changed: the group's interval counts"; exit 1; }
echo "as found: a group with an interval of 10m is evaluated at 5m and at 7m"
