#include "broker/logs/archive.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "broker/logs/block_sums.h"
#include "broker/logs/disk.h"
#include "broker/logs/followers.h"
#include "broker/logs/job_cache.h"
#include "broker/logs/job_directory.h"
#include "broker/logs/open_files.h"
#include "broker/logs/retention.h"
#include "contract/errors.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::logs {
namespace {

LogName NameOf(const LogId& log) { return {log.run, log.rank, log.stream}; }

// Returns the id under which the file of a rank's order is kept open.
LogId BothOutputs(LogId log) {
  log.stream = v1::LOG_STREAM_UNSPECIFIED;
  return log;
}

bool IsEnded(LogState state) { return state != LogState::kOpen; }

v1::LogEnd EndOf(LogState state, bool refused) {
  switch (state) {
    case LogState::kOpen:
      return refused ? v1::LOG_END_TRUNCATED : v1::LOG_END_MORE_LATER;
    case LogState::kDone:
      return v1::LOG_END_COMPLETE;
    case LogState::kCut:
      return v1::LOG_END_TRUNCATED;
    case LogState::kExpired:
      return v1::LOG_END_EXPIRED;
  }
  return v1::LOG_END_UNSPECIFIED;
}

// The facts are read in this order: a log that had ended before has its final size.
LogFacts FactsOf(const Log& log) {
  const LogState state = log.state;
  const bool refused = log.refused;
  return {.size = log.size, .end = EndOf(state, refused)};
}

// Appends to a log. Bytes without a checksum count as not written.
absl::Status WriteSummed(int file, int sums, std::string_view data, Log* log, size_t* written)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(log->mutex) {
  const absl::Status status = WriteAt(file, data, log->size, kArchive, written);
  const absl::Status summed = WriteSums(sums, log->size, data.substr(0, *written), &log->block_crc);
  if (summed.ok()) return status;
  *written = 0;
  if (ftruncate(file, static_cast<off_t>(log->size)) != 0) {
    return SystemError(errno, "cut a file of the log archive");
  }
  return summed;
}

class FileArchive : public Archive {
 public:
  FileArchive(std::filesystem::path root, FileDescriptor lock, Options options,
              std::function<absl::Time()> now)
      : root_(std::move(root)),
        lock_(std::move(lock)),
        options_(options),
        now_(std::move(now)),
        cache_(root_, options.max_cached_jobs),
        files_(options.max_open_files - options.max_open_files / 2),
        sums_(options.max_open_files / 2) {}

  absl::StatusOr<AppendResult> Append(const LogId& id, uint64_t offset, std::string_view data,
                                      bool end) override;
  absl::StatusOr<ReadResult> Read(const LogId& id, uint64_t offset,
                                  size_t max_bytes) const override;
  absl::StatusOr<LogFacts> Look(const LogId& id) const override;
  absl::StatusOr<std::vector<ListedLog>> List(uint64_t job, uint32_t run) const override;
  absl::StatusOr<OrderMarks> ReadOrder(const RankId& rank, uint64_t from,
                                       size_t max) const override;
  std::unique_ptr<Follow> StartFollow(const LogId& id, std::function<void()> wake) override {
    return followers_.Start(id, std::move(wake));
  }
  absl::StatusOr<int> Expire(int max_jobs) override;
  absl::Status Remove(uint64_t job) override;
  Usage usage() const override;

 private:
  // Does the steps of Append.
  absl::Status AppendLocked(const LogId& id, uint64_t offset, std::string_view data, bool end,
                            Job* job, Log* log, AppendResult* result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(log->mutex);
  absl::Status AppendAfterEnd(const LogId& id, uint64_t pushed_end, bool end, Job* job, Log* log,
                              AppendResult* result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(log->mutex);
  absl::Status Write(const LogId& id, std::string_view data, Job* job, Log* log)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(log->mutex);
  void NoteOrder(const LogId& id, Job* job, Log* log);
  absl::Status Finish(const LogId& id, LogState state, Job* job, Log* log)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(log->mutex);
  void DropUnsynced(const LogId& id, int fd, Job* job, Log* log)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(log->mutex);

  absl::StatusOr<std::shared_ptr<FileDescriptor>> FileForWriting(const LogId& id, Job* job,
                                                                 Log* log)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(log->mutex);
  absl::StatusOr<std::shared_ptr<FileDescriptor>> SumsFile(const LogId& id);
  absl::StatusOr<std::shared_ptr<FileDescriptor>> OrderFile(const LogId& id);
  absl::StatusOr<std::shared_ptr<FileDescriptor>> FileForReading(const LogId& id) const;
  uint64_t Reserve(uint64_t bytes, Job* job);
  absl::StatusOr<bool> ExpireJob(const EndedJob& ended, absl::Time cutoff);
  absl::Status RemoveLogs(const FoundJob& found, Job* job);

  const std::filesystem::path root_;
  const FileDescriptor lock_;  // held while the archive is open: no other process writes here
  const Options options_;
  const std::function<absl::Time()> now_;
  // These synchronise themselves.
  mutable JobCache cache_;
  mutable OpenFiles files_;
  OpenFiles sums_;  // for the logs that are being written, and the orders of their ranks
  mutable Followers followers_;
  Retention retention_;
};

// ---- appending

absl::StatusOr<AppendResult> FileArchive::Append(const LogId& id, uint64_t offset,
                                                 std::string_view data, bool end) {
  if (id.job == 0 || id.run == 0 || !v1::LogStream_IsValid(id.stream) ||
      id.stream == v1::LOG_STREAM_UNSPECIFIED) {
    return contract::BadField("stream", "a log needs a job, a run and STDOUT or STDERR");
  }
  const auto job = cache_.Get(id.job);
  if (!job.ok()) return job.status();
  Log* const log = (*job)->FindOrMake(NameOf(id));
  AppendResult result;
  absl::Status status;
  bool changed = false;
  {
    const MutexLock lock(log->mutex);
    const uint64_t size_before = log->size;
    const bool refused_before = log->refused;
    const LogState state_before = log->state;
    status = AppendLocked(id, offset, data, end, job->get(), log, &result);
    changed =
        log->size != size_before || log->state != state_before || log->refused != refused_before;
  }
  if (changed) followers_.Wake(id);
  if (!status.ok()) return status;
  return result;
}

absl::Status FileArchive::AppendLocked(const LogId& id, uint64_t offset, std::string_view data,
                                       bool end, Job* job, Log* log, AppendResult* result) {
  const uint64_t pushed_end = offset + data.size();
  if (job->expired || log->name != LogState::kOpen) {
    return AppendAfterEnd(id, pushed_end, end, job, log, result);
  }
  if (offset <= log->size && pushed_end > log->size) {
    const uint64_t fresh = pushed_end - log->size;
    const uint64_t room = Reserve(fresh, job);
    if (auto status = Write(id, data.substr(data.size() - fresh, room), job, log); !status.ok()) {
      return status;
    }
    if (room < fresh) log->refused = true;
  }
  const bool is_full = job->bytes >= options_.max_job_bytes;
  const bool is_cut = is_full && pushed_end > log->size;
  result->discarding = is_full;
  result->next_offset = is_cut ? pushed_end : log->size.load();
  if (is_cut) log->refused = true;
  if (!end || pushed_end < log->size || (pushed_end > log->size && !is_cut)) {
    return absl::OkStatus();
  }
  result->complete = true;
  return Finish(id, is_cut ? LogState::kCut : LogState::kDone, job, log);
}

// Handles data that comes after the end: it is already there, or has no place.
absl::Status FileArchive::AppendAfterEnd(const LogId& id, uint64_t pushed_end, bool end, Job* job,
                                         Log* log, AppendResult* result) {
  result->next_offset = std::max<uint64_t>(pushed_end, log->size);
  result->complete = log->name != LogState::kOpen || end;
  result->discarding = job->expired || log->name == LogState::kCut;
  if (job->expired) return absl::OkStatus();
  // A sync failed after the renaming.
  if (!IsEnded(log->state)) return Finish(id, log->name, job, log);
  // The process before this one may have died before the end was durable.
  if (job->parents_synced) return absl::OkStatus();
  const absl::Status status = SyncNames(root_, id.job, /*parents=*/true);
  if (status.ok()) job->parents_synced = true;
  return status;
}

// Reserves as much of the job's cap as is left.
uint64_t FileArchive::Reserve(uint64_t bytes, Job* job) {
  uint64_t used = job->bytes;
  uint64_t taken = 0;
  do {
    taken = std::min(bytes, options_.max_job_bytes - std::min(used, options_.max_job_bytes));
  } while (!job->bytes.compare_exchange_weak(used, used + taken));
  return taken;
}

// Notes the order before bytes are added, so that readers find the mark first. If the order cannot
// be written, it is lost, but no byte of the log is.
void FileArchive::NoteOrder(const LogId& id, Job* job, Log* log) {
  Order& order = *log->order;
  const MutexLock lock(order.mutex);
  if (order.grew_last == id.stream) return;
  order.grew_last = id.stream;
  LogId other_id = id;
  other_id.stream =
      id.stream == v1::LOG_STREAM_STDOUT ? v1::LOG_STREAM_STDERR : v1::LOG_STREAM_STDOUT;
  const Log* const other = job->Find(NameOf(other_id));
  const uint64_t other_size = other == nullptr ? 0 : other->size.load();
  // There is no order to note before the other output has a byte.
  if (other_size == 0 || order.marks >= kMaxMarks) return;
  const auto file = OrderFile(id);
  if (!file.ok()) return;
  const OrderMark mark = id.stream == v1::LOG_STREAM_STDOUT
                             ? OrderMark{.out = log->size, .err = other_size}
                             : OrderMark{.out = other_size, .err = log->size};
  if (WriteMark((*file)->get(), order.marks, mark).ok()) ++order.marks;
}

// Appends reserved bytes; bytes that could not be written are no longer reserved.
absl::Status FileArchive::Write(const LogId& id, std::string_view data, Job* job, Log* log) {
  if (data.empty()) return absl::OkStatus();
  const auto file = FileForWriting(id, job, log);
  const auto sums = file.ok() ? SumsFile(id) : file.status();
  if (sums.ok()) NoteOrder(id, job, log);
  size_t written = 0;
  const absl::Status status =
      sums.ok() ? WriteSummed((*file)->get(), (*sums)->get(), data, log, &written) : sums.status();
  job->bytes -= data.size() - written;
  log->size += written;
  cache_.total_bytes() += static_cast<int64_t>(written);
  log->unsynced += written;
  if (status.ok() && log->unsynced >= options_.sync_after_bytes) {
    // This only starts the writing, so that the sync at the end finds little left to do.
    sync_file_range((*file)->get(), 0, 0, SYNC_FILE_RANGE_WRITE);
    log->unsynced = 0;
  }
  return status;
}

// A repeat after an error goes on at the step that failed.
absl::Status FileArchive::Finish(const LogId& id, LogState state, Job* job, Log* log) {
  const absl::Time now = now_();
  if (log->name == LogState::kOpen) {
    const auto file = FileForWriting(id, job, log);  // an empty log needs a file for its name
    if (!file.ok()) return file.status();
    if (auto status = SyncData((*file)->get(), kArchive); !status.ok()) {
      DropUnsynced(id, (*file)->get(), job, log);
      return status;
    }
    const absl::Status renamed = RenameLog(root_, id.job, NameOf(id), state, now);
    if (!renamed.ok()) return renamed;
    log->name = state;
  }
  if (auto status = SyncNames(root_, id.job, !job->parents_synced); !status.ok()) return status;
  job->parents_synced = true;
  log->state = log->name;
  files_.Erase(id);
  sums_.Erase(id);
  sums_.Erase(BothOutputs(id));
  if (job->HasEnded()) retention_.Add({.ended = now, .job = id.job});
  return absl::OkStatus();
}

// Lets the log begin again after a failed sync: nobody knows which bytes the disk has, and the
// log's pusher still has all of it.
void FileArchive::DropUnsynced(const LogId& id, int fd, Job* job, Log* log) {
  if (ftruncate(fd, 0) != 0) return;
  job->bytes -= log->size;
  cache_.total_bytes() -= static_cast<int64_t>(log->size.load());
  log->size = 0;
  log->unsynced = 0;
  log->block_crc = 0;
  files_.Erase(id);
}

absl::StatusOr<std::shared_ptr<FileDescriptor>> FileArchive::FileForWriting(const LogId& id,
                                                                            Job* job, Log* log) {
  if (auto file = files_.Find(id)) return file;
  if (!log->exists) {
    if (auto status = MakeJobDirectory(root_, id.job); !status.ok()) return status;
  }
  auto opened = OpenFile(LogPath(root_, id.job, NameOf(id), LogState::kOpen), O_RDWR | O_CREAT);
  if (!opened.ok()) return opened.status();
  log->exists = true;
  if (!job->has_logs.exchange(true)) ++cache_.total_jobs();
  auto file = std::make_shared<FileDescriptor>(*std::move(opened));
  files_.Insert(id, file);
  return file;
}

// The caller has opened the log's own file before.
absl::StatusOr<std::shared_ptr<FileDescriptor>> FileArchive::SumsFile(const LogId& id) {
  if (auto file = sums_.Find(id)) return file;
  auto opened = OpenFile(SumsPath(root_, id.job, NameOf(id)), O_RDWR | O_CREAT);
  if (!opened.ok()) return opened.status();
  auto file = std::make_shared<FileDescriptor>(*std::move(opened));
  sums_.Insert(id, file);
  return file;
}

absl::StatusOr<std::shared_ptr<FileDescriptor>> FileArchive::OrderFile(const LogId& id) {
  const LogId both = BothOutputs(id);
  if (auto file = sums_.Find(both)) return file;
  auto opened = OpenFile(OrderPath(root_, id.job, {id.run, id.rank}), O_RDWR | O_CREAT);
  if (!opened.ok()) return opened.status();
  auto file = std::make_shared<FileDescriptor>(*std::move(opened));
  sums_.Insert(both, file);
  return file;
}

// ---- reading

absl::StatusOr<LogFacts> FileArchive::Look(const LogId& id) const {
  const auto job = cache_.Get(id.job);
  if (!job.ok()) return job.status();
  const Log* const log = (*job)->Find(NameOf(id));
  if ((*job)->expired) return LogFacts{.end = v1::LOG_END_EXPIRED};
  return log == nullptr ? LogFacts{} : FactsOf(*log);
}

absl::StatusOr<std::vector<ListedLog>> FileArchive::List(uint64_t job_id, uint32_t run) const {
  const auto job = cache_.Get(job_id);
  if (!job.ok()) return job.status();
  std::vector<ListedLog> listed;
  const MutexLock lock((*job)->mutex);
  for (const auto& [name, log] : (*job)->logs) {
    if (name.run != run) continue;
    listed.push_back(
        {.rank = name.rank,
         .stream = name.stream,
         .facts = (*job)->expired ? LogFacts{.end = v1::LOG_END_EXPIRED} : FactsOf(*log)});
  }
  return listed;
}

absl::StatusOr<OrderMarks> FileArchive::ReadOrder(const RankId& rank, uint64_t from,
                                                  size_t max) const {
  const OrderMarks none{.marks = {}, .next = from};
  const auto job = cache_.Get(rank.job);
  if (!job.ok()) return job.status();
  const Order* const order = (*job)->FindOrder({rank.run, rank.rank});
  const uint64_t marks = order == nullptr ? 0 : order->marks.load();
  if (from >= marks) return none;
  const auto file = OpenFile(OrderPath(root_, rank.job, {rank.run, rank.rank}), O_RDONLY);
  // The file went when the job expired, or somebody removed it.
  if (absl::IsNotFound(file.status())) return none;
  if (!file.ok()) return file.status();
  return ReadMarks(file->get(), from, std::min<uint64_t>(max, marks - from));
}

absl::StatusOr<ReadResult> FileArchive::Read(const LogId& id, uint64_t offset,
                                             size_t max_bytes) const {
  const auto job = cache_.Get(id.job);
  if (!job.ok()) return job.status();
  ReadResult result;
  result.offset = offset;
  const Log* const log = (*job)->Find(NameOf(id));
  if (log == nullptr || (*job)->expired) {
    result.end = (*job)->expired ? v1::LOG_END_EXPIRED : v1::LOG_END_MORE_LATER;
    return result;
  }
  const auto [size, end] = FactsOf(*log);
  if (offset < size) {
    const auto file = FileForReading(id);
    if (absl::IsNotFound(file.status()) && (*job)->expired) {
      result.end = v1::LOG_END_EXPIRED;
      return result;
    }
    if (!file.ok()) return file.status();
    auto data =
        ReadAt((*file)->get(), offset, std::min<uint64_t>(max_bytes, size - offset), kArchive);
    if (!data.ok()) return data.status();
    result.data = *std::move(data);
  }
  if (offset + result.data.size() >= size) result.end = end;
  return result;
}

absl::StatusOr<std::shared_ptr<FileDescriptor>> FileArchive::FileForReading(const LogId& id) const {
  if (auto file = files_.Find(id)) return file;
  // A log may end while it is being looked for. It is renamed once, from "open" to another state,
  // so that a search in this order finds it.
  absl::Status status;
  for (const LogState state : {LogState::kOpen, LogState::kDone, LogState::kCut}) {
    auto opened = OpenFile(LogPath(root_, id.job, NameOf(id), state), O_RDONLY);
    status = opened.status();
    if (absl::IsNotFound(status)) continue;
    if (!status.ok()) return status;
    auto file = std::make_shared<FileDescriptor>(*std::move(opened));
    if (IsEnded(state)) files_.Insert(id, file);
    return file;
  }
  return status;
}

// ---- retention

absl::StatusOr<int> FileArchive::Expire(int max_jobs) {
  if (auto status = retention_.Survey(root_, &cache_); !status.ok()) return status;
  int removed = 0;
  while (removed < max_jobs) {
    const bool is_too_much = cache_.total_bytes() > static_cast<int64_t>(options_.max_total_bytes);
    const absl::Time cutoff = is_too_much ? absl::InfiniteFuture() : now_() - options_.retention;
    const auto ended = retention_.TakeFirst(cutoff);
    if (!ended) break;
    const auto expired = ExpireJob(*ended, cutoff);
    if (!expired.ok()) {
      retention_.Add(*ended);
      return expired.status();
    }
    removed += *expired ? 1 : 0;
  }
  return removed;
}

// False: the job has had new logs since it was noted, or is already gone.
absl::StatusOr<bool> FileArchive::ExpireJob(const EndedJob& ended, absl::Time cutoff) {
  const auto job = cache_.Get(ended.job);
  if (!job.ok()) return job.status();
  const auto found = FindJob(root_, ended.job);
  if (!found.ok()) return found.status();
  const bool is_left_over = found->expired && found->exists;
  if (!is_left_over && (!found->exists || !(*job)->HasEnded() || found->ended > cutoff)) {
    return false;
  }
  if (absl::Status status = RemoveLogs(*found, job->get()); !status.ok()) return status;
  return true;
}

absl::Status FileArchive::Remove(uint64_t id) {
  const auto job = cache_.Get(id);
  if (!job.ok()) return job.status();
  const auto found = FindJob(root_, id);
  if (!found.ok()) return found.status();
  return found->exists ? RemoveLogs(*found, job->get()) : absl::OkStatus();
}

absl::Status FileArchive::RemoveLogs(const FoundJob& found, Job* job) {
  job->expired = true;  // set first, so that a reader that finds no file knows why
  if (auto status = RemoveJob(root_, job->id); !status.ok()) return status;
  for (const auto& [name, file] : found.logs) {
    const LogId id{job->id, name.run, name.rank, name.stream};
    Log* const log = job->FindOrMake(name);
    {
      const MutexLock lock(log->mutex);
      log->state = LogState::kExpired;
    }
    files_.Erase(id);
    cache_.total_bytes() -= static_cast<int64_t>(file.size);
    followers_.Wake(id);
  }
  if (!found.logs.empty()) --cache_.total_jobs();
  return absl::OkStatus();
}

Usage FileArchive::usage() const {
  return Usage{.bytes = static_cast<uint64_t>(std::max<int64_t>(0, cache_.total_bytes())),
               .jobs = static_cast<size_t>(std::max<int64_t>(0, cache_.total_jobs())),
               .open_files = files_.size() + sums_.size(),
               .followers = followers_.size()};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Archive>> Archive::Open(const std::filesystem::path& directory,
                                                       Options options,
                                                       std::function<absl::Time()> now) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return SystemError(error.value(), fmt::format("make {}", directory.native()));
  std::filesystem::permissions(directory, std::filesystem::perms::owner_all, error);
  if (error) return SystemError(error.value(), fmt::format("protect {}", directory.native()));
  auto lock = OpenFile(directory / "lock", O_RDWR | O_CREAT);
  if (!lock.ok()) return lock.status();
  if (flock(lock->get(), LOCK_EX | LOCK_NB) != 0) {
    return contract::Error(
        absl::StatusCode::kFailedPrecondition, "ARCHIVE_IN_USE",
        fmt::format("another process uses the log archive {}; stop it first", directory.native()));
  }
  return std::make_unique<FileArchive>(directory, *std::move(lock), options, std::move(now));
}

}  // namespace muster::logs
