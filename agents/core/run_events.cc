#include "agents/core/run_events.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "agents/core/proto_time.h"

namespace muster::agent {
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
bool TakeEstimate(const std::optional<absl::Time>& seen, v1::RunEvent* told, v1::RunEvent* event) {
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

bool TakeNews(const Observation& seen, v1::RunEvent* told, v1::RunEvent* event) {
  bool news = TakeText(seen.external_id, told->mutable_external_id(), event->mutable_external_id());
  news |= TakeText(seen.reason, told->mutable_reason(), event->mutable_reason());
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
  return news;
}

}  // namespace muster::agent
