#include "broker/app/file_expiry.h"

#include <fmt/format.h>

#include <chrono>

#include "contract/filter.h"
#include "contract/text.h"
#include "daemon/log.h"

namespace muster::broker {
namespace {

// Two passes are this far apart, because each looks at every unfinished job and every file.
constexpr std::chrono::minutes kPause{10};
// One step takes this many jobs; most name a tree that was seen before.
constexpr int kJobsPerStep = 100;
// One step takes so many files, which is some 5 ms.
constexpr int kFilesPerStep = 1000;
// One list has all these states, so that a job whose state changes meanwhile is in it once.
constexpr std::string_view kUnfinished =
    "state = QUEUED OR state = PENDING OR state = RUNNING OR state = SUSPENDED";

void LogSkipped(std::string_view event, const files::Skipped& skipped) {
  if (skipped.count == 0) return;
  LogEvent(spdlog::level::warn, event,
           {{"count", fmt::format("{}", skipped.count)},
            {"first_error", std::string(ToStd(skipped.first.message()))}});
}

}  // namespace

void FileExpiry::Begin() {
  if (is_running_) return;
  const auto now = std::chrono::steady_clock::now();
  if ((last_begin_ && now - *last_begin_ < kPause) || !files_->IsExpiryDue()) return;
  last_begin_ = now;
  is_running_ = true;
  Post();
}

void FileExpiry::Post() {
  if (!workers_->PostStep([this] { Step(); })) is_running_ = false;
}

void FileExpiry::Step() {
  const absl::StatusOr<bool> more = Go();
  if (more.ok() && *more) return Post();
  if (!more.ok()) {
    LogEvent(spdlog::level::warn, "file_expiry_failed",
             {{"error", std::string(ToStd(more.status().message()))}});
  } else if (expiry_->removed() > 0) {
    LogEvent(spdlog::level::info, "files_expired",
             {{"files", fmt::format("{}", expiry_->removed())}});
  }
  LogSkipped("file_expiry_skipped_trees", skipped_trees_);
  if (expiry_) LogSkipped("file_expiry_skipped_files", expiry_->skipped());
  skipped_trees_ = {};
  expiry_.reset();
  seen_.clear();
  page_token_.clear();
  is_running_ = false;
}

absl::StatusOr<bool> FileExpiry::Go() {
  if (expiry_) return expiry_->Step(kFilesPerStep);
  const auto more = UseFilesOfJobs();
  if (!more.ok()) return more.status();
  if (!*more) expiry_.emplace(files_, files_->Cutoff());
  return true;
}

absl::StatusOr<bool> FileExpiry::UseFilesOfJobs() {
  const auto filter = contract::ParseFilter(kUnfinished, absl::UnixEpoch());
  if (!filter.ok()) return filter.status();
  const auto page = store_->ListJobs(store::Scope::All(), {.filter = *filter,
                                                           .page_size = kJobsPerStep,
                                                           .page_token = page_token_,
                                                           .include_spec = true});
  if (!page.ok()) return page.status();
  for (const v1::Job& job : page->jobs) {
    for (const v1::Upload& upload : job.spec().uploads()) {
      if (!seen_.insert(upload.tree_sha256()).second) continue;
      // One damaged place of the disk must not keep all other files from being removed.
      if (absl::Status status = job_files_->Use(upload.tree_sha256()); !status.ok())
        skipped_trees_.Note(std::move(status));
    }
    const std::string& shell = job.spec().slurm().batch_script().environment().file_sha256();
    if (shell.empty() || !seen_.insert(shell).second) continue;
    if (absl::Status status = job_files_->UseShell(shell); !status.ok())
      skipped_trees_.Note(std::move(status));
  }
  page_token_ = page->next_page_token;
  return !page_token_.empty();
}

}  // namespace muster::broker
