#!/usr/bin/env bash
# This part of slurm-cluster.sh starts daemons, knows them again, and ends them.
# shellcheck disable=SC2034,SC2154 # its parts share the variables

# Each takes a second or two, and many times that on a busy machine. A slurmctld
# that is killed forgets the jobs of its last seconds.
READY_S=120 STOP_S=30

# The start time of a process in clock ticks: with the pid it names a process
# for good, so that a reused pid is never signalled.
start_time() {
	local stat
	stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
	[[ -n $stat ]] || return 1
	stat=${stat##*) }
	# shellcheck disable=SC2086 # fields are wanted apart
	set -- $stat
	[[ $1 != Z ]] || return 1
	printf '%s\n' "${20}"
}

# pid_of SERVICE: prints its pid if the process that we recorded is still that one.
pid_of() {
	local pid start
	[[ -r $DIR/run/$1.proc ]] || return 1
	read -r pid start <"$DIR/run/$1.proc" || return 1
	[[ $(start_time "$pid") == "$start" ]] || return 1
	printf '%s\n' "$pid"
}

is_up() { pid_of "$1" >/dev/null; }

# spawn SERVICE COMMAND...: in the background, in a session of its own, with
# stdout and stderr in DIR/log/SERVICE.out; the pid is recorded. (A background
# child of a script is no group leader, so setsid execs and keeps the pid.)
# Every other descriptor is closed: a daemon that kept the caller's pipe would
# make a caller that reads to its end wait for ever.
spawn() {
	local service=$1 pid start fd
	shift
	(
		for fd in "/proc/$BASHPID/fd/"*; do
			fd=${fd##*/}
			((fd <= 2)) || eval "exec $fd>&-"
		done
		exec setsid "$@"
	) </dev/null >>"$DIR/log/$service.out" 2>&1 &
	pid=$!
	start=$(start_time "$pid") || start=0
	printf '%s %s\n' "$pid" "$start" >"$DIR/run/$service.proc"
	disown "$pid" 2>/dev/null || true
}

# halt SERVICE [SIGNAL [SECONDS]]: signals the recorded process, waits, then kills it.
halt() {
	local pid i
	if pid=$(pid_of "$1"); then
		kill -s "${2:-TERM}" "$pid" 2>/dev/null || true
		for ((i = 0; i < ${3:-5} * 20; i++)); do
			is_up "$1" || break
			sleep 0.05
		done
		if is_up "$1"; then
			note "$1 ($pid) did not end in ${3:-5} s: KILL"
			kill -s KILL "$pid" 2>/dev/null || true
			sleep 0.1
		fi
	fi
	rm -f "$DIR/run/$1.proc"
}

# await SECONDS WHAT COMMAND...: poll until COMMAND succeeds.
await() {
	local seconds=$1 what=$2 i
	shift 2
	for ((i = 0; i < seconds * 20; i++)); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.05
	done
	die "$what: not ready after $seconds s (see $DIR/log)"
}
