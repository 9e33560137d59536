#include "agents/machines/own_run_files.h"

#include <filesystem>
#include <system_error>

#include "agents/machines/run_records.h"
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

}  // namespace muster::machines
