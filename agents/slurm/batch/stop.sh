#!/bin/bash
# This part of batch.sh stops a program before its time limit does (slurm.timeout), or because another one has
# failed.
# shellcheck disable=SC2034,SC2154 # its parts share the variables

# The other roles' time between TERM and KILL when one has failed: as long as Slurm itself gives as a rule.
stop_grace_s=30
# Programs that lose the one that leads them may fail of that before its own end is known: so long after such a failure,
# the leading one's success still counts.
lead_grace_s=5
# A requeue is asked for so often while slurmctld cannot be reached, which takes it 10 s each time to say.
requeue_tries=10 requeue_pause_s=20

# start_timer group PID | start_timer steps SRUN...: has the program stopped when the run has lasted as long as
# specs/timeout says, by the clock: also while Slurm has it suspended. The other half of the pipe shows when it has ended by
# itself. Sets timeout_grace_s, how long the program has between TERM and KILL.
start_timer() {
  local seconds now
  if [[ ! -e $run_dir/specs/timeout ]]; then return; fi
  read -r seconds _ timeout_grace_s _ <"$run_dir/specs/timeout"
  printf -v now '%(%s)T' -1
  seconds=$((start + seconds - now))
  exec {timer}> >(stop_when_due $((seconds > 1 ? seconds : 1)) "$@")
  watcher=$!
}

end_timer() {
  [[ $timer ]] || return 0
  # The rest of the program's group may still be at work on its answer to the TERM.
  if [[ -e $run_dir/timed_out ]]; then is_gone "$watcher" "$timeout_grace_s"; fi
  exec {timer}>&-
  timer=
}

# stop_when_due SECONDS HOW...
stop_when_due() {
  # The process that waits for a program ignores these signals, and its stdout is read (see run).
  trap - TERM CONT
  trap '' "${signals[@]}"
  exec >&2
  read -r -t "$1" _
  # The status is that of the pipe's end, not of a time-out.
  (($? > 128)) || exit 0
  : >"$run_dir/timed_out"
  note "the run has reached its slurm.timeout; its programs are stopped"
  case $2 in
    group) stop_group "$3" ;;
    *) stop_steps "$timeout_grace_s" "${@:3}" ;;
  esac
  exit 0
}

# stop_group PID: the program on this node, and its children.
stop_group() {
  if [[ -e $run_dir/specs/batch_script ]]; then scancel --quiet --signal=TERM "$job_id"; fi
  kill -TERM -- "-$1"
  is_gone "-$1" "$timeout_grace_s" || kill -KILL -- "-$1"
}

# is_gone PID SECONDS: waits until the process, or the group -PID, is no more.
is_gone() {
  local i
  for ((i = 0; i < $2 * 10; ++i)); do
    kill -0 -- "$1" 2>/dev/null || return 0
    sleep 0.1
  done
  return 1
}

# stop_steps SECONDS SRUN...: the programs in all steps of this job, on all nodes. A TERM to an srun makes it kill its step;
# slurmctld, which a hundred jobs may ask at once, is not asked how the steps fare.
stop_steps() {
  local pid end=$((SECONDS + $1))
  scancel --quiet --signal=TERM "$job_id"
  for pid in "${@:2}"; do
    is_gone "$pid" $((end - SECONDS)) || kill -TERM "$pid" 2>/dev/null
  done
}

# Succeeds if Slurm takes the job back, to start it again under the same id. Then it ends this start,
# too. Else it sets cause and about, unless nobody has wanted it.
requeue() {
  local may=0 max=0 said='' try restarts=${SLURM_RESTART_COUNT:-0}
  read -r _ may _ max <"$run_dir/specs/timeout"
  ((may)) || return
  # A run that makes no progress must not hold nodes for ever.
  if ((restarts >= max)); then
    cause=restart_limit about=$max
    note "the job could not be requeued: it has been started again $restarts times, and slurm.max_timeout_requeues is $max"
    return 1
  fi
  for ((try = 0; try < requeue_tries; ++try)); do
    if said=$(scontrol requeue "$job_id" 2>&1); then return 0; fi
    # Slurm was not reached, so nobody has said no: another try may help.
    [[ $said == *'Unable to contact'* || $said == *'timed out'* ]] || break
    sleep "$requeue_pause_s"
  done
  cause=refused about=$said
  note "the job could not be requeued: $said"
  return 1
}
