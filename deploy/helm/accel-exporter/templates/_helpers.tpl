{{- define "accel-exporter.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "accel-exporter.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "accel-exporter.selector" -}}
app.kubernetes.io/name: {{ include "accel-exporter.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "accel-exporter.labels" -}}
{{ include "accel-exporter.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "accel-exporter.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "accel-exporter.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "accel-exporter.image" -}}
{{- with .Values.image }}
{{- if not .repository }}{{ fail "image.repository is empty, and no public image exists. Push the image of `make image`, and name its repository, as HOST/accel-exporter." }}{{ end }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ default $.Chart.AppVersion .tag }}{{ end }}
{{- end }}
{{- end }}

{{/* What makes the container privileged, and what takes user 0. */}}
{{- define "accel-exporter.privileged" -}}
{{- if or (eq .Values.kernelLog.mode "device") (and .Values.nvidia.enabled (eq .Values.nvidia.access "driver-root")) }}true{{ end }}
{{- end }}

{{/* The mode of the kernel log that auto stands for: a container that is privileged
for another reason reads it without a further privilege. */}}
{{- define "accel-exporter.kernelLog" -}}
{{- if ne .Values.kernelLog.mode "auto" }}{{ .Values.kernelLog.mode }}{{ else if include "accel-exporter.privileged" . }}device{{ else }}none{{ end }}
{{- end }}

{{- define "accel-exporter.root" -}}
{{- if or .Values.podResources.enabled .Values.amd.processes (include "accel-exporter.privileged" .) }}true{{ end }}
{{- end }}

{{/* Where no state directory is given, nodes that send alerts have one. Only root can
write to the folder that the kubelet makes. */}}
{{- define "accel-exporter.stateDirectory" -}}
{{- if .Values.stateDirectory }}{{ .Values.stateDirectory }}{{ else if and (include "accel-exporter.root" .) (or .Values.nodeRules.alertmanagers ((.Values.config).alertmanager).endpoints) }}/var/lib/accel-exporter{{ end }}
{{- end }}

{{/* The capability to monitor MIG is requested; CDI's management device includes it. */}}
{{- define "accel-exporter.migMonitor" -}}
{{- with .Values.nvidia }}
{{- if and .enabled .migMonitor (has .access (list "runtime" "volume-mounts")) (not (hasPrefix "management.nvidia.com/" .visibleDevices)) }}true{{ end }}
{{- end }}
{{- end }}

{{- define "accel-exporter.capabilities" -}}
{{- $all := list }}
{{- if .Values.amd.processes }}{{ $all = append $all "SYS_PTRACE" }}{{ end }}
{{- if include "accel-exporter.migMonitor" . }}{{ $all = append $all "SYS_ADMIN" }}{{ end }}
{{- join ", " $all }}
{{- end }}

{{/* Files of the ConfigMap, by the flag that names them. */}}
{{- define "accel-exporter.files" -}}
{{- if or .Values.config .Values.baseline .Values.healthCatalogue }}true{{ end }}
{{- end }}

{{- define "accel-exporter.otlpFiles" -}}
{{- with .Values.traces }}
{{- if and .endpoint (or .headersSecret.name .caSecret.name) }}true{{ end }}
{{- end }}
{{- end }}

{{/* A monitor or a rule that the cluster does not know would fail halfway. */}}
{{- define "accel-exporter.needs" -}}
{{- if and .root.Values.crdCheck (not (.root.Capabilities.APIVersions.Has (printf "monitoring.coreos.com/v1/%s" .kind))) }}
{{- fail (printf "%s: the cluster has no %s (monitoring.coreos.com/v1). Install the Prometheus Operator, or its CRDs, first; to render without a cluster, set crdCheck=false." .value .kind) }}
{{- end }}
{{- end }}

{{/* The port of a URL. */}}
{{- define "accel-exporter.port" -}}
{{- $url := urlParse . }}
{{- $usual := dict "http" "80" "https" "443" }}
{{- regexFind ":[0-9]+$" $url.host | trimPrefix ":" | default (get $usual $url.scheme) }}
{{- end }}
