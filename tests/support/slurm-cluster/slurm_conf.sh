#!/usr/bin/env bash
# This part of slurm-cluster.sh writes the files that Slurm itself reads.
# shellcheck disable=SC2034,SC2153,SC2154 # its parts share the variables

# range FIRST LAST: prints 1 for one number, [1-4] for four.
range() { if (($1 == $2)); then printf '%s' "$1"; else printf '[%s-%s]' "$1" "$2"; fi; }

# slurm_conf_daemons: prints settings of the daemons: their users, their addresses and their directories.
slurm_conf_daemons() {
	cat <<-CONF
		# Written by $PROG.
		ClusterName=$NAME
		SlurmctldHost=$host(127.0.0.1)
		SlurmctldPort=$CTLD_PORT
		SlurmUser=slurm
		SlurmdUser=root
		# Bind to the addresses above, not to every interface.
		CommunicationParameters=NoCtldInAddrAny,NoInAddrAny

		AuthType=auth/munge
		# cred_expire also is how long a requeued job waits (BeginTime; else 120 s).
		AuthInfo=socket=$DIR/run/munge.socket,cred_expire=$REQUEUE_DELAY
		CredType=cred/munge
		AuthAltTypes=auth/jwt
		AuthAltParameters=jwt_key=$DIR/etc/jwt_hs256.key

		StateSaveLocation=$DIR/state
		SlurmdSpoolDir=$DIR/spool/%n
		SlurmctldPidFile=$DIR/run/slurmctld.pid
		SlurmdPidFile=$DIR/run/slurmd.%n.pid
		SlurmctldLogFile=$DIR/log/slurmctld.log
		SlurmdLogFile=$DIR/log/slurmd.%n.log
		SlurmctldDebug=info
		SlurmdDebug=info
		PlugStackConfig=$DIR/etc/plugstack.conf
		MailProg=/bin/true
	CONF
	[[ -z $SLURM ]] || printf 'PluginDir=%s\n' "$(plugin_directory)"
}

# plugin_directory: prints the one of a release that is not the machine's.
plugin_directory() { realpath -- "$SLURM_BIN/../lib/slurm"; }

# Settings of the life of jobs.
slurm_conf_jobs() {
	cat <<-CONF

		MpiDefault=none
		JobAcctGatherType=jobacct_gather/linux
		JobAcctGatherFrequency=task=1

		# The nodes claim more than the machine has.
		SlurmdParameters=config_overrides
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core_Memory
		DefMemPerCPU=100
		GresTypes=gpu

		# backfill and preemption, quick enough for tests
		SchedulerType=sched/backfill
		SchedulerParameters=bf_interval=2,bf_continue,sched_interval=5,batch_sched_delay=1
		PriorityType=priority/multifactor
		PriorityWeightAge=1000
		PriorityWeightPartition=1000
		PriorityWeightQOS=$((WITH_DBD ? 10000 : 0))
		PreemptType=preempt/partition_prio
		PreemptMode=REQUEUE
		MaxJobCount=50000
		MaxArraySize=20001

		EnforcePartLimits=$ENFORCE
		MinJobAge=$MIN_JOB_AGE
		KillWait=2
		CompleteWait=0
		WaitTime=0
		InactiveLimit=0
		SlurmctldTimeout=30
		SlurmdTimeout=$SLURMD_TIMEOUT
		MessageTimeout=10
		UnkillableStepTimeout=60
		ReturnToService=2
		JobRequeue=1
	CONF
}

# Task control and accounting, as the options say.
slurm_conf_options() {
	if ((WITH_CGROUP)); then
		printf '\nProctrackType=proctrack/cgroup\nTaskPlugin=task/cgroup\n'
	else
		# Plain processes. Memory is polled: a job over its limit is killed
		# (and ends as FAILED 0:9, not as OUT_OF_MEMORY).
		printf '\nProctrackType=proctrack/linuxproc\n'
		printf 'JobAcctGatherParams=OverMemoryKill\n'
	fi
	if ((WITH_DBD)); then
		cat <<-CONF

			AccountingStorageType=accounting_storage/slurmdbd
			AccountingStorageHost=127.0.0.1
			AccountingStoragePort=$DBD_PORT
			AccountingStoragePass=$DIR/run/munge.socket
			AccountingStorageEnforce=associations,limits,qos
			AccountingStoreFlags=job_comment,job_script,job_env
			AccountingStorageTRES=gres/gpu$( ((GPUS)) && printf ',gres/gpu:%s' "$GPU_TYPE")
		CONF
	else
		printf '\nAccountingStorageType=accounting_storage/none\n'
	fi
}

slurm_conf_nodes() {
	printf '\n'
	if ((GPU_NODES > 0)); then
		printf 'NodeName=%s%s Gres=gpu:%s:%d ' "$PREFIX" "$(range 1 "$GPU_NODES")" "$GPU_TYPE" "$GPUS"
		printf 'NodeHostname=%s NodeAddr=127.0.0.1 Port=%s CPUs=%d RealMemory=%d State=UNKNOWN\n' \
			"$host" "$(range "$SLURMD_PORT" $((SLURMD_PORT + GPU_NODES - 1)))" "$CPUS" "$MEM"
	fi
	if ((GPU_NODES < NODES)); then
		printf 'NodeName=%s%s ' "$PREFIX" "$(range $((GPU_NODES + 1)) "$NODES")"
		printf 'NodeHostname=%s NodeAddr=127.0.0.1 Port=%s CPUs=%d RealMemory=%d State=UNKNOWN\n' \
			"$host" "$(range $((SLURMD_PORT + GPU_NODES)) $((SLURMD_PORT + NODES - 1)))" "$CPUS" "$MEM"
	fi
}

# debug: the default. gpu: 4 h. short: 1 min. scavenge and scavkill:
# jobs there give way to any other partition's (requeued, cancelled).
slurm_conf_partitions() {
	cat <<-CONF

		PartitionName=DEFAULT State=UP PriorityTier=10 PreemptMode=OFF OverSubscribe=NO
		PartitionName=debug Nodes=$all Default=YES DefaultTime=0:10:00 MaxTime=1-00:00:00
		PartitionName=gpu Nodes=$gpu_nodes DefaultTime=1:00:00 MaxTime=4:00:00
		PartitionName=short Nodes=$all DefaultTime=1 MaxTime=1
		PartitionName=scavenge Nodes=$all MaxTime=1-00:00:00 PriorityTier=1 PreemptMode=REQUEUE
		PartitionName=scavkill Nodes=$all MaxTime=1-00:00:00 PriorityTier=1 PreemptMode=CANCEL

		Include $DIR/etc/extra.conf
	CONF
}

write_slurm_conf() {
	local all gpu_nodes host
	host=$(hostname -s)
	all=$PREFIX$(range 1 "$NODES")
	gpu_nodes=$PREFIX$(range 1 "$((GPU_NODES > 0 ? GPU_NODES : 1))")
	{
		slurm_conf_daemons
		slurm_conf_jobs
		slurm_conf_options
		slurm_conf_nodes
		slurm_conf_partitions
	} >"$DIR/etc/slurm.conf"
}

# Fake GPUs are character devices that are /dev/null by another name. Slurm takes the number at the end of the name for
# CUDA_VISIBLE_DEVICES. If mknod is not allowed, links to /dev/null do.
write_gres_conf() {
	local i
	{
		printf '# Written by %s.\nAutoDetect=off\n' "$PROG"
		if ((GPU_NODES > 0)); then
			printf 'NodeName=%s%s Name=gpu Type=%s File=%s/dev/nvidia%s\n' \
				"$PREFIX" "$(range 1 "$GPU_NODES")" "$GPU_TYPE" "$DIR" "$(range 0 $((GPUS - 1)))"
		fi
	} >"$DIR/etc/gres.conf"
	for ((i = 0; i < GPUS; i++)); do
		[[ -e $DIR/dev/nvidia$i ]] || mknod -m 666 "$DIR/dev/nvidia$i" c 1 3 2>/dev/null ||
			ln -sf /dev/null "$DIR/dev/nvidia$i"
	done
}

# cgroup_version: prints the cgroups that --cgroup can use, v1 or v2; fails if there are none.
cgroup_version() {
	local root=/sys/fs/cgroup
	if [[ -w $root/memory/cgroup.procs && -w $root/freezer/cgroup.procs ]]; then
		printf v1
	elif [[ -w $root/cgroup.subtree_control && " $(<$root/cgroup.controllers) " == *' memory '* ]]; then
		printf v2
	else
		return 1
	fi
}

write_cgroup_conf() {
	{
		printf '# Written by %s.\n' "$PROG"
		if [[ -n $SLURM ]] && ((!WITH_CGROUP)); then
			# Its slurmd does not start where the plugin finds no cgroups of its own.
			printf 'CgroupPlugin=disabled\n'
		else
			printf 'CgroupPlugin=cgroup/%s\n' "$(cgroup_version || printf v1)"
		fi
		# systemd is not asked: v2's scopes are plain directories of our own.
		printf 'IgnoreSystemd=yes\n'
		((!WITH_CGROUP)) || printf 'ConstrainRAMSpace=yes\nAllowedSwapSpace=0\n'
	} >"$DIR/etc/cgroup.conf"
}

# pyxis_module: prints the stand-in as built, or for a release that is not the machine's: Slurm takes a plugin only if its
# headers had the same version. That one is kept beside the release.
pyxis_module() {
	local own=$PARTS/../pyxis module
	[[ -n $SLURM ]] || { printf '%s\n' "$PYXIS" && return; }
	module=$(realpath -- "$SLURM_BIN/..")/pyxis-$(cat "$own"/*.cc "$own"/*.h | sha256sum | cut -c 1-16).so
	if [[ ! -f $module ]]; then
		c++ -std=c++20 -O1 -shared -fPIC -fvisibility=hidden -I"$PARTS/../../.." -isystem "$SLURM_BIN/../include" \
			"$own"/*.cc -o "$module.$$" && mv "$module.$$" "$module"
	fi
	printf '%s\n' "$module"
}

# All of the stand-in is copied: the source tree may be closed to the test user, and a build may replace the plugin.
# Slurm names a plugin by its file when it complains, so it has the name of the real one.
write_plugstack() {
	local own=$PARTS/../pyxis module
	if [[ -n $PLUGSTACK ]]; then cp "$PLUGSTACK" "$DIR/etc/plugstack.conf"; else : >"$DIR/etc/plugstack.conf"; fi
	[[ -n $PYXIS ]] || return 0
	mkdir -p "$DIR/pyxis/bin" "$DIR/pyxis/run"
	module=$(pyxis_module) || die "the stand-in for Pyxis cannot be compiled for Slurm $SLURM; the compiler's words are above"
	install -m 755 "$module" "$DIR/pyxis/spank_pyxis.so"
	install -m 755 "$own/enroot" "$DIR/pyxis/bin/enroot"
	install -m 644 "$own/images" "$DIR/pyxis/bin/images"
	printf 'required %s runtime_path=%s enroot=%s\n' "$DIR/pyxis/spank_pyxis.so" "$DIR/pyxis/run" \
		"$DIR/pyxis/bin/enroot" >>"$DIR/etc/plugstack.conf"
}
