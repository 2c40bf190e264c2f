{{/* The rule files of files/rules that .Values.rules selects, and its extra groups: the
groups by the name of the file. */}}
{{- define "accel-exporter.ruleFiles" -}}
{{- $changes := .Values.rules }}
{{- $remediator := .Values.remediator.enabled }}
{{- $selected := dict }}
{{- $names := list }}
{{- $alerts := list }}
{{- $used := list "alertname" "instance" "job" }}
{{- range $path, $content := .Files.Glob "files/rules/*.yaml" }}
{{- $name := base $path | trimSuffix ".yaml" }}
{{- $names = append $names $name }}
{{- range regexFindAll "\\b(by|on|ignoring|group_left|group_right) *\\([^)]*\\)" (toString $content) -1 }}
{{- $used = concat $used (regexFindAll "\\w+" (splitList "(" . | last) -1) }}
{{- end }}
{{- /* The first of the texts of label_replace is the label. */}}
{{- range regexFindAll "\"\\w+\",\\s*\"[^\"]*\",\\s*\"\\w*\",\\s*\"" (toString $content) -1 }}
{{- $used = append $used (regexFind "\\w+" .) }}
{{- end }}
{{- $groups := list }}
{{- range (toString $content | fromYaml).groups }}
{{- $rules := list }}
{{- range .rules }}
{{- if .alert }}{{ $alerts = append $alerts .alert }}{{ end }}
{{- $used = concat $used (keys (default dict .labels)) }}
{{- if not (has .alert $changes.disabled) }}{{ $rules = append $rules . }}{{ end }}
{{- end }}
{{- if $rules }}{{ $groups = append $groups (set . "rules" $rules) }}{{ end }}
{{- end }}
{{- $on := ne $name "hosts" }}
{{- if eq $name "remediator" }}{{ $on = $remediator }}{{ end }}
{{- if hasKey $changes.files $name }}{{ $on = get $changes.files $name }}{{ end }}
{{- if and $on $groups }}{{ $_ := set $selected $name $groups }}{{ end }}
{{- end }}
{{- with $changes.extra }}{{ $_ := set $selected "extra" (deepCopy .) }}{{ end }}
{{- range $name, $_ := $changes.files }}
{{- if not (has $name $names) }}{{ fail (printf "rules.files.%s: no rule file has this name; accepted are %s" $name (join ", " $names)) }}{{ end }}
{{- end }}
{{- range $changes.disabled }}
{{- if not (has . $alerts) }}{{ fail (printf "rules.disabled: no alert is named %s; accepted are %s" . (sortAlpha $alerts | join ", ")) }}{{ end }}
{{- end }}
{{- range $name, $_ := $changes.labels }}
{{- if has $name $used }}{{ fail (printf "rules.labels.%s: the rules use this label; refused are %s" $name (sortAlpha $used | uniq | join ", ")) }}{{ end }}
{{- end }}
{{- range $groups := $selected }}{{ range $groups }}{{ range .rules }}
{{- if and .alert $changes.labels }}{{ $_ := set . "labels" (merge (default dict .labels) $changes.labels) }}{{ end }}
{{- end }}{{ end }}{{ end }}
{{- toYaml $selected }}
{{- end }}

{{/* Whether nodes read rule files in place of the built-in ones. */}}
{{- define "accel-exporter.nodeFiles" -}}
{{- with .Values }}
{{- if or .nodeRules.files (and .nodeRules.alertmanagers (or .rules.files .rules.disabled .rules.extra .rules.labels)) }}true{{ end }}
{{- end }}
{{- end }}
