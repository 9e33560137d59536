#include "agents/slurm/reasons.h"

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
};

constexpr std::array kRows = {
    Row{"Priority", "", "", "other jobs are ahead in the queue"},
    Row{"Resources", "", "", "waiting for free nodes, first in line"},
    Row{"DependencyNeverSatisfied", "", "",
        "waits for a job that will never end as it should: cancel it"},
    Row{"Dependency", "", "", "waiting for another job to end"},
    Row{"BeginTime", "", "",
        "its start time has not come; a requeued job is held back for a while"},
    Row{"JobArrayTaskLimit", "", "", "the array's limit of tasks at the same time is reached"},
    Row{"Licenses", "", "", "waiting for a license"},
    Row{"Cleaning", "", "", "Slurm is still cleaning up after its previous run"},
    Row{"Prolog", "", "", "the node's prolog is running"},
    Row{"JobHeldUser", "", "", "held by its user: release it with scontrol release"},
    Row{"JobHeldAdmin", "", "", "held by an administrator: ask them to release it"},
    Row{"JobHoldMaxRequeue", "", "",
        "requeued too often and held: look at why it fails to start, then cancel it"},
    Row{"launch failed requeued held", "", "",
        "its launch failed and Slurm holds it: ask an administrator, or cancel it"},
    Row{"job requeued in held state", "", "",
        "requeued and held: release it with scontrol release, or cancel it"},
    Row{"ReqNodeNotAvail", "", "", "a node that it needs is down, drained or reserved"},
    Row{"NodeDown", "", "", "a node that it needs is down"},
    Row{"ReservationDeleted", "", "", "its reservation was deleted: cancel it"},
    Row{"ReservationInvalid", "", "", "its reservation is not valid: cancel it"},
    Row{"Reservation", "", "", "waiting for its reservation to begin"},
    Row{"PartitionDown", "", "", "its partition is down"},
    Row{"PartitionInactive", "", "", "its partition takes no jobs now"},
    Row{"PartitionNodeLimit", "", "",
        "it wants more nodes than its partition gives, or too many are down"},
    Row{"PartitionTimeLimit", "", "",
        "its time limit is above its partition's and it will never start: cancel it and ask for "
        "less time"},
    Row{"PartitionConfig", "", "",
        "its partition cannot hold it and it will never start: cancel it and ask for less"},
    Row{"AccountNotAllowed", "", "", "its account may not use the partition"},
    Row{"QOSNotAllowed", "", "", "its QOS may not be used in the partition"},
    Row{"InvalidAccount", "", "", "its account is not valid"},
    Row{"InvalidQOS", "", "", "its QOS is not valid"},
    Row{"BadConstraints", "", "", "no node can ever satisfy it: cancel it and ask for less"},
    Row{"Constraints", "", "", "no node satisfies its constraints now"},
    Row{"QOSGrp", "", "Minutes", "the budget of its QOS is used up"},
    Row{"AssocGrp", "", "Minutes", "the budget of its account is used up"},
    Row{"QOSGrp", "", "",
        "those who share its QOS use all that it allows: it starts when they free some"},
    Row{"AssocGrp", "", "",
        "those who share its account use all that it allows: it starts when they free some"},
    Row{"QOSMax", "PerUser", "", "its user's other jobs use all that the QOS allows one user"},
    Row{"QOSMax", "PerAccount", "",
        "its account's other jobs use all that the QOS allows one account"},
    Row{"QOSMin", "", "", "it asks for less than the QOS demands: cancel it and ask for more"},
    Row{"QOSMax", "", "",
        "it asks for more than the QOS allows one job: cancel it and ask for less"},
    Row{"AssocMax", "Jobs", "", "its user's other jobs use all that the account allows one user"},
    Row{"AssocMax", "", "",
        "it asks for more than the account allows one job: cancel it and ask for less"},
    Row{"MaxMemPerLimit", "", "",
        "it asks for more memory than is allowed: cancel it and ask for less"},
    Row{"SchedDefer", "", "", "scheduling is put off for a moment"},
    Row{"BurstBuffer", "", "", "waiting for the burst buffer"},
    Row{"NonZeroExitCode", "", "", "the batch script ended with a code other than 0"},
    Row{"RaisedSignal", "", "", "a signal ended the batch script"},
    Row{"JobLaunchFailure", "", "", "the batch script could not be started, or a signal ended it"},
    Row{"SystemFailure", "", "", "Slurm itself failed"},
};

}  // namespace

std::string_view MeaningOfReason(std::string_view reason) {
  for (const Row& row : kRows) {
    if (reason.starts_with(row.begins) && reason.ends_with(row.ends) &&
        reason.find(row.contains) != std::string_view::npos) {
      return row.meaning;
    }
  }
  return {};
}

std::string ExplainReason(std::string_view reason) {
  if (reason.empty() || reason == "None") return {};
  const std::string_view meaning = MeaningOfReason(reason);
  return meaning.empty() ? std::string(reason) : fmt::format("{} ({})", meaning, reason);
}

}  // namespace muster::slurm
