#!/bin/bash
# This part of batch.sh becomes a program. The parts behind this one are not even read then: that costs as long as to
# start the shell.
# shellcheck disable=SC2034,SC2154 # its parts share the variables

# become PROGRAM RANK: turns this shell into the program. specs/PROGRAM.argv holds the working directory and the words
# of the program, each ended by a NUL byte; its file in env/ holds variables likewise. It takes a shell of its own: for
# most reasons for which an exec fails, a subshell (as in `run`) ends there and then, its traps already forgotten.
become() {
  words=() variables=() functions=()
  mapfile -d '' -t words <"$run_dir/specs/$1.argv"
  ((${#words[@]} >= 2)) || give_up "$run_dir/problem.$2" files
  if [[ $1 == command && -e $run_dir/slurm_variables ]]; then
    # This is a batch script in its container: Pyxis has made the rest, and where it starts.
    unset "${!SLURM_@}"
    mapfile -d '' -t variables <"$run_dir/slurm_variables"
  else
    read_variables "$1"
    if [[ -e $run_dir/env/shell || -e $run_dir/specs/login ]]; then read_shell; fi
    cd -- "${words[0]}" || go_to_tmp "$1" || give_up "$run_dir/problem.$2" working_directory
    unset OLDPWD
  fi
  if [[ -e $run_dir/specs/limits ]]; then set_limits; fi
  if [[ ! -e $run_dir/specs/batch_script && ${SLURM_NTASKS_PER_NODE:-1} == 1 ]]; then hide_tasks; fi
  # All names are the user's from here on: the positional parameters have the words that are still needed.
  set -- "$run_dir/problem.$2" "${words[@]:1}"
  shopt -s execfail
  ((${#functions[@]} == 0)) || define_functions
  ((${#variables[@]} == 0)) || hand_over "${variables[@]}"
  # shellcheck disable=SC2093 # it continues if the program cannot be started
  exec "${@:2}"
  give_up "$1" start $?
}

# go_to_tmp PROGRAM: what Slurm does for a batch script without its directory.
go_to_tmp() {
  [[ $1 == command && -e $run_dir/specs/batch_script ]] || return
  cd /tmp || return
  echo "muster: cannot change to ${words[0]}: going to /tmp instead" >&2
}

# read_variables PROGRAM: sets variables. Roles have environments of their own.
read_variables() {
  local name=environment
  if [[ $1 == role-* ]]; then name=$1; fi
  mapfile -d '' -t variables <"$run_dir/env/$name"
  # The last one of a name counts.
  if [[ -e $run_dir/env/secrets ]]; then
    mapfile -d '' -t -O "${#variables[@]}" variables <"$run_dir/env/secrets"
  fi
}

# The program starts once on each node and makes its own processes there. Libraries that find these names (PyTorch
# Lightning and others) would take Slurm's tasks for those processes. RANK and LOCAL_RANK come from a hook of
# enroot's.
hide_tasks() {
  unset SLURM_NTASKS SLURM_NPROCS SLURM_NNODES SLURM_PROCID SLURM_LOCALID SLURM_NTASKS_PER_NODE
  unset SLURM_STEP_NUM_TASKS SLURM_STEP_TASKS_PER_NODE RANK LOCAL_RANK GROUP_RANK
}

# hand_over NAME=VALUE...: exports variables. An array of that name would take the value for its first word, and no
# program ever sees an array.
hand_over() {
  unset words variables functions
  # Remarks of bash on values (a locale that the node lacks) come again in the script.
  # shellcheck disable=SC2163 # these are names with values
  export "$@" 2>/dev/null
}

# give_up FILE PROBLEM [STATUS]: writes into the file why there is no program.
give_up() {
  printf '%s\n' "$2" >"$1"
  exit "${3:-126}"
}

if [[ ${2-} == become ]]; then become "$3" "$4"; fi
