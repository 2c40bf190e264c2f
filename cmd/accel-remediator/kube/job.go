package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

// keepJob is for how many seconds a finished Job is kept if its manifest does not
// set this, so that its log can be read.
const keepJob int32 = 24 * 60 * 60

// SetJobs puts the manifests of a policy into force, by their file names.
func (c *Cluster) SetJobs(jobs map[string]*batchv1.Job) { c.jobs.Store(&jobs) }

// MakeJob implements remediation.Cluster. The name of the Job is made from the
// key of the call, so each call has one Job, however often it is repeated.
func (c *Cluster) MakeJob(ctx context.Context, file string, call *remediation.Call) error {
	manifest := (*c.jobs.Load())[file]
	if manifest == nil {
		return fmt.Errorf("%s: no manifest of this name is in force", file)
	}
	err := c.change(ctx, func(ctx context.Context) error {
		_, err := c.client.BatchV1().Jobs(c.namespace).Create(ctx, jobFor(manifest, c.namespace, call), metav1.CreateOptions{FieldManager: component})
		return err
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// jobFor returns the Job of a call. It runs on the node despite all taints. The
// environment of its containers describes the call.
func jobFor(manifest *batchv1.Job, namespace string, call *remediation.Call) *batchv1.Job {
	job := manifest.DeepCopy()
	sum := sha256.Sum256([]byte(call.Key))
	job.Name, job.GenerateName, job.Namespace = "accel-"+call.Hook+"-"+hex.EncodeToString(sum[:8]), "", namespace
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, "accel.health/node", call.Node)
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, "accel.health/key", call.Key)
	if job.Spec.TTLSecondsAfterFinished == nil {
		ttl := keepJob
		job.Spec.TTLSecondsAfterFinished = &ttl
	}
	pod := &job.Spec.Template.Spec
	pod.NodeName = call.Node
	pod.Tolerations = append(pod.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
	env := []corev1.EnvVar{
		{Name: "ACCEL_NODE", Value: call.Node},
		{Name: "ACCEL_ALERTS", Value: strings.Join(call.Alerts, ",")},
		{Name: "ACCEL_DEVICES", Value: strings.Join(call.Devices, ",")},
		{Name: "ACCEL_KEY", Value: call.Key},
	}
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			containers[i].Env = slices.Concat(containers[i].Env, env)
		}
	}
	return job
}
