#!/bin/bash
# Builds volcano, with the kinds of objects and the scheduler's settings of the release that go.mod names inside.
set -euo pipefail
cd "$(dirname "$0")"
output=$(realpath "${1:?output file}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -- *.go go.mod go.sum "$work"
cd "$work"
go mod download volcano.sh/volcano
module=$(go list -m -f '{{.Dir}}' volcano.sh/volcano)
mkdir crd
cp "$module"/config/crd/volcano/bases/*.yaml crd/
cp "$module"/installer/helm/chart/volcano/config/volcano-scheduler.conf scheduler.conf
chmod -R u+w "$work"
go build -buildvcs=false -trimpath -ldflags "-s -w" -o "$output" .
