// The verb audit: list the audit log, and verify it.
#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include <charconv>
#include <string>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/time/clock.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/table.h"
#include "clients/cli/text.h"
#include "clients/cli/verbs.h"
#include "contract/characters.h"
#include "contract/text.h"

namespace muster::cli {
namespace {

using google::protobuf::util::TimeUtil;

constexpr int kPageSize = 1000;
// The time that a list goes back unless told otherwise.
constexpr absl::Duration kDefaultSince = absl::Hours(24);

v1::ListAuditRecordsRequest RequestOf(const AuditFlags& flags) {
  v1::ListAuditRecordsRequest request;
  request.set_page_size(kPageSize);
  request.set_user(flags.user);
  request.set_action(flags.action);
  request.set_result(flags.result);
  request.set_job_id(flags.job);
  const absl::Time since =
      flags.since == absl::InfinitePast() ? absl::Now() - kDefaultSince : flags.since;
  *request.mutable_since() = TimeUtil::MicrosecondsToTimestamp(absl::ToUnixMicros(since));
  if (flags.until != absl::InfiniteFuture()) {
    *request.mutable_until() = TimeUtil::MicrosecondsToTimestamp(absl::ToUnixMicros(flags.until));
  }
  return request;
}

std::string Dash(const std::string& text) { return text.empty() ? "-" : Harmless(text); }

void AddRow(const v1::AuditRecord& record, Table* table) {
  std::string about = record.jobs().empty() ? "" : "jobs=" + record.jobs();
  if (!record.target().empty()) about += (about.empty() ? "" : " ") + record.target();
  if (record.left_out() > 0) about = fmt::format("{} refused calls", record.left_out());
  table->Add({{fmt::format("{}", record.seq())},
              {Rfc3339(record.time())},
              {Dash(record.user())},
              {Dash(record.credential())},
              {Harmless(record.action())},
              {Harmless(record.result())},
              {Dash(about)}});
}

std::string HexOf(std::string_view bytes) { return absl::BytesToHexString(ToAbsl(bytes)); }

// A record as SEQ:HASH, with the hash in hexadecimal digits.
absl::StatusOr<v1::VerifyAuditRequest> ReadKnown(const std::string& text) {
  v1::VerifyAuditRequest request;
  if (text.empty()) return request;
  constexpr size_t kDigits = 64;
  uint64_t seq = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), seq);
  const std::string_view rest =
      std::string_view(text).substr(static_cast<size_t>(stop - text.data()));
  const bool is_good = error == std::errc() && seq != 0 && rest.size() == kDigits + 1 &&
                       rest.front() == ':' &&
                       rest.find_first_not_of("0123456789abcdef", 1) == rest.npos;
  if (!is_good) {
    return absl::InvalidArgumentError(
        ToAbsl(fmt::format("--known: {} is not SEQ:HASH with 64 digits of 0-9 and a-f, as the line "
                           "audit_head of the broker's log has them",
                           contract::Quoted(text))));
  }
  request.set_known_seq(seq);
  request.set_known_hash(absl::HexStringToBytes(ToAbsl(rest.substr(1))));
  return request;
}

}  // namespace

int ListAudit(Session& session) {
  v1::ListAuditRecordsRequest request = RequestOf(session.call.audit);
  v1::ListAuditRecordsResponse all;
  Table table(
      {{"SEQ", 0, true}, {"TIME"}, {"USER"}, {"CREDENTIAL"}, {"ACTION"}, {"RESULT"}, {"ABOUT"}},
      session.style().look());
  const bool is_whole = !session.for_people() && !session.ids_only() && !session.by_line();
  bool is_empty = true;
  do {
    auto page = session.client.ListAuditRecords(request);
    if (!page.ok()) return Fail(session, page.status());
    is_empty = is_empty && page->records().empty();
    for (const v1::AuditRecord& record : page->records()) {
      if (session.ids_only()) session.terminal.Out(fmt::format("{}\n", record.seq()));
      if (session.by_line()) session.terminal.Out(LineOf(session, record));
      if (session.for_people() && !session.ids_only()) AddRow(record, &table);
    }
    if (session.for_people() && !page->records().empty()) session.terminal.Out(table.Take());
    if (is_whole) all.mutable_records()->MergeFrom(page->records());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  if (is_whole) PrintMessage(session, all);
  if (is_empty && session.for_people()) session.terminal.Note("no record");
  return kOk;
}

int VerifyAudit(Session& session) {
  const absl::StatusOr<v1::VerifyAuditRequest> request = ReadKnown(session.call.audit.known);
  if (!request.ok()) {
    session.terminal.Err(std::string(ToStd(request.status().message())) + "\n");
    return kUsage;
  }
  const auto found = session.client.VerifyAudit(*request);
  if (!found.ok()) return Fail(session, found.status());
  if (!session.for_people()) {
    PrintMessage(session, *found);
  } else if (found->intact()) {
    session.terminal.Out(fmt::format("intact: {} records, the newest is {}:{}\n", found->records(),
                                     found->head_seq(), HexOf(found->head_hash())));
  } else {
    session.terminal.Out(fmt::format("not intact: {}; {} records before it fit\n",
                                     Harmless(found->problem()), found->records()));
  }
  return found->intact() ? kOk : kError;
}

}  // namespace muster::cli
