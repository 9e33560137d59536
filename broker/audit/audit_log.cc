#include "broker/audit/audit_log.h"

#include <fmt/format.h>

#include <future>
#include <utility>

#include "broker/audit/chain.h"
#include "broker/audit/shared_record.h"
#include "contract/text.h"
#include "daemon/log.h"

namespace muster::audit {
namespace {

using Clock = std::chrono::steady_clock;

// One round of a retention removes at most this many records, which is less than a second of work.
constexpr uint64_t kMaxRemovedPerRound = 20'000;
constexpr std::string_view kLeftOutAction = "audit.left_out";

}  // namespace

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(
    Options options, std::function<absl::Time()> now,
    std::function<void(const absl::Status&)> on_failure) {
  auto file = AuditFile::Open(options.path);
  if (!file.ok()) return file.status();
  const absl::StatusOr<Head> head = (*file)->ReadHead();
  if (!head.ok()) return head.status();
  std::unique_ptr<AuditLog> log(
      new AuditLog(std::move(options), *std::move(file), std::move(now), std::move(on_failure)));
  {
    const MutexLock lock(log->mutex_);
    log->head_ = *head;
  }
  log->thread_ = std::thread([log = log.get()] { log->Run(); });
  return log;
}

AuditLog::AuditLog(Options options, std::unique_ptr<AuditFile> file,
                   std::function<absl::Time()> now,
                   std::function<void(const absl::Status&)> on_failure)
    : options_(std::move(options)),
      now_(std::move(now)),
      on_failure_(std::move(on_failure)),
      file_(std::move(file)) {}

AuditLog::~AuditLog() { Stop(); }

bool AuditLog::Append(Record record, bool must_wait, const Written& written) {
  record.micros = NowMicros();
  const MutexLock lock(mutex_);
  if (stopped_ || failed_) return false;
  if (!must_wait && !queue_.empty() && Share(record, &queue_.back().record)) return false;
  const bool waits = must_wait || queue_.size() >= options_.max_queued;
  Queue(std::move(record), waits ? written : nullptr);
  return waits;
}

size_t AuditLog::queued() const {
  const MutexLock lock(mutex_);
  return queue_.size();
}

void AuditLog::AppendRefusal(Record record) {
  record.micros = NowMicros();
  const MutexLock lock(mutex_);
  if (stopped_ || failed_) return;
  const bool has_room = queue_.size() < options_.max_queued;
  const bool is_admitted = refusals_.Admit(record.user, has_room, now_());
  QueueLeftOut(false);
  if (is_admitted) Queue(std::move(record), nullptr);
}

void AuditLog::AppendAndWait(Record record) {
  std::promise<void> written;
  const bool waits = Append(std::move(record), true, [&written] { written.set_value(); });
  if (waits) written.get_future().wait();
}

void AuditLog::Queue(Record record, Written written) {
  if (queue_.empty()) due_ = Clock::now() + options_.max_delay;
  const bool is_first = queue_.empty();
  if (written) is_urgent_ = true;
  queue_.push_back({std::move(record), std::move(written)});
  if (is_first || is_urgent_) changed_.notify_all();
}

void AuditLog::QueueLeftOut(bool all) {
  for (auto& [user, count] : refusals_.Take(now_(), all)) {
    Queue({.micros = NowMicros(),
           .user = std::move(user),
           .action = std::string(kLeftOutAction),
           .result = "OK",
           .left_out = count},
          nullptr);
  }
}

void AuditLog::Housekeep() {
  const MutexLock lock(mutex_);
  QueueLeftOut(false);
  is_retention_due_ = true;
  changed_.notify_all();
  if (head_.seq == logged_seq_) return;
  logged_seq_ = head_.seq;
  LogEvent(spdlog::level::info, "audit_head",
           {{"seq", fmt::format("{}", head_.seq)}, {"hash", ToHex(head_.hash)}});
}

void AuditLog::Stop() {
  {
    const MutexLock lock(mutex_);
    if (!stopped_) QueueLeftOut(true);
    stopped_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

bool AuditLog::TakeGroup(std::vector<Waiting>* group, bool* is_retention_due) {
  MutexLock lock(mutex_);
  while (queue_.empty() && !is_retention_due_ && !stopped_) lock.Wait(changed_);
  while (!queue_.empty() && !is_urgent_ && !stopped_ && queue_.size() < options_.max_queued) {
    if (!lock.WaitUntil(changed_, due_)) break;
  }
  *is_retention_due = std::exchange(is_retention_due_, false) && !stopped_;
  is_urgent_ = false;
  group->swap(queue_);
  return !group->empty() || *is_retention_due;
}

void AuditLog::Run() {
  while (true) {
    std::vector<Waiting> group;
    bool is_retention_due = false;
    if (!TakeGroup(&group, &is_retention_due)) return;
    const absl::Status status = Write(&group, is_retention_due);
    if (!status.ok()) {
      {
        const MutexLock lock(mutex_);
        failed_ = true;
        for (Waiting& late : std::exchange(queue_, {})) group.push_back(std::move(late));
      }
      on_failure_(status);
    }
    for (const Waiting& waiting : group) {
      if (waiting.written) waiting.written();
    }
    if (!status.ok()) return;
  }
}

absl::Status AuditLog::Write(std::vector<Waiting>* group, bool is_retention_due) {
  std::vector<Record> records;
  records.reserve(group->size());
  for (Waiting& waiting : *group) records.push_back(std::move(waiting.record));
  absl::Status status = records.empty() ? absl::OkStatus() : file_->Append(absl::MakeSpan(records));
  if (status.ok() && is_retention_due) status = Retain();
  const absl::StatusOr<Head> head = status.ok() ? file_->ReadHead() : status;
  if (!head.ok()) return head.status();
  const MutexLock lock(mutex_);
  head_ = *head;
  return absl::OkStatus();
}

absl::Status AuditLog::Retain() {
  const bool is_bounded = options_.retention > absl::ZeroDuration();
  const int64_t before = is_bounded ? absl::ToUnixMicros(now_() - options_.retention) : 0;
  const absl::StatusOr<uint64_t> removed =
      file_->Retain(before, options_.max_bytes, kMaxRemovedPerRound, NowMicros());
  if (removed.ok() && *removed > 0) {
    LogEvent(spdlog::level::info, "audit_records_removed",
             {{"records", fmt::format("{}", *removed)}});
  }
  return removed.status();
}

}  // namespace muster::audit
