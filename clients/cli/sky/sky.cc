// muster sky: finds the command.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "clients/cli/exit_code.h"
#include "clients/cli/sky/verbs.h"
#include "clients/cli/slurm/query.h"
#include "contract/characters.h"

namespace muster::cli {
namespace {

struct Command {
  std::string_view name;
  int (*run)(Session& session, const sky::Words& words);
};
constexpr std::array kCommands = {
    Command{"exec", sky::Exec},     Command{"queue", sky::Queue},   Command{"logs", sky::Logs},
    Command{"cancel", sky::Cancel}, Command{"status", sky::Status},
};

// SkyPilot's other commands, and what to do instead.
constexpr std::string_view kNoProvisioning =
    "clusters are there already, and their operators start and stop them; see muster clusters";
constexpr std::pair<std::string_view, std::string_view> kSkyRefused[] = {
    {"api", "the broker takes the place of the API server; see muster version"},
    {"autostop", kNoProvisioning},
    {"check", "use: muster check CLUSTER"},
    {"cost-report", "Muster knows no prices"},
    {"dashboard", "use: muster list, muster clusters"},
    {"down", kNoProvisioning},
    {"gpus", "use: muster clusters NAME, which lists its GPUs"},
    {"jobs", "every job of Muster's is managed; use: muster submit, list, logs and cancel"},
    {"launch",
     "clusters are there already; use: muster sky exec CLUSTER task.yaml, which runs its "
     "setup, too, or muster submit task.yaml for any cluster"},
    {"pool", "use: muster sky exec, which waits for its turn"},
    {"serve", "Muster runs jobs, not services"},
    {"show-gpus", "use: muster clusters NAME, which lists its GPUs"},
    {"ssh", kNoProvisioning},
    {"start", kNoProvisioning},
    {"stop", kNoProvisioning},
    {"storage", "data is on the clusters; see inputs and mounts in muster's job files"},
    {"volumes", "data is on the clusters; see inputs and mounts in muster's job files"},
};

absl::Status NoCommand(std::string_view name) {
  const auto refused = std::find_if(std::begin(kSkyRefused), std::end(kSkyRefused),
                                    [&](const auto& one) { return one.first == name; });
  if (refused != std::end(kSkyRefused)) {
    return absl::InvalidArgumentError(
        fmt::format("sky {} is not taken; {}", refused->first, refused->second));
  }
  const std::string what = name.empty()
                               ? "name a command"
                               : fmt::format("sky has no command {}", contract::Quoted(name));
  return absl::InvalidArgumentError(
      what + "; there are exec, queue, logs, cancel and status: muster sky --help");
}

}  // namespace

int Sky(Session& session) {
  const std::vector<std::string>& words = session.call.words;
  const std::string_view name = words.empty() ? std::string_view() : words.front();
  const auto command = std::find_if(kCommands.begin(), kCommands.end(),
                                    [&](const Command& one) { return one.name == name; });
  if (command == kCommands.end()) return sky::FailUsage(session, NoCommand(name));
  return command->run(session, {words.begin() + 1, words.end()});
}

namespace sky {

absl::StatusOr<std::string> CurrentUser(const Session& session) {
  if (session.is_local) return OwnUser();
  return std::string("anonymous@loopback");  // as the broker calls them all
}

int FailOther(Session& session, const absl::Status& status) {
  cli::Fail(session, status);
  return kError;
}

int FailUsage(Session& session, const absl::Status& status) {
  cli::Fail(session, status);
  return kUsage;
}

}  // namespace sky
}  // namespace muster::cli
