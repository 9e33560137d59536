#!/bin/sh
# Checks, before a run's container is made, whether its data is there: Kubernetes would make a directory that it
# mounts from within a volume and does not find. It unpacks what the job brings along, too.
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

# muster_unpack PARTS DIRECTORY: PARTS holds an archive in pieces, of what the job brings along.
muster_unpack() {
  if ! command -v tar >/dev/null 2>&1; then
    printf 'muster: uploads: the image has no tar to unpack them; use one that has, or put the files into it\n' >&2
    MUSTER_FAILED=1
    return
  fi
  if (umask 022 && cat "$1"/* | tar -xmop -f - -C "$2"); then return; fi
  printf 'muster: uploads: the files could not be unpacked into %s; tar has said why\n' "$2" >&2
  MUSTER_FAILED=1
}

# shellcheck disable=SC1091 # it is the job's
. "${0%/*}/storage.words"
if [ "$MUSTER_FAILED" ]; then exit 1; fi
