#include "broker/files/file_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "contract/errors.h"
#include "contract/file_tree.h"
#include "contract/text.h"
#include "contract/units.h"
#include "digest/sha256.h"
#include "sync/mutex.h"

namespace muster::files {
namespace {

using contract::FormatBytes;

// The subject of error messages.
constexpr std::string_view kWhat = "a file that a job brings along";
// Above this share the store is nearly full: files that are not needed go as soon as they may.
constexpr double kFullShare = 0.9;

uint64_t Occupied(uint64_t size_bytes) {
  return std::max<uint64_t>(1, (size_bytes + kBlockBytes - 1) / kBlockBytes) * kBlockBytes;
}

absl::Status MakeDirectory(const std::filesystem::path& path) {
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return absl::OkStatus();
  return disk::SystemError(errno, fmt::format("make the directory {}", path.native()));
}

// Returns the result of stat(2); nullopt if there is no such file.
absl::StatusOr<std::optional<struct stat>> Look(const std::filesystem::path& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0) return info;
  if (errno == ENOENT) return std::nullopt;
  return disk::SystemError(errno, fmt::format("look at {}", path.native()));
}

absl::Time UseOf(const struct stat& info) { return absl::TimeFromTimespec(info.st_mtim); }

absl::Status NoteUse(const std::filesystem::path& path, absl::Time now) {
  const timespec time = absl::ToTimespec(now);
  const timespec times[2] = {time, time};
  if (utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0) return absl::OkStatus();
  return disk::SystemError(errno, fmt::format("note the use of {}", path.native()));
}

absl::Status Missing(const std::string& sha256) {
  return contract::Error(
      absl::StatusCode::kNotFound, "FILE_NOT_FOUND",
      fmt::format("this broker does not have the file {}; upload it (again): files that nobody "
                  "uses go after a time",
                  sha256),
      {{"sha256", sha256}});
}

absl::Status NoRoom(std::string_view reason, const std::string& sha256, std::string_view message) {
  return contract::Error(absl::StatusCode::kResourceExhausted, reason,
                         fmt::format("the file {}: {}", sha256, message), {{"sha256", sha256}});
}

}  // namespace

IncomingFile::~IncomingFile() {
  if (!path_.empty()) unlink(path_.c_str());
  store_->Release(size_bytes_);
}

absl::Status IncomingFile::Append(std::string_view bytes) {
  size_t written = 0;
  absl::Status status = disk::WriteAt(file_.get(), bytes, written_, kWhat, &written);
  written_ += written;
  return status;
}

void IncomingFile::Complete() const { sync_file_range(file_.get(), 0, 0, SYNC_FILE_RANGE_WRITE); }

FileStore::FileStore(std::filesystem::path directory, Options options,
                     std::function<absl::Time()> now)
    : directory_(std::move(directory)),
      kept_(directory_ / "kept"),
      incoming_(directory_ / "incoming"),
      options_(options),
      now_(std::move(now)) {}

absl::StatusOr<std::unique_ptr<FileStore>> FileStore::Open(std::filesystem::path directory,
                                                           Options options,
                                                           std::function<absl::Time()> now) {
  std::unique_ptr<FileStore> store(new FileStore(std::move(directory), options, std::move(now)));
  for (const auto* made : {&store->directory_, &store->kept_, &store->incoming_}) {
    if (absl::Status status = MakeDirectory(*made); !status.ok()) return status;
  }
  if (absl::Status status = store->EmptyIncoming(); !status.ok()) return status;
  // The last process may have died between the move of a file and the sync of its new name.
  for (const auto* synced : {&store->kept_, &store->directory_}) {
    if (absl::Status status = disk::SyncDirectory(*synced); !status.ok()) return status;
  }
  if (absl::Status status = store->Survey(); !status.ok()) return status;
  auto owners = FileOwners::Open((store->directory_ / "owners.db").native());
  if (!owners.ok()) return owners.status();
  store->owners_ = *std::move(owners);
  return store;
}

absl::Status FileStore::EmptyIncoming() const {
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator(incoming_, error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    std::error_code removal;
    std::filesystem::remove_all(it->path(), removal);
    if (removal) return disk::SystemError(removal.value(), "remove " + it->path().native());
  }
  return error ? disk::SystemError(error.value(), "read " + incoming_.native()) : absl::OkStatus();
}

absl::Status FileStore::Survey() {
  const MutexLock lock(mutex_);
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator(kept_, error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    if (!contract::IsSha256(it->path().filename().native())) continue;
    const auto info = Look(it->path());
    if (!info.ok()) return info.status();
    if (!*info) continue;
    used_bytes_ += Occupied(static_cast<uint64_t>((*info)->st_size));
    first_use_ = std::min(first_use_, UseOf(**info));
  }
  return error ? disk::SystemError(error.value(), "read " + kept_.native()) : absl::OkStatus();
}

absl::StatusOr<std::optional<uint64_t>> FileStore::Use(const std::string& sha256,
                                                       const Viewer& viewer) {
  const absl::StatusOr<bool> may_know = owners_->MayKnow(viewer, sha256);
  if (!may_know.ok()) return may_know.status();
  if (!*may_know) return std::nullopt;
  const std::filesystem::path path = KeptPath(sha256);
  const absl::Time now = now_();
  const MutexLock lock(mutex_);
  if (unsynced_.contains(sha256)) return std::nullopt;
  const auto info = Look(path);
  if (!info.ok()) return info.status();
  if (!*info) return std::nullopt;
  const absl::Time last = UseOf(**info);
  // A use in the future was noted before the clock was set back.
  if (now - last >= kUseGranularity || last > now) {
    if (absl::Status status = NoteUse(path, now); !status.ok()) return status;
  }
  return static_cast<uint64_t>((*info)->st_size);
}

absl::StatusOr<FileStore::KeptFile> FileStore::OpenKept(const std::string& sha256,
                                                        const Viewer& viewer) {
  const auto size_bytes = Use(sha256, viewer);
  if (!size_bytes.ok()) return size_bytes.status();
  if (!*size_bytes) return Missing(sha256);
  auto file = disk::OpenFile(KeptPath(sha256), O_RDONLY);
  if (absl::IsNotFound(file.status())) return Missing(sha256);
  if (!file.ok()) return file.status();
  return KeptFile{*std::move(file), **size_bytes};
}

absl::StatusOr<std::string> FileStore::ReadKept(const std::string& sha256, const Viewer& viewer) {
  const auto kept = OpenKept(sha256, viewer);
  if (!kept.ok()) return kept.status();
  auto bytes = disk::ReadAt(kept->file.get(), 0, kept->size_bytes, kWhat);
  if (!bytes.ok() || Sha256Of(*bytes) == sha256) return bytes;
  return DropDamaged(sha256, *kept);
}

absl::Status FileStore::DropDamaged(const std::string& sha256, const KeptFile& kept) {
  const std::filesystem::path path = KeptPath(sha256);
  struct stat opened {};
  if (fstat(kept.file.get(), &opened) != 0)
    return disk::SystemError(errno, fmt::format("look at {}", path.native()));
  const MutexLock lock(mutex_);
  const auto named = Look(path);
  if (!named.ok()) return named.status();
  if (*named && (*named)->st_ino == opened.st_ino) {
    if (unlink(path.c_str()) != 0)
      return disk::SystemError(errno, fmt::format("remove {}", path.native()));
    used_bytes_ -= Occupied(static_cast<uint64_t>((*named)->st_size));
    ++dropped_;
  }
  return Missing(sha256);
}

absl::Status FileStore::Reserve(const std::string& sha256, uint64_t size_bytes,
                                const Viewer& viewer) {
  const uint64_t largest = std::max<uint64_t>(options_.max_job_bytes, contract::kMaxTreeBytes);
  if (size_bytes > largest) {
    return NoRoom("FILE_TOO_LARGE", sha256,
                  fmt::format("it has {}, and a job may bring along {} to this broker "
                              "(files.max_job_bytes); keep it on the cluster's storage and name "
                              "its path there, or leave it out by a .musterignore file",
                              FormatBytes(size_bytes), FormatBytes(options_.max_job_bytes)));
  }
  struct statvfs disk {};
  if (statvfs(incoming_.c_str(), &disk) != 0)
    return disk::SystemError(errno, fmt::format("look at the disk of {}", incoming_.native()));
  const uint64_t free_bytes = uint64_t{disk.f_bavail} * disk.f_frsize;
  const uint64_t occupied = Occupied(size_bytes);
  const MutexLock lock(mutex_);
  if (occupied > options_.max_total_bytes || used_bytes_ > options_.max_total_bytes - occupied) {
    // From two answers one could tell the size of what others bring.
    const std::string kept =
        viewer.sees_all() ? fmt::format("{} of files already, of {}", FormatBytes(used_bytes_),
                                        FormatBytes(options_.max_total_bytes))
                          : "nearly as many files already as";
    return NoRoom("FILES_FULL", sha256,
                  fmt::format("it has {}, and this broker keeps {} that it may "
                              "(files.max_total_bytes); files that no unfinished job names go "
                              "when they were not used for an hour, or ask its operator for room",
                              FormatBytes(size_bytes), kept));
  }
  if (free_bytes < options_.keep_free_bytes + incoming_bytes_ + occupied) {
    if (!viewer.sees_all()) {
      return NoRoom("DISK_FULL", sha256,
                    fmt::format("it has {}, and the broker's disk has too little room left for it; "
                                "ask its operator for room",
                                FormatBytes(size_bytes)));
    }
    return NoRoom("DISK_FULL", sha256,
                  fmt::format("it has {}, and the disk of {} has {} left, of which the broker "
                              "needs {} itself; make room there",
                              FormatBytes(size_bytes), directory_.native(), FormatBytes(free_bytes),
                              FormatBytes(options_.keep_free_bytes + incoming_bytes_)));
  }
  used_bytes_ += occupied;
  incoming_bytes_ += occupied;
  return absl::OkStatus();
}

void FileStore::Release(uint64_t size_bytes) {
  const MutexLock lock(mutex_);
  used_bytes_ -= Occupied(size_bytes);
  incoming_bytes_ -= Occupied(size_bytes);
}

absl::StatusOr<std::unique_ptr<IncomingFile>> FileStore::NewFile(const std::string& sha256,
                                                                 uint64_t size_bytes,
                                                                 const Viewer& viewer) {
  if (absl::Status status = Reserve(sha256, size_bytes, viewer); !status.ok()) return status;
  auto incoming = std::make_unique<IncomingFile>(this, sha256, size_bytes);
  const std::filesystem::path path = incoming_ / fmt::format("{}", next_incoming_.fetch_add(1));
  auto file = disk::OpenFile(path, O_WRONLY | O_CREAT | O_EXCL);
  if (!file.ok()) return file.status();
  incoming->path_ = path;
  incoming->file_ = *std::move(file);
  return incoming;
}

absl::StatusOr<bool> FileStore::MoveLocked(IncomingFile* file) {
  const std::filesystem::path target = KeptPath(file->sha256_);
  const auto there = Look(target);
  if (!there.ok()) return there.status();
  // Its upload has not marked it as used, if the viewer could not see it.
  if (*there && !unsynced_.contains(file->sha256_)) {
    absl::Status used = NoteUse(target, now_());
    return used.ok() ? absl::StatusOr<bool>(false) : used;
  }
  // Those who had an earlier file of this name have to bring it again, as everybody.
  if (!*there) {
    if (absl::Status status = owners_->Forget({file->sha256_}); !status.ok()) return status;
  }
  if (rename(file->path_.c_str(), target.c_str()) != 0)
    return disk::SystemError(errno, fmt::format("name {}", target.native()));
  unsynced_.insert(file->sha256_);
  file->path_.clear();
  // The destruction of `file` gives back only the room that it had on its way in.
  if (!*there) used_bytes_ += Occupied(file->size_bytes_);
  return !*there;
}

absl::StatusOr<FileStore::Counts> FileStore::Keep(std::vector<std::unique_ptr<IncomingFile>> files,
                                                  const Viewer& viewer) {
  const absl::Time now = now_();
  for (const auto& file : files) {
    if (absl::Status status = NoteUse(file->path_, now); !status.ok()) return status;
    if (absl::Status status = disk::SyncData(file->file_.get(), kWhat); !status.ok()) return status;
  }
  Counts counts;
  std::vector<std::string> all, moved;
  {
    const MutexLock lock(mutex_);
    for (const auto& file : files) {
      all.push_back(file->sha256_);
      const auto is_new = MoveLocked(file.get());
      if (!is_new.ok()) return is_new.status();
      ++(*is_new ? counts.stored : counts.known);
      if (file->path_.empty()) moved.push_back(file->sha256_);
    }
  }
  // A file whose directory cannot be synced counts as missing until it has come again, or until the
  // next start.
  if (absl::Status status = disk::SyncDirectory(kept_); !status.ok()) return status;
  {
    const MutexLock lock(mutex_);
    for (const std::string& sha256 : moved) unsynced_.erase(sha256);
    first_use_ = std::min(first_use_, now);
  }
  const absl::StatusOr<uint32_t> added = owners_->Add(all, viewer.self(), now);
  if (!added.ok()) return added.status();
  if (viewer.sees_all()) return counts;
  // Others may have brought the same bytes before, which is none of this viewer's business.
  return Counts{.stored = *added, .known = static_cast<uint32_t>(all.size()) - *added};
}

absl::Time FileStore::Cutoff() const {
  const bool is_full = static_cast<double>(used_bytes()) >
                       kFullShare * static_cast<double>(options_.max_total_bytes);
  const absl::Duration retention = is_full ? kLeastRetention : options_.retention;
  return now_() - std::max(retention, kLeastRetention);
}

absl::StatusOr<std::optional<absl::Time>> FileStore::RemoveIfUnused(const std::string& sha256,
                                                                    absl::Time cutoff) {
  const std::filesystem::path path = KeptPath(sha256);
  const MutexLock lock(mutex_);
  const auto info = Look(path);
  if (!info.ok()) return info.status();
  if (!*info) return std::nullopt;
  const absl::Time last = UseOf(**info);
  if (last >= cutoff) {
    const absl::Time now = now_();
    if (last <= now) return last;
    if (absl::Status status = NoteUse(path, now); !status.ok()) return status;
    return now;
  }
  if (unlink(path.c_str()) != 0)
    return disk::SystemError(errno, fmt::format("remove {}", path.native()));
  used_bytes_ -= Occupied(static_cast<uint64_t>((*info)->st_size));
  return std::nullopt;
}

absl::StatusOr<bool> FileStore::Expiry::StepOwners(int max_files) {
  const auto owned = store_->owners_->After(owned_, max_files);
  if (!owned.ok()) return owned.status();
  if (owned->empty()) return false;
  owned_ = owned->back();
  std::vector<std::string> gone;
  // No file comes back between the look and the removal: its owners would go.
  const MutexLock lock(store_->mutex_);
  for (const std::string& sha256 : *owned) {
    const auto info = Look(store_->KeptPath(sha256));
    if (!info.ok()) {
      skipped_.Note(info.status());
    } else if (!*info) {
      gone.push_back(sha256);
    }
  }
  if (absl::Status status = store_->owners_->Forget(gone); !status.ok()) return status;
  return true;
}

absl::StatusOr<bool> FileStore::Expiry::Step(int max_files) {
  if (are_files_done_) return StepOwners(max_files);
  std::error_code error;
  if (!next_) next_.emplace(store_->kept_, error);
  for (int i = 0; i < max_files && !error && *next_ != std::filesystem::directory_iterator(); ++i) {
    const std::string name = (*next_)->path().filename().native();
    next_->increment(error);
    if (!contract::IsSha256(name)) continue;
    const auto last = store_->RemoveIfUnused(name, cutoff_);
    if (!last.ok()) {
      skipped_.Note(last.status());
    } else if (*last) {
      first_use_ = std::min(first_use_, **last);
    } else {
      ++removed_;
    }
  }
  if (error) return disk::SystemError(error.value(), "read " + store_->kept_.native());
  if (*next_ != std::filesystem::directory_iterator()) return true;
  are_files_done_ = true;
  const MutexLock lock(store_->mutex_);
  store_->first_use_ = first_use_;
  return true;
}

bool FileStore::IsExpiryDue() const {
  const absl::Time cutoff = Cutoff();
  const MutexLock lock(mutex_);
  return first_use_ < cutoff;
}

uint64_t FileStore::used_bytes() const {
  const MutexLock lock(mutex_);
  return used_bytes_;
}

}  // namespace muster::files
