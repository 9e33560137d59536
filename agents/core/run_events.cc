#include "agents/core/run_events.h"

#include <fmt/core.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "agents/core/proto_time.h"
#include "contract/sentences.h"

namespace muster::agents {
namespace {

using google::protobuf::util::MessageDifferencer;

bool TakeText(const std::string& seen, std::string* told, std::string* event) {
  if (seen.empty() || seen == *told) return false;
  *told = seen;
  *event = seen;
  return true;
}

template <typename Message>
bool IsNews(const std::optional<Message>& seen, bool was_told, const Message& told) {
  return seen && !(was_told && MessageDifferencer::Equals(*seen, told));
}

// Every event has the estimate, as long as there is one: without it the broker takes it for gone.
bool TakeEstimate(const std::optional<absl::Time>& seen, agent::v1::RunEvent* told,
                  agent::v1::RunEvent* event) {
  if (!seen) {
    const bool is_gone = told->has_estimated_start_time();
    told->clear_estimated_start_time();
    return is_gone;
  }
  const bool moved =
      !told->has_estimated_start_time() ||
      absl::AbsDuration(*seen - absl::FromUnixSeconds(told->estimated_start_time().seconds())) >=
          kMinEstimateMove;
  if (moved) *told->mutable_estimated_start_time() = ToProto(*seen);
  *event->mutable_estimated_start_time() = told->estimated_start_time();
  return moved;
}

std::optional<google::protobuf::Timestamp> Stamp(const std::optional<absl::Time>& time) {
  if (!time) return std::nullopt;
  return ToProto(*time);
}

}  // namespace

v1::Evidence AgentEvidence(absl::Time now, std::string_view detail) {
  v1::Evidence evidence;
  evidence.set_source(v1::EVIDENCE_SOURCE_AGENT);
  evidence.set_detail(std::string(detail));
  *evidence.mutable_observed_at() = ToProto(now);
  return evidence;
}

v1::Evidence Completed(v1::Evidence evidence, absl::Time now) {
  if (evidence.source() == v1::EVIDENCE_SOURCE_UNSPECIFIED) {
    evidence.set_source(v1::EVIDENCE_SOURCE_AGENT);
  }
  if (!evidence.has_observed_at()) *evidence.mutable_observed_at() = ToProto(now);
  return evidence;
}

void TakeWhy(v1::StateReasonCode code, const std::string& why, agent::v1::RunEvent* told,
             agent::v1::RunEvent* event) {
  *event->mutable_state_reason() = contract::MakeReason(code, {.detail = why});
  *told->mutable_state_reason() = event->state_reason();
}

bool TakeNews(const Observation& seen, agent::v1::RunEvent* told, agent::v1::RunEvent* event) {
  bool news = TakeText(seen.external_id, told->mutable_external_id(), event->mutable_external_id());
  const bool has_reason = seen.reason.code() != v1::STATE_REASON_CODE_UNSPECIFIED;
  if (has_reason && !MessageDifferencer::Equals(seen.reason, told->state_reason())) {
    *told->mutable_state_reason() = *event->mutable_state_reason() = seen.reason;
    news = true;
  }
  news |= TakeEstimate(seen.estimated_start, told, event);
  if (seen.restarts > told->restarts()) {
    told->set_restarts(seen.restarts);
    event->set_restarts(seen.restarts);
    news = true;
  }
  const bool same_nodes =
      std::equal(seen.nodes.begin(), seen.nodes.end(), told->nodes().begin(), told->nodes().end());
  if (!seen.nodes.empty() && !same_nodes) {
    told->mutable_nodes()->Assign(seen.nodes.begin(), seen.nodes.end());
    *event->mutable_nodes() = told->nodes();
    news = true;
  }
  if (const auto time = Stamp(seen.start_time);
      IsNews(time, told->has_start_time(), told->start_time())) {
    *told->mutable_start_time() = *event->mutable_start_time() = *time;
    news = true;
  }
  if (const auto time = Stamp(seen.end_time);
      IsNews(time, told->has_end_time(), told->end_time())) {
    *told->mutable_end_time() = *event->mutable_end_time() = *time;
    news = true;
  }
  if (IsNews(seen.exit, told->has_exit(), told->exit())) {
    *told->mutable_exit() = *event->mutable_exit() = *seen.exit;
    news = true;
  }
  if (IsNews(seen.failure, told->has_failure(), told->failure())) {
    *told->mutable_failure() = *event->mutable_failure() = *seen.failure;
    news = true;
  }
  news |= TakeText(seen.results_directory, told->mutable_results_directory(),
                   event->mutable_results_directory());
  if (IsNews(seen.progress, told->has_progress(), told->progress())) {
    *told->mutable_progress() = *event->mutable_progress() = *seen.progress;
    news = true;
  }
  if (IsNews(seen.usage, told->has_usage(), told->usage())) {
    *told->mutable_usage() = *event->mutable_usage() = *seen.usage;
    news = true;
  }
  if (IsNews(seen.slurm_allocation, told->has_slurm_allocation(), told->slurm_allocation())) {
    *told->mutable_slurm_allocation() = *event->mutable_slurm_allocation() = *seen.slurm_allocation;
    news = true;
  }
  return news;
}

agent::v1::RunEvent EventWith(v1::Evidence evidence) {
  agent::v1::RunEvent event;
  *event.mutable_evidence() = std::move(evidence);
  return event;
}

bool IsOnCluster(v1::RunState state) {
  return state >= v1::RUN_STATE_PENDING && state <= v1::RUN_STATE_FINISHING;
}

v1::RunState EndAsCanceled(agent::v1::RunEvent* event) {
  std::string* detail = event->mutable_evidence()->mutable_detail();
  const std::string& seen = detail->empty() ? event->failure().message() : *detail;
  *detail = seen.empty() ? "canceled" : fmt::format("canceled; {}", seen);
  event->clear_failure();
  return v1::RUN_STATE_CANCELED;
}

}  // namespace muster::agents
