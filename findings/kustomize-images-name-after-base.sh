#!/usr/bin/env bash
# Finding: `images` of a kustomization looks for the name that an image has after the base
# was built. If the base renames `app` by its own `images`, the entry `name: app` above it,
# which repeats the name in the base's file, has no effect: no error and no warning, and
# the cluster pulls the image of the base. The new name has to be repeated instead.
# Expected: the entry replaces the image, or is reported because it replaces nothing.
# Version: sigs.k8s.io/kustomize/kustomize/v5 v5.7.1. Output seen is below, as the script requires it.
set -euo pipefail
version=v5.7.1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
GOBIN=$dir GOFLAGS= go install "sigs.k8s.io/kustomize/kustomize/v5@$version"
mkdir "$dir/base" "$dir/above"
cat > "$dir/base/pod.yaml" <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, image: app}]}
Y
cat > "$dir/base/kustomization.yaml" <<'Y'
resources: [pod.yaml]
images: [{name: app, newName: first.example/app, newTag: "1"}]
Y

# built NAME: the image and the messages with an entry of this name above the base.
built() {
  printf 'resources: [../base]\nimages: [{name: %s, newName: second.example/app}]\n' "$1" > "$dir/above/kustomization.yaml"
  "$dir/kustomize" build "$dir/above" 2>&1 | grep -vE '^(apiVersion|kind|metadata|spec|  containers|  name|    name)'
}

image=$(built app)
[ "$image" = "  - image: first.example/app:1" ] || { echo "changed: name: app gives $image"; exit 1; }
image=$(built first.example/app)
[ "$image" = "  - image: second.example/app:1" ] || { echo "changed: name: first.example/app gives $image"; exit 1; }
echo "as found: the name in the base's file replaces nothing, silently; the name that the base gave does"
