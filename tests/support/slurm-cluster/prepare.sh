#!/usr/bin/env bash
# This part of slurm-cluster.sh prepares what has to be there before a daemon is started.
# shellcheck disable=SC2034,SC2154 # its parts share the variables

prepare() {
	local d p missing=()
	((EUID == 0)) || die 'needs root (slurmd starts jobs of other users)'
	for p in munged slurmctld slurmd scontrol sinfo setpriv; do
		command -v "$p" >/dev/null || missing+=("$p")
	done
	((!WITH_DBD)) || for p in mariadbd mariadb-install-db mariadb slurmdbd sacctmgr; do
		command -v "$p" >/dev/null || missing+=("$p")
	done
	((!WITH_RESTD)) || command -v slurmrestd >/dev/null || missing+=(slurmrestd)
	((!WITH_SSHD)) || for p in sshd ssh-keygen; do
		command -v "$p" >/dev/null || missing+=("$p")
	done
	if [[ -n $PYXIS ]]; then
		[[ -f $PYXIS ]] || die "--pyxis: not built (needs libslurm-dev): $PYXIS"
		for p in mksquashfs unsquashfs busybox; do command -v "$p" >/dev/null || missing+=("$p"); done
	fi
	((${#missing[@]} == 0)) || die "not installed: ${missing[*]} (see the packages in $0)"
	((!WITH_CGROUP)) || cgroup_version >/dev/null ||
		die '--cgroup: neither cgroup v1 (memory and freezer) nor v2 (memory) can be written under /sys/fs/cgroup'
	getent passwd slurm munge >/dev/null || die 'the users slurm and munge are missing'

	# The longest socket is DIR/spool/nNN/nNN_JOBID.STEPID; sun_path holds 107.
	((${#DIR} <= 70)) || die "DIR is too long for unix sockets (70 at most): $DIR"
	[[ $DIR =~ ^/[A-Za-z0-9._/+-]+$ ]] || die "DIR has characters that slurm.conf would not take: $DIR"
	# The daemons' users and the test user must reach the sockets.
	p=$(dirname "$DIR")
	while [[ $p != / ]]; do
		(($(stat -c '0%a' "$p") & 1)) || die "$p is closed to other users: put DIR elsewhere or chmod o+x it"
		p=$(dirname "$p")
	done
	chmod 755 "$DIR"
	mkdir -p "$DIR"/{etc,run,log,spool,state,dev,ssh,munge}
	for d in $(seq 1 "$NODES"); do mkdir -p "$DIR/spool/$PREFIX$d"; done
	chown munge: "$DIR/munge"
	chmod 711 "$DIR/munge"
	chown slurm: "$DIR/state"
	chmod 700 "$DIR/state"
	# slurmctld and slurmdbd (user slurm) write their logs and pid files.
	chown root:slurm "$DIR/log" "$DIR/run"
	chmod 1775 "$DIR/log" "$DIR/run"

	[[ -s $DIR/munge/key ]] || (umask 077 && head -c 128 /dev/urandom >"$DIR/munge/key")
	chown munge: "$DIR/munge/key"
	[[ -s $DIR/etc/jwt_hs256.key ]] || (umask 077 && head -c 32 /dev/urandom >"$DIR/etc/jwt_hs256.key")
	chown slurm: "$DIR/etc/jwt_hs256.key"

	# The password is '*' and not '!', because sshd without PAM takes '!' for a locked account.
	id -u "$TESTUSER" >/dev/null 2>&1 ||
		useradd --create-home --shell /bin/bash --password '*' "$TESTUSER"

	[[ -e $DIR/etc/extra.conf ]] || printf '# Yours: the end of slurm.conf.\n' >"$DIR/etc/extra.conf"
	write_slurm_conf
	write_gres_conf
	write_cgroup_conf
	write_plugstack
	((!WITH_DBD)) || write_slurmdbd_conf
	((!WITH_SSHD)) || write_sshd_conf
	write_env
	save_vars
}
