#!/usr/bin/env bash
# This part of slurm-cluster.sh makes the ways in: sshd, and the environment of a client.
# shellcheck disable=SC2034,SC2154 # its parts share the variables

write_sshd_conf() {
	local home
	home=$(getent passwd "$TESTUSER" | cut -d: -f6)
	[[ -f $DIR/ssh/host_key ]] || ssh-keygen -q -t ed25519 -N '' -C "$NAME host" -f "$DIR/ssh/host_key"
	[[ -f $DIR/ssh/id ]] || ssh-keygen -q -t ed25519 -N '' -C "$NAME test user" -f "$DIR/ssh/id"
	cp "$DIR/ssh/id.pub" "$DIR/ssh/authorized_keys"
	printf '[127.0.0.1]:%s %s\n' "$SSHD_PORT" "$(cut -d' ' -f1,2 "$DIR/ssh/host_key.pub")" >"$DIR/ssh/known_hosts"
	cat >"$DIR/ssh/sshd_config" <<-CONF
		# Written by $PROG.
		ListenAddress 127.0.0.1
		Port $SSHD_PORT
		HostKey $DIR/ssh/host_key
		PidFile none
		AuthorizedKeysFile $DIR/ssh/authorized_keys
		AllowUsers $TESTUSER
		AuthenticationMethods publickey
		PasswordAuthentication no
		KbdInteractiveAuthentication no
		UsePAM no
		UseDNS no
		StrictModes no
		PrintMotd no
		X11Forwarding no
		MaxStartups 100:30:200
		MaxSessions 100
		SetEnv SLURM_CONF=$DIR/etc/slurm.conf${SLURM:+ PATH=$SLURM_BIN:/usr/local/bin:/usr/bin:/bin}
		Subsystem sftp internal-sftp
	CONF
	cat >"$DIR/ssh/config" <<-CONF
		# Written by $PROG: ssh -F $DIR/ssh/config lab squeue
		Host lab
		  HostName 127.0.0.1
		  Port $SSHD_PORT
		  User $TESTUSER
		  IdentityFile $DIR/ssh/id
		  IdentitiesOnly yes
		  UserKnownHostsFile $DIR/ssh/known_hosts
		  StrictHostKeyChecking yes
		  BatchMode yes
	CONF
	[[ -d $home ]] || note "the home of $TESTUSER is missing: $home"
}

write_env() {
	cat >"$DIR/env.sh" <<-ENV
		# Written by $PROG: the environment of a client of this cluster.
		export SLURM_CONF=$DIR/etc/slurm.conf
		export SLURMLAB_DIR=$DIR
		export SLURMLAB_NAME=$NAME
		export SLURMLAB_USER=$TESTUSER
		export SLURMLAB_NODES=$NODES
		export SLURMLAB_GPUS=$GPUS
		export SLURMLAB_ACCOUNTING=$WITH_DBD
		export SLURMLAB_RESTD_URL=$( ((WITH_RESTD)) && printf 'http://127.0.0.1:%s' "$RESTD_PORT")
		export SLURMLAB_SSH_CONFIG=$( ((WITH_SSHD)) && printf '%s/ssh/config' "$DIR")
		export SLURMLAB_SSH_PORT=$( ((WITH_SSHD)) && printf '%s' "$SSHD_PORT")
	ENV
	# shellcheck disable=SC2016 # the reader's PATH is meant
	[[ -z $SLURM ]] || printf 'export PATH=%s:$PATH\n' "$SLURM_BIN" >>"$DIR/env.sh"
}
