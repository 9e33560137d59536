#!/bin/bash
# This part of batch.sh keeps the lease of a run that another one follows when its cluster is lost (on_cluster_loss). The
# agent renews a file as long as the broker answers it; agents/core/lease_file.h has the rules for those who read it.
# Each node obeys by itself, and needs nobody for it: a run whose agent, login node or file server is away ends with its
# lease, because nobody could tell it that no other run has been started.
# shellcheck disable=SC2034,SC2154 # its parts share the variables

# The time that stopping what is left of other steps on this node may take.
sweep_s=3

# read_lease_terms: sets leased, if the run has a lease, and the times of specs/lease.
read_lease_terms() {
  [[ -e $run_dir/specs/lease ]] || return 0
  leased=1
  read -r look_ms skew_ms grace_ms <"$run_dir/specs/lease"
}

# read_clocks: sets now_ms by the node's steady clock, which also counts while a machine sleeps, and wall_ms by the clock
# on the wall, at the end of the present second: late rather than early.
read_clocks() {
  local seconds
  read -r seconds _ </proc/uptime
  now_ms=$((10#${seconds/./} * 10))
  printf -v seconds '%(%s)T' -1
  wall_ms=$((seconds * 1000 + 999))
}

# parse_lease LINE: sets number, remaining_ms and end_unix_ms.
parse_lease() {
  [[ $1 =~ ^muster-lease\ 1\ ([1-9][0-9]{0,17})\ ([0-9]{1,12})\ ([0-9]{1,15})$ ]] || return
  number=${BASH_REMATCH[1]} remaining_ms=$((10#${BASH_REMATCH[2]})) end_unix_ms=$((10#${BASH_REMATCH[3]}))
}

# take_lease: fails if no program of the run may start now. Sets what is known of the lease.
take_lease() {
  local line='' number remaining_ms left_ms
  { read -r line <"${run_dir%/*}/lease/lease"; } 2>/dev/null
  parse_lease "$line" || return
  read_clocks
  left_ms=$((end_unix_ms - wall_ms))
  # An end that is further away than the file itself says is that of a clock that goes wrong.
  ((left_ms > 0 && left_ms <= remaining_ms + skew_ms)) || return
  lease_number=$number
  lease_end_ms=$((now_ms + (remaining_ms < left_ms ? remaining_ms : left_ms)))
}

# renew_lease LINE: a number that is new to this node counts from now on.
renew_lease() {
  local number remaining_ms was=$end_unix_ms
  if parse_lease "$1" && ((number > lease_number)); then
    lease_number=$number lease_end_ms=$((now_ms + remaining_ms))
  else
    end_unix_ms=$was
  fi
}

# is_lease_over: the clock on the wall decides where a renewal has come long after it was written, or nobody has looked for
# a while.
is_lease_over() {
  read_clocks
  ((now_ms >= lease_end_ms || wall_ms > end_unix_ms + skew_ms))
}

# watch_lease: prints the file at each look, as long as somebody reads that. A file server that is away holds up this
# process alone.
watch_lease() {
  local line pause never
  exec 2>/dev/null {never}<> <(:)
  printf -v pause '%d.%03d' $((look_ms / 1000)) $((look_ms % 1000))
  while :; do
    line=''
    read -r line <"${run_dir%/*}/lease/lease"
    printf '%s\n' "$line" || exit
    read -r -t "$pause" -u "$never" _
  done
}

# start_guard group PID | start_guard steps SRUN...: has the program stopped when the lease ends. Its output says who
# looks at the file, and then that it has ended.
start_guard() {
  [[ $leased ]] || return 0
  exec {guard}< <(guard_lease "$@")
  guard_pids=("$!")
  read -r -u "$guard" "guard_pids[1]"
}

# end_guard: ends the guard once the program has ended. Sets lease_over if the lease has ended it.
end_guard() {
  local said=''
  [[ $guard ]] || return 0
  if read -r -t 0 -u "$guard" && read -r -u "$guard" said; then
    lease_over=1
    # The rest of the program may still be at work on its answer to the TERM.
    while read -r -u "$guard" _; do :; done
  else
    kill -KILL "${guard_pids[@]}" 2>/dev/null
  fi
  exec {guard}<&-
  guard=''
}

# guard_lease HOW... From here on nothing may wait for the run's files: they may be on a file server that is away.
guard_lease() {
  local line pause left_ms never lines kill_ms watcher
  trap '' TERM CONT "${signals[@]}" ${warning:+"$warning"}
  # The copiers of the script's output wait for all who could write some.
  if [[ $out_fd ]]; then close_streams; fi
  exec </dev/null {never}<> <(:) {lines}< <(watch_lease)
  watcher=$!
  printf '%s\n' "$watcher"
  until is_lease_over; do
    left_ms=$((lease_end_ms - now_ms))
    printf -v pause '%d.%03d' $((left_ms / 1000)) $((left_ms % 1000))
    line=''
    if read -r -t "$pause" -u "$lines" line; then
      is_lease_over || renew_lease "$line"
    elif (($? <= 128)); then
      # Nobody looks any more.
      read -r -t "$pause" -u "$never" _
    fi
  done
  kill_ms=$(((now_ms < lease_end_ms ? now_ms : lease_end_ms) + grace_ms))
  printf 'over\n'
  kill -KILL "$watcher" 2>/dev/null
  (note "the lease of run $run_key has ended on ${SLURMD_NODENAME:-this node}; its programs are stopped") >/dev/null &
  case $1 in
    group) stop_guarded "$2" ;;
    # The nodes stop their programs themselves; this is for those that could not.
    steps) end_steps "${@:2}" ;;
  esac
}

# await_gone PID: until the process, or the group -PID, is no more, or is to be killed.
await_gone() {
  while kill -0 -- "$1" 2>/dev/null; do
    read_clocks
    ((now_ms < kill_ms)) || return
    read -r -t 0.1 -u "$never" _
  done
}

# stop_guarded PID: the program on this node, and its children. An image may have no setsid: then the program has no group
# of its own, and its children end when Slurm ends the step.
stop_guarded() {
  local whom=-$1
  kill -0 -- "$whom" 2>/dev/null || whom=$1
  # A batch script's own steps hear of it first, if slurmctld answers.
  if [[ ${settings+set} && ! $in_step ]]; then
    timeout -k 1 "$sweep_s" scancel --quiet --signal=TERM "$job_id" >/dev/null 2>&1 &
    wait "$!"
  fi
  kill -TERM -- "$whom" 2>/dev/null
  await_gone "$whom" || kill -KILL -- "$whom" 2>/dev/null
  [[ $in_step ]] || sweep_steps
}

# sweep_steps: kills what programs have started here by sruns of their own, and that may have outlived these. The node
# itself knows it; slurmctld, which may be away, is not asked.
sweep_steps() {
  local pid step
  while read -r pid _ step _; do
    if [[ $pid =~ ^[0-9]+$ && $step =~ ^[0-9] ]]; then kill -KILL "$pid" 2>/dev/null; fi
  done < <(exec timeout -k 1 "$sweep_s" scontrol listpids "$SLURM_JOB_ID" 2>/dev/null)
}

# end_steps SRUN...: ends them with a TERM, which makes an srun kill its step.
end_steps() {
  local pid
  for pid in "$@"; do
    await_gone "$pid" || kill -TERM "$pid" 2>/dev/null
  done
}

# has_lease_ended_it: whether a node of the run has said that the lease ended its program.
has_lease_ended_it() {
  local problem=''
  { read -r _ _ _ problem <"$run_dir/failed"; } 2>/dev/null
  [[ $problem == lease ]]
}
