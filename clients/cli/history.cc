#include "clients/cli/history.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace muster::cli {
namespace {

// What has happened comes at once; only a broker in trouble takes longer.
constexpr absl::Duration kMaxHistoryWait = absl::Seconds(10);

}  // namespace

absl::StatusOr<std::vector<v1::Transition>> HistoryOf(client::Client& client, const v1::Job& job) {
  v1::WatchJobsRequest request;
  request.add_job_ids(job.id());
  request.set_until_terminal(true);
  const auto reader = client.WatchJobs(request, absl::Now() + kMaxHistoryWait);
  std::vector<v1::Transition> history;
  while (history.empty() || history.back().job_sequence() < job.job_sequence()) {
    auto step = reader->Next();
    if (!step.ok()) return step.status();
    if (!step->has_value()) break;
    history.push_back((*step)->transition());
  }
  return history;
}

const v1::Transition* LatestWish(const std::vector<v1::Transition>& history) {
  const auto found = std::find_if(history.rbegin(), history.rend(), [](const v1::Transition& step) {
    return step.kind() == v1::TRANSITION_KIND_CANCEL_REQUESTED ||
           step.kind() == v1::TRANSITION_KIND_HOLD_REQUESTED ||
           step.kind() == v1::TRANSITION_KIND_RELEASE_REQUESTED;
  });
  return found == history.rend() ? nullptr : &*found;
}

}  // namespace muster::cli
