#include "contract/failure_causes.h"

#include <algorithm>
#include <array>

namespace muster::contract {
namespace {

struct CauseRow {
  FailureCause cause;
  std::string_view remedy;
};

constexpr std::array kCauseRows = {
    CauseRow{FailureCause::kProgramNotFound,
             "Check the program's name, that it is installed on the machine (and in PATH if it "
             "has no '/'), and the interpreter in its first line."},
    CauseRow{FailureCause::kProgramNotExecutable, "Make the program executable: chmod +x."},
    CauseRow{FailureCause::kProgramNotOfMachine,
             "Begin a script with a line like #!/bin/sh, and use programs built for the machine."},
    CauseRow{FailureCause::kArgumentsTooLong, "Pass long arguments and variables in a file."},
    CauseRow{FailureCause::kSupervisorStopped,
             "Submit the job again; if the machine was not being shut down, tell its operator."},
    CauseRow{FailureCause::kNothingRan, "Tell the machine's operator."},
    CauseRow{FailureCause::kStateDirectoryChanged,
             "Submit the job again; nothing but Muster may change its state directory."},
    CauseRow{FailureCause::kProgramNotInImage,
             "Check that the image has the program, and that it may be executed."},
    CauseRow{FailureCause::kShellNotInImage,
             "Check that the image has /bin/sh, which starts the command."},
    CauseRow{FailureCause::kDirectoryNotInImage,
             "Leave it out, name one that the image has (workdir; sbatch: --chdir=/, which each "
             "has), or mount this one (kubernetes.volumes)."},
    CauseRow{FailureCause::kTarNotInImage, "Use an image that has tar, or put the files into it."},
    CauseRow{FailureCause::kOutputSaysWhy,
             "Read the end of its output, and correct what it names."},
    CauseRow{FailureCause::kContainerLost, "Submit the job again; it was not the program's fault."},
    CauseRow{FailureCause::kUserNotMapped,
             "Ask the cluster's operator for a line in run_as_map that gives you a user of the "
             "machine, or choose another cluster."},
    CauseRow{FailureCause::kUserNotAllowed,
             "Ask the cluster's operator, who is root of the machine, to allow this user in "
             "/etc/muster/run-as.conf, or choose another cluster."},
    CauseRow{FailureCause::kUserNotTaken,
             "Ask the cluster's operator to add the user to run_as_map, or to "
             "/etc/muster/run-as.conf, or choose another cluster."},
    CauseRow{FailureCause::kUserNotAsked,
             "Wait; if it stays, ask the cluster's operator what muster-run-as check says to the "
             "agent's user."},
    CauseRow{FailureCause::kUserWithoutAccount,
             "Set slurm.account (--account) to an account of user {0}; if there is none, ask the "
             "cluster's administrator to give the user one (sacctmgr add user {0} account=...)."},
    CauseRow{FailureCause::kSecretMissing,
             "See that the secret is there (muster secret list), then run the job again."},
    CauseRow{FailureCause::kShareOfGpus,
             "Ask for less than 1000 (a share of one device) or for a multiple of 1000."},
    CauseRow{FailureCause::kFailedHosts, "See to these hosts, or submit the job again."},
    CauseRow{FailureCause::kPoolUnknown, "Leave pool out, or choose another cluster."},
    CauseRow{FailureCause::kNodesTooSmall,
             "Ask for fewer CPUs, less memory or fewer GPUs on each node, or use another "
             "partition."},
    CauseRow{FailureCause::kRolesLead,
             "Let no role lead, or choose a cluster with a newer Kubernetes."},
    CauseRow{
        FailureCause::kScriptOnNodes,
        "Give it one node (sbatch --nodes=1), or submit a command, which Muster starts on each "
        "node."},
    CauseRow{FailureCause::kSlurmOption, "Correct the option of Slurm that it names."},
    CauseRow{FailureCause::kMachineFull,
             "Free disk space on the machine and submit the job again."},
    CauseRow{FailureCause::kAgentFull,
             "Free disk space on the agent's machine and submit the job again."},
    CauseRow{FailureCause::kUploadGone,
             "Submit the job again from where its files are: what the broker lacks is uploaded."},
    CauseRow{FailureCause::kUploadInvalid,
             "Correct the job, or what it brings along, and submit it again."},
    CauseRow{FailureCause::kTooManyUploads,
             "Bring less along, or choose a cluster of Slurm or machines."},
    CauseRow{FailureCause::kResultsNameTaken,
             "Name another results_directory, or that file otherwise."},
    CauseRow{FailureCause::kMountPath, "Use a path without ':', ',' and line breaks."},
    CauseRow{
        FailureCause::kMountSource,
        "Correct mounts, or have the cluster's operator look at the agent's container_mounts."},
    CauseRow{FailureCause::kMissingInNamespace, "Make it in the run's namespace, or name another."},
    CauseRow{FailureCause::kClaimUnbound,
             "Give it a volume, or make it anew with a storage class (kubectl get storageclass)."},
    CauseRow{FailureCause::kHostLacksData, "Correct the job, or put its data onto every host."},
    CauseRow{FailureCause::kHostRefused,
             "Free disk space there if that is wanting, or cordon the host in the file of hosts; "
             "then submit the job again."},
    CauseRow{FailureCause::kHostUnfit,
             "Repair the host, or cordon it in the file of hosts; then submit the job again."},
    CauseRow{FailureCause::kHostGone,
             "See to the host; what it still has of the run is ended when it answers again. Then "
             "submit the job again."},
    CauseRow{FailureCause::kNoContainerTool,
             "Have its operator install podman, docker, enroot or apptainer, or choose another "
             "cluster."},
    CauseRow{FailureCause::kNoPyxis,
             "Use another cluster, or have its operator install Pyxis and enroot."},
    CauseRow{FailureCause::kNoEnroot,
             "Use another cluster, or have its operator install enroot and Pyxis."},
    CauseRow{FailureCause::kNoBash, "Use an image that has bash."},
    CauseRow{FailureCause::kEntrypointEnded,
             "Use an image whose entrypoint runs what it is given, or leave "
             "slurm.container.entrypoint out."},
    CauseRow{FailureCause::kEnrootBroken, "Tell the cluster's operator."},
    CauseRow{FailureCause::kNodeSaysWhy,
             "Check the image; if the words of its node do not help, tell the cluster's operator."},
    CauseRow{FailureCause::kCrashLoop,
             "Muster has not put it into the pod. Read why it ends while the pod is there (kubectl "
             "logs POD -c CONTAINER --previous, in the run's namespace), and have whoever adds it "
             "mend it, or leave such pods out."},
    CauseRow{FailureCause::kImageInvalid, "Correct the image."},
    CauseRow{FailureCause::kImageIsFile, "Name an image of a registry."},
    CauseRow{FailureCause::kSlurmCredentials,
             "Check the image's name. If it is private, have the cluster's operator install "
             "credentials, or renew them: muster-agent --config FILE install-credentials REGISTRY "
             "USER, with the secret on standard input. It puts them into "
             "~/.config/enroot/.credentials of the agent's user."},
    CauseRow{FailureCause::kRegistryFull, "Submit the job again later."},
    CauseRow{FailureCause::kRegistryUnheard,
             "Check the registry's name; if it is right, the cluster's nodes cannot reach it: tell "
             "the cluster's operator."},
    CauseRow{FailureCause::kRegistryFails,
             "Submit the job again later; if it lasts, tell the cluster's operator: its nodes "
             "cannot have images from this registry."},
    CauseRow{FailureCause::kPullSecret,
             "Check the image's name, and that the namespace has a pull secret for its registry."},
    CauseRow{FailureCause::kSlurmDiskFull,
             "Tell the cluster's operator: the directory of the images, or the node's disk, is "
             "full."},
    CauseRow{FailureCause::kNodeDiskFull,
             "Tell the cluster's operator that the node has no room for images; on another node "
             "the job may run."},
    CauseRow{FailureCause::kNoSquashfs, "Convert the image again."},
    CauseRow{FailureCause::kImageFileMissing, "Check its path, and that the compute nodes see it."},
    CauseRow{FailureCause::kConversionStopped,
             "Submit the job again; if it comes to its time limit, have the cluster's operator "
             "raise the agent's conversion_time_limit."},
    CauseRow{FailureCause::kConversionTimeLimit,
             "Have the cluster's operator raise the agent's conversion_time_limit, and submit the "
             "job again."},
    CauseRow{FailureCause::kConversionMemory,
             "Have the cluster's operator raise the agent's slurm.conversion_memory, and submit "
             "the job again."},
    CauseRow{FailureCause::kConversionKilled,
             "Submit the job again; if it is killed again, its node may have run out of memory: "
             "have the cluster's operator look at the agent's slurm.conversion_memory."},
    CauseRow{FailureCause::kConversionRefused,
             "Have the cluster's operator look at the conversion_* settings of its agent."},
};

}  // namespace

std::string_view RemedyFor(FailureCause cause) {
  const auto* found = std::find_if(kCauseRows.begin(), kCauseRows.end(),
                                   [&](const CauseRow& row) { return row.cause == cause; });
  return found == kCauseRows.end() ? std::string_view() : found->remedy;
}

}  // namespace muster::contract
