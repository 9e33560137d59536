#include "contract/slurm_reasons.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

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

constexpr std::string_view kWhenOthersEnd =
    "it starts when some of them end; if none of them runs, it alone is over the limit: cancel it "
    "and ask for less";
constexpr std::string_view kOtherPartition =
    "cancel it and use another account (slurm.account, --account) or partition (pool, "
    "--partition)";
constexpr std::string_view kOtherQos =
    "cancel it and ask for less, or use another QOS (slurm.qos, --qos); sacctmgr show qos tells "
    "the "
    "limits";
constexpr std::string_view kOtherAccount =
    "cancel it and ask for less, or use another account (slurm.account, --account); sacctmgr show "
    "associations tells the limits";

// "{}" in a meaning is what there is too much of.
constexpr std::array kRows = {
    Row{v1::STATE_REASON_CODE_WAITS_FOR_TURN, "Priority", "", "",
        "other jobs are ahead in the queue", ""},
    Row{v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES, "Resources", "", "",
        "waiting for free nodes, first in line", ""},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "DependencyNeverSatisfied", "", "",
        "waits for a job that can no longer fulfil the dependency", "cancel it"},
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
    // This is also the reason of a job that an agent, as root or as an operator of Slurm's, has
    // held for its user.
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
        "its partition cannot hold it or is closed to its account, and it will never start",
        "cancel it and ask for less, or use another account (slurm.account, --account) or "
        "partition "
        "(pool, --partition)"},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "AccountNotAllowed", "", "",
        "its account may not use the partition", kOtherPartition},
    // Slurm writes these out, with the names behind them.
    Row{v1::STATE_REASON_CODE_CANNOT_START, "Job's account not permitted", "", "",
        "its account may not use the partition", kOtherPartition},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "Job's QOS not permitted", "", "",
        "its QOS may not be used in the partition",
        "cancel it and use another QOS (slurm.qos, --qos) or partition (pool, "
        "--partition)"},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "User's group not permitted", "", "",
        "its user may not use the partition",
        "cancel it and use another partition (pool, --partition)"},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "uid ", "not in group permitted", "",
        "its user may not use the partition",
        "cancel it and use another partition (pool, --partition)"},
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
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "QOSGrp", "Jobs", "",
        "those who share its QOS have as many jobs as it allows", "it starts when one ends"},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "AssocGrp", "Jobs", "",
        "those who share its account have as many jobs as it allows", "it starts when one ends"},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "QOSGrp", "", "",
        "with the jobs of those who share its QOS it asks for more {} than that allows",
        kWhenOthersEnd},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "AssocGrp", "", "",
        "with the jobs of those who share its account it asks for more {} than that allows",
        kWhenOthersEnd},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "QOSMax", "JobsPerUser", "",
        "its user has as many jobs as the QOS allows one user", "it starts when one ends"},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "QOSMax", "JobPerUser", "",
        "its user has as many jobs as the QOS allows one user", "it starts when one ends"},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "QOSMax", "PerUser", "",
        "with its user's other jobs it asks for more {} than the QOS allows one user",
        kWhenOthersEnd},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "Max", "Jobs", "PerAccount",
        "its account has as many jobs as the QOS allows one account", "it starts when one ends"},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "Max", "", "PerAccount",
        "with its account's other jobs it asks for more {} than the QOS allows one account",
        kWhenOthersEnd},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "QOSMin", "", "",
        "it asks for less than the QOS demands", "cancel it and ask for more"},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "QOSMax", "PerNode", "",
        "the job itself asks for more {} on a node than its QOS allows", kOtherQos},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "QOSMax", "", "",
        "the job itself asks for more {} than its QOS allows one job", kOtherQos},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "QOSTimeLimit", "", "",
        "the job itself asks for more time than its QOS allows", kOtherQos},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "QOS", "", "Limit", "a limit of its QOS is reached",
        ""},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "AssocMaxJobs", "", "",
        "its user's other jobs are as many as the account allows one user",
        "it starts when one ends"},
    Row{v1::STATE_REASON_CODE_LIMIT_REACHED, "AssocMaxSubmitJob", "", "",
        "its user's other jobs are as many as the account allows one user", ""},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "AssocMax", "PerNode", "",
        "the job itself asks for more {} on a node than its account allows", kOtherAccount},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "AssocMax", "", "",
        "the job itself asks for more {} than its account allows one job", kOtherAccount},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "AssociationTimeLimit", "", "",
        "the job itself asks for more time than its account allows", kOtherAccount},
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

// Limits on the jobs of several that one job can be over by itself.
constexpr std::array kAloneRows = {
    Row{v1::STATE_REASON_CODE_CANNOT_START, "QOSMax", "PerUser", "",
        "the job itself asks for more {} than its QOS allows one user", kOtherQos},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "Max", "", "PerAccount",
        "the job itself asks for more {} than its QOS allows one account", kOtherQos},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "QOSGrp", "", "",
        "the job itself asks for more {} than its QOS allows all who share it", kOtherQos},
    Row{v1::STATE_REASON_CODE_CANNOT_START, "AssocGrp", "", "",
        "the job itself asks for more {} than its account allows all who share it", kOtherAccount},
};

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

template <typename Rows>
const Row* FindIn(const Rows& rows, std::string_view reason) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
    return reason.starts_with(row.begins) && reason.ends_with(row.ends) &&
           Has(reason, row.contains);
  });
  return found == rows.end() ? nullptr : &*found;
}

const Row* Find(std::string_view reason) { return FindIn(kRows, reason); }

// Names what a limit of this name is on. Those on minutes are products, so they come first.
std::string_view AmountOf(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kAmounts = {
      {{"Minutes", "resource minutes"},
       {"Wall", "time"},
       {"Cpu", "CPUs"},
       {"CPU", "CPUs"},
       {"Mem", "memory"},
       {"GRES", "GPUs or other generic resources"},
       {"License", "licenses"},
       {"BB", "burst buffer"},
       {"Billing", "billable resources"},
       {"Energy", "energy"},
       {"Node", "nodes"}}};
  const std::string_view whose = word.substr(0, word.rfind("Per"));
  for (const auto& [part, amount] : kAmounts) {
    if (Has(whose, part)) return amount;
  }
  return "of a resource";
}

std::string MeaningOf(const Row& row, std::string_view word) {
  constexpr std::string_view kAmount = "{}";
  std::string meaning(row.meaning);
  if (const size_t at = meaning.find(kAmount); at != std::string::npos)
    meaning.replace(at, kAmount.size(), AmountOf(word));
  return fmt::format("{} ({})", meaning, word);
}

v1::StateReason ReasonOf(std::string_view word, const Row* row) {
  v1::StateReason reason;
  reason.set_scheduler_reason(std::string(word));
  reason.set_code(row == nullptr ? v1::STATE_REASON_CODE_OTHER : row->code);
  reason.set_message(row == nullptr ? std::string(word) : MeaningOf(*row, word));
  if (row != nullptr) reason.set_remedy(std::string(row->remedy));
  return reason;
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
  return ReasonOf(word, Find(word));
}

v1::StateReason SlurmReasonAlone(std::string_view word) {
  // Budgets of minutes are used up by jobs of the past.
  constexpr std::array<std::string_view, 4> kOfOthers = {"Jobs", "SubmitJob", "Minutes", "Wall"};
  const bool is_of_others = std::any_of(kOfOthers.begin(), kOfOthers.end(),
                                        [&](std::string_view part) { return Has(word, part); });
  const Row* row = is_of_others ? nullptr : FindIn(kAloneRows, word);
  return row == nullptr ? SlurmReason(word) : ReasonOf(word, row);
}

}  // namespace muster::contract
