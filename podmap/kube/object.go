package kube

import (
	"fmt"
	"slices"
	"time"
)

// Bounds of what is kept of an object, in bytes: those of the API's own names
// and UIDs, and more than it uses of versions.
const (
	maxName    = 253
	maxUID     = 128
	maxVersion = 128
	maxWord    = 128
	maxMessage = 300
	// maxContext is for a trace context: 55 for W3C's traceparent, and room for
	// an object around it with a tracestate of 512.
	maxContext = 1024
	// maxToken is for the continue token of a list, which has a key in it.
	maxToken = 4 << 10
)

// object is what is read of a Pod or a ResourceSlice, or of the Status that
// stands where one was expected.
type object struct {
	kind, version   string
	namespace, name string
	uid, staticUID  string
	created         time.Time
	deleting        time.Time
	labels          labels
	templateHashes  map[string]string // by label: those of templateLabels
	context         string            // of a trace
	contextRank     int               // which of reader.contexts it is from
	controller      Workload
	node            string
	phase           Phase
	driver, pool    string
	generation      int64
	slices          int64 // of the pool, in all
	devices         []Device
	status          status
	// malformed and overflow are for the counts of FeedStatus.
	malformed, overflow int
}

// status is what is read of an API Status.
type status struct {
	failure         bool
	code            int64
	reason, message string
	retryAfter      int64 // seconds
}

func (s *status) Error() string {
	switch {
	case s.message != "":
		return s.message
	case s.reason != "":
		return s.reason
	}
	return fmt.Sprintf("status %d", s.code)
}

// reader reads objects of the API from a stream.
type reader struct {
	*scanner
	allow allowList
	// contexts are the annotations that may hold a trace context.
	contexts []string
}

// object reads what begins with first.
func (r *reader) object(first byte) (*object, error) {
	o := new(object)
	return o, r.scanner.object(first, func(key string, first byte) (err error) {
		switch key {
		case "kind":
			_, err = r.text(first, maxWord, &o.kind)
		case "metadata":
			err = r.metadata(first, o)
		case "spec":
			err = r.spec(first, o)
		case "status":
			err = r.status(first, o)
		case "code":
			err = r.whole(first, &o.status.code)
		case "reason":
			_, err = r.text(first, maxWord, &o.status.reason)
		case "message":
			var text string
			if _, err = r.text(first, 8*maxMessage, &text); text != "" {
				o.status.message = clip(text)
			}
		case "details":
			err = r.scanner.object(first, func(key string, first byte) error {
				if key == "retryAfterSeconds" {
					return r.whole(first, &o.status.retryAfter)
				}
				return r.skip(first)
			})
		default:
			err = r.skip(first)
		}
		return err
	})
}

func (r *reader) metadata(first byte, o *object) error {
	return r.scanner.object(first, func(key string, first byte) (err error) {
		switch key {
		case "namespace":
			_, err = r.text(first, maxName, &o.namespace)
		case "name":
			_, err = r.text(first, maxName, &o.name)
		case "uid":
			_, err = r.text(first, maxUID, &o.uid)
		case "resourceVersion":
			_, err = r.text(first, maxVersion, &o.version)
		case "creationTimestamp":
			err = r.time(first, &o.created)
		case "deletionTimestamp":
			err = r.time(first, &o.deleting)
		case "labels":
			err = r.labels(first, o)
		case "annotations":
			err = r.annotations(first, o)
		case "ownerReferences":
			err = r.array(first, func(first byte) error { return r.owner(first, o) })
		default:
			err = r.skip(first)
		}
		return err
	})
}

func (r *reader) time(first byte, v *time.Time) error {
	var text string
	_, err := r.text(first, maxWord, &text)
	if t, bad := time.Parse(time.RFC3339, text); bad == nil {
		*v = t.UTC()
	}
	return err
}

// labels keeps those that are allowed, and the hashes that lead to a workload.
func (r *reader) labels(first byte, o *object) error {
	return r.scanner.object(first, func(key string, first byte) error {
		_, hash := templateLabels[key]
		rank, allowed := r.allow.rank(key)
		if !allowed && !hash {
			return r.skip(first)
		}
		var value string
		ok, err := r.text(first, maxLabelValue, &value)
		switch {
		case err != nil:
			return err
		case !ok:
			o.malformed++
			return nil
		}
		if hash {
			if o.templateHashes == nil {
				o.templateHashes = map[string]string{}
			}
			o.templateHashes[key] = value
		}
		if allowed && o.labels.add(label{rank: rank, key: key, value: value}) {
			o.overflow++
		}
		return nil
	})
}

// configHash is the annotation in which the kubelet writes the UID of a static
// pod, on the pod that stands for it at the API server.
const configHash = "kubernetes.io/config.hash"

func (r *reader) annotations(first byte, o *object) error {
	return r.scanner.object(first, func(key string, first byte) error {
		if key == configHash {
			_, err := r.text(first, maxUID, &o.staticUID)
			return err
		}
		rank := slices.Index(r.contexts, key)
		if rank < 0 || o.context != "" && o.contextRank <= rank {
			return r.skip(first)
		}
		var value string
		ok, err := r.text(first, maxContext, &value)
		switch {
		case err != nil:
		case !ok:
			o.malformed++
		case value != "":
			o.context, o.contextRank = value, rank
		}
		return err
	})
}

func (r *reader) owner(first byte, o *object) error {
	var w Workload
	controls := false
	err := r.scanner.object(first, func(key string, first byte) (err error) {
		switch key {
		case "kind":
			_, err = r.text(first, maxWord, &w.Kind)
		case "name":
			_, err = r.text(first, maxName, &w.Name)
		case "controller":
			controls = first == 't'
			err = r.skip(first)
		default:
			err = r.skip(first)
		}
		return err
	})
	if controls && w.Kind != "" && w.Name != "" {
		o.controller = w
	}
	return err
}

// spec reads what a pod or a slice says of its node, and a slice's devices.
func (r *reader) spec(first byte, o *object) error {
	return r.scanner.object(first, func(key string, first byte) (err error) {
		switch key {
		case "nodeName":
			_, err = r.text(first, maxName, &o.node)
		case "driver":
			_, err = r.text(first, maxName, &o.driver)
		case "pool":
			err = r.pool(first, o)
		case "devices":
			err = r.array(first, func(first byte) error { return r.device(first, o) })
		default:
			err = r.skip(first)
		}
		return err
	})
}

// status reads a pod's phase, or that what stands here is an error.
func (r *reader) status(first byte, o *object) error {
	if first == '"' {
		var text string
		_, err := r.text(first, maxWord, &text)
		o.status.failure = text == "Failure"
		return err
	}
	return r.scanner.object(first, func(key string, first byte) error {
		if key != "phase" {
			return r.skip(first)
		}
		var text string
		_, err := r.text(first, maxWord, &text)
		o.phase = Phase(text)
		return err
	})
}
