{{- define "accel-exporter.args" -}}
{{- with .Values }}
- --web.listen-address=:{{ .web.port }}
{{- if .web.configSecret }}
- --web.config.file=/etc/accel-exporter/web/web.yml
{{- end }}
{{- if .releaseDirectory }}
- --release.directory=/run/accel-exporter
{{- end }}
{{- if include "accel-exporter.stateDirectory" $ }}
- --path.state=/var/lib/accel-exporter
{{- end }}
{{- if .config }}
- --config.file=/etc/accel-exporter/files/accel.yml
{{- end }}
{{- if .baseline }}
- --baseline.file=/etc/accel-exporter/files/baseline.yml
{{- end }}
{{- if .healthCatalogue }}
- --health.catalogue=/etc/accel-exporter/files/catalogue.yml
{{- end }}
{{- range $name, $value := .nodeLabels }}
- {{ printf "--node.label=%s=%s" $name $value | quote }}
{{- end }}
{{- if not .nvidia.enabled }}
- --no-collector.nvidia
{{- end }}
{{- if .dcgm.address }}
- {{ printf "--dcgm.address=%s" .dcgm.address | quote }}
{{- end }}
{{- if .dcgm.embedded }}
- --dcgm.embedded
{{- end }}
{{- if .compat.dcgmExporter }}
- --compat.dcgm-exporter
{{- end }}
{{- if .compat.fields }}
- --dcgm.fields=/etc/accel-exporter/fields/counters.csv
{{- end }}
{{- if not .amd.enabled }}
- --no-collector.amd
{{- end }}
{{- if not .fpga.enabled }}
- --no-collector.fpga
{{- end }}
{{- if .fpga.deviceTree }}
- --path.devicetree=/host/firmware/devicetree/base
{{- end }}
{{- if not .pcie.enabled }}
- --no-collector.pcie
{{- end }}
{{- if .deviceFiles }}
- --path.devfs=/host/dev
{{- end }}
{{- if eq (include "accel-exporter.kernelLog" $) "none" }}
- --no-collector.kernellog
{{- else if eq .kernelLog.mode "file" }}
- {{ printf "--kernel-log.path=/host/kernel-log/%s" .kernelLog.file | quote }}
{{- end }}
{{- if not .podResources.enabled }}
- --podresources.socket=
{{- end }}
{{- if .podMetadata.enabled }}
- --kubernetes.pods
{{- end }}
{{- if .podMetadata.resourceSlices }}
- --kubernetes.resource-slices
{{- end }}
{{- range .podMetadata.labels }}
- {{ printf "--kubernetes.pod-label=%s" . | quote }}
{{- end }}
{{- range .nodeRules.alertmanagers }}
- {{ printf "--alertmanager.url=%s" . | quote }}
{{- end }}
{{- if include "accel-exporter.nodeFiles" $ }}
- --rules.file=/etc/accel-exporter/rules/*.yaml
{{- end }}
{{- if or .nodeRules.alertmanagers .nodeRules.files }}
- --rules.interval={{ .nodeRules.interval }}
{{- end }}
{{- range $name, $value := .nodeRules.targetLabels }}
- {{ printf "--rules.target-label=%s=%s" $name $value | quote }}
{{- end }}
{{- if .traces.endpoint }}
- {{ printf "--otlp.endpoint=%s" .traces.endpoint | quote }}
{{- if .traces.headersSecret.name }}
- --otlp.headers-file=/run/secrets/otlp/headers.yml
{{- end }}
{{- if .traces.caSecret.name }}
- --otlp.ca-file=/run/secrets/otlp/ca.crt
{{- end }}
{{- end }}
{{- if .bundle.enabled }}
- --bundle.directory=/var/lib/accel-bundles
- --bundle.keep={{ .bundle.keep }}
{{- if .bundle.url }}
- {{ printf "--bundle.url=%s" .bundle.url | quote }}
{{- if .bundle.headersSecret.name }}
- --bundle.headers-file=/run/secrets/bundle/headers.yml
{{- end }}
{{- end }}
{{- end }}
- --log.level={{ .logLevel }}
- --log.format={{ .logFormat }}
{{- range .extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- define "accel-exporter.env" -}}
- name: NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
{{- if contains "$(HOST_IP)" .Values.dcgm.address }}
- name: HOST_IP
  valueFrom: {fieldRef: {fieldPath: status.hostIP}}
{{- end }}
{{- if .Values.dcgm.libraryImage }}
- name: LD_LIBRARY_PATH
  value: /usr/local/dcgm
{{- end }}
{{- with .Values.nvidia }}
{{- if and .enabled (eq .access "runtime") }}
- name: NVIDIA_VISIBLE_DEVICES
  value: {{ .visibleDevices | quote }}
{{- else if and .enabled (eq .access "volume-mounts") }}
- name: NVIDIA_VISIBLE_DEVICES
  value: /var/run/nvidia-container-devices
{{- end }}
{{- if and .enabled (has .access (list "runtime" "volume-mounts")) }}
- name: NVIDIA_DRIVER_CAPABILITIES
  value: {{ $.Values.dcgm.embedded | ternary "compute,utility" "utility" }}
{{- end }}
{{- end }}
{{- if include "accel-exporter.migMonitor" . }}
- name: NVIDIA_MIG_MONITOR_DEVICES
  value: all
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "accel-exporter.securityContext" -}}
readOnlyRootFilesystem: true
{{- if include "accel-exporter.root" . }}
runAsUser: 0
runAsGroup: 0
{{- else }}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
{{- end }}
{{- if include "accel-exporter.privileged" . }}
privileged: true
{{- else }}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
  {{- with include "accel-exporter.capabilities" . }}
  add: [{{ . }}]
  {{- end }}
{{- end }}
{{- end }}

{{/* Each mount beside its volume: a list of both, to be read by fromYaml. A node
without one of the folders gets an empty one: its devices are monitored all the same, and
the exporter reports what is missing. */}}
{{- define "accel-exporter.storage" -}}
{{- with .Values }}
volumes:
{{- if .podResources.enabled }}
- name: pod-resources
  hostPath: {path: {{ .podResources.directory | quote }}, type: DirectoryOrCreate}
{{- end }}
{{- if and .podResources.enabled .podMetadata.kubelet }}
- name: pods-api
  hostPath: {path: {{ .podMetadata.kubeletDirectory | quote }}, type: DirectoryOrCreate}
{{- end }}
{{- if include "accel-exporter.files" $ }}
- name: files
  configMap: {name: {{ include "accel-exporter.fullname" $ }}}
{{- end }}
{{- if .compat.fields }}
- name: fields
  configMap: {name: {{ include "accel-exporter.fullname" $ }}-fields}
{{- end }}
{{- if include "accel-exporter.nodeFiles" $ }}
- name: rules
  configMap: {name: {{ include "accel-exporter.fullname" $ }}-rules}
{{- end }}
{{- if .nodeRules.credentialsSecret }}
- name: alertmanager
  secret: {secretName: {{ .nodeRules.credentialsSecret | quote }}}
{{- end }}
{{- if include "accel-exporter.otlpFiles" $ }}
- name: otlp
  projected:
    sources:
      {{- with .traces.headersSecret }}{{- if .name }}
      - secret: {name: {{ .name | quote }}, items: [{key: {{ .key | quote }}, path: headers.yml}]}
      {{- end }}{{- end }}
      {{- with .traces.caSecret }}{{- if .name }}
      - secret: {name: {{ .name | quote }}, items: [{key: {{ .key | quote }}, path: ca.crt}]}
      {{- end }}{{- end }}
{{- end }}
{{- if .web.configSecret }}
- name: web
  secret: {secretName: {{ .web.configSecret | quote }}}
{{- end }}
{{- if .releaseDirectory }}
- name: release
  hostPath: {path: {{ .releaseDirectory | quote }}, type: DirectoryOrCreate}
{{- end }}
{{- if include "accel-exporter.stateDirectory" $ }}
- name: state
  hostPath: {path: {{ include "accel-exporter.stateDirectory" $ | quote }}, type: DirectoryOrCreate}
{{- end }}
{{- if .bundle.enabled }}
- name: bundles
{{ .bundle.volume | default (dict "emptyDir" (dict "sizeLimit" "64Mi")) | toYaml | indent 2 }}
{{- if and .bundle.url .bundle.headersSecret.name }}
- name: bundle-login
  secret: {secretName: {{ .bundle.headersSecret.name | quote }}, items: [{key: {{ .bundle.headersSecret.key | quote }}, path: headers.yml}]}
{{- end }}
{{- end }}
{{- if .dcgm.libraryImage }}
- name: dcgm
  emptyDir: {sizeLimit: 512Mi}
{{- end }}
{{- if eq .kernelLog.mode "file" }}
- name: kernel-log
  hostPath: {path: {{ .kernelLog.directory | quote }}, type: DirectoryOrCreate}
{{- end }}
{{- if .processes.podLogs }}
- name: pod-logs
  hostPath: {path: /var/log/pods, type: DirectoryOrCreate}
{{- end }}
{{- if .deviceFiles }}
- name: dev
  hostPath: {path: /dev, type: Directory}
{{- end }}
{{- if .fpga.deviceTree }}
- name: firmware # below it is the device tree, if the node has one
  hostPath: {path: /sys/firmware, type: Directory}
{{- end }}
{{- if and .nvidia.enabled (eq .nvidia.access "volume-mounts") }}
- name: nvidia-devices
  hostPath: {path: /dev/null}
{{- end }}
{{- if and .nvidia.enabled (eq .nvidia.access "driver-root") }}
- name: nvidia-driver
  hostPath: {path: {{ .nvidia.driverRoot | quote }}, type: DirectoryOrCreate}
{{- end }}
{{- with .extraVolumes }}
{{ toYaml . }}
{{- end }}
mounts:
{{- if .podResources.enabled }}
- {name: pod-resources, mountPath: /var/lib/kubelet/pod-resources, readOnly: true}
{{- end }}
{{- if and .podResources.enabled .podMetadata.kubelet }}
- {name: pods-api, mountPath: /var/lib/kubelet/pods-api, readOnly: true}
{{- end }}
{{- if include "accel-exporter.files" $ }}
- {name: files, mountPath: /etc/accel-exporter/files, readOnly: true}
{{- end }}
{{- if .compat.fields }}
- {name: fields, mountPath: /etc/accel-exporter/fields, readOnly: true}
{{- end }}
{{- if include "accel-exporter.nodeFiles" $ }}
- {name: rules, mountPath: /etc/accel-exporter/rules, readOnly: true}
{{- end }}
{{- if .nodeRules.credentialsSecret }}
- {name: alertmanager, mountPath: /run/secrets/alertmanager, readOnly: true}
{{- end }}
{{- if include "accel-exporter.otlpFiles" $ }}
- {name: otlp, mountPath: /run/secrets/otlp, readOnly: true}
{{- end }}
{{- if .web.configSecret }}
- {name: web, mountPath: /etc/accel-exporter/web, readOnly: true}
{{- end }}
{{- if .releaseDirectory }}
- {name: release, mountPath: /run/accel-exporter, readOnly: true}
{{- end }}
{{- if include "accel-exporter.stateDirectory" $ }}
- {name: state, mountPath: /var/lib/accel-exporter}
{{- end }}
{{- if .bundle.enabled }}
- {name: bundles, mountPath: /var/lib/accel-bundles}
{{- if and .bundle.url .bundle.headersSecret.name }}
- {name: bundle-login, mountPath: /run/secrets/bundle, readOnly: true}
{{- end }}
{{- end }}
{{- if .dcgm.libraryImage }}
- {name: dcgm, mountPath: /usr/local/dcgm, readOnly: true}
{{- end }}
{{- if eq .kernelLog.mode "file" }}
- {name: kernel-log, mountPath: /host/kernel-log, readOnly: true}
{{- end }}
{{- if .processes.podLogs }}
- {name: pod-logs, mountPath: /var/log/pods, readOnly: true}
{{- end }}
{{- if .deviceFiles }}
- {name: dev, mountPath: /host/dev, readOnly: true}
{{- end }}
{{- if .fpga.deviceTree }}
- {name: firmware, mountPath: /host/firmware, readOnly: true}
{{- end }}
{{- if and .nvidia.enabled (eq .nvidia.access "volume-mounts") }}
- {name: nvidia-devices, mountPath: /var/run/nvidia-container-devices/all, readOnly: true}
{{- end }}
{{- if and .nvidia.enabled (eq .nvidia.access "driver-root") }}
- {name: nvidia-driver, mountPath: /usr/local/nvidia, readOnly: true}
{{- end }}
{{- with .extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}

{{- define "accel-exporter.probe" -}}
{{- if eq .root.Values.probes.type "tcpSocket" -}}
tcpSocket: {port: metrics}
{{- else -}}
httpGet: {path: {{ .path }}, port: metrics, scheme: {{ upper .root.Values.web.scheme }}}
{{- end }}
{{- end }}
