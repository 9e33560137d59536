#include "broker/app/list_audit.h"

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "broker/app/arguments.h"
#include "broker/app/rights.h"
#include "broker/audit/audit_file.h"
#include "broker/audit/chain.h"
#include "contract/errors.h"

namespace muster::broker {
namespace {

using google::protobuf::util::TimeUtil;

// One call looks at no more records than this, which takes about a tenth of a second.
constexpr size_t kMaxRead = 50'000;

v1::AuditRecord ToWire(audit::Record record) {
  v1::AuditRecord out;
  out.set_seq(record.seq);
  *out.mutable_time() = TimeUtil::MicrosecondsToTimestamp(record.micros);
  out.set_user(std::move(record.user));
  out.set_role(std::move(record.role));
  out.set_credential(std::move(record.credential));
  out.set_origin(std::move(record.origin));
  out.set_action(std::move(record.action));
  out.set_jobs(std::move(record.jobs));
  out.set_target(std::move(record.target));
  out.set_result(std::move(record.result));
  out.set_left_out(record.left_out);
  out.set_hash(std::move(record.hash));
  return out;
}

absl::StatusOr<audit::RecordFilter> ReadFilter(const v1::ListAuditRecordsRequest& request) {
  contract::FieldErrors errors;
  audit::RecordFilter filter{
      .user = request.user(),
      .action = request.action(),
      .job = request.job_id(),
      .result = request.result(),
      .since_micros = ToMicros("since", request.has_since(), request.since(), &errors),
      .until_micros = ToMicros("until", request.has_until(), request.until(), &errors)};
  const std::string& place = request.page_token();
  const char* const end = place.data() + place.size();
  const auto [stop, error] = std::from_chars(place.data(), end, filter.after_seq);
  if (!place.empty() && (error != std::errc() || stop != end || filter.after_seq > INT64_MAX)) {
    errors.Add("page_token",
               "is not from an answer of ListAuditRecords; leave it empty to begin again");
  }
  if (absl::Status status = errors.ToStatus(); !status.ok()) return status;
  return filter;
}

}  // namespace

absl::StatusOr<v1::ListAuditRecordsResponse> ListAuditRecords(
    const Principal& principal, const Services& services,
    const v1::ListAuditRecordsRequest& request) {
  if (auto scope = Authorize(principal, UseCase::kReadAudit); !scope.ok()) return scope.status();
  const absl::StatusOr<int> page_size = ToPageSize(request.page_size());
  if (!page_size.ok()) return page_size.status();
  const absl::StatusOr<audit::RecordFilter> filter = ReadFilter(request);
  if (!filter.ok()) return filter.status();
  absl::StatusOr<audit::RecordPage> page =
      audit::ReadRecords(services.audit_file, *filter, static_cast<size_t>(*page_size), kMaxRead);
  if (!page.ok()) return page.status();
  v1::ListAuditRecordsResponse response;
  for (audit::Record& record : page->records) *response.add_records() = ToWire(std::move(record));
  if (page->last_seq != 0) response.set_next_page_token(fmt::format("{}", page->last_seq));
  return response;
}

absl::StatusOr<v1::VerifyAuditResponse> VerifyAudit(const Principal& principal,
                                                    const Services& services,
                                                    const v1::VerifyAuditRequest& request,
                                                    const std::function<bool()>& is_cancelled) {
  if (auto scope = Authorize(principal, UseCase::kReadAudit); !scope.ok()) return scope.status();
  std::optional<audit::Head> known;
  if (request.known_seq() != 0 || !request.known_hash().empty()) {
    if (request.known_seq() == 0) return contract::BadField("known_seq", "is required with a hash");
    if (request.known_hash().size() != audit::kHashBytes) {
      return contract::BadField(
          "known_hash", fmt::format("has {} bytes; a hash has {}", request.known_hash().size(),
                                    audit::kHashBytes));
    }
    known = audit::Head{.seq = request.known_seq(), .hash = request.known_hash()};
  }
  const absl::StatusOr<audit::Findings> found =
      audit::Verify(services.audit_file, known, is_cancelled);
  if (!found.ok()) return found.status();
  v1::VerifyAuditResponse response;
  response.set_intact(found->is_intact);
  response.set_records(found->records);
  response.set_bad_seq(found->bad_seq);
  response.set_problem(found->problem);
  response.set_head_seq(found->head.seq);
  response.set_head_hash(found->head.hash);
  return response;
}

}  // namespace muster::broker
