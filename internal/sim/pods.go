package sim

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Bounds of the pods of a scenario.
const (
	maxPods       = 500 // more than a kubelet accepts
	maxContainers = 32
	maxHeld       = 512 // ids in one list
	maxClaims     = 32
	maxNUMA       = 64
)

// podEntry is a pod of a scenario.
type podEntry struct {
	namespace, name, uid, qos string

	static     bool
	containers []containerEntry
	claims     []claimEntry
	at         node
}

type containerEntry struct {
	name      string
	init      bool // an ordinary init container, which is never listed
	numa      []string
	devices   []deviceEntry
	processes []processEntry
}

// deviceEntry is one device of a device plugin: a reference, or the kubelet's
// id.
type deviceEntry struct {
	resource, ref string
	at            node
}

type processEntry struct {
	pid int
	at  node
}

// claimEntry is a claim of dynamic resource allocation of the pod.
type claimEntry struct {
	name, driver, pool, share string

	devices []deviceEntry
}

var (
	qosClasses = []string{"guaranteed", "burstable", "besteffort"}

	dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	// dnsName is a DNS subdomain that leaves room for the rest of the name of
	// the pod's log directory.
	dnsName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,141}[a-z0-9])?$`)
	podUID  = regexp.MustCompile(`^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})$`)
	// deviceName is a valid id, or name of a resource or driver.
	deviceName = regexp.MustCompile(`^[!-~]{1,253}$`)
)

// cgroupKeys are the layouts of the node's cgroups; the first of each is the
// default.
var cgroupKeys = map[string][]string{
	"version": {"v2", "v1"},
	"driver":  {"systemd", "cgroupfs"},
	"runtime": {"containerd", "crio", "docker"},
}

func toMatching(to *string, pattern *regexp.Regexp, what string) func(node) error {
	return func(n node) error {
		if err := toText(to)(n); err != nil {
			return err
		}
		if !pattern.MatchString(*to) {
			return n.errorf("want %s, found %q", what, *to)
		}
		return nil
	}
}

func toOneOf(to *string, words []string) func(node) error {
	return func(n node) error {
		if err := toText(to)(n); err != nil {
			return err
		}
		if !slices.Contains(words, *to) {
			return n.errorf("want one of %s, found %q", strings.Join(words, ", "), *to)
		}
		return nil
	}
}

func (sc *Scenario) parseCgroups(n node) error {
	sc.cgroups = map[string]string{}
	known := map[string]func(node) error{}
	for key, words := range cgroupKeys {
		known[key] = func(c node) error {
			var s string
			err := toOneOf(&s, words)(c)
			sc.cgroups[key] = s
			return err
		}
	}
	return n.fields(known)
}

func (sc *Scenario) parsePods(n node) error {
	sc.kubelet = true
	if len(n.Content) > maxPods {
		return n.errorf("%d pods; a node has %d", len(n.Content), maxPods)
	}
	return n.items(sc.parsePod)
}

func (sc *Scenario) parsePod(_ int, n node) error {
	p := podEntry{namespace: "default", qos: "burstable", at: n}
	err := n.fields(map[string]func(node) error{
		"namespace": toMatching(&p.namespace, dnsLabel, "the name of a namespace"),
		"name":      toMatching(&p.name, dnsName, "the name of a pod"),
		"uid":       toMatching(&p.uid, podUID, "a UUID, or the 32 digits of a static pod"),
		"qos":       toOneOf(&p.qos, qosClasses),
		"static":    toBool(&p.static),
		"containers": func(c node) error {
			if len(c.Content) > maxContainers {
				return c.errorf("%d containers; want at most %d", len(c.Content), maxContainers)
			}
			return c.items(p.parseContainer)
		},
		"claims": func(c node) error {
			if len(c.Content) > maxClaims {
				return c.errorf("%d claims; want at most %d", len(c.Content), maxClaims)
			}
			return c.items(p.parseClaim)
		},
	})
	switch {
	case err != nil:
	case p.name == "":
		err = n.errorf("the key name is missing")
	case len(p.containers) == 0:
		err = n.errorf("the key containers is missing, or names none")
	}
	for _, q := range sc.pods {
		if err == nil && (q.namespace == p.namespace && q.name == p.name || q.uid != "" && q.uid == p.uid) {
			err = n.errorf("the pod %s/%s, or its UID, is here and on line %d", p.namespace, p.name, q.at.Line)
		}
	}
	sc.pods = append(sc.pods, p)
	return err
}

func (p *podEntry) parseContainer(_ int, n node) error {
	c := containerEntry{}
	err := n.fields(map[string]func(node) error{
		"name":    toMatching(&c.name, dnsLabel, "the name of a container"),
		"devices": toDevices(&c.devices),
		"init":    toBool(&c.init),
		"numa": func(l node) error {
			if len(l.Content) > maxNUMA {
				return l.errorf("%d NUMA nodes; want at most %d", len(l.Content), maxNUMA)
			}
			return l.items(func(_ int, v node) error {
				var n int
				err := toInt(&n, 0, 1024)(v)
				c.numa = append(c.numa, strconv.Itoa(n))
				return err
			})
		},
		"processes": func(l node) error {
			return l.items(func(_ int, v node) error {
				e := processEntry{at: v}
				err := toInt(&e.pid, 1, 1<<22)(v)
				c.processes = append(c.processes, e)
				return err
			})
		},
	})
	if err == nil && c.name == "" {
		err = n.errorf("the key name is missing")
	}
	if err == nil && c.init && len(c.devices) > 0 {
		err = n.errorf("an init container that has ended has no devices")
	}
	if slices.ContainsFunc(p.containers, func(o containerEntry) bool { return o.name == c.name }) {
		err = n.errorf("there is another container %q", c.name)
	}
	p.containers = append(p.containers, c)
	return err
}

func (p *podEntry) parseClaim(_ int, n node) error {
	c := claimEntry{driver: draDriver, pool: "node"}
	err := n.fields(map[string]func(node) error{
		"name":    toMatching(&c.name, dnsName, "the name of a claim"),
		"driver":  toMatching(&c.driver, dnsName, "the name of a driver"),
		"pool":    toMatching(&c.pool, deviceName, "the name of a pool"),
		"share":   toMatching(&c.share, podUID, "a UUID"),
		"devices": func(l node) error { return toHeld(&c.devices, "", l) },
	})
	switch {
	case err != nil:
	case c.name == "":
		err = n.errorf("the key name is missing")
	case len(c.devices) == 0:
		err = n.errorf("the key devices is missing, or names none")
	}
	p.claims = append(p.claims, c)
	return err
}

// toDevices decodes lists of devices by the names of their resources.
func toDevices(to *[]deviceEntry) func(node) error {
	return func(n node) error {
		return n.each(func(key string, at, value node) error {
			if !deviceName.MatchString(key) {
				return at.errorf("want the name of a resource, such as nvidia.com/gpu")
			}
			return toHeld(to, key, value)
		})
	}
}

func toHeld(to *[]deviceEntry, resource string, n node) error {
	if len(n.Content) > maxHeld {
		return n.errorf("%d devices; want at most %d", len(n.Content), maxHeld)
	}
	return n.items(func(_ int, v node) error {
		d := deviceEntry{resource: resource, at: v}
		err := toText(&d.ref)(v)
		*to = append(*to, d)
		return err
	})
}
