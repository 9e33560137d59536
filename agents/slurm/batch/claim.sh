#!/bin/bash
# This part of batch.sh finds which Slurm job the run belongs to, and what an earlier start of it
# has left.
# shellcheck disable=SC2154 # its parts share the variables

# The run belongs to the Slurm job that creates the claim. Another job of the same run (a submission whose answer was
# lost and that was repeated) leaves without a trace. The owner may come again: Slurm requeues under the same id.
claim() {
  local owner='' created=''
  set -o noclobber
  { { created=1 && printf '%s\n' "$job_id"; } >"$run_dir/claim"; } 2>/dev/null
  # The file is read again: a file server may accept bytes for which it has no room.
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
    [[ $line != *' problem=timeout '* ]] || break
    # Another run may have followed meanwhile.
    if [[ $line == *' problem=lease '* ]]; then
      note "the lease of run $run_key has ended before; it does not run again"
      exit 1
    fi
    if [[ $line == 'code=0 signal=0 terminated=0 continued=0 '* ]]; then
      note "the command of run $run_key has ended with 0 before; it does not run again"
      exit 0
    fi
  done 2>/dev/null <"$record"
  rm -f "$record" "$run_dir/failed" "$run_dir/stopping" "$run_dir/timed_out" "$run_dir"/problem.* "$run_dir"/pid.*
  # The agent reads this line: lines that Slurm wrote before it concern an earlier start.
  printf 'muster-start job=%s restart=%s\n' "$job_id" "${SLURM_RESTART_COUNT:-0}" >&2
}
