#include "contract/slurm_refusals.h"

#include <algorithm>
#include <array>
#include <string>

#include "contract/failures.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

constexpr v1::FailureClass kRefused = v1::FAILURE_CLASS_CONFIG;
constexpr v1::FailureClass kInfra = v1::FAILURE_CLASS_INFRA;

// The text is Slurm's (slurm_errno.c); the first row that fits is taken.
constexpr std::array kRefusals = {
    SlurmRefusal{
        "Job violates accounting/QOS policy", kRefused, "it is over a limit of its account or QOS",
        "Ask for less, wait until other jobs have ended, or use another QOS (slurm.qos, --qos)."},
    SlurmRefusal{
        "Invalid account or account/partition combination", kRefused,
        "the account does not exist, or its user may not use it there",
        "Set slurm.account (--account) to an account of yours (sacctmgr show associations)."},
    SlurmRefusal{"Invalid partition name", kRefused, "there is no such partition",
                 "Set pool (--pool; --partition of sbatch) to one that `muster clusters` shows."},
    SlurmRefusal{"No partition specified or system default partition", kRefused,
                 "the cluster has no default partition",
                 "Set pool (--pool; --partition of sbatch) to one that `muster clusters` shows."},
    SlurmRefusal{"Requested time limit is invalid", kRefused,
                 "the time limit is above what the partition allows",
                 "Set a lower time (--time), or use a partition that allows more."},
    SlurmRefusal{
        "Requested node configuration is not available", kRefused, "no node is like that",
        "Ask for fewer CPUs, less memory or fewer GPUs on each node, or use another partition."},
    SlurmRefusal{"Requested partition configuration not available now", kRefused,
                 "the partition cannot hold it now", "Ask for less, or use another partition."},
    SlurmRefusal{"Invalid generic resource", kRefused, "the cluster has no such GPUs",
                 "Ask for a GPU type and count that `muster clusters` shows."},
    SlurmRefusal{"Invalid Trackable RESource", kRefused, "the cluster has no such GPUs",
                 "Ask for a GPU type and count that `muster clusters` shows."},
    SlurmRefusal{"Invalid qos specification", kRefused,
                 "the QOS does not exist, or its user may not use it",
                 "Set slurm.qos (--qos) to a QOS of yours (sacctmgr show associations)."},
    SlurmRefusal{"User's group not permitted to use this partition", kRefused,
                 "its user may not use the partition",
                 "Use another partition, or ask an administrator for access."},
    SlurmRefusal{"Access/permission denied", kRefused, "its user may not do this",
                 "Ask an administrator for access."},
    SlurmRefusal{"Node count specification invalid", kRefused,
                 "the partition does not give that many nodes",
                 "Ask for fewer nodes, or use another partition."},
    SlurmRefusal{"More processors requested than permitted", kRefused,
                 "the partition does not have that many CPUs",
                 "Ask for fewer CPUs or nodes, or use another partition."},
    SlurmRefusal{"Memory required by task is not available", kRefused,
                 "no node has that much memory", "Ask for less memory, or use another partition."},
    SlurmRefusal{
        "Invalid node name specified", kRefused, "there is no such node",
        "Correct slurm.nodelist (--nodelist) or slurm.exclude (--exclude; sinfo -N shows the "
        "nodes)."},
    SlurmRefusal{"Invalid feature specification", kRefused, "no node has such a feature",
                 "Correct slurm.constraint (--constraint; sinfo -o %f shows the features)."},
    SlurmRefusal{"Requested reservation is invalid", kRefused, "the reservation does not exist",
                 "Correct slurm.reservation (--reservation; scontrol show reservation)."},
    SlurmRefusal{"Requested reservation not available", kRefused, "the reservation is not open",
                 "Correct slurm.reservation (--reservation; scontrol show reservation)."},
    SlurmRefusal{"Access denied to requested reservation", kRefused,
                 "its user may not use the reservation", "Ask who made the reservation."},
    SlurmRefusal{"Job dependency problem", kRefused, "the cluster does not take its dependency",
                 "Correct slurm.dependency (--dependency).", false, true},
    SlurmRefusal{"Invalid job name", kRefused,
                 "the cluster has a rule for job names that the run key breaks",
                 "Ask an administrator to let it through."},
    SlurmRefusal{"Pathname of a file, directory or other parameter too long", kRefused,
                 "a value is too long",
                 "Use shorter values, or ask an administrator for a shorter run_dir."},
    SlurmRefusal{"Job script too large", kRefused, "the cluster takes only small scripts",
                 "Ask an administrator to raise max_script_size."},
    SlurmRefusal{"Required partition not available (inactive or drain)", kInfra,
                 "the partition takes no jobs now", "Submit again later, or use another partition.",
                 true},
    SlurmRefusal{"System submissions disabled", kInfra, "the cluster takes no jobs now",
                 "Submit again later.", true},
    SlurmRefusal{"User's job submission is disabled", kInfra,
                 "the cluster takes no jobs of this user now", "Ask an administrator."},
    SlurmRefusal{"Circular job dependency", kRefused, "it would wait for itself",
                 "Correct slurm.dependency (--dependency).", false, true},
    SlurmRefusal{"Invalid license specification", kRefused, "the cluster has no such license",
                 "Correct slurm.licenses (--licenses; scontrol show licenses)."},
    SlurmRefusal{"Requested reservation", kRefused, "the reservation cannot be used now",
                 "Correct slurm.reservation (--reservation; scontrol show reservation)."},
    SlurmRefusal{"Requested nodes not in this partition", kRefused,
                 "the nodes that it names are not in the partition",
                 "Correct slurm.nodelist (--nodelist), or use their partition."},
    SlurmRefusal{"Required node not available", kInfra, "a node that it names is down or reserved",
                 "Submit again later, or correct slurm.nodelist (--nodelist).", true},
    SlurmRefusal{"CPU count specification invalid", kRefused,
                 "the cluster cannot give CPUs like that",
                 "Ask for another number of CPUs or tasks."},
    SlurmRefusal{"Task count specification invalid", kRefused,
                 "the cluster cannot start tasks like that",
                 "Correct slurm.tasks_per_node (--ntasks-per-node)."},
    SlurmRefusal{"Task distribution specification invalid", kRefused,
                 "the cluster does not spread tasks like that",
                 "Correct --distribution (slurm.extra_options).", false, true},
    SlurmRefusal{"Requested more tasks than available processors", kRefused,
                 "there are fewer CPUs than tasks", "Ask for fewer tasks on each node."},
    SlurmRefusal{"Job size specification needs to be provided", kRefused,
                 "the cluster wants to know the job's size",
                 "Set nodes (--nodes) and resources (--cpus-per-task, --mem)."},
    SlurmRefusal{"Duplicate generic resource", kRefused, "it asks for the same resource twice",
                 "Correct slurm.gres (--gres).", false, true},
    SlurmRefusal{"Invalid GRES specification", kRefused,
                 "it asks for GPUs with a type and for others without",
                 "Name the type of all of them, or of none.", false, true},
    SlurmRefusal{"Requested GRES option unsupported", kRefused,
                 "the cluster cannot share out GPUs like that",
                 "Correct --gres-flags (slurm.extra_options)."},
    SlurmRefusal{"Invalid preferred feature", kRefused, "no node has such a feature",
                 "Correct --prefer (slurm.extra_options; sinfo -o %f shows the features)."},
    SlurmRefusal{"Job --batch option is invalid", kRefused,
                 "its --batch is no part of its constraint",
                 "Correct --batch (slurm.extra_options).", false, true},
    SlurmRefusal{"Invalid time-min specification", kRefused,
                 "its least time is above its time limit",
                 "Correct --time-min (slurm.extra_options) or --time (time).", false, true},
    SlurmRefusal{"Requested account has breached requested QOS usage threshold", kRefused,
                 "its account has used more than the QOS allows",
                 "Use another QOS (slurm.qos, --qos), or wait until the usage has decayed."},
    SlurmRefusal{"Multiple partition job request not supported", kRefused,
                 "its account takes no list of partitions", "Name one partition."},
    SlurmRefusal{"Burst Buffer", kRefused, "the burst buffer is not given to it",
                 "Correct --bb or --bbf (slurm.extra_options), or ask an administrator."},
    SlurmRefusal{
        "Requested operation not supported on this system", kRefused,
        "the cluster lacks what it asks for",
        "Leave out options that few clusters have (--switches, --bb; slurm.extra_options)."},
    SlurmRefusal{"Requested operation is presently disabled", kInfra,
                 "the cluster has switched off what it asks for", "Submit again later.", true},
    SlurmRefusal{"I/O error writing script/environment to file", kInfra,
                 "slurmctld could not write the script to its disk",
                 "Tell the cluster's operator; submit again later.", true},
    SlurmRefusal{"Unable to create job record, try again", kInfra, "slurmctld is full",
                 "Submit again later.", true},
    SlurmRefusal{"Job can not start due to maintenance reservation", kInfra,
                 "the cluster is reserved for maintenance", "Submit again later.", true},
    SlurmRefusal{"Slurm internal error", kInfra, "Slurm itself failed",
                 "Tell the cluster's operator.", true},
};

// Says what to do about a refusal, and about the limit that it is for.
std::string_view RemedyOf(const SlurmRefusal& refusal, const v1::StateReason& limit) {
  if (IsFullForNow(limit))
    return "Wait until other jobs have ended, or use another QOS or account (slurm.qos, --qos; "
           "slurm.account, --account).";
  if (limit.code() == v1::STATE_REASON_CODE_CANNOT_START)
    return "Ask for less, or use another QOS or account (slurm.qos, --qos; slurm.account, "
           "--account); sacctmgr show qos and sacctmgr show associations tell the limits.";
  return refusal.remedy;
}

}  // namespace

const SlurmRefusal* FindSlurmRefusal(std::string_view words) {
  const auto found = std::find_if(kRefusals.begin(), kRefusals.end(), [&](const SlurmRefusal& row) {
    return words.starts_with(row.text);
  });
  return found == kRefusals.end() ? nullptr : &*found;
}

bool IsFullForNow(const v1::StateReason& limit) {
  return limit.scheduler_reason().find("SubmitJob") != std::string::npos;
}

v1::Failure RefusedBySlurm(const SlurmRefusal& refusal, std::string_view words,
                           const v1::StateReason& limit) {
  const std::string& over = limit.message();
  v1::Failure failure = MakeFailure(
      v1::FAILURE_CODE_LAUNCH_REFUSED, refusal.failure_class,
      {.detail = std::string(words),
       .meaning = fmt::format("{}{}{}", refusal.meaning, over.empty() ? "" : ": ", over),
       .is_retriable = refusal.retriable || IsFullForNow(limit)});
  failure.set_remedy(std::string(RemedyOf(refusal, limit)));
  return failure;
}

}  // namespace muster::contract
