#include "agents/files/file_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "agents/files/disk_room.h"
#include "agents/hosts/fd.h"
#include "agents/hosts/file_error.h"
#include "agents/hosts/steady_now.h"
#include "contract/errors.h"
#include "contract/file_tree.h"
#include "contract/text.h"
#include "digest/sha256.h"
#include "rpc/backoff.h"

namespace muster::uploads {
namespace {

using hosts::Fd;
using hosts::FileError;

// A use is noted on disk again only after so long: most are repeats, and each note is a write.
constexpr absl::Duration kUseGranularity = absl::Minutes(10);
// The received part of a file waits this long for the rest: a broker's restart, and some patience.
constexpr absl::Duration kPartRetention = absl::Hours(1);
// Two looks for old files are this far apart, because each reads all files.
constexpr absl::Duration kExpiryInterval = absl::Hours(1);
// Downloads of one job at the same time: small files cost a round trip each.
constexpr size_t kDownloadsAtOnce = 8;
// Bytes of one read from the disk.
constexpr size_t kPieceBytes = 1 << 20;
constexpr size_t kSmallPieceBytes = 4 << 10;
// The time between two tries of a file.
constexpr absl::Duration kFirstRetry = absl::Milliseconds(100);
constexpr absl::Duration kLongestRetry = absl::Seconds(2);
// The wait for another launch's download of the same file: a day is longer than any patience but an
// infinite one.
constexpr absl::Duration kLongestWait = absl::Hours(24);

absl::Status MakeDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return absl::OkStatus();
  return FileError(errno, "make the directory", path);
}

absl::Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError(errno, "write", path);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

// Reads from the descriptor's offset to the end of the file.
absl::Status ReadPieces(int fd, const std::string& path, const ByteSink& sink) {
  struct stat info {};
  const bool is_known = fstat(fd, &info) == 0;
  const auto size = static_cast<uint64_t>(is_known ? info.st_size : 0);
  // Most files are small.
  std::string piece(std::clamp<uint64_t>(size, kSmallPieceBytes, kPieceBytes), '\0');
  while (true) {
    const ssize_t n = read(fd, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError(errno, "read", path);
    if (n == 0) return absl::OkStatus();
    if (absl::Status s = sink({piece.data(), static_cast<size_t>(n)}); !s.ok()) return s;
  }
}

absl::Status NotAsNamed(const std::string& sha256, std::string_view what) {
  return contract::Error(absl::StatusCode::kDataLoss, "WRONG_FILE",
                         fmt::format("what the broker sent for the file {} {}", sha256, what));
}

void NoteUse(const std::string& path, absl::Time now) {
  const timespec time = absl::ToTimespec(now);
  const timespec times[2] = {time, time};
  // Should it fail, the file only looks older than it is.
  (void)utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
}

}  // namespace

absl::StatusOr<uint64_t> FreeBytes(const std::string& directory) {
  struct statvfs info {};
  if (statvfs(directory.c_str(), &info) != 0) return FileError(errno, "look at", directory);
  return uint64_t{info.f_bavail} * info.f_frsize;
}

FileCache::Hold& FileCache::Hold::operator=(Hold&& other) noexcept {
  if (this == &other) return *this;
  Release();
  cache_ = std::exchange(other.cache_, nullptr);
  digests_ = std::move(other.digests_);
  return *this;
}

void FileCache::Hold::Release() {
  if (cache_ != nullptr) cache_->Unhold(digests_);
  cache_ = nullptr;
}

FileCache::FileCache(std::string directory, CacheOptions options, FileSource* source)
    : directory_(std::move(directory)),
      kept_(directory_ + "/kept"),
      incoming_(directory_ + "/incoming"),
      options_(std::move(options)),
      source_(source) {}

absl::StatusOr<std::unique_ptr<FileCache>> FileCache::Open(std::string directory,
                                                           CacheOptions options,
                                                           FileSource* source) {
  std::unique_ptr<FileCache> cache(new FileCache(std::move(directory), std::move(options), source));
  if (absl::Status status = cache->MakeDirectories(); !status.ok()) return status;
  if (absl::Status status = cache->Survey(); !status.ok()) return status;
  return cache;
}

absl::Status FileCache::MakeDirectories() const {
  for (const std::string& path : {directory_, kept_, incoming_}) {
    if (absl::Status status = MakeDirectory(path); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void FileCache::Stop() {
  stopped_ = true;
  source_->Stop();
}

absl::Status FileCache::Survey() {
  const MutexLock lock(mutex_);
  std::error_code error;
  for (std::filesystem::directory_iterator entry(kept_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    struct stat info {};
    if (!contract::IsSha256(name) || lstat(entry->path().c_str(), &info) != 0) continue;
    const uint64_t bytes = Occupied(static_cast<uint64_t>(info.st_size));
    files_[name] = {.bytes = bytes, .last_use = absl::TimeFromTimespec(info.st_mtim)};
    used_bytes_ += bytes;
  }
  if (error) return FileError(error.value(), "list", kept_);
  TrimLocked(options_.max_bytes, options_.max_files);
  return absl::OkStatus();
}

uint64_t FileCache::used_bytes() const {
  const MutexLock lock(mutex_);
  return used_bytes_;
}

absl::StatusOr<FileCache::Hold> FileCache::Fetch(const std::vector<Wanted>& files,
                                                 absl::Duration patience) {
  const absl::Duration until = hosts::SteadyNow() + patience;
  std::map<std::string_view, const Wanted*> different;
  for (const Wanted& file : files) different.emplace(file.sha256, &file);
  std::vector<std::string> digests;
  std::vector<const Wanted*> missing;
  {
    const MutexLock lock(mutex_);
    for (const auto& [sha256, file] : different) {
      digests.emplace_back(sha256);
      ++holds_[file->sha256];
      if (!UseLocked(file->sha256)) missing.push_back(file);
    }
  }
  Hold hold(this, std::move(digests));
  if (!missing.empty() && patience == -absl::InfiniteDuration())
    return absl::UnavailableError("not all of them are here, and nobody is to be asked");
  // If some files do not fit, the rest would be fetched in vain.
  if (!missing.empty()) {
    // Somebody may have removed them; that says nothing about the job.
    absl::Status room = MakeDirectories();
    if (room.ok()) room = MakeRoom(BytesToFetch(missing), incoming_, "what the job brings along");
    if (!room.ok()) return room;
  }
  std::atomic<size_t> next = 0;
  struct Result {
    Mutex mutex;
    absl::Status status ABSL_GUARDED_BY(mutex);
  } result;
  const auto work = [&] {
    for (size_t i = next++; i < missing.size(); i = next++) {
      const absl::Status status = Get(*missing[i], until);
      if (status.ok()) continue;
      next = missing.size();  // the others stop, too
      const MutexLock lock(result.mutex);
      result.status.Update(status);
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min(kDownloadsAtOnce, missing.size()); ++i) {
    try {
      threads.emplace_back(work);
    } catch (const std::system_error&) {
      break;  // where no more may be had, fewer do it
    }
  }
  work();
  for (std::thread& thread : threads) thread.join();
  const MutexLock lock(result.mutex);
  if (!result.status.ok()) return result.status;
  return hold;
}

bool FileCache::UseLocked(const std::string& sha256) {
  const auto file = files_.find(sha256);
  if (file == files_.end()) return false;
  const absl::Time now = options_.now();
  if (now - file->second.last_use >= kUseGranularity) {
    NoteUse(KeptPath(sha256), now);
    file->second.last_use = now;
  }
  return true;
}

absl::Status FileCache::Get(const Wanted& file, absl::Duration until) {
  {
    MutexLock lock(mutex_);
    const absl::Duration patience = std::min(until - hosts::SteadyNow(), kLongestWait);
    const auto due = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(patience);
    while (fetching_.contains(file.sha256) && lock.WaitUntil(fetched_, due)) {
    }
    if (fetching_.contains(file.sha256))
      return absl::UnavailableError("the time is over, while another run fetched the same file");
    if (UseLocked(file.sha256)) return absl::OkStatus();
    fetching_.insert(file.sha256);
  }
  const absl::Status status = FetchWithRetries(file, until);
  const MutexLock lock(mutex_);
  fetching_.erase(file.sha256);
  fetched_.notify_all();
  return status;
}

absl::Status FileCache::FetchWithRetries(const Wanted& file, absl::Duration until) {
  rpc::Backoff backoff(kFirstRetry, kLongestRetry);
  while (true) {
    absl::Status status = FetchOnce(file, until);
    if (!absl::IsUnavailable(status) || stopped_) return status;
    const absl::Duration pause = backoff.Next();
    if (hosts::SteadyNow() + pause > until) return status;
    absl::SleepFor(pause);
  }
}

// Reserves room, because downloads at the same time would otherwise all count on the same free
// room.
class FileCache::Promise {
 public:
  explicit Promise(FileCache* cache) : cache_(*cache) {}
  Promise(const Promise&) = delete;
  Promise& operator=(const Promise&) = delete;
  ~Promise() { Use(bytes_); }

  absl::Status Ask(uint64_t size_bytes) {
    const MutexLock lock(cache_.mutex_);
    absl::Status status = cache_.MakeRoomLocked(size_bytes, cache_.incoming_, "a file");
    if (!status.ok()) return status;
    bytes_ = size_bytes;
    cache_.promised_bytes_ += size_bytes;
    return absl::OkStatus();
  }
  void Use(uint64_t size_bytes) {
    const MutexLock lock(cache_.mutex_);
    bytes_ -= size_bytes;
    cache_.promised_bytes_ -= size_bytes;
  }

 private:
  FileCache& cache_;
  uint64_t bytes_ = 0;
};

// Makes one try, from where the last one has ended.
absl::Status FileCache::FetchOnce(const Wanted& file, absl::Duration until) {
  if (stopped_) return absl::UnavailableError("the agent ends");
  // Somebody may have removed the directories.
  if (absl::Status status = MakeDirectories(); !status.ok()) return status;
  const std::string path = IncomingPath(file.sha256);
  Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return FileError(errno, "create", path);
  Sha256 digest;
  uint64_t have = 0;
  const auto count = [&](std::string_view bytes) {
    digest.Add(bytes);
    have += bytes.size();
    return absl::OkStatus();
  };
  if (absl::Status status = ReadPieces(fd.get(), path, count); !status.ok()) return status;
  const uint64_t resumed = have;
  absl::Status status;
  if (resumed < file.size_bytes || !file.is_exact) {
    Promise promise(this);
    status = promise.Ask(file.size_bytes - std::min(file.size_bytes, resumed));
    if (status.ok()) {
      status = source_->Read(file.sha256, resumed, until - hosts::SteadyNow(),
                             [&](std::string_view bytes) {
                               if (bytes.size() > file.size_bytes - std::min(file.size_bytes, have))
                                 return NotAsNamed(file.sha256, "is longer than the tree says");
                               (void)count(bytes);
                               const absl::Status written = WriteAll(fd.get(), bytes, path);
                               promise.Use(bytes.size());
                               return written;
                             });
    }
  }
  if (absl::IsUnavailable(status)) return status;
  if (status.ok() && file.is_exact && have != file.size_bytes)
    status = NotAsNamed(file.sha256, "has another length than the tree says");
  if (status.ok() && digest.Finish() != file.sha256)
    status = NotAsNamed(file.sha256, "has another SHA-256");
  if (!status.ok()) {
    unlink(path.c_str());
    const bool is_of_bytes = absl::IsDataLoss(status) || absl::IsOutOfRange(status);
    if (is_of_bytes && resumed > 0)
      return absl::UnavailableError("what had come of a file was damaged; it is fetched anew");
    return status;
  }
  const MutexLock lock(mutex_);
  if (rename(path.c_str(), KeptPath(file.sha256).c_str()) != 0)
    return FileError(errno, "keep", path);
  const absl::Time now = options_.now();
  NoteUse(KeptPath(file.sha256), now);
  files_[file.sha256] = {.bytes = Occupied(have), .last_use = now};
  used_bytes_ += Occupied(have);
  return absl::OkStatus();
}

absl::Status FileCache::MakeRoom(uint64_t size_bytes, const std::string& directory,
                                 std::string_view what) {
  const MutexLock lock(mutex_);
  return MakeRoomLocked(size_bytes, directory, what);
}

absl::Status FileCache::MakeRoomLocked(uint64_t size_bytes, const std::string& directory,
                                       std::string_view what) {
  const uint64_t wanted = size_bytes + promised_bytes_ + options_.keep_free_bytes;
  absl::StatusOr<uint64_t> free_bytes = options_.free_bytes(directory);
  // A file that does not fit all the same pushes nothing out.
  if (free_bytes.ok() && *free_bytes < wanted && *free_bytes + IdleBytesLocked() >= wanted) {
    TrimLocked(0, 0);
    free_bytes = options_.free_bytes(directory);
  }
  if (!free_bytes.ok()) return free_bytes.status();
  if (*free_bytes >= wanted) return absl::OkStatus();
  return NoRoom(what, size_bytes, directory, options_.keep_free_bytes);
}

uint64_t FileCache::IdleBytesLocked() const {
  uint64_t idle = 0;
  for (const auto& [sha256, file] : files_) idle += holds_.contains(sha256) ? 0 : file.bytes;
  return idle;
}

uint64_t FileCache::BytesToFetch(const std::vector<const Wanted*>& missing) const {
  uint64_t bytes = 0;
  for (const Wanted* file : missing) {
    if (!file->is_exact) continue;
    struct stat part {};
    const bool has_part = lstat(IncomingPath(file->sha256).c_str(), &part) == 0;
    const uint64_t have = has_part ? static_cast<uint64_t>(part.st_size) : 0;
    bytes += file->size_bytes - std::min(file->size_bytes, have);
  }
  return bytes;
}

bool FileCache::MayHaveRoom(uint64_t size_bytes, const std::string& directory) const {
  const absl::StatusOr<uint64_t> free_bytes = options_.free_bytes(directory);
  // Kept files give way, except these files, which are on the disk twice then.
  return !free_bytes.ok() ||
         *free_bytes + used_bytes() >= 2 * size_bytes + options_.keep_free_bytes;
}

absl::Status FileCache::Read(const std::string& sha256, uint64_t size_bytes, const ByteSink& sink) {
  const std::string path = KeptPath(sha256);
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  Sha256 digest;
  uint64_t have = 0;
  absl::Status from_sink;
  const absl::Status read =
      !fd.valid() ? FileError(errno, "open", path)
                  : ReadPieces(fd.get(), path, [&](std::string_view bytes) -> absl::Status {
                      have += bytes.size();
                      if (have > size_bytes) return absl::OkStatus();  // it is found out below
                      digest.Add(bytes);
                      from_sink = sink(bytes);
                      return from_sink;
                    });
  if (!from_sink.ok()) return from_sink;
  if (read.ok() && have == size_bytes && digest.Finish() == sha256) return absl::OkStatus();
  Drop(sha256);
  return absl::UnavailableError(
      fmt::format("\"{}\" is not what it was any more ({}); it is fetched anew", path,
                  read.ok() ? "its content has changed" : ToStd(read.message())));
}

absl::StatusOr<std::string> FileCache::ReadAll(const std::string& sha256) {
  struct stat info {};
  const std::string path = KeptPath(sha256);
  if (lstat(path.c_str(), &info) != 0) {
    const absl::Status status = FileError(errno, "look at", path);
    Drop(sha256);
    return absl::UnavailableError(status.message());
  }
  std::string content;
  absl::Status status =
      Read(sha256, static_cast<uint64_t>(info.st_size), [&](std::string_view bytes) {
        content.append(bytes);
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  return content;
}

void FileCache::Drop(const std::string& sha256) {
  const MutexLock lock(mutex_);
  DropLocked(sha256);
}

void FileCache::DropLocked(const std::string& sha256) {
  const auto file = files_.find(sha256);
  if (file == files_.end()) return;
  unlink(KeptPath(sha256).c_str());
  used_bytes_ -= file->second.bytes;
  files_.erase(file);
}

void FileCache::Unhold(const std::vector<std::string>& digests) {
  const MutexLock lock(mutex_);
  for (const std::string& sha256 : digests) {
    const auto held = holds_.find(sha256);
    if (--held->second == 0) holds_.erase(held);
  }
  TrimLocked(options_.max_bytes, options_.max_files);
}

void FileCache::TrimLocked(uint64_t max_bytes, size_t max_files) {
  const absl::Time now = options_.now();
  const bool is_too_much = used_bytes_ > max_bytes || files_.size() > max_files;
  if (!is_too_much && now < next_expiry_) return;
  next_expiry_ = now + kExpiryInterval;
  DropOldPartsLocked();
  uint64_t held_bytes = 0;
  size_t held_files = 0;
  const absl::Time cutoff = now - options_.retention;
  std::vector<std::pair<absl::Time, std::string>> idle;
  for (const auto& [sha256, file] : files_) {
    if (holds_.contains(sha256)) {
      held_bytes += file.bytes;
      ++held_files;
    } else if (file.last_use < cutoff || is_too_much) {
      idle.emplace_back(file.last_use, sha256);
    }
  }
  std::sort(idle.begin(), idle.end());
  for (const auto& [last_use, sha256] : idle) {
    const bool is_enough =
        used_bytes_ - held_bytes <= max_bytes && files_.size() - held_files <= max_files;
    if (last_use >= cutoff && is_enough) break;
    DropLocked(sha256);
  }
}

void FileCache::DropOldPartsLocked() {
  const absl::Time cutoff = options_.now() - kPartRetention;
  std::error_code error;
  std::filesystem::directory_iterator entry(incoming_, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    struct stat info {};
    const std::string name = entry->path().filename().string();
    if (fetching_.contains(name) || lstat(entry->path().c_str(), &info) != 0) continue;
    if (absl::TimeFromTimespec(info.st_mtim) < cutoff) unlink(entry->path().c_str());
  }
}

}  // namespace muster::uploads
