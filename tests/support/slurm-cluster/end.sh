#!/usr/bin/env bash
# This part of slurm-cluster.sh ends a cluster, and a node.
# shellcheck disable=SC2034,SC2154 # its parts share the variables

# our_stepds [NODE]: slurmstepd is no child of slurmd (it double forks), so those
# of this cluster are known by the SLURM_CONF that they inherited from our
# slurmd, and those of a node by the log that they hold open.
our_stepds() {
	local p comm
	for p in /proc/[0-9]*; do
		{ read -r comm <"$p/comm"; } 2>/dev/null || continue
		[[ $comm == slurmstepd ]] || continue
		{ tr '\0' '\n' <"$p/environ"; } 2>/dev/null | grep -qxF "SLURM_CONF=$DIR/etc/slurm.conf" || continue
		[[ -z ${1:-} ]] || find "$p/fd" -lname "$DIR/log/slurmd.$1.log" 2>/dev/null | grep -q . || continue
		printf '%s\n' "${p#/proc/}"
	done
}

# Every descendant of the given pids, deepest last.
descendants() {
	local pid child
	for pid in "$@"; do
		while read -rd ' ' child; do
			printf '%s\n' "$child"
			descendants "$child"
		done < <(cat "/proc/$pid/task/"*/children 2>/dev/null)
	done
}

# kill_stepds [NODE]: at once, with all that they started.
kill_stepds() {
	local stepds=() all=()
	mapfile -t stepds < <(our_stepds "${1:-}")
	((${#stepds[@]} > 0)) || return 0
	mapfile -t all < <(descendants "${stepds[@]}")
	kill -s KILL "${stepds[@]}" ${all[@]+"${all[@]}"} 2>/dev/null || true
}

cmd_crash() {
	kill -s STOP "$(pid_of "slurmd.$1")" 2>/dev/null || true # no last word
	kill_stepds "$1"
	halt "slurmd.$1" KILL
}

cmd_down() {
	local s i ids list=()
	load_vars || die "no cluster in $DIR"
	export SLURM_CONF=$DIR/etc/slurm.conf
	if is_up slurmctld && [[ -n $(our_stepds) ]]; then
		# Let Slurm end the jobs that run: it knows their processes. (Waiting jobs are still there at the
		# next `up`.)
		ids=$(timeout 5 squeue -h -t R,S,CF,CG -o %A 2>/dev/null) || true
		# shellcheck disable=SC2086 # one id a word
		[[ -z $ids ]] || timeout 5 scancel --quiet --full $ids >/dev/null 2>&1 || true
		for ((i = 0; i < 60; i++)); do
			[[ -n $(our_stepds) ]] || break
			sleep 0.1
		done
	fi
	mapfile -t list < <(services | tac)
	# slurmctld first (it saves its state), then the nodes, then the rest.
	halt slurmctld TERM "$STOP_S"
	for s in "${list[@]}"; do
		case $s in mariadbd | munged) continue ;; esac
		halt "$s"
	done
	kill_stepds
	halt mariadbd TERM "$STOP_S"
	halt munged
	if ((WITH_CGROUP)); then
		for ((i = 1; i <= NODES; i++)); do
			find /sys/fs/cgroup/*/{"slurm_$PREFIX$i","$PREFIX${i}_slurmstepd.scope"} -depth -type d \
				-exec rmdir {} + 2>/dev/null || true
		done
	fi
	rm -f "$DIR/run/munge.socket"
	if [[ ${1:-} == --purge ]]; then
		rm -rf --one-file-system "$DIR"
	fi
}
