#include "agents/slurm/preflight.h"

#include <utility>

#include "absl/time/clock.h"
#include "agents/slurm/details.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/inventory.h"
#include "agents/slurm/run_files.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

constexpr uint32_t kPrivateDirectory = 0700;
// Of a program that only says something about its host.
constexpr absl::Duration kHostCommandTimeout = absl::Seconds(20);

constexpr char kNoHost[] = "no login node can be used";
constexpr char kNoSlurm[] = "Slurm cannot be asked";

std::string_view WithoutEnd(std::string_view text) {
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
  absl::Status status = host.MakeDirectories(path, kPrivateDirectory);
  if (status.ok()) status = host.WriteFile(probe, "", {.mode = 0600, .sync = false});
  if (status.ok()) status = host.RemoveTree(probe);
  return status;
}

}  // namespace

v1::ClusterChecks Preflight::Run() {
  if (!CheckHost()) {
    for (const char* subject : {"Slurm", "accounts and partitions", "directories", "containers"})
      checks_.Skip(subject, kNoHost);
    return std::move(checks_).Take();
  }
  FindIdentity();
  if (!CheckSlurm()) checks_.Skip("accounts and partitions", kNoSlurm);
  CheckDirectories();
  CheckContainers();
  return std::move(checks_).Take();
}

bool Preflight::CheckHost() {
  const std::optional<hosts::LoginReport> report = host_.TryLogins();
  return !report.has_value() || JudgeLogins(*report, &checks_);
}

// Whatever is not known keeps nothing else from being looked at.
void Preflight::FindIdentity() {
  user_ = Ask({"id", "-un"});
  for (std::string_view group : Split(Ask({"id", "-Gn"}), ' ')) {
    if (!group.empty()) asker_.groups.emplace(group);
  }
  // name:password:uid:gid:comment:home:shell
  const std::string entry = user_.empty() ? "" : Ask({"getent", "passwd", user_});
  const std::vector<std::string_view> fields = Split(entry, ':');
  if (fields.size() > 5) home_ = fields[5];
}

std::string Preflight::Ask(std::vector<std::string> argv) {
  const absl::StatusOr<hosts::CommandResult> result = host_.Run(HostCommand(std::move(argv)));
  return result.ok() && result->ok() ? std::string(WithoutEnd(result->stdout_data)) : "";
}

bool Preflight::CheckSlurm() {
  std::vector<std::pair<std::string, absl::Status>> commands;
  for (const char* name :
       {"sbatch", "srun", "squeue", "scancel", "sinfo", "scontrol", "sacct", "sacctmgr"}) {
    commands.emplace_back(name, commands_.Check(name));
  }
  if (!JudgeCommands(host_.Name(), commands, &checks_)) {
    checks_.Skip("slurmctld", "Slurm's commands are missing");
    return false;
  }
  const absl::StatusOr<hosts::CommandResult> ping = commands_.Run({"scontrol", "ping"});
  AskedBetween asked{absl::Now(), {}};
  const absl::StatusOr<std::string> config = commands_.Ask(SettingsArguments());
  asked.end = absl::Now();
  if (!JudgeController(ping, config, &checks_)) return false;
  const absl::StatusOr<ClusterSettings> settings = ParseSettings(*config);
  if (!settings.ok()) {
    checks_.Fail("Slurm's version", std::string(ToStd(settings.status().message())),
                 "see what scontrol show config prints");
    return false;
  }
  checks_.Ok("Slurm's version",
             fmt::format("slurm {}, cluster {}", settings->version, settings->name));
  CheckClocks(*config, asked);
  CheckAccounting(*settings, *config);
  CheckPartitions();
  return true;
}

void Preflight::CheckClocks(std::string_view config, AskedBetween config_asked) {
  JudgeClock("slurmctld's clock", ControllerTime(config), config_asked, &checks_);
  AskedBetween asked{absl::Now(), {}};
  const std::string seconds = Ask({"date", "+%s"});
  asked.end = absl::Now();
  JudgeClock("the login host's clock", ParseEpoch(seconds), asked, &checks_);
}

void Preflight::CheckAccounting(const ClusterSettings& settings, std::string_view config) {
  absl::Status sacct;
  absl::StatusOr<std::string> associations = absl::UnavailableError("not asked");
  if (settings.keeps_accounting) {
    sacct = commands_.Ask({"sacct", "-X", "--noheader", "--starttime=now-1minute"}).status();
    associations = user_.empty() ? absl::UnavailableError("id -un does not say who the user is")
                                 : commands_.Ask(AssociationArguments(settings.name, user_));
  }
  const std::string subject = "accounts and QOS";
  if (!JudgeAccounting(settings, sacct, associations.status(), &checks_))
    return checks_.Skip(subject, "slurmdbd cannot be asked");
  const std::vector<Association> mine = ParseAssociations(*associations);
  for (const Association& one : mine) {
    asker_.accounts.insert(one.account);
    asker_.qos.insert(one.qos.begin(), one.qos.end());
  }
  JudgeAssociations(user_, mine, NeedsAssociation(config), &checks_);
}

void Preflight::CheckPartitions() {
  const absl::StatusOr<std::string> partition_output = commands_.Ask(PartitionArguments());
  const absl::StatusOr<std::string> node_output =
      partition_output.ok() ? commands_.Ask(NodeArguments()) : partition_output;
  const auto partitions = node_output.ok()
                              ? ParsePartitions(*partition_output)
                              : absl::StatusOr<std::vector<Partition>>(node_output.status());
  const auto nodes = partitions.ok() ? ParseNodes(*node_output)
                                     : absl::StatusOr<std::vector<v1::Node>>(partitions.status());
  if (!nodes.ok()) {
    return checks_.Fail("partitions", std::string(ToStd(nodes.status().message())),
                        "see what scontrol show partition and scontrol show node print");
  }
  JudgePartitions(*partitions, *nodes, asker_, config_.conversion_partition, &checks_);
}

void Preflight::CheckDirectories() {
  JudgeDirectory("run_dir", config_.run_dir, TryDirectory(host_, config_.run_dir), &checks_);
  JudgeDirectory("image_dir", config_.image_dir, TryDirectory(host_, config_.image_dir), &checks_);
}

void Preflight::CheckContainers() {
  if (!JudgePyxis(commands_.RunUncounted({"srun", "--help"}), &checks_)) {
    checks_.Skip("enroot", "there is no Pyxis");
    return checks_.Skip("registry credentials", "there is no Pyxis");
  }
  JudgeEnroot(host_.Run(HostCommand({"enroot", "version"})), &checks_);
  if (home_.empty()) return checks_.Skip("registry credentials", "the home directory is not known");
  const std::string path = home_ + "/.config/enroot/.credentials";
  JudgeCredentials(path, host_.Stat(path), &checks_);
}

}  // namespace muster::slurm
