#include "agents/slurm/job_users.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "agents/hosts/local_host.h"
#include "agents/hosts/private_modes.h"
#include "agents/slurm/fields.h"
#include "agents/users/user_map.h"
#include "agents/users/users_lines.h"
#include "contract/failures.h"
#include "contract/message_of.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

constexpr size_t kMaxRecordBytes = 256;
constexpr absl::Duration kIdTimeout = absl::Seconds(20);

std::string RecordPath(const std::string& own_directory, std::string_view run_key) {
  return fmt::format("{}/users/{}", own_directory, run_key);
}

SlurmConfig ConfigOf(const SlurmConfig& config, const std::string& user) {
  SlurmConfig own = config;
  own.user_on_host = user;
  // Nothing of the agent's environment gets to the user's commands by itself.
  if (const char* inherited = std::getenv("SLURM_CONF");
      own.slurm_conf.empty() && inherited != nullptr) {
    own.slurm_conf = inherited;
  }
  return own;
}

}  // namespace

std::string OwnDirectoryOf(const std::string& state_dir) { return state_dir + "/runs"; }

std::optional<JobUser> ReadJobUser(const std::string& own_directory, std::string_view run_key) {
  hosts::LocalHost host;
  const absl::StatusOr<std::string> text =
      host.ReadFile(RecordPath(own_directory, run_key), kMaxRecordBytes);
  if (!text.ok()) return std::nullopt;
  // The file has "NAME UID\n"; one that was cut off by a full disk is none.
  const size_t blank = text->find(' ');
  if (blank == text->npos || !text->ends_with('\n')) return std::nullopt;
  const auto uid =
      ParseNumber<uint32_t>(std::string_view(*text).substr(blank + 1, text->size() - blank - 2));
  if (!uid.has_value()) return std::nullopt;
  return JobUser{text->substr(0, blank), *uid};
}

JobUsers::Side::Side(const SlurmConfig& of_user, hosts::Host* base, const std::string& user,
                     CallGate* gate)
    : config(ConfigOf(of_user, user)),
      host(base, config.run_as_helper, user),
      commands(config, &host, gate),
      scheduler(&host, &commands),
      reads(&host, config.read_patience) {
  if (config.files == nullptr) return;
  trees = std::make_unique<uploads::HostTrees>(&host, config.run_dir + "/" + user + "/files",
                                               config.files->cache());
}

JobUsers::JobUsers(const SlurmConfig& config, hosts::Host* host, CallGate* gate)
    : config_(config), host_(*host), gate_(gate) {}

absl::Status JobUsers::Probe() {
  if (geteuid() == 0) {
    return absl::FailedPreconditionError(
        "run_as: user needs an agent that is not root: start it as a user of its own, whom "
        "/etc/muster/run-as.conf names as caller");
  }
  if (absl::Status status = CheckDirectories(); !status.ok()) return status;
  const absl::Status asked = users::AskRunAs(&host_, config_.run_as_helper, {}).status();
  if (!absl::IsFailedPrecondition(asked)) return asked;
  return absl::FailedPreconditionError(ToAbsl(
      fmt::format("run_as: user needs muster-run-as on the login host, which docs/machines.md "
                  "installs: {}",
                  MessageOf(asked))));
}

absl::Status JobUsers::CheckDirectories() {
  const std::string state_dir = config_.own_directory.substr(0, config_.own_directory.rfind('/'));
  struct stat info {};
  if (stat(state_dir.c_str(), &info) != 0 || (info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return absl::FailedPreconditionError(fmt::format(
        "run_as: user needs a state_dir that jobs cannot enter: chmod 700 \"{}\"", state_dir));
  }
  // A user who may write there could put a directory in another user's place.
  const absl::StatusOr<hosts::FileInfo> areas = host_.Stat(config_.run_dir);
  if (absl::IsUnavailable(areas.status())) return areas.status();
  if (areas.ok() && areas->type == hosts::FileType::kDirectory &&
      (areas->mode & (S_IWGRP | S_IWOTH)) == 0)
    return absl::OkStatus();
  return absl::FailedPreconditionError(ToAbsl(fmt::format(
      "run_as: user needs a slurm.run_dir that only root may write to, with a directory of its own "
      "for each user: make \"{}\" the work-root of /etc/muster/run-as.conf (install -d -m 711), or "
      "make the users' directories there{}",
      config_.run_dir, areas.ok() ? "" : "; " + MessageOf(areas.status()))));
}

std::string JobUsers::Meaning() const { return users::OwnUsersMeaning(config_.run_dir); }

v1::ClusterCheck JobUsers::CheckLine() { return users::OwnUsersLine(Probe(), config_.run_dir); }

absl::StatusOr<JobUser> JobUsers::Find(const std::string& muster_user) {
  const absl::StatusOr<std::string> name = users::LocalUserOf(config_.run_as_map, muster_user);
  if (absl::IsPermissionDenied(name.status()))
    return absl::FailedPreconditionError(name.status().message());
  // Somebody may be writing the map.
  if (!name.ok()) return absl::UnavailableError(name.status().message());
  if (absl::Status s = users::AskRunAs(&host_, config_.run_as_helper, {*name}).status(); !s.ok())
    return s;
  const absl::StatusOr<hosts::CommandResult> id =
      host_.Run({.argv = {"id", "-u", "--", *name}, .timeout = kIdTimeout});
  if (!id.ok()) return absl::UnavailableError(id.status().message());
  const auto uid = ParseNumber<uint32_t>(
      Lines(id->stdout_data).empty() ? std::string_view() : Lines(id->stdout_data).front());
  if (id->ok() && uid.has_value()) return JobUser{*name, *uid};
  return absl::UnavailableError(
      fmt::format("id -u {} does not tell the user's number: {}", *name, id->stderr_data));
}

v1::Failure JobUsers::WhyNot(const absl::Status& status) {
  return contract::MakeFailure(
      v1::FAILURE_CODE_LAUNCH_REFUSED, v1::FAILURE_CLASS_CONFIG,
      {.meaning = fmt::format("jobs run as their users here, and {}", MessageOf(status)),
       .cause = contract::FailureCause::kUserNotTaken});
}

absl::Status JobUsers::Note(const std::string& run_key, const JobUser& user) {
  hosts::LocalHost own;
  const std::string path = RecordPath(config_.own_directory, run_key);
  if (absl::Status s =
          own.MakeDirectories(config_.own_directory + "/users", hosts::kPrivateDirectory);
      !s.ok())
    return s;
  // The file is synced, because the map may be another one after a power cut.
  if (absl::Status s = own.WriteFile(path, fmt::format("{} {}\n", user.name, user.uid),
                                     {.mode = hosts::kPrivateFile});
      !s.ok())
    return s;
  Remember(run_key, user);
  return absl::OkStatus();
}

std::optional<JobUser> JobUsers::Of(const std::string& run_key) {
  {
    const MutexLock lock(mutex_);
    if (const auto found = users_.find(run_key); found != users_.end()) return found->second;
  }
  std::optional<JobUser> user = ReadJobUser(config_.own_directory, run_key);
  if (user.has_value()) Remember(run_key, *user);
  return user;
}

void JobUsers::Remember(const std::string& run_key, const JobUser& user) {
  const MutexLock lock(mutex_);
  users_.insert_or_assign(run_key, user);
}

void JobUsers::Forget(const std::string& run_key, bool keeps_file) {
  const MutexLock lock(mutex_);
  users_.erase(run_key);
  if (!keeps_file) unlink(RecordPath(config_.own_directory, run_key).c_str());
}

JobUsers::Side& JobUsers::SideOf(const std::string& name) {
  const MutexLock lock(mutex_);
  std::unique_ptr<Side>& side = sides_[name];
  if (side == nullptr) side = std::make_unique<Side>(config_, &host_, name, gate_);
  return *side;
}

}  // namespace muster::slurm
