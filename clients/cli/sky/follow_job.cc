#include "clients/cli/sky/follow_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "clients/cli/sky/job_words.h"
#include "clients/cli/sky/verbs.h"

namespace muster::cli::sky {
namespace {

// Each has a stream and a thread.
constexpr uint32_t kMaxRanks = 16;

}  // namespace

LogChoice ChoiceFor(Session& session, const v1::Job& job) {
  LogChoice choice;
  const uint32_t nodes = std::max(1u, job.spec().nodes());
  choice.ranks = std::min(nodes, kMaxRanks);
  choice.is_merged = true;
  choice.is_labelled = nodes > 1;
  choice.name = job.spec().name();
  if (!job.runs().empty()) choice.first_run = job.runs().rbegin()->number();
  if (nodes > kMaxRanks) {
    session.terminal.Note(
        fmt::format("this is the output of the ranks 0 to {} of {}; for others: "
                    "muster logs {} --rank N",
                    kMaxRanks - 1, nodes, job.id()));
  }
  return choice;
}

int FollowJob(Session& session, uint64_t id, const LogChoice& choice) {
  const absl::StatusOr<v1::Job> job = StreamJob(session, id, choice);
  if (!job.ok()) return FailOther(session, job.status());
  session.terminal.Note(fmt::format("Job finished (status: {})", StatusWord(*job)));
  NoteEnd(session, *job);
  return CodeOf(*job);
}

}  // namespace muster::cli::sky
