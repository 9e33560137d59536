#include <fmt/format.h>

#include "absl/time/clock.h"
#include "clients/cpp/client.h"
#include "tests/bench/tools/connect.h"
#include "tests/bench/tools/histogram.h"
#include "tests/bench/tools/tools.h"

namespace muster::bench {

absl::Status ListPages(const Load& load) {
  auto client = MakeClient(load);
  if (!client.ok()) return client.status();
  v1::ListJobsRequest request;
  request.set_filter(load.filter);
  Histogram times;
  for (int i = 0; i < load.pages; ++i) {
    const absl::Time start = absl::Now();
    absl::StatusOr<v1::ListJobsResponse> page = (*client)->ListJobs(request);
    times.Add(absl::Now() - start);
    if (!page.ok()) return page.status();
    request.set_page_token(page->next_page_token());
  }
  fmt::print("{{\"p50_ms\": {:.3f}, \"p99_ms\": {:.3f}}}\n",
             absl::ToDoubleMilliseconds(times.Percentile(0.5)),
             absl::ToDoubleMilliseconds(times.Percentile(0.99)));
  return absl::OkStatus();
}

}  // namespace muster::bench
