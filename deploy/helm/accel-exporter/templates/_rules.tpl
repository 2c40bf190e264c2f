{{/* The built-in rules with the changes of .Values.rules, as `accel-exporter rules render`
makes them. files/rules has the rules with ${name} in place of values, files/values.yml
the defaults. The command checks more, and names the line of a mistake. */}}

{{/* All values, as YAML of texts. */}}
{{- define "accel-exporter.ruleValues" -}}
{{- $all := .Files.Get "files/values.yml" | fromYaml }}
{{- range $key, $value := .Values.rules.values }}
{{- if not (hasKey $all $key) }}
{{- fail (printf "rules.values.%s: unknown; accepted are %s" $key (keys $all | sortAlpha | join ", ")) }}
{{- end }}
{{- $number := kindIs "float64" (get $all $key) }}
{{- $duration := regexMatch "^([0-9]+(ms|[smhdwy]))+$" (get $all $key | toString) }}
{{- if or (ne $number (not (kindIs "string" $value))) (and $duration (not (regexMatch "^([0-9]+(ms|[smhdwy]))+$" $value))) (regexMatch "[\"\\\\$]" (toString $value)) }}
{{- fail (printf "rules.values.%s is %v; accepted is %s" $key $value ($number | ternary "a number" ($duration | ternary "a duration such as 5m" "a text without quotes, backslashes and dollar signs"))) }}
{{- end }}
{{- $_ := set $all $key $value }}
{{- end }}
{{- range $key, $value := $all }}
{{- $text := toString $value }}
{{- if and (kindIs "float64" $value) (eq $value (floor $value)) }}{{ $text = int64 $value | toString }}{{ end }}
{{ $key }}: {{ $text | toJson }}
{{- end }}
{{- end }}

{{/* .text with the values in place. */}}
{{- define "accel-exporter.expand" -}}
{{- $text := .text }}
{{- range regexFindAll "\\$\\{[a-z_]*\\}" .text -1 | uniq }}
{{- $text = replace . (get $.values (. | trimPrefix "${" | trimSuffix "}")) $text }}
{{- end }}
{{- $text }}
{{- end }}

{{/* The groups of the rule file .path, as YAML; empty if no rule is left. */}}
{{- define "accel-exporter.ruleGroups" -}}
{{- $changes := .root.Values.rules }}
{{- $groups := list }}
{{- range $form := (.root.Files.Get .path | fromYaml).groups }}
{{- $values := deepCopy $.values }}
{{- $group := dict "name" $form.name }}
{{- if $form.interval }}
{{- $interval := include "accel-exporter.expand" (dict "text" $form.interval "values" $values) }}
{{- $_ := set $group "interval" $interval }}
{{- $unit := get (dict "s" 1 "m" 60 "h" 3600) (trimAll "0123456789" $interval) | required (printf "the interval %s is not a number with s, m or h" $interval) }}
{{- $_ := set $values "once_and_a_half" (printf "%ds" (div (mul (regexFind "^[0-9]+" $interval) $unit 3) 2)) }}
{{- end }}
{{- $rules := list }}
{{- range $rule := $form.rules }}
{{- $alert := $rule.alert | default (regexFind "^device:.+:since$" ($rule.record | default "") | trimPrefix "device:" | trimSuffix ":since") }}
{{- $change := get $changes.alerts $alert | default dict }}
{{- if ne (get $change "enabled" | toString) "false" }}
{{- if and $rule.alert $change.for }}
{{- if eq ($rule.wait | default "") "none" }}
{{- fail (printf "rules.alerts.%s.for: this alert on a device fires at once; a wait would restart with each pod on the device" $alert) }}
{{- end }}
{{- $_ := set $rule (ternary "wait" "for" (not (empty $rule.wait))) $change.for }}
{{- end }}
{{- if $rule.wait }}
{{- $_ := set $values "wait" (include "accel-exporter.expand" (dict "text" $rule.wait "values" $values)) }}
{{- end }}
{{- if and $rule.alert $change.keep_firing_for }}{{ $_ := set $rule "keep_firing_for" $change.keep_firing_for }}{{ end }}
{{- $out := dict }}
{{- range $key, $value := omit $rule "wait" }}
{{- if kindIs "map" $value }}
{{- $texts := dict }}
{{- range $name, $text := $value }}
{{- $_ := set $texts $name (include "accel-exporter.expand" (dict "text" $text "values" $values)) }}
{{- end }}
{{- $_ := set $out $key $texts }}
{{- else }}
{{- $_ := set $out $key (include "accel-exporter.expand" (dict "text" $value "values" $values)) }}
{{- end }}
{{- end }}
{{- if $rule.alert }}
{{- if $change.severity }}{{ $_ := set $out.labels "severity" $change.severity }}{{ end }}
{{- range $field := list "labels" "annotations" }}
{{- range $source := list $changes $change }}
{{- range $name, $text := get $source $field | default dict }}
{{- $_ := set (get $out $field) $name (toString $text) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- $rules = append $rules $out }}
{{- end }}
{{- end }}
{{- if $rules }}{{ $groups = append $groups (set $group "rules" $rules) }}{{ end }}
{{- end }}
{{- if $groups }}{{ toYaml $groups }}{{ end }}
{{- end }}

{{/* Names of alerts in rules.alerts that no rule has. */}}
{{- define "accel-exporter.checkAlerts" -}}
{{- $known := dict }}
{{- range $path, $_ := .Files.Glob "files/rules/*.yaml" }}
{{- range ($.Files.Get $path | fromYaml).groups }}{{ range .rules }}{{ if .alert }}{{ $_ := set $known .alert true }}{{ end }}{{ end }}{{ end }}
{{- end }}
{{- range $name, $_ := .Values.rules.alerts }}
{{- if not (hasKey $known $name) }}{{ fail (printf "rules.alerts.%s: unknown; accepted are %s" $name (keys $known | sortAlpha | join ", ")) }}{{ end }}
{{- end }}
{{- end }}
