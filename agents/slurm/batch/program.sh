#!/bin/bash
# This part of batch.sh starts a program on this node, and learns how it ends.
# shellcheck disable=SC2034,SC2154 # its parts share the variables

# run PROGRAM RANK: runs it and waits for it. Sets status, signal and problem; and, meanwhile, program to its process.
#
# bash loses the status of a process that ends in the very moment in which a signal that has a trap cuts `wait` short: it
# has taken the status from the kernel, and leaves `wait` before it has noted it. So another process waits, which ignores
# those signals, and this shell, which has the traps, reads what it says.
run() {
  {
    trap '' TERM CONT "${signals[@]}" ${warning:+"$warning"}
    run_undisturbed "$@"
    printf '%s\n' "$status $signal $problem"
  } | {
    read -r program
    read -r status signal problem || status=1 signal=0 problem=unknown
  }
  program=
}

# Does what `run` does, in a process that no signal disturbs.
run_undisturbed() {
  local pid='' said='' file=$run_dir/pid.${SLURMD_NODENAME:-localhost}.$rank.${SLURM_LOCALID:-0}
  local words=(/bin/bash "$run_dir/sbatch/batch.sh" "$run_dir" become "$1" "$2")
  # A program that may be stopped leads a process group, so that its children are stopped with it.
  if [[ $stoppable || $leased ]] && type -P setsid >/dev/null; then words=(setsid "${words[@]}"); fi
  signal=0 problem=
  # This is a pipeline whose second half is this shell: the command is not one of the shell's asynchronous ones,
  # which would ignore INT, and yet it is among its jobs.
  {
    # These signals are for the program from here on.
    trap - TERM CONT "${signals[@]}" ${warning:+"$warning"}
    # The file is written before there is a program to warn.
    [[ ! $warning && ! $in_step ]] || printf '%s\n' "$BASHPID" >"$file"
    printf '%s\n' "$BASHPID"
    if [[ $out_fd ]]; then
      use_streams
    else
      exec </dev/null >>"$logs/rank-$2.out" 2>>"$logs/rank-$2.err"
    fi
    exec "${words[@]}"
  } | await
  status=${PIPESTATUS[0]}
  if [[ $lease_over ]]; then
    # A 0 would be the answer to the TERM.
    status=$((status ? status : 143)) problem=lease
    return
  fi
  ((status)) || return
  if ((status > 128 && status < 193)) && [[ $said && $said != *" $pid Exit "* ]]; then
    signal=$((status - 128))
  fi
  if [[ -e $run_dir/problem.$2 ]]; then read -r problem <"$run_dir/problem.$2"; fi
}

# Waits for the process that writes its id to stdin, and hands the id on. Sets pid, and said if the status does not tell all: only the list of
# jobs tells an end by signal N from an exit with 128+N.
await() {
  read -r pid
  printf '%s\n' "$pid"
  [[ $pid ]] || return
  if [[ $stoppable ]]; then start_timer group "$pid"; fi
  start_guard group "$pid"
  wait "$pid" || (($? <= 128)) || said=$(jobs -l)
  end_timer
  end_guard
  [[ ! $warning && ! $in_step ]] || rm -f "$file"
}

# step PROGRAM RANK: one task of srun. The rank that fails first is the one whose end counts.
step() {
  local rank=$(($2 + SLURM_NODEID))
  export NODE_RANK=$SLURM_NODEID SKYPILOT_NODE_RANK=$SLURM_NODEID MUSTER_NODE_RANK=$SLURM_NODEID
  read_warning
  # Slurm sends a signal to every process of the step; this one stays to tell how the program took it.
  trap '' "${signals[@]}" ${warning:+"$warning"}
  read_lease_terms
  if [[ $leased ]] && ! take_lease; then
    status=1 signal=0 problem=lease
  else
    run "$1" "$rank"
  fi
  ((status)) || exit 0
  fail_first "$rank" "$status" "$signal" "$problem"
  # srun would say so in the output of a batch script.
  if [[ $out_fd ]]; then exit 0; fi
  # The lease ends on all nodes, and srun would end the others for a code that is not 0.
  if [[ $problem == lease ]]; then exit 0; fi
  # A TERM comes to all tasks, and each may take its time; srun would end the others for a code that is not 0.
  if [[ $terminated && -s $run_dir/failed ]]; then exit 0; fi
  exit "$status"
}

# fail_first RANK STATUS SIGNAL PROBLEM: writes down that it failed, unless another one did before.
fail_first() {
  set -o noclobber
  { printf '%s %s %s %s\n' "$@" >"$run_dir/failed"; } 2>/dev/null
  set +o noclobber
}
