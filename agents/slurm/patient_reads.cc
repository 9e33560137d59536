#include "agents/slurm/patient_reads.h"

#include <chrono>
#include <condition_variable>

#include "fmt/format.h"

namespace muster::slurm {
namespace {

// One read: begun by Await, ended by the thread that reads.
struct Pending {
  Mutex mutex;
  std::condition_variable changed;
  bool is_done ABSL_GUARDED_BY(mutex) = false;
  bool is_late ABSL_GUARDED_BY(mutex) = false;
};

}  // namespace

absl::Status PatientReads::Await(const std::string& path, std::function<void()> read) {
  {
    const MutexLock lock(mutex_);
    if (late_ > 0) {
      return absl::UnavailableError(
          fmt::format("\"{}\" is not read: an earlier read of the same file server hangs", path));
    }
  }
  auto pending = std::make_shared<Pending>();
  lane_.Post([this, pending, read = std::move(read)] {
    read();
    bool is_late = false;
    {
      const MutexLock lock(pending->mutex);
      pending->is_done = true;
      is_late = pending->is_late;
    }
    pending->changed.notify_one();
    if (!is_late) return;
    const MutexLock lock(mutex_);
    --late_;
  });
  const auto end = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(patience_);
  MutexLock lock(pending->mutex);
  while (!pending->is_done && lock.WaitUntil(pending->changed, end)) {
  }
  if (pending->is_done) return absl::OkStatus();
  pending->is_late = true;
  const MutexLock count(mutex_);
  ++late_;
  return absl::UnavailableError(
      fmt::format("\"{}\" could not be read within {}: its file server hangs", path,
                  absl::FormatDuration(patience_)));
}

absl::StatusOr<std::vector<std::string>> PatientReads::ListDirectory(const std::string& path) {
  return Read<std::vector<std::string>>(path, [this, path] { return host_.ListDirectory(path); });
}

std::vector<absl::StatusOr<std::string>> PatientReads::ReadMany(
    const std::vector<hosts::FilePart>& parts) {
  if (parts.empty()) return {};
  using Texts = std::vector<absl::StatusOr<std::string>>;
  absl::StatusOr<Texts> texts =
      Read<Texts>(parts.front().path,
                  [this, parts]() -> absl::StatusOr<Texts> { return host_.ReadMany(parts); });
  return texts.ok() ? *std::move(texts) : Texts(parts.size(), texts.status());
}

absl::StatusOr<hosts::FileInfo> PatientReads::Stat(const std::string& path) {
  return Read<hosts::FileInfo>(path, [this, path] { return host_.Stat(path); });
}

absl::StatusOr<std::string> PatientReads::ReadFile(const std::string& path, size_t max_bytes) {
  return Read<std::string>(path,
                           [this, path, max_bytes] { return host_.ReadFile(path, max_bytes); });
}

absl::StatusOr<std::string> PatientReads::ReadFileRange(const std::string& path, uint64_t offset,
                                                        size_t max_bytes) {
  return Read<std::string>(path, [this, path, offset, max_bytes] {
    return host_.ReadFileRange(path, offset, max_bytes);
  });
}

}  // namespace muster::slurm
