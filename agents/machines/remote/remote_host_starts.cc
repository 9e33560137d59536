// How ranks begin on a host: what they need is put there, then the host is told to start them.
#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "agents/core/job_storage.h"
#include "agents/machines/remote/remote_host.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

std::string Words(const absl::Status& status) { return std::string(ToStd(status.message())); }

}  // namespace

// ---- the thread of layouts

void RemoteHost::LayoutLoop() {
  while (true) {
    RankStart start;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || commands_.HasLayout(); });
      if (stopping_) return;
      start = commands_.BeginLayout();
    }
    LayOut(std::move(start));
  }
}

void RemoteHost::LayOut(RankStart start) {
  bool made_work = false;
  StartDone done = PrepareRank(start, &made_work);
  const bool goes_on = done.status.ok() || absl::IsDeadlineExceeded(done.status);
  bool is_wanted = false;
  {
    const std::lock_guard lock(mutex_);
    is_wanted = commands_.EndLayout();
    start.is_prepared = done.status.ok();
    if (is_wanted && goes_on) commands_.Push(start);
  }
  changed_.notify_all();
  if (is_wanted && goes_on) return;
  if (!is_wanted) {
    if (made_work) RemoveWork(start);
    done.status = WasToEnd();
    done.was_sent = false;
    done.refused.reset();
  }
  listener_(std::move(done));
}

StartDone RemoteHost::PrepareRank(const RankStart& start, bool* made_work) {
  StartDone done = {.run_key = start.run_key, .rank = start.rank, .status = Reach()};
  if (done.status.ok()) done.status = PrepareStart(start, &done.refused, made_work);
  // A host without room for the files is one that could not start it.
  done.was_sent = start.job->uploads_size() > 0 && absl::IsFailedPrecondition(done.status) &&
                  !done.refused.has_value();
  return done;
}

// Of a run of which nothing shows a start: one that has begun may have moved its inputs.
absl::Status RemoteHost::PrepareStart(const RankStart& start, std::optional<v1::Failure>* refused,
                                      bool* made_work) {
  // The default one is in the run's own directory, and made there.
  const bool has_results = !start.job->results_directory().starts_with(start.directory + "/");
  const bool has_files = start.job->uploads_size() > 0;
  if (start.job->inputs_size() == 0 && !has_results && !has_files) return absl::OkStatus();
  const absl::StatusOr<std::vector<std::string>> files = ssh_->ListDirectory(start.directory);
  if (!files.ok() && !absl::IsNotFound(files.status()))
    return absl::UnavailableError(files.status().message());
  // It is there as a whole, from an earlier try.
  if (files.ok() && std::count(files->begin(), files->end(), kWorkDirectory) > 0)
    return absl::OkStatus();
  const bool has_begun =
      files.ok() && std::any_of(files->begin(), files->end(), [](const std::string& name) {
        return !name.starts_with(kWorkDirectory);
      });
  if (has_begun) return absl::OkStatus();
  if (absl::Status s = agent::CheckInputs(*start.job, ssh_.get()); !s.ok()) return s;
  if (has_results) {
    if (absl::Status s = agent::MakeResultsDirectory(*start.job, ssh_.get()); !s.ok()) return s;
  }
  if (!has_files) return absl::OkStatus();
  absl::Status status = LayOutFiles(start, refused);
  *made_work = status.ok();
  return status;
}

absl::Status RemoteHost::LayOutFiles(const RankStart& start, std::optional<v1::Failure>* refused) {
  std::shared_ptr<uploads::HostTrees> trees;
  {
    const std::lock_guard lock(mutex_);
    trees = trees_;
  }
  if (trees == nullptr) return absl::InvalidArgumentError("uploads: this agent takes none");
  const absl::StatusOr<uploads::LocalFiles> files = options_.files->Fetch(*start.job);
  if (!files.ok()) {
    agent::LaunchOutcome outcome = uploads::NotLaunched(files.status());
    if (outcome.kind == agent::LaunchOutcome::Kind::kRefused) *refused = std::move(outcome.failure);
    return files.status();
  }
  const absl::Status status =
      trees->LayOut(*files, fmt::format("{}/{}", start.directory, kWorkDirectory),
                    absl::Now() + uploads::kFetchPatience);
  if (status.ok() || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) return status;
  if (absl::IsNotFound(status) || absl::IsInvalidArgument(status)) {
    return absl::InvalidArgumentError(
        fmt::format("uploads: {}; submit the job again from where its files are", Words(status)));
  }
  return absl::FailedPreconditionError(Words(status));
}

// ---- the thread of commands

absl::Status RemoteHost::Reach() {
  {
    const std::lock_guard lock(mutex_);
    if (!prepared_) return NoAnswer();
  }
  // A connection that is gone already has carried nothing of what follows.
  return ssh_->Connect().ok() ? absl::OkStatus() : NoAnswer();
}

StartDone RemoteHost::StartRank(const RankStart& start) {
  StartDone done = {.run_key = start.run_key, .rank = start.rank, .status = Reach()};
  bool made_work = false;
  if (done.status.ok() && !start.is_prepared) done = PrepareRank(start, &made_work);
  if (!done.status.ok()) return done;
  done.was_sent = true;
  std::vector<std::string> words = {"start", start.directory, start.devices, Question()};
  words.insert(words.end(), start.device_variables.begin(), start.device_variables.end());
  done.status = RunSupervisor(std::move(words), start.spec.Encode(), kCommandPatience).status();
  // The host has said that nothing of it runs, so that the copy is nobody's; another try takes it
  // as it is.
  if (!done.status.ok() && !absl::IsUnavailable(done.status) && start.job->uploads_size() > 0)
    RemoveWork(start);
  return done;
}

void RemoteHost::RemoveWork(const RankStart& start) {
  ssh_->RemoveTree(fmt::format("{}/{}", start.directory, kWorkDirectory)).IgnoreError();
}

}  // namespace muster::machines
