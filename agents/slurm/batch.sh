#!/bin/bash
#
# Runs one run under Slurm.
#   batch.sh DIRECTORY              as the batch script
#   batch.sh LIST array             likewise, of a task of an array, whose runs LIST names, one a line
#   batch.sh DIRECTORY step PHASE   as each task of srun, when there are several
#   batch.sh DIRECTORY become PHASE to become the program of a phase
#   batch.sh DIRECTORY relay SIGNAL as a step of one task on each node, to send the programs a signal
#
# This text is the same for every run: what differs is in files of the run's DIRECTORY, and nothing that a user wrote
# is ever read as shell text. Each extra process costs a node a millisecond, so there are few.

set -u
shopt -s lastpipe
job_id=${SLURM_JOB_ID-} slurm_out=$1/slurm-logs/slurm.out
if [[ ${2-} == array ]]; then
  job_id=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID slurm_out=$1.out/$SLURM_ARRAY_TASK_ID
  mapfile -t runs <"$1"
  set -- "${1%/*/*}/${runs[SLURM_ARRAY_TASK_ID]?the list of runs cannot be read}"
  # That it is a task of an array is no matter of the run's program.
  unset runs "${!SLURM_ARRAY_@}"
  export SLURM_JOB_NAME=${1##*/}
fi
run_dir=$1
run_key=${run_dir##*/}
# A TERM (scancel, time limit) goes to the command, too; this shell stays to write down how that ended. It may come here
# after the command has answered it, but Slurm sends all processes a CONT before any of them gets the TERM.
terminated='' continued='' interrupted=''
# See read_warning.
warning='' alone=''
trap 'terminated=1 interrupted=1' TERM
trap 'continued=1 interrupted=1' CONT

note() { printf 'muster: %s\n' "$*" >&2; }

# The run belongs to the Slurm job that creates the claim. Another job of the same run (a submission whose answer was
# lost and that was repeated) leaves without a trace. The owner may come again: Slurm requeues under the same id.
claim() {
  local owner='' created=''
  set -o noclobber
  { { created=1 && printf '%s\n' "$job_id"; } >"$run_dir/claim"; } 2>/dev/null
  # Read again: a file server may accept bytes for which it has no room.
  { read -r owner <"$run_dir/claim"; } 2>/dev/null
  if [[ $owner != "$job_id" ]]; then
    if [[ $created ]]; then
      rm -f "$run_dir/claim"
      note "run $run_key cannot be claimed: $run_dir cannot be written to; job $job_id does nothing"
    else
      note "run $run_key belongs to Slurm job ${owner:-unknown}; job $job_id does nothing"
    fi
    exit 75
  fi
  if [[ ! $created ]]; then
    if ! { : >"$run_dir/claim.${SLURM_RESTART_COUNT:-0}"; } 2>/dev/null; then
      note "job $job_id has been started already (restart ${SLURM_RESTART_COUNT:-0}); this start does nothing"
      exit 75
    fi
    restart
  fi
  set +o noclobber
}

# A command that has ended with 0 by itself does not run again; any other end before a requeue is void.
restart() {
  local line
  while read -r line; do
    if [[ $line == 'code=0 signal=0 terminated=0 continued=0 '* ]]; then
      note "the command of run $run_key has ended with 0 before; it does not run again"
      exit 0
    fi
  done 2>/dev/null <"$record"
  rm -f "$record" "$run_dir/failed" "$run_dir"/problem.* "$run_dir"/pid.*
  # What Slurm wrote before this line is about an earlier start.
  note "restart ${SLURM_RESTART_COUNT:-0} of run $run_key"
}

# run PHASE: runs the phase's program and waits for it. Sets status, signal and problem.
run() {
  local pid='' said='' code=0
  status=0 signal=0 problem=
  # A pipeline whose second half is this shell: the command is not one of the shell's asynchronous ones, which would
  # ignore INT, and yet it is among its jobs.
  {
    printf '%s\n' "$BASHPID"
    exec </dev/null >>"$run_dir/slurm-logs/rank-$NODE_RANK.out" 2>>"$run_dir/slurm-logs/rank-$NODE_RANK.err"
    trap - TERM CONT ${warning:+"$warning"}
    exec /bin/bash "$run_dir/sbatch/batch.sh" "$run_dir" become "$1"
  } | await
  status=${PIPESTATUS[0]}
  if ((code < 0 && status == 0)); then
    status=1 problem=unknown
    return
  fi
  ((status)) || return
  if ((status > 128 && status < 193)) && [[ $said && $said != *" $pid Exit "* ]]; then
    signal=$((status - 128))
  fi
  if [[ -e $run_dir/problem.$NODE_RANK ]]; then read -r problem <"$run_dir/problem.$NODE_RANK"; fi
}

# Waits for the process that writes its id to stdin. Sets pid, code, and said if the status does not tell all: only the
# list of jobs tells an end by signal N from an exit with 128+N. If the process ends in the very moment in which a TERM
# comes here, bash (5.2) loses its status, says 0 of the pipeline, and -1 of the wait.
await() {
  read -r pid
  [[ $pid ]] || return
  [[ ! $warning ]] || printf '%s\n' "$pid" >"$run_dir/pid.$NODE_RANK.${SLURM_LOCALID:-0}"
  wait_for "$pid"
  ((code >= 0 && code <= 128)) || said=$(jobs -l)
  [[ ! $warning ]] || rm -f "$run_dir/pid.$NODE_RANK.${SLURM_LOCALID:-0}"
}

# wait_for PID: sets code. A signal to this shell cuts a wait short, with a code above 128.
wait_for() {
  local interrupted=1
  while [[ $interrupted ]]; do
    interrupted=
    wait "$1"
    code=$?
    ((code > 128)) || break
  done
}

# become PHASE: turns this shell into the phase's program. specs/PHASE.argv holds the working directory and the words of the
# program, each ended by a NUL byte; the file `env/environment` holds variables likewise. It takes a shell of its own: for
# most reasons for which an exec fails, a subshell (as in `run`) ends there and then, its traps already forgotten.
become() {
  words=() variables=()
  mapfile -d '' -t words <"$run_dir/specs/$1.argv"
  mapfile -d '' -t variables <"$run_dir/env/environment"
  ((${#words[@]} >= 2)) || give_up "$run_dir/problem.$NODE_RANK" files
  cd -- "${words[0]}" || give_up "$run_dir/problem.$NODE_RANK" working_directory
  # From here on all names are the user's: what is still needed is in the positional parameters.
  set -- "$run_dir/problem.$NODE_RANK" "${words[@]:1}"
  ((${#variables[@]} == 0)) || hand_over "${variables[@]}"
  shopt -s execfail
  # shellcheck disable=SC2093 # it continues if the program cannot be started
  exec "${@:2}"
  give_up "$1" start $?
}

# hand_over NAME=VALUE...: exports variables. An array of that name would take the value for its first word, and no
# program ever sees an array.
hand_over() {
  unset words variables
  # shellcheck disable=SC2163 # these are names with values
  export "$@"
}

# give_up FILE PROBLEM [STATUS]: writes into the file why there is no program.
give_up() {
  printf '%s\n' "$2" >"$1"
  exit "${3:-126}"
}

# One task of srun. The rank that fails first is the one whose end counts.
step() {
  export NODE_RANK=$SLURM_NODEID SKYPILOT_NODE_RANK=$SLURM_NODEID MUSTER_NODE_RANK=$SLURM_NODEID
  read_warning
  # Slurm sends it to every process of the step; this one stays to tell how the command took it. A trap would make it
  # miss an end that comes at once (see await).
  if [[ $warning ]]; then trap '' "$warning"; fi
  run "$1"
  if ((status)); then
    set -o noclobber
    { printf '%s %s %s %s\n' "$NODE_RANK" "$status" "$signal" "$problem" >"$run_dir/failed"; } 2>/dev/null
  fi
  exit "$status"
}

# Of a run that is to be sent a signal before its time limit: its name, and whether it is for the command alone. Such a
# run always has a step, because Slurm sends signals to steps. Sets warning and alone.
read_warning() {
  if [[ -e $run_dir/specs/signal ]]; then read -r warning alone <"$run_dir/specs/signal"; fi
}

# A signal that Slurm sends to the batch script alone is for the command alone. A TERM after a CONT is none of these: the
# command has got it.
pass_on() {
  interrupted=1
  if [[ $warning == TERM && $continued ]]; then return; fi
  if ((SLURM_JOB_NUM_NODES == 1)); then
    relay "$warning"
  else
    srun --overlap --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 \
      --cpus-per-task=1 --mem=0 --gres=none /bin/bash "$run_dir/sbatch/batch.sh" "$run_dir" relay "$warning" &
  fi
}

# relay SIGNAL: to the programs of the run's tasks on this node. Containers have the node's process ids.
relay() {
  local file pid
  for file in "$run_dir/pid.${SLURM_NODEID:-0}".*; do
    if read -r pid <"$file"; then kill -s "$1" "$pid"; fi
  done 2>/dev/null
}

# A run with an image has a file `specs/container`: the image's own file, if it is one that can be looked at here; the Slurm
# job that must have converted it, if it is to be a new one; what nodes pull if there is no such file, if they may; and
# srun's options, each ended by a NUL byte. An image that had to be converted before this job may not have been; then the
# one who tried has said why. Sets container to the options, and pulled.
find_image() {
  local file='' refresh='' fallback='' magic='' maker='' line why=()
  mapfile -d '' -t container <"$run_dir/specs/container"
  file=${container[0]-} refresh=${container[1]-} fallback=${container[2]-}
  container=("${container[@]:3}")
  [[ $file ]] || return 0
  { IFS= read -r -N 4 magic <"$file"; } 2>/dev/null
  if [[ $magic == hsqs && $refresh ]]; then { read -r maker <"$file.made"; } 2>/dev/null; fi
  # Conversions of an image run one after the other, so a later one will do as well.
  if [[ $magic == hsqs && ! $refresh ]] || [[ $maker =~ ^[0-9]+$ && $maker -ge $refresh ]]; then return 0; fi
  if [[ -e $file.failed ]]; then
    mapfile -t why <"$file.failed"
  elif [[ $magic == hsqs ]]; then
    why=("$file was not converted anew by Slurm job $refresh")
  elif [[ -e $file ]]; then
    why=("$file is no squashfs file")
  else
    why=("$file is not there")
  fi
  for line in "${why[@]}"; do note "image: $line"; done
  [[ $fallback ]] || return 1
  pulled=1 container[0]=--container-image=$fallback
  # Here for the cluster's operator, and there for the job's owner.
  printf 'muster: %s\n' "the image could not be converted, so each node pulls $fallback itself" "${why[@]}" |
    tee -a "$run_dir/slurm-logs/rank-0.err" >&2
}

# Whether a step since this start came to nothing because of its container: Pyxis says so, or srun.
container_failed() {
  local line failed=
  while IFS= read -r line; do
    case $line in
      'muster: restart '*) failed= ;;
      *'error: pyxis: '* | *"unrecognized option '--container-"* | *'execve(): /bin/bash: '*) failed=1 ;;
    esac
  done <"$slurm_out"
  [[ $failed ]]
}

# run_everywhere PHASE TASKS_PER_NODE: sets what `run` sets, and rank.
run_everywhere() {
  local pid='' code=0 launch=(srun)
  status=0 signal=0 problem=
  # An entrypoint must not take this node's rank for its own.
  unset NODE_RANK SKYPILOT_NODE_RANK MUSTER_NODE_RANK
  if ((${#container[@]})) && [[ ${container[-1]} == --container-entrypoint ]]; then launch=(with_environment srun); fi
  # In the background, so that a signal is passed on while it runs.
  "${launch[@]}" --export=ALL --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$((SLURM_JOB_NUM_NODES * $2))" \
    --ntasks-per-node="$2" --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" --kill-on-bad-exit=1 \
    "${container[@]}" /bin/bash "$run_dir/sbatch/batch.sh" "$run_dir" step "$1" </dev/null &
  wait_for "$!"
  status=$code
  ((status)) || return
  if [[ -e $run_dir/failed ]]; then
    read -r rank status signal problem <"$run_dir/failed"
  elif ((code < 0)); then
    status=1 problem=unknown
  elif ((${#container[@]})) && container_failed; then
    problem=image
  else
    problem=srun
  fi
}

# with_environment PROGRAM ARGUMENT...: becomes the program, with the job's variables. An image's entrypoint is to see
# them; the command gets them in `become`, like everywhere.
with_environment() {
  words=() variables=()
  mapfile -d '' -t variables <"$run_dir/env/environment"
  set -- "$(type -P "$1")" "${@:2}"
  ((${#variables[@]} == 0)) || hand_over "${variables[@]}"
  exec "$@"
}

# The names that programs read to find each other. NODE_RANK of other nodes is set there, in `step`.
set_up_environment() {
  local hosts=("${SLURMD_NODENAME:-localhost}")
  if ((SLURM_JOB_NUM_NODES > 1)); then
    mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
    MASTER_ADDR=${hosts[0]}
  else
    MASTER_ADDR=127.0.0.1
  fi
  printf -v SKYPILOT_NODE_IPS '%s\n' "${hosts[@]}"
  SKYPILOT_NODE_IPS=${SKYPILOT_NODE_IPS%$'\n'}
  # Given by the agent as a rule; to look them up costs a node more than the rest of this script.
  : "${HOME:=~}" "${USER:=$SLURM_JOB_USER}" "${LOGNAME:=$SLURM_JOB_USER}"
  NODE_RANK=0 SKYPILOT_NODE_RANK=0 MUSTER_NODE_RANK=0
  export MASTER_ADDR SKYPILOT_NODE_IPS HOME USER LOGNAME NODE_RANK SKYPILOT_NODE_RANK MUSTER_NODE_RANK
  unset SLURM_EXPORT_ENV
}

# For people: which Slurm job the run is, and where it runs.
write_slurm_note() {
  printf '{"slurm_job_id": %s, "restart_count": %s, "nodes": "%s", "start_time": %s}\n' "$SLURM_JOB_ID" \
    "${SLURM_RESTART_COUNT:-0}" "${SLURM_JOB_NODELIST:-}" "$start" >|"$run_dir/meta/slurm.json"
}

# The last line makes the record whole: one without it is still being written.
write_record() {
  local end form='job=%s restart=%s\nphase=%s problem=%s pulled=%d\n'
  form+='code=%d signal=%d terminated=%d continued=%d rank=%d\nstart=%d end=%d\ncomplete\n'
  printf -v end '%(%s)T' -1
  # shellcheck disable=SC2059 # one printf is one write: the record is seldom seen in part
  printf "$form" "$job_id" "${SLURM_RESTART_COUNT:-0}" "$phase" "${problem:-none}" "${pulled:-0}" \
    "$((signal ? 0 : status))" "$signal" "${terminated:-0}" "${continued:-0}" "$rank" \
    "$start" "$end" >|"$record"
}

main() {
  local start phase rank=0 status=0 signal=0 problem='' pulled=''
  local tasks_per_node=${SLURM_NTASKS_PER_NODE:-1} container=()
  claim
  printf -v start '%(%s)T' -1
  write_slurm_note
  set_up_environment
  read_warning
  if [[ $warning && $alone ]]; then
    # shellcheck disable=SC2064 # the flag is set now
    trap "$([[ $warning != TERM ]] || echo 'terminated=1; ')pass_on" "$warning"
  fi
  for phase in setup command; do
    if [[ $phase == setup && ! -e $run_dir/specs/setup.argv ]]; then continue; fi
    if [[ -e $run_dir/specs/container ]] && ((${#container[@]} == 0)) && ! find_image; then
      status=1 problem=image
    elif ((SLURM_JOB_NUM_NODES == 1 && tasks_per_node == 1 && ${#container[@]} == 0)) && [[ ! $warning ]]; then
      run "$phase"
    elif [[ $phase == setup ]]; then
      run_everywhere setup 1
    else
      run_everywhere command "$tasks_per_node"
    fi
    if ((status == 0)) && [[ $terminated && $phase == setup ]]; then status=143 signal=15; fi
    if ((status)); then break; fi
  done
  write_record
  exit "$status"
}

record=${run_dir%/*}/ended/$run_key
case ${2:-} in
  step) step "$3" ;;
  become) become "$3" ;;
  relay) relay "$3" ;;
  *) main ;;
esac
