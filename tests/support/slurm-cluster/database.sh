#!/usr/bin/env bash
# This part of slurm-cluster.sh does the accounting: MariaDB, slurmdbd, and who may use what.
# shellcheck disable=SC2034,SC2154 # its parts share the variables

write_slurmdbd_conf() {
	cat >"$DIR/etc/slurmdbd.conf" <<-CONF
		# Written by $PROG.
		AuthType=auth/munge
		AuthInfo=socket=$DIR/run/munge.socket
		AuthAltTypes=auth/jwt
		AuthAltParameters=jwt_key=$DIR/etc/jwt_hs256.key
		DbdHost=localhost
		DbdAddr=127.0.0.1
		DbdPort=$DBD_PORT
		SlurmUser=slurm
		DebugLevel=info
		LogFile=$DIR/log/slurmdbd.log
		PidFile=$DIR/run/slurmdbd.pid
		CommunicationParameters=NoInAddrAny
		StorageType=accounting_storage/mysql
		StorageHost=localhost
		StorageUser=slurm
		StorageLoc=slurm_acct_db
		CommitDelay=1
	CONF
	[[ -z $SLURM ]] || printf 'PluginDir=%s\n' "$(plugin_directory)" >>"$DIR/etc/slurmdbd.conf"
	chown slurm: "$DIR/etc/slurmdbd.conf"
	chmod 600 "$DIR/etc/slurmdbd.conf"
}

MARIADB_OPTIONS=(--skip-networking --skip-log-bin --skip-name-resolve
	--innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0
	--innodb-flush-method=nosync --innodb-log-file-size=32M
	--innodb-buffer-pool-size=96M --innodb-lock-wait-timeout=900
	--aria-pagecache-buffer-size=8M --performance-schema=OFF)

install_database() {
	rm -rf "$DIR/mysql"
	# A server that starts deletes all temporary tables in its tmpdir, also those of other servers.
	install -d -m 700 -o slurm -g slurm "$DIR/mysql" "$DIR/mysql-tmp"
	# OS user slurm == database user slurm, by the unix socket.
	mariadb-install-db --no-defaults --user=slurm --datadir="$DIR/mysql" --tmpdir="$DIR/mysql-tmp" \
		--auth-root-authentication-method=socket --auth-root-socket-user=slurm \
		--skip-test-db "${MARIADB_OPTIONS[@]}" >>"$DIR/log/mariadb-install.out" 2>&1
}

# Accounts, users and QOS. Account test: qos normal; the QOS two lets a user
# have 2 CPUs at most and refuses more at once; the QOS one lets one job run.
setup_accounting() {
	local m=(sacctmgr -i -Q)
	if ! sacctmgr -nP show cluster format=cluster | grep -qx "$NAME"; then
		"${m[@]}" add cluster "$NAME"
	fi
	if ! sacctmgr -nP show qos format=name | grep -qx two; then
		"${m[@]}" add qos two MaxTRESPerUser=cpu=2 Flags=DenyOnLimit
		"${m[@]}" add qos one MaxJobsPerUser=1
		"${m[@]}" add qos high Priority=100
		"${m[@]}" add account test cluster="$NAME" Description=test Organization=test
		"${m[@]}" add account other cluster="$NAME" Description=other Organization=test
		"${m[@]}" add user root account=test cluster="$NAME" qos=normal,two,one,high defaultqos=normal
	fi
	if ! sacctmgr -nP show assoc user="$TESTUSER" cluster="$NAME" format=user | grep -qx "$TESTUSER"; then
		"${m[@]}" add user "$TESTUSER" account=test cluster="$NAME" qos=normal,two,one defaultqos=normal
	fi
}
