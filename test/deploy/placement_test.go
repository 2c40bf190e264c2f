package deploy

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// TestPlacement: by the scheduler's own rules, the pods go where a label announces
// of an accelerator, and nowhere else.
func TestPlacement(t *testing.T) {
	spec := podSpec(t, objects(t, "default"))
	wanted := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *spec})
	for _, c := range []struct {
		node   string
		labels map[string]string
		want   bool
	}{
		{"GPU feature discovery", map[string]string{"nvidia.com/gpu.present": "true", "nvidia.com/gpu.count": "8"}, true},
		{"its GPU is gone", map[string]string{"nvidia.com/gpu.present": "false"}, false},
		{"NFD, by vendor", map[string]string{"feature.node.kubernetes.io/pci-10de.present": "true"}, true},
		{"NFD, a data-centre GPU", map[string]string{"feature.node.kubernetes.io/pci-0302_10de.present": "true"}, true},
		{"NFD, an Alveo", map[string]string{"feature.node.kubernetes.io/pci-1200_10ee.present": "true"}, true},
		{"NFD, an Intel PAC", map[string]string{"feature.node.kubernetes.io/pci-1200_8086.present": "true"}, true},
		{"NFD, graphics of an Intel processor", map[string]string{"feature.node.kubernetes.io/pci-0300_8086.present": "true"}, false},
		{"NFD by vendor, any Intel machine", map[string]string{"feature.node.kubernetes.io/pci-8086.present": "true"}, false},
		{"GKE", map[string]string{"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}, true},
		{"EKS, auto mode", map[string]string{"eks.amazonaws.com/instance-gpu-count": "8"}, true},
		{"Karpenter", map[string]string{"karpenter.k8s.aws/instance-gpu-count": "1"}, true},
		{"AKS", map[string]string{"kubernetes.azure.com/accelerator": "nvidia"}, true},
		{"AWS, an FPGA", map[string]string{"node.kubernetes.io/instance-type": "f2.12xlarge"}, true},
		{"AWS, none", map[string]string{"node.kubernetes.io/instance-type": "m7i.large"}, false},
		{"labelled by hand", map[string]string{"accel-exporter.io/accelerators": "true"}, true},
		{"labelled not to", map[string]string{"accel-exporter.io/accelerators": "false"}, false},
		{"control plane", map[string]string{"node-role.kubernetes.io/control-plane": ""}, false},
		{"no label", nil, false},
	} {
		got, err := wanted.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node1", Labels: c.labels}})
		if err != nil || got != c.want {
			t.Errorf("%s: %t, %v", c.node, got, err)
		}
	}
}

// TestEverywhere: without an affinity every node has it.
func TestEverywhere(t *testing.T) {
	spec := podSpec(t, objects(t, "", "--set=affinity=null"))
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *spec}).Match(&corev1.Node{}); !ok || err != nil {
		t.Errorf("%t, %v", ok, err)
	}
}

// TestOptionalFolders: a node that lacks a folder, such as the kubelet's with another root
// directory, starts the pod.
func TestOptionalFolders(t *testing.T) {
	for _, name := range cases(t) {
		for _, v := range podSpec(t, objects(t, name)).Volumes {
			if h := v.HostPath; h != nil && h.Type != nil && *h.Type == corev1.HostPathDirectory && h.Path != "/dev" && h.Path != "/sys/firmware" {
				t.Errorf("%s: a node without %s does not start the pod", name, h.Path)
			}
		}
	}
}
