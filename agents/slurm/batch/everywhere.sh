#!/bin/bash
# This part of batch.sh runs programs on all nodes of the allocation, by srun, and gives them their
# environment.
# shellcheck disable=SC2034,SC2154 # its parts share the variables

# start_step PROGRAM RANK TASKS_PER_NODE OPTION...: becomes srun, which runs it once on each of the nodes, or more often.
start_step() {
  local nodes=$SLURM_JOB_NUM_NODES launch=(exec)
  if [[ $1 == role-* ]]; then nodes=$role_nodes; fi
  # An entrypoint must not take this node's rank for its own.
  unset NODE_RANK SKYPILOT_NODE_RANK MUSTER_NODE_RANK
  if ((${#container[@]})) && [[ ${container[-1]} == --container-entrypoint ]]; then launch=(with_environment "$1"); fi
  "${launch[@]}" srun --export=ALL --nodes="$nodes" --ntasks="$((nodes * $3))" --ntasks-per-node="$3" \
    --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" --kill-on-bad-exit=1 "${@:4}" "${container[@]}" \
    /bin/bash "$run_dir/sbatch/batch.sh" "$run_dir" step "$1" "$2"
}

# with_environment PROGRAM WORD...: becomes the words, with the program's variables. An image's entrypoint is to see
# them; the program gets them in `become`, like everywhere.
with_environment() {
  read_variables "$1"
  set -- "$(type -P "$2")" "${@:3}"
  ((${#variables[@]} == 0)) || hand_over "${variables[@]}"
  exec "$@"
}

# run_everywhere PROGRAM TASKS_PER_NODE: sets what `run` sets, and rank.
run_everywhere() {
  # The step runs in the background, so that a signal is passed on while it runs.
  (start_step "$1" 0 "$2" </dev/null) &
  await_step "$!"
}

# await_step SRUN: sets what `run` sets, and rank.
await_step() {
  local code=0
  signal=0 problem=
  start_timer steps "$1"
  start_guard steps "$1"
  wait_for "$1"
  status=$code
  end_timer
  end_guard
  read_failure
}

# wait_for PID: sets code. A signal to this shell cuts a wait short, with a code above 128. If the process ends in that
# moment, its status is lost (see run), and the code is -1 (127 in bash 5.3); but an srun takes longer than that to end.
wait_for() {
  local interrupted=1
  while [[ $interrupted ]]; do
    interrupted=
    wait "$1"
    code=$?
    ((code > 128)) || break
  done
}

# Runs after all steps: reads the failure of the rank that failed first, or else of srun.
read_failure() {
  if [[ -e $run_dir/failed ]]; then
    read -r rank status signal problem <"$run_dir/failed"
  elif ((status < 0)); then
    status=1 problem=unknown
  elif ((status)); then
    problem=srun
  fi
  if [[ $problem == srun ]] && ((${#container[@]})) && container_failed; then problem=image; fi
  # Some node could not do so itself, and its step was killed.
  if [[ $lease_over ]]; then status=$((status > 0 ? status : 143)) problem=lease; fi
}

# Each role runs in a step of its own, beside the others. specs/roles has a line for each: its name, its first node, how
# many nodes, the rank of the first one, and whether it leads. When one fails, the others are stopped, and likewise when
# all that lead have succeeded.
run_roles() {
  local name first role_nodes base leads number=0 pid code grace stopped='' led=''
  local -A pids=() bases=() leaders=()
  status=0 signal=0 problem=
  while read -r name first role_nodes base leads; do
    (start_role "$number" </dev/null) &
    pids[$!]=$name bases[$!]=$base number=$((number + 1))
    if ((leads)); then leaders[$!]=1; fi
  done <"$run_dir/specs/roles"
  start_timer steps "${!pids[@]}"
  start_guard steps "${!pids[@]}"
  while ((${#pids[@]})); do
    wait -n
    for pid in "${!pids[@]}"; do
      if kill -0 "$pid" 2>/dev/null; then continue; fi
      wait "$pid"
      code=$?
      unset "pids[$pid]"
      if [[ $led ]]; then continue; fi
      grace=0
      if ((code == 0)) && may_count "$pid"; then
        has_led "$pid" || continue
        led=1 stopped=''
        # The time limit is the program's, which has ended.
        end_timer
      else
        fail_first "${bases[$pid]}" "$code" 0 srun
        status=$code
        if ((${#leaders[@]})) && [[ ! ${leaders[$pid]:-} ]]; then grace=$lead_grace_s; fi
      fi
      if [[ ! $stopped ]] && ((${#pids[@]})); then
        stopped=1
        stop_roles "$grace" "${!pids[@]}" &
      fi
    done
  done
  end_timer
  end_guard
  # The others' end says nothing of the job then.
  if [[ $led ]]; then status=0; else read_failure; fi
}

# may_count SRUN: whether its 0 is what the program ended with by itself, and not its answer to the TERM that another
# one's failure, or the end of the lease, has brought it.
may_count() {
  if has_lease_ended_it; then return 1; fi
  [[ ! -e $run_dir/failed || (${leaders[$1]:-} && ! -e $run_dir/stopping) ]]
}

# has_led SRUN: whether that one, which has succeeded, was the last one of those that lead. Reads what run_roles has read.
has_led() {
  if [[ ! ${leaders[$1]:-} ]]; then return 1; fi
  unset "leaders[$1]"
  ((${#leaders[@]} == 0))
}

# stop_roles GRACE SRUN...
stop_roles() {
  if (($1)); then sleep "$1"; fi
  : >"$run_dir/stopping"
  stop_steps "$stop_grace_s" "${@:2}"
}

# start_role NUMBER: becomes its srun. Reads what run_roles has read.
start_role() {
  local mine=("${hosts[@]:first:role_nodes}")
  if ((SLURM_JOB_NUM_NODES > 1)); then export MASTER_ADDR=${mine[0]}; fi
  printf -v SKYPILOT_NODE_IPS '%s\n' "${mine[@]}"
  SKYPILOT_NODE_IPS=${SKYPILOT_NODE_IPS%$'\n'}
  trap - TERM CONT
  # A step that wants memory of its own is refused while another one has it: the setup's, which Slurm may take for one
  # that still runs.
  start_step "role-$1" "$base" 1 --overlap --mem=0 --relative="$first"
}

# MUSTER_ROLE_<NAME>_NODES: the nodes of each role, with commas between them.
set_up_role_nodes() {
  local name first role_nodes variable IFS
  while IFS=' ' read -r name first role_nodes _; do
    name=${name^^}
    variable=MUSTER_ROLE_${name//-/_}_NODES
    IFS=,
    printf -v "$variable" '%s' "${hosts[*]:first:role_nodes}"
    export "${variable?}"
  done <"$run_dir/specs/roles"
}

# The names that programs read to find each other. NODE_RANK of other nodes is set there, in `step`.
set_up_environment() {
  hosts=("${SLURMD_NODENAME:-localhost}")
  if ((SLURM_JOB_NUM_NODES > 1)); then
    mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
    MASTER_ADDR=${hosts[0]}
  else
    MASTER_ADDR=127.0.0.1
  fi
  printf -v SKYPILOT_NODE_IPS '%s\n' "${hosts[@]}"
  SKYPILOT_NODE_IPS=${SKYPILOT_NODE_IPS%$'\n'}
  # The agent gives these as a rule; a look-up costs a node more than the rest of this script.
  : "${HOME:=~}" "${USER:=$SLURM_JOB_USER}" "${LOGNAME:=$SLURM_JOB_USER}"
  NODE_RANK=0 SKYPILOT_NODE_RANK=0 MUSTER_NODE_RANK=0 MUSTER_RESTART_COUNT=${SLURM_RESTART_COUNT:-0}
  export MASTER_ADDR SKYPILOT_NODE_IPS HOME USER LOGNAME NODE_RANK SKYPILOT_NODE_RANK MUSTER_NODE_RANK
  export MUSTER_RESTART_COUNT
  if [[ -e $run_dir/specs/roles ]]; then set_up_role_nodes; fi
  unset SLURM_EXPORT_ENV
}
