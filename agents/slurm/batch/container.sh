#!/bin/bash
# This part of batch.sh makes the container in which a run's programs are, and relays the signal that
# they may be sent.
# shellcheck disable=SC2034,SC2154 # its parts share the variables

# A run with an image has a file `specs/container`: the image's own file, if it is one that can be looked at here; the Slurm
# job that must have converted it, if it is to be a new one; what nodes pull if there is no such file, if they may; and
# srun's options, each ended by a NUL byte. An image that had to be converted before this job may not have been; then the
# one who tried has said why. Sets container to the options, and pulled; if it fails, cause and about.
find_image() {
  local file='' refresh='' fallback='' magic='' maker='' line why=()
  cause='' about=''
  mapfile -d '' -t container <"$run_dir/specs/container"
  file=${container[0]-} refresh=${container[1]-} fallback=${container[2]-}
  container=("${container[@]:3}")
  [[ $file ]] || return 0
  { IFS= read -r -N 4 magic <"$file"; } 2>/dev/null
  if [[ $magic == hsqs && $refresh ]]; then { read -r maker <"$file.made"; } 2>/dev/null; fi
  # Conversions of an image run one after the other, so a later one will do as well.
  if [[ $magic == hsqs && ! $refresh ]] || [[ $maker =~ ^[0-9]+$ && $maker -ge $refresh ]]; then return 0; fi
  about=$file
  if [[ -e $file.failed ]]; then
    # Its first line is for us: see convert.sh.
    mapfile -t why <"$file.failed"
    if [[ ${why[0]-} == cause=* ]]; then cause=${why[0]#cause=} why=("${why[@]:1}"); fi
  elif [[ $magic == hsqs ]]; then
    cause=not_refreshed why=("$file was not converted anew by Slurm job $refresh")
  elif [[ -e $file ]]; then
    cause=no_squashfs why=("$file is no squashfs file")
  else
    cause=not_there why=("$file is not there")
  fi
  for line in "${why[@]}"; do note "image: $line"; done
  [[ $fallback ]] || return 1
  pulled=1 cause='' about='' container[0]=--container-image=$fallback
  # The words go to standard error for the operator of the cluster, and into the log for the owner of the job.
  printf 'muster: %s\n' "the image could not be converted, so each node pulls $fallback itself" "${why[@]}" |
    tee -a "$logs/rank-0.err" >&2
}

# Succeeds if a step since this start failed because of its container: Pyxis says so, or srun.
container_failed() {
  local line failed=
  while IFS= read -r line; do
    case $line in
      'muster-start '*) failed= ;;
      *'error: pyxis: '* | *"unrecognized option '--container-"* | *'execve(): /bin/bash: '*) failed=1 ;;
    esac
  done <"$slurm_out"
  [[ $failed ]]
}

# Reads the signal that the run is to get before its time limit: its name, and whether it is for the command alone.
# Such a run always has a step, because Slurm sends signals to steps. Sets warning and alone.
read_warning() {
  if [[ -e $run_dir/specs/signal ]]; then read -r warning alone <"$run_dir/specs/signal"; fi
}

# A signal that Slurm sends to the batch script alone is for the command alone. A TERM after a CONT is none of these: the
# command has got it.
pass_on() {
  interrupted=1
  if [[ $warning == TERM && $continued ]]; then return; fi
  if ((SLURM_JOB_NUM_NODES == 1)) || [[ -e $run_dir/specs/batch_script ]]; then
    relay "$warning"
  else
    srun --overlap --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 \
      --cpus-per-task=1 --mem=0 --gres=none /bin/bash "$run_dir/sbatch/batch.sh" "$run_dir" relay "$warning" &
  fi
}

# relay SIGNAL: sends it to the programs of the run's tasks on this node. Containers have the node's
# process ids.
relay() {
  local file pid
  for file in "$run_dir/pid.${SLURMD_NODENAME:-localhost}".*; do
    if read -r pid <"$file"; then kill -s "$1" "$pid"; fi
  done 2>/dev/null
}
