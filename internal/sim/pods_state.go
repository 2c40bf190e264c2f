package sim

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/sim/kubelet"
)

// The records of pods in the state are
//
//	pod.3 namespace=ml name=train-0 uid=… qos=burstable phase=running
//	pod.3.container.0 name=main id=…
//	pod.3.device.0 container=main resource=nvidia.com/gpu id=GPU-…
//	pod.3.claim.0 name=one driver=gpu.nvidia.com pool=node device=gpu-0
//	proc.21001 start=1000 name=python3 pod=<uid> container=main
//	allocatable.0 resource=nvidia.com/gpu.shared id=GPU-…::0
//	dra.GPU-… 1
//
// A process without a pod belongs to the host.

// pod is a pod of the state.
type pod struct {
	key                       string
	namespace, name, uid, qos string

	finished bool
}

func (s *State) pods() []pod {
	var out []pod
	for _, key := range s.keys("pod.") {
		if strings.Count(key, ".") == 1 {
			rec := s.Get(key)
			out = append(out, pod{
				key: key, namespace: attr(rec, "namespace"), name: attr(rec, "name"), uid: attr(rec, "uid"), qos: attr(rec, "qos"),
				finished: attr(rec, "phase") == "finished",
			})
		}
	}
	return out
}

// podNamed finds a pod by NAMESPACE/NAME, or by a unique name.
func (s *State) podNamed(arg string) (pod, error) {
	var found []pod
	var names []string
	for _, p := range s.pods() {
		full := p.namespace + "/" + p.name
		names = append(names, full)
		if arg == full || arg == p.name {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		return pod{}, fmt.Errorf("%d pods are %q; the pods are %s", len(found), arg, strings.Join(names, ", "))
	}
	return found[0], nil
}

// nextIndex returns the first free number below a prefix of keys.
func (s *State) nextIndex(prefix string) int {
	n := 0
	for _, key := range s.keys(prefix) {
		number, _, _ := strings.Cut(strings.TrimPrefix(key, prefix), ".")
		if i, err := strconv.Atoi(number); err == nil && i >= n {
			n = i + 1
		}
	}
	return n
}

// addPod adds a pod that runs, and returns its key.
func (s *State) addPod(p pod) string {
	p.key = fmt.Sprintf("pod.%d", s.nextIndex("pod."))
	s.Set(p.key, fmt.Sprintf("namespace=%s name=%s uid=%s qos=%s phase=running", p.namespace, p.name, p.uid, p.qos))
	return p.key
}

// addContainer adds a container to the pod of a key; more is the rest of its
// record.
func (s *State) addContainer(p, uid, name, more string) {
	id := fmt.Sprintf("%x", sha256.Sum256([]byte(uid+"\x00"+name)))
	s.Set(fmt.Sprintf("%s.container.%d", p, s.nextIndex(p+".container.")), "name="+name+" id="+id+more)
}

// allocate allocates a device of a device plugin to a container.
func (s *State) allocate(p, container string, h allocated) {
	s.Set(fmt.Sprintf("%s.device.%d", p, s.nextIndex(p+".device.")), fmt.Sprintf("container=%s resource=%s id=%s", container, h.resource, h.id))
	s.offer(h)
}

// offer makes a device allocatable.
func (s *State) offer(h allocated) {
	rec := fmt.Sprintf("resource=%s id=%s", h.resource, h.id)
	for _, key := range s.keys("allocatable.") {
		if s.Get(key) == rec {
			return
		}
	}
	s.Set(fmt.Sprintf("allocatable.%d", s.nextIndex("allocatable.")), rec)
}

// removePod removes a pod. The caller removes its processes.
func (s *State) removePod(p pod) {
	for _, key := range append(s.keys(p.key+"."), p.key) {
		s.Delete(key)
	}
}

// listed returns the kubelet's entry of a pod.
func (s *State) listed(p pod) kubelet.Pod {
	out := kubelet.Pod{Namespace: p.namespace, Name: p.name}
	for _, key := range s.keys(p.key + ".container.") {
		if attr(s.Get(key), "init") != "" {
			continue
		}
		c := kubelet.Container{Name: attr(s.Get(key), "name")}
		var near []int64
		for n := range strings.SplitSeq(attr(s.Get(key), "numa"), ",") {
			if v, err := strconv.ParseInt(n, 10, 64); err == nil {
				near = append(near, v)
			}
		}
		for _, d := range s.keys(p.key + ".device.") {
			rec := s.Get(d)
			if attr(rec, "container") == c.Name {
				c.Devices = append(c.Devices, kubelet.Device{Resource: attr(rec, "resource"), ID: attr(rec, "id"), NUMA: near})
			}
		}
		out.Containers = append(out.Containers, c)
	}
	for _, key := range s.keys(p.key + ".claim.") {
		rec := s.Get(key)
		d := kubelet.ClaimDevice{Driver: attr(rec, "driver"), Pool: attr(rec, "pool"), Device: attr(rec, "device"), Share: attr(rec, "share")}
		name := attr(rec, "name")
		i := slices.IndexFunc(out.Claims, func(c kubelet.Claim) bool { return c.Name == name })
		if i < 0 {
			i = len(out.Claims)
			out.Claims = append(out.Claims, kubelet.Claim{Namespace: p.namespace, Name: name})
		}
		out.Claims[i].Devices = append(out.Claims[i].Devices, d)
	}
	return out
}

// deviceUUIDIn matches the GPU or MIG device in an id.
var deviceUUIDIn = regexp.MustCompile(`^(GPU|MIG)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// allocatable returns the devices of the device plugins: those of pods and of
// the scenario, and by default every other whole GPU and MIG device, as
// NVIDIA's plugin offers them. Unhealthy devices are left out.
func (s *State) allocatable() map[string][]string {
	out, offered := map[string][]string{}, map[string]bool{}
	add := func(resource, id string) {
		base := id
		if uuid := deviceUUIDIn.FindString(id); uuid != "" {
			base = uuid // of a replica or a share
		}
		offered[base] = true
		if s.offerable(id, base) && !s.pluginIsDown(resource) {
			out[resource] = append(out[resource], id)
		}
	}
	for _, key := range s.keys("allocatable.") {
		rec := s.Get(key)
		add(attr(rec, "resource"), attr(rec, "id"))
	}
	taken := func(d device) bool {
		return s.Has("dra."+s.deviceUUID(d)) || slices.ContainsFunc(s.pluginNames(d), func(id string) bool { return offered[id] })
	}
	for i := range s.gpus() {
		if s.gpuGet(i, "mig.mode") != "1" {
			if d := (device{i, -1}); !taken(d) {
				add("nvidia.com/gpu", s.deviceUUID(d))
			}
			continue
		}
		for m := range s.migs(i) {
			if d := (device{i, m}); !taken(d) {
				add(migResource(attr(s.migRecord(d), "profile")), s.deviceUUID(d))
			}
		}
	}
	return out
}

// pluginNames returns the ids of a device in device plugins.
func (s *State) pluginNames(d device) []string {
	node := "nvidia" + s.gpuGet(d.gpu, "minor_number")
	if d.mig < 0 {
		return []string{s.deviceUUID(d), node}
	}
	rec := s.migRecord(d)
	legacy := fmt.Sprintf("MIG-%s/%s/%s", s.gpuGet(d.gpu, "uuid"), attr(rec, "gi"), attr(rec, "ci"))
	return []string{s.deviceUUID(d), legacy, node + "/gi" + attr(rec, "gi")}
}

// offerable reports whether a device plugin considers a device healthy. It
// drops those with a critical Xid, and partitions that no longer exist.
func (s *State) offerable(id, base string) bool {
	if !deviceName.MatchString(id) {
		return false
	}
	if s.Has("healthy."+id) || s.Has("healthy."+base) {
		return true
	}
	if s.Has("unhealthy."+id) || s.Has("unhealthy."+base) {
		return false
	}
	for i := range s.gpus() {
		names := s.pluginNames(device{i, -1})
		for m := range s.migs(i) {
			names = append(names, s.pluginNames(device{i, m})...)
		}
		if slices.Contains(names, base) {
			return !s.Has("unhealthy."+s.gpuGet(i, "uuid")) && !s.Has(fmt.Sprintf("gpu.%d.lost", i)) && !s.Has(fmt.Sprintf("gpu.%d.gone", i)) &&
				s.Get("driver.state") == "loaded"
		}
	}
	return !strings.HasPrefix(base, "MIG-")
}

func (s *State) needsKubelet() error {
	if !s.Has("kubelet") {
		return errors.New("this simulation has no kubelet; its scenario has no pods")
	}
	return nil
}

// onNode applies f where the machine is a node of Kubernetes.
func onNode(f func(*State, input) error) func(*State, input) error {
	return func(s *State, in input) error {
		if err := s.needsKubelet(); err != nil {
			return err
		}
		return f(s, in)
	}
}
