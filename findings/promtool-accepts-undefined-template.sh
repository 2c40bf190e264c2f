#!/usr/bin/env bash
# Finding: `promtool check rules` and a rule test accept an annotation that calls a template
# which is defined nowhere. The mistake shows only when the alert fires: the annotation is
# then the text of the error. A test that does not compare that annotation passes.
# Expected: a mistake, as for a template that does not parse.
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
    rules:
      - alert: Up
        expr: up == 1
        annotations:
          summary: '{{ template "not_defined_anywhere" . }}'
Y
cat > test.yml <<'Y'
rule_files: [rules.yml]
tests:
  - input_series: [{series: up, values: 1x10}]
    promql_expr_test:
      - {expr: 'count(ALERTS{alertstate="firing"})', eval_time: 5m, exp_samples: [{labels: '{}', value: 1}]}
    alert_rule_test:
      - eval_time: 5m
        alertname: Up
        exp_alerts: [{exp_annotations: {summary: ""}}]
Y
check=$(usr/bin/promtool check rules rules.yml)
grep -q 'SUCCESS: 1 rules found' <<<"$check" || { echo "changed: check rules says: $check"; exit 1; }
test=$(usr/bin/promtool test rules test.yml 2>&1) && { echo "changed: the test passes"; exit 1; }
grep -q 'error expanding template' <<<"$test" || { echo "changed: the annotation is: $test"; exit 1; }
sed -i '/alert_rule_test/,$d' test.yml
usr/bin/promtool test rules test.yml >/dev/null || { echo "changed: a test without annotations fails"; exit 1; }
echo "as found: the check passes, a test of the alert alone passes, the annotation is an error text"
