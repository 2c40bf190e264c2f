package kube

import (
	"context"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

const (
	// claimName names the claim in the pod of a test, and its request.
	claimName = "accel-device"
	// testTime is for how many seconds a test may run if its manifest does not set this.
	testTime int64 = 60 * 60
)

// Job implements remediation.Cluster.
func (c *Cluster) Job(ctx context.Context, call *remediation.Call) (remediation.JobState, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	job, err := c.client.BatchV1().Jobs(c.namespace).Get(ctx, jobName(call), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return remediation.JobState{}, nil
	}
	if err != nil {
		return remediation.JobState{}, err
	}
	state := remediation.JobState{Name: job.Name}
	for _, is := range job.Status.Conditions {
		if is.Status == corev1.ConditionTrue {
			switch is.Type {
			case batchv1.JobComplete:
				state.Passed = true
			case batchv1.JobFailed:
				state.Failed, state.Text = true, is.Reason+": "+is.Message
			}
		}
	}
	return state, nil
}

// claimDevice has the pod of a Job use the claim of its name, with a time limit: a device
// that is in use is never allocated to it.
func claimDevice(job *batchv1.Job) {
	if job.Spec.ActiveDeadlineSeconds == nil {
		limit := testTime
		job.Spec.ActiveDeadlineSeconds = &limit
	}
	pod := &job.Spec.Template.Spec
	pod.ResourceClaims = append(pod.ResourceClaims, corev1.PodResourceClaim{Name: claimName, ResourceClaimName: &job.Name})
	for i := range pod.Containers {
		uses := &pod.Containers[i].Resources
		uses.Claims = append(uses.Claims, corev1.ResourceClaim{Name: claimName})
	}
}

// makeClaim makes the claim of a test: for one device, which it selects by its identity,
// because claims cannot select names. It tolerates the taint of the rule, which owns it.
func (c *Cluster) makeClaim(ctx context.Context, call *remediation.Call) error {
	d := call.Claim.Device
	var same []string
	for _, name := range append([]resourcev1.QualifiedName{"uuid"}, addresses...) {
		domain, attribute, qualified := strings.Cut(string(name), "/")
		if !qualified {
			domain, attribute = d.Place.Driver, string(name)
		}
		same = append(same, fmt.Sprintf("device.attributes[%q].?%s.orValue(\"\") == %q", domain, attribute, d.ID))
	}
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: jobName(call), OwnerReferences: []metav1.OwnerReference{{
			APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "DeviceTaintRule", Name: d.Rule, UID: types.UID(call.Claim.RuleUID),
		}}},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: claimName,
			Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: call.Claim.Class,
				Tolerations:     []resourcev1.DeviceToleration{{Key: remediation.HealthLabel, Operator: resourcev1.DeviceTolerationOpExists}},
				Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
					Expression: fmt.Sprintf("device.driver == %q && (%s)", d.Place.Driver, strings.Join(same, " || ")),
				}}},
			},
		}}}},
	}
	err := c.change(ctx, func(ctx context.Context) error {
		_, err := c.client.ResourceV1().ResourceClaims(c.namespace).Create(ctx, claim, metav1.CreateOptions{FieldManager: component})
		return err
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
