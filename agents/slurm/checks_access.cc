// Checks the way to Slurm: login hosts, commands, munge, slurmctld, clocks.
#include <algorithm>
#include <utility>

#include "agents/slurm/checks.h"
#include "agents/slurm/fields.h"
#include "contract/message_of.h"
#include "contract/text.h"
#include "contract/units.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

std::string FirstLine(std::string_view text) {
  const std::vector<std::string_view> lines = Lines(text);
  return lines.empty() ? "" : std::string(lines.front());
}

bool IsAboutMunge(std::string_view words) {
  return words.find("unge") != std::string_view::npos ||
         words.find("authentication") != std::string_view::npos;
}

std::string WrittenSkew(absl::Duration skew) {
  return contract::FormatDuration(absl::AbsDuration(skew)) +
         (skew > absl::ZeroDuration() ? " ahead" : " behind");
}

}  // namespace

bool JudgeLogins(const hosts::LoginReport& report, agents::CheckList* checks) {
  if (report.key_is.ok()) {
    checks->Ok(v1::CHECK_CODE_LOGIN, report.key, "it can be used");
  } else {
    checks->Fail(v1::CHECK_CODE_LOGIN, report.key, MessageOf(report.key_is),
                 "a private key without passphrase, mode 0600, owned by the agent's user");
  }
  // Only a host that cannot be connected to leads to the next one.
  const auto used = std::find_if(
      report.ways.begin(), report.ways.end(),
      [](const hosts::WayIn& way) { return way.status.ok() || !absl::IsUnavailable(way.status); });
  const bool is_usable = used != report.ways.end() && used->status.ok();
  for (auto way = report.ways.begin(); way != report.ways.end(); ++way) {
    const std::string subject = "login node " + way->name;
    if (way->status.ok()) {
      checks->Ok(v1::CHECK_CODE_LOGIN, subject,
                 way == used ? "reached, host key known, logged in; the agent uses it"
                             : "reached, host key known, logged in");
    } else if (is_usable) {
      checks->Warn(v1::CHECK_CODE_LOGIN, subject, MessageOf(way->status), way->remedy);
    } else {
      checks->Fail(v1::CHECK_CODE_LOGIN, subject, MessageOf(way->status), way->remedy);
    }
  }
  return is_usable;
}

bool JudgeCommands(const std::string& host,
                   const std::vector<std::pair<std::string, absl::Status>>& commands,
                   agents::CheckList* checks) {
  std::string found;
  std::string missing;
  for (const auto& [name, status] : commands) {
    std::string& list = status.ok() ? found : missing;
    list += (list.empty() ? "" : status.ok() ? ", " : "; ");
    list += status.ok() ? name : fmt::format("{}: {}", name, MessageOf(status));
  }
  if (missing.empty()) {
    checks->Ok(v1::CHECK_CODE_PROGRAMS, "Slurm's commands", fmt::format("{} on {}", found, host));
    return true;
  }
  checks->Fail(v1::CHECK_CODE_PROGRAMS, "Slurm's commands", fmt::format("{} on {}", missing, host),
               "install Slurm's client commands there, or set slurm.bin_dir to where they are");
  return false;
}

bool JudgeController(const absl::StatusOr<hosts::CommandResult>& ping,
                     const absl::StatusOr<std::string>& config, agents::CheckList* checks) {
  if (config.ok()) {
    checks->Ok(v1::CHECK_CODE_LOGIN, "munge", "slurmctld takes the user's credentials");
    const std::string said = ping.ok() ? FirstLine(ping->stdout_data) : "";
    checks->Ok(v1::CHECK_CODE_SCHEDULER, "slurmctld",
               said.empty() ? "it answers scontrol show config" : said);
    return true;
  }
  const std::string words = MessageOf(config.status());
  if (IsAboutMunge(words)) {
    checks->Fail(v1::CHECK_CODE_LOGIN, "munge", words,
                 "see that munged runs on the login host (systemctl status munge), that its key is "
                 "the cluster's, and that the clocks agree");
    checks->Skip(v1::CHECK_CODE_SCHEDULER, "slurmctld", "munge does not work");
    return false;
  }
  checks->Skip(v1::CHECK_CODE_LOGIN, "munge", "slurmctld does not answer");
  const std::string said = ping.ok() ? FirstLine(ping->stdout_data) : "";
  checks->Fail(v1::CHECK_CODE_SCHEDULER, "slurmctld",
               said.empty() ? words : fmt::format("{}; {}", said, words),
               "see that the host is a login node of the cluster (scontrol ping), that "
               "slurm.slurm_conf names its slurm.conf, and ask the cluster's administrator");
  return false;
}

void JudgeClock(const std::string& subject, std::optional<absl::Time> time, AskedBetween asked,
                agents::CheckList* checks) {
  if (!time.has_value()) return checks->Warn(v1::CHECK_CODE_CLOCK, subject, "it could not be read");
  // The skew that the time of asking does not explain; clocks are read to the second.
  absl::Duration skew;
  if (*time > asked.end) skew = *time - asked.end;
  if (*time < asked.begin - absl::Seconds(1)) skew = *time - asked.begin;
  if (absl::AbsDuration(skew) < kClockSkewToTell)
    return checks->Ok(v1::CHECK_CODE_CLOCK, subject, "it agrees with the agent's within seconds");
  const std::string seen = fmt::format("it is {} of the agent's", WrittenSkew(skew));
  const std::string remedy = "let NTP or chrony set both clocks";
  if (absl::AbsDuration(skew) >= kClockSkewToFail)
    return checks->Fail(v1::CHECK_CODE_CLOCK, subject, seen, remedy);
  checks->Warn(v1::CHECK_CODE_CLOCK, subject, seen, remedy);
}

std::optional<absl::Time> ControllerTime(std::string_view config) {
  constexpr std::string_view kHead = "Configuration data as of ";
  if (!config.starts_with(kHead)) return std::nullopt;
  config.remove_prefix(kHead.size());
  return ParseEpoch(config.substr(0, config.find('\n')));
}

}  // namespace muster::slurm
