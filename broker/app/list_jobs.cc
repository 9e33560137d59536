#include "broker/app/list_jobs.h"

#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "broker/app/answer_room.h"
#include "broker/app/arguments.h"
#include "broker/app/cluster_losses.h"
#include "broker/app/queue_reasons.h"
#include "broker/app/rights.h"
#include "broker/app/silence.h"
#include "broker/engine/engine.h"
#include "broker/store/store.h"
#include "contract/errors.h"
#include "contract/filter.h"
#include "contract/job_order.h"
#include "contract/spec_mask.h"

namespace muster::broker {
namespace {

absl::StatusOr<store::ListQuery> ToQuery(const v1::ListJobsRequest& request, absl::Time now) {
  const absl::StatusOr<int> page_size = ToPageSize(request.page_size());
  if (!page_size.ok()) return page_size.status();
  absl::StatusOr<contract::Filter> filter = contract::ParseFilter(request.filter(), now);
  if (!filter.ok()) return filter.status();
  absl::StatusOr<contract::JobOrder> order = contract::ParseJobOrder(request.order_by());
  if (!order.ok()) return order.status();
  std::shared_ptr<const contract::SpecMask> mask;
  if (request.has_spec_mask()) {
    if (request.include_spec())
      return contract::BadField("spec_mask", "does not go together with include_spec; give one");
    absl::StatusOr<contract::SpecMask> parsed = contract::SpecMask::Parse(request.spec_mask());
    if (!parsed.ok()) return parsed.status();
    mask = std::make_shared<const contract::SpecMask>(*std::move(parsed));
  }
  return store::ListQuery{.filter = *std::move(filter),
                          .order = *std::move(order),
                          .page_size = *page_size,
                          .page_token = request.page_token(),
                          .include_spec = request.include_spec() || mask != nullptr,
                          .include_latest_run = request.include_latest_run(),
                          .spec_mask = std::move(mask)};
}

}  // namespace

absl::StatusOr<v1::ListJobsResponse> ListJobs(const Principal& principal, const Services& services,
                                              const v1::ListJobsRequest& request) {
  const absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kReadJobs);
  if (!scope.ok()) return scope.status();
  const absl::StatusOr<store::ListQuery> query = ToQuery(request, services.now());
  if (!query.ok()) return query.status();
  absl::StatusOr<store::JobPage> page = services.store->ListJobs(*scope, *query);
  if (!page.ok()) return page.status();
  v1::ListJobsResponse response;
  response.mutable_jobs()->Add(std::make_move_iterator(page->jobs.begin()),
                               std::make_move_iterator(page->jobs.end()));
  response.set_next_page_token(std::move(page->next_page_token));
  std::vector<v1::Job*> jobs;
  for (v1::Job& job : *response.mutable_jobs()) jobs.push_back(&job);
  AnswerRoom room(jobs);
  const SpecsRead read = request.has_spec_mask() ? SpecsRead::kInPart : SpecsRead::kWhole;
  AddQueueReasons(services, *scope, jobs, room, read);
  AddSilence(*services.engine->clusters(), jobs, room);
  AddLosses(services, *scope, jobs, room, read);
  return response;
}

}  // namespace muster::broker
