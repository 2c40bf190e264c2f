{{- define "accel-remediator.fullname" -}}
{{- default (printf "%s-remediator" (include "accel-exporter.fullname" .)) .Values.remediator.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "accel-remediator.namespace" -}}
{{- default .Release.Namespace .Values.remediator.namespace }}
{{- end }}

{{- define "accel-remediator.selector" -}}
app.kubernetes.io/name: accel-remediator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "accel-remediator.labels" -}}
{{ include "accel-remediator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end }}

{{- define "accel-remediator.serviceAccount" -}}
{{- with .Values.remediator.serviceAccount }}
{{- if .create }}{{ default (include "accel-remediator.fullname" $) .name }}{{ else }}{{ default "default" .name }}{{ end }}
{{- end }}
{{- end }}

{{- define "accel-remediator.image" -}}
{{- with .Values.remediator.image }}
{{- if not .repository }}{{ fail "remediator.image.repository is empty, and no public image exists. Push the image of `make image-remediator`, and name its repository, as HOST/accel-remediator." }}{{ end }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ default $.Chart.AppVersion .tag }}{{ end }}
{{- end }}
{{- end }}

{{/* The policy as text: that of the values, or the one to begin with. */}}
{{- define "accel-remediator.policy" -}}
{{- with .Values.remediator.policy }}{{ toYaml . }}{{ else }}{{ .Files.Get "files/remediator/policy.yml" }}{{ end }}
{{- end }}

{{/* What the policy asks for that takes a right: a list, to be read by fromYaml. */}}
{{- define "accel-remediator.asks" -}}
{{- $policy := include "accel-remediator.policy" . | fromYaml }}
{{- $asks := dict }}
{{- range $policy.rules }}
{{- if .evict }}{{ $_ := set $asks "evict" true }}{{ end }}
{{- if .device }}{{ $_ := set $asks "device" true }}{{ end }}
{{- if .test }}{{ $_ := set $asks "test" true }}{{ end }}
{{- end }}
{{- range $policy.hooks }}
{{- if .job }}{{ $_ := set $asks "job" true }}{{ end }}
{{- end }}
{{- toYaml $asks }}
{{- end }}

{{/* What would have no pod start, or one that can do nothing. */}}
{{- define "accel-remediator.check" -}}
{{- with .Values.remediator }}
{{- if not .alertmanagers }}
{{- fail "remediator.alertmanagers is empty: without the list of what fires nothing can be done or undone. Name every Alertmanager of the cluster, as http://HOST:9093." }}
{{- end }}
{{- if and .policy (not (hasKey .policy "rules")) }}
{{- fail "remediator.policy has no rules, and takes the place of the whole policy to begin with." }}
{{- end }}
{{- if and $.Values.web.configSecret (not .exporterCredentials) }}
{{- fail "web.configSecret is set and remediator.exporterCredentials is not: exporters refuse the remediator, and no node returns. Put exporter.yml into remediator.credentialsSecret." }}
{{- end }}
{{- if and .exporterCredentials (not .credentialsSecret) }}
{{- fail "remediator.exporterCredentials is set and remediator.credentialsSecret is empty: exporter.yml is in this Secret." }}
{{- end }}
{{- $policy := include "accel-remediator.policy" $ | fromYaml }}
{{- range $name, $hook := $policy.hooks }}
{{- if and $hook.job (ne (dir $hook.job) "/etc/accel-remediator") }}
{{- fail (printf "remediator.policy.hooks.%s.job is %s: the Jobs of remediator.jobs are in /etc/accel-remediator." $name $hook.job) }}
{{- end }}
{{- if and $hook.job (not (hasKey $.Values.remediator.jobs (base $hook.job))) }}
{{- fail (printf "remediator.policy.hooks.%s.job is %s: remediator.jobs has no %s." $name $hook.job (base $hook.job)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "accel-remediator.args" -}}
{{- with .Values.remediator }}
- --web.listen-address=:{{ .web.port }}
{{- if .web.configSecret }}
- --web.config.file=/run/secrets/web/web.yml
{{- end }}
- --policy.file=/etc/accel-remediator/policy.yml
{{- range .alertmanagers }}
- {{ printf "--alertmanager.url=%s" . | quote }}
{{- end }}
{{- if .credentialsSecret }}
- --alertmanager.http.config.file=/run/secrets/alertmanager/http.yml
{{- end }}
- --exporter.url={{ $.Values.web.scheme }}://{address}:{{ $.Values.web.port }}/metrics
- --exporter.namespace={{ $.Release.Namespace }}
- --exporter.selector=app.kubernetes.io/name=accel-exporter,app.kubernetes.io/instance={{ $.Release.Name }}
{{- if .exporterCredentials }}
- --exporter.http.config.file=/run/secrets/alertmanager/exporter.yml
{{- end }}
- --interval={{ .interval }}
{{- if .act }}
- --act
{{- end }}
- --log.level={{ $.Values.logLevel }}
- --log.format={{ $.Values.logFormat }}
{{- range .extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* A probe has no password. */}}
{{- define "accel-remediator.probe" -}}
{{- if .root.Values.remediator.web.configSecret -}}
tcpSocket: {port: http}
{{- else -}}
httpGet: {path: {{ .path }}, port: http}
{{- end }}
{{- end }}
