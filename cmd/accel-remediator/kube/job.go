package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/accel-exporter/accel-exporter/remediation"
)

// ReadJob reads a manifest; a key that a Job does not have is an error.
func ReadJob(file string) (*batchv1.Job, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true, Strict: true})
	object, _, err := strict.Decode(data, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	job, ok := object.(*batchv1.Job)
	if !ok {
		return nil, fmt.Errorf("%s: found a %T; accepted is a Job of batch/v1", file, object)
	}
	return job, nil
}

// MakeJob implements remediation.Cluster. The Job runs on the node, whatever
// its taints, and its containers are told of the call by environment.
func (c *Cluster) MakeJob(ctx context.Context, file string, call *remediation.Call) error {
	job, err := ReadJob(file)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(call.Key))
	job.Name, job.GenerateName, job.Namespace = "accel-"+call.Hook+"-"+hex.EncodeToString(sum[:6]), "", c.namespace
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, "accel.health/node", call.Node)
	pod := &job.Spec.Template.Spec
	pod.NodeName = call.Node
	pod.Tolerations = append(pod.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
	env := []corev1.EnvVar{
		{Name: "ACCEL_NODE", Value: call.Node},
		{Name: "ACCEL_ALERTS", Value: strings.Join(call.Alerts, ",")},
		{Name: "ACCEL_DEVICES", Value: strings.Join(call.Devices, ",")},
	}
	for i := range pod.Containers {
		pod.Containers[i].Env = append(pod.Containers[i].Env, env...)
	}
	_, err = c.client.BatchV1().Jobs(c.namespace).Create(ctx, job, metav1.CreateOptions{FieldManager: source})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
