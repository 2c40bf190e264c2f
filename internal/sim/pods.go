package sim

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxPods is more than a kubelet accepts.
const maxPods = 500

// podEntry is a pod of a scenario.
type podEntry struct {
	Namespace, Name, QoS string

	Static     bool
	Containers []containerEntry
	Claims     []claimEntry

	uid string // derived from the names
}

// containerEntry is a container. Devices are references, or the kubelet's ids, by
// resource.
type containerEntry struct {
	Name      string
	Devices   map[string][]string
	Processes []int
}

// claimEntry is a claim of dynamic resource allocation of the pod.
type claimEntry struct {
	Name, Driver, Pool string

	Devices []string
}

var (
	qosClasses = []string{"guaranteed", "burstable", "besteffort"}

	dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	// dnsName is a DNS subdomain that leaves room for the rest of the name of
	// the pod's log directory.
	dnsName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,141}[a-z0-9])?$`)
)

// checkPods also sets the defaults of the pods.
func checkPods(list node, pods []podEntry, scenario string) error {
	var all []error
	if n := len(pods); n > maxPods {
		all = append(all, list.errorf("%d pods; a node has %d", n, maxPods))
	}
	seen := map[string]int{}
	for i := range pods {
		p, at := &pods[i], list.at(i)
		p.Namespace, p.QoS = cmp.Or(p.Namespace, "default"), cmp.Or(p.QoS, "burstable")
		p.uid = derivedUID(p.Static, scenario, p.Namespace, p.Name)
		all = append(all, p.check(at))
		if first, again := seen[p.uid]; again {
			all = append(all, at.errorf("the pod %s/%s is here and on line %d", p.Namespace, p.Name, first))
		}
		seen[p.uid] = at.Line
	}
	return errors.Join(all...)
}

func (p *podEntry) check(at node) error {
	all := []error{
		at.at("namespace").matches(p.Namespace, dnsLabel, "the name of a namespace"), at.at("name").matches(p.Name, dnsName, "the name of a pod"),
		at.at("qos").oneOf(p.QoS, qosClasses),
	}
	if len(p.Containers) == 0 {
		all = append(all, at.errorf("the key containers is missing, or names none"))
	}
	for i, c := range p.Containers {
		at := at.at("containers", i)
		all = append(all, at.at("name").matches(c.Name, dnsLabel, "the name of a container"), checkResources(at.at("devices"), c.Devices))
		if slices.ContainsFunc(p.Containers[:i], func(o containerEntry) bool { return o.Name == c.Name }) {
			all = append(all, at.errorf("there is another container %q", c.Name))
		}
	}
	for i := range p.Claims {
		c, at := &p.Claims[i], at.at("claims", i)
		c.Driver, c.Pool = cmp.Or(c.Driver, draDriver), cmp.Or(c.Pool, "node")
		all = append(all, at.at("name").matches(c.Name, dnsName, "the name of a claim"), at.at("driver").matches(c.Driver, dnsName, "the name of a driver"),
			at.at("pool").matches(c.Pool, deviceName, "the name of a pool"))
		if len(c.Devices) == 0 {
			all = append(all, at.errorf("the key devices is missing, or names none"))
		}
	}
	return errors.Join(all...)
}

func checkResources(at node, devices map[string][]string) error {
	var all []error
	for resource := range devices {
		all = append(all, at.at(resource).matches(resource, deviceName, "the name of a resource, such as nvidia.com/gpu"))
	}
	return errors.Join(all...)
}

// eachDevice resolves references by resource.
func (s *State) eachDevice(at node, devices map[string][]string, do func(allocated)) error {
	for _, resource := range slices.Sorted(maps.Keys(devices)) {
		for i, ref := range devices[resource] {
			h, err := s.reference(ref)
			if err != nil {
				return at.at(resource, i).errorf("%w", err)
			}
			h.resource = resource
			do(h)
		}
	}
	return nil
}

func (p *podEntry) compile(s *State, at node) error {
	key := s.addPod(pod{namespace: p.Namespace, name: p.Name, uid: p.uid, qos: p.QoS})
	for i, c := range p.Containers {
		at := at.at("containers", i)
		s.addContainer(key, p.uid, c.Name)
		if err := s.eachDevice(at.at("devices"), c.Devices, func(h allocated) { s.allocate(key, c.Name, h) }); err != nil {
			return err
		}
		for k, q := range c.Processes {
			pid, at := strconv.Itoa(q), at.at("processes", k)
			rec := s.Get("proc." + pid)
			if rec == "" {
				return at.errorf("no GPU has a process %s; want one of %s", pid, strings.Join(s.pids(), ", "))
			}
			if owner := attr(rec, "pod"); owner != "" {
				return at.errorf("process %s is another container's already", pid)
			}
			s.addProcess(pid, 1000, attr(rec, "name"), p.uid, c.Name)
		}
	}
	for i, c := range p.Claims {
		for k, ref := range c.Devices {
			h, err := s.draName(c.Driver, ref)
			if err != nil {
				return at.at("claims", i, "devices", k).errorf("%w", err)
			}
			s.claim(key, c.Name, c.Pool, h)
		}
	}
	return nil
}

// claim allocates a device to a pod by dynamic resource allocation.
func (s *State) claim(p, name, pool string, h allocated) {
	s.Set(fmt.Sprintf("%s.claim.%d", p, s.nextIndex(p+".claim.")), fmt.Sprintf("name=%s driver=%s pool=%s device=%s", name, h.resource, pool, h.id))
	if h.on.gpu >= 0 {
		s.Set("dra."+s.deviceUUID(h.on), "1") // no device plugin offers it
	}
}

// derivedUID is deterministic, like madeUUID: a UUID, or a hash for a static
// pod.
func derivedUID(static bool, parts ...string) string {
	uid := strings.TrimPrefix(madeUUID("pod", parts...), "pod-")
	if static {
		return strings.ReplaceAll(uid, "-", "")
	}
	return uid
}

// addProcess adds a process to /proc. start is its start time, in hundredths of
// a second since boot.
func (s *State) addProcess(pid string, start int64, name, podUID, container string) {
	if name = path.Base(name); name == "." {
		name = "python3"
	}
	rec := fmt.Sprintf("start=%d name=%s", start, name)
	if podUID != "" {
		rec += fmt.Sprintf(" pod=%s container=%s", podUID, container)
	}
	s.Set("proc."+pid, rec)
}

func (s *State) pids() []string {
	var out []string
	for _, key := range s.keys("proc.") {
		out = append(out, strings.TrimPrefix(key, "proc."))
	}
	return out
}
