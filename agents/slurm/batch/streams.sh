#!/bin/bash
# This part of batch.sh runs a user's own batch script as sbatch would: once, outside of srun, with files of its
# own.
# shellcheck disable=SC2034,SC2154 # its parts share the variables

# The script's output must reach the files within this time after its end. Only a process that it has left behind keeps
# them open for longer.
drain_s=5

# specs/batch_script has the job's name, whether the files are appended to (1), the patterns of its standard input,
# output and error, the numbers of the job array and of the task in it, if the job is one, and where its user stood, if
# that is not the working directory; specs/command.argv begins with that.
run_batch_script() {
  local settings directory drained_fd='' copying_fd='' slurm_lines=0
  mapfile -d '' -t settings <"$run_dir/specs/batch_script"
  IFS= read -r -d '' directory <"$run_dir/specs/command.argv"
  export SLURM_JOB_NAME=${settings[0]} SLURM_SUBMIT_DIR=${settings[7]:-$directory}
  hide_own_options
  # Slurm then starts the script in /tmp, where it can write its output.
  if [[ ! -x $directory/. ]] && { ((${#container[@]})) || has_relative_file; }; then
    status=1 problem=working_directory
    return
  fi
  if [[ $warning != TERM || ! $alone ]]; then trap 'terminated=1 interrupted=1; hand_on_slurms_words' TERM; fi
  if ! open_streams_with_umask; then
    note "cannot open --$cause (slurm.batch_script.$cause): $about"
    status=1 problem=streams
    return
  fi
  if ((${#container[@]})); then run_contained; else run command 0; fi
  hand_on_slurms_words
  close_streams
  err_fd=''
  drain
  if [[ $problem == srun ]] && ((${#container[@]})) && hand_back_words_of_container; then problem=image; fi
}

# Leaves of the variables that tell sbatch's options what the user gave. Others are Muster's, and SLURM_OPEN_MODE would
# count for each srun of the script.
hide_own_options() {
  local dependency=${SLURM_JOB_DEPENDENCY-}
  dependency=${dependency#singleton}
  unset SLURM_OPEN_MODE SLURM_JOB_DEPENDENCY
  if [[ $dependency ]]; then export SLURM_JOB_DEPENDENCY=${dependency#,}; fi
  if ((settings[1])); then export SLURM_OPEN_MODE=a; fi
}

# Slurm writes into the file of --output why it ends a job: users look for it in the script's own file.
max_slurm_lines=100
hand_on_slurms_words() {
  local line lines=() said=()
  [[ $err_fd ]] || return
  mapfile -t lines 2>/dev/null <"$slurm_out"
  for line in "${lines[@]:slurm_lines}"; do
    case $line in
      # Lines before it concern an earlier start.
      muster-start\ *) said=() ;;
      slurmstepd*': error: '*) said+=("$line") ;;
    esac
  done
  slurm_lines=${#lines[@]}
  if ((${#said[@]})); then printf '%s\n' "${said[@]:0:max_slurm_lines}" >&"$err_fd"; fi
}

# The files have the modes that the submitter's umask gives them; the run's own are the agent's.
open_streams_with_umask() {
  local own_umask='' code
  if [[ -e $run_dir/specs/limits ]]; then
    : >>"$logs/rank-0.out"
    : >>"$logs/rank-0.err"
    own_umask=$(umask)
    read -r _ code <"$run_dir/specs/limits"
    umask "$code"
  fi
  open_streams
  code=$?
  [[ ! $own_umask ]] || umask "$own_umask"
  return "$code"
}

# Sets the streams; if one cannot be opened, cause to its option and about to its file. Output of the script
# goes to the run's log, and a copy of it to its own files.
open_streams() {
  local in=/dev/null file='' error log
  if file_name "${settings[2]}"; then in=$name; fi
  if file_name "${settings[3]}"; then file=$name; fi
  error=$file
  if file_name "${settings[4]}"; then error=$name; fi
  cause=input about=$in
  exec {in_fd}<"$in" || return
  cause=output about=$file
  open_output "$logs/rank-0.out" "$file" || return
  out_fd=$output_fd
  cause=error about=$error
  log=$logs/rank-0.out
  if [[ $error != "$file" ]]; then
    log=$logs/rank-0.err
    open_output "$log" "$error" || return
  fi
  err_fd=$output_fd
  # These files get the words of Slurm's that come later.
  printf '%s\n' "$log" "$error" >|"$run_dir/meta/errors"
  cause='' about=''
  [[ ! $drained_fd ]] || exec {copying_fd}>&-
}

# Nobody writes into this pipe, whose writing end the copiers have, so it ends when they have.
open_drain() {
  exec {drained_fd}< <(:)
  exec {copying_fd}>"/dev/fd/$drained_fd"
}

# Waits for the copiers.
drain() {
  [[ $drained_fd ]] || return 0
  read -r -t "$drain_s" _ <&"$drained_fd"
  (($? <= 128)) || note "a process that the script has left behind still writes its output"
  exec {drained_fd}<&-
}

# open_output LOG FILE: sets output_fd to a descriptor that writes to both.
open_output() {
  local own_fd
  if [[ ! $2 || $2 == /dev/null ]]; then
    exec {output_fd}>>"$1"
    return
  fi
  if ((settings[1])); then
    exec {own_fd}>>"$2" || return
  else
    exec {own_fd}>"$2" || return
  fi
  [[ $drained_fd ]] || open_drain
  # It outlives a TERM, as the script may. The log only grows, whatever becomes of the script's own file.
  exec {output_fd}> >(trap '' TERM "${signals[@]}" && exec tee -a -- "$1" >&"$own_fd")
  exec {own_fd}>&-
}

# Runs in the process that becomes the script.
use_streams() {
  exec <&"$in_fd" >&"$out_fd" 2>&"$err_fd"
  [[ ! $drained_fd ]] || exec {drained_fd}<&-
  close_streams
}

close_streams() {
  exec {in_fd}<&- {out_fd}>&-
  if [[ $err_fd != "$out_fd" ]]; then exec {err_fd}>&-; fi
}

# Returns whether one of the script's files is in its working directory.
has_relative_file() {
  local pattern
  for pattern in "${settings[@]:2:3}"; do
    if [[ $pattern && $pattern != /* ]]; then return 0; fi
  done
  return 1
}

# file_name PATTERN: sets name, relative to the working directory; fails if there is none.
file_name() {
  [[ $1 ]] || return
  expand "$1"
  if [[ $name != /* ]]; then name=$directory/$name; fi
}

# expand PATTERN: sets name to what sbatch makes of it: %j and %J are the job, %A the array or else the job, %a the task
# or else none (as Slurm writes it), %N the node, %n its number, %t the rank, %s the step, %u the user, %x the job's
# name, %% a '%'. A number of up to 10 after the '%' pads ids with zeros: "%4j". A name with a backslash stays as it is,
# less its backslashes.
expand() {
  local rest=$1 width letter
  name=
  if [[ $rest == *\\* ]]; then
    name=${rest//\\/}
    return
  fi
  while [[ $rest =~ ^([^%]*)%([0-9]*)(.)(.*)$ ]]; do
    name+=${BASH_REMATCH[1]} width=${BASH_REMATCH[2]} letter=${BASH_REMATCH[3]} rest=${BASH_REMATCH[4]}
    expand_letter
  done
  name+=$rest
}

expand_letter() {
  local number='' padded columns=$((10#0${width:0:9}))
  case $letter in
    j | J) number=$SLURM_JOB_ID ;;
    A) number=${settings[5]:-$SLURM_JOB_ID} ;;
    a) number=${settings[6]:-4294967294} ;;
    n | t) number=0 ;;
    s) name+='batch' ;;
    N) name+=${SLURMD_NODENAME%%.*} ;;
    u) name+=$SLURM_JOB_USER ;;
    x) name+=$SLURM_JOB_NAME ;;
    *)
      if [[ $letter == % && ! $width ]]; then
        name+=%
      else
        # The letter means nothing: it stays, but the '%' goes if there is a width.
        name+=${width:-%} rest=$letter$rest
      fi
      ;;
  esac
  if [[ $number ]]; then
    printf -v padded '%0*d' $((columns > 10 ? 10 : columns)) "$number"
    name+=$padded
  fi
}
