#!/bin/bash
# This part of batch.sh sets the variables that a batch script takes along from where it was
# submitted.
# shellcheck disable=SC2034,SC2154 # its parts share the variables

# read_shell: puts the account's login environment, if the run wants it, and the variables of the submitter's shell before
# those that the run has anyway, which win. Sets functions to the exported functions among them.
read_shell() {
  local one name found=() own=("${variables[@]}")
  variables=() functions=()
  if [[ -e $run_dir/specs/login ]]; then read_login; fi
  if [[ -e $run_dir/env/shell ]]; then mapfile -d '' -t -O "${#found[@]}" found <"$run_dir/env/shell"; fi
  for one in "${found[@]}"; do
    name=${one%%=*}
    case $name in
      BASH_FUNC_*%%) functions+=("$one") ;;
      # Slurm has set those of this job.
      SLURM_*) [[ -v $name ]] || variables+=("$one") ;;
      # Slurm makes the directory, too, and keeps its own if it cannot.
      TMPDIR) if [[ -d ${one#*=} ]] || mkdir -m 700 -- "${one#*=}" 2>/dev/null; then variables+=("$one"); fi ;;
      *) variables+=("$one") ;;
    esac
  done
  variables+=("${own[@]}")
}

# read_login: sets found to the environment that a login shell of the account has, as `su -` would make it. The
# output of its profile comes before the mark.
read_login() {
  local seconds one words=() mark=muster-login
  read -r seconds <"$run_dir/specs/login"
  # It may take a while, in which nothing of the user's runs that could answer.
  trap - TERM CONT
  mapfile -d '' -t words < <(
    # shellcheck disable=SC2016 # the inner shell expands it
    exec timeout -k 1 "$seconds" env -i HOME="$HOME" USER="$USER" LOGNAME="$LOGNAME" SHELL="$SHELL" \
      MAIL="/var/mail/$USER" PATH=/usr/local/bin:/usr/bin:/bin /bin/bash -c 'exec -l "$SHELL" -c "$0"' \
      "printf '\\000$mark\\000'; exec env -0" </dev/null 2>/dev/null
  )
  for one in "${words[@]}"; do
    if [[ $mark ]]; then
      if [[ $one == "$mark" ]]; then mark=; fi
    elif [[ $one =~ ^([A-Za-z_][A-Za-z0-9_]*|BASH_FUNC_[^=]*%%)= && ! $one =~ ^(_|PWD|OLDPWD|SHLVL)= ]]; then
      found+=("$one")
    fi
  done
  [[ ! $mark ]] || note "the login environment of $USER could not be made within $seconds s; the script begins without it"
}

# set_limits: the umask and the limits of the submitter's shell. A limit that cannot be set stays as it is, and the output
# says so if the user has asked for it by --propagate, as with sbatch.
set_limits() {
  local letter value name number asked
  while read -r letter value name number asked; do
    if [[ $letter == umask ]]; then
      umask "$value"
    elif ! ulimit -S "-$letter" "$value" 2>/dev/null && ((asked)); then
      note "Can't propagate RLIMIT_$name of $number from submit host"
    fi
  done <"$run_dir/specs/limits"
}

# define_functions: bash takes an exported function from a variable as shell text whenever it starts. No other way leads
# to a variable of such a name, so this shell, which is about to become the user's program, does the same.
define_functions() {
  local one name
  for one in "${functions[@]}"; do
    name=${one%%=*} name=${name#BASH_FUNC_} name=${name%'%%'}
    # Words that are still needed here.
    case $name in
      local | eval | export | unset | shopt | exec | exit | printf | give_up | hand_over) continue ;;
    esac
    [[ $name =~ ^[A-Za-z_][A-Za-z0-9_:.+@-]*$ && ${one#*=} == '() {'* ]] || continue
    eval "$name ${one#*=}" && export -f "${name?}"
  done 2>/dev/null
}
