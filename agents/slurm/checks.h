// Judges the answers that a preflight gets. Pure: each function looks at outputs and adds lines.
// A function that returns bool says whether the checks that depend on it can be made.
#ifndef MUSTER_AGENTS_SLURM_CHECKS_H_
#define MUSTER_AGENTS_SLURM_CHECKS_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/core/check_list.h"
#include "agents/hosts/host.h"
#include "agents/slurm/details.h"
#include "agents/slurm/inventory.h"

namespace muster::slurm {

// ---- the way to Slurm

// Judges each login host; the agent uses the first one that can be reached at all.
bool JudgeLogins(const hosts::LoginReport& report, agents::CheckList* checks);

// Judges Slurm's commands, by name: whether each can be run on `host`.
bool JudgeCommands(const std::string& host,
                   const std::vector<std::pair<std::string, absl::Status>>& commands,
                   agents::CheckList* checks);

// Judges munge and slurmctld, by scontrol ping and scontrol show config.
bool JudgeController(const absl::StatusOr<hosts::CommandResult>& ping,
                     const absl::StatusOr<std::string>& config, agents::CheckList* checks);

// Records of the cluster are compared with the agent's time; a few seconds do not matter.
inline constexpr absl::Duration kClockSkewToTell = absl::Seconds(5);
// munge refuses credentials that are older by default.
inline constexpr absl::Duration kClockSkewToFail = absl::Minutes(5);
// The time between the question to a clock and its answer, by the agent's own clock.
struct AskedBetween {
  absl::Time begin;
  absl::Time end;
};
// The facts that the way to Slurm tells.
struct Access {
  ClusterSettings settings;  // the name is empty if nothing tells it
  // True if slurmctld refuses jobs of users who have no association; nothing if it is not told.
  std::optional<bool> needs_association;
  // slurmctld's clock; nothing if it could not be read.
  std::optional<absl::Time> controller_time;
  AskedBetween asked;
};
// `subject` says whose clock it is. `time`: what it showed; nothing: it could not be read.
void JudgeClock(const std::string& subject, std::optional<absl::Time> time, AskedBetween asked,
                agents::CheckList* checks);
// Returns the time at the head of scontrol show config (SLURM_TIME_FORMAT=%s).
std::optional<absl::Time> ControllerTime(std::string_view config);

// ---- accounting

// Judges slurmdbd, by what it said about jobs (FAILED_PRECONDITION: no accounting) and accounts.
bool JudgeAccounting(const absl::Status& history, const absl::Status& accounts,
                     agents::CheckList* checks);

// Holds the rights of a user, which are one row of sacctmgr.
struct Association {
  std::string account;
  std::string partition;  // empty: any
  std::vector<std::string> qos;
  bool is_default = false;          // jobs that name no account have this one, as far as is known
  std::string default_qos = {};     // of jobs that name none; empty: not known
  std::set<std::string> line = {};  // the account, and those above it; empty: not known
};
std::vector<std::string> AssociationArguments(const ClusterSettings& settings,
                                              const std::string& user);
// Returns the accounts in "/above/account/0-user/".
std::set<std::string> AccountsInLineage(std::string_view lineage);
std::vector<Association> ParseAssociations(std::string_view output);
// Returns whether slurmctld refuses jobs of users who have no association.
bool NeedsAssociation(std::string_view config);
void JudgeAssociations(const std::string& user, const std::vector<Association>& associations,
                       std::optional<bool> needs_one, agents::CheckList* checks);

// ---- partitions

// The user who asks. Unknown fields are empty, and keep nobody out.
struct Asker {
  // Maps each account to the names in a partition's list of accounts that stand for it: its own,
  // and from Slurm 23 on those of the accounts above it.
  using Lines = std::map<std::string, std::set<std::string>>;

  std::set<std::string> groups;
  Lines accounts;
  std::set<std::string> qos;
  bool is_privileged = false;  // root or SlurmUser
};
// Tells whether a list of accounts stands for those below them, too.
bool ListsSubaccounts(const ClusterSettings& settings);
// Returns the accounts of these associations; none if too little is known of one to say which lists
// it is in.
Asker::Lines LinesOf(const std::vector<Association>& associations, bool lists_subaccounts);
// Returns the limit of the partition that keeps the user out; empty if none does.
std::string KeepsOut(const Partition& partition, const Asker& asker);
// Gives one line for each partition, and says if there is one for image conversions if named.
void JudgePartitions(const std::vector<Partition>& partitions, const std::vector<v1::Node>& nodes,
                     const Asker& asker, const std::string& conversion_partition,
                     agents::CheckList* checks);

// ---- files

// `setting` is its name. `written`: whether a file could be written and removed there.
void JudgeDirectory(std::string_view setting, const std::string& path, const absl::Status& written,
                    agents::CheckList* checks);

// ---- containers

// Judges Pyxis by srun --help. False: no container can be started.
bool JudgePyxis(const absl::StatusOr<hosts::CommandResult>& help, agents::CheckList* checks);
// Judges enroot by its version on the login host; conversions and nodes need it where they are.
void JudgeEnroot(const absl::StatusOr<hosts::CommandResult>& version, agents::CheckList* checks);
// enroot's credentials file.
void JudgeCredentials(const std::string& path, const absl::StatusOr<hosts::FileInfo>& file,
                      agents::CheckList* checks);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_CHECKS_H_
