#include "agents/machines/run_users.h"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "agents/hosts/local_host.h"
#include "agents/machines/user_host.h"
#include "agents/users/run_as_host.h"
#include "agents/users/user_map.h"
#include "agents/users/users_lines.h"
#include "contract/message_of.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

absl::StatusOr<std::string> Ask(const std::string& helper, const std::vector<std::string>& words) {
  hosts::LocalHost host;
  return users::AskRunAs(&host, helper, words);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunUsers>> RunUsers::Create(const MachinesConfig& config,
                                                           const std::string& state_dir) {
  if (geteuid() == 0) {
    return absl::FailedPreconditionError(
        "run_as: user needs an agent that is not root: start it as a user of its own, whom "
        "/etc/muster/run-as.conf names as caller");
  }
  struct stat info {};
  if (stat(state_dir.c_str(), &info) != 0 || (info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return absl::FailedPreconditionError(fmt::format(
        "run_as: user needs a state_dir that jobs cannot enter: chmod 700 \"{}\"", state_dir));
  }
  absl::StatusOr<std::string> work_root = Ask(config.run_as_helper, {});
  if (!work_root.ok()) {
    return absl::FailedPreconditionError(
        ToAbsl(fmt::format("run_as: user needs muster-run-as, which docs/machines.md installs: {}",
                           MessageOf(work_root.status()))));
  }
  return std::unique_ptr<RunUsers>(new RunUsers(config, *std::move(work_root)));
}

absl::StatusOr<RunUser> RunUsers::UserOf(const std::string& muster_user,
                                         std::string_view run_key) const {
  absl::StatusOr<std::string> name = users::LocalUserOf(map_, muster_user);
  if (!name.ok()) return name.status();
  std::string directory = fmt::format("{}/{}/{}", work_root_, *name, run_key);
  return RunUser{.name = *std::move(name),
                 .directory = std::move(directory),
                 .helper = helper_,
                 .supervisor = supervisor_};
}

std::optional<Misfit> RunUsers::RefusalOf(const std::string& muster_user) const {
  absl::StatusOr<RunUser> user = UserOf(muster_user, "");
  absl::Status status = user.status();
  if (status.ok()) status = Ask(helper_, {user->name}).status();
  if (status.ok()) return std::nullopt;
  if (absl::IsUnavailable(status)) {
    return Misfit{.why = fmt::format("nobody can tell now whether the user's jobs may run here: {}",
                                     MessageOf(status)),
                  .cause = contract::FailureCause::kUserNotAsked,
                  .is_of_users = true,
                  .may_pass = true};
  }
  return Misfit{.why = fmt::format("jobs run as their users here, and {}", MessageOf(status)),
                .cause = user.ok() ? contract::FailureCause::kUserNotAllowed
                                   : contract::FailureCause::kUserNotMapped,
                .is_of_users = true};
}

absl::Status RunUsers::Probe() const { return Ask(helper_, {}).status(); }

std::unique_ptr<hosts::Host> HostFor(const RunUser& user) {
  if (!user.IsOther()) return std::make_unique<hosts::LocalHost>();
  return std::make_unique<UserHost>(user);
}

v1::ClusterCheck UsersLine(const RunUsers& users) {
  return users::OwnUsersLine(users.Probe(), users.work_root());
}

}  // namespace muster::machines
