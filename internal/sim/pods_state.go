package sim

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
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

// addPod adds a pod that runs, and returns its key.
func (s *State) addPod(p pod) string {
	p.key = fmt.Sprintf("pod.%d", s.nextIndex("pod."))
	s.Set(p.key, fmt.Sprintf("namespace=%s name=%s uid=%s qos=%s phase=running", p.namespace, p.name, p.uid, p.qos))
	return p.key
}

// addContainer adds a container to the pod of a key.
func (s *State) addContainer(p, uid, name string) {
	id := fmt.Sprintf("%x", sha256.Sum256([]byte(uid+"\x00"+name)))
	s.Set(fmt.Sprintf("%s.container.%d", p, s.nextIndex(p+".container.")), "name="+name+" id="+id)
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
		c := kubelet.Container{Name: attr(s.Get(key), "name")}
		for _, d := range s.keys(p.key + ".device.") {
			rec := s.Get(d)
			if attr(rec, "container") == c.Name {
				c.Devices = append(c.Devices, kubelet.Device{Resource: attr(rec, "resource"), ID: attr(rec, "id")})
			}
		}
		out.Containers = append(out.Containers, c)
	}
	for _, key := range s.keys(p.key + ".claim.") {
		rec := s.Get(key)
		d := kubelet.ClaimDevice{Driver: attr(rec, "driver"), Pool: attr(rec, "pool"), Device: attr(rec, "device")}
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

// allocatable returns the devices of the device plugins: the devices of pods
// and of the scenario, and by default every other whole GPU and MIG device, as
// NVIDIA's plugin offers them. Unhealthy devices are left out.
func (s *State) allocatable() map[string][]string {
	out, offered := map[string][]string{}, map[string]bool{}
	add := func(resource, id string) {
		base := id
		if uuid := deviceUUIDIn.FindString(id); uuid != "" {
			base = uuid // of a replica or a share
		}
		offered[base] = true
		if s.offerable(id, base) {
			out[resource] = append(out[resource], id)
		}
	}
	for _, key := range s.keys("allocatable.") {
		rec := s.Get(key)
		add(attr(rec, "resource"), attr(rec, "id"))
	}
	taken := func(d device) bool { return s.Has("dra."+s.deviceUUID(d)) || offered[s.deviceUUID(d)] }
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

// offerable reports whether a device plugin considers a device healthy. It
// drops devices with a critical Xid, and partitions that no longer exist.
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
	ds, err := s.devices(base)
	if err != nil || !deviceUUIDIn.MatchString(base) {
		return !strings.HasPrefix(base, "MIG-")
	}
	gpu := ds[0].gpu
	return !s.Has("unhealthy."+s.gpuGet(gpu, "uuid")) && !s.Has(fmt.Sprintf("gpu.%d.lost", gpu)) && !s.Has(fmt.Sprintf("gpu.%d.gone", gpu)) && s.Get("driver.state") == "loaded"
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

var processTypes = []string{"compute", "graphics", "mps"}

// maxPID is the kernel's own bound on pid_max.
const maxPID = 1 << 22
