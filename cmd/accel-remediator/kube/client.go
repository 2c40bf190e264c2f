package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

var v1 = schema.GroupVersion{Version: "v1"}

// NewClient returns a client of the API server that decodes nodes and errors.
// client-go's own clients know every type that Kubernetes has, which is four
// fifths of a program that uses one, and stays in memory.
func NewClient(cfg *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(v1.WithKind("Node"), &node{})
	scheme.AddKnownTypeWithName(v1.WithKind("NodeList"), &nodeList{})
	metav1.AddToGroupVersion(scheme, v1)
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = source
	cfg.QPS, cfg.Burst = 20, 40 // no more often than a controller should
	cfg.APIPath, cfg.GroupVersion = "/api", &v1
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(cfg)
}
