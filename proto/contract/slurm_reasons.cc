#include "contract/slurm_reasons.h"

#include <algorithm>
#include <array>

#include "fmt/format.h"

namespace muster::contract {
namespace {

// The list of reasons grows with every version of Slurm, in families: the first row whose
// beginning, middle and end all fit is taken, so narrow rows come before wide ones.
struct Row {
  v1::StateReasonCode code;
  std::string_view begins;
  std::string_view contains;
  std::string_view ends;
  std::string_view meaning;
  std::string_view remedy;  // empty: nothing but to wait
};

constexpr std::array kRows = {
    Row{v1::STATE_REASON_CODE_WAITS_FOR_TURN, "Priority", "", "",
        "other jobs are ahead in the queue", ""},
    Row{v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES, "Resources", "", "",
        "waiting for free nodes, first in line", ""},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "DependencyNeverSatisfied", "", "",
        "waits for a job that will never end as it should", "cancel it"},
    Row{v1::STATE_REASON_CODE_DEPENDENCY, "Dependency", "", "", "waiting for another job to end",
        ""},
    Row{v1::STATE_REASON_CODE_BEGIN_TIME, "BeginTime", "", "",
        "its start time has not come; a requeued job is held back for a while", ""},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "DeadLine", "", "",
        "it can no longer end before its deadline", "cancel it and submit it without one"},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "JobArrayTaskLimit", "", "",
        "the array's limit of tasks at the same time is reached", ""},
    Row{v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES, "Licenses", "", "", "waiting for a license", ""},
    Row{v1::STATE_REASON_CODE_WAITS_IN_CLUSTER, "Cleaning", "", "",
        "Slurm is still cleaning up after its previous run", ""},
    Row{v1::STATE_REASON_CODE_LAUNCHING, "Prolog", "", "", "the node's prolog is running", ""},
    Row{v1::STATE_REASON_CODE_HELD, "JobHeldUser", "", "", "held by its user",
        "let it go on with muster release"},
    // Also what an agent that runs as root, or as an operator of Slurm's, has held for its user.
    Row{v1::STATE_REASON_CODE_HELD, "JobHeldAdmin", "", "", "held in the name of an administrator",
        "muster release, if muster held it; else ask them"},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "JobHoldMaxRequeue", "", "",
        "requeued too often and held", "look at why it fails to start, then cancel it"},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "launch failed requeued held", "", "",
        "its launch failed and Slurm holds it", "ask an administrator, or cancel it"},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "launch_failed_requeued_held", "", "",
        "its launch failed and Slurm holds it", "ask an administrator, or cancel it"},
    Row{v1::STATE_REASON_CODE_HELD, "job requeued in held state", "", "", "requeued and held",
        "let it go on with muster release, or cancel it"},
    Row{v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES, "ReqNodeNotAvail", "", "",
        "a node that it needs is down, drained or reserved", ""},
    Row{v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES, "NodeDown", "", "",
        "a node that it needs is down", ""},
    Row{v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES, "FrontEndDown", "", "",
        "the front end that it needs is down", ""},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "ReservationDeleted", "", "",
        "its reservation was deleted", "cancel it"},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "ReservationInvalid", "", "",
        "its reservation is not valid", "cancel it"},
    Row{v1::STATE_REASON_CODE_BEGIN_TIME, "Reservation", "", "",
        "waiting for its reservation to begin", ""},
    Row{v1::STATE_REASON_CODE_POOL_UNAVAILABLE, "PartitionDown", "", "", "its partition is down",
        ""},
    Row{v1::STATE_REASON_CODE_POOL_UNAVAILABLE, "PartitionInactive", "", "",
        "its partition takes no jobs now", ""},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "PartitionNodeLimit", "", "",
        "it wants more nodes than its partition gives, or too many are down",
        "if it stays so, cancel it and ask for less"},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "PartitionTimeLimit", "", "",
        "its time limit is above its partition's and it will never start",
        "cancel it and ask for less time"},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "PartitionConfig", "", "",
        "its partition cannot hold it and it will never start", "cancel it and ask for less"},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "AccountNotAllowed", "", "",
        "its account may not use the partition", "cancel it and use another account or partition"},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "AccountingPolicy", "", "",
        "a limit of its account or QOS is reached", ""},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "QOSNotAllowed", "", "",
        "its QOS may not be used in the partition", "cancel it and use another QOS or partition"},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "InvalidAccount", "", "", "its account is not valid",
        "cancel it and use another account"},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "InvalidQOS", "", "", "its QOS is not valid",
        "cancel it and use another QOS"},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "BadConstraints", "", "", "no node can ever satisfy it",
        "cancel it and ask for less"},
    Row{v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES, "Constraints", "", "",
        "no node satisfies its constraints now", ""},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "QOSGrp", "RunMinutes", "",
        "the running jobs of those who share its QOS may use all that it allows",
        "it starts when some end"},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "AssocGrp", "RunMinutes", "",
        "the running jobs of those who share its account may use all that it allows",
        "it starts when some end"},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "QOSGrp", "Minutes", "",
        "the budget of its QOS is used up", "use another QOS, or ask who grants it"},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "AssocGrp", "Minutes", "",
        "the budget of its account is used up", "use another account, or ask who grants it"},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "QOSGrpWall", "", "",
        "the budget of its QOS is used up", "use another QOS, or ask who grants it"},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "AssocGrpWall", "", "",
        "the budget of its account is used up", "use another account, or ask who grants it"},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "QOSUsageThreshold", "", "",
        "its account has used more than the QOS allows",
        "use another QOS, or wait until the usage has decayed"},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "QOSGrp", "", "",
        "those who share its QOS use all that it allows", "it starts when they free some"},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "AssocGrp", "", "",
        "those who share its account use all that it allows", "it starts when they free some"},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "QOSMax", "PerUser", "",
        "its user's other jobs use all that the QOS allows one user", ""},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "QOSMax", "PerAccount", "",
        "its account's other jobs use all that the QOS allows one account", ""},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "Max", "", "PerAccount",
        "its account's other jobs use all that the QOS allows one account", ""},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "QOSMin", "", "",
        "it asks for less than the QOS demands", "cancel it and ask for more"},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "QOSMax", "", "",
        "it asks for more than the QOS allows one job", "cancel it and ask for less"},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "QOSTimeLimit", "", "",
        "its time limit is above its QOS's", "cancel it and ask for less time"},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "QOS", "", "Limit", "a limit of its QOS is reached",
        ""},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "AssocMax", "Job", "sLimit",
        "its user's other jobs use all that the account allows one user", ""},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "AssocMaxSubmitJob", "", "",
        "its user's other jobs use all that the account allows one user", ""},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "AssocMax", "", "",
        "it asks for more than the account allows one job", "cancel it and ask for less"},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "AssociationTimeLimit", "", "",
        "its time limit is above its account's", "cancel it and ask for less time"},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "Association", "", "Limit",
        "a limit of its account is reached", ""},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "MaxMemPerLimit", "", "",
        "it asks for more memory than is allowed", "cancel it and ask for less"},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "MaxPoweredUpNodes", "", "",
        "as many nodes are powered up as the cluster allows", ""},
    Row{v1::STATE_REASON_CODE_WAITS_IN_CLUSTER, "SchedDefer", "", "",
        "scheduling is put off for a moment", ""},
    Row{v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES, "BurstBuffer", "", "",
        "waiting for the burst buffer", ""},
    Row{v1::STATE_REASON_CODE_WAITS_IN_CLUSTER, "FedJobLock", "", "",
        "the clusters of the federation are agreeing on where it runs", ""},
    Row{v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES, "MpiPortsBusy", "", "",
        "waiting for free ports for MPI", ""},
    Row{v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES, "NvidiaImexChannels", "", "",
        "waiting for a free channel between GPUs of several nodes", ""},
    Row{v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES, "PowerNotAvail", "", "",
        "the cluster has no electric power to spare for it", ""},
    Row{v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES, "PowerReserved", "", "",
        "the electric power that it needs is reserved", ""},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "BlockMaxError", "", "",
        "the nodes that it needs have had too many errors", "ask an administrator"},
    Row{v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES, "BlockFreeAction", "", "",
        "the nodes that it needs are being freed", ""},
    Row{v1::STATE_REASON_CODE_OTHER, "NonZeroExitCode", "", "",
        "the batch script ended with a code other than 0", ""},
    Row{v1::STATE_REASON_CODE_OTHER, "RaisedSignal", "", "", "a signal ended the batch script", ""},
    Row{v1::STATE_REASON_CODE_OTHER, "TimeLimit", "", "", "it was stopped at its time limit", ""},
    Row{v1::STATE_REASON_CODE_OTHER, "OutOfMemory", "", "", "it used more memory than it had", ""},
    Row{v1::STATE_REASON_CODE_OTHER, "InactiveLimit", "", "",
        "it was stopped because it did nothing for too long", ""},
    Row{v1::STATE_REASON_CODE_OTHER, "JobLaunchFailure", "", "",
        "the batch script could not be started, or a signal ended it", ""},
    Row{v1::STATE_REASON_CODE_OTHER, "SystemFailure", "", "", "Slurm itself failed", ""},
};

const Row* Find(std::string_view reason) {
  const auto found = std::find_if(kRows.begin(), kRows.end(), [&](const Row& row) {
    return reason.starts_with(row.begins) && reason.ends_with(row.ends) &&
           reason.find(row.contains) != std::string_view::npos;
  });
  return found == kRows.end() ? nullptr : &*found;
}

std::string MeaningOf(const Row& row, std::string_view word) {
  return fmt::format("{} ({})", row.meaning, word);
}

}  // namespace

std::string ExplainSlurmReason(std::string_view word) {
  if (word.empty() || word == "None") return {};
  const Row* row = Find(word);
  if (row == nullptr) return std::string(word);
  return MeaningOf(*row, word) + (row->remedy.empty() ? "" : fmt::format("; {}", row->remedy));
}

v1::StateReason SlurmReason(std::string_view word) {
  if (word.empty() || word == "None") return {};
  v1::StateReason reason;
  reason.set_scheduler_reason(std::string(word));
  const Row* row = Find(word);
  reason.set_code(row == nullptr ? v1::STATE_REASON_CODE_OTHER : row->code);
  reason.set_message(row == nullptr ? std::string(word) : MeaningOf(*row, word));
  if (row != nullptr) reason.set_remedy(std::string(row->remedy));
  return reason;
}

}  // namespace muster::contract
