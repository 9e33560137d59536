#!/bin/sh
# Starts a run in its container: runs setup, then the command, and ends as they do.
#
#   sh start [LAST_WORDS]
#
# LAST_WORDS is the file whose text Kubernetes shows as the container's last message. Beside this file are: setup.words
# and command.words, which set the positional parameters to a working directory and the words of the program, and
# MUSTER_ELSE to the directory in its place if the image lacks it and nobody has asked for it by name; or, of a
# job with roles, role-N.words with role-N.environment, and roles, which has a line for each: the first of its indexes
# and N; environment, which exports variables; and lease, of a run that has one: the seconds between two looks at it, those
# by which clocks may differ, and those between TERM and KILL. Any POSIX shell will do: images have what they have.
#
# Names of variables begin with MUSTER_, which no job may set, because the job's own are exported beside them.
#
# If it is not the command that ended, the last message is a record for the agent (objects/end_record.h). The seal in it
# shows that this script wrote it: the programs may write the file, too, and do not get the seal.

MUSTER_FILES=${0%/*}
MUSTER_LAST_WORDS=${1:-/dev/termination-log}
MUSTER_SEAL=${MUSTER_END_SEAL-}
unset MUSTER_END_SEAL
MUSTER_CHILD=
MUSTER_TERM=
MUSTER_STOPPED=
MUSTER_ELSE=
MUSTER_GUARD=
MUSTER_LEASE_OVER=

# Handles the trap. A signal that comes before the program is there waits for it.
muster_stop() {
  MUSTER_CUT=1 MUSTER_STOPPED=1 MUSTER_TERM=1
  muster_pass_on
}

# As the first process of a container this shell alone gets the signal, and the program may well be the child of a
# script that would die of the signal and take the program along: so the signal goes to all.
muster_pass_on() {
  if [ -z "$MUSTER_CHILD" ] || [ -z "$MUSTER_TERM" ]; then return; fi
  MUSTER_TERM=
  if [ "$$" = 1 ]; then
    kill -TERM -1
  else
    kill -TERM "$MUSTER_CHILD"
  fi
}

# Sets MUSTER_CODE. A signal to this shell cuts a wait short, whether the program has ended or not.
muster_await() {
  while :; do
    MUSTER_CUT=
    wait "$MUSTER_CHILD"
    MUSTER_CODE=$?
    if [ -z "$MUSTER_CUT" ]; then return; fi
    if kill -0 "$MUSTER_CHILD"; then continue; fi
    # It has ended. Bash tells how a second time, and the others have told it already.
    wait "$MUSTER_CHILD"
    set -- "$?"
    if [ "$1" != 127 ]; then MUSTER_CODE=$1; fi
    return
  done
}

# A program that got the signal may need a while for its answer, longer than the script that started it.
# Kubernetes ends the patience.
muster_await_others() {
  if [ -z "$MUSTER_STOPPED" ] || [ "$$" != 1 ]; then return; fi
  while kill -0 -1; do
    sleep 1 || return
  done
}

# Sets MUSTER_PROGRAM, its MUSTER_ENVIRONMENT, and the rank among those that run it.
muster_find_program() {
  MUSTER_PROGRAM=$1 MUSTER_ENVIRONMENT=environment
  NODE_RANK=${JOB_COMPLETION_INDEX:-0}
  if [ "$1" = command ] && [ -e "$MUSTER_FILES/roles" ]; then
    MUSTER_INDEX=$NODE_RANK
    while read -r MUSTER_FIRST MUSTER_ROLE; do
      if [ "$MUSTER_INDEX" -lt "$MUSTER_FIRST" ]; then break; fi
      NODE_RANK=$((MUSTER_INDEX - MUSTER_FIRST))
      MUSTER_PROGRAM=role-$MUSTER_ROLE MUSTER_ENVIRONMENT=role-$MUSTER_ROLE.environment
    done <"$MUSTER_FILES/roles"
    unset MUSTER_ROLE
  fi
  SKYPILOT_NODE_RANK=$NODE_RANK MUSTER_NODE_RANK=$NODE_RANK
  export NODE_RANK SKYPILOT_NODE_RANK MUSTER_NODE_RANK
}

# muster_tell PHASE PROBLEM SUBJECT: writes the record. Kubernetes shows the end of what is long, and a record counts from
# its beginning.
muster_tell() {
  if [ -z "$MUSTER_SEAL" ]; then return; fi
  if [ "${#3}" -gt 900 ]; then set -- "$1" "$2" '(a long name)'; fi
  printf 'muster-end/1 seal=%s phase=%s problem=%s\n%s\n' "$MUSTER_SEAL" "$1" "$2" "$3" >"$MUSTER_LAST_WORDS"
}

# Succeeds if the process that was to become the setup has written the record.
muster_has_told() {
  MUSTER_LINE=
  { read -r MUSTER_LINE; } 2>/dev/null <"$MUSTER_LAST_WORDS"
  case $MUSTER_LINE in "muster-end/1 seal=$MUSTER_SEAL "*) return 0 ;; esac
  return 1
}

# muster_enter DIRECTORY
muster_enter() {
  if [ -z "$MUSTER_ELSE" ]; then
    cd -- "$1" || return
    return
  fi
  cd -- "$1" 2>/dev/null && return
  printf 'muster: %s, where the script was submitted, is not in the container; it starts in %s\n' \
    "$1" "$MUSTER_ELSE" >&2
  cd -- "$MUSTER_ELSE" || return
}

# muster_become PHASE: turns this shell, which is one of its own, into the program.
muster_become() {
  # This runs only if there is no program after all: an exec that fails ends a shell there and then.
  trap 'muster_tell "$MUSTER_PHASE" "$MUSTER_PROBLEM" "$MUSTER_WHAT"' EXIT
  MUSTER_PHASE=$1 MUSTER_PROBLEM=start MUSTER_WHAT=$1
  muster_find_program "$1"
  # shellcheck disable=SC1090 # they are the job's
  . "$MUSTER_FILES/$MUSTER_PROGRAM.words"
  MUSTER_WHAT=$1
  if ! muster_enter "$1"; then
    MUSTER_PROBLEM=working_directory
    exit 126
  fi
  shift
  MUSTER_WHAT=$1
  # shellcheck disable=SC1090
  . "$MUSTER_FILES/$MUSTER_ENVIRONMENT"
  case $1 in
    # Some shells would take it for an option, and others take "--" for a program.
    -*) printf 'muster: %s: no program has such a name\n' "$1" >&2 && exit 127 ;;
    # Bash forgets the trap before it finds that it cannot start such a file.
    */*)
      if [ ! -e "$1" ]; then printf 'muster: %s: not found\n' "$1" >&2 && exit 127; fi
      if [ ! -x "$1" ]; then printf 'muster: %s: not executable\n' "$1" >&2 && exit 126; fi
      ;;
  esac
  exec "$@"
}

# muster_clocks: sets MUSTER_NOW by the node's steady clock, and MUSTER_WALL by the one on the wall; seconds.
muster_clocks() {
  read -r MUSTER_NOW MUSTER_REST </proc/uptime || return
  MUSTER_NOW=${MUSTER_NOW%.*}
  MUSTER_WALL=$(date +%s)
}

# muster_read_lease: sets MUSTER_NUMBER, and in seconds MUSTER_SPAN and MUSTER_UNTIL. Fails if there is no lease. The rules
# are those of agents/core/lease_file.h.
muster_read_lease() {
  MUSTER_REST=
  { read -r MUSTER_MAGIC MUSTER_FORM MUSTER_NUMBER MUSTER_SPAN MUSTER_UNTIL MUSTER_REST; } 2>/dev/null \
    <"${MUSTER_FILES%/*}/lease/lease" || return
  if [ "$MUSTER_MAGIC $MUSTER_FORM $MUSTER_REST" != 'muster-lease 1 ' ]; then return 1; fi
  for MUSTER_REST in "$MUSTER_NUMBER" "$MUSTER_SPAN" "$MUSTER_UNTIL"; do
    case $MUSTER_REST in '' | *[!0-9]* | ???????????????????*) return 1 ;; esac
  done
  MUSTER_SPAN=$((MUSTER_SPAN / 1000)) MUSTER_UNTIL=$((MUSTER_UNTIL / 1000))
}

# muster_take_lease: fails if nothing of the run may start now.
muster_take_lease() {
  read -r MUSTER_LOOK MUSTER_SKEW MUSTER_GRACE <"$MUSTER_FILES/lease" || return
  muster_read_lease && muster_clocks || return
  MUSTER_LEFT=$((MUSTER_UNTIL - MUSTER_WALL))
  # An end that is further away than the file itself says is that of a clock that goes wrong.
  if [ "$MUSTER_LEFT" -le 0 ] || [ "$MUSTER_LEFT" -gt $((MUSTER_SPAN + MUSTER_SKEW)) ]; then return 1; fi
  if [ "$MUSTER_LEFT" -gt "$MUSTER_SPAN" ]; then MUSTER_LEFT=$MUSTER_SPAN; fi
  MUSTER_SEEN=$MUSTER_NUMBER MUSTER_OVER=$((MUSTER_NOW + MUSTER_LEFT)) MUSTER_LAST=$MUSTER_UNTIL
}

# muster_lasts: whether the lease is not over. The clock on the wall decides where nobody has looked for a while. An image
# without a clock ends it.
muster_lasts() {
  muster_clocks && [ "$MUSTER_NOW" -lt "$MUSTER_OVER" ] && [ "$MUSTER_WALL" -le $((MUSTER_LAST + MUSTER_SKEW)) ]
}

# muster_signal NAME: sends it to all processes but this one and the first; or, if that is not this script, to the
# program.
muster_signal() {
  if [ "$$" = 1 ]; then kill "-$1" -1; else kill "-$1" "$MUSTER_CHILD"; fi
}

# muster_guard: as a process of its own, stops the program once the lease is over. A kubelet that is away brings no new
# file, and so it ends, too.
muster_guard() {
  trap '' TERM INT QUIT
  while muster_lasts; do
    if muster_read_lease && [ "$MUSTER_NUMBER" -gt "$MUSTER_SEEN" ]; then
      MUSTER_SEEN=$MUSTER_NUMBER MUSTER_OVER=$((MUSTER_NOW + MUSTER_SPAN)) MUSTER_LAST=$MUSTER_UNTIL
    fi
    sleep "$MUSTER_LOOK" || break
  done
  kill -USR1 "$$"
  if [ "$MUSTER_NOW" -lt "$MUSTER_OVER" ]; then MUSTER_OVER=$MUSTER_NOW; fi
  muster_signal TERM
  while muster_signal 0 && [ "$MUSTER_NOW" -lt $((MUSTER_OVER + MUSTER_GRACE)) ]; do
    sleep 1
    muster_clocks || break
  done
  muster_signal KILL
}

# muster_end_guard: ends the guard once the program has ended. MUSTER_LEASE_OVER says whether the lease has ended it.
muster_end_guard() {
  if [ -z "$MUSTER_GUARD" ]; then return; fi
  trap '' USR1
  if [ -z "$MUSTER_LEASE_OVER" ]; then kill -KILL "$MUSTER_GUARD"; fi
  # It ends what is left of the program. The shell is asked even if the guard is gone already: a bash that nobody asked
  # says later, in the job's output, that it was killed. A signal cuts a wait short.
  wait "$MUSTER_GUARD"
  while kill -0 "$MUSTER_GUARD"; do wait "$MUSTER_GUARD"; done
  MUSTER_GUARD=
}

# muster_may_start PHASE: takes the lease, if the run has one.
muster_may_start() {
  if [ ! -e "$MUSTER_FILES/lease" ] || muster_take_lease; then return; fi
  printf 'muster: the lease of the run has ended before its program could start\n' >&2
  muster_tell "$1" no_lease ''
  exit 1
}

# muster_run PHASE: sets MUSTER_CODE.
muster_run() {
  muster_may_start "$1"
  if [ -e "$MUSTER_FILES/lease" ]; then trap 'MUSTER_CUT=1 MUSTER_LEASE_OVER=1' USR1; fi
  (muster_become "$1") </dev/null &
  MUSTER_CHILD=$!
  if [ -e "$MUSTER_FILES/lease" ]; then
    muster_guard </dev/null >/dev/null 2>&1 &
    MUSTER_GUARD=$!
  fi
  # Some shells say there of a child that it was killed, and this output is the job's.
  exec 3>&2 2>/dev/null
  muster_pass_on
  muster_await
  muster_end_guard
  MUSTER_CHILD=
  muster_await_others
  exec 2>&3 3>&-
  if [ -z "$MUSTER_LEASE_OVER" ]; then return; fi
  printf 'muster: the lease of the run has ended; its program was stopped\n' >&2
  muster_tell "$1" lease_ended ''
  # A 0 would be the answer to the TERM.
  if [ "$MUSTER_CODE" = 0 ]; then exit 143; fi
  exit "$MUSTER_CODE"
}

# A shell in the background has INT and QUIT ignored, and so has what it becomes: to an image that is to be stopped by
# one of these, the wish comes as TERM.
trap muster_stop TERM INT QUIT

if [ -e "$MUSTER_FILES/setup.words" ]; then
  muster_run setup
  if [ "$MUSTER_CODE" = 0 ] && [ "$MUSTER_STOPPED" ]; then exit 143; fi
  if [ "$MUSTER_CODE" != 0 ]; then
    if [ -z "$MUSTER_STOPPED" ] && ! muster_has_told; then muster_tell setup failed ''; fi
    exit "$MUSTER_CODE"
  fi
fi
muster_run command
exit "$MUSTER_CODE"
