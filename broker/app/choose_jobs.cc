#include "broker/app/choose_jobs.h"

#include <iterator>
#include <utility>

namespace muster::broker {

ChosenPages::ChosenPages(const store::Store* store, store::Scope scope, contract::Filter filter)
    : store_(store), scope_(std::move(scope)) {
  query_.filter = std::move(filter);
  query_.order.descending = false;
}

absl::StatusOr<std::vector<v1::Job>> ChosenPages::Next(int limit) {
  std::vector<v1::Job> jobs;
  while (!at_end_ && static_cast<int>(jobs.size()) < limit) {
    query_.page_size = limit - static_cast<int>(jobs.size());
    absl::StatusOr<store::JobPage> page = store_->ListJobs(scope_, query_);
    if (!page.ok()) return page.status();
    std::move(page->jobs.begin(), page->jobs.end(), std::back_inserter(jobs));
    query_.page_token = std::move(page->next_page_token);
    at_end_ = query_.page_token.empty();
  }
  return jobs;
}

}  // namespace muster::broker
