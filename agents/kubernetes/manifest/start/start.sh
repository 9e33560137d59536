#!/bin/sh
# Starts a run in its container: runs setup, then the command, and ends as they do.
#
#   sh start [LAST_WORDS]
#
# LAST_WORDS is the file whose text Kubernetes shows as the container's last message. Beside this file are: setup.words
# and command.words, which set the positional parameters to a working directory and the words of the program, and
# MUSTER_ELSE to the directory in its place if the image lacks it and nobody has asked for it by name; or, of a
# job with roles, role-N.words with role-N.environment, and roles, which has a line for each: the first of its indexes
# and N; and environment, which exports variables. Any POSIX shell will do: images have what they have.
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
  # Only if there is no program after all: an exec that fails ends a shell there and then.
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

# muster_run PHASE: sets MUSTER_CODE.
muster_run() {
  (muster_become "$1") </dev/null &
  MUSTER_CHILD=$!
  # Some shells say there of a child that it was killed, and this output is the job's.
  exec 3>&2 2>/dev/null
  muster_pass_on
  muster_await
  MUSTER_CHILD=
  muster_await_others
  exec 2>&3 3>&-
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
