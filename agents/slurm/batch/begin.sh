#!/bin/bash
#
# Runs one run under Slurm.
#   batch.sh DIRECTORY                      as the batch script
#   batch.sh LIST array TASKS               likewise, of a task of an array of the TASKS "1-3,7,9-90:3"; a line of LIST for
#                                           each has its id and its run
#   batch.sh DIRECTORY step PROGRAM RANK    as each task of srun, when there are several nodes, tasks or roles
#   batch.sh DIRECTORY become PROGRAM RANK  to become a program
#   batch.sh DIRECTORY relay SIGNAL         as a step of one task on each node, to send the programs a signal
# PROGRAM: setup, command, or a role's (role-0, role-1 ...). RANK: whose log it writes; of a step, its first node's.
#
# This text is the same for every run: what differs is in files of the run's DIRECTORY, and nothing that a user wrote
# is ever read as shell text. Each extra process costs a node a millisecond, so there are few.
# shellcheck disable=SC2034 # its parts share the variables

set -u
shopt -s lastpipe

# place_of TASK TASKS: sets place to how many of the TASKS come before it.
place_of() {
  local part first last step IFS=,
  place=0
  for part in $2; do
    step=1
    if [[ $part == *:* ]]; then step=${part#*:} part=${part%:*}; fi
    first=${part%-*} last=${part#*-}
    if (($1 <= last)); then
      place=$((place + ($1 - first) / step))
      return
    fi
    place=$((place + (last - first) / step + 1))
  done
}

job_id=${SLURM_JOB_ID-} slurm_out=$1/slurm-logs/slurm.out
if [[ ${2-} == array ]]; then
  job_id=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID slurm_out=$1.out/$SLURM_ARRAY_TASK_ID
  place_of "$SLURM_ARRAY_TASK_ID" "$3"
  runs=()
  mapfile -t -s "$place" -n 1 runs <"$1"
  [[ ${runs[0]-} == "$SLURM_ARRAY_TASK_ID "* ]] || runs=()
  : "${runs[0]?the list of runs cannot be read}"
  set -- "${1%/*/*}/${runs[0]#* }"
  # The run's program does not learn that it is a task of an array.
  unset place runs "${!SLURM_ARRAY_@}"
  export SLURM_JOB_NAME=${1##*/}
fi
run_dir=$1
run_key=${run_dir##*/}
logs=$run_dir/slurm-logs
record=${run_dir%/*}/ended/$run_key
# A TERM (scancel, time limit) goes to the command, too; this shell stays to write down how that ended. It may come here
# after the command has answered it, but Slurm sends all processes a CONT before any of them gets the TERM.
terminated='' continued='' interrupted=''
# See read_warning.
warning='' alone=''
trap 'terminated=1 interrupted=1' TERM
trap 'continued=1 interrupted=1' CONT

note() { printf 'muster: %s\n' "$*" >&2; }
