#!/usr/bin/env bash
# This part of slurm-cluster.sh reads what `up` was told and what is remembered of it, and finds the ports.
# shellcheck disable=SC2034,SC2154 # its parts share the variables

TURNS=/run/slurm-cluster.turns
# The programs of $SLURM, once use_slurm has found them.
SLURM_BIN=

set_defaults() {
	NODES=2 PREFIX=n CPUS=8 MEM=16000 GPUS=0 GPU_NODES='' GPU_TYPE=h100 NAME=lab
	TESTUSER=slurmtest BASE_PORT='' MIN_JOB_AGE=5 SLURMD_TIMEOUT=10 REQUEUE_DELAY=10
	WITH_DBD=1 WITH_RESTD=1 WITH_SSHD=1 WITH_CGROUP=0 ENFORCE=NO PLUGSTACK='' PYXIS=''
	SLURM=${MUSTER_TEST_SLURM:-}
}

VARS=(NODES PREFIX CPUS MEM GPUS GPU_NODES GPU_TYPE NAME TESTUSER BASE_PORT
	MIN_JOB_AGE SLURMD_TIMEOUT REQUEUE_DELAY WITH_DBD WITH_RESTD WITH_SSHD WITH_CGROUP ENFORCE
	PLUGSTACK PYXIS SLURM)

save_vars() {
	local v
	for v in "${VARS[@]}"; do printf '%s=%q\n' "$v" "${!v}"; done >"$DIR/cluster.vars"
}

load_vars() {
	set_defaults
	[[ -r $DIR/cluster.vars ]] || return 1
	# shellcheck disable=SC1091 # written by save_vars
	. "$DIR/cluster.vars"
	set_ports
	use_slurm
}

# Puts the programs of the release of Slurm that the cluster has before the machine's own.
use_slurm() {
	[[ -z $SLURM || -n $SLURM_BIN ]] || SLURM_BIN=$("$PARTS/../slurm-release" "$SLURM") || die "there is no Slurm $SLURM"
	[[ -z $SLURM || $PATH == "$SLURM_BIN":* ]] || PATH=$SLURM_BIN:$PATH
}

set_ports() {
	CTLD_PORT=$BASE_PORT DBD_PORT=$((BASE_PORT + 1)) RESTD_PORT=$((BASE_PORT + 2))
	SSHD_PORT=$((BASE_PORT + 3)) SLURMD_PORT=$((BASE_PORT + 10))
}

parse_options() {
	local want_number
	while (($#)); do
		want_number=
		case $1 in
		--nodes | --cpus | --mem | --gpus | --gpu-nodes | --base-port | \
			--min-job-age | --slurmd-timeout | --requeue-delay) want_number=1 ;;
		esac
		case $1 in
		--no-* | --cgroup | --enforce-part-limits) ;;
		*)
			(($# >= 2)) || die "$1 needs a value"
			[[ -z $want_number || $2 =~ ^[0-9]{1,6}$ ]] || die "$1: not a number: $2"
			;;
		esac
		case $1 in
		--nodes) NODES=$2 ;;
		--node-prefix) PREFIX=$2 ;;
		--cpus) CPUS=$2 ;;
		--mem) MEM=$2 ;;
		--gpus) GPUS=$2 ;;
		--gpu-nodes) GPU_NODES=$2 ;;
		--gpu-type) GPU_TYPE=$2 ;;
		--name) NAME=$2 ;;
		--user) TESTUSER=$2 ;;
		--base-port) BASE_PORT=$2 ;;
		--min-job-age) MIN_JOB_AGE=$2 ;;
		--slurmd-timeout) SLURMD_TIMEOUT=$2 ;;
		--requeue-delay) REQUEUE_DELAY=$2 ;;
		--plugstack) PLUGSTACK=$2 ;;
		--slurm) SLURM=$2 ;;
		--pyxis) PYXIS=$(realpath -m -- "$2") ;;
		--cgroup) WITH_CGROUP=1 && shift && continue ;;
		--enforce-part-limits) ENFORCE=ALL && shift && continue ;;
		--no-dbd) WITH_DBD=0 && shift && continue ;;
		--no-restd) WITH_RESTD=0 && shift && continue ;;
		--no-sshd) WITH_SSHD=0 && shift && continue ;;
		*) die "unknown option: $1" ;;
		esac
		shift 2
	done
	((NODES >= 1)) || die '--nodes: at least 1'
	[[ $NAME =~ ^[a-z][a-z0-9]{0,30}$ ]] || die "--name: small letters and digits: $NAME"
	[[ $PREFIX =~ ^(127\.0\.0\.|[a-z]([a-z0-9-]{0,14}[a-z-])?)$ ]] || die "--node-prefix: $PREFIX"
	[[ $GPU_TYPE =~ ^[a-z0-9_]+$ ]] || die "--gpu-type: $GPU_TYPE"
	[[ $TESTUSER =~ ^[a-z_][a-z0-9_-]*$ ]] || die "--user: $TESTUSER"
	[[ -n $GPU_NODES ]] || GPU_NODES=$NODES
	((GPU_NODES <= NODES)) || die '--gpu-nodes: more than --nodes'
	((GPUS > 0)) || GPU_NODES=0
	((GPU_NODES > 0)) || GPUS=0
}

# Succeeds if any port of [$1, $1+$2) is listening here.
block_is_free() {
	local base=$1 count=$2 used port
	used=$(awk 'FNR > 1 && $4 == "0A" { n = split($2, a, ":"); print a[n] }' \
		/proc/net/tcp /proc/net/tcp6 2>/dev/null)
	for ((port = base; port < base + count; port++)); do
		[[ $used != *"$(printf '%04X' "$port")"* ]] || return 1
	done
}

# Another number for each cluster of this machine, until it starts anew.
take_turn() {
	local turn=0
	exec 8<>"$TURNS"
	flock 8
	read -r turn <&8 || true
	[[ $turn =~ ^[0-9]{1,9}$ ]] || turn=0
	printf '%s\n' "$((turn + 1))" >"$TURNS"
	exec 8>&-
	printf '%s\n' "$turn"
}

# A block of ports below the ephemeral range (32768). Each cluster looks in another place: nobody
# sees which ports one has picked before its daemons listen, seconds later.
pick_base_port() {
	local count=$((10 + NODES)) step blocks first i base
	((EUID == 0)) || die 'needs root (slurmd starts jobs of other users)'
	step=$(((count + 49) / 50 * 50))
	blocks=$((12000 / step))
	((blocks > 0)) || die "too many nodes for the port range: give --base-port"
	first=$(take_turn)
	for ((i = 0; i < blocks; i++)); do
		base=$((20000 + (first + i) % blocks * step))
		if block_is_free "$base" "$count"; then
			printf '%s\n' "$base"
			return
		fi
	done
	die 'no free block of ports in 20000-32000: give --base-port'
}
