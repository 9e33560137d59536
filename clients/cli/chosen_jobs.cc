#include "clients/cli/chosen_jobs.h"

#include <fmt/format.h>

#include "contract/text.h"

namespace muster::cli {

absl::StatusOr<std::vector<uint64_t>> JobsOfFilter(client::Client& client,
                                                   const std::string& filter, size_t most) {
  constexpr int kPageSize = 1000;  // the broker gives as many at once
  v1::ListJobsRequest request;
  request.set_filter(filter);
  request.set_order_by("id");
  request.set_page_size(kPageSize);
  std::vector<uint64_t> jobs;
  do {
    const auto page = client.ListJobs(request);
    if (!page.ok()) return page.status();
    for (const v1::Job& job : page->jobs()) jobs.push_back(job.id());
    if (jobs.size() > most) {
      return absl::InvalidArgumentError(
          ToAbsl(fmt::format("--filter: it takes more than {} jobs; narrow the filter", most)));
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return jobs;
}

}  // namespace muster::cli
