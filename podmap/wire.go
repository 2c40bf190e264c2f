package podmap

import (
	"errors"
	"iter"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// The methods that are called, and the fields of their answers that are read,
// as k8s.io/kubelet/pkg/apis/podresources/v1/api.proto has them. That package
// brings all of gRPC along (internal/unary says why that matters); the tests
// hold these against it.
const (
	methodList        = "/v1.PodResourcesLister/List"
	methodAllocatable = "/v1.PodResourcesLister/GetAllocatableResources"

	listPods           = 1 // of ListPodResourcesResponse
	allocatableDevices = 1 // of AllocatableResourcesResponse

	podName, podNamespace, podContainers                    = 1, 2, 3    // of PodResources
	containerName, containerDevices, containerClaims        = 1, 2, 5    // of ContainerResources
	devicesResource, devicesIDs                             = 1, 2       // of ContainerDevices
	claimName, claimNamespace, claimResources               = 2, 3, 4    // of DynamicResource
	claimedDriver, claimedPool, claimedDevice, claimedShare = 2, 3, 4, 5 // of ClaimResource
)

var errWire = errors.New("the answer is no message of the PodResources API")

// wire reads messages in protobuf's encoding. What it does not know it passes
// over, as protobuf does. It keeps that something could not be read.
type wire struct{ broken bool }

// each yields the values of one field of a message, texts or messages, in
// their order.
func (w *wire) each(message []byte, field protowire.Number) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(message) > 0 {
			number, kind, n := protowire.ConsumeTag(message)
			if n < 0 {
				w.broken = true
				return
			}
			message = message[n:]
			if number != field || kind != protowire.BytesType {
				if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
					w.broken = true
					return
				}
				message = message[n:]
				continue
			}
			value, n := protowire.ConsumeBytes(message)
			if n < 0 {
				w.broken = true
				return
			}
			message = message[n:]
			if !yield(value) {
				return
			}
		}
	}
}

// text returns the value of a field that stands in a message once. Of several
// the last counts.
func (w *wire) text(message []byte, field protowire.Number) (s string) {
	var value []byte
	for value = range w.each(message, field) {
	}
	return w.string(value)
}

func (w *wire) string(value []byte) string {
	w.broken = w.broken || !utf8.Valid(value)
	return string(value)
}
