package deploy

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// forbidden is what the level restricted of Pod Security has against a pod.
func forbidden(t *testing.T, spec *corev1.PodSpec) string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, r := range evaluator.EvaluatePod(level, &metav1.ObjectMeta{}, spec) {
		if !r.Allowed {
			reasons = append(reasons, r.ForbiddenReason)
		}
	}
	slices.Sort(reasons)
	return strings.Join(reasons, "; ")
}

// Violations of the restricted level by a container that mounts a folder of the
// node as root, and by a privileged container.
const (
	asRoot     = "restricted volume types; runAsNonRoot != true; runAsUser=0"
	privileged = "allowPrivilegeEscalation != false; privileged; " + asRoot + "; unrestricted capabilities"
)

// powers are what the pods of each case of ci take beyond the restricted level.
var powers = map[string]string{
	"restricted":          "",
	"rules":               asRoot,
	"default":             asRoot,
	"compat":              asRoot,
	"dcgm":                asRoot,
	"dcgm-embedded":       asRoot,
	"alerts":              asRoot,
	"bottlerocket":        asRoot + "; seLinuxOptions",
	"bundle":              asRoot,
	"closed":              asRoot,
	"everything":          "allowPrivilegeEscalation != false; host namespaces; privileged; " + asRoot + "; unrestricted capabilities",
	"fpga":                asRoot,
	"gke":                 privileged,
	"gpu-operator":        asRoot,
	"kernel-log":          privileged,
	"kernel-log-file":     asRoot,
	"kubelet-pods":        asRoot,
	"mig-monitor":         asRoot + "; unrestricted capabilities",
	"network-policy":      asRoot,
	"openshift":           asRoot + "; seLinuxOptions",
	"pod-metadata":        asRoot,
	"processes":           "host namespaces; " + asRoot,
	"prometheus-operator": asRoot,
	// The exporter's pods; the remediator's pass.
	"remediator":            asRoot,
	"remediator-act":        asRoot,
	"remediator-everything": asRoot,
	"traces":                asRoot,
	"tls":                   asRoot,
}

// TestPodSecurity: a power is there where its value is, and nowhere else. The
// remediator's pods pass the level restricted, whatever is turned on.
func TestPodSecurity(t *testing.T) {
	for _, name := range remediatorCases(t) {
		if reasons := forbidden(t, remediatorSpec(t, objects(t, name))); reasons != "" {
			t.Errorf("the remediator of %s takes %s", name, reasons)
		}
	}
	for _, name := range cases(t) {
		want, ok := powers[name]
		if got := forbidden(t, podSpec(t, objects(t, name))); !ok || got != want {
			t.Errorf("%s takes %q, want %q", name, got, want)
		}
	}
}

// TestEveryPod: invariants of every combination.
func TestEveryPod(t *testing.T) {
	specs := map[string]*corev1.PodSpec{}
	for _, name := range cases(t) {
		specs[name] = podSpec(t, objects(t, name))
	}
	for _, name := range remediatorCases(t) {
		specs[name+", remediator"] = remediatorSpec(t, objects(t, name))
	}
	for name, spec := range specs {
		c := spec.Containers[0]
		for _, resources := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
			for resource := range maps.Keys(resources) {
				if resource != corev1.ResourceCPU && resource != corev1.ResourceMemory {
					t.Errorf("%s: it requests %s", name, resource)
				}
			}
		}
		if len(spec.Containers) != 1 || len(spec.ResourceClaims) > 0 {
			t.Errorf("%s: more than one container, or a claim", name)
		}
		for _, m := range c.VolumeMounts {
			// A file that is mounted by subPath never changes again.
			written := m.MountPath == "/var/lib/accel-exporter" && slices.Contains(c.Args, "--path.state="+m.MountPath) ||
				m.MountPath == "/var/lib/accel-bundles" && slices.Contains(c.Args, "--bundle.directory="+m.MountPath)
			if m.ReadOnly == written || m.SubPath != "" || m.SubPathExpr != "" {
				t.Errorf("%s: %s can be written to or is mounted by subPath", name, m.MountPath)
			}
			if strings.HasSuffix(m.MountPath, ".sock") {
				t.Errorf("%s: %s: the kubelet replaces its socket; mount the folder", name, m.MountPath)
			}
		}
		for _, v := range spec.Volumes {
			if v.HostPath != nil && v.HostPath.Path == "/" {
				t.Errorf("%s: all of the node is mounted", name)
			}
		}
		if s := c.SecurityContext; s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
			t.Errorf("%s: the root can be written to", name)
		}
		if spec.HostNetwork || spec.HostIPC {
			t.Errorf("%s: namespaces of the node", name)
		}
		asks := c.Name == "remediator" || slices.Contains(c.Args, "--kubernetes.pods")
		if token := *spec.AutomountServiceAccountToken; token != asks {
			t.Errorf("%s: token is mounted: %t, API server is asked: %t", name, token, asks)
		}
		if c.LivenessProbe.InitialDelaySeconds > 5 || c.ReadinessProbe.InitialDelaySeconds > 5 {
			t.Errorf("%s: probes wait", name)
		}
	}
}

// TestKernelLog: by default the kernel log is read where the container is privileged
// for another reason, and only there.
func TestKernelLog(t *testing.T) {
	for _, name := range cases(t) {
		c := podSpec(t, objects(t, name)).Containers[0]
		could := c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged
		file := slices.ContainsFunc(c.Args, func(a string) bool { return strings.HasPrefix(a, "--kernel-log.") })
		if reads := !slices.Contains(c.Args, "--no-collector.kernellog"); reads != (could || file) {
			t.Errorf("%s: privileged %t, reads the kernel log: %t", name, could, reads)
		}
	}
}

// TestMIGMonitor: the variable by which NVIDIA's runtime gives the capability to
// monitor MIG comes with SYS_ADMIN, without which the runtime starts no such
// container, and the notes name what is missing without it.
func TestMIGMonitor(t *testing.T) {
	const missing = "nvidia.migMonitor is false"
	for flags, want := range map[string]struct {
		env, note bool
		add       []corev1.Capability
	}{
		"nvidia.migMonitor=false": {note: true},
		"nvidia.migMonitor=true":  {env: true, add: []corev1.Capability{"SYS_ADMIN"}},
		"nvidia.migMonitor=true,podResources.enabled=false,nvidia.access=volume-mounts": {env: true, add: []corev1.Capability{"SYS_ADMIN"}},
		"nvidia.migMonitor=true,nvidia.visibleDevices=management.nvidia.com/gpu=all":    {},
		"nvidia.migMonitor=false,nvidia.visibleDevices=management.nvidia.com/gpu=all":   {},
		"nvidia.migMonitor=true,nvidia.access=driver-root":                              {},
		"nvidia.migMonitor=true,nvidia.access=none":                                     {},
		"nvidia.migMonitor=false,amd.processes=true":                                    {note: true, add: []corev1.Capability{"SYS_PTRACE"}},
		"nvidia.migMonitor=false,kernelLog.mode=device":                                 {},
		"nvidia.migMonitor=true,nvidia.enabled=false":                                   {},
		"nvidia.migMonitor=false,nvidia.enabled=false":                                  {},
		"nvidia.migMonitor=true,openshift.scc=true,nvidia.runtimeClassName=nvidia":      {env: true, add: []corev1.Capability{"SYS_ADMIN"}},
	} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			all := objects(t, "", "--set="+flags)
			c := podSpec(t, all).Containers[0]
			env := slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "NVIDIA_MIG_MONITOR_DEVICES" && e.Value == "all" })
			var add []corev1.Capability
			if c.SecurityContext.Capabilities != nil {
				add = c.SecurityContext.Capabilities.Add
			}
			if env != want.env || !slices.Equal(add, want.add) {
				t.Errorf("variable %t, capabilities %v; want %t, %v", env, add, want.env, want.add)
			}
			for _, o := range all {
				if o.kind() == "SecurityContextConstraints" && !strings.Contains(string(o.yaml(t)), "allowedCapabilities:\n- SYS_ADMIN\n") {
					t.Errorf("not permitted:\n%s", o.yaml(t))
				}
			}
			if strings.Contains(notes(t, flags), missing) != want.note {
				t.Errorf("%q is in the notes: %t", missing, !want.note)
			}
		})
	}
}
