#include "clients/cli/history.h"

#include <algorithm>

namespace muster::cli {

absl::Status ForEachTransition(client::Client& client, uint64_t job,
                               const std::function<void(const v1::Transition&)>& visit) {
  v1::ListTransitionsRequest request;
  request.set_job_id(job);
  request.set_page_size(1000);
  do {
    const auto page = client.ListTransitions(request);
    if (!page.ok()) return page.status();
    for (const v1::Transition& step : page->transitions()) visit(step);
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::Transition>> HistoryOf(client::Client& client, uint64_t job) {
  std::vector<v1::Transition> history;
  const absl::Status status = ForEachTransition(
      client, job, [&history](const v1::Transition& step) { history.push_back(step); });
  if (!status.ok()) return status;
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
