// Starts ranks on a host: puts there the files that they need, then tells the host to start them.
#include <algorithm>
#include <utility>

#include "agents/core/job_storage.h"
#include "agents/machines/remote/remote_host.h"
#include "contract/message_of.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::machines {

// ---- the thread of layouts

void RemoteHost::LayoutLoop() {
  while (true) {
    RankStart start;
    {
      MutexLock lock(mutex_);
      while (!stopping_ && !commands_.HasLayout()) lock.Wait(changed_);
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
    const MutexLock lock(mutex_);
    start.sent = commands_.LayoutOf(start.run_key, start.rank).value_or(FilesSent());
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

// Call it only for a run without any sign of a start: one that has begun may have moved its inputs.
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
  if (absl::Status s = agents::CheckInputs(*start.job, ssh_.get()); !s.ok()) return s;
  if (has_results) {
    if (absl::Status s = agents::MakeResultsDirectory(*start.job, ssh_.get()); !s.ok()) return s;
  }
  if (!has_files) return absl::OkStatus();
  absl::Status status = LayOutFiles(start, refused);
  *made_work = status.ok();
  return status;
}

absl::Status RemoteHost::LayOutFiles(const RankStart& start, std::optional<v1::Failure>* refused) {
  std::shared_ptr<uploads::HostTrees> trees;
  {
    const MutexLock lock(mutex_);
    trees = trees_;
  }
  if (trees == nullptr) return absl::InvalidArgumentError("uploads: this agent takes none");
  absl::Status status = PutFiles(start, trees.get(), refused);
  const bool is_of_host = !status.ok() && !refused->has_value() && !absl::IsUnavailable(status) &&
                          !absl::IsDeadlineExceeded(status);
  return is_of_host ? absl::FailedPreconditionError(MessageOf(status)) : status;
}

absl::Status RemoteHost::PutFiles(const RankStart& start, uploads::HostTrees* trees,
                                  std::optional<v1::Failure>* refused) {
  const absl::StatusOr<uploads::TreeName> tree = ReadTreeName(start, refused);
  if (!tree.ok()) return tree.status();
  const std::string work = fmt::format("{}/{}", start.directory, kWorkDirectory);
  // Most jobs' files are there from an earlier one, and wait for nobody.
  absl::Status status = trees->Copy(*tree, work);
  if (!absl::IsNotFound(status)) return status;
  const absl::StatusOr<std::string> sha256 = SendFiles(start, *tree, trees, refused);
  status = sha256.ok() ? trees->Unpack(*tree, *sha256) : sha256.status();
  if (status.ok()) status = trees->Copy(*tree, work);
  // Somebody has removed it there meanwhile.
  return absl::IsNotFound(status) && !refused->has_value()
             ? absl::UnavailableError(status.message())
             : status;
}

absl::StatusOr<uploads::LocalFiles> RemoteHost::FetchFiles(const RankStart& start,
                                                           std::optional<v1::Failure>* refused) {
  absl::StatusOr<uploads::LocalFiles> files = options_.files->Fetch(*start.job);
  if (files.ok()) return files;
  agents::LaunchOutcome outcome = uploads::NotLaunched(files.status());
  if (outcome.kind == agents::LaunchOutcome::Kind::kRefused) *refused = std::move(outcome.failure);
  return files;
}

absl::StatusOr<uploads::TreeName> RemoteHost::ReadTreeName(const RankStart& start,
                                                           std::optional<v1::Failure>* refused) {
  const absl::StatusOr<uploads::Turns::Turn> turn = options_.turns->reading.Take();
  if (!turn.ok()) return turn.status();
  const absl::StatusOr<uploads::LocalFiles> files = FetchFiles(start, refused);
  if (!files.ok()) return files.status();
  return uploads::TreeName::Of(files->tree);
}

absl::StatusOr<std::string> RemoteHost::SendFiles(const RankStart& start,
                                                  const uploads::TreeName& tree,
                                                  uploads::HostTrees* trees,
                                                  std::optional<v1::Failure>* refused) {
  NoteSent({.bytes = start.sent.bytes, .of = tree.archive_bytes});
  const absl::StatusOr<uploads::Turns::Turn> turn = options_.turns->sending.Take();
  if (!turn.ok()) return turn.status();
  if (!IsLayoutWanted()) return WasToEnd();
  const absl::StatusOr<uploads::LocalFiles> files = FetchFiles(start, refused);
  if (!files.ok()) return files.status();
  return trees->Send(*files, tree, uploads::kFetchPatience,
                     [&](uint64_t bytes) { NoteSent({.bytes = bytes, .of = tree.archive_bytes}); });
}

bool RemoteHost::IsLayoutWanted() const {
  const MutexLock lock(mutex_);
  return commands_.IsLayoutWanted();
}

void RemoteHost::NoteSent(const FilesSent& sent) {
  const MutexLock lock(mutex_);
  commands_.NoteSent(sent);
}

// ---- the thread of commands

absl::Status RemoteHost::Reach() {
  // A channel that has ended already carries nothing of what follows.
  const std::shared_ptr<HostChannel> channel = CommandsChannel();
  return channel != nullptr && channel->is_open() ? absl::OkStatus() : NoAnswer();
}

StartDone RemoteHost::StartRank(const RankStart& start) {
  StartDone done = {.run_key = start.run_key, .rank = start.rank, .status = Reach()};
  bool made_work = false;
  if (done.status.ok() && !start.is_prepared) done = PrepareRank(start, &made_work);
  // It starts only under a lease that its host knows.
  if (done.status.ok() && !start.spec.lease_file.empty()) done.status = SendLease();
  if (!done.status.ok()) return done;
  done.was_sent = true;
  std::vector<std::string> words = {"start", start.directory, start.devices};
  words.insert(words.end(), start.device_variables.begin(), start.device_variables.end());
  done.status = RunSupervisor(std::move(words), start.spec.Encode(), kCommandPatience).status();
  // The host has said that none of the run's processes lives, so the copy is nobody's; another try
  // takes it as it is.
  if (!done.status.ok() && !absl::IsUnavailable(done.status) && start.job->uploads_size() > 0)
    RemoveWork(start);
  return done;
}

void RemoteHost::RemoveWork(const RankStart& start) {
  ssh_->RemoveTree(fmt::format("{}/{}", start.directory, kWorkDirectory)).IgnoreError();
}

}  // namespace muster::machines
