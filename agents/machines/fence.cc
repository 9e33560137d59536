#include "agents/machines/fence.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "agents/machines/launch_outcome.h"
#include "agents/machines/process_search.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

using agents::FenceOutcome;

FenceOutcome NotYet(const std::string& why) {
  return {FenceOutcome::Kind::kNotYet, AgentEvidence(why)};
}
FenceOutcome NeverBegins(const std::string& by) {
  return {FenceOutcome::Kind::kNeverBegins, AgentEvidence(by)};
}

}  // namespace

FenceOutcome FenceRun(const RunDirectory& directory, const std::optional<FenceOutcome>& on_board) {
  const absl::StatusOr<RunFiles> files = directory.Read();
  if (!files.ok()) return NotYet(std::string(ToStd(files.status().message())));
  if (files->exit.has_value() && files->exit->left_behind)
    return NotYet("some processes of the run could not be killed");
  if (on_board.has_value()) return *on_board;
  const std::string& path = directory.path();
  if (ListSupervisors().contains(path))
    return NotYet(fmt::format("a supervisor of \"{}\" is at work", path));
  if (files->exit.has_value()) {
    return {FenceOutcome::Kind::kEnded,
            AgentEvidence(fmt::format("\"{}\" has the run's end", path))};
  }
  if (files->HasBegun()) {
    return {FenceOutcome::Kind::kImpossible,
            AgentEvidence(
                fmt::format("\"{}\" shows the run's start, and nothing shows its end", path))};
  }
  // Supervisors start nothing without the spec that is there.
  if (!directory.Exists()) {
    return NeverBegins(
        fmt::format("the machine's queue does not have the run, nor is there \"{}\"", path));
  }
  // The process that has the claim has the run: a supervisor of an earlier agent comes too
  // late then.
  const absl::Status closed = directory.CloseWithoutStart(absl::ToUnixMicros(absl::Now()));
  if (!closed.ok()) return NotYet(std::string(ToStd(closed.message())));
  return NeverBegins(
      fmt::format("the agent has the claim of \"{}\": no supervisor starts the run", path));
}

}  // namespace muster::machines
