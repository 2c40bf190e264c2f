package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// same translates to a flag of the same meaning.
func same(flag string) func(*translation, string) ([]string, error) {
	return func(_ *translation, value string) ([]string, error) { return []string{flag + "=" + value}, nil }
}

// when translates to flags where the value is on.
func when(on string, flags ...string) func(*translation, string) ([]string, error) {
	return func(_ *translation, value string) ([]string, error) {
		if value != on {
			return nil, nil
		}
		return flags, nil
	}
}

// sets sets an option to the value that is given, with flags where the value is on.
func sets(option func(*foreignOptions) *bool, flags ...string) func(*translation, string) ([]string, error) {
	return func(c *translation, value string) ([]string, error) {
		on := value == "true"
		if *option(&c.options) = on; on {
			return flags, nil
		}
		return nil, nil
	}
}

// allLabels reads every pod label from the API server.
var allLabels = []string{"--kubernetes.pods", "--kubernetes.pod-label=*", "--kubernetes.pod-label=*/*"}

const (
	notNeeded = "not needed here"
	allShown  = "every device is shown"
	noSamples = "its count of samples is not shown; use increase() of accel_gpu_xid_errors_total or accel_throttle_seconds_total"
)

var foreignFlags = []foreignFlag{
	{name: "collectors", short: []string{"f"}, env: "DCGM_EXPORTER_COLLECTORS", to: toFields},
	{name: "address", short: []string{"a"}, env: "DCGM_EXPORTER_LISTEN", to: same("--web.listen-address")},
	{name: "collect-interval", short: []string{"c"}, env: "DCGM_EXPORTER_INTERVAL", to: toInterval},
	{name: "kubernetes", short: []string{"k"}, env: "DCGM_EXPORTER_KUBERNETES", boolean: true, usual: "true", to: toPods},
	{name: "kubernetes-enable-pod-labels", env: "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", boolean: true, usual: "false", to: toPodLabels},
	{name: "kubernetes-enable-pod-uid", env: "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID", boolean: true, usual: "false", to: sets(func(o *foreignOptions) *bool { return &o.podUID }, "--kubernetes.pods")},
	{name: "kubernetes-gpu-id-type", env: "DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE", why: notNeeded + ": device ids of every form are recognised"},
	{name: "kubernetes-pod-label-allowlist-regex", env: "DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX", to: toAllowed},
	{name: "kubernetes-virtual-gpus", env: "KUBERNETES_VIRTUAL_GPUS", boolean: true, usual: "false", why: notNeeded + ": shared devices are recognised, and each pod gets the use of its own processes"},
	{name: "kubernetes-enable-dra", env: "KUBERNETES_ENABLE_DRA", boolean: true, usual: "false", to: when("true", "--kubernetes.pods", "--kubernetes.resource-slices")},
	{name: "nvidia-resource-names", env: "NVIDIA_RESOURCE_NAMES", why: notNeeded + ": devices are recognised by their ids, independent of the resource name"},
	{name: "pod-resources-kubelet-socket", env: "DCGM_POD_RESOURCES_KUBELET_SOCKET", to: same("--podresources.socket")},
	{name: "use-old-namespace", short: []string{"o"}, env: "DCGM_EXPORTER_USE_OLD_NAMESPACE", boolean: true, usual: "false", to: sets(func(o *foreignOptions) *bool { return &o.oldNames })},
	{name: "configmap-data", short: []string{"m"}, env: "DCGM_EXPORTER_CONFIGMAP_DATA", usual: "none", why: "ConfigMaps are not read; mount it and set --dcgm.fields, which is reloaded when the file changes"},
	{name: "remote-hostengine-info", short: []string{"r"}, env: "DCGM_REMOTE_HOSTENGINE_INFO", to: same("--dcgm.address")},
	{name: "devices", short: []string{"d"}, env: "DCGM_EXPORTER_DEVICES_STR", usual: "f", why: allShown},
	{name: "switch-devices", short: []string{"s"}, env: "DCGM_EXPORTER_OTHER_DEVICES_STR", usual: "f", why: allShown},
	{name: "cpu-devices", short: []string{"p"}, env: "DCGM_EXPORTER_CPU_DEVICES_STR", usual: "f", why: allShown},
	{name: "no-hostname", short: []string{"n"}, env: "DCGM_EXPORTER_NO_HOSTNAME", boolean: true, usual: "false", to: when("true", "--compat.hostname-label=none")},
	{name: "replace-blanks-in-model-name", short: []string{"rbmn"}, env: "DCGM_EXPORTER_REPLACE_BLANKS_IN_MODEL_NAME", boolean: true, usual: "false", to: sets(func(o *foreignOptions) *bool { return &o.dashes })},
	{name: "fake-gpus", env: "DCGM_EXPORTER_USE_FAKE_GPUS", boolean: true, usual: "false", why: "fake GPUs are not supported"},
	{name: "web-config-file", env: "DCGM_EXPORTER_WEB_CONFIG_FILE", to: same("--web.config.file")},
	{name: "web-systemd-socket", env: "DCGM_EXPORTER_SYSTEMD_SOCKET", boolean: true, usual: "false", to: when("true", "--web.systemd-socket")},
	{name: "xid-count-window-size", short: []string{"x"}, env: "DCGM_EXPORTER_XID_COUNT_WINDOW_SIZE", why: noSamples},
	{name: "clock-events-count-window-size", env: "DCGM_EXPORTER_CLOCK_EVENTS_COUNT_WINDOW_SIZE", why: noSamples},
	{name: "enable-dcgm-log", env: "DCGM_EXPORTER_ENABLE_DCGM_LOG", boolean: true, usual: "false", why: "DCGM's own log is the host engine's"},
	{name: "dcgm-log-level", env: "DCGM_EXPORTER_DCGM_LOG_LEVEL", usual: "NONE", why: "DCGM's own log is the host engine's"},
	{name: "debug", env: "DCGM_EXPORTER_DEBUG", boolean: true, usual: "false", to: when("true", "--log.level=debug")},
	{name: "log-format", env: "DCGM_EXPORTER_LOG_FORMAT", usual: "text", to: toLogFormat},
	{name: "hpc-job-mapping-dir", env: "DCGM_HPC_JOB_MAPPING_DIR", to: toJobs},
	{name: "dump-enabled", env: "DCGM_EXPORTER_DUMP_ENABLED", boolean: true, usual: "false", why: "/debug/state shows the state"},
	{name: "dump-directory", env: "DCGM_EXPORTER_DUMP_DIRECTORY", why: "nothing is dumped"},
	{name: "dump-retention", env: "DCGM_EXPORTER_DUMP_RETENTION", why: "nothing is dumped"},
	{name: "dump-compression", env: "DCGM_EXPORTER_DUMP_COMPRESSION", boolean: true, why: "nothing is dumped"},
	{name: "disable-startup-validate", env: "DISABLE_STARTUP_VALIDATE", boolean: true, usual: "false", why: notNeeded + ": a missing library is a state, not an error"},
	{name: "enable-gpu-bind-unbind-watch", env: "DCGM_EXPORTER_ENABLE_GPU_BIND_UNBIND_WATCH", boolean: true, usual: "false", why: notNeeded + ": devices that come and go are followed"},
	{name: "gpu-bind-unbind-poll-interval", env: "DCGM_EXPORTER_GPU_BIND_UNBIND_POLL_INTERVAL", why: notNeeded + ": devices that come and go are followed"},
	{name: "enable-pprof", env: "DCGM_EXPORTER_ENABLE_PPROF", boolean: true, usual: "false", why: "profiles are not served"},
	{name: "config-file", env: "DCGM_EXPORTER_CONFIG_FILE", why: "its format differs; see --config.file"},
	{name: "web-read-timeout", why: "fixed"},
	{name: "web-write-timeout", why: "fixed"},
	{name: "max-concurrent-scrapes", why: "fixed"},
	{name: "enable-exporter-metrics", boolean: true, why: notNeeded + ": they are always served"},
	{name: "watch-max-keep-age", why: "the host engine keeps what --dcgm.watch-interval needs"},
	{name: "watch-max-keep-samples", why: "the host engine keeps what --dcgm.watch-interval needs"},
	{name: "container-labels", boolean: true, why: "container labels are not read"},
	{name: "container-runtime-socket", env: "DCGM_CONTAINER_RUNTIME_SOCKET", why: "container labels are not read"},
}

// shipped are the counters files in dcgm-exporter's image. Where they are
// missing, the default rows apply.
var shipped = []string{"/etc/dcgm-exporter/default-counters.csv", "/etc/dcgm-exporter/dcp-metrics-included.csv"}

func toFields(c *translation, value string) ([]string, error) {
	for _, s := range shipped {
		if value == s && !c.exists(s) {
			return nil, nil
		}
	}
	return []string{"--dcgm.fields=" + value}, nil
}

func toInterval(_ *translation, value string) ([]string, error) {
	ms, err := strconv.Atoi(value)
	if err != nil || ms < 100 || ms > 600_000 {
		return nil, errors.New("milliseconds from 100 to 600000 are accepted")
	}
	return []string{fmt.Sprintf("--collect.interval=%dms", ms)}, nil
}

func toPods(c *translation, value string) ([]string, error) {
	c.options.noPods = value == "false"
	return nil, nil
}

func toJobs(c *translation, value string) ([]string, error) {
	c.options.jobs = value
	return nil, nil
}

// toPodLabels adds all labels; toAllowed restricts them to an allow-list.
func toPodLabels(c *translation, value string) ([]string, error) {
	if value != "true" {
		return nil, nil
	}
	c.podLabels = true
	return allLabels, nil
}

func toAllowed(c *translation, value string) ([]string, error) {
	for re := range strings.SplitSeq(value, ",") {
		if re = strings.TrimSpace(re); re != "" {
			c.options.podLabels = append(c.options.podLabels, re)
		}
	}
	return nil, nil
}

func toLogFormat(_ *translation, value string) ([]string, error) {
	if value != "json" {
		return nil, errors.New("text or json is accepted")
	}
	return []string{"--log.format=json"}, nil
}
