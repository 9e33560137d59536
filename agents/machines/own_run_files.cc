#include "agents/machines/own_run_files.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "agents/core/host_run_files.h"
#include "agents/machines/run_records.h"
#include "agents/machines/run_user.h"
#include "agents/machines/user_host.h"
#include "contract/run_key.h"
#include "contract/units.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

// It had a machine, and the agent needs none of its files any more.
bool IsOver(const std::string& runs_directory, const agents::RankOfRun& of) {
  std::error_code error;
  const bool is_known = std::filesystem::exists(
      fmt::format("{}/{}/{}", runs_directory, of.run_key, kSpecFile), error);
  return !of.node.empty() && !error && !is_known;
}

// NOT_FOUND: the run's directory names none.
absl::StatusOr<RunUser> UserOf(const std::string& runs_directory, const agents::RankOfRun& of) {
  // It becomes part of paths.
  if (absl::Status s = contract::RunKey::Parse(of.run_key).status(); !s.ok()) return s;
  std::optional<RunUser> user = ReadRunUser(fmt::format("{}/{}", runs_directory, of.run_key));
  if (!user.has_value()) return agents::NoWorkingDirectory();
  return *std::move(user);
}

}  // namespace

std::string WorkIsGone(absl::Duration keep) {
  if (keep == absl::InfiniteDuration()) return "the run has no working directory any more";
  return fmt::format(
      "the run's files are gone: the cluster's operator keeps those of finished runs for {} "
      "(machines.keep_work)",
      contract::FormatDuration(keep));
}

absl::StatusOr<std::unique_ptr<agents::RunFiles>> OpenOwnRunFiles(const std::string& runs_directory,
                                                                  absl::Duration keep,
                                                                  const agents::RankOfRun& of) {
  absl::StatusOr<std::unique_ptr<agents::RunFiles>> files =
      agents::OpenLocalRunFiles(runs_directory, fmt::format("{}/{}", of.run_key, kWorkDirectory));
  if (absl::IsNotFound(files.status()) && IsOver(runs_directory, of))
    return agents::NoWorkingDirectory(WorkIsGone(keep));
  return files;
}

absl::StatusOr<std::unique_ptr<agents::RunFiles>> OpenUserRunFiles(
    const std::string& runs_directory, absl::Duration keep, const agents::RankOfRun& of) {
  const absl::StatusOr<RunUser> user = UserOf(runs_directory, of);
  const bool is_over = IsOver(runs_directory, of);
  if (absl::IsNotFound(user.status()) && is_over)
    return agents::NoWorkingDirectory(WorkIsGone(keep));
  if (!user.ok()) return user.status();
  agents::RunPlace place = {
      .host_title = "the machine",
      .root = agents::SplitOf(user->directory).parent,
      .directory = fmt::format("{}/{}", of.run_key, kWorkDirectory),
      .gone = is_over ? WorkIsGone(keep) : "",
  };
  return agents::MakeHostRunFiles(std::make_unique<UserHost>(*user), std::move(place));
}

absl::StatusOr<std::unique_ptr<agents::RunFiles>> OpenUserResults(const std::string& runs_directory,
                                                                  const agents::RankOfRun& of) {
  const absl::StatusOr<RunUser> user = UserOf(runs_directory, of);
  if (!user.ok()) return user.status();
  return agents::MakeHostResults(std::make_unique<UserHost>(*user), "the machine",
                                 of.results_directory);
}

}  // namespace muster::machines
