#include "agents/slurm/preflight.h"

#include <utility>

#include "absl/time/clock.h"
#include "agents/hosts/private_modes.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/run_files.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

// Patience with a program that only reports something about its host.
constexpr absl::Duration kHostCommandTimeout = absl::Seconds(20);

constexpr char kNoHost[] = "no login node can be used";
constexpr char kNoSlurm[] = "Slurm cannot be asked";
// Accounting is asked about jobs of this name, to see that it answers. Run keys end with a number.
constexpr char kNoJob[] = "muster-preflight";

std::string_view LinesOf(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

hosts::Command HostCommand(std::vector<std::string> argv) {
  hosts::Command command;
  command.argv = std::move(argv);
  command.timeout = kHostCommandTimeout;
  return command;
}

// A file is written there and removed.
absl::Status TryDirectory(hosts::Host& host, const std::string& path) {
  const std::string probe = path + "/.check";
  absl::Status status = host.MakeDirectories(path, hosts::kPrivateDirectory);
  if (status.ok()) status = host.WriteFile(probe, "", {.mode = 0600, .sync = false});
  if (status.ok()) status = host.RemoveTree(probe);
  return status;
}

}  // namespace

v1::ClusterChecks Preflight::Run() {
  if (!CheckHost()) {
    checks_.Skip(v1::CHECK_CODE_SCHEDULER, "Slurm", kNoHost);
    checks_.Skip(v1::CHECK_CODE_ACCOUNTING, "accounts and partitions", kNoHost);
    checks_.Skip(v1::CHECK_CODE_STORAGE, "directories", kNoHost);
    checks_.Skip(v1::CHECK_CODE_CONTAINERS, "containers", kNoHost);
    return std::move(checks_).Take();
  }
  FindIdentity();
  if (!CheckSlurm()) checks_.Skip(v1::CHECK_CODE_ACCOUNTING, "accounts and partitions", kNoSlurm);
  CheckUsers();
  if (users_ == nullptr) CheckDirectories();
  CheckContainers();
  return std::move(checks_).Take();
}

bool Preflight::CheckHost() {
  const std::optional<hosts::LoginReport> report = host_.TryLogins();
  return !report.has_value() || JudgeLogins(*report, &checks_);
}

// A fact that is not known keeps nothing else from being looked at.
void Preflight::FindIdentity() {
  const bool is_other = !config_.rest_url.empty() && !config_.rest_user.empty();
  user_ = is_other ? config_.rest_user : Ask({"id", "-un"});
  asker_.is_privileged = user_ == "root";
  const std::string groups =
      is_other ? Ask({"id", "-Gn", "--", config_.rest_user}) : Ask({"id", "-Gn"});
  for (std::string_view group : Split(groups, ' ')) {
    if (!group.empty()) asker_.groups.emplace(group);
  }
  // The line is name:password:uid:gid:comment:home:shell.
  const std::string entry = user_.empty() ? "" : Ask({"getent", "passwd", user_});
  const std::vector<std::string_view> fields = Split(entry, ':');
  if (fields.size() > 5) home_ = fields[5];
}

std::string Preflight::Ask(std::vector<std::string> argv) {
  const absl::StatusOr<hosts::CommandResult> result = host_.Run(HostCommand(std::move(argv)));
  return result.ok() && result->ok() ? std::string(LinesOf(result->stdout_data)) : "";
}

bool Preflight::CheckSlurm() {
  const std::optional<Access> access = scheduler_.CheckAccess(&checks_);
  if (!access.has_value()) return false;
  const std::string& name = access->settings.name;
  checks_.Ok(v1::CHECK_CODE_VERSION, "Slurm's version",
             fmt::format("slurm {}{}{}", access->settings.version, name.empty() ? "" : ", cluster ",
                         name));
  CheckClocks(*access);
  CheckAccounting(*access);
  CheckPartitions();
  return true;
}

void Preflight::CheckClocks(const Access& access) {
  JudgeClock("slurmctld's clock", access.controller_time, access.asked, &checks_);
  AskedBetween asked{absl::Now(), {}};
  const std::string seconds = Ask({"date", "+%s"});
  asked.end = absl::Now();
  JudgeClock("the login host's clock", ParseEpoch(seconds), asked, &checks_);
}

void Preflight::CheckAccounting(const Access& access) {
  if (user_ == access.settings.slurm_user) asker_.is_privileged = true;
  const absl::Status history =
      scheduler_.HistoryOf(kNoJob, absl::Now() - absl::Minutes(1)).status();
  absl::StatusOr<std::vector<Association>> mine = absl::UnavailableError("not asked");
  if (!absl::IsFailedPrecondition(history)) {
    mine = user_.empty() ? absl::UnavailableError("id -un does not say who the user is")
                         : scheduler_.Associations(access.settings, user_);
  }
  const std::string subject = "accounts and QOS";
  if (!JudgeAccounting(history, mine.status(), &checks_))
    return checks_.Skip(v1::CHECK_CODE_ACCOUNTING, subject, "slurmdbd cannot be asked");
  asker_.accounts = LinesOf(*mine, ListsSubaccounts(access.settings));
  for (const Association& one : *mine) asker_.qos.insert(one.qos.begin(), one.qos.end());
  // With jobs of users the agent submits none of its own.
  if (users_ != nullptr)
    return checks_.Skip(v1::CHECK_CODE_ACCOUNTING, subject,
                        "jobs run as their users, who have their own");
  JudgeAssociations(user_, *mine, access.needs_association, &checks_);
}

void Preflight::CheckPartitions() {
  const absl::StatusOr<std::vector<Partition>> partitions = scheduler_.Partitions();
  const absl::StatusOr<std::vector<v1::Node>> nodes =
      partitions.ok() ? scheduler_.Nodes() : partitions.status();
  if (!nodes.ok()) {
    return checks_.Fail(v1::CHECK_CODE_POOL, "partitions",
                        std::string(ToStd(nodes.status().message())),
                        "see what scontrol show partition and scontrol show node print");
  }
  JudgePartitions(*partitions, *nodes, asker_, config_.conversion_partition, &checks_);
}

void Preflight::CheckUsers() {
  if (users_ != nullptr) checks_.Add(users_->CheckLine());
}

void Preflight::CheckDirectories() {
  JudgeDirectory("run_dir", config_.run_dir, TryDirectory(host_, config_.run_dir), &checks_);
  JudgeDirectory("image_dir", config_.image_dir, TryDirectory(host_, config_.image_dir), &checks_);
}

// Returns whether containers are worth a look.
bool Preflight::CheckPyxis() {
  const absl::StatusOr<hosts::CommandResult> help = commands_.RunUncounted({"srun", "--help"});
  if (!config_.rest_url.empty() && (!help.ok() || !help->ok())) {
    checks_.Skip(v1::CHECK_CODE_CONTAINERS, "Pyxis",
                 fmt::format("not looked at: slurmrestd does not tell it, and {} has no "
                             "srun to ask",
                             host_.Name()));
    return true;
  }
  return JudgePyxis(help, &checks_);
}

void Preflight::CheckContainers() {
  if (!CheckPyxis()) {
    checks_.Skip(v1::CHECK_CODE_CONTAINERS, "enroot", "there is no Pyxis");
    return checks_.Skip(v1::CHECK_CODE_IMAGES, "registry credentials", "there is no Pyxis");
  }
  JudgeEnroot(host_.Run(HostCommand({"enroot", "version"})), &checks_);
  if (home_.empty())
    return checks_.Skip(v1::CHECK_CODE_IMAGES, "registry credentials",
                        "the home directory is not known");
  const std::string path = home_ + "/.config/enroot/.credentials";
  JudgeCredentials(path, host_.Stat(path), &checks_);
}

}  // namespace muster::slurm
