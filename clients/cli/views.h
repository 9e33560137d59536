// Jobs, transitions and clusters as rows and pages for people. Pure: the time comes in, text goes
// out. Whatever came from elsewhere is made harmless here.
#ifndef MUSTER_CLIENTS_CLI_VIEWS_H_
#define MUSTER_CLIENTS_CLI_VIEWS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "clients/cli/table.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/job.pb.h"

namespace muster::cli {

struct Style {
  bool wide = false;
  bool colours = false;
  size_t width = 0;  // as in Look
  bool csv = false;  // likewise

  Look look() const { return {colours, width, csv}; }
};

std::vector<Table::Column> JobColumns(const Style& style);
Table::Row JobRow(const v1::Job& job, const Style& style, absl::Time now);

std::vector<Table::Column> ClusterColumns(const Style& style);
// Calls to the scheduler for each run that the agent launched, both since its start; empty: it
// launched none, or does not tell.
std::string CallsPerRun(const v1::Cluster& cluster);
Table::Row ClusterRow(const v1::Cluster& cluster, const Style& style, absl::Time now);

std::vector<Table::Column> EventColumns(const Style& style);
Table::Row EventRow(uint64_t job_id, const v1::Transition& transition, const Style& style);

// Everything about one job, and its history if it is known.
std::string JobPage(const v1::Job& job, const std::vector<v1::Transition>& history,
                    const Style& style, absl::Time now);
// Returns the page that tells why a job stands as it does, and since when; or how it ended, if it
// has. `history` is the job's; empty: it is not known. `output`: the last lines of what failed.
std::string WhyPage(const v1::Job& job, const std::vector<v1::Transition>& history,
                    std::span<const std::string> output, const Style& style, absl::Time now);

// Returns whether the agent has said nothing of the nodes because it may not see them, which is not
// the same as none.
bool AreNodesUnknown(const v1::Pool& pool, v1::ClusterKind kind);
// Returns whether a cluster's reason says that it holds the job back.
bool SaysHeld(const v1::StateReason& reason);
// True if it says that the job was released, and that its cluster has not said so yet.
bool SaysReleased(const v1::StateReason& reason);
// Returns whether there is no word of a job that a cluster has: what is shown of it is old.
bool SaysNoWord(const v1::Job& job);
// Returns the reason that a job has; without a word of it the one known last, which may be none.
const v1::StateReason& KnownReason(const v1::Job& job);
// Returns whether a held job is kept back: Muster has it still, or its cluster says so. A cluster
// that was asked may yet start what it has. `job` has its runs.
bool IsKeptBack(const v1::Job& job);
// Returns the text about a hold until then.
std::string HoldAskedText(uint64_t job);
// Returns the reason that it waits. That is its cluster's word until a hold keeps the job back, for
// the job's own reason is the hold. `job` has its runs.
const v1::StateReason& WhyItWaits(const v1::Job& job);
// The same; without a word of the job the reason known last.
const v1::StateReason& KnownWait(const v1::Job& job);
// With details, what its agent has just seen in place of what it said when it connected.
std::string ClusterPage(const v1::Cluster& cluster, const v1::ClusterDetails* details,
                        const Style& style, absl::Time now);
// Shows what would be submitted, what was looked at, and when it would start. The submission is
// shown whole if `whole`, else only the job's own part, if it is short.
std::string PlanPage(const v1::JobPlan& plan, const Style& style, bool whole, absl::Time now);
// The lines of a preflight, with what to do.
std::string ChecksText(const google::protobuf::RepeatedPtrField<v1::ClusterCheck>& checks,
                       const Style& style);

// "exit code 3", "killed by signal 9 (SIGKILL) on rank 1"; empty if nobody knows.
std::string ExitText(const v1::Job& job);
// One line on how a job stands, e.g. "job 42 FAILED: exit code 3".
std::string Summary(const v1::Job& job);
// "1h30m"; the spec has a limit.
std::string TimeLimitText(const v1::JobSpec& spec);
// Returns advice if a job failed because its command is one word, as in -- "echo hello"; empty for
// every other job.
std::string QuotesHint(const v1::Job& job);
// The rank by which a job failed, whose output says more; none: it did not fail, or it has written
// nothing.
std::optional<uint32_t> RankToRead(const v1::Job& job);
// The commands that show both outputs of that rank; empty: there is none.
std::string LogCommands(const v1::Job& job);
// The run's state and number, or the step of the job itself: "42.1 RUNNING", "submitted".
std::string StepText(const v1::Transition& transition);

Colour ColourOf(v1::JobState state);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_VIEWS_H_
