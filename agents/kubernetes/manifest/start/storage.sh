#!/bin/sh
# Checks, before a run's container is made, whether its data is there: Kubernetes would make a directory that it
# mounts from within a volume and does not find. It unpacks what the job brings along, too.
#
#   sh storage [LAST_WORDS]
#
# storage.words beside it calls these functions. LAST_WORDS is the file whose text Kubernetes shows as the container's
# last message: it gets records for the agent (objects/end_record.h), sealed like those of the start script.

MUSTER_FAILED=
MUSTER_TOLD=
MUSTER_LAST_WORDS=${1:-/dev/termination-log}
# Lengths are in bytes.
LC_ALL=C
export LC_ALL

# muster_fail PROBLEM FIELD SUBJECT: writes a record, if Kubernetes still shows it all.
muster_fail() {
  MUSTER_FAILED=1
  if [ -z "${MUSTER_END_SEAL-}" ] || [ "${#MUSTER_TOLD}" -gt 1000 ]; then return; fi
  if [ "${#3}" -gt 900 ]; then set -- "$1" "$2" '(a long name)'; fi
  MUSTER_TOLD=$(
    printf '%s\nmuster-end/1 seal=%s phase=files problem=%s field=%s\n%s' "$MUSTER_TOLD" "$MUSTER_END_SEAL" "$1" "$2" "$3"
  )
  printf '%s\n' "$MUSTER_TOLD" >"$MUSTER_LAST_WORDS"
}

# muster_need FIELD SHOWN PATH: needs PATH, where this container has what the job calls SHOWN.
muster_need() {
  if [ -e "$3" ]; then return; fi
  printf 'muster: %s "%s" is not there; put the data there, or correct the path\n' "$1" "$2" >&2
  muster_fail missing "$1" "$2"
}

# muster_make FIELD SHOWN PATH
muster_make() {
  if mkdir -p -- "$3"; then return; fi
  printf 'muster: %s "%s" cannot be made\n' "$1" "$2" >&2
  muster_fail not_made "$1" "$2"
}

# muster_unpack PARTS DIRECTORY: PARTS holds an archive in pieces, of what the job brings along.
muster_unpack() {
  if ! command -v tar >/dev/null 2>&1; then
    printf 'muster: uploads: the image has no tar to unpack them; use one that has, or put the files into it\n' >&2
    muster_fail no_tar uploads "$2"
    return
  fi
  if (umask 022 && cat "$1"/* | tar -xmop -f - -C "$2"); then return; fi
  printf 'muster: uploads: the files could not be unpacked into %s; tar has said why\n' "$2" >&2
  muster_fail not_unpacked uploads "$2"
}

# shellcheck disable=SC1091 # it is the job's
. "${0%/*}/storage.words"
if [ "$MUSTER_FAILED" ]; then exit 1; fi
