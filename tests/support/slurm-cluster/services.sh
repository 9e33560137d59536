#!/usr/bin/env bash
# This part of slurm-cluster.sh knows the daemons: which there are, how each is started, and whether it answers.
# shellcheck disable=SC2034,SC2154 # its parts share the variables

services() {
	local i
	printf 'munged\n'
	((!WITH_DBD)) || printf 'mariadbd\nslurmdbd\n'
	printf 'slurmctld\n'
	for ((i = 1; i <= NODES; i++)); do printf 'slurmd.%s%d\n' "$PREFIX" "$i"; done
	((!WITH_RESTD)) || printf 'slurmrestd\n'
	((!WITH_SSHD)) || printf 'sshd\n'
}

# is_service NAME. All of the list is read: a pipe that is closed early is an error under pipefail.
is_service() { [[ $'\n'$(services)$'\n' == *$'\n'"$1"$'\n'* ]]; }

# Only starts it; readiness is awaited apart, so that starts can overlap.
launch() {
	is_up "$1" && return
	case $1 in
	munged)
		rm -f "$DIR/run/munge.socket" "$DIR/run/munge.socket.lock"
		# run/ is not munge's: its socket lives in munge/, a link is in run/.
		spawn munged setpriv --reuid munge --regid munge --clear-groups \
			munged --foreground --force --num-threads=4 --origin=127.0.0.1 \
			--key-file="$DIR/munge/key" --socket="$DIR/munge/socket" \
			--pid-file="$DIR/munge/pid" --seed-file="$DIR/munge/seed"
		ln -sfn "$DIR/munge/socket" "$DIR/run/munge.socket"
		;;
	mariadbd)
		[[ -d $DIR/mysql/mysql ]] || install_database ||
			die "mariadb-install-db failed: $(tail -n 20 "$DIR/log/mariadb-install.out")"
		spawn mariadbd mariadbd --no-defaults --user=slurm --datadir="$DIR/mysql" \
			--tmpdir="$DIR/mysql-tmp" --socket="$DIR/mysql/socket" --pid-file="$DIR/mysql/pid" "${MARIADB_OPTIONS[@]}"
		;;
	slurmdbd)
		# libmariadb takes the socket of "localhost" from MYSQL_UNIX_PORT.
		spawn slurmdbd env SLURM_CONF="$DIR/etc/slurm.conf" \
			MYSQL_UNIX_PORT="$DIR/mysql/socket" slurmdbd -D
		;;
	slurmctld)
		spawn slurmctld slurmctld -D -f "$DIR/etc/slurm.conf"
		;;
	slurmd.*)
		spawn "$1" env SLURM_CONF="$DIR/etc/slurm.conf" \
			slurmd -D -N "${1#slurmd.}" -f "$DIR/etc/slurm.conf" -d "$(command -v slurmstepd || echo /usr/sbin/slurmstepd)"
		;;
	slurmrestd)
		# The user is neither root nor SlurmUser; SLURM_JWT=daemon: callers bring tokens. The plugins for accounting refuse to
		# load without slurmdbd.
		local plugins=v0.0.38
		((!WITH_DBD)) || plugins+=,dbv0.0.38
		if [[ -n $SLURM ]]; then
			plugins=slurmctld
			((!WITH_DBD)) || plugins+=,slurmdbd
		fi
		spawn slurmrestd env SLURM_CONF="$DIR/etc/slurm.conf" SLURM_JWT=daemon \
			setpriv --reuid nobody --regid nogroup --clear-groups \
			slurmrestd -a rest_auth/jwt -s "$plugins" "127.0.0.1:$RESTD_PORT"
		;;
	sshd)
		mkdir -p /run/sshd
		spawn sshd "$(command -v sshd)" -D -e -f "$DIR/ssh/sshd_config"
		;;
	*) die "no such service: $1" ;;
	esac
}

# ready SERVICE: tells whether it answers.
ready() {
	is_up "$1" || return 1
	case $1 in
	munged) munge -n --socket="$DIR/munge/socket" ;;
	mariadbd) mariadb-admin --no-defaults --socket="$DIR/mysql/socket" --user=root ping ;;
	slurmdbd) listening "$DBD_PORT" ;;
	slurmctld) scontrol ping | grep -q 'is UP' ;;
	slurmd.*) listening "$((SLURMD_PORT + ${1#"slurmd.$PREFIX"} - 1))" ;;
	slurmrestd) listening "$RESTD_PORT" ;;
	sshd) listening "$SSHD_PORT" ;;
	esac
}

listening() {
	local hex
	hex=$(printf '%04X' "$1")
	awk -v p="0100007F:$hex" '$2 == p && $4 == "0A" { f = 1 } END { exit !f }' /proc/net/tcp
}

all_idle() {
	[[ $(sinfo -h -N -p debug -o %T | grep -c -E '^(idle|mixed|allocated|completing)$') -eq $NODES ]]
}
