#!/bin/bash
# Builds coscheduling, with the definition of PodGroups of the release that go.mod names inside.
set -euo pipefail
cd "$(dirname "$0")"
output=$(realpath "${1:?output file}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -- *.go go.mod go.sum "$work"
cd "$work"
go mod download sigs.k8s.io/scheduler-plugins
module=$(go list -m -f '{{.Dir}}' sigs.k8s.io/scheduler-plugins)
cp "$module"/config/crd/bases/scheduling.x-k8s.io_podgroups.yaml podgroups.yaml
chmod -R u+w "$work"
go build -buildvcs=false -trimpath -ldflags "-s -w" -o "$output" .
