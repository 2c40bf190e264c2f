package proc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

const (
	uid = "0b6e3c5a-1f4d-4c7e-9a52-7f2b90c1d3e4"
	cid = "9f2c1d7e6b5a4938271605f4e3d2c1b0a9988776655443322110ffeeddccbbaa"
)

// cgroups are contents of /proc/PID/cgroup on different nodes, with the owner.
var cgroups = map[string]struct {
	text string
	want Owner
}{
	"v2, systemd, containerd":        {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice/cri-containerd-" + cid + ".scope\n", Owner{Kind: Pod, PodUID: uid}},
	"v2, systemd, guaranteed":        {"0::/kubepods.slice/kubepods-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice/cri-containerd-" + cid + ".scope\n", Owner{Kind: Pod, PodUID: uid}},
	"v2, systemd, CRI-O":             {"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice/crio-" + cid + ".scope/container\n", Owner{Kind: Pod, PodUID: uid}},
	"v2, CRI-O's monitor":            {"0::/kubepods.slice/kubepods-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice/crio-conmon-" + cid + ".scope\n", Owner{Kind: Pod, PodUID: uid}},
	"v2, cgroupfs":                   {"0::/kubepods/burstable/pod" + uid + "/" + cid + "\n", Owner{Kind: Pod, PodUID: uid}},
	"v2, cgroupfs, guaranteed":       {"0::/kubepods/pod" + uid + "/" + cid + "\n", Owner{Kind: Pod, PodUID: uid}},
	"v2, systemd paths in cgroupfs":  {"0::/system.slice/containerd.service/kubepods-burstable-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice:cri-containerd:" + cid + "\n", Owner{Kind: Pod, PodUID: uid}},
	"v2, a custom kubelet root":      {"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice/cri-containerd-" + cid + ".scope\n", Owner{Kind: Pod, PodUID: uid}},
	"v2, below a container's cgroup": {"0::/kubepods.slice/kubepods-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice/cri-containerd-" + cid + ".scope/init.scope\n", Owner{Kind: Pod, PodUID: uid}},
	"v1, docker":                     {"12:pids:/kubepods/burstable/pod" + uid + "/" + cid + "\n1:name=systemd:/kubepods/burstable/pod" + uid + "/" + cid + "\n", Owner{Kind: Pod, PodUID: uid}},
	"v1, some hierarchies only":      {"12:rdma:/\n11:devices:/kubepods.slice/kubepods-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice/docker-" + cid + ".scope\n0::/\n", Owner{Kind: Pod, PodUID: uid}},
	"v2, cgroupfs, CRI-O":            {"0::/kubepods/burstable/pod" + uid + "/crio-" + cid + "\n", Owner{Kind: Pod, PodUID: uid}},
	"v2, gVisor":                     {"0::/kubepods/pod" + uid + "/" + cid + "/sandbox\n", Owner{Kind: Pod, PodUID: uid}},
	"v2, k3s without root":           {"0::/user.slice/user-1000.slice/user@1000.service/app.slice/k3s-rootless.service/kubepods/besteffort/pod" + uid + "/" + cid + "\n", Owner{Kind: Pod, PodUID: uid}},
	"v2, a node of kind":             {"0::/system.slice/docker-" + cid + ".scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice/cri-containerd-" + cid + ".scope\n", Owner{Kind: Pod, PodUID: uid}},
	"v1, a node of k3d":              {"12:cpuset:/docker/" + cid + "/kubepods/pod" + uid + "/" + cid + "\n0::/docker/" + cid + "\n", Owner{Kind: Pod, PodUID: uid}},
	"v1 and v2":                      {"13:misc:/\n12:cpuset:/kubepods/burstable/pod" + uid + "/" + cid + "\n1:name=systemd:/kubepods/burstable/pod" + uid + "/" + cid + "\n0::/system.slice/containerd.service\n", Owner{Kind: Pod, PodUID: uid}},
	"static pod":                     {"0::/kubepods/burstable/pod0123456789abcdef0123456789abcdef/" + cid + "\n", Owner{Kind: Pod, PodUID: "0123456789abcdef0123456789abcdef"}},
	"a service":                      {"0::/system.slice/nvidia-persistenced.service\n", Owner{Kind: Host}},
	"a session":                      {"0::/user.slice/user-1000.slice/session-3.scope\n", Owner{Kind: Host}},
	"a container of Docker":          {"0::/system.slice/docker-" + cid + ".scope\n", Owner{Kind: Hidden}},
	"no cgroups per QoS":             {"0::/k8s.io/" + cid + "\n", Owner{Kind: Hidden}},
	"no cgroups per QoS, v1":         {"12:pids:/system.slice/containerd.service\n4:memory:/k8s.io/" + cid + "\n", Owner{Kind: Hidden}},
	"systemd paths, outside of pods": {"0::/system.slice/containerd.service/system.slice:cri-containerd:" + cid + "\n", Owner{Kind: Hidden}},
	"overhead of Kata Containers":    {"0::/kata_overhead/" + cid + "\n", Owner{Kind: Hidden}},
	"a container of Podman":          {"0::/machine.slice/libpod-" + cid + ".scope/container\n", Owner{Kind: Hidden}},
	"a pod of Podman":                {"0::/machine.slice/machine-libpod_pod_" + cid + ".slice/libpod-" + cid + ".scope/container\n", Owner{Kind: Hidden}},
	"a task of ECS":                  {"4:memory:/ecs/0123456789abcdef0123456789abcdef/" + cid + "\n", Owner{Kind: Hidden}},
	"a machine of libvirt":           {"0::/machine.slice/machine-qemu\\x2d1\\x2dvm.scope/libvirt/emulator\n", Owner{Kind: Host}},
	"a user's own pods":              {"0::/user.slice/mypods/pod" + uid + "/" + cid + "\n", Owner{Kind: Hidden}},
	"a user's session":               {"0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-" + cid[:32] + ".scope\n", Owner{Kind: Host}},
	"the kubelet":                    {"0::/kubelet.slice/kubelet.service\n", Owner{Kind: Host}},
	"Slurm, v2":                      {"0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n", Owner{Kind: Host, Job: "4711"}},
	"Slurm, v2, several daemons":     {"0::/system.slice/n1_slurmstepd.scope/job_4711/step_batch/user/task_0\n", Owner{Kind: Host, Job: "4711"}},
	"Slurm, v1":                      {"11:devices:/slurm/uid_1000/job_4711/step_0/task_0\n9:memory:/slurm_n1/uid_1000/job_4711\n1:name=systemd:/system.slice/slurmd.service\n", Owner{Kind: Host, Job: "4711"}},
	"a job of another program":       {"0::/user.slice/job_4711\n", Owner{Kind: Host}},
	"no number of a job":             {"0::/slurm/uid_1000/job_x1/step_0\n", Owner{Kind: Host}},
	"the pods' parent":               {"0::/kubepods.slice\n", Owner{Kind: Host}},
	"no UID":                         {"0::/kubepods/burstable/podinfo/" + cid + "\n", Owner{Kind: Hidden}},
	"no UID, no container":           {"0::/kubepods/burstable/podinfo\n", Owner{Kind: Host}},
	"private, pods of a user":        {"0::/../../../user.slice/mypods/pod" + uid + "\n", Owner{Kind: Host}},
	"private, our pod":               {"0::/../cri-containerd-" + cid + ".scope\n", Owner{Kind: Hidden}},
	"private, our pod, CRI-O":        {"0::/../crio-" + cid + ".scope/container\n", Owner{Kind: Hidden}},
	"private, our pod, other name":   {"0::/../container\n", Owner{Kind: Hidden}},
	"private, our pod's group":       {"0::/..\n", Owner{Kind: Hidden}},
	"private, a pod, systemd":        {"0::/../../kubepods-burstable-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice/cri-containerd-" + cid + ".scope\n", Owner{Kind: Pod, PodUID: uid}},
	"private, a pod, cgroupfs":       {"0::/../../pod" + uid + "/" + cid + "\n", Owner{Kind: Pod, PodUID: uid}},
	"private, a pod of other QoS":    {"0::/../../../besteffort/pod" + uid + "/" + cid + "\n", Owner{Kind: Pod, PodUID: uid}},
	"private, a pod, v1":             {"12:pids:/../../pod" + uid + "/" + cid + "\n1:name=systemd:/../../pod" + uid + "/" + cid + "\n", Owner{Kind: Pod, PodUID: uid}},
	"private, a service":             {"0::/../../../../system.slice/nvidia-persistenced.service\n", Owner{Kind: Host}},
	"private, a session":             {"0::/../../../user.slice/user-1000.slice/session-3.scope\n", Owner{Kind: Host}},
	"private, init":                  {"0::/../../../../init.scope\n", Owner{Kind: Host}},
	"private, Docker":                {"0::/../../../../system.slice/docker-" + cid + ".scope\n", Owner{Kind: Hidden}},
	"private, Slurm":                 {"0::/../../../../system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n", Owner{Kind: Host, Job: "4711"}},
	"own cgroup namespace":           {"0::/\n", Owner{Kind: Hidden}},
	"empty":                          {"", Owner{Kind: Hidden}},
	"garbage":                        {"kubepods\n::\n\x00", Owner{Kind: Hidden}},
}

func TestCgroup(t *testing.T) {
	for name, c := range cgroups {
		if diff := cmp.Diff(c.want, parseCgroup(c.text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// FuzzCgroup: for any text, the UID is valid, and only an owner of kind Pod has one.
func FuzzCgroup(f *testing.F) {
	for _, c := range cgroups {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o := parseCgroup(text)
		if o.Kind != Pod {
			if o != (Owner{Kind: o.Kind, Job: o.Job}) || strings.Trim(o.Job, "0123456789") != "" {
				t.Errorf("%+v", o)
			}
			return
		}
		if again, ok := podUID(o.PodUID); !ok || again != o.PodUID {
			t.Errorf("%+v", o)
		}
		if !strings.Contains(text, "kubepods") && !strings.Contains(text, ":/../") {
			t.Error("a pod outside of the kubelet's cgroups")
		}
	})
}

// FuzzStat: for any text, the command is one short line.
func FuzzStat(f *testing.F) {
	f.Add("42 (python3) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 0 0 18446744073709551615")
	f.Add("42 (a) b (c)) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 0")
	f.Add("42 (x")
	f.Fuzz(func(t *testing.T, text string) {
		command, _, ok := parseStat(text)
		if ok && (len(command) > 64 || !utf8.ValidString(command) || strings.ContainsAny(command, "\n\x00")) {
			t.Errorf("%q", command)
		}
	})
}

// FuzzPodDir: joining the parsed parts returns the name of the directory.
func FuzzPodDir(f *testing.F) {
	f.Add("ml_train-0_" + uid)
	f.Add("kube-system_etcd-node1_0123456789abcdef0123456789abcdef")
	f.Add("ml_train_0_" + uid)
	f.Fuzz(func(t *testing.T, dir string) {
		if p, uid, ok := ParsePodDir(dir); ok && p.Namespace+"_"+p.Name+"_"+uid != strings.Replace(dir, dir[len(dir)-len(uid):], uid, 1) {
			t.Errorf("%q is parsed as %+v %q", dir, p, uid)
		}
	})
}

// process creates a process in a procfs.
func process(t *testing.T, root, pid, start, cgroup string) {
	t.Helper()
	dir := filepath.Join(root, pid)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"stat":   pid + " (py) thon) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 " + start + " 0 0",
		"cgroup": cgroup,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOwner: a reused PID is another process. A change of the cgroup is found when the
// cached owner expires. A process that has ended is Gone.
func TestOwner(t *testing.T) {
	root := t.TempDir()
	m := New(sysfs.New(root))
	now := time.Unix(1e9, 0)
	pod := Owner{Kind: Pod, PodUID: uid, Command: "py) thon"}
	host := Owner{Kind: Host, Command: "py) thon"}
	expect := func(what string, want Owner) {
		t.Helper()
		if diff := cmp.Diff(want, m.Owner(42, now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	expect("no process", Owner{Kind: Gone})
	process(t, root, "42", "100", cgroups["v2, cgroupfs"].text)
	expect("process of a pod", pod)
	process(t, root, "42", "100", cgroups["a service"].text)
	expect("moved a moment ago", pod)
	now = now.Add(time.Minute)
	expect("moved", host)
	process(t, root, "42", "200", cgroups["v2, cgroupfs"].text)
	expect("reused PID", pod)
	m.Retain(nil)
	process(t, root, "42", "200", cgroups["own cgroup namespace"].text)
	expect("read again after Retain", Owner{Kind: Hidden, Command: "py) thon"})
	if err := os.RemoveAll(filepath.Join(root, "42")); err != nil {
		t.Fatal(err)
	}
	expect("ended", Owner{Kind: Gone})
	if err := os.Mkdir(filepath.Join(root, "42"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "42", "stat"), 0o755); err != nil {
		t.Fatal(err)
	}
	expect("not readable", Owner{})
}

func TestParsePodDir(t *testing.T) {
	for dir, want := range map[string]PodName{
		"ml_train-0_" + uid: {"ml", "train-0"},
		"kube-system_etcd-node1_0123456789abcdef0123456789abcdef": {"kube-system", "etcd-node1"},
		"ml_train-0":              {},
		"ml_tr_ain_" + uid:        {},
		"ml_train-0_" + uid[1:]:   {},
		"_x_" + uid:               {},
		"../x_" + uid:             {},
		"ml_train-0_" + uid + "0": {},
	} {
		p, id, ok := ParsePodDir(dir)
		if p != want || ok != (want != PodName{}) || ok && !strings.HasSuffix(dir, id) {
			t.Errorf("%s: %+v %q %v", dir, p, id, ok)
		}
	}
}
