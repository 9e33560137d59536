#include "agents/slurm/user_files.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "agents/core/host_run_files.h"
#include "agents/hosts/local_host.h"
#include "agents/slurm/job_users.h"
#include "agents/users/run_as_host.h"
#include "contract/run_key.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

constexpr char kTitle[] = "the login host";

struct UserOfRun {
  std::string name;
  std::unique_ptr<hosts::Host> host;
};

absl::StatusOr<UserOfRun> FindUser(const SlurmConfig& config, const std::string& state_dir,
                                   const agents::RankOfRun& of) {
  // It becomes part of a path.
  if (absl::Status s = contract::RunKey::Parse(of.run_key).status(); !s.ok()) return s;
  std::optional<JobUser> user = ReadJobUser(OwnDirectoryOf(state_dir), of.run_key);
  if (!user.has_value()) return agents::NoWorkingDirectory();
  const std::string helper =
      config.run_as_helper.empty() ? users::DefaultRunAsPath() : config.run_as_helper;
  auto host =
      std::make_unique<users::RunAsHost>(std::make_unique<hosts::LocalHost>(), helper, user->name);
  return UserOfRun{std::move(user->name), std::move(host)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<agents::RunFiles>> OpenUserRunFiles(const SlurmConfig& config,
                                                                   const std::string& state_dir,
                                                                   const agents::RankOfRun& of) {
  absl::StatusOr<UserOfRun> user = FindUser(config, state_dir, of);
  if (!user.ok()) return user.status();
  const RunPaths paths(config.run_dir + "/" + user->name, of.run_key);
  return agents::MakeHostRunFiles(
      std::move(user->host),
      {.host_title = kTitle, .root = paths.root(), .directory = of.run_key + "/work"});
}

absl::StatusOr<std::unique_ptr<agents::RunFiles>> OpenUserResults(const SlurmConfig& config,
                                                                  const std::string& state_dir,
                                                                  const agents::RankOfRun& of) {
  absl::StatusOr<UserOfRun> user = FindUser(config, state_dir, of);
  if (!user.ok()) return user.status();
  return agents::MakeHostResults(std::move(user->host), kTitle, of.results_directory);
}

}  // namespace muster::slurm
