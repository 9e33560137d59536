#include "broker/core/event_bounds.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "broker/core/timestamps.h"

namespace muster::core {
namespace {

void BoundNodes(google::protobuf::RepeatedPtrField<std::string>* nodes) {
  // A name counts for at least this much, because memory is kept for an empty one, too.
  constexpr size_t kMinBytes = 1;
  size_t bytes = 0;
  for (int i = 0; i < nodes->size(); ++i) {
    Truncate(kMaxNodeNameBytes, nodes->Mutable(i));
    bytes += std::max(nodes->Get(i).size(), kMinBytes);
    if (bytes <= kMaxNodesBytes) continue;
    nodes->DeleteSubrange(i, nodes->size() - i);
    return;
  }
}

// Valid times within the bounds stay as they are, to the nanosecond.
void Clamp(absl::Time from, absl::Time to, google::protobuf::Timestamp* timestamp) {
  const absl::Time time =
      absl::FromUnixSeconds(timestamp->seconds()) + absl::Nanoseconds(timestamp->nanos());
  const bool is_valid = timestamp->nanos() >= 0 && timestamp->nanos() < 1'000'000'000;
  if (is_valid && time >= from && time <= to) return;
  SetTimestamp(std::clamp(time, from, to), timestamp);
}

void BoundIssue(absl::Time from, absl::Time to, v1::ReadinessIssue* issue) {
  Truncate(kMaxReplicaNameBytes, issue->mutable_reason());
  Truncate(kMaxIssueBytes, issue->mutable_message());
  if (issue->has_since()) Clamp(from, to, issue->mutable_since());
}

void BoundReplicas(absl::Time from, absl::Time to,
                   google::protobuf::RepeatedPtrField<v1::Replica>* replicas) {
  size_t bytes = 0;
  for (int i = 0; i < replicas->size(); ++i) {
    v1::Replica& replica = *replicas->Mutable(i);
    Truncate(kMaxReplicaNameBytes, replica.mutable_name());
    Truncate(kMaxReplicaNameBytes, replica.mutable_node());
    Truncate(kMaxReplicaNameBytes, replica.mutable_phase());
    if (replica.has_issue()) BoundIssue(from, to, replica.mutable_issue());
    bytes += replica.ByteSizeLong();
    if (i < kMaxReplicas && bytes <= kMaxReplicasBytes) continue;
    replicas->DeleteSubrange(i, replicas->size() - i);
    return;
  }
}

// Bounds the texts and clears what only the broker fills in: agents know no other cluster, and
// `last_known` is the broker's record of what they said.
void BoundReason(absl::Time from, absl::Time to, v1::StateReason* reason) {
  Truncate(kMaxDetailBytes, reason->mutable_message());
  Truncate(kMaxIssueBytes, reason->mutable_remedy());
  Truncate(kMaxIssueBytes, reason->mutable_detail());
  for (std::string* name : {reason->mutable_cluster(), reason->mutable_pool(),
                            reason->mutable_subject(), reason->mutable_scheduler_reason()}) {
    Truncate(kMaxReplicaNameBytes, name);
  }
  reason->clear_clusters();
  reason->clear_unlisted_clusters();
  reason->clear_last_known();
  reason->clear_shortages();
  if (reason->has_since()) Clamp(from, to, reason->mutable_since());
  if (reason->has_until()) Clamp(from, to + kMaxEstimate, reason->mutable_until());
}

bool IsValidSpan(const google::protobuf::Duration& span) {
  // The range of google.protobuf.Duration is ten thousand years, and JSON has no form for others.
  constexpr int64_t kMaxSeconds = 315'576'000'000;
  return span.seconds() >= 0 && span.seconds() <= kMaxSeconds && span.nanos() >= 0 &&
         span.nanos() < 1'000'000'000;
}

// Bounds the texts, and clears what only the broker fills in.
void BoundFailure(v1::Failure* failure) {
  failure->clear_after_runs();
  if (!IsValidSpan(failure->waited())) failure->clear_waited();
  Truncate(kMaxFailureBytes, failure->mutable_message());
  Truncate(kMaxDetailBytes, failure->mutable_remedy());
  Truncate(kMaxNodeNameBytes, failure->mutable_node());
  for (std::string* text :
       {failure->mutable_detail(), failure->mutable_subject(), failure->mutable_meaning()})
    Truncate(kMaxIssueBytes, text);
  for (std::string* name :
       {failure->mutable_object(), failure->mutable_role(), failure->mutable_log_sign()})
    Truncate(kMaxFailureNameBytes, name);
  auto* quotes = failure->mutable_quotes();
  if (quotes->size() > kMaxQuotes) quotes->DeleteSubrange(kMaxQuotes, quotes->size() - kMaxQuotes);
  for (v1::FailureQuote& quote : *quotes) {
    Truncate(kMaxQuoteBytes, quote.mutable_source());
    Truncate(kMaxQuoteBytes, quote.mutable_text());
  }
}

// A name that is too long is no name of a number that is known.
void BoundProgress(absl::Time from, absl::Time to, v1::Progress* progress) {
  if (progress->has_time()) Clamp(from, to, progress->mutable_time());
  Truncate(kMaxIssueBytes, progress->mutable_message());
  auto& numbers = *progress->mutable_numbers();
  for (auto number = numbers.begin(); number != numbers.end();) {
    const bool is_kept =
        number->first.size() <= kMaxProgressNameBytes && std::isfinite(number->second);
    number = is_kept ? std::next(number) : numbers.erase(number);
  }
  while (numbers.size() > kMaxProgressNumbers) numbers.erase(numbers.begin());
}

}  // namespace

void Truncate(size_t max_bytes, std::string* text) {
  if (text->size() <= max_bytes) return;
  size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>((*text)[end]) & 0xC0) == 0x80) --end;
  text->resize(end);
}

void BoundUsage(v1::ResourceUsage* usage) {
  usage->DiscardUnknownFields();
  if (!IsValidSpan(usage->user_cpu_time())) usage->clear_user_cpu_time();
  if (!IsValidSpan(usage->system_cpu_time())) usage->clear_system_cpu_time();
}

void Bound(absl::Time assigned, absl::Time now, agent::v1::RunEvent* event) {
  event->DiscardUnknownFields();
  Truncate(kMaxExternalIdBytes, event->mutable_external_id());
  BoundNodes(event->mutable_nodes());

  const absl::Time from = std::min(assigned, now) - kMaxClockError;
  const absl::Time to = now + kMaxClockError;
  if (event->has_evidence()) {
    v1::Evidence* evidence = event->mutable_evidence();
    Truncate(kMaxDetailBytes, evidence->mutable_detail());
    // Only the broker knows who asked for what.
    evidence->clear_requested_by();
    evidence->clear_request_reason();
    if (evidence->has_observed_at()) Clamp(from, to, evidence->mutable_observed_at());
  }
  if (event->has_start_time()) Clamp(from, to, event->mutable_start_time());
  if (event->has_end_time()) Clamp(from, to, event->mutable_end_time());
  if (event->has_estimated_start_time()) {
    Clamp(from, now + kMaxEstimate, event->mutable_estimated_start_time());
  }
  if (event->has_state_reason()) BoundReason(from, to, event->mutable_state_reason());
  BoundReplicas(from, to, event->mutable_replicas());
  if (event->has_failure()) BoundFailure(event->mutable_failure());
  Truncate(kMaxResultsPathBytes, event->mutable_results_directory());
  if (event->has_progress()) BoundProgress(from, to, event->mutable_progress());
  if (event->has_usage()) BoundUsage(event->mutable_usage());
  if (!event->has_slurm_allocation()) return;
  v1::SlurmAllocation* allocation = event->mutable_slurm_allocation();
  for (std::string* name :
       {allocation->mutable_partition(), allocation->mutable_account(), allocation->mutable_qos()})
    Truncate(kMaxSlurmNameBytes, name);
}

}  // namespace muster::core
