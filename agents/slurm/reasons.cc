#include "agents/slurm/reasons.h"

#include <algorithm>
#include <array>

#include "fmt/format.h"

namespace muster::slurm {
namespace {

// The list of reasons grows with every version of Slurm, in families: the first row whose
// beginning, middle and end all fit is taken, so narrow rows come before wide ones.
struct Row {
  std::string_view begins;
  std::string_view contains;
  std::string_view ends;
  std::string_view meaning;
  std::string_view remedy;  // empty: nothing but to wait
};

constexpr std::array kRows = {
    Row{"Priority", "", "", "other jobs are ahead in the queue", ""},
    Row{"Resources", "", "", "waiting for free nodes, first in line", ""},
    Row{"DependencyNeverSatisfied", "", "", "waits for a job that will never end as it should",
        "cancel it"},
    Row{"Dependency", "", "", "waiting for another job to end", ""},
    Row{"BeginTime", "", "", "its start time has not come; a requeued job is held back for a while",
        ""},
    Row{"DeadLine", "", "", "it can no longer end before its deadline",
        "cancel it and submit it without one"},
    Row{"JobArrayTaskLimit", "", "", "the array's limit of tasks at the same time is reached", ""},
    Row{"Licenses", "", "", "waiting for a license", ""},
    Row{"Cleaning", "", "", "Slurm is still cleaning up after its previous run", ""},
    Row{"Prolog", "", "", "the node's prolog is running", ""},
    Row{"JobHeldUser", "", "", "held by its user", "let it go on with muster release"},
    // Also what an agent that runs as root, or as an operator of Slurm's, has held for its user.
    Row{"JobHeldAdmin", "", "", "held in the name of an administrator",
        "muster release, if muster held it; else ask them"},
    Row{"JobHoldMaxRequeue", "", "", "requeued too often and held",
        "look at why it fails to start, then cancel it"},
    Row{"launch failed requeued held", "", "", "its launch failed and Slurm holds it",
        "ask an administrator, or cancel it"},
    Row{"launch_failed_requeued_held", "", "", "its launch failed and Slurm holds it",
        "ask an administrator, or cancel it"},
    Row{"job requeued in held state", "", "", "requeued and held",
        "let it go on with muster release, or cancel it"},
    Row{"ReqNodeNotAvail", "", "", "a node that it needs is down, drained or reserved", ""},
    Row{"NodeDown", "", "", "a node that it needs is down", ""},
    Row{"FrontEndDown", "", "", "the front end that it needs is down", ""},
    Row{"ReservationDeleted", "", "", "its reservation was deleted", "cancel it"},
    Row{"ReservationInvalid", "", "", "its reservation is not valid", "cancel it"},
    Row{"Reservation", "", "", "waiting for its reservation to begin", ""},
    Row{"PartitionDown", "", "", "its partition is down", ""},
    Row{"PartitionInactive", "", "", "its partition takes no jobs now", ""},
    Row{"PartitionNodeLimit", "", "",
        "it wants more nodes than its partition gives, or too many are down",
        "if it stays so, cancel it and ask for less"},
    Row{"PartitionTimeLimit", "", "",
        "its time limit is above its partition's and it will never start",
        "cancel it and ask for less time"},
    Row{"PartitionConfig", "", "", "its partition cannot hold it and it will never start",
        "cancel it and ask for less"},
    Row{"AccountNotAllowed", "", "", "its account may not use the partition",
        "cancel it and use another account or partition"},
    Row{"AccountingPolicy", "", "", "a limit of its account or QOS is reached", ""},
    Row{"QOSNotAllowed", "", "", "its QOS may not be used in the partition",
        "cancel it and use another QOS or partition"},
    Row{"InvalidAccount", "", "", "its account is not valid", "cancel it and use another account"},
    Row{"InvalidQOS", "", "", "its QOS is not valid", "cancel it and use another QOS"},
    Row{"BadConstraints", "", "", "no node can ever satisfy it", "cancel it and ask for less"},
    Row{"Constraints", "", "", "no node satisfies its constraints now", ""},
    Row{"QOSGrp", "RunMinutes", "",
        "the running jobs of those who share its QOS may use all that it allows",
        "it starts when some end"},
    Row{"AssocGrp", "RunMinutes", "",
        "the running jobs of those who share its account may use all that it allows",
        "it starts when some end"},
    Row{"QOSGrp", "Minutes", "", "the budget of its QOS is used up",
        "use another QOS, or ask who grants it"},
    Row{"AssocGrp", "Minutes", "", "the budget of its account is used up",
        "use another account, or ask who grants it"},
    Row{"QOSGrpWall", "", "", "the budget of its QOS is used up",
        "use another QOS, or ask who grants it"},
    Row{"AssocGrpWall", "", "", "the budget of its account is used up",
        "use another account, or ask who grants it"},
    Row{"QOSUsageThreshold", "", "", "its account has used more than the QOS allows",
        "use another QOS, or wait until the usage has decayed"},
    Row{"QOSGrp", "", "", "those who share its QOS use all that it allows",
        "it starts when they free some"},
    Row{"AssocGrp", "", "", "those who share its account use all that it allows",
        "it starts when they free some"},
    Row{"QOSMax", "PerUser", "", "its user's other jobs use all that the QOS allows one user", ""},
    Row{"QOSMax", "PerAccount", "",
        "its account's other jobs use all that the QOS allows one account", ""},
    Row{"Max", "", "PerAccount", "its account's other jobs use all that the QOS allows one account",
        ""},
    Row{"QOSMin", "", "", "it asks for less than the QOS demands", "cancel it and ask for more"},
    Row{"QOSMax", "", "", "it asks for more than the QOS allows one job",
        "cancel it and ask for less"},
    Row{"QOSTimeLimit", "", "", "its time limit is above its QOS's",
        "cancel it and ask for less time"},
    Row{"QOS", "", "Limit", "a limit of its QOS is reached", ""},
    Row{"AssocMax", "Job", "sLimit",
        "its user's other jobs use all that the account allows one user", ""},
    Row{"AssocMaxSubmitJob", "", "",
        "its user's other jobs use all that the account allows one user", ""},
    Row{"AssocMax", "", "", "it asks for more than the account allows one job",
        "cancel it and ask for less"},
    Row{"AssociationTimeLimit", "", "", "its time limit is above its account's",
        "cancel it and ask for less time"},
    Row{"Association", "", "Limit", "a limit of its account is reached", ""},
    Row{"MaxMemPerLimit", "", "", "it asks for more memory than is allowed",
        "cancel it and ask for less"},
    Row{"MaxPoweredUpNodes", "", "", "as many nodes are powered up as the cluster allows", ""},
    Row{"SchedDefer", "", "", "scheduling is put off for a moment", ""},
    Row{"BurstBuffer", "", "", "waiting for the burst buffer", ""},
    Row{"FedJobLock", "", "", "the clusters of the federation are agreeing on where it runs", ""},
    Row{"MpiPortsBusy", "", "", "waiting for free ports for MPI", ""},
    Row{"NvidiaImexChannels", "", "", "waiting for a free channel between GPUs of several nodes",
        ""},
    Row{"PowerNotAvail", "", "", "the cluster has no electric power to spare for it", ""},
    Row{"PowerReserved", "", "", "the electric power that it needs is reserved", ""},
    Row{"BlockMaxError", "", "", "the nodes that it needs have had too many errors",
        "ask an administrator"},
    Row{"BlockFreeAction", "", "", "the nodes that it needs are being freed", ""},
    Row{"NonZeroExitCode", "", "", "the batch script ended with a code other than 0", ""},
    Row{"RaisedSignal", "", "", "a signal ended the batch script", ""},
    Row{"TimeLimit", "", "", "it was stopped at its time limit", ""},
    Row{"OutOfMemory", "", "", "it used more memory than it had", ""},
    Row{"InactiveLimit", "", "", "it was stopped because it did nothing for too long", ""},
    Row{"JobLaunchFailure", "", "", "the batch script could not be started, or a signal ended it",
        ""},
    Row{"SystemFailure", "", "", "Slurm itself failed", ""},
};

const Row* Find(std::string_view reason) {
  const auto found = std::find_if(kRows.begin(), kRows.end(), [&](const Row& row) {
    return reason.starts_with(row.begins) && reason.ends_with(row.ends) &&
           reason.find(row.contains) != std::string_view::npos;
  });
  return found == kRows.end() ? nullptr : &*found;
}

}  // namespace

std::string_view MeaningOfReason(std::string_view reason) {
  const Row* row = Find(reason);
  return row == nullptr ? std::string_view() : row->meaning;
}

std::string_view RemedyOfReason(std::string_view reason) {
  const Row* row = Find(reason);
  return row == nullptr ? std::string_view() : row->remedy;
}

std::string ExplainReason(std::string_view reason) {
  if (reason.empty() || reason == "None") return {};
  const Row* row = Find(reason);
  if (row == nullptr) return std::string(reason);
  return fmt::format("{}{}{} ({})", row->meaning, row->remedy.empty() ? "" : ": ", row->remedy,
                     reason);
}

}  // namespace muster::slurm
