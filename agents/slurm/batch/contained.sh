#!/bin/bash
# This part of batch.sh runs a batch script in a container of its own, as with Pyxis' options of
# sbatch.
# shellcheck disable=SC2034,SC2154 # its parts share the variables

# run_contained: sets what `run` sets. The script is the one task of a step on this node, which has all that the job has
# here. The words of srun and Pyxis go where the script writes, as with sbatch.
run_contained() {
  (start_contained <&"$in_fd" >&"$out_fd" 2>&"$err_fd") &
  await_step "$!"
}

# Becomes srun. Its environment is what Pyxis makes the container's of: the variables of an image win. Slurm's own
# variables would be taken for options of the step, so they wait in a file; the script gets them as sbatch sets them.
start_contained() {
  local name one gpus=() kept=() others=() srun
  trap - TERM CONT
  # srun passes on what comes to it, but only once it has its step.
  [[ ! $warning ]] || trap '' "$warning"
  read_variables command
  functions=()
  if [[ -e $run_dir/env/shell || -e $run_dir/specs/login ]]; then read_shell; fi
  # The job's own request may be for several nodes or tasks, or for whole nodes.
  if [[ ${SLURM_GPUS_ON_NODE-} ]]; then gpus=(--gpus="$SLURM_GPUS_ON_NODE"); fi
  srun=$(type -P srun)
  set -- "$srun" --export=ALL --propagate=NONE --jobid="$SLURM_JOB_ID" --nodes=1 --ntasks=1 --overlap --whole \
    --nodelist="$SLURMD_NODENAME" --mem=0 "${gpus[@]}" "${container[@]}" \
    /bin/bash "$run_dir/sbatch/batch.sh" "$run_dir" step command 0
  for name in "${!SLURM_@}"; do
    kept+=("$name=${!name}")
    [[ $name == SLURM_CONF ]] || unset "$name"
  done
  for one in "${variables[@]}"; do
    if [[ $one == SLURM_* ]]; then kept+=("$one"); else others+=("$one"); fi
  done
  printf '%s\0' "${kept[@]}" >|"$run_dir/slurm_variables"
  variables=("${others[@]}")
  # A variable of the user's may have the name of an array here.
  unset others kept gpus container settings hosts
  ((${#functions[@]} == 0)) || define_functions
  ((${#variables[@]} == 0)) || hand_over "${variables[@]}"
  exec "$@"
}

# take_streams: in the step, whose streams are the script's.
take_streams() {
  drained_fd=''
  exec {in_fd}<&0 {out_fd}>&1 {err_fd}>&2
}

# hand_back_words_of_container: copies the words about a container that did not start from the script's output to where
# Slurm writes, because the agent looks for them there. Fails if there are none.
hand_back_words_of_container() {
  local line said=()
  while IFS= read -r line; do
    case $line in
      slurmstepd*': error: '* | srun:* | pyxis:*) said+=("$line") ;;
    esac
  done < <(cat -- "$logs/rank-0.out" "$logs/rank-0.err" 2>/dev/null)
  if ((${#said[@]})); then printf '%s\n' "${said[@]:0:max_slurm_lines}" >&2; fi
  container_failed
}
