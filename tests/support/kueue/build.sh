#!/bin/bash
# Builds kueue, with the manifests of the release that go.mod names inside.
set -euo pipefail
cd "$(dirname "$0")"
output=$(realpath "${1:?output file}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -- *.go go.mod go.sum "$work"
cd "$work"
go mod download sigs.k8s.io/kueue
components=$(go list -m -f '{{.Dir}}' sigs.k8s.io/kueue)/config/components
mkdir -p manifests/crd
cp "$components"/crd/bases/*.yaml manifests/crd/
cp "$components"/webhook/manifests.yaml manifests/webhooks.yaml
chmod -R u+w "$work"
go build -buildvcs=false -trimpath -ldflags "-s -w" -o "$output" .
