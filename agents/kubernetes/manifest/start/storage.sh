#!/bin/sh
# What looks, before a run's container is made, whether its data is there: what Kubernetes mounts from within a volume
# and does not find, it would make.
#
#   sh storage
#
# storage.words beside it calls these functions.

MUSTER_FAILED=

# muster_need FIELD SHOWN PATH: PATH is where this container has what the job calls SHOWN.
muster_need() {
  if [ -e "$3" ]; then return; fi
  printf 'muster: %s "%s" is not there; put the data there, or correct the path\n' "$1" "$2" >&2
  MUSTER_FAILED=1
}

# muster_make FIELD SHOWN PATH
muster_make() {
  if mkdir -p -- "$3"; then return; fi
  printf 'muster: %s "%s" cannot be made\n' "$1" "$2" >&2
  MUSTER_FAILED=1
}

# shellcheck disable=SC1091 # it is the job's
. "${0%/*}/storage.words"
if [ "$MUSTER_FAILED" ]; then exit 1; fi
