// Package deploy tests the Helm chart, the kustomizations, the image and the
// package with the programs and types that read them: helm, kustomize,
// kubeconform with the schemas of a Kubernetes release, the Prometheus
// Operator's types, Kubernetes' own Pod Security checks and the exporter
// itself. make test-deploy builds what they need.
package deploy
