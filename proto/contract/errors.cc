#include "contract/errors.h"

#include "absl/strings/cord.h"
#include "contract/characters.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "google/protobuf/any.pb.h"
#include "muster/v1/facts.pb.h"

namespace muster::contract {
namespace {

// See kMaxViolationBytes.
constexpr size_t kMaxReasonBytes = 2000;
constexpr size_t kMaxMessageBytes = 800;

template <typename Detail>
std::string TypeUrl() {
  return "type.googleapis.com/" + Detail::descriptor()->full_name();
}

template <typename Detail>
void Attach(const Detail& detail, absl::Status* status) {
  status->SetPayload(TypeUrl<Detail>(), absl::Cord(detail.SerializeAsString()));
}

template <typename Detail>
std::optional<Detail> Find(const absl::Status& status) {
  const auto payload = status.GetPayload(TypeUrl<Detail>());
  Detail detail;
  if (!payload || !detail.ParseFromString(std::string(*payload))) return std::nullopt;
  return detail;
}

}  // namespace

absl::Status Error(absl::StatusCode code, std::string_view reason, std::string_view message,
                   std::map<std::string, std::string> metadata) {
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(reason));
  info.set_domain(std::string(kErrorDomain));
  info.mutable_metadata()->insert(metadata.begin(), metadata.end());
  absl::Status status(code, ToAbsl(message));
  Attach(info, &status);
  return status;
}

absl::Status RetryableError(absl::StatusCode code, std::string_view reason,
                            std::string_view message, absl::Duration retry_after) {
  absl::Status status = Error(code, reason, message);
  google::rpc::RetryInfo retry;
  absl::Duration rest;
  retry.mutable_retry_delay()->set_seconds(
      absl::IDivDuration(retry_after, absl::Seconds(1), &rest));
  retry.mutable_retry_delay()->set_nanos(static_cast<int>(absl::ToInt64Nanoseconds(rest)));
  Attach(retry, &status);
  return status;
}

absl::Status ShuttingDown() {
  return RetryableError(absl::StatusCode::kUnavailable, "SHUTTING_DOWN",
                        "the broker is shutting down; try again", absl::Seconds(1));
}

absl::Status BadField(std::string_view field, std::string_view description) {
  FieldErrors errors;
  errors.Add(field, description);
  return errors.ToStatus();
}

absl::Status InOtherWords(const absl::Status& status, std::string_view message) {
  absl::Status reworded(status.code(), ToAbsl(message));
  status.ForEachPayload([&reworded](absl::string_view type_url, const absl::Cord& payload) {
    reworded.SetPayload(type_url, payload);
  });
  return reworded;
}

void SetMetadata(std::map<std::string, std::string> metadata, absl::Status* status) {
  std::optional<google::rpc::ErrorInfo> info = Find<google::rpc::ErrorInfo>(*status);
  if (!info) return;
  info->clear_metadata();
  info->mutable_metadata()->insert(metadata.begin(), metadata.end());
  Attach(*info, status);
}

absl::Status WithQuota(std::string_view user, absl::Status status) {
  google::rpc::QuotaFailure failure;
  google::rpc::QuotaFailure::Violation& violation = *failure.add_violations();
  violation.set_subject(fmt::format("user:{}", user));
  violation.set_description(std::string(ToStd(status.message())));
  Attach(failure, &status);
  return status;
}

void AttachReason(v1::StateReason reason, absl::Status* status) {
  reason.clear_message();
  // Its sentence has it.
  for (v1::StateReason& cluster : *reason.mutable_clusters()) {
    if (cluster.detail() == cluster.message()) cluster.clear_detail();
  }
  while (reason.ByteSizeLong() > kMaxReasonBytes && reason.clusters_size() > 0) {
    reason.mutable_clusters()->RemoveLast();
    reason.set_unlisted_clusters(reason.unlisted_clusters() + 1);
  }
  if (reason.ByteSizeLong() > kMaxReasonBytes) reason.clear_detail();
  Attach(reason, status);
}

std::optional<v1::StateReason> GetStateReason(const absl::Status& status) {
  return Find<v1::StateReason>(status);
}

std::optional<google::rpc::ErrorInfo> GetErrorInfo(const absl::Status& status) {
  return Find<google::rpc::ErrorInfo>(status);
}

std::optional<google::rpc::BadRequest> GetBadRequest(const absl::Status& status) {
  return Find<google::rpc::BadRequest>(status);
}

std::optional<absl::Duration> GetRetryDelay(const absl::Status& status) {
  const auto retry = Find<google::rpc::RetryInfo>(status);
  if (!retry || !retry->has_retry_delay()) return std::nullopt;
  return absl::Seconds(retry->retry_delay().seconds()) +
         absl::Nanoseconds(retry->retry_delay().nanos());
}

void FieldErrors::Add(std::string_view field, std::string_view description) {
  const bool is_first = bad_request_.field_violations().empty();
  if (!is_first && bytes_ + field.size() + description.size() > max_bytes_) {
    ++unlisted_;
    return;
  }
  bytes_ += field.size() + description.size();
  auto* violation = bad_request_.add_field_violations();
  violation->set_field(std::string(CutBetweenCharacters(field, kMaxViolationBytes / 2)));
  violation->set_description(
      std::string(CutBetweenCharacters(description, kMaxViolationBytes / 2)));
}

absl::Status FieldErrors::ToStatus() const {
  if (empty()) return absl::OkStatus();
  std::string message;
  size_t listed = 0;
  for (const auto& violation : bad_request_.field_violations()) {
    const std::string line = fmt::format("{}{}: {}", message.empty() ? "" : "; ", violation.field(),
                                         violation.description());
    if (listed > 0 && message.size() + line.size() > kMaxMessageBytes) break;
    message += CutBetweenCharacters(line, kMaxMessageBytes);
    ++listed;
  }
  const size_t left_out =
      static_cast<size_t>(bad_request_.field_violations_size()) - listed + unlisted_;
  if (left_out > 0) message += fmt::format("; and {} more bad fields", left_out);
  absl::Status status(absl::StatusCode::kInvalidArgument, message);
  Attach(bad_request_, &status);
  return status;
}

}  // namespace muster::contract
