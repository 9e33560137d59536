#!/bin/bash
#
# Converts a container image to a squashfs file, as a Slurm job of its own.
#   convert.sh FILE URI [refresh]
#
# This text is the same for every image. The job is called by the file's name and depends on `singleton`: one conversion
# of an image runs at a time, whichever agent asked for it, and one that finds the file there does nothing, unless it is
# to refresh it. Until it has made the file, FILE.failed says why not: "cause=" and a word for the agent (exit_record.h),
# then lines for people. FILE.made has the Slurm job that made it.

set -u
umask 077
file=$1
uri=$2
partial=$file.partial.$SLURM_JOB_ID
# enroot unpacks layers with attributes that shared file systems seldom keep.
export ENROOT_TEMP_PATH=${TMPDIR:-/tmp}/muster-enroot-$SLURM_JOB_ID

is_squashfs() {
  local magic=
  { IFS= read -r -N 4 magic <"$1"; } 2>/dev/null
  [[ $magic == hsqs ]]
}

# say_why CAUSE WORDS...: in one step, because agents and runs may be reading.
say_why() {
  printf '%s\n' "cause=$1" "${@:2}" >"$file.failed.$SLURM_JOB_ID"
  mv -f -- "$file.failed.$SLURM_JOB_ID" "$file.failed"
}

if [[ ${3-} != refresh ]] && is_squashfs "$file"; then exit 0; fi
say_why stopped "the conversion in Slurm job $SLURM_JOB_ID was stopped before it ended (by a cancel, its time limit or its node)"
# Conversions that were killed left these files, and no other one runs now.
rm -f -- "$file".partial.*
if ! mkdir -p -- "$ENROOT_TEMP_PATH"; then
  say_why no_room "the node of the conversion, ${SLURMD_NODENAME:-}, has no room in ${ENROOT_TEMP_PATH%/*}"
  exit 1
fi
trap 'rm -rf -- "$partial" "$ENROOT_TEMP_PATH" "$file.log.$SLURM_JOB_ID"' EXIT

srun --ntasks=1 enroot import -o "$partial" -- "$uri" >"$file.log.$SLURM_JOB_ID" 2>&1
status=$? cause=conversion
if ((status == 0)) && ! is_squashfs "$partial"; then
  printf 'enroot ended with 0, and what it wrote is no squashfs file\n' >>"$file.log.$SLURM_JOB_ID"
  status=1 cause=no_squashfs
elif ((status != 0)) && grep -qiE 'oom[-_ ]?kill|out of memory' -- "$file.log.$SLURM_JOB_ID"; then
  cause=out_of_memory
elif ((status > 128)); then
  printf 'the conversion was killed by signal %s\n' "$((status - 128))" >>"$file.log.$SLURM_JOB_ID"
  cause=killed
fi
# A name must not stand for bytes that a power cut can still take. A reader that has the old file open
# keeps it.
if ((status == 0)) && sync -- "$partial" && mv -f -- "$partial" "$file"; then
  printf '%s\n' "$SLURM_JOB_ID" >"$file.made.$SLURM_JOB_ID"
  mv -f -- "$file.made.$SLURM_JOB_ID" "$file.made"
  rm -f -- "$file.failed"
  exit 0
fi
# The last lines hold the reason; the first ones, how far it came.
say_why "$cause" "$(tail -n 20 -- "$file.log.$SLURM_JOB_ID")"
exit "$((status ? status : 1))"
