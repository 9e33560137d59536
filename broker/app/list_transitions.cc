#include "broker/app/list_transitions.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "broker/app/arguments.h"
#include "broker/app/rights.h"
#include "broker/store/list_limits.h"
#include "broker/store/store.h"
#include "contract/errors.h"
#include "contract/parts.h"

namespace muster::broker {
namespace {

// Makes the token "JOB_SEQUENCE": the job, and the transition after which the page begins.
std::string MakeToken(uint64_t job, uint64_t sequence) {
  return fmt::format("{}_{}", job, sequence);
}

absl::StatusOr<uint64_t> ReadToken(uint64_t job, std::string_view token) {
  if (token.empty()) return 0;
  const std::vector<std::string_view> parts = contract::Split(token, '_');
  if (parts.size() == 2 && contract::ParseNumber<uint64_t>(parts[0]) == job) {
    if (const auto sequence = contract::ParseNumber<uint64_t>(parts[1])) return *sequence;
  }
  return contract::BadField("page_token",
                            "is not from an answer about the same job; begin again without it");
}

}  // namespace

absl::StatusOr<v1::ListTransitionsResponse> ListTransitions(
    const Principal& principal, const Services& services,
    const v1::ListTransitionsRequest& request) {
  const absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kReadJobs);
  if (!scope.ok()) return scope.status();
  const absl::StatusOr<int> page_size = ToPageSize(request.page_size());
  if (!page_size.ok()) return page_size.status();
  const absl::StatusOr<uint64_t> after = ReadToken(request.job_id(), request.page_token());
  if (!after.ok()) return after.status();
  const uint64_t job = request.job_id();
  const auto known = services.store->GetJobs(*scope, {&job, 1});
  if (!known.ok()) return known.status();
  auto steps = services.store->ListTransitions(*scope, {&job, 1}, *after, *page_size);
  if (!steps.ok()) return steps.status();
  v1::ListTransitionsResponse response;
  size_t bytes = 0;
  for (store::JobTransition& step : *steps) {
    bytes += step.transition.ByteSizeLong();
    if (bytes > store::kMaxPageBytes && response.transitions_size() > 0) break;
    *response.add_transitions() = std::move(step.transition);
  }
  if (response.transitions().empty()) return response;
  const v1::Transition& last = *response.transitions().rbegin();
  if (last.job_sequence() < known->front().job_sequence()) {
    response.set_next_page_token(MakeToken(job, last.sequence()));
  }
  return response;
}

}  // namespace muster::broker
