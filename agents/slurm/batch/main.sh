#!/bin/bash
# This part of batch.sh goes from the start of the Slurm job to the record of its end.
# shellcheck disable=SC2034,SC2154 # its parts share the variables

# Tells people the run's Slurm job, and its nodes.
write_slurm_note() {
  printf '{"slurm_job_id": "%s", "restart_count": %s, "nodes": "%s", "start_time": %s}\n' "$job_id" \
    "${SLURM_RESTART_COUNT:-0}" "${SLURM_JOB_NODELIST:-}" "$start" >|"$run_dir/meta/slurm.json"
}

# The last line makes the record whole: one without it is still being written. The subject of a problem is a text, which goes
# on to the end of its line.
write_record() {
  local end nodes=${SLURM_JOB_NODELIST:-} form='job=%s restart=%s\nphase=%s problem=%s pulled=%d\n'
  form+='code=%d signal=%d terminated=%d continued=%d rank=%d\nstart=%d end=%d\nnodes=%s\n'
  form+='cause=%s about=%s\ncomplete\n'
  about=${about//[$'\n\r']/ }
  # Slurm is asked for a list that would make the record too long.
  ((${#nodes} <= 3000)) || nodes=''
  printf -v end '%(%s)T' -1
  # shellcheck disable=SC2059 # the format is the script's own
  printf "$form" "$job_id" "${SLURM_RESTART_COUNT:-0}" "$phase" "${problem:-none}" "${pulled:-0}" \
    "$((signal ? 0 : status))" "$signal" "${terminated:-0}" "${continued:-0}" "$rank" \
    "$start" "$end" "$nodes" "$cause" "${about:0:200}" >|"$record"
}

# Sets what `run` sets, and rank.
run_phase() {
  local tasks_per_node=${SLURM_NTASKS_PER_NODE:-1}
  if [[ $phase == setup ]]; then tasks_per_node=1; fi
  if [[ $leased ]] && ! take_lease; then
    note "the lease of run $run_key has ended; its $phase is not started"
    status=1 problem=lease cause=not_started
  elif [[ $leased && -e $run_dir/specs/batch_script ]] && ((SLURM_JOB_NUM_NODES > 1)); then
    # It would start programs on the other nodes that nobody there stops when the lease ends.
    status=1 problem=lease cause=nodes
  elif [[ -e $run_dir/specs/container ]] && ((${#container[@]} == 0)) && ! find_image; then
    status=1 problem=image
  elif [[ $phase == command && -e $run_dir/specs/batch_script ]]; then
    run_batch_script
  elif [[ $phase == command && -e $run_dir/specs/roles ]]; then
    run_roles
  elif ((SLURM_JOB_NUM_NODES == 1 && tasks_per_node == 1 && ${#container[@]} == 0)) && [[ ! $warning ]]; then
    run "$phase" 0
  else
    run_everywhere "$phase" "$tasks_per_node"
  fi
}

main() {
  local start phase rank=0 status=0 signal=0 problem='' stoppable='' timer='' watcher='' timeout_grace_s=''
  local leased='' lease_over='' guard='' guard_pids=() look_ms=0 skew_ms=0 grace_ms=0 lease_number=0 lease_end_ms=0
  local end_unix_ms=0 now_ms=0 wall_ms=0
  local in_step='' program='' in_fd='' out_fd='' err_fd='' container=() hosts=() pulled='' cause='' about=''
  claim
  printf -v start '%(%s)T' -1
  write_slurm_note
  set_up_environment
  if [[ -e $run_dir/specs/timeout ]]; then stoppable=1; fi
  read_lease_terms
  read_warning
  heed_signals
  if [[ $warning && $alone ]]; then
    # shellcheck disable=SC2064 # the flag is set now
    trap "$([[ $warning != TERM ]] || echo 'terminated=1; ')pass_on" "$warning"
  fi
  for phase in setup command; do
    if [[ $phase == setup && ! -e $run_dir/specs/setup.argv ]]; then continue; fi
    run_phase
    if ((status == 0)) && [[ $terminated && $phase == setup ]]; then status=143 signal=15; fi
    if ((status)) || [[ -e $run_dir/timed_out ]]; then break; fi
  done
  if [[ $problem != lease && -e $run_dir/timed_out ]]; then
    # A cancel, or the time limit, is not undone.
    if [[ ! $terminated ]] && requeue; then exit "$status"; fi
    problem=timeout
  fi
  remove_secrets
  write_record
  exit "$status"
}

# The record comes later: whoever reads it finds no secret of the run any more.
remove_secrets() {
  [[ ! -e $run_dir/env/secrets ]] || rm -f -- "$run_dir/env/secrets" "$run_dir/env"/secret.*
}

case ${2:-} in
  step)
    in_step=1 stoppable='' timer='' out_fd='' leased='' lease_over='' guard='' guard_pids=()
    if [[ $3 == command && -e $run_dir/specs/batch_script ]]; then take_streams; fi
    step "$3" "$4"
    ;;
  relay) relay "$3" ;;
  *) main ;;
esac
