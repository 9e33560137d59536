#include "broker/app/job_expiry.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "broker/store/list_limits.h"
#include "contract/text.h"
#include "daemon/log.h"

namespace muster::broker {

JobExpiry::JobExpiry(Options options, const store::Store* store, logs::Archive* archive,
                     WorkerPool* workers, std::function<absl::Time()> now, DeleteJobs delete_jobs)
    : options_(options),
      store_(store),
      archive_(archive),
      workers_(workers),
      now_(std::move(now)),
      delete_jobs_(std::move(delete_jobs)) {}

void JobExpiry::Begin() {
  if (options_.retention == absl::ZeroDuration() || is_running_) return;
  is_running_ = true;
  before_ = now_() - std::max(options_.retention, options_.request_memory);
  deleted_ = 0;
  Post();
}

void JobExpiry::Post() {
  if (!workers_->PostStep([this] { Step(); })) is_running_ = false;
}

void JobExpiry::Step() {
  absl::StatusOr<std::vector<uint64_t>> jobs = RemoveSomeLogs();
  if (!jobs.ok() || jobs->empty()) return End(jobs.status());
  const uint64_t count = jobs->size();
  delete_jobs_(*std::move(jobs), [this, count](const absl::Status& status) {
    if (!status.ok()) return End(status);
    deleted_ += count;
    Post();
  });
}

absl::StatusOr<std::vector<uint64_t>> JobExpiry::RemoveSomeLogs() {
  auto jobs = store_->ListEnded(before_, store::kMaxDeletedRows);
  if (!jobs.ok()) return jobs.status();
  for (const uint64_t job : *jobs) {
    if (absl::Status status = archive_->Remove(job); !status.ok()) return status;
  }
  return jobs;
}

void JobExpiry::End(const absl::Status& status) {
  if (!status.ok()) {
    LogEvent(spdlog::level::warn, "job_expiry_failed",
             {{"error", std::string(ToStd(status.message()))}});
  }
  if (deleted_ > 0) {
    LogEvent(spdlog::level::info, "jobs_deleted", {{"jobs", fmt::format("{}", deleted_)}});
  }
  is_running_ = false;
}

}  // namespace muster::broker
